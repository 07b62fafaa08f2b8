// Pages that are no part of the report: each asks the server by itself. One line per page.
import type { ComponentChild } from "preact";
import type { Route } from "../data/route";
import type { Run, RunState } from "../data/server";
import { DiffPage } from "./diff";
import { QueryPage } from "./query";
import { TimelinePage } from "./timeline";
import { WhatIfPage } from "./what_if";

export interface ViewProps {
  run: Run;
  runs: Run[]; // all that are served, with this one
  state: RunState;
  route: Route;
}

export interface OwnView {
  view: string; // in the page's address
  label: string;
  page: (props: ViewProps) => ComponentChild;
  wholeWindow?: boolean;
  ofRun?: boolean; // its tables are of the run as it was recorded, so their moments are on its timeline
}

export const OWN_VIEWS: OwnView[] = [
  { view: "timeline", label: "Timeline", page: TimelinePage, wholeWindow: true },
  { view: "what_if", label: "What if", page: WhatIfPage },
  { view: "diff", label: "Compare", page: DiffPage },
  { view: "query", label: "Query", page: QueryPage, ofRun: true },
];
