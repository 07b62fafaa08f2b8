"""The gallery: its table is whole, its programs run in both forms, and verdicts on them are right."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import turns
from catalog import PROGRAMS, Program
from jobs import needs_torch
from verdicts import Places, Verdict, judge, largest_gain, of_all, places_of, summarize, thresholds

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "examples" / "gallery"
FAULTY = [program for program in PROGRAMS if program.cause]
OWN = {"clock", "catalog", "verdicts", "turns", "run"}


def finding(name: str, low: float = 0, high: float = 0, **where: Any) -> dict[str, Any]:
    """As `stepscope advise --json` writes one."""
    nowhere = dict.fromkeys(("rank", "phase", "module", "op", "function", "file", "line", "t_ns"))
    gain = {"speedup_low": low, "speedup_high": high, "binds": "", "how": ""} if high else None
    return {"id": name, "cause": "host", "sentence": "", "where": {**nowhere, **where}, "gain": gain}


def by_name(name: str) -> Program:
    return next(program for program in PROGRAMS if program.name == name)


def gallery_run() -> Any:
    """run.py as a module; bench/ has one of that name too."""
    spec = importlib.util.spec_from_file_location("gallery_run", GALLERY / "run.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- the table ----


def test_every_program_is_in_the_table_once() -> None:
    names = [program.name for program in PROGRAMS]
    files = {path.stem for path in GALLERY.glob("*.py")} - OWN
    assert len(set(names)) == len(names) and set(names) == files | {"story"}
    told = re.findall(r"(?m)^\| \[(\w+)\]\(", (GALLERY / "README.md").read_text())
    assert set(told) == set(names)


def test_there_are_enough_of_each_kind() -> None:
    anywhere = [program for program in FAULTY if program.needs != "cuda"]
    assert len(anywhere) >= 24 and len(PROGRAMS) - len(FAULTY) == 8
    for half in ("tune", "report"):
        assert sum(program.half == half for program in anywhere) >= 12


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_is_faulty_says_where(program: Program) -> None:
    places = places_of(program.file)
    assert bool(places.lines) == bool(program.cause)
    assert bool(places.functions) == bool(program.cause)
    assert "stepscope" not in program.file.read_text() or program.name == "story"


# ---- verdicts ----

PLACES = Places("net.py", (40, 41), frozenset({"scores"}), ("aten::sort",))


@pytest.mark.parametrize(
    ("where", "right"),
    [
        ({"file": "/home/me/net.py", "line": 38}, True),
        ({"file": "net.py", "line": 44}, True),
        ({"file": "net.py", "line": 45}, False),
        ({"file": "other_net.py", "line": 40}, False),
        ({"file": "other.py", "line": 9, "function": "scores"}, False),
        ({"file": "net.py", "line": 9, "function": "Attention.scores"}, True),
        ({"function": "scores"}, True),
        ({"line": 40}, False),
        ({"op": "aten::sort"}, True),
        ({"op": "aten::mm", "phase": "forward"}, False),
        ({}, False),
    ],
)
def test_a_place(where: dict[str, Any], right: bool) -> None:
    assert PLACES.hold(where) is right


def test_a_whole_program_is_a_place_only_where_nothing_smaller_is() -> None:
    assert places_of(by_name("gpt_scores").file).functions == {"scores"}
    assert places_of(by_name("one_thread").file).functions == {"main"}
    assert places_of(ROOT / "examples" / "story.py").functions == {"words", "rarest"}


def test_a_verdict() -> None:
    findings = [finding("float64", 1.1, 1.3), finding("no_cache", 1.8, 2.2, file="x/net.py", line=40)]
    verdict = judge(Verdict("net", "tune", "no_cache", ratios=[2.5]), findings, PLACES)
    assert (verdict.position, verdict.place, verdict.predicted) == (2, True, (1.8, 2.2))
    assert verdict.error == pytest.approx(0.2)
    assert verdict.said == ["float64", "no_cache"]


def test_what_is_not_named_or_has_no_price() -> None:
    verdict = judge(Verdict("net", "tune", "no_cache", ratios=[2.0]), [finding("float64", 1, 2, line=40)], PLACES)
    assert (verdict.position, verdict.place, verdict.error) == (None, False, None)
    verdict = judge(Verdict("net", "tune", "no_cache", ratios=[2.0]), [finding("no_cache", op="aten::sort")], PLACES)
    assert (verdict.position, verdict.place, verdict.error) == (1, True, None)


def test_several_recordings_have_the_worst_place_and_the_middle_gain() -> None:
    def told(*findings: Any) -> Verdict:
        return judge(Verdict("net", "tune", "no_cache", ratios=[2.0]), list(findings), PLACES)

    first = told(finding("no_cache", 1.8, 2.0, file="x/net.py", line=40))
    second = told(finding("float64", 3, 3), finding("no_cache", 1.2, 2.6, file="x/net.py", line=40))
    third = told(finding("no_cache", 1.9, 2.4, line=7))
    verdict = of_all([first, second, third])
    assert (verdict.position, verdict.place, verdict.predicted) == (2, False, (1.8, 2.4))
    assert verdict.predictions == [(1.8, 2.0), (1.2, 2.6), (1.9, 2.4)]
    assert verdict.said == ["float64", "no_cache"] and verdict.error == pytest.approx(0.05)
    assert of_all([third, first]).predicted == pytest.approx((1.85, 2.2))
    assert of_all([first]) == first
    missed = of_all([second, told(finding("float64", 3, 3))])
    assert (missed.position, missed.place, missed.predicted) == (None, False, (1.2, 2.6))
    assert missed.said == ["float64"]
    unpriced = of_all([told({"id": "no_cache", "where": {}, "gain": None})])
    assert (unpriced.position, unpriced.predicted) == (1, None)


def test_shares_errors_and_promises() -> None:
    exact = [Verdict(str(i), "tune", "a", 1, True, (1.9, 2.1), ratios=[2.0]) for i in range(9)]
    second = Verdict("second", "report", "a", 2, True, (2.0, 2.6), ratios=[2.0])
    summary = summarize([*exact, second])
    assert (summary.count, summary.first, summary.three, summary.place) == (10, 0.9, 1.0, 1.0)
    assert summary.median_error == pytest.approx(0) and summary.worst_error == pytest.approx(0.15)
    second = replace(second, half="tune")
    assert [held for _, held in thresholds([*exact, second], [0.02, 0.05], [])] == [True] * 6
    missed = [*exact[:8], second, Verdict("missed", "tune", "a", ratios=[2.0])]
    assert [held for _, held in thresholds(missed, [0.02, 0.06], [])] == [False, False, True, True, True, False]
    assert [held for _, held in thresholds([*exact, second], [], ["second"])][-1] is False


def test_gains_are_judged_by_the_half_that_nobody_builds_on() -> None:
    built_on = [Verdict(str(i), "tune", "a", 1, True, (2.9, 3.1), ratios=[2.0]) for i in range(9)]
    judged = [Verdict(str(i), "report", "a", 1, True, (1.9, 2.3), ratios=[2.0]) for i in range(3)]
    assert [held for _, held in thresholds(built_on, [], [])] == [True, True, True, False, False]
    assert [held for _, held in thresholds([*built_on, *judged], [], [])] == [True] * 5
    worse = replace(judged[0], predicted=(2.4, 2.6))
    assert [held for _, held in thresholds([*built_on, *judged, worse], [], [])] == [True, True, True, True, False]


def test_the_largest_promise_of_a_healthy_program() -> None:
    assert largest_gain([]) == 0
    assert largest_gain([finding("a"), finding("b", 1.0, 1.08), finding("c", 0.9, 1.0)]) == pytest.approx(0.04)


# ---- the runner, with others in place of the programs and of stepscope ----


def stand_in(command: list[str], program: Program) -> str:
    if "advise" in command:
        assert Path(command[2]).is_dir()
        told = {
            "gpt_scores": [finding("attention_by_hand", 1.2, 1.3, file=str(program.file), function="Attention.scores")],
            "one_thread": [finding("float64", 1.4, 1.6), finding("too_few_threads", 1.5, 1.7)],
            "healthy_mlp": [finding("float64", 1.02, 1.04)],
        }
        return json.dumps({"findings": told[program.name]})
    if "run" in command:
        of = Path(command[command.index("--out") + 1]) / program.name
        number = sum(1 for _ in of.iterdir()) if of.exists() else 0
        folder = of / f"{'Nov' if number < 2 else 'Dec'}0{number}_09-00-00"  # by name the first two come last
        folder.mkdir(parents=True)
        (folder / "run.json").write_text("{}")
        return ""
    raise AssertionError(command)


def in_turns(commands: list[list[str]], rounds: int, *_: Any) -> list[list[str]]:
    return [[f"step 0\nstep_ms {10 if '--fixed' in command else 12.5}\n"] * rounds for command in commands]


def test_the_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = gallery_run()
    monkeypatch.setattr(run, "execute", stand_in)
    monkeypatch.setattr(run, "in_turns", in_turns)
    table = tmp_path / "table.json"
    only = ["--only", "gpt_scores", "one_thread", "healthy_mlp"]
    monkeypatch.setattr(sys, "argv", ["run.py", *only, "--json", str(table), "--keep", str(tmp_path)])
    assert run.main() == 1
    said = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()]
    assert ["gpt_scores", "attention_by_hand", "1", "yes", "1.20..1.30", "1.25", "3", "0.0 %", "yes"] in said
    assert ["one_thread", "too_few_threads", "2", "no", "1.50..1.70", "1.25", "3", "28.0 %", "no"] in said
    assert ["healthy_mlp", "(healthy)", "3.0 %"] in said
    assert [
        "passed",
        "the worst error of the gain is 20 % at most (half: report)",
    ] in said  # one_thread is of the other
    assert said[-1] == ["4 passed, 2 failed"]
    rows = json.loads(table.read_text())
    assert {row["name"] for row in rows["programs"]} == {"gpt_scores", "one_thread"}
    assert rows["healthy"] == {"healthy_mlp": pytest.approx(0.03)}
    assert len(list((tmp_path / "one_thread").iterdir())) == 3  # recordings, one a round
    assert all(row["predictions"] == [row["predicted"]] * 3 for row in rows["programs"])


def test_what_is_not_known_yet_has_more_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = gallery_run()
    faulty_ms: dict[str, list[float]] = {"gpt_scores": [12.5] * 3, "one_thread": [16, 10, 16, 15, 16, 15]}

    def uneven(commands: list[list[str]], rounds: int, *_: Any) -> list[list[str]]:
        of = next(times for name, times in faulty_ms.items() if any(name in part for part in commands[0]))
        return [[f"step_ms {of.pop(0)}\n"], ["step_ms 10\n", "step_ms 8\n", "step_ms 11\n"]]

    monkeypatch.setattr(run, "execute", stand_in)
    monkeypatch.setattr(run, "in_turns", uneven)
    table = tmp_path / "table.json"
    asked = [
        "run.py",
        "--only",
        "gpt_scores",
        "one_thread",
        "healthy_mlp",
        "--keep",
        str(tmp_path),
        "--json",
        str(table),
    ]
    monkeypatch.setattr(sys, "argv", asked)
    run.main()
    said = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in said[1:4]] == ["gpt_scores", "healthy_mlp", "one_thread"]  # as they are known
    assert len(list((tmp_path / "healthy_mlp").iterdir())) == 3
    rows = {row["name"]: row for row in json.loads(table.read_text())["programs"]}
    assert rows["gpt_scores"]["ratios"] == [1.25] * 3
    assert rows["one_thread"]["ratios"] == [1.6, 1.0, 1.6, 1.5, 1.6, 1.5]  # the second one weighs on it
    assert rows["one_thread"]["measured"] == 1.55 and len(rows["one_thread"]["predictions"]) == 6
    # Asked again, without recording or measuring, it says the same.
    monkeypatch.delattr(run, "in_turns")
    anew = tmp_path / "anew.json"
    monkeypatch.setattr(sys, "argv", [*asked[:-1], str(anew), "--again", str(table)])
    run.main()
    kept = {row["name"]: row for row in json.loads(anew.read_text())["programs"]}
    assert kept == rows
    again = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(again[1:4]) == sorted(said[1:4]) and again[4:] == said[4:]


def test_what_is_known_stays_where_somebody_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = gallery_run()
    calls = 0

    def stopped(*asked: Any) -> list[list[str]]:
        nonlocal calls
        calls += 1
        if calls == 4:  # in the second round, of the second program
            raise KeyboardInterrupt
        return in_turns(*asked)

    monkeypatch.setattr(run, "execute", stand_in)
    monkeypatch.setattr(run, "in_turns", stopped)
    table = tmp_path / "table.json"
    only = ["--only", "gpt_scores", "one_thread", "healthy_mlp"]
    monkeypatch.setattr(sys, "argv", ["run.py", *only, "--json", str(table), "--keep", str(tmp_path)])
    with pytest.raises(KeyboardInterrupt):
        run.main()
    told = json.loads(table.read_text())
    assert {row["name"]: len(row["ratios"]) for row in told["programs"]} == {"gpt_scores": 2, "one_thread": 1}
    assert told["healthy"] == {"healthy_mlp": pytest.approx(0.03)}
    kept = {name: len(folders) for name, folders in told["recordings"].items()}
    assert kept == {"gpt_scores": 2, "one_thread": 2, "healthy_mlp": 1}  # one has no pair
    assert "gpt_scores" in capsys.readouterr().out
    # It can be asked again: of each the recordings that there are.
    monkeypatch.setattr(sys, "argv", ["run.py", *only, "--keep", str(tmp_path), "--again", str(table)])
    run.main()
    assert "all programs ran" not in capsys.readouterr().out
    # And continued: each has its rounds then, and what is not known has some more.
    monkeypatch.setattr(run, "in_turns", lambda *_: [["step_ms 14"], ["step_ms 8"]])
    resumed = ["--resume", str(table), "--most", "5"]
    monkeypatch.setattr(sys, "argv", ["run.py", *only, "--keep", str(tmp_path), *resumed])
    run.main()
    told = json.loads(table.read_text())
    ratios = {row["name"]: row["ratios"] for row in told["programs"]}
    assert ratios["gpt_scores"][:2] == [1.25] * 2 and ratios["one_thread"][0] == 1.25  # those there were
    assert {name: len(each) for name, each in ratios.items()} == {"gpt_scores": 5, "one_thread": 5}
    for name, count in {"gpt_scores": 5, "one_thread": 6, "healthy_mlp": 3}.items():
        assert sorted(told["recordings"][name]) == sorted(path.name for path in (tmp_path / name).iterdir())
        assert len(told["recordings"][name]) == count
    round_of = re.findall(r"round (\d): (\d) programs", capsys.readouterr().err)
    assert round_of == [("1", "3"), ("2", "3"), ("3", "2"), ("4", "1")]
    # Once more, there is nothing left to do.
    monkeypatch.delattr(run, "in_turns")
    run.main()
    assert json.loads(table.read_text()) == told and "round" not in capsys.readouterr().err


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Path, list[str]]:
    """The runner, the table of three programs in one round, and how to continue it with three rounds of one."""
    run = gallery_run()
    monkeypatch.setattr(run, "execute", stand_in)
    monkeypatch.setattr(run, "in_turns", in_turns)
    table = tmp_path / "table.json"
    keep = ["--keep", str(tmp_path)]
    only = ["--only", "gpt_scores", "one_thread", "healthy_mlp", "--rounds", "1", "--most", "1"]
    monkeypatch.setattr(sys, "argv", ["run.py", *only, *keep, "--json", str(table)])
    run.main()
    return run, table, ["run.py", *keep, "--resume", str(table), "--only", "gpt_scores"]


def test_what_is_continued_in_part_keeps_the_rest(
    measured: tuple[Any, Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, table, resumed = measured
    before = json.loads(table.read_text())
    monkeypatch.setattr(sys, "argv", resumed)
    run.main()
    after = json.loads(table.read_text())
    assert [len(row["ratios"]) for row in after["programs"]] == [3, 1]
    assert after["programs"][1] == before["programs"][1] and after["healthy"] == before["healthy"]
    assert after["recordings"]["one_thread"] == before["recordings"]["one_thread"]


def test_a_program_that_breaks_later_keeps_its_rounds(
    measured: tuple[Any, Path, list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, table, resumed = measured
    before = json.loads(table.read_text())

    def breaks(command: list[str], program: Program) -> str:
        if "run" in command:
            stand_in(command, program)  # it leaves a folder all the same
            raise RuntimeError("exit 2")
        return stand_in(command, program)

    monkeypatch.setattr(run, "execute", breaks)
    monkeypatch.setattr(sys, "argv", resumed)
    assert run.main() == 1
    assert "FAILED  all programs ran: not gpt_scores" in capsys.readouterr().out
    after = json.loads(table.read_text())
    assert after == {**before, "broken": ["gpt_scores"]}
    # What the folder has and the table does not tell of is no recording of it.
    monkeypatch.setattr(run, "execute", stand_in)
    run.main()
    assert len(json.loads(table.read_text())["programs"][0]["ratios"]) == 3


def test_what_cannot_be_continued_is_left_as_it_is(
    measured: tuple[Any, Path, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run, table, resumed = measured
    before = table.read_text()
    (tmp_path / "other").mkdir()
    monkeypatch.setattr(sys, "argv", [*resumed, "--keep", str(tmp_path / "other")])
    with pytest.raises(SystemExit, match=r"lacks 1 of the 1 recordings that .*table.json tells of"):
        run.main()
    assert table.read_text() == before
    monkeypatch.setattr(sys, "argv", resumed)
    for broken in ("[", "[]", "{}", before.replace('"steps_ms": [', '"steps_ms": [7, ')):
        table.write_text(broken)
        with pytest.raises(SystemExit, match=r"table\.json is no table that --json has written"):
            run.main()
        assert table.read_text() == broken
    table.unlink()
    with pytest.raises(SystemExit, match="FileNotFoundError"):
        run.main()


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (["--resume", "a.json"], "--resume needs --keep FOLDER"),
        (["--again", "a.json"], "--again needs --keep FOLDER"),
        (["--again", "a.json", "--resume", "a.json", "--keep", "f"], "leave out --measure and --resume"),
        (["--resume", "a.json", "--measure", "--keep", "f"], "leave out --resume"),
        (["--again", "a.json", "--measure", "--keep", "f"], "leave out --measure and --resume"),
        (["--rounds", "4", "--most", "3"], "--most has to be 4 at least"),
        (["--most", "0"], "--most has to be 3 at least"),
    ],
)
def test_options_that_do_not_go_together(
    asked: list[str], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = gallery_run()
    monkeypatch.setattr(run, "chosen", None)  # nothing is run if it is not refused
    monkeypatch.setattr(sys, "argv", ["run.py", *asked])
    with pytest.raises(SystemExit):
        run.main()
    assert why in capsys.readouterr().err


def test_a_program_that_breaks_is_told_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = gallery_run()

    def broken(command: list[str], program: Program) -> str:
        raise RuntimeError("exit 2")

    monkeypatch.setattr(run, "execute", broken)
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "healthy_mlp", "gpt_scores", "--keep", str(tmp_path)])
    assert run.main() == 1
    told = capsys.readouterr()
    assert "gpt_scores: exit 2" in told.err and "healthy_mlp: exit 2" in told.err
    assert "FAILED  all programs ran: not gpt_scores, healthy_mlp" in told.out  # in the order of the table


def test_commands_in_turns_share_the_time(tmp_path: Path) -> None:
    """Each counts what it works on a file of its own; one of them starts a process that does the same."""
    counts = "import sys, time\nwith open(sys.argv[1], 'a') as out:\n  for _ in range(int(sys.argv[2])):\n"
    counts += "    out.write(f'{time.monotonic()}\\n'); out.flush(); time.sleep(0.01)\nprint('done', sys.argv[2])"
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]], check=True)"
    files = [tmp_path / "a", tmp_path / "b"]
    commands = [
        [sys.executable, "-c", child, counts, str(files[0]), "60"],
        [sys.executable, "-c", counts, str(files[1]), "20"],
    ]
    said = turns.in_turns(commands, 1, dict(os.environ), tmp_path, 60, turn_s=0.2)
    assert said[0] == ["done 60\n"] and set(said[1]) == {"done 20\n"}
    times = sorted((float(line), file.name) for file in files for line in file.read_text().split())
    # Within a turn only one of them writes: names change far less often than lines follow one another.
    changes = sum(one[1] != other[1] for one, other in zip(times, times[1:]))
    assert 2 <= changes <= len(times) / 4


def test_what_fails_or_takes_too_long_in_turns_leaves_nothing_behind(tmp_path: Path) -> None:
    sleeps = [sys.executable, "-c", "import time; time.sleep(60)", str(tmp_path)]
    with pytest.raises(RuntimeError, match="exit 3"):
        turns.in_turns([sleeps, [sys.executable, "-c", "raise SystemExit(3)"]], 1, dict(os.environ), tmp_path, 60, 0.2)
    with pytest.raises(RuntimeError, match="not done in"):
        turns.in_turns([sleeps, sleeps], 1, dict(os.environ), tmp_path, 0.5, 0.2)
    left = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and holds(entry, str(tmp_path))]
    assert left == []


def holds(process: Path, text: str) -> bool:
    try:
        return text.encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


def test_an_unknown_name_is_told() -> None:
    done = subprocess.run(
        [sys.executable, str(GALLERY / "run.py"), "--only", "nothing"], text=True, capture_output=True
    )
    assert done.returncode and "no such program: nothing" in done.stderr


# ---- the programs ----


def three_steps(programs: list[Program]) -> dict[str, tuple[int, str]]:
    """Of both forms of each: exit code and output, by name and form."""
    asked = []
    for program in programs:
        ranks = 2 if program.needs == "ranks2" else 1
        for form in (False, True) if program.cause else (False,):
            command = program.command(form, "--steps", "3")
            arguments = command[command.index(str(program.file)) + 1 :]
            asked.append(json.dumps([f"{program.name} {form}", str(program.file), ranks, arguments]))
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("forked_programs.py"))],
        input="\n".join(asked) + "\n",
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        text=True,
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return {name: (code, said) for name, code, said in map(json.loads, done.stdout.splitlines())}


def first_loss(said: str) -> float | None:
    found = re.search(r"step +0  loss ([\d.]+)", said)
    return float(found[1]) if found else None


def they_run_and_do_the_same(programs: list[Program]) -> None:
    told = three_steps(programs)
    for program in programs:
        forms = [told[f"{program.name} {form}"] for form in ((False, True) if program.cause else (False,))]
        for code, said in forms:
            assert code == 0 and re.search(r"(?m)^step_ms [\d.]+$", said), f"{program.name}\n{said}"
        if program.name != "sorted_shards":  # a rank has other sentences there
            losses = [first_loss(said) for _, said in forms]
            assert losses[0] == pytest.approx(losses[-1], rel=0.02), program.name


COMPILED = ("watched_layers",)  # takes a compiler of C++ half a minute


@needs_torch
@pytest.mark.parametrize("half", ["tune", "report"])
def test_the_programs_run_in_both_forms(half: str) -> None:
    they_run_and_do_the_same(
        [
            program
            for program in PROGRAMS
            if program.half == half and program.needs != "cuda" and program.name not in COMPILED
        ]
    )


@needs_torch
@pytest.mark.soak
def test_what_is_compiled_runs_in_both_forms() -> None:
    they_run_and_do_the_same([by_name(name) for name in COMPILED])


@needs_torch
def test_without_a_device_a_program_for_one_says_so() -> None:
    told = three_steps([program for program in PROGRAMS if program.needs == "cuda"])
    assert told and all(code and "needs a CUDA device" in said for code, said in told.values())
