"""Steps and phases of the whole job in Unix time, from the marks that each rank keeps beside its recording.

Each file of marks (docs/run-folder.md, telemetry/HOST_PID.ring) opens as a trace with one lane; no table of the run
itself has them: its own steps are the recorded ones only.
"""

from __future__ import annotations

from stepscope._errors import StepscopeError
from stepscope._run import open as open_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    import pandas

    from stepscope._run import Run


class Marks:
    """Of all ranks of a run folder; looked for when first asked for, since a large job has many files."""

    def __init__(self, opened: list[str]) -> None:
        """opened: files of the run; a folder above them has the marks."""
        self._opened = opened
        self._files: dict[int, Path] | None = None

    def of(self, rank: int) -> tuple[pandas.DataFrame, pandas.DataFrame]:
        """Steps (number, start_ns, end_ns) and phases (phase, start_ns, end_ns) in Unix ns, in order of time.

        Both are empty where no marks of the rank were kept. Time of a step outside of its phases is in no row.
        """
        import pandas

        path = self._path_of(rank)
        if path is None:
            phases = pandas.DataFrame({"phase": [], "start_ns": [], "end_ns": []})
            return phases.rename(columns={"phase": "number"}), phases
        with _opened(path) as run:
            steps = run.query("select number, start_ns, end_ns from steps order by start_ns").to_pandas()
            phases = run.query(
                "select phase, start_ns, start_ns + dur_ns as end_ns from slices where phase != 'other' order by 2"
            ).to_pandas()
        return steps, phases

    def _path_of(self, rank: int) -> Path | None:
        """Of a rank that was started anew the file whose steps end last, as in the answer `history`."""
        if self._files is None:
            ends: dict[int, int] = {}
            self._files = {}
            for path in self._marks_files():
                try:
                    run = _opened(path)
                except StepscopeError:  # damaged: the run's issues tell it
                    continue
                (known,) = run.rank_numbers
                end = run.query("select max(end_ns) as end_ns from steps").to_pylist()[0]["end_ns"]
                if end is not None and end >= ends.get(known, 0):
                    ends[known], self._files[known] = end, path
        return self._files.get(rank)

    def _marks_files(self) -> list[Path]:
        from pathlib import Path

        for folder in (above for path in self._opened for above in Path(path).parents):
            if (folder / "telemetry").is_dir():
                return sorted((folder / "telemetry").glob("*.ring"))
        return []


def _opened(path: Path) -> Run:
    return open_run(path, cache=False, threads=1)
