// A tree of amounts as nested parts: rings (a sunburst) or rows (an icicle), of the same layout. A node is as wide as
// what it and those below it have; what it has itself is the part beyond its children. A click, or Enter, looks closer
// at a node; the path above leads back. The arrow keys walk, and what is pointed at is read out below, so that nothing
// hangs on colour or on a pointer. Nodes too narrow to be seen are not drawn; the list of children beside has them.
import { hierarchy, partition } from "d3-hierarchy";
import type { HierarchyRectangularNode } from "d3-hierarchy";
import { arc } from "d3-shape";
import { useMemo, useState } from "preact/hooks";
import type { Unit } from "../data/report";
import { formatNumber, percent } from "./format";
import { useChoice, useKept } from "./page_state";

export interface TreeNode {
  id: string;
  parent: string | null; // comes before its children; null: the one that holds all, the first of the list
  name: string; // as it is shown, short
  about?: string; // more of it: a class, a whole path
  own: number; // without its children
  color: string; // a CSS colour; deeper nodes are to have that of the branch that they belong to
}

interface Datum {
  node: TreeNode;
  children: Datum[];
}
export type Placed = HierarchyRectangularNode<Datum>;
export type Shape = "sunburst" | "icicle";
const SHAPES = ["sunburst", "icicle"];

const RINGS = 6;
const SIZE = 1000;
const HOLE = 0.16; // of the radius
const NARROWEST = 1 / 1000; // of what is looked at: about a pixel

/** Where each node lies: x from 0 to 1 among all, y its depth. A node whose parent is not there belongs to the whole. */
export function place(nodes: TreeNode[]): Placed | null {
  const first = nodes[0];
  if (first === undefined) return null;
  const known = new Map<string, Datum>([[first.id, { node: first, children: [] }]]);
  const root = known.get(first.id)!;
  for (const node of nodes.slice(1)) {
    const datum = { node, children: [] };
    (known.get(node.parent ?? "") ?? root).children.push(datum);
    if (!known.has(node.id)) known.set(node.id, datum);
  }
  const tree = hierarchy(root, (datum) => datum.children).sum((datum) => Math.max(0, datum.node.own));
  return partition<Datum>().size([1, tree.height + 1])(tree);
}

export interface Part {
  at: Placed;
  from: number; // 0 to 1, of what is looked at
  to: number;
  level: number; // below what is looked at, which is 0
}

/** What is drawn when `focus` is looked at. */
export function partsOf(focus: Placed, levels = RINGS): Part[] {
  const width = focus.x1 - focus.x0;
  if (width <= 0) return [];
  const parts: Part[] = [];
  const visit = (at: Placed, level: number) => {
    const part = { at, from: (at.x0 - focus.x0) / width, to: (at.x1 - focus.x0) / width, level };
    if (part.to - part.from < NARROWEST) return;
    parts.push(part);
    if (level < levels) for (const child of at.children ?? []) visit(child, level + 1);
  };
  visit(focus, 0);
  return parts;
}

function fill(part: Part): string {
  const strength = Math.max(25, 80 - part.at.depth * 9); // so that dark and light text can be read on it
  return part.at.depth === 0 ? "var(--tint)" : `color-mix(in srgb, ${part.at.data.node.color} ${strength}%, var(--bg))`;
}

/** "wpe: 1.00 MiB, of it 1.00 MiB its own; 12.0 % of all". */
export function readOut(at: Placed, whole: number, unit: Unit): string {
  const { node } = at.data;
  const total = at.value ?? 0;
  const own = at.children === undefined || node.own <= 0 ? "" : `, of it ${formatNumber(node.own, unit)} its own`;
  const share = at.depth > 0 && whole > 0 ? `; ${percent(total / whole)} of all` : "";
  return `${node.about ?? node.name}: ${formatNumber(total, unit)}${own}${share}`;
}

function neighbor(at: Placed, key: string): Placed | undefined {
  const siblings = at.parent?.children ?? [];
  const place = siblings.indexOf(at);
  if (key === "ArrowRight") return siblings[place + 1];
  if (key === "ArrowLeft") return siblings[place - 1];
  if (key === "ArrowDown") return at.children?.[0];
  return key === "ArrowUp" ? (at.parent ?? undefined) : undefined;
}

interface Drawing {
  parts: Part[]; // the same as long as the same is looked at: pointing at one does not draw thousands anew
  selected: Placed;
  unit: Unit;
  whole: number;
  onPoint: (at: Placed) => void;
  onOpen: (at: Placed) => void;
}

const ring = arc<Part>();

