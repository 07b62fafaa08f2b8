"""SQL and answers in Python: their rows reach pandas, polars, pyarrow and duckdb."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stepscope
from stepscope._library import library

WriteTrace = Callable[..., Path]
BY_NAME = "select name, count(*) as calls, sum(dur_ns) as total_ns, null as unknown from kernels group by name"


@pytest.fixture
def run(write_trace: WriteTrace, tmp_path: Path) -> stepscope.Run:
    write_trace("job/a.json", rank=0)
    write_trace("job/b.json", rank=1)
    return stepscope.open(tmp_path / "job", cache=False)


def test_rows(run: stepscope.Run) -> None:
    result = run.query(BY_NAME)
    assert result.to_pylist() == [
        {"name": "gemm", "calls": 2, "total_ns": 100_000, "unknown": None},
        {"name": "übergröße", "calls": 2, "total_ns": 11_000, "unknown": None},
    ]
    assert [column.type for column in result.columns] == ["text", "integer", "integer", "text"]
    assert result.to_pylist() == result.to_pylist()
    assert not result.cut
    assert run.query("select 1 where false").to_pylist() == []


def test_takers(run: stepscope.Run) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow, duckdb = pytest.importorskip("pyarrow"), pytest.importorskip("duckdb")
    result = run.query(BY_NAME)
    expected = [100_000, 11_000]
    assert list(result.to_pandas()["total_ns"]) == expected
    assert list(pandas.DataFrame.from_arrow(result)["total_ns"]) == expected
    assert polars.DataFrame(result)["total_ns"].to_list() == expected
    assert pyarrow.table(result)["total_ns"].to_pylist() == expected
    assert [row[2] for row in duckdb.sql("select * from result order by total_ns desc").fetchall()] == expected


def test_limits_and_errors(run: stepscope.Run) -> None:
    assert run.query("select slice from slices", limit=3).cut
    with pytest.raises(stepscope.StepscopeError, match="did you mean 'dur_ns'") as error:
        run.query("select dur_n from slices")
    assert error.value.kind == "usage"
    with pytest.raises(stepscope.StepscopeError, match="only SELECT"):
        run.query("drop table slices")
    with pytest.raises(stepscope.StepscopeError, match="longer than its limit"):
        run.query("with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c", timeout=0.1)
    with pytest.raises(stepscope.StepscopeError, match="negative"):
        run.query("select 1", timeout=-1)


def test_a_result_outlives_its_run_and_is_given_back(write_trace: WriteTrace) -> None:
    path = write_trace()
    before = library().alive()
    with stepscope.open(path, cache=False) as run:
        result = run.query("select count(*) as n from slices")
    assert result.to_pylist() == [{"n": 7}]
    del result, run
    assert library().alive() == before


def test_an_answer_is_taken_as_its_first_table(run: stepscope.Run) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    answer = run.kernels()
    name = next(iter(answer.tables))
    rows = answer.tables[name].to_pylist()
    assert pandas.DataFrame(answer).to_dict("records") == pandas.DataFrame(rows).to_dict("records")
    assert polars.DataFrame(answer).to_dicts() == rows


def test_what_is_no_statement_or_path_is_said(run: stepscope.Run) -> None:
    for wrong in (5, "select 1\0 drop"):
        with pytest.raises(stepscope.StepscopeError, match="a query is a text"):
            run.query(wrong)  # type: ignore[arg-type]
    with pytest.raises(stepscope.StepscopeError, match="5 is no path"):
        stepscope.open(5)  # type: ignore[arg-type]


def test_every_answer_is_a_method(run: stepscope.Run) -> None:
    for name in stepscope.answer_names():
        assert name in dir(run)
        try:
            answer = getattr(run, name)()
        except stepscope.StepscopeError as error:  # what this small trace cannot answer says why
            assert error.kind == "unsupported"
            continue
        assert answer.name == name
        for table, rows in answer.tables.items():
            assert rows.to_pylist() == run.table(f"answers.{name}.{table}").to_pylist()
    with pytest.raises(AttributeError, match="its answers are advice, overview"):
        _ = run.nothing


def test_an_answer(run: stepscope.Run) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    answer = run.kernels()
    assert answer.to_pandas("kernels")["name"].iloc[0] == "gemm"
    assert answer.scalars.keys() == answer.units.keys() == answer.meanings.keys()
    with pytest.raises(stepscope.StepscopeError, match="no table 'nothing'"):
        answer.to_pandas("nothing")
    assert run.query("select count(*) as n from kernels_kernels").to_pylist() == [
        {"n": answer.to_pandas("kernels").shape[0]}
    ]
