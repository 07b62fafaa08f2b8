#!/usr/bin/env python3
"""Records every program of the gallery, asks what is wrong with it, and compares that with what is known and measured.

examples/gallery/run.py [--only NAME...] [--half tune|report] [--rounds N] [--most N] [--measure]
examples/gallery/run.py --keep FOLDER --again FILE: judges kept recordings once more
examples/gallery/run.py --keep FOLDER --resume FILE: continues a run that was stopped, or gives it more rounds
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from catalog import PROGRAMS, Program
from turns import in_turns
from verdicts import Finding, Verdict, judge, largest_gain, of_all, summarize, thresholds

ROOT = Path(__file__).resolve().parents[2]
STEPSCOPE = os.environ.get("STEPSCOPE_CLI", str(ROOT / "build" / "stepscope"))
HEADER = ("program", "expected cause", "named", "place", "predicted", "measured", "rounds", "error", "in range")
LIMIT_S = 300  # of a program that takes about ten


def environment(program: Program) -> dict[str, str]:
    """That of the caller, less what would change how the program runs or is recorded."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("STEPSCOPE_", "OMP_", "MKL_")) or k == "STEPSCOPE_CLI"
    }
    if program.threads:
        kept["OMP_NUM_THREADS"] = str(program.threads)
    # Some machines tell every Python to keep nothing: each start would compile torch's Python anew.
    if kept.pop("PYTHONDONTWRITEBYTECODE", None):
        kept.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / "build" / "pycache"))
    return kept


