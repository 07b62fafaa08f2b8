// The button for Perfetto, where the server gives the file of the rank that is looked at.
import { useState } from "preact/hooks";
import { askTraceFile } from "../data/server";
import { formatNumber } from "../draw/format";
import { openInPerfetto } from "./perfetto";
import type { Viewer } from "./viewer";

export function PerfettoButton(props: { viewer: Viewer }) {
  const { viewer } = props;
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const rank = viewer.rankInView();
  const of = viewer.index.ranks[rank];
  if (of?.bytes == null) return null;
  const name = of.rank === null ? (of.file.split("/").pop() ?? "") : `rank ${of.rank}`;
  const open = () => {
    setFault(null);
    setBusy(true);
    openInPerfetto(`stepscope: ${name}`, () => askTraceFile(viewer.run, rank))
      .catch((error) => setFault(error instanceof Error ? error.message : String(error)))
      .finally(() => setBusy(false));
  };
  return (
    <>
      <button
        type="button"
        disabled={busy}
        title={`${name} (${formatNumber(of.bytes, "bytes")}) in a tab of ui.perfetto.dev: needs the internet; the file stays in this browser`}
        onClick={open}
      >
        Open in Perfetto
      </button>
      {fault !== null && (
        <span class="tl-fault" role="alert">
          {fault}
        </span>
      )}
    </>
  );
}
