"""stepscope.Analyzer: telemetry of all ranks and of one, as DataFrames and as pictures on disk and in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from jobs import TWO_RANKS, Place, needs_torch
from made_telemetry import START, Series, write_marks, write_samples

from stepscope import Analyzer, StepscopeError

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

STARTS = {".png": b"\x89PNG\r\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}


@pytest.fixture(scope="module")
def two_ranks(stepscope: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a real job."""
    place = Place(stepscope, tmp_path_factory.mktemp("job"))
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    job = place.run(*launcher, place.script(TWO_RANKS))
    assert job.code == 0 and job.folder is not None, job.stderr
    return job.folder


@needs_torch
def test_the_overview_has_means_and_spreads_over_the_ranks(two_ranks: Path) -> None:
    analyzer = Analyzer(two_ranks, cache=False)
    assert analyzer.ranks == [0, 1]
    tables = analyzer.overview()
    metrics = tables["metrics"].set_index("metric")
    rss = metrics.loc["rss_bytes"]
    assert rss["ranks"] == 2 and rss["unit"] == "bytes" and 50e6 < rss["low"] <= rss["mean"] <= rss["high"]
    assert {rss["low_rank"], rss["high_rank"]} <= {0, 1}
    own = tables["ranks"].set_index("rank")["rss_bytes"]
    assert rss["mean"] == pytest.approx(own.mean()) and rss["std"] == pytest.approx(own.std())
    assert "gpu_watts" in tables["ranks"] and own[rss["high_rank"]] == rss["high"]
    phases = tables["phases"].set_index("phase")
    assert {"forward", "backward", "other"} <= set(phases.index)
    assert tables["rank_phases"].groupby("rank")["share"].sum().tolist() == pytest.approx([1, 1])
    assert {"cpu", "memory", "io"} <= set(tables["sampled"]["collector"])


@needs_torch
def test_one_rank_has_its_series_steps_and_phases_over_time(two_ranks: Path) -> None:
    tables = Analyzer(two_ranks, cache=False).one_rank(1)
    samples, steps, phases = tables["samples"], tables["step_times"], tables["phase_times"]
    targets = set(samples["target"])
    assert "rank 1" in targets and "rank 0" not in targets and not any(one.startswith("pid") for one in targets)
    assert set(samples["host"]) == set(tables["series"]["host"])
    assert steps["number"].tolist() == list(range(40)) and len(tables["steps"]) == 40
    assert steps["start_ns"].tolist() == tables["steps"]["start_ns"].tolist()
    during = samples[(samples["t_ns"] >= steps["start_ns"].min()) & (samples["t_ns"] <= steps["end_ns"].max())]
    assert (during["name"] == "cpu_time").sum() >= 5
    assert {"forward", "backward", "optimizer"} <= set(phases["phase"])
    assert phases["start_ns"].min() >= steps["start_ns"].min() and phases["end_ns"].max() <= steps["end_ns"].max()
    value = tables["metrics"].set_index("metric")["value"]["rss_bytes"]
    assert value == Analyzer(two_ranks, cache=False).overview()["ranks"].set_index("rank")["rss_bytes"][1]