function Sunburst(props: Drawing) {
  const deepest = props.parts.reduce((most, part) => Math.max(most, part.level), 1);
  const radius = SIZE / 2 - 4;
  const width = ((1 - HOLE) * radius) / deepest;
  const at = (level: number) => HOLE * radius + (level - 1) * width;
  ring
    .startAngle((part) => part.from * 2 * Math.PI)
    .endAngle((part) => part.to * 2 * Math.PI)
    .innerRadius((part) => (part.level === 0 ? 0 : at(part.level)))
    .outerRadius((part) => (part.level === 0 ? at(1) : at(part.level) + width));
  const selected = props.parts.find((part) => part.at === props.selected);
  const drawn = useMemo(
    () =>
      props.parts.map((part) => (
        <path
          d={ring(part) ?? ""}
          fill={fill(part)}
          data-node={part.at.data.node.id}
          onMouseEnter={() => props.onPoint(part.at)}
          onClick={() => props.onOpen(part.at)}
        >
          <title>{readOut(part.at, props.whole, props.unit)}</title>
        </path>
      )),
    [props.parts, props.unit],
  );
  const labels = useMemo(
    () =>
      props.parts.map((part) => {
        if (part.level === 0) return <Center name={part.at.data.node.name} value={formatNumber(part.at.value ?? 0, props.unit)} />;
        return <Label part={part} from={at(part.level)} width={width} />;
      }),
    [props.parts, props.unit],
  );
  return (
    <svg class="sunburst" viewBox={`${-SIZE / 2} ${-SIZE / 2} ${SIZE} ${SIZE}`} aria-hidden="true">
      {drawn}
      {selected && <path class="selected" d={ring(selected) ?? ""} />}
      {labels}
    </svg>
  );
}

const LETTER = 11; // about as wide

/** Along its ring where there is room, else across it; upright in both halves. */
function Label(props: { part: Part; from: number; width: number }) {
  const { part, width } = props;
  const name = part.at.data.node.name;
  const radius = props.from + width / 2;
  const length = (part.to - part.from) * 2 * Math.PI * radius;
  const middle = (part.from + part.to) / 2;
  const along = length > (name.length + 2) * LETTER;
  if (length < 22) return null;
  const room = Math.max(3, Math.floor(along ? length / LETTER : width / LETTER));
  const turn = along
    ? `rotate(${middle * 360}) translate(0 ${-radius})${middle > 0.25 && middle < 0.75 ? " rotate(180)" : ""}`
    : `rotate(${middle * 360 - 90}) translate(${radius} 0)${middle > 0.5 ? " rotate(180)" : ""}`;
  return (
    <text transform={turn} dy="0.35em">
      {name.length > room ? `${name.slice(0, room - 1)}…` : name}
    </text>
  );
}

function Center(props: { name: string; value: string }) {
  const name = props.name.length > 14 ? `${props.name.slice(0, 13)}…` : props.name;
  return (
    <>
      <text class="center" dy="-0.25em">
        {name}
      </text>
      <text class="center value" dy="1em">
        {props.value}
      </text>
    </>
  );
}

function Icicle(props: Drawing) {
  const deepest = props.parts.reduce((most, part) => Math.max(most, part.level), 0);
  const selected = props.parts.find((part) => part.at === props.selected);
  const box = (part: Part) => ({ left: `${part.from * 100}%`, width: `${(part.to - part.from) * 100}%`, top: `${part.level * 26}px` });
  const drawn = useMemo(
    () =>
      props.parts.map((part) => (
        <div
          class="cell"
          style={{ ...box(part), background: fill(part) }}
          title={readOut(part.at, props.whole, props.unit)}
          data-node={part.at.data.node.id}
          onMouseEnter={() => props.onPoint(part.at)}
          onClick={() => props.onOpen(part.at)}
        >
          {part.to - part.from > 0.025 && part.at.data.node.name}
        </div>
      )),
    [props.parts, props.unit],
  );
  return (
    <div class="icicle" style={{ height: `${(deepest + 1) * 26}px` }} aria-hidden="true">
      {drawn}
      {selected && <div class="cell selected" style={box(selected)} />}
    </div>
  );
}

function Path(props: { focus: Placed; onOpen: (at: Placed) => void }) {
  const above = props.focus.ancestors().reverse();
  return (
    <nav class="tree-path" aria-label="path to what is looked at">
      {above.map((at, i) => (
        <>
          {i > 0 && <span aria-hidden="true"> › </span>}
          {at === props.focus ? (
            <b aria-current="location">{at.data.node.name}</b>
          ) : (
            <button type="button" onClick={() => props.onOpen(at)}>
              {at.data.node.name}
            </button>
          )}
        </>
      ))}
    </nav>
  );
}

