// Small pieces that several panels share: a figure with its meaning, the notes of an answer, a row of scalars.
import type { Answer, Scalar } from "../data/report";
import { asNumber } from "../data/report";
import { Said } from "./said";
import { UNKNOWN, formatValue, shownName, words } from "./format";

/** `of`: the whole that the figure is a part of, as a length of time. */
export function Card(props: { name: string; label?: string; scalar: Scalar | undefined; of?: Scalar | undefined }) {
  const { scalar } = props;
  if (scalar === undefined) return null;
  const unknown = scalar.value === null;
  return (
    <div class="card" data-scalar={props.name}>
      <div class="label">{props.label ?? words(props.name)}</div>
      <div class={unknown ? "figure unknown" : "figure"}>
        {unknown ? UNKNOWN : formatValue(scalar.value, scalar.unit)}
        {!unknown && props.of && props.of.value !== null && <small> of {formatValue(props.of.value, props.of.unit)}</small>}
      </div>
      <div class="meaning" title={scalar.meaning}>
        {withoutWindow(scalar.meaning)}
      </div>
    </div>
  );
}

/** The meaning without the name of the window, where the page says it once for all figures. */
function withoutWindow(meaning: string): string {
  return meaning.replace(/, (from the first to the last device work|inside the whole steps)/, "");
}

const WINDOW = "length of the window";

/** Two scalars of one thing: in the whole recording (span) and in the whole steps. */
interface Pair {
  name: string;
  span: Scalar;
  steps: Scalar;
}

const STEPS_OF: [RegExp, string[]][] = [
  [/^span_ns$/, ["steps_ns"]],
  [/_span_ns$/, ["_steps_ns"]],
  [/_span$/, ["_steps"]],
  [/_ratio$/, ["_ratio_steps"]],
];

function pairs(scalars: Record<string, Scalar>, names: string[]): { paired: Pair[]; single: string[] } {
  const paired: Pair[] = [];
  const used = new Set<string>();
  for (const name of names) {
    for (const [pattern, [ending]] of STEPS_OF) {
      const other = name.replace(pattern, ending!);
      const steps = scalars[other];
      if (used.has(name) || other === name || steps === undefined) continue;
      paired.push({ name: name === "span_ns" ? WINDOW : words(name.replace(/_span/, "")), span: scalars[name]!, steps });
      used.add(name).add(other);
    }
  }
  return { paired, single: names.filter((name) => !used.has(name)) };
}

/** The scalars of an answer: those of both windows as a table of two columns, the others as a list. */
export function Figures(props: { scalars: Record<string, Scalar>; names?: string[] }) {
  const names = (props.names ?? Object.keys(props.scalars)).filter((name) => props.scalars[name] !== undefined);
  const { paired, single } = pairs(props.scalars, names);
  const together = unknownTogether(props.scalars, single);
  const alone = single.filter((name) => props.scalars[name]!.value !== null || !together.has(props.scalars[name]!.meaning));
  return (
    <>
      {paired.length > 0 && <Windows paired={paired} scalars={props.scalars} />}
      {alone.length > 0 && (
        <dl class="figures">
          {alone.map((name) => {
            const scalar = props.scalars[name]!;
            return (
              <div data-scalar={name}>
                <dt>{shownName(name, scalar)}</dt>
                <dd class={scalar.value === null ? "unknown" : ""}>{formatValue(scalar.value, scalar.unit)}</dd>
                <dd class="meaning">{scalar.meaning}</dd>
              </div>
            );
          })}
        </dl>
      )}
      {[...together].map(([meaning, group]) => (
        <p class="unknown-figures">
          {group.map((name, i) => (
            <span data-scalar={name}>
              {i > 0 && ", "}
              {shownName(name, props.scalars[name]!)}
            </span>
          ))}
          : <span class="unknown">{UNKNOWN}</span>. {meaning}
        </p>
      ))}
    </>
  );
}

/** Figures that are unknown for one reason: it is said once. */
function unknownTogether(scalars: Record<string, Scalar>, names: string[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const { value, meaning } = scalars[name]!;
    if (value === null) groups.set(meaning, [...(groups.get(meaning) ?? []), name]);
  }
  return new Map([...groups].filter(([, group]) => group.length > 1));
}

function Windows(props: { paired: Pair[]; scalars: Record<string, Scalar> }) {
  const nameOf = (wanted: Scalar) => Object.keys(props.scalars).find((name) => props.scalars[name] === wanted);
  const unknown = [...new Set(props.paired.flatMap(({ span, steps }) => [span, steps]).filter((s) => s.value === null).map((s) => s.meaning))];
  const cell = (scalar: Scalar) => (
    <td class={scalar.value === null ? "number unknown" : "number"} title={scalar.meaning} data-scalar={nameOf(scalar)}>
      {formatValue(scalar.value, scalar.unit)}
    </td>
  );
  return (
    <>
      <table class="windows">
        <thead>
          <tr>
            <th scope="col" />
            <th scope="col" class="number" title="from the first start to the last end of device work">
              first to last device work
            </th>
            <th scope="col" class="number" title="the whole steps, each from its start on the host up to the end of its device work">
              whole steps
            </th>
            <th scope="col" />
          </tr>
        </thead>
        <tbody>
          {props.paired.map(({ name, span, steps }) => (
            <tr>
              <th scope="row">{name}</th>
              {cell(span)}
              {cell(steps)}
              <td class="meaning">{name === WINDOW ? lengths(span, steps) : meaningOf(span.value !== null ? span : steps)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {unknown.length > 0 && <p class="soft">unknown: {unknown.join(" ")}</p>}
    </>
  );
}

/** Why a figure is unknown stands beneath, once for all. */
function meaningOf(scalar: Scalar): string {
  return scalar.value === null ? "" : withoutWindow(scalar.meaning);
}

/** Whole steps begin on the host, which may be long before the first device work. */
function lengths(span: Scalar, steps: Scalar): string {
  return (asNumber(steps.value) ?? 0) > (asNumber(span.value) ?? Infinity) ? "the steps begin on the host, before the first device work" : "";
}

/** The notes of an answer, those left out that stand elsewhere on the page, as why a figure is unknown does. */
export function Notes(props: { answer: Answer | undefined; but?: string[] }) {
  const said = [...(props.but ?? []), ...Object.values(props.answer?.scalars ?? {}).filter((one) => one.value === null).map((one) => one.meaning)];
  const notes = (props.answer?.notes ?? []).filter((note) => !said.includes(note));
  if (notes.length === 0) return null;
  return (
    <ul class="notes">
      {notes.map((note) => (
        <li>
          <Said text={note} />
        </li>
      ))}
    </ul>
  );
}
