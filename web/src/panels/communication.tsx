// Communication: per device how much compute hides and how much is exposed, then each collective with its bandwidth.
import type { Report, Table, Value } from "../data/report";
import { asNumber, columnIndex, knowsSomething, table } from "../data/report";
import { TabbedTables } from "../draw/answer";
import { StackedBar } from "../draw/bars";
import { formatValue } from "../draw/format";
import type { Panel } from "../draw/panel";
import { Figures, Notes } from "../draw/parts";

const MAX_BARS = 16;

function Device(props: { devices: Table; row: Value[]; only: boolean }) {
  const at = (name: string) => props.row[columnIndex(props.devices, name)] ?? null;
  const device = at("device");
  const label = `rank ${String(at("rank"))}${device === null ? "" : `, device ${device}`}`;
  return (
    <>
      <p class="soft">
        {props.only ? "" : `${label}: `}
        {formatValue(at("communication_span_ns"), "ns")} of communication from the first to the last device work,{" "}
        {formatValue(at("hidden_ratio_span"), "ratio")} hidden behind compute
      </p>
      <StackedBar
        label={`communication of ${label}`}
        unit="ns"
        parts={[
          { name: "hidden", value: asNumber(at("hidden_span_ns")), meaning: "communication while compute ran" },
          { name: "exposed", value: asNumber(at("exposed_span_ns")), meaning: "communication while no compute ran" },
        ]}
      />
    </>
  );
}

function View(props: { report: Report }) {
  const answer = props.report.answers.communication!;
  const devices = table(props.report, "communication", "devices");
  const rows = devices?.rows.filter((row) => (asNumber(row[columnIndex(devices, "communication_span_ns")]) ?? 0) > 0) ?? [];
  const names = Object.keys(answer.tables).filter((name) => name !== "devices");
  return (
    <>
      {devices && rows.slice(0, MAX_BARS).map((row) => <Device devices={devices} row={row} only={devices.rows.length === 1} />)}
      {rows.length > MAX_BARS && <p class="soft">Drawn: {MAX_BARS} of {rows.length} devices.</p>}
      <Figures scalars={answer.scalars} />
      <TabbedTables name="communication" answer={answer} tables={[...names, "devices"]} first={8} />
      <Notes answer={answer} />
    </>
  );
}

export const communication: Panel = {
  id: "communication",
  label: "Communication",
  title: "Is communication hidden?",
  shows: ["communication"],
  applies: (report) => knowsSomething(report.answers.communication),
  view: View,
};