def execute(command: list[str], program: Program) -> str:
    done = subprocess.run(
        command, env=environment(program), text=True, capture_output=True, timeout=LIMIT_S, check=False, cwd=ROOT
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def step_ms(said: str) -> float:
    """Ranks that wait for one another say the same."""
    return max(float(one) for one in re.findall(r"(?m)^step_ms ([\d.]+)$", said))


@dataclass(frozen=True)
class Pair:
    """Step of both forms in one round, in ms, and how often as fast the fixed one is."""

    faulty_ms: float
    fixed_ms: float

    @property
    def ratio(self) -> float:
        return self.faulty_ms / self.fixed_ms


def measure(program: Program) -> Pair:
    """Both forms in turns: the slower one once, the other one meanwhile as often as it can."""
    forms = [program.command(fixed) for fixed in (False, True)]
    said = in_turns(forms, 1, environment(program), ROOT, LIMIT_S)
    return Pair(*(statistics.median(map(step_ms, runs)) for runs in said))


def record(program: Program, folder: Path) -> Path:
    """Where the recording is: the folder may have others, of other months, so that no order of names tells."""
    before = set((folder / program.name).glob("*/run.json"))
    out = ["--config", "off", "--out", str(folder), "--name", program.name]
    execute([STEPSCOPE, "run", *out, *program.record, "--", *program.command(fixed=False)], program)
    made = set((folder / program.name).glob("*/run.json")) - before
    if len(made) != 1:
        raise RuntimeError(f"{folder / program.name} has {len(made)} new recordings in place of one")
    return made.pop().parent


def diagnose(program: Program, recording: Path) -> list[Finding]:
    """What is wrong with it."""
    findings: list[Finding] = json.loads(execute([STEPSCOPE, "advise", str(recording), "--json"], program))["findings"]
    return findings


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def cells(verdict: Verdict) -> tuple[str, ...]:
    predicted = verdict.predicted
    return (
        verdict.name,
        verdict.cause,
        str(verdict.position or "–"),
        "yes" if verdict.place else "no",
        f"{predicted[0]:.2f}..{predicted[1]:.2f}" if predicted else "–",
        f"{verdict.measured:.2f}" if verdict.measured else "–",
        str(len(verdict.ratios) or "–"),
        percent(verdict.error),
        "–" if verdict.inside is None else "yes" if verdict.inside else "no",
    )


def line(parts: tuple[str, ...]) -> str:
    return "  ".join(part.ljust(width) for part, width in zip(parts, (26, 24, 5, 5, 12, 8, 6, 8, 8))).rstrip()


PRODUCT = """
import time, torch
def took(dtype):
    a = torch.ones(512, 512, dtype=dtype)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return sorted(times)[10]
print(took(torch.float32) > 1.2 * took(torch.bfloat16))
"""
NEEDS = {  # what torch is asked, and what is said where it has none
    "cuda": ("import torch; print(torch.cuda.is_available())", "torch sees no CUDA device"),
    "bfloat16": (PRODUCT, "products in bfloat16 are no faster here"),
}


def is_here(need: str) -> bool:
    """Where torch cannot be asked there is none."""
    asked = subprocess.run([sys.executable, "-c", NEEDS[need][0]], text=True, capture_output=True)
    return asked.returncode == 0 and asked.stdout.strip() == "True"


def chosen(args: argparse.Namespace, earlier: Earlier) -> list[Program]:
    unknown = set(args.only or ()) - {program.name for program in PROGRAMS}
    if unknown:
        sys.exit(f"no such program: {', '.join(sorted(unknown))}")
    found = [program for program in PROGRAMS if args.half in (None, program.half)]
    found = [program for program in found if not args.only or program.name in args.only]
    for need, (_, why) in NEEDS.items():
        left = [program.name for program in found if program.needs == need and program.name not in earlier.recordings]
        if left and not args.again and not is_here(need):
            print(f"Left out, since {why}: {', '.join(left)}", flush=True)
            found = [program for program in found if program.name not in left]
    return found


def only_measure(programs: list[Program], rounds: int) -> None:
    print(f"{'program':26}  {'faulty ms':>9}  {'fixed ms':>9}  ratio")
    for program in programs:
        if program.cause:
            pairs = [measure(program) for _ in range(rounds)]
            steps = [statistics.median(each) for each in zip(*((pair.faulty_ms, pair.fixed_ms) for pair in pairs))]
            ratio = statistics.median(pair.ratio for pair in pairs)
            print(f"{program.name:26}  {steps[0]:9.2f}  {steps[1]:9.2f}  {ratio:5.2f}", flush=True)


@dataclass
class Known:
    """Of one program."""

    told: dict[str, list[Finding]] = field(default_factory=dict)  # what each recording shows, by its folder's name
    pairs: list[Pair] = field(default_factory=list)


@dataclass
class Earlier:
    """A table as write() left it, of a run before."""

    file: Path | None = None
    recordings: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)  # of faulty programs
    healthy: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, file: Path) -> Earlier:
        try:
            document = json.loads(file.read_text())
            rows = {row["name"]: row for row in document["programs"]}
            recordings = {name: list(folders) for name, folders in document["recordings"].items()}
            for row in rows.values():
                for faulty_ms, fixed_ms in row["steps_ms"]:
                    Pair(float(faulty_ms), float(fixed_ms))
            return cls(file, recordings, rows, dict(document["healthy"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            sys.exit(f"{file} is no table that --json has written: {type(error).__name__}: {error}")

    def folders(self, program: Program, keep: Path) -> list[Path]:
        return [keep / program.name / name for name in self.recordings[program.name]]

    def need(self, programs: list[Program], keep: Path) -> None:
        """Ends the process where a recording is not there: nothing is lost by a folder that is another one."""
        told = [program for program in programs if program.name in self.recordings]
        folders = [folder for program in told for folder in self.folders(program, keep)]
        if gone := [folder for folder in folders if not (folder / "run.json").is_file()]:
            told_of = f"{len(gone)} of the {len(folders)} recordings that {self.file} tells of"
            sys.exit(f"{keep} lacks {told_of}, as {gone[0]}: is it the folder that --keep had then?")

    def known(self, program: Program, keep: Path) -> Known:
        """Each recording is asked once more."""
        pairs = [Pair(*steps) for steps in self.rows.get(program.name, {}).get("steps_ms", [])]
        return Known({folder.name: diagnose(program, folder) for folder in self.folders(program, keep)}, pairs)


@dataclass
class Table:
    rounds: int  # in which each program is recorded and measured, at least
    most: int  # a gain that is not known behind so many rounds stays so
    file: Path | None = None  # where all of it is written behind each round
    earlier: Earlier = field(default_factory=Earlier)
    known: dict[str, Known] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    healthy: dict[str, float] = field(default_factory=dict)  # the largest gain promised
    broken: list[str] = field(default_factory=list)

    def verdict(self, program: Program) -> Verdict:
        """By all that is known by now."""
        known, empty = self.known[program.name], Verdict(program.name, program.half, program.cause)
        verdict = of_all([judge(replace(empty), findings, program.places()) for findings in known.told.values()])
        verdict.steps_ms = [(pair.faulty_ms, pair.fixed_ms) for pair in known.pairs]
        verdict.ratios = [pair.ratio for pair in known.pairs]
        return verdict

    def promised(self, program: Program) -> float:
        return max(map(largest_gain, self.known[program.name].told.values()))

    def once_more(self, program: Program, folder: Path) -> None:
        recording = record(program, folder)
        told = diagnose(program, recording)
        known = self.known.setdefault(program.name, Known())
        known.told[recording.name] = told
        if program.cause:
            known.pairs.append(measure(program))

    def is_known(self, program: Program) -> bool:
        known = self.known[program.name]
        rounds = len(known.pairs if program.cause else known.told)
        enough = rounds >= self.rounds and (not program.cause or self.verdict(program).is_known())
        return enough or rounds >= self.most

    def close(self, program: Program) -> None:
        if program.cause:
            self.verdicts.append(self.verdict(program))
            print(line(cells(self.verdicts[-1])), flush=True)
        else:
            self.healthy[program.name] = self.promised(program)
            print(line((program.name, "(healthy)", "", "", percent(self.healthy[program.name]))), flush=True)

    def failed(self, program: Program, error: Exception) -> None:
        print(f"{program.name}: {error}", file=sys.stderr, flush=True)
        self.broken.append(program.name)

    def fill(self, programs: list[Program], folder: Path) -> None:
        """In each round every program is recorded and measured: a machine that is slow for some minutes then takes one
        round from many programs, and not all of one. Those whose gain is not known by then have further rounds."""
        print(line(HEADER), flush=True)
        try:
            self.in_rounds(programs, folder)
        finally:  # whoever stops it keeps what is known by then
            closed = {verdict.name for verdict in self.verdicts} | set(self.healthy)
            for program in programs:
                if program.name in self.known and program.name not in closed:
                    self.close(program)

    def in_rounds(self, programs: list[Program], folder: Path) -> None:
        left, number = [], 0
        for program in programs:
            if program.name in self.known and self.is_known(program):
                self.close(program)
            else:
                left.append(program)
        while left:
            number += 1
            print(f"round {number}: {len(left)} programs", file=sys.stderr, flush=True)
            unknown = []
            for program in left:
                try:
                    self.once_more(program, folder)
                    if self.is_known(program):
                        self.close(program)
                    else:
                        unknown.append(program)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    self.failed(program, error)
            left = unknown
            self.write()

    def ask(self, programs: list[Program], keep: Path, tell: Callable[[Program], None]) -> list[Program]:
        """What is known from before of those that it tells of; the others, less what could not be asked."""
        self.earlier.need(programs, keep)
        others = []
        for program in programs:
            if program.name not in self.earlier.recordings:
                others.append(program)
                continue
            try:
                self.known[program.name] = self.earlier.known(program, keep)
                tell(program)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                self.failed(program, error)
        return others

    def fill_again(self, programs: list[Program], keep: Path) -> None:
        """Each is judged once more by what is known of it."""
        print(line(HEADER), flush=True)
        if left := self.ask(programs, keep, self.close):
            names = ", ".join(program.name for program in left)
            print(f"Left out, since {self.earlier.file} does not tell of them: {names}", flush=True)

    def resume(self, programs: list[Program], keep: Path) -> None:
        self.ask(programs, keep, lambda program: print(f"asked: {program.name}", file=sys.stderr, flush=True))
        self.fill([program for program in programs if program.name not in self.broken], keep)

    def write(self) -> None:
        """All that is known, and what was known from before of those of which nothing is now."""
        if self.file is None:
            return
        known = [program for program in PROGRAMS if program.name in self.known]
        rows, healthy = dict(self.earlier.rows), dict(self.earlier.healthy)
        for program in known:
            if program.cause:
                one = self.verdict(program)
                row = {**asdict(one), "measured": one.measured, "error": one.error, "inside": one.inside}
                rows[program.name] = row
            else:
                healthy[program.name] = self.promised(program)
        recordings = {**self.earlier.recordings, **{name: list(one.told) for name, one in self.known.items()}}
        document = {
            "recordings": recordings,
            "programs": list(rows.values()),
            "healthy": healthy,
            "broken": self.broken,
        }
        whole = self.file.with_name(self.file.name + ".part")  # so that who stops it finds one or the other
        whole.write_text(json.dumps(document, indent=1) + "\n")
        whole.replace(self.file)

    def tell(self) -> int:
        """The last lines; how many of the promises failed."""
        print()
        for half in ("tune", "report", None):
            summary = summarize([verdict for verdict in self.verdicts if half in (None, verdict.half)])
            if summary.count:
                errors = f"median {percent(summary.median_error)}, worst {percent(summary.worst_error)}"
                print(
                    f"{half or 'all':6}  {summary.count:2} programs  first {percent(summary.first)}"
                    f"  first three {percent(summary.three)}  place {percent(summary.place)}"
                    f"  error: {errors}  unpriced {summary.unpriced}"
                )
        if self.healthy:
            worst = max(self.healthy, key=lambda name: self.healthy[name])
            print(
                f"healthy {len(self.healthy)} programs  largest gain promised {percent(self.healthy[worst])} ({worst})"
            )
        checks = thresholds(self.verdicts, list(self.healthy.values()), self.broken)
        for text, held in checks:
            print(f"{'passed' if held else 'FAILED'}  {text}")
        failed = sum(not held for _, held in checks)
        print(f"{len(checks) - failed} passed, {failed} failed")
        return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--half", choices=("tune", "report"), help="one to build on, one to be judged by")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="how often each is recorded and both of its forms measured, at least (3)",
    )
    parser.add_argument("--most", type=int, metavar="N", help="how often at most (twice --rounds)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the recordings stay")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the table there")
    parser.add_argument("--measure", action="store_true", help="measure the pairs alone; nothing is recorded")
    parser.add_argument(
        "--again",
        type=Path,
        metavar="FILE",
        help="record and measure nothing: judge what is in --keep FOLDER, by what FILE of --json has measured",
    )
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="continue from what is in --keep FOLDER and FILE of --json (which has the new table too, unless --json "
        "names another): what has not had its rounds or is not known yet gets more",
    )
    args = parser.parse_args()
    for name, file in (("--again", args.again), ("--resume", args.resume)):
        if file and not args.keep:
            parser.error(f"{name} needs --keep FOLDER, where the recordings are")
    if args.again and (args.measure or args.resume):
        parser.error("--again measures nothing: leave out --measure and --resume")
    if args.resume and args.measure:
        parser.error("--measure keeps nothing to go on from: leave out --resume")
    if args.rounds < 1:
        parser.error("--rounds has to be 1 at least")
    most = 2 * args.rounds if args.most is None else args.most
    if most < args.rounds:
        parser.error(f"--most has to be {args.rounds} at least, as --rounds")
    before = args.again or args.resume
    earlier = Earlier.of(before) if before else Earlier()
    programs = chosen(args, earlier)
    if args.measure:
        only_measure(programs, args.rounds)
        return 0
    table = Table(args.rounds, most, args.json or args.resume, earlier)
    try:
        if args.again:
            table.fill_again(programs, args.keep)
        elif args.resume:
            table.resume(programs, args.keep)
        else:
            with tempfile.TemporaryDirectory(prefix="gallery-") as scratch:
                table.fill(programs, args.keep or Path(scratch))
    finally:
        table.write()
    return 1 if table.tell() else 0


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that what runs is ended too, and what is known is kept
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    sys.exit(main())
