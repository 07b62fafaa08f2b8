"""open() and Run: what was opened together, asked for answers (dicts, as the CLI's JSON) and tables (Arrow)."""

from __future__ import annotations

import os

from stepscope._answer import Answer
from stepscope._errors import StepscopeError
from stepscope._library import library, new_handle
from stepscope._table import QueryResult, Table, TableInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, Union

    from stepscope._native import Handle

    PathLike = Union[str, os.PathLike[str]]


_MEMORY_FILES = ("cuda_snapshot", "memory_timeline")


def open(
    path: PathLike | Iterable[PathLike],
    *,
    cache: bool = True,
    threads: int = 0,
    rules: PathLike | None = None,
    peaks: PathLike | None = None,
    flop_rules: PathLike | None = None,
) -> Run:
    """Opens a trace file, several, a glob pattern or a folder of ranks as one run.

    cache:   read and write the cache of opened files (STEPSCOPE_CACHE names its folder, or off).
    threads: 0 takes all cores that this process may use.
    rules:   a file of class rules, tried before the built-in ones.
    peaks:   a file that says what devices can do at most, before the built-in table; else what STEPSCOPE_PEAKS names.
    flop_rules: a file of formulas for the FLOP of your kernels; else what STEPSCOPE_FLOP_RULES names.

    Raises StepscopeError when nothing could be opened; what was odd or lost in a file is a row of run.issues.
    """
    if threads < 0:
        raise StepscopeError(f"threads is {threads}", "usage", hint="Use 0 for all cores, or a number of threads")
    try:
        paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    except TypeError:
        raise StepscopeError(f"{path!r} is no path", "usage", hint="Give a path, or a list of them") from None
    encoded = [_encoded(one) for one in paths]
    given = {"rules_path": rules, "peaks_path": peaks, "flop_rules_path": flop_rules}
    tables = {name: _encoded(file) for name, file in given.items() if file is not None}
    return Run(new_handle(library().open(encoded, cache, threads, tables)))


def answer_names() -> list[str]:
    """The names that Run.report and Run.answer take, in report order."""
    import json

    names: list[str] = json.loads(library().answer_names())
    return names


class Run:
    """Traces that were opened together, one per rank. Any thread may use it."""

    def __init__(self, handle: Handle) -> None:
        self._handle: Handle | None = handle
        self._html: str | None = None

    def report(self, names: str | Iterable[str] = ()) -> dict[str, Any]:
        """The report with the named answers (all when none is named), as `stepscope report --json` prints it."""
        import json

        wanted = [names] if isinstance(names, str) else list(names)
        handle = self._open_handle()
        report: dict[str, Any] = json.loads(library().report(handle.value, [name.encode() for name in wanted]))
        return report

    def advise(self) -> list[dict[str, Any]]:
        """What to change first: the findings, those worth most first, as `stepscope advise --json` has them.

        Each has `sentence`, `where` (file, line, rank …), `evidence`, `gain` (speedup_low, speedup_high, step_ns; None:
        not predicted, gain_reason says why), `confidence`, `next`.
        """
        import json

        found: list[dict[str, Any]] = json.loads(library().advise(self._open_handle().value))["findings"]
        return found

    def answer(self, name: str) -> dict[str, Any]:
        """One answer of the report: its scalars, tables, series, findings and notes."""
        report = self.report(name)
        found: dict[str, Any] | None = report["answers"].get(name)
        if found is None:
            why = (report.get("failed") or {}).get(name, "no reason was given")
            raise StepscopeError(f"the answer {name} could not be made: {why}", "unsupported")
        return found

    def query(self, sql: str, *, timeout: float = 30, limit: int = 0) -> QueryResult:
        """The rows of a SELECT in SQLite's dialect over the tables of the run and of its answers.

        pandas, polars, pyarrow and duckdb take the result as they take a table. "answers.idle.causes" is idle_causes
        here; ".tables" lists all names. limit 0 gives all rows.
        """
        if not isinstance(sql, str) or "\0" in sql:
            raise StepscopeError("a query is a text without NUL characters", "usage", hint="Such as select 1")
        if timeout <= 0 or limit < 0:
            raise StepscopeError("timeout and limit of a query must not be negative", "usage")
        return QueryResult(sql, self._open_handle(), timeout, limit)

    def __getattr__(self, name: str) -> Callable[[], Answer]:
        """Every answer is a method: run.idle() gives `idle`."""
        if name.startswith("_") or name not in answer_names():
            raise AttributeError(f"a run has no {name!r}; its answers are {', '.join(answer_names())}")
        handle = self._open_handle()
        return lambda: Answer(name, self.answer(name), handle)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *answer_names()]

    def tables(self, answers: bool = False) -> list[TableInfo]:
        """What table() takes: the tables of the trace; with answers=True those of all answers too (they are made)."""
        import json

        handle = self._open_handle()
        return [TableInfo(table) for table in json.loads(library().tables(handle.value, answers))]

    def table(self, name: str) -> Table:
        """A table such as "slices", "device_work" or "answers.kernels.by_name"."""
        return Table(name, self._open_handle())

    @property
    def files(self) -> list[dict[str, Any]]:
        """The files that were opened, one dict per rank."""
        return self.table("files").to_pylist()

    @property
    def rank_numbers(self) -> list[int]:
        """The rank of each trace, ascending; memory snapshots beside them are no traces."""
        return [file["rank"] for file in self.files if file["format"] not in _MEMORY_FILES]

    @property
    def issues(self) -> list[dict[str, Any]]:
        """What was odd, repaired or lost in the input."""
        return self.table("issues").to_pylist()

    def arguments(self, slice: int, rank: int | None = None) -> Any:
        """What the file says about one slice beyond the columns, read again from the file.

        slice and rank are those of the table slices; rank may be left out when there is only one.
        """
        import json

        if rank is None:
            ranks = self.rank_numbers
            if len(ranks) != 1:
                raise StepscopeError("this run has several ranks", "usage", hint="Name one: arguments(slice, rank=0)")
            rank = ranks[0]
        if not 0 <= slice < 2**32:
            raise StepscopeError(f"there is no slice {slice}", "usage")
        return json.loads(library().slice_text(self._open_handle().value, rank, slice))

    def close(self) -> None:
        """Gives the memory back; tables taken from the run stay valid. Also done when the run is forgotten."""
        self._handle = None

    def _open_handle(self) -> Handle:
        if self._handle is None:
            raise StepscopeError("this run was closed", "usage", hint="Open it again with stepscope.open")
        return self._handle

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle is None:
            return "<stepscope.Run, closed>"
        files = self.files
        what = files[0]["path"] if len(files) == 1 else f"{len(files)} ranks"
        return f"<stepscope.Run {what}: {sum(file['slices'] for file in files):,} slices>"

    def _repr_html_(self) -> str:
        if self._handle is None:
            return "<p>stepscope.Run, closed</p>"
        if self._html is None:  # a run does not change, and a cell may be shown again and again
            from stepscope._summary import run_html

            self._html = run_html(self.report())
        return self._html


def _encoded(path: PathLike) -> bytes:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise StepscopeError("a path must not hold a NUL character", "usage")
    return encoded
