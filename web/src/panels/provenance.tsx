// Where every figure comes from: the files that were read, the ranks and how they were found, the versions.
import type { Column, InputFile, Report, Table, Value } from "../data/report";
import { DataTable } from "../draw/table";
import type { Panel } from "../draw/panel";

const COLUMNS: (Column & { of: (file: InputFile) => Value | undefined })[] = [
  { name: "file", type: "text", unit: "", meaning: "path as it was opened", of: (f) => f.path },
  { name: "rank", type: "integer", unit: "", meaning: "rank of the process that wrote the file", of: (f) => f.rank },
  { name: "rank_from", type: "text", unit: "", meaning: "how the rank was found", of: (f) => f.rank_source },
  { name: "ranks_in_job", type: "integer", unit: "", meaning: "world size as recorded", of: (f) => f.world_size || null },
  { name: "format", type: "text", unit: "", meaning: "which reader took the file", of: (f) => f.format },
  { name: "writer", type: "text", unit: "", meaning: "who wrote it, as far as the file says", of: (f) => f.writer || null },
  { name: "events", type: "integer", unit: "count", meaning: "events in the file", of: (f) => f.events },
  { name: "slices", type: "integer", unit: "count", meaning: "events that last, as stored", of: (f) => f.slices },
  { name: "file_size", type: "integer", unit: "bytes", meaning: "size on disk", of: (f) => f.file_bytes },
  { name: "text_size", type: "integer", unit: "bytes", meaning: "size uncompressed", of: (f) => f.text_bytes },
  { name: "from_cache", type: "boolean", unit: "", meaning: "whether the cache of an earlier opening was used", of: (f) => f.cached },
];

export function filesTable(report: Report): Table {
  return {
    columns: COLUMNS,
    rows: report.input.files.map((file) => COLUMNS.map((column) => column.of(file) ?? null)),
  };
}

export const provenance: Panel = {
  id: "input",
  label: "Input",
  title: "What was read",
  shows: [],
  applies: () => true,
  view: ({ report }) => (
    <>
      <DataTable name="input.files" table={filesTable(report)} first={8} allColumns />
      <p class="versions">
        stepscope {report.stepscope.version}
        {report.stepscope.commit ? ` (${report.stepscope.commit})` : ""} · report format {report.schema_version}
      </p>
    </>
  ),
};
