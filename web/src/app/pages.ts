// The panels of the report cut into pages by their theme. A panel that no page names goes to the last, so that a new
// analysis is there the day it exists. A page of which nothing was recorded says what to record.
import type { Report } from "../data/report";
import type { Panel } from "../draw/panel";
import { knowsNothing } from "../data/report";
import { panelsFor } from "../panels";
import { absentPanel } from "../panels/absent";

export interface ReportPart {
  view: string; // in the page's address
  label: string;
  panels: Panel[];
  without?: boolean; // data: its panel only says how to get them
}

const THEMES: [string, string, string[]][] = [
  ["health", "Health", ["warnings", "findings", "overview", "utilization", "idle"]],
  ["steps", "Steps", ["steps", "phases", "history", "dataloader", "annotations", "sequences", "serving"]],
  ["modules", "Modules", ["modules", "flops"]],
  ["operators", "Operators", ["operators", "roofline", "stacks", "compile"]],
  ["kernels", "Kernels", ["kernels", "launches", "copies"]],
  ["communication", "Communication", ["communication", "collectives"]],
  ["ranks", "Ranks", ["ranks"]],
  ["memory", "Memory", ["memory", "memory_state", "snapshot"]],
  ["graph", "Graph", ["critical_path", "graph"]],
  ["system", "System", ["system", "counters", "timeline"]],
  ["files", "Files", ["input", "quality", "absent"]],
];

const MORE = { view: "more", label: "More" };

/** The name of the page `view`, whether or not a run has something to show there; undefined: there is no such page. */
export function labelOf(view: string): string | undefined {
  return view === MORE.view ? MORE.label : THEMES.find(([one]) => one === view)?.[1];
}

/** The pages that have something to show, in the order of the list. */
export function partsOf(report: Report): ReportPart[] {
  const panels = panelsFor(report);
  const named = new Set(THEMES.flatMap(([, , names]) => names));
  const parts = THEMES.map(([view, label, names]): ReportPart => {
    const own = names.flatMap((name) => panels.filter((panel) => panel.id === name));
    if (own.length > 0) return { view, label, panels: own };
    const absent = names.flatMap((name) => Object.entries(report.answers).filter(([one, answer]) => one === name && knowsNothing(answer)));
    return { view, label, panels: absent.length > 0 ? [absentPanel(absent, `absent-${view}`)] : [], without: true };
  });
  parts.push({ ...MORE, panels: panels.filter((panel) => !named.has(panel.id)) });
  return parts.filter((part) => part.panels.length > 0);
}
