// The list of panels, in page order: one line per view. Answers that none of them shows get a generic panel.
import type { Report } from "../data/report";
import { findings } from "./findings";
import { genericPanel } from "./generic";
import { health } from "./health";
import { issues } from "./issues";
import type { Panel } from "./panel";
import { provenance } from "./provenance";

const BEFORE: Panel[] = [health, findings];
const AFTER: Panel[] = [issues, provenance];

export function panelsFor(report: Report): Panel[] {
  const own = new Set([...BEFORE, ...AFTER].flatMap((panel) => panel.shows));
  const generic = Object.entries(report.answers)
    .filter(([name]) => !own.has(name))
    .map(([name, answer]) => genericPanel(name, answer));
  return [...BEFORE, ...generic, ...AFTER].filter((panel) => panel.applies(report));
}
