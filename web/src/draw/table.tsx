// A table of an answer: sort by heading, filter by any text, copy as CSV or JSON. Rows beyond the first are shown on demand, so
// that a table of many thousand rows does not slow the page.
import { useContext, useMemo, useState } from "preact/hooks";
import type { Column, Table, Value } from "../data/report";
import { asNumber } from "../data/report";
import { CopyButton } from "./copy";
import { UNKNOWN, columnFormats, csv, grouped, isInstant, json, shownName, words } from "./format";
import { PageLinks, momentOf } from "./page_links";
import type { Moment } from "./page_links";
import { LONGEST_FILTER, MOST_ROWS, sqlOf, useTableState } from "./table_state";
import type { Sort } from "./table_state";

const PAGE = 500;

export function compareValues(a: Value, b: Value): number {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  return Number(a) - Number(b);
}

/** Rows in the wanted order; unknown values always last. The order given is kept between equals. */
export function sortedRows(rows: Value[][], sort: Sort | null): Value[][] {
  if (sort === null) return rows;
  const sign = sort.descending ? -1 : 1;
  return [...rows].sort((left, right) => {
    const a = left[sort.column] ?? null;
    const b = right[sort.column] ?? null;
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    return sign * compareValues(a, b);
  });
}

export function filteredRows(rows: Value[][], filter: string): Value[][] {
  const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return rows;
  return rows.filter((row) => {
    const text = row.filter((value) => typeof value === "string").join("\n").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

/** Why a filter found nothing: the words that stand in no row, or that no row has all of them. */
function whyNothing(rows: Value[][], filter: string): string {
  const wanted = filter.split(/\s+/).filter(Boolean);
  const missing = wanted.filter((word) => filteredRows(rows, word).length === 0);
  const quoted = (missing.length > 0 ? missing : wanted).map((word) => `“${word}”`).join(missing.length > 0 ? " nor " : " and ");
  return missing.length > 0 ? `No row has ${quoted}` : `Rows have ${quoted}, none has all of them`;
}

function ascending(current: Sort | null, column: Column, index: number): Sort {
  if (current?.column === index) return { column: index, descending: !current.descending };
  return { column: index, descending: column.type !== "text" };
}

/** `name` is its own on the page: its state is kept by it. `source`: its name in SQL, where it stands there as it is here. */
export function DataTable(props: { name: string; table: Table; first?: number; allColumns?: boolean; source?: string }) {
  const { table } = props;
  const first = props.first ?? 10;
  const { sort, filter, limit, setSort, setFilter, setLimit } = useTableState(props.name, table.columns, first);
  const links = useContext(PageLinks);
  const [whole, setWhole] = useState(false);
  const formats = useMemo(
    () => columnFormats(table.columns, table.rows),
    [table],
  );
  const wide = useMemo(() => table.columns.map((column, i) => column.type === "text" && longest(table, i) > 24), [table]);
  const rows = useMemo(() => sortedRows(filteredRows(table.rows, filter), sort), [table, filter, sort?.column, sort?.descending]);
  const { shown, unknown, nothing } = useMemo(() => columnsToShow(table, props.allColumns === true, sort), [table, sort?.column]);
  const meter = sort?.column ?? table.columns.findIndex((column) => column.unit === "ratio");
  const largest = useMemo(
    () => table.rows.reduce((most, row) => Math.max(most, Math.abs(asNumber(row[meter]) ?? 0)), 0),
    [table, meter],
  );
  const moment = useMemo(() => (links.moment ? momentOf(table.columns) : null), [table, links]);
  const searchable = table.rows.length > 5 && table.columns.some((column) => column.type === "text");

  return (
    <div class="table-box" data-table={props.name}>
      <div class="tools">
        <span class="count" aria-live="polite">
          {rows.length === table.rows.length
            ? `${grouped(rows.length)} ${rows.length === 1 ? "row" : "rows"}`
            : `${grouped(rows.length)} of ${grouped(table.rows.length)} rows`}
        </span>
        {searchable && (
          <input
            type="search"
            placeholder="filter"
            aria-label={`filter ${words(props.name)}`}
            maxLength={LONGEST_FILTER}
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        )}
        {wide.some(Boolean) && (
          <label>
            <input type="checkbox" checked={whole} onChange={(event) => setWhole(event.currentTarget.checked)} /> whole
            texts
          </label>
        )}
        <CopyButton label="Copy CSV" text={() => csv(table.columns, rows)} />
        <CopyButton label="Copy JSON" text={() => json(table.columns, rows)} />
        {links.asks && props.source !== undefined && (
          <a class="sql" href={links.asks(sqlOf(props.source, table.columns, sort))} title="the query that gives this table">
            SQL
          </a>
        )}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label={words(props.name)}>
        <table class={whole ? "whole" : ""}>
          <thead>
            <tr>
              {moment !== null && (
                <th scope="col">
                  <span class="offscreen">on the timeline</span>
                </th>
              )}
              {shown.map((i) => (
                <Heading
                  key={i}
                  column={table.columns[i]!}
                  suffix={formats[i]!.suffix}
                  sort={sort?.column === i ? sort : null}
                  onSort={() => setSort(ascending(sort, table.columns[i]!, i))}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, limit).map((row) => (
              <tr>
                {moment !== null && <MomentCell address={links.moment!} moment={moment(row)} />}
                {shown.map((i) => (
                  <Cell
                    column={table.columns[i]!}
                    value={row[i] ?? null}
                    format={formats[i]!.cell}
                    wide={wide[i]!}
                    share={i === meter ? shareOf(table.columns[i]!, row[i], largest) : null}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length === 0 && filter.trim() !== "" && (
        <p class="empty" role="status">
          {whyNothing(table.rows, filter)}. The filter looks for each word in the columns of text, not in figures.{" "}
          <button type="button" onClick={() => setFilter("")}>
            without filter
          </button>
        </p>
      )}
      {rows.length > limit && limit < MOST_ROWS && (
        <button type="button" class="more" onClick={() => setLimit(limit + PAGE)}>
          show {grouped(Math.min(PAGE, rows.length - limit))} more of {grouped(rows.length)}
        </button>
      )}
      {limit > first && rows.length > first && (
        <button type="button" class="more" onClick={() => setLimit(first)}>
          show fewer
        </button>
      )}
      <LeftOut why="Not known from this input" columns={unknown} />
      <LeftOut why="0 in every row" columns={nothing} />
      <ColumnMeanings columns={[...shown.map((i) => table.columns[i]!), ...unknown, ...nothing]} />
    </div>
  );
}

function LeftOut(props: { why: string; columns: Column[] }) {
  if (props.columns.length === 0) return null;
  return (
    <p class="soft">
      {props.why}:{" "}
      {props.columns.map((column, i) => (
        <span title={column.meaning}>
          {i > 0 && ", "}
          {shownName(column.name, column)}
        </span>
      ))}
      .
    </p>
  );
}

interface ColumnsToShow {
  shown: number[];
  unknown: Column[];
  nothing: Column[];
}

/**
 * Columns worth a place: not the rank or the moment where there is one only, not those of which every cell is unknown, and in
 * several rows not those of which every figure is 0, as of device work in a run on the CPU.
 */
function columnsToShow(table: Table, all: boolean, sort: Sort | null): ColumnsToShow {
  const shown: number[] = [];
  const unknown: Column[] = [];
  const nothing: Column[] = [];
  table.columns.forEach((column, i) => {
    const first = table.rows[0]?.[i] ?? null;
    const same = table.rows.every((row) => (row[i] ?? null) === first);
    if (!all && same && (column.name === "rank" || column.name === "device" || (isInstant(column) && first !== null)) && table.columns.length > 2) return;
    if (same && first === null && table.rows.length > 0) unknown.push(column);
    else if (!all && same && first !== null && Number(first) === 0 && column.unit !== "" && table.rows.length > 1 && sort?.column !== i) nothing.push(column);
    else shown.push(i);
  });
  return { shown, unknown, nothing };
}

/** Length of the bar behind a cell, 0..1: a share as it is, another number beside the largest of its column. */
function shareOf(column: Column, value: Value | undefined, largest: number): number | null {
  const number = asNumber(value);
  if (number === null || number < 0 || column.type === "text") return null;
  if (column.unit === "ratio" && largest <= 1) return number;
  return largest > 0 ? number / largest : null;
}

function longest(table: Table, column: number): number {
  let length = 0;
  for (const row of table.rows) {
    const value = row[column];
    if (typeof value === "string") length = Math.max(length, value.length);
  }
  return length;
}

function Heading(props: { column: Column; suffix: string; sort: Sort | null; onSort: () => void }) {
  const { column, sort } = props;
  const numeric = column.type === "integer" || column.type === "real";
  // A column that is named as its unit says it once: "bus GB/s", "TFLOP/s".
  const [heading, unit] = [shownName(column.name, column), unitName(column)];
  const name = props.suffix !== "" && heading.endsWith(unit) ? heading.slice(0, heading.length - unit.length).trim() : heading;
  return (
    <th
      scope="col"
      class={numeric ? "number" : ""}
      aria-sort={sort === null ? "none" : sort.descending ? "descending" : "ascending"}
      data-column={column.name}
    >
      <button type="button" title={column.meaning} onClick={props.onSort}>
        {name !== "" && `${name} `}
        {props.suffix !== "" && <span class="suffix">{props.suffix}</span>}
        <span class="arrow" aria-hidden="true">
          {sort === null ? "" : sort.descending ? " ▼" : " ▲"}
        </span>
      </button>
    </th>
  );
}

function unitName(column: Column): string {
  return /^(GB\/s|FLOP|FLOP\/s|bytes)$/.test(column.unit) ? column.unit : "\0";
}

function MomentCell(props: { address: (moment: Moment) => string | null; moment: Moment | null }) {
  const address = props.moment === null ? null : props.address(props.moment);
  return (
    <td class="moment">
      {address !== null && (
        <a href={address} title="show on the timeline" aria-label="show on the timeline">
          ⇥
        </a>
      )}
    </td>
  );
}

function Cell(props: { column: Column; value: Value; format: (value: Value) => string; wide: boolean; share: number | null }) {
  const { column, value } = props;
  const numeric = column.type === "integer" || column.type === "real";
  if (value === null) {
    return (
      <td class={numeric ? "number unknown" : "unknown"} title={column.meaning}>
        {UNKNOWN}
      </td>
    );
  }
  const text = props.format(value);
  if (typeof value === "string") {
    return (
      <td class={props.wide ? "text wide" : "text"} title={props.wide ? value : undefined}>
        {props.wide ? <span>{text}</span> : text}
      </td>
    );
  }
  if (typeof value === "boolean") return <td class="text">{text}</td>;
  return (
    <td class="number" title={column.unit === "ns" || column.unit === "bytes" ? `${grouped(value)} ${column.unit}` : undefined}>
      {props.share !== null && <meter-bar style={{ width: `${props.share * 100}%` }} />}
      {text}
    </td>
  );
}

function ColumnMeanings(props: { columns: Column[] }) {
  const known = props.columns.filter((column) => column.meaning !== "");
  if (known.length === 0) return null;
  return (
    <details class="meanings">
      <summary>What the columns mean</summary>
      <dl>
        {known.map((column) => [<dt>{shownName(column.name, column)}</dt>, <dd>{column.meaning}</dd>])}
      </dl>
    </details>
  );
}