/** The children of what is looked at, each a way in. */
function Children(props: { focus: Placed; unit: Unit; onOpen: (at: Placed) => void; onPoint: (at: Placed) => void }) {
  const { focus, unit } = props;
  const total = focus.value ?? 0;
  const children = [...(focus.children ?? [])].sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const rows = children.slice(0, 12);
  const own = focus.data.node.own;
  return (
    <ul class="tree-children">
      {rows.map((at) => (
        <li onMouseEnter={() => props.onPoint(at)}>
          <i style={{ background: fill({ at, from: 0, to: 0, level: 1 }) }} aria-hidden="true" />
          {at.children === undefined ? (
            <span class="name">{at.data.node.name}</span>
          ) : (
            <button type="button" class="name" onClick={() => props.onOpen(at)}>
              {at.data.node.name}
            </button>
          )}
          <span class="value">
            {formatNumber(at.value ?? 0, unit)} <small>{total > 0 ? percent((at.value ?? 0) / total) : ""}</small>
          </span>
        </li>
      ))}
      {own > 0 && children.length > 0 && (
        <li>
          <i aria-hidden="true" />
          <span class="name soft">its own</span>
          <span class="value">
            {formatNumber(own, unit)} <small>{percent(own / total)}</small>
          </span>
        </li>
      )}
      {children.length > rows.length && <li class="soft">and {children.length - rows.length} smaller ones</li>}
    </ul>
  );
}

export interface TreeProps {
  name: string; // its own on the page: what is looked at is kept by it
  label: string; // what the whole is
  nodes: TreeNode[];
  unit: Unit;
  shape?: Shape; // at first; the reader may change it
  levels?: number; // that are drawn at once
}

export function Tree(props: TreeProps) {
  const root = useMemo(() => place(props.nodes), [props.nodes]);
  const [shape, setShape] = useChoice(`shape.${props.name}`, SHAPES, props.shape);
  const [kept, keep] = useKept();
  const focusId = kept[`look.${props.name}`] ?? null;
  const setFocus = (id: string) => keep(`look.${props.name}`, id === root?.data.node.id ? "" : id, false);
  const [selectedId, select] = useState<string | null>(null);
  const byId = useMemo(() => new Map((root?.descendants() ?? []).map((at) => [at.data.node.id, at])), [root]);
  const focus = (focusId === null ? undefined : byId.get(focusId)) ?? root;
  const parts = useMemo(() => (focus === null ? [] : partsOf(focus, props.levels)), [focus, props.levels]);
  if (root === null || focus === null || (root.value ?? 0) <= 0) return <p class="empty">Nothing of this was measured.</p>;
  const selected = (selectedId === null ? undefined : byId.get(selectedId)) ?? root;
  const open = (at: Placed) => {
    const target = at === focus && at.parent !== null ? at.parent : at.children === undefined ? (at.parent ?? at) : at;
    setFocus(target.data.node.id);
    select(target.data.node.id);
  };
  const point = (at: Placed) => select(at.data.node.id);
  const onKey = (event: KeyboardEvent) => {
    const next = neighbor(selected, event.key);
    if (next !== undefined) point(next);
    else if (event.key === "Enter") open(selected);
    else if (event.key === "Escape" || event.key === "Backspace") open(focus);
    else return;
    event.preventDefault();
  };
  const drawing = { parts, selected, unit: props.unit, whole: root.value ?? 0, onPoint: point, onOpen: open };
  return (
    <div class="tree">
      <div class="tree-head">
        <Path focus={focus} onOpen={open} />
        <div class="shapes" role="group" aria-label="shape of the drawing">
          {SHAPES.map((one) => (
            <button type="button" aria-pressed={one === shape} data-shape={one} onClick={() => setShape(one)}>
              {one === "sunburst" ? "rings" : "rows"}
            </button>
          ))}
        </div>
      </div>
      <div class={`tree-body as-${shape}`}>
        <div class="tree-drawing" role="group" tabIndex={0} aria-label={`${props.label}; arrow keys walk, Enter looks closer, Escape leads back`} onKeyDown={onKey}>
          {shape === "sunburst" ? <Sunburst {...drawing} /> : <Icicle {...drawing} />}
        </div>
        <Children focus={focus} unit={props.unit} onOpen={open} onPoint={point} />
      </div>
      <p class="tree-read" aria-live="polite">
        {readOut(selected, root.value ?? 0, props.unit)}
      </p>
    </div>
  );
}
