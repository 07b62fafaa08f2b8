"""stepscope: where does the time of a training step go?

    import stepscope
    run = stepscope.open("traces/")          # a file, several, a pattern or a folder of ranks
    run.answer("steps")                      # the CLI's JSON as a dict
    run.idle().tables["causes"].to_pandas()  # one method for each answer
    run.query("select name, sum(dur_ns) from kernels group by name").to_pandas()
    with stepscope.profile() as recording:   # records this process; recording.step() marks steps
        ...
    stepscope.Analyzer("run/").show_overview()   # what ranks and machines did beside the steps; pandas, matplotlib
    run.table("slices").to_pandas()          # or polars, pyarrow, duckdb: any taker of __arrow_c_stream__

The package is thin: it loads libstepscope.so (one build for every CPython) and imports nothing outside the standard
library, so that it can be imported anywhere.
"""

from __future__ import annotations

from stepscope._answer import Answer
from stepscope._errors import StepscopeError
from stepscope._run import Run, answer_names, open
from stepscope._table import Column, QueryResult, Table, TableInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepscope._analyzer import Analyzer
    from stepscope._recording import profile, step, trace_handler

__all__ = [
    "Analyzer",
    "Answer",
    "Column",
    "QueryResult",
    "Run",
    "StepscopeError",
    "Table",
    "TableInfo",
    "answer_names",
    "open",
    "profile",
    "step",
    "trace_handler",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # one place says it: the library; asked only when wanted
        from stepscope._native import library

        return library().version()
    if name == "Analyzer":
        from stepscope import _analyzer

        return _analyzer.Analyzer
    if name in ("profile", "step", "trace_handler"):  # the import stays light for those who only read
        from stepscope import _recording

        return getattr(_recording, name)
    raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
