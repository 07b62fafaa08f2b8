// What lies under the pointer: a slice, a value of a counter, a phase.
import { className } from "../draw/color";
import { formatNumber, formatTick, grouped } from "../draw/format";
import { counterText } from "./counter_text";
import { plainName } from "./text";
import { indexAt, timeOf } from "./view";
import type { Viewer } from "./viewer";

export interface Hover {
  at: number; // of the frame; below 0: no slice
  x: number;
  y: number;
}

export function Tip(props: { viewer: Viewer; hover: Hover }) {
  const { viewer, hover } = props;
  const inside = hover.at >= 0 ? <SliceTip {...props} /> : <BandTip {...props} />;
  const right = hover.x > viewer.width * 0.6;
  const low = hover.y > viewer.height * 0.7;
  const place = {
    [right ? "right" : "left"]: `${right ? viewer.width - hover.x + 12 : hover.x + 12}px`,
    [low ? "bottom" : "top"]: `${low ? viewer.height - hover.y + 8 : hover.y + 16}px`,
  };
  return (
    <div class="tl-tip" style={place}>
      {inside}
    </div>
  );
}

const resolution = (viewer: Viewer) => Math.max(1, (viewer.state.view.to - viewer.state.view.from) / Math.max(1, viewer.width));

function SliceTip(props: { viewer: Viewer; hover: Hover }) {
  const { viewer, hover } = props;
  const { frame } = viewer;
  const tile = frame.tile[hover.at];
  if (hover.at >= frame.count || !tile) return null;
  const at = frame.at[hover.at]!;
  const name = viewer.store.nameOf(tile.name[at]!);
  const merged = frame.merged[hover.at]!;
  return (
    <>
      {merged > 1 ? (
        <b>
          {grouped(merged)} slices{name !== undefined && <>, the longest: {plainName(name)}</>}
        </b>
      ) : (
        <b>{name === undefined ? className(tile.kind[at]!) : plainName(name)}</b>
      )}
      <span>
        {formatNumber(tile.duration[at]!, "ns")}
        {merged > 1 ? " together" : ""} · {className(tile.kind[at]!)} · at {formatTick(tile.start[at]!, resolution(viewer))}
        {merged > 1 && <small> (click: closer)</small>}
      </span>
      {viewer.state.path && <PathTip viewer={viewer} lane={tile.lane} row={tile.row[at]!} x={hover.x} />}
    </>
  );
}

/** Why the critical path is here, where it is. */
function PathTip(props: { viewer: Viewer; lane: number; row: number; x: number }) {
  const { viewer, lane, row } = props;
  const path = viewer.asking.layers.path.get(viewer.laneOf(lane)?.rank ?? -1);
  if (path === undefined) return null;
  const time = timeOf(viewer.state.view, viewer.width, props.x);
  const near = resolution(viewer) * 2;
  // Pieces of one stretch may lie side by side.
  for (let last = indexAt(path.start, time + near), i = last; i >= Math.max(0, last - 16); i--) {
    if (path.lane[i] !== lane || path.row[i] !== row || path.start[i]! > time + near || path.end[i]! < time - near) continue;
    return (
      <span class="tl-path">
        on the critical path{path.count[i]! > 1 && ` with ${grouped(path.count[i]!)} pieces`}: {path.words.class_meanings[path.class[i]!]}
        {path.count[i] === 1 && <small> (before it: {path.words.evidence_meanings[path.evidence[i]!]})</small>}
      </span>
    );
  }
  return null;
}

/** Of what lies in bands beside the slices. */
function BandTip(props: { viewer: Viewer; hover: Hover }) {
  const { viewer, hover } = props;
  const band = viewer.bandAt(hover.y);
  const time = timeOf(viewer.state.view, viewer.width, hover.x);
  const { layers } = viewer.asking;
  if (band?.lane?.kind === "counter") {
    const points = layers.counters.get(band.lane.id);
    const at = points === undefined ? 0 : indexAt(points.start, time);
    const [low, high] = [points?.low[at] ?? null, points?.high[at] ?? null];
    const known = points !== undefined && points.start[at]! <= time && time < (points.end ?? Infinity) && low !== null && high !== null;
    const text = (value: number) => counterText(value, band.lane!.unit);
    return (
      <>
        <b>{plainName(band.lane.name)}</b>
        <span data-counter-value="">
          {!known ? "nothing is known" : low === high ? text(high) : `${text(low)} to ${text(high)}`} · at {formatTick(time, resolution(viewer))}
        </span>
      </>
    );
  }
  const strip = band?.kind === "rank" ? layers.phases.get(band.rank) : undefined;
  const at = strip === undefined ? -1 : indexAt(strip.start, time);
  if (strip === undefined || at >= strip.start.length || strip.start[at]! > time || strip.end[at]! < time) return null;
  return (
    <>
      <b>{strip.names[strip.phase[at]!]}</b>
      <span>
        {formatNumber(strip.end[at]! - strip.start[at]!, "ns")} · at {formatTick(strip.start[at]!, resolution(viewer))}
      </span>
    </>
  );
}
