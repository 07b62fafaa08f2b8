// Small pieces that several panels share: a figure with its meaning, the notes of an answer, a row of scalars.
import type { Answer, Scalar } from "../data/report";
import { UNKNOWN, formatValue, words } from "./format";

export function Card(props: { name: string; label?: string; scalar: Scalar | undefined; tone?: string }) {
  const { scalar } = props;
  if (scalar === undefined) return null;
  const unknown = scalar.value === null;
  return (
    <div class={`card ${props.tone ?? ""}`} data-scalar={props.name}>
      <div class="label">{props.label ?? words(props.name)}</div>
      <div class={unknown ? "figure unknown" : "figure"}>{unknown ? UNKNOWN : formatValue(scalar.value, scalar.unit)}</div>
      <div class="meaning">{scalar.meaning}</div>
    </div>
  );
}

/** Scalars as a list of definitions: the name, the figure, what it means. */
export function Figures(props: { scalars: Record<string, Scalar>; names?: string[] }) {
  const names = props.names ?? Object.keys(props.scalars);
  const known = names.filter((name) => props.scalars[name] !== undefined);
  if (known.length === 0) return null;
  return (
    <dl class="figures">
      {known.map((name) => {
        const scalar = props.scalars[name]!;
        return (
          <div data-scalar={name}>
            <dt>{words(name)}</dt>
            <dd class={scalar.value === null ? "unknown" : ""}>{formatValue(scalar.value, scalar.unit)}</dd>
            <dd class="meaning">{scalar.meaning}</dd>
          </div>
        );
      })}
    </dl>
  );
}

export function Notes(props: { answer: Answer | undefined }) {
  if (props.answer === undefined || props.answer.notes.length === 0) return null;
  return (
    <ul class="notes">
      {props.answer.notes.map((note) => (
        <li>{note}</li>
      ))}
    </ul>
  );
}