@needs_torch
def test_pictures_are_written_and_tables_printed(
    two_ranks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    analyzer = Analyzer(two_ranks, cache=False)
    for ending, start in STARTS.items():
        analyzer.show_overview(to=tmp_path / f"overview{ending}")
        assert (tmp_path / f"overview{ending}").read_bytes().startswith(start)
    said = capsys.readouterr().out
    assert "rss_bytes" in said and "forward" in said and "overview.pdf" in said and "gpu_watts" not in said
    analyzer.show_one_rank(0, to=str(tmp_path / "rank.svg"))
    drawn = (tmp_path / "rank.svg").read_text()
    assert all(f"<!-- {text} -->" in drawn for text in ("rank 0", "step time", "rss", "forward", "cores"))
    assert "seconds since step 0 began" in drawn
    analyzer.show_one_rank(0)
    assert 'show_one_rank(0, to="NAME.png")' in capsys.readouterr().out


@needs_torch
def test_a_notebook_shows_tables_and_picture(two_ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.display, display.Image = shown.append, lambda data: data  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    Analyzer(two_ranks, cache=False).show_overview()
    assert [type(one).__name__ for one in shown] == ["DataFrame"] * 4 + ["bytes"]
    assert isinstance(shown[-1], bytes) and shown[-1].startswith(STARTS[".png"])


def test_many_ranks_with_different_metrics(tmp_path: Path) -> None:
    """Half of the ranks have a GPU; more series than the answer draws."""
    series = [
        Series(
            f"rank {rank}", "rss", [(t / 2, (rank + 1) * 2**30) for t in range(20)], collector="memory", unit="bytes"
        )
        for rank in range(64)
    ]
    for rank in range(0, 64, 2):
        series.append(Series(f"rank {rank}", "gpu_index", [(0, rank % 8), (9, rank % 8)], collector="gpu"))
    for gpu in range(8):
        points = [(t / 2, gpu / 10) for t in range(20)]
        series.append(Series(f"gpu {gpu}", "gpu_utilization", points, collector="gpu", unit="ratio"))
    for rank in range(64):
        series += [Series(f"rank {rank}", f"other_{i}", [(0, i), (9, i + 1)], collector="memory") for i in range(15)]
    write_samples(tmp_path, series)
    for rank in range(64):
        write_marks(tmp_path, rank, steps=8)
    analyzer = Analyzer(tmp_path, cache=False)
    metrics = analyzer.overview()["metrics"].set_index("metric")
    assert metrics["ranks"].to_dict() == {"rss_bytes": 64, "gpu_utilization": 32}
    assert metrics.loc["rss_bytes", ["low", "low_rank", "high", "high_rank"]].tolist() == [2**30, 0, 64 * 2**30, 63]
    assert metrics["mean"]["gpu_utilization"] == pytest.approx(0.3)
    assert any("1000 of 1064 series" in note for note in analyzer.notes)
    gpus = [set(analyzer.one_rank(rank)["series"]["target"]) for rank in (2, 3)]
    assert gpus[0] == {"rank 2", "gpu 2"}  # its own, as the driver counts
    assert gpus[1] == {"rank 3", *(f"gpu {gpu}" for gpu in range(8))}  # nobody says which
    assert analyzer.one_rank(3)["metrics"].set_index("metric")["value"].isna().to_dict()["gpu_utilization"]
    analyzer.show_overview(tmp_path / "overview.png")
    analyzer.show_one_rank(63, tmp_path / "rank.png")
    assert all((tmp_path / name).stat().st_size > 10_000 for name in ("overview.png", "rank.png"))


def test_many_series_and_single_samples(tmp_path: Path) -> None:
    series = [Series("rank 0", "rss", [(0.5, 2**30)], collector="memory", unit="bytes")]
    series += [Series("host", f"metric_{i}", [(t, t + i) for t in range(9)], collector="host") for i in range(14)]
    series += [Series(f"eth{i}", "received", [(t, i) for t in range(9)], collector="network") for i in range(58)]
    series += [Series("host", "idle", [(1, 0), (2, 0)], collector="host")]
    write_samples(tmp_path, series)
    write_marks(tmp_path, 0, steps=200, first_s=-50)
    analyzer = Analyzer(tmp_path, cache=False)
    samples = analyzer.one_rank(0)["samples"]
    assert samples[samples["name"] == "rss"][["t_ns", "value"]].to_numpy().tolist() == [[(START + 0.5) * 1e9, 2**30]]
    assert samples["name"].nunique() == 17
    analyzer.show_one_rank(0, tmp_path / "rank.svg")
    drawn = (tmp_path / "rank.svg").read_text()
    assert "0 all the time: host.idle" in drawn and "and 50 more" in drawn and "eth57" not in drawn
    assert analyzer.overview()["metrics"]["std"].isna().all()  # one rank has no spread


def test_without_marks_time_counts_from_the_first_sample(tmp_path: Path) -> None:
    write_samples(tmp_path, [Series("rank 4", "rss", [(t, 5) for t in range(1, 4)], collector="memory", unit="bytes")])
    analyzer = Analyzer(tmp_path, cache=False)
    tables = analyzer.one_rank(4)
    assert len(tables["step_times"]) == len(tables["phase_times"]) == len(tables["steps"]) == 0
    analyzer.show_one_rank(4, tmp_path / "rank.svg")
    assert "seconds since the first sample" in (tmp_path / "rank.svg").read_text()
    analyzer.show_overview(tmp_path / "all.png")


def test_the_marks_of_a_rank_that_was_started_anew(tmp_path: Path) -> None:
    write_samples(tmp_path, [Series("rank 0", "rss", [(t, 5) for t in range(30)], collector="memory", unit="bytes")])
    write_marks(tmp_path, 0, steps=5, pid=20)
    write_marks(tmp_path, 0, steps=3, pid=10, first_s=20)
    (tmp_path / "telemetry" / "node_30.ring").write_bytes(b"STEPRING" + bytes(5000))  # damaged
    tables = Analyzer(tmp_path, cache=False).one_rank(0)
    assert tables["step_times"]["start_ns"].tolist() == [(START + 20 + i) * 10**9 for i in range(3)]
    assert tables["step_times"]["start_ns"].tolist() == tables["steps"]["start_ns"].tolist()
    assert tables["phase_times"]["phase"].tolist() == ["forward", "backward"] * 3


def test_what_two_hosts_share_by_name_is_not_mixed(tmp_path: Path) -> None:
    for number, host in enumerate(("a", "b")):
        own = Series(f"rank {number}", "rss", [(1, 5), (2, 6)], collector="memory", unit="bytes")
        write_samples(tmp_path, [own, Series("host", "load", [(1, number), (2, number)])], host)
    analyzer = Analyzer(tmp_path, cache=False)
    tables = analyzer.one_rank(1)
    assert tables["series"][["host", "target"]].to_numpy().tolist() == [["b", "rank 1"], ["b", "host"]]
    samples = tables["samples"].set_index("target")["value"]
    assert set(samples.index) == {"rank 1", "host"}
    assert samples["host"].tolist() == [1, 1]


def test_a_machine_without_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_samples(tmp_path, [Series("host", "load", [(1, 2), (2, 3)])])
    analyzer = Analyzer(tmp_path, cache=False)
    analyzer.show_overview(tmp_path / "none.png")
    said = capsys.readouterr().out
    assert "load" in said and "No rank was sampled" in said
    with pytest.raises(StepscopeError, match=r"Ranks that were: none"):
        analyzer.one_rank(0)


def test_errors_say_what_to_do(tmp_path: Path, write_trace: Callable[..., Path]) -> None:
    write_samples(tmp_path / "run", [Series(f"rank {rank}", "rss", [(1, 1), (2, 1)]) for rank in (3, 7)])
    analyzer = Analyzer(tmp_path / "run", cache=False)
    with pytest.raises(StepscopeError, match=r"rank 4 was not sampled. Ranks that were: 3, 7"):
        analyzer.show_one_rank(4)
    with pytest.raises(StepscopeError, match=r"End it in .png, .svg, .pdf"):
        analyzer.show_overview(tmp_path / "picture.bmp")
    with pytest.raises(StepscopeError, match="this folder does not exist"):
        analyzer.show_one_rank(3, tmp_path / "nowhere" / "picture.png")
    write_trace("traces/a.json", rank=0)
    with pytest.raises(StepscopeError, match="stepscope run") as caught:
        Analyzer(tmp_path / "traces", cache=False)
    assert caught.value.kind == "not_found"


def test_missing_packages_are_named_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_samples(tmp_path, [Series("rank 0", "rss", [(1, 1), (2, 1)])])
    analyzer = Analyzer(tmp_path, cache=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    analyzer.show_overview()
    with pytest.raises(StepscopeError, match="pip install matplotlib"):
        analyzer.show_overview(tmp_path / "picture.png")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(StepscopeError, match=r"needs pandas. Run `pip install pandas`"):
        Analyzer(tmp_path, cache=False)
