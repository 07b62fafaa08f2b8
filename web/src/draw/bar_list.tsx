// A list of names, each with a bar as long as its figure: what is looked at before the table beneath is read.
import type { Unit } from "../data/report";
import { formatNumber, percent } from "./format";

export interface Bar {
  name: string;
  value: number;
  share: number | null; // of a whole, where the report gives one
  color: string;
  note?: string; // as tooltip
}

export function BarList(props: { label: string; bars: Bar[]; unit: Unit; most?: number }) {
  const most = props.most ?? 10;
  const bars = [...props.bars].sort((a, b) => b.value - a.value).slice(0, most);
  const largest = Math.max(...bars.map((bar) => bar.value), 0);
  if (largest === 0) return null;
  return (
    <ul class="bar-list" aria-label={props.label}>
      {bars.map((bar) => (
        <li title={bar.note} data-bar={bar.name}>
          <span class="name">{bar.name}</span>
          <span class="track" aria-hidden="true">
            <span style={{ width: `${(bar.value / largest) * 100}%`, background: bar.color }} />
          </span>
          <span class="value">
            {formatNumber(bar.value, props.unit)}
            {bar.share !== null && <small> {percent(bar.share)}</small>}
          </span>
        </li>
      ))}
      {props.bars.length > most && <li class="soft">and {props.bars.length - most} smaller ones in the table</li>}
    </ul>
  );
}
