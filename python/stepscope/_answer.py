"""Answer: what Run.idle(), Run.kernels() and so on return; its tables are taken as those of the run are."""

from __future__ import annotations

from stepscope._errors import StepscopeError
from stepscope._table import Table, html_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import pandas

    from stepscope._native import Handle


class Answer:
    """One answer of the report.

    scalars: values by name; None is unknown, and `meanings` says why. units, meanings: of the scalars, by name.
    tables, series: tables by name, for pandas, polars, pyarrow and duckdb. findings, notes: as in the JSON.
    """

    def __init__(self, name: str, answer: dict[str, Any], handle: Handle) -> None:
        self.name = name
        self.summary: str = answer["summary"]
        scalars = answer["scalars"]
        self.scalars: dict[str, Any] = {name: one["value"] for name, one in scalars.items()}
        self.units: dict[str, str] = {name: one["unit"] or "" for name, one in scalars.items()}
        self.meanings: dict[str, str] = {name: one["meaning"] for name, one in scalars.items()}
        prefix = f"answers.{self.name}."
        self.tables = {name: Table(prefix + name, handle) for name in answer["tables"]}
        self.series = {name: Table(f"{prefix}series.{name}", handle) for name in answer["series"]}
        self.findings: list[dict[str, Any]] = answer["findings"]
        self.notes: list[str] = answer["notes"]

    def to_pandas(self, table: str | None = None) -> pandas.DataFrame:
        """A table as a DataFrame: the named one, else the first."""
        if not self.tables:
            raise StepscopeError(f"the answer {self.name} has no table", "not_found", hint="Look at its scalars")
        name = next(iter(self.tables)) if table is None else table
        if name not in self.tables:
            raise StepscopeError(
                f"the answer {self.name} has no table {name!r}", "usage", hint=f"Choose from: {', '.join(self.tables)}"
            )
        return self.tables[name].to_pandas()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows of the first table, so that pandas.DataFrame(run.kernels()) takes them."""
        return iter(self._first().to_pylist())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._first().__arrow_c_stream__(requested_schema)

    def _first(self) -> Table:
        if not self.tables:
            raise StepscopeError(f"the answer {self.name} has no table", "not_found", hint="Look at its scalars")
        return next(iter(self.tables.values()))

    def __repr__(self) -> str:
        return f"<stepscope.Answer {self.name}: {len(self.scalars)} scalars, tables {', '.join(self.tables)}>"

    def _repr_html_(self) -> str:
        rows = [[name, self.scalars[name], self.units[name], self.meanings[name]] for name in self.scalars]
        heads = [(name, "") for name in ("scalar", "value", "unit", "meaning")]
        return html_table(heads, rows, len(rows), f"{self.name}: {self.summary}")
