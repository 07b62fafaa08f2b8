// The list of panels, in page order: one line per view. Answers that none of them shows get a generic panel, before
// the tables of operators and kernels; those that know nothing share the last one.
import type { Report } from "../data/report";
import { knowsNothing } from "../data/report";
import { absentPanel } from "./absent";
import { communication } from "./communication";
import { difference } from "./difference";
import { findings } from "./findings";
import { flops } from "./flops";
import { genericPanel } from "./generic";
import { health } from "./health";
import { idle } from "./idle";
import { issues } from "./issues";
import { kernels } from "./kernels";
import { memoryState } from "./memory_state";
import { modules } from "./modules";
import { operators } from "./operators";
import type { Panel } from "../draw/panel";
import { phases } from "./phases";
import { provenance } from "./provenance";
import { snapshot } from "./snapshot";
import { steps } from "./steps";
import { timeline } from "./timeline";
import { warnings } from "./warnings";

const FIRST: Panel[] = [warnings, findings, health, difference, steps, phases, timeline, idle, communication, modules, flops, memoryState, snapshot];
const LAST: Panel[] = [operators, kernels, issues, provenance];

export function panelsFor(report: Report): Panel[] {
  const [first, last] = [FIRST, LAST].map((panels) => panels.filter((panel) => panel.applies(report))) as [Panel[], Panel[]];
  const own = new Set([...first, ...last].flatMap((panel) => panel.shows));
  const others = Object.entries(report.answers).filter(([name]) => !own.has(name));
  const absent = others.filter(([, answer]) => knowsNothing(answer));
  const generic = others.filter(([, answer]) => !knowsNothing(answer)).map(([name, answer]) => genericPanel(name, answer));
  return [...first, ...generic, ...last, absentPanel(absent)].filter((panel) => panel.applies(report));
}
