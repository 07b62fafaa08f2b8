// The list of panels, in page order: one line per view. Answers that none of them shows get a generic panel, before
// the tables of operators and kernels.
import type { Report } from "../data/report";
import { communication } from "./communication";
import { findings } from "./findings";
import { genericPanel } from "./generic";
import { health } from "./health";
import { idle } from "./idle";
import { issues } from "./issues";
import { kernels } from "./kernels";
import { operators } from "./operators";
import type { Panel } from "../draw/panel";
import { phases } from "./phases";
import { provenance } from "./provenance";
import { steps } from "./steps";
import { timeline } from "./timeline";

const FIRST: Panel[] = [health, findings, steps, phases, timeline, idle, communication];
const LAST: Panel[] = [operators, kernels, issues, provenance];

export function panelsFor(report: Report): Panel[] {
  const own = new Set([...FIRST, ...LAST].flatMap((panel) => panel.shows));
  const generic = Object.entries(report.answers)
    .filter(([name]) => !own.has(name))
    .map(([name, answer]) => genericPanel(name, answer));
  return [...FIRST, ...generic, ...LAST].filter((panel) => panel.applies(report));
}
