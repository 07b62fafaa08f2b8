"""stepscope.open: every way to name input, errors with their parts, ranks, issues, arguments, answers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import stepscope
from stepscope import StepscopeError
from stepscope._summary import run_html

TRACES = Path(__file__).resolve().parent.parent / "traces"
WriteTrace = Callable[..., Path]


def slices(run: stepscope.Run) -> list[dict[str, object]]:
    return run.table("slices").to_pylist()


def test_a_file_gives_its_slices_to_the_nanosecond(write_trace: WriteTrace) -> None:
    run = stepscope.open(write_trace(), cache=False)
    rows = slices(run)
    assert [row["name"] for row in rows].count("cudaLaunchKernel") == 2
    by_name = {row["name"]: row for row in rows}
    assert by_name["aten::mm"]["dur_ns"] == 20_125
    assert by_name["aten::mm"]["start_ns"] == 10_000
    assert by_name["übergröße"]["kind"] == "kernel"
    assert by_name["aten::empty"]["parent"] == by_name["aten::mm"]["slice"]
    assert by_name["ProfilerStep#1"]["parent"] is None


def test_file_list_pattern_and_folder_open_the_same_ranks(write_trace: WriteTrace, tmp_path: Path) -> None:
    one, two = write_trace("job/a.json", rank=0), write_trace("job/b.json", rank=1)
    for given in ([one, two], [str(two), str(one)], tmp_path / "job", str(tmp_path / "job" / "*.json")):
        run = stepscope.open(given, cache=False)
        assert run.rank_numbers == [0, 1]
        assert {file["rank_source"] for file in run.files} == {"distributedInfo"}
        ranks = [row["rank"] for row in slices(run)]
        assert ranks == [0] * 7 + [1] * 7


def test_errors_say_what_where_and_what_next(tmp_path: Path) -> None:
    missing = tmp_path / "nothing.json"
    with pytest.raises(StepscopeError) as caught:
        stepscope.open(missing, cache=False)
    assert caught.value.kind == "not_found"
    assert "nothing.json" in str(caught.value)
    page = tmp_path / "page.json"
    page.write_text("<!DOCTYPE html><html><body>404</body></html>")
    with pytest.raises(StepscopeError) as caught:
        stepscope.open(page, cache=False)
    assert caught.value.kind == "unrecognized"
    assert caught.value.file == str(page)
    assert caught.value.hint
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.kind == caught.value.kind


def test_wrong_use_is_told_apart(write_trace: WriteTrace) -> None:
    run = stepscope.open(write_trace(), cache=False)
    for wrong in (
        lambda: stepscope.open([]),
        lambda: stepscope.open("a\0b"),
        lambda: stepscope.open("x", threads=-1),
        lambda: run.table("slice"),
        lambda: run.table("answers.nonsense.x"),
        lambda: run.table("answers.kernels.nonsense"),
        lambda: run.report("kernel"),
        lambda: run.arguments(10_000),
        lambda: run.arguments(0, rank=5),
        lambda: run.arguments(-1),
    ):
        with pytest.raises(StepscopeError) as caught:
            wrong()
        assert caught.value.kind == "usage", caught.value
    with pytest.raises(StepscopeError, match="slices"):
        run.table("slice")


def test_a_closed_run_says_so(write_trace: WriteTrace) -> None:
    with stepscope.open(write_trace(), cache=False) as run:
        assert "slices" in repr(run)
    assert "closed" in repr(run)
    with pytest.raises(StepscopeError, match="closed"):
        run.table("slices")


def test_an_empty_trace_opens_and_has_empty_tables(write_trace: WriteTrace) -> None:
    run = stepscope.open(write_trace(events=[]), cache=False)
    for table in run.tables():
        assert table.rows == len(run.table(table.name).to_pylist())
    assert slices(run) == []


def test_a_cut_file_opens_and_its_loss_is_an_issue(write_trace: WriteTrace) -> None:
    path = write_trace()
    text = path.read_bytes()
    path.write_bytes(text[: text.index(b"gemm") + 2])
    run = stepscope.open(path, cache=False)
    assert slices(run)
    assert any(issue["severity"] == "lost" and issue["offset"] is not None for issue in run.issues)


def test_arguments_are_read_again_from_the_file(write_trace: WriteTrace) -> None:
    run = stepscope.open(write_trace(), cache=False)
    number = next(row["slice"] for row in slices(run) if row["name"] == "aten::mm")
    assert isinstance(number, int)
    assert "[[8, 8], [8, 8]]" in str(run.arguments(number))


def test_tables_say_their_columns_units_and_meanings(write_trace: WriteTrace) -> None:
    run = stepscope.open(write_trace(), cache=False)
    listed = {table.name: table for table in run.tables()}
    assert listed["device_work"].rows == 2
    for name, table in listed.items():
        assert table.meaning
        taken = run.table(name)
        assert [(c.name, c.type, c.unit, c.meaning) for c in taken.columns] == [
            (c.name, c.type, c.unit, c.meaning) for c in table.columns
        ]
        assert all(column.meaning for column in table.columns), name
        times = [column for column in table.columns if column.name.endswith("_ns")]
        assert all(column.unit in ("ns", "Unix ns") for column in times), name


def test_answers_are_the_report_and_their_tables_can_be_taken(write_trace: WriteTrace) -> None:
    run = stepscope.open(write_trace(), cache=False)
    names = stepscope.answer_names()
    assert names[0] == "advice"
    report = run.report(["kernels"])
    assert report["schema_version"] == 1
    assert list(report["answers"]) == ["kernels"]
    answer = run.answer("kernels")
    tables = {table.name: table for table in run.tables(answers=True) if table.name.startswith("answers.kernels.")}
    tables = {name: table for name, table in tables.items() if ".series." not in name}
    assert set(tables) == {f"answers.kernels.{name}" for name in answer["tables"]}
    for name, table in answer["tables"].items():
        rows = run.table(f"answers.kernels.{name}").to_pylist()
        assert [list(row.values()) for row in rows] == table["rows"]


def test_what_a_notebook_shows_is_small_inert_and_about_the_report(tmp_path: Path) -> None:
    from html.parser import HTMLParser

    hostile = "</script><img src=x onerror=alert(1)>" + "x" * 5000
    run = stepscope.open(TRACES / "tiny_train.json", cache=False)
    report = run.report()
    overview = report["answers"]["overview"]
    findings = [finding for answer in report["answers"].values() for finding in answer["findings"]]
    shown = run._repr_html_()
    for finding in findings:
        assert finding["sentence"].split("'")[0] in shown
    assert "1.10× as fast" in shown  # the data loader's
    for row in overview["tables"]["breakdown"]["rows"]:
        assert str(row[2]) in shown

    report["input"]["path"] = f"a b'{hostile}"
    row = overview["tables"]["breakdown"]["rows"][0]
    overview["tables"]["breakdown"]["rows"] = [[rank, 0, hostile, *row[3:]] for rank in range(64) for _ in range(20)]
    for finding in findings:
        finding["sentence"] = finding["next"] = hostile
        finding["evidence"] = [{"text": hostile, "value": None, "unit": "", "query": None}] * 20
    overview["findings"] *= 100
    report["issues"] = [{"severity": "lost", "sentence": hostile}] * 9
    tags: set[str] = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.add(tag)

    worst = run_html(report)
    Tags().feed(worst)
    assert tags <= {"div", "p", "b", "span", "ol", "li", "br", "code"}
    for page in (shown, worst):
        assert len(page.encode()) < 30_000


def test_a_closed_run_says_so_in_a_notebook(write_trace: WriteTrace) -> None:
    run = stepscope.open(write_trace(), cache=False)
    run.close()
    assert "closed" in run._repr_html_()


def test_a_notebook_shows_runs_and_tables(write_trace: WriteTrace) -> None:
    run = stepscope.open(write_trace(events=None), cache=False)
    shown = run._repr_html_()
    for part in ("Step 200.0 µs", "Where the time goes", "What to change first", "stepscope view"):
        assert part in shown, part
    page = run.table("slices")._repr_html_()
    assert "aten::mm" in page
    assert "[ns]" in page
