// The names of the lanes beside them; only those that are seen are in the page. Each folds its rank or lane.
import { counterText } from "./counter_text";
import type { Band } from "./lanes";
import { axisOf } from "./layers_draw";
import type { Viewer } from "./viewer";
import type { Lane } from "../data/server";
import { grouped } from "../draw/format";

export function LaneNames(props: { viewer: Viewer }) {
  const { viewer } = props;
  return (
    <ul class="tl-names" aria-label="lanes">
      {viewer.bandsInView().map((band) => (
        <li
          key={band.kind === "rank" ? `r${band.rank}` : `l${band.lane!.id}`}
          class={`${band.kind}${viewer.index.ranks[band.rank]?.predicted ? " predicted" : ""}`}
          style={{ top: `${band.top - viewer.state.top}px`, height: `${band.height}px` }}
          data-lane={band.kind === "lane" ? band.lane!.id : undefined}
          data-rank={band.kind === "rank" ? band.rank : undefined}
        >
          {band.kind === "rank" ? <RankName viewer={viewer} band={band} /> : <LaneName viewer={viewer} band={band} />}
        </li>
      ))}
    </ul>
  );
}

function RankName(props: { viewer: Viewer; band: Band }) {
  const { viewer, band } = props;
  const rank = viewer.index.ranks[band.rank];
  const name = rank === undefined ? "machine" : `${rank.rank == null ? "no rank" : `rank ${rank.rank}`}${rank.predicted ? ", predicted" : ""}`;
  const title = rank === undefined ? "sampled beside the job" : `${name}: ${rank.file}\nclock: ${rank.clock}`;
  return (
    <button type="button" aria-expanded={!band.folded} title={title} onClick={() => viewer.fold("rank", band.rank)}>
      <span aria-hidden="true">{band.folded ? "▸" : "▾"}</span> <b>{name}</b>{" "}
      <small>
        <bdi>{(rank?.file ?? "").split("/").pop()}</bdi>
      </small>
    </button>
  );
}

function LaneName(props: { viewer: Viewer; band: Band }) {
  const { viewer, band } = props;
  const lane = band.lane!;
  const predicted = viewer.index.ranks[band.rank]?.predicted ? "predicted " : "";
  if (lane.kind === "counter") return <CounterName lane={lane} predicted={predicted} />;
  const title = `${predicted}${lane.name}\n${lane.group}\n${grouped(lane.slices)} slices`;
  const inside = (
    <>
      {predicted}
      <bdi>{lane.name}</bdi>
    </>
  );
  if (lane.rows <= 1) {
    return (
      <span class="name" title={title}>
        {inside}
      </span>
    );
  }
  return (
    <button type="button" aria-expanded={!band.folded} title={title} onClick={() => viewer.fold("lane", lane.id)}>
      <span aria-hidden="true">{band.folded ? "▸" : "▾"}</span> {inside}
    </button>
  );
}

function CounterName(props: { lane: Lane; predicted: string }) {
  const { lane, predicted } = props;
  const { floor, top } = axisOf(lane);
  const always = lane.low === lane.high;
  const range = always ? `always ${counterText(lane.low ?? 0, lane.unit)}` : `${counterText(floor, lane.unit)} to ${counterText(top, lane.unit)}`;
  return (
    <span class="name counter" title={`${lane.name}\n${lane.group}\n${range}`}>
      {predicted}
      <bdi>{lane.name}</bdi>
      <small data-axis="">{range}</small>
    </span>
  );
}
