// Contract of the panels: one file per view, one line in index.ts. A panel reads the report and draws; it computes no
// figure that the report does not carry.
import type { ComponentChild } from "preact";
import type { Report } from "../data/report";

export interface Panel {
  id: string; // in the page's address, after #
  label: string; // in the list of contents
  title: string;
  /** Answers (or "ANSWER.part") that this panel shows, so that the generic panel leaves them out. */
  shows: string[];
  /** False: there is nothing to show, and the panel is left out. */
  applies: (report: Report) => boolean;
  view: (props: { report: Report }) => ComponentChild;
}
