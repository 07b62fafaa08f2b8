"""Table: one table of a run, handed to other libraries by the Arrow PyCapsule protocol.

Nothing is read before somebody asks. pandas, polars, pyarrow and duckdb are imported only by the conveniences that
carry their name.
"""

from __future__ import annotations

from stepscope._errors import StepscopeError
from stepscope._library import library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pandas
    import polars
    import pyarrow

    from stepscope._native import Handle

ROWS_SHOWN = 10


class Column:
    """name, type (integer, real, text or boolean), unit and meaning.

    Units: "", ns, Unix ns (a moment), bytes, count, ratio, GB/s, FLOP (a multiply-add is two), FLOP/s.
    """

    __slots__ = ("meaning", "name", "type", "unit")

    def __init__(self, name: str, type: str, unit: str, meaning: str) -> None:
        self.name = name
        self.type = type
        self.unit = unit
        self.meaning = meaning

    def __repr__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        return f"<{self.name}{unit}, {self.type}: {self.meaning}>"


class TableInfo:
    """What Run.tables() lists: name, meaning, number of rows and columns."""

    __slots__ = ("columns", "meaning", "name", "rows")

    def __init__(self, table: dict[str, Any]) -> None:
        self.name: str = table["name"]
        self.meaning: str = table["meaning"]
        self.rows: int = table["rows"]
        self.columns = tuple(Column(c["name"], c["type"], c["unit"], c["meaning"]) for c in table["columns"])

    def __repr__(self) -> str:
        return f"<{self.name}, {self.rows:,} rows: {self.meaning}>"


class Table:
    """A table of a run; keeps the run alive. Each taker gets a stream of its own."""

    def __init__(self, name: str, handle: Handle) -> None:
        from stepscope._arrow import read_schema

        self.name = name
        self._handle = handle
        stream = self._stream()
        try:
            self.meaning, self.columns = read_schema(stream)
        finally:
            library().free_stream(stream)

    def _stream(self) -> Any:
        return library().stream(self._handle.value, self.name)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The capsule that pandas, polars, pyarrow and duckdb take. A requested schema is not followed."""
        return library().capsule(self._stream())

    def to_pylist(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The first rows as dicts, without any other library; for looking, not for millions of rows."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row)) for row in self._rows(limit)]

    def to_arrow(self) -> pyarrow.Table:
        try:
            import pyarrow
        except ImportError:
            raise self._needs("to_arrow", "pyarrow") from None
        return pyarrow.RecordBatchReader.from_stream(self).read_all()

    def to_pandas(self) -> pandas.DataFrame:
        """Texts become categories; integers stay exact (those with absent values as pandas' nullable integers)."""
        try:
            import pandas
        except ImportError:
            raise self._needs("to_pandas", "pandas") from None
        table = self.to_arrow()
        frame = table.to_pandas()
        for i, column in enumerate(self.columns):
            if column.type == "integer" and table.column(i).null_count != 0:  # pandas would make floats of them
                values = table.column(i).cast("int64").to_pandas(types_mapper=lambda _: pandas.Int64Dtype())
                frame[column.name] = values
        return frame

    def to_polars(self) -> polars.DataFrame:
        try:
            import polars
        except ImportError:
            raise self._needs("to_polars", "polars") from None
        return polars.DataFrame(self)

    def _needs(self, method: str, packages: str) -> StepscopeError:
        return StepscopeError(f"{method} needs {packages}", "unsupported", hint=f"Run `pip install {packages}`")

    def _rows(self, limit: int | None) -> list[tuple[Any, ...]]:
        from stepscope._arrow import read_rows

        stream = self._stream()
        try:
            return read_rows(stream, limit)
        finally:
            library().free_stream(stream)

    def __repr__(self) -> str:
        return f"<stepscope.Table {self.name}: {', '.join(column.name for column in self.columns)}>"

    def _repr_html_(self) -> str:
        heads = [(c.name, f"{c.meaning} [{c.unit}]" if c.unit else c.meaning) for c in self.columns]
        rows = self._rows(ROWS_SHOWN + 1)
        return html_table(heads, rows[:ROWS_SHOWN], len(rows), f"{self.name}: {self.meaning}")


class QueryResult(Table):
    """The rows of an SQL statement; `cut` says that there were more than the limit."""

    def __init__(self, sql: str, handle: Handle, timeout: float, limit: int) -> None:
        import weakref

        self._sql = sql.encode()
        self._timeout, self._limit = timeout, limit
        self._handle = handle
        # While one stream is held, the library gives the same rows again without a second run of the statement.
        self._held, self.cut = library().query(handle.value, self._sql, timeout, limit)
        weakref.finalize(self, library().free_stream, self._held)
        super().__init__("query", handle)

    def _stream(self) -> Any:
        return library().query(self._handle.value, self._sql, self._timeout, self._limit)[0]


def html_table(heads: list[tuple[str, str]], rows: list[Any], found: int, caption: str) -> str:
    """A small static table for notebooks; `heads` are names with what hovering tells."""
    from html import escape

    def cell(value: object) -> str:
        text = "" if value is None else str(value)
        return escape(text if len(text) <= 80 else text[:79] + "…")

    head = "".join(f'<th title="{escape(meaning)}">{escape(name)}</th>' for name, meaning in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    more = f"<p>first {len(rows)} rows</p>" if found > len(rows) else ""
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    )
