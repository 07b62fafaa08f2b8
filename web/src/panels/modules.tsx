// The modules of the model as a tree: where the time goes, the arithmetic, the memory.
import type { Report, Unit } from "../data/report";
import { table } from "../data/report";
import { Rest } from "../draw/answer";
import { ModuleTree } from "../draw/module_tree";
import type { Panel } from "../draw/panel";
import { Tabs } from "../draw/tabs";

// What a module can be measured by: answer, its table, the column of what a module has itself.
const MEASURES: { label: string; answer: string; part: string; own: string; unit: Unit }[] = [
  { label: "time", answer: "modules", part: "tree", own: "own_ns", unit: "ns" },
  { label: "arithmetic", answer: "flops", part: "by_module", own: "own_flop", unit: "FLOP" },
  { label: "memory at the peak", answer: "memory", part: "by_module", own: "own_bytes", unit: "bytes" },
];

function measured(report: Report) {
  return MEASURES.filter(({ answer, part }) => (table(report, answer, part)?.rows.length ?? 0) > 0);
}

function View(props: { report: Report }) {
  const { report } = props;
  const answer = report.answers.modules;
  const tabs = measured(report).map((one) => ({
    name: one.answer,
    label: one.label,
    view: () => (
      <ModuleTree name={`${one.answer}.${one.part}`} source={`${one.answer}_${one.part}`} label={`${one.label} by module`} from={table(report, one.answer, one.part)!} own={one.own} unit={one.unit} />
    ),
  }));
  return (
    <>
      <Tabs name="modules" label="measures of modules" tabs={tabs} />
      {answer !== undefined && <Rest name="modules" answer={answer} shown={{ tables: ["tree"] }} />}
    </>
  );
}

export const modules: Panel = {
  id: "modules",
  label: "Modules",
  title: "What does each module take: time, arithmetic, memory?",
  shows: ["modules"],
  applies: (report) => measured(report).length > 0,
  view: View,
};
