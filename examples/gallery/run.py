#!/usr/bin/env python3
"""Records every program of the gallery, asks what is wrong with it, and compares that with what is known and measured.

examples/gallery/run.py [--only NAME...] [--half tune|report] [--rounds N] [--most N] [--measure]
examples/gallery/run.py --keep FOLDER --again FILE: judges kept recordings once more
examples/gallery/run.py --keep FOLDER --resume FILE: goes on with a run that was stopped, or that is to have more rounds
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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

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


def record(program: Program, folder: Path) -> None:
    out = ["--config", "off", "--out", str(folder), "--name", program.name]
    execute([STEPSCOPE, "run", *out, *program.record, "--", *program.command(fixed=False)], program)


def diagnose(program: Program, recording: Path) -> list[Finding]:
    """What is wrong with it."""
    findings: list[Finding] = json.loads(execute([STEPSCOPE, "advise", str(recording), "--json"], program))["findings"]
    return findings


def recordings(program: Program, folder: Path, count: int) -> list[Path]:
    """Its last ones: the folder may have older ones."""
    found = sorted(path.parent for path in (folder / program.name).glob("*/run.json"))[-count:]
    if len(found) < count:
        raise RuntimeError(f"{folder / program.name} holds {len(found)} recordings of {count}")
    return found


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


def chosen(args: argparse.Namespace) -> list[Program]:
    unknown = set(args.only or ()) - {program.name for program in PROGRAMS}
    if unknown:
        sys.exit(f"no such program: {', '.join(sorted(unknown))}")
    found = [program for program in PROGRAMS if args.half in (None, program.half)]
    found = [program for program in found if not args.only or program.name in args.only]
    for need, (_, why) in NEEDS.items():
        left = [program.name for program in found if program.needs == need and not args.again]
        if left and not is_here(need):
            print(f"Left out, since {why}: {', '.join(left)}", flush=True)
            found = [program for program in found if program.needs != need]
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
class Table:
    rounds: int  # in which each program is recorded and measured, at least
    most: int  # a gain that is not known behind so many rounds stays so
    told: dict[str, list[list[Finding]]] = field(default_factory=dict)  # of each program what its recordings show
    pairs: dict[str, list[Pair]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    healthy: dict[str, float] = field(default_factory=dict)  # the largest gain promised
    broken: list[str] = field(default_factory=list)

    def verdict(self, program: Program) -> Verdict:
        """By all that is known by now."""
        known = Verdict(program.name, program.half, program.cause)
        verdict = of_all([judge(replace(known), findings, program.places()) for findings in self.told[program.name]])
        pairs = self.pairs.get(program.name, [])
        verdict.steps_ms = [(pair.faulty_ms, pair.fixed_ms) for pair in pairs]
        verdict.ratios = [pair.ratio for pair in pairs]
        return verdict

    def once_more(self, program: Program, folder: Path) -> None:
        record(program, folder)
        self.told.setdefault(program.name, []).append(diagnose(program, *recordings(program, folder, 1)))
        if program.cause:
            self.pairs.setdefault(program.name, []).append(measure(program))

    def is_known(self, program: Program) -> bool:
        rounds = len(self.pairs.get(program.name, []) if program.cause else self.told[program.name])
        enough = rounds >= self.rounds and (not program.cause or self.verdict(program).is_known())
        return enough or rounds >= self.most

    def close(self, program: Program) -> None:
        if program.cause:
            self.verdicts.append(self.verdict(program))
            print(line(cells(self.verdicts[-1])), flush=True)
        else:
            self.healthy[program.name] = max(map(largest_gain, self.told[program.name]))
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
            closed = {verdict.name for verdict in self.verdicts} | set(self.healthy) | set(self.broken)
            for program in programs:
                if program.name in self.told and program.name not in closed:
                    self.close(program)

    def in_rounds(self, programs: list[Program], folder: Path) -> None:
        left, number = [], 0
        for program in programs:
            if program.name in self.told and self.is_known(program):
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

    def read(self, programs: list[Program], folder: Path, measured: Path) -> None:
        """What is known of each: by its recordings in `folder`, which are asked once more, and by its pairs in
        `measured`, as write() left it."""
        told = json.loads(measured.read_text())
        made: dict[str, int] = told["recordings"]
        self.pairs = {row["name"]: [Pair(*steps) for steps in row["steps_ms"]] for row in told["programs"]}
        for program in [one for one in programs if one.name in made]:
            try:
                kept = recordings(program, folder, made[program.name])
                self.told[program.name] = [diagnose(program, recording) for recording in kept]
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                self.failed(program, error)

    def fill_again(self, programs: list[Program], folder: Path, measured: Path) -> None:
        """Each is judged once more by what is known of it."""
        self.read(programs, folder, measured)
        if left := [program.name for program in programs if program.name not in [*self.told, *self.broken]]:
            print(f"Left out, since {measured} does not tell of them: {', '.join(left)}", flush=True)
        print(line(HEADER), flush=True)
        for program in [one for one in programs if one.name in self.told]:
            self.close(program)

    def write(self, file: Path) -> None:
        rows = [
            {**asdict(one), "measured": one.measured, "error": one.error, "inside": one.inside} for one in self.verdicts
        ]
        made = {name: len(self.told[name]) for name in [*(one.name for one in self.verdicts), *self.healthy]}
        document = {"recordings": made, "programs": rows, "healthy": self.healthy, "broken": self.broken}
        file.write_text(json.dumps(document, indent=1) + "\n")

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
    parser.add_argument("--most", type=int, metavar="N", help="how often at most, until its gain is known (2 x rounds)")
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
        help="go on from what is in --keep FOLDER and FILE of --json: what has not had its rounds or is not known "
        "yet has more of them",
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
    most = args.most or 2 * args.rounds
    if most < args.rounds:
        parser.error(f"--most has to be {args.rounds} at least, as --rounds")
    programs = chosen(args)
    if args.measure:
        only_measure(programs, args.rounds)
        return 0
    table = Table(args.rounds, most)
    if args.resume:  # before anything is written: FILE may be the same
        table.read(programs, args.keep, args.resume)
        programs = [program for program in programs if program.name not in table.broken]
    try:
        if args.again:
            table.fill_again(programs, args.keep, args.again)
        else:
            with tempfile.TemporaryDirectory(prefix="gallery-") as scratch:
                table.fill(programs, args.keep or Path(scratch))
    finally:
        if args.json:
            table.write(args.json)
    return 1 if table.tell() else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended too
    sys.exit(main())
