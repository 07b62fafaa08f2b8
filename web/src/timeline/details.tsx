// The pane beneath the lanes: what is known of the chosen slice, the statistics of the chosen stretch, or what was found.
import type { ComponentChild } from "preact";
import type { Found, SelectionRow, SliceDetails, TimelineIndex } from "../data/server";
import { ServerError, argumentsOf } from "../data/server";
import type { Table } from "../data/report";
import { className } from "../draw/color";
import { formatNumber, formatTick, grouped } from "../draw/format";
import { CopyButton } from "../draw/copy";
import { DataTable } from "../draw/table";
import { holdsSlices } from "./lanes";
import type { Outcome } from "./questions";
import type { Viewer } from "./viewer";

const MOST_SHOWN = 4000; // characters of one text

export function Details(props: { viewer: Viewer }) {
  const { viewer } = props;
  const { slice, range, find } = viewer.state;
  if (slice !== null) return <Of outcome={viewer.details} what="The slice" view={(details) => <SlicePane viewer={viewer} details={details} />} />;
  if (range !== null) {
    return (
      <Of
        outcome={viewer.statistics}
        what="The stretch"
        view={(statistics) => <RangePane viewer={viewer} range={range} rows={statistics.rows} cut={statistics.cut} />}
      />
    );
  }
  if (find !== "") return <Of outcome={viewer.search} what="The search" view={(found) => <FoundPane viewer={viewer} total={found.total} found={found.found} />} />;
  return null;
}

function Of<T>(props: { outcome: Outcome<T>; what: string; view: (value: T) => ComponentChild }) {
  const { value, error } = props.outcome;
  if (error !== null) {
    return (
      <div class="failed" role="alert">
        {props.what}: <bdi>{error instanceof Error ? error.message : String(error)}</bdi>
        {error instanceof ServerError && error.hint !== null && <p>{error.hint}</p>}
      </div>
    );
  }
  return <>{value === null ? <p class="soft">{props.what} is being asked for …</p> : props.view(value)}</>;
}

function Text(props: { text: string }) {
  const { text } = props;
  if (text.length <= MOST_SHOWN) return <bdi>{text}</bdi>;
  return (
    <>
      <bdi>{text.slice(0, MOST_SHOWN)}</bdi>… <small>({grouped(text.length)} characters)</small>
    </>
  );
}

function rankName(index: TimelineIndex, at: number): string {
  const rank = index.ranks[at];
  return `${rank?.rank == null ? `file ${at}` : `rank ${rank.rank}`}${rank?.predicted ? ", predicted" : ""}`;
}

/** As other tools write it, so that editors and terminals know the place: "file(12): function" → "file:12 function". */
function placeOf(frame: string): string {
  const match = /^(.*)\((\d+)\): (.*)$/s.exec(frame);
  return match === null ? frame : `${match[1]}:${match[2]} ${match[3]}`;
}

const LINK_WORDS: Record<string, string> = { launch: "launched by", kernel: "launches", arrow_from: "arrow from", arrow_to: "arrow to" };

const argument = (value: unknown): string => (typeof value === "string" ? value : typeof value === "bigint" ? String(value) : JSON.stringify(value) ?? "");

