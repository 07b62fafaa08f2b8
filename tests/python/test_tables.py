"""pandas, polars, pyarrow and duckdb take the tables, see the same rows, and share memory where nothing must change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stepscope

WriteTrace = Callable[..., Path]


@pytest.fixture
def run(write_trace: WriteTrace, tmp_path: Path) -> stepscope.Run:
    write_trace("job/a.json", rank=0)
    other = {"ph": "X", "cat": "cpu_op", "name": "only on rank 1", "pid": 7, "tid": 8, "ts": 1, "dur": 2}
    write_trace("job/b.json", rank=1, events=[other])
    return stepscope.open(tmp_path / "job", cache=False)


def expected(run: stepscope.Run) -> list[tuple[object, ...]]:
    rows = run.table("slices").to_pylist()
    assert {row["name"] for row in rows} > {"only on rank 1", "aten::mm"}
    return [(row["rank"], row["name"], row["dur_ns"], row["parent"]) for row in rows]


def test_pyarrow(run: stepscope.Run) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(run.table("slices"))
    columns = [table.column(name).to_pylist() for name in ("rank", "name", "dur_ns", "parent")]
    assert list(zip(*columns)) == expected(run)
    assert table.column("name").num_chunks == 2
    field = table.schema.field("dur_ns")
    assert field.metadata[b"unit"] == b"ns"
    assert field.metadata[b"meaning"]
    table.validate(full=True)


def test_pandas(run: stepscope.Run) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = run.table("slices").to_pandas()
    rows = [
        (rank, name, dur, None if pandas.isna(parent) else parent)
        for rank, name, dur, parent in zip(frame["rank"], frame["name"], frame["dur_ns"], frame["parent"])
    ]
    assert rows == expected(run)
    assert str(frame["parent"].dtype) == "Int64"
    assert set(frame["name"].cat.categories) == {row[1] for row in rows}  # no texts of other columns
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert len(pandas.DataFrame.from_arrow(run.table("slices"))) == len(rows)


def test_polars(run: stepscope.Run) -> None:
    pytest.importorskip("polars")
    frame = run.table("slices").to_polars()
    assert frame.select("rank", "name", "dur_ns", "parent").rows() == expected(run)


def test_duckdb(run: stepscope.Run) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    slices = run.table("slices")  # noqa: F841  (found by its name)
    rows = duckdb.sql("select rank, name, dur_ns, parent from slices").fetchall()
    assert sorted(map(str, rows)) == sorted(map(str, expected(run)))
    joined = duckdb.sql("select count(*) from slices a join slices b on a.rank = b.rank and a.parent = b.slice")
    assert joined.fetchall()[0][0] == sum(parent is not None for _, _, _, parent in expected(run))


def test_every_table_of_a_run_is_taken_whole(run: stepscope.Run) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    for info in run.tables(answers=True):
        table = pyarrow.table(run.table(info.name))
        table.validate(full=True)
        assert table.num_rows == info.rows, info.name
        assert table.to_pylist() == run.table(info.name).to_pylist(), info.name
        assert polars.DataFrame(run.table(info.name)).height == info.rows, info.name


def test_numbers_are_not_copied(run: stepscope.Run) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    first, second = pyarrow.table(run.table("slices")), pyarrow.table(run.table("slices"))
    for name in ("start_ns", "track"):
        addresses = {table.column(name).chunk(0).buffers()[1].address for table in (first, second)}
        assert len(addresses) == 1, name


def test_real_traces_are_taken(corpus: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    files = sorted(corpus.glob("hta/*/*.json.gz"), key=lambda path: path.stat().st_size)
    opened = 0
    for path in [*files[:12], *files[-1:]]:
        try:
            run = stepscope.open(path, cache=False)
        except stepscope.StepscopeError as refused:
            assert refused.kind == "unrecognized", refused  # other files lie beside the traces
            continue
        opened += 1
        for info in run.tables():
            table = pyarrow.table(run.table(info.name))
            table.validate(full=True)
            assert table.num_rows == info.rows, (path, info.name)
    assert opened >= 6