function SlicePane(props: { viewer: Viewer; details: SliceDetails }) {
  const { viewer, details } = props;
  const lane = viewer.laneOf(details.lane);
  const args = Object.entries(argumentsOf(details.args));
  return (
    <div class="tl-slice">
      <div class="tl-about">
        <h3 class="tl-title" data-slice-name="">
          <Text text={details.name} />
        </h3>
        <dl class="facts">
          <dt>duration</dt>
          <dd title={`${grouped(details.duration)} ns`}>{formatNumber(details.duration, "ns")}</dd>
          <dt>starts at</dt>
          <dd title={`${grouped(details.start)} ns after the start of the recording`}>{formatTick(details.start, 1)}</dd>
          <dt>kind</dt>
          <dd>
            {className(details.class)}
            {details.category !== "" && (
              <>
                {" "}
                (<bdi>{details.category}</bdi>)
              </>
            )}
          </dd>
          <dt>where</dt>
          <dd>
            {rankName(viewer.index, lane?.rank ?? viewer.state.slice?.rank ?? 0)}
            {lane && (
              <>
                {" · "}
                <bdi>{lane.name}</bdi>
              </>
            )}
            {details.step !== null && <> · step {details.step}</>}
          </dd>
        </dl>
        <p class="tl-buttons">
          <button type="button" onClick={() => viewer.fit()}>
            Fit (F)
          </button>
          <button type="button" onClick={() => viewer.mark()}>
            Mark (M)
          </button>
          <CopyButton label="Copy name" text={() => details.name} />
        </p>
        {details.parents.length > 0 && (
          <>
            <h4>Inside of</h4>
            <ol class="parents">
              {details.parents.map((name) => (
                <li title={name.slice(0, MOST_SHOWN)}>
                  <bdi>{name.slice(0, 300)}</bdi>
                </li>
              ))}
            </ol>
          </>
        )}
      </div>
      <div>
        <h4>Linked slices{details.links_total > 0 && ` (${grouped(details.links_total)})`}</h4>
        {details.links.length === 0 ? (
          <p class="empty">None is known.</p>
        ) : (
          <ul class="links">
            {details.links.slice(0, 200).map((link) => (
              <li>
                <span class="soft">
                  {LINK_WORDS[link.kind] ?? link.kind}
                  {link.rank !== viewer.state.slice?.rank && ` · ${rankName(viewer.index, link.rank)}`}
                </span>
                <button
                  type="button"
                  onClick={() => {
                    if (viewer.state.slice) viewer.trail.push(viewer.state.slice);
                    viewer.choose({ rank: link.rank, slice: link.slice }, link);
                  }}
                >
                  <bdi>{link.name.slice(0, 200)}</bdi>
                </button>
                <span class="value">{formatNumber(link.duration, "ns")}</span>
              </li>
            ))}
          </ul>
        )}
        {details.links_total > details.links.length && details.links.length > 0 && (
          <p class="soft" data-links-cut="">
            The first {grouped(details.links.length)} are listed and drawn.
          </p>
        )}
        {details.stack.frames.length > 0 && (
          <>
            <h4>
              Python stack
              {!details.stack.own && (
                <small>
                  {" "}
                  of <bdi>{details.stack.of.slice(0, 200)}</bdi>
                </small>
              )}
            </h4>
            <ol class="tl-stack">
              {details.stack.frames.map((frame) => (
                <li>
                  <bdi>{placeOf(frame)}</bdi>
                </li>
              ))}
            </ol>
          </>
        )}
      </div>
      <div>
        <h4>Arguments</h4>
        {args.length === 0 ? (
          <p class="empty">None were recorded.</p>
        ) : (
          <dl class="facts args">
            {args.slice(0, 200).map(([name, value]) => [
              <dt>
                <bdi>{name}</bdi>
              </dt>,
              <dd>
                <Text text={argument(value)} />
              </dd>,
            ])}
          </dl>
        )}
      </div>
    </div>
  );
}

function RangePane(props: { viewer: Viewer; range: { from: number; to: number; lanes: number[] }; rows: SelectionRow[]; cut: boolean }) {
  const { range, rows } = props;
  const lanes = props.viewer.index.lanes.filter((lane) => holdsSlices(lane) && (range.lanes.length === 0 || range.lanes.includes(lane.id))).length;
  const table: Table = {
    columns: [
      { name: "name", type: "text", unit: "", meaning: "name of the slices" },
      { name: "kind", type: "text", unit: "", meaning: "what they are" },
      { name: "count", type: "integer", unit: "count", meaning: "slices that touch the stretch" },
      { name: "total_ns", type: "integer", unit: "ns", meaning: "their time inside the stretch" },
      { name: "self_ns", type: "integer", unit: "ns", meaning: "of it, outside of the slices nested in them" },
      { name: "mean_ns", type: "real", unit: "ns", meaning: "time inside the stretch for each slice" },
    ],
    rows: rows.map((row) => [row.name.slice(0, MOST_SHOWN), className(row.class), row.count, row.total_ns, row.self_ns, row.count > 0 ? row.total_ns / row.count : null]),
  };
  return (
    <div data-range="">
      <h3>
        {formatNumber(range.to - range.from, "ns")} from {formatTick(range.from, Math.max(1, (range.to - range.from) / 100))} · {grouped(lanes)} {lanes === 1 ? "lane" : "lanes"}
      </h3>
      {props.cut && <p class="soft">The {grouped(rows.length)} names with the most time; there are more.</p>}
      {rows.length === 0 ? <p class="empty">No slice is in it.</p> : <DataTable key={`${range.from}-${range.to}`} name="selection" table={table} first={100} />}
    </div>
  );
}

function FoundPane(props: { viewer: Viewer; total: number; found: Found[] }) {
  const { viewer, total, found } = props;
  return (
    <div data-found={total}>
      <h3>
        {grouped(total)} found{found.length < total && `, the first ${grouped(found.length)} are listed`}
      </h3>
      <ul class="links found">
        {found.map((one, at) => (
          <li>
            <span class="soft">{rankName(viewer.index, one.rank)}</span>
            <button type="button" onClick={() => viewer.goFound(at)}>
              <bdi>{one.name.slice(0, 200)}</bdi>
            </button>
            <span class="value">
              {formatNumber(one.duration, "ns")} <small>at {formatTick(one.start, 1000)}</small>
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
