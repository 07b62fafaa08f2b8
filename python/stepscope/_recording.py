"""Recordings that a program asks for in its own code: `with stepscope.profile():`, `stepscope.step()`, and a handler
for those who keep `torch.profiler.profile`. Thin: the hooks of `stepscope run` do the recording (docs/python.md).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Callable, TypeVar

from ._run import Run, open

__all__ = ["profile", "step", "trace_handler"]

Function = TypeVar("Function", bound=Callable[..., Any])

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FEATURES = ("shapes", "memory", "modules", "stack", "flops", "execution-trace")
_active: profile | None = None  # torch records one profile at a time


class profile:
    """Records what runs inside the block, in this process, and writes it into a run folder.

    with stepscope.profile() as recording:
        for batch in loader:
            train(batch)
            recording.step()
    recording.run().report()

    As a decorator it records every call of the function. `out` is the folder of all runs (else STEPSCOPE_OUT, else
    ./stepscope), `folder` the run folder itself; `with_` is a list as in `stepscope run --with`; with `enabled=False`
    nothing happens. Under `stepscope run` the recording goes into the folder of that run, unless `folder` names
    another. Raises RuntimeError where another profiler records already.
    """

    def __init__(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        with_: str = "shapes,memory,modules",
        enabled: bool = True,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        if callable(out):
            raise TypeError("stepscope.profile: write @stepscope.profile() with the brackets")
        unknown = [part for part in with_.split(",") if part and part not in _FEATURES]
        if unknown:
            raise ValueError(f"stepscope.profile: with_ knows no {unknown[0]!r}; it knows {', '.join(_FEATURES)}")
        self.out, self.name, self.with_, self.enabled = out, name, with_, enabled
        self.into = folder
        self.folder: str | None = None  # the run folder, once recording began
        self._first = 0  # the number of the first step
        self._step = 0  # of the one that runs
        self._recorder: Any = None
        self._notes: Any = None  # what this process said in the folder before

    def __enter__(self) -> profile:
        global _active
        if not self.enabled:
            return self
        if _active is not None:
            raise RuntimeError("stepscope.profile: a recording runs already in this process; end that one first")
        hooks = _hooks()
        running = hooks._capture
        if running is not None and running.other is not None:
            running.other.comes()
        self.folder = self._choose_folder()
        settings = hooks.settings.Settings(self.folder, f"steps=none with={self.with_}")
        if running is not None and running.notes.run_folder == self.folder:
            self._notes = running.notes
        elif self._notes is None or self._notes.run_folder != self.folder:
            self._notes = hooks.notes.Notes(self.folder)
        notes = self._notes
        recorder = hooks.recorder.Recorder(settings, notes, "steps", len(notes.fields["windows"]))
        recorder.start(hooks.roots.outermost(None)[0] if "modules" in settings.features else [])
        recorder.begin_step(self._first)
        self._recorder, self._step = recorder, self._first
        _active = self
        return self

    def _choose_folder(self) -> str:
        if self.into is None:
            return os.environ.get("STEPSCOPE_RUN") or _run_folder(self.out, self.name)
        os.makedirs(self.into, exist_ok=True)
        return os.path.abspath(self.into)

    def step(self) -> None:
        """The end of one step and the begin of the next."""
        self._begin(self._step + 1)

    def _begin(self, step: int) -> None:
        global _active
        if self._recorder is None:
            return
        self._step = step
        self._recorder.end_step()
        if self._recorder.in_parts and self._recorder.part_is_due(0.0) and not self._recorder.cut():
            self._recorder.notes.problem(f"the recording ended before step {step}: a range did not end")
            self._recorder = _active = None
            return
        self._recorder.begin_step(step)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for spool in self._stop(complete=kind is None):
            spool.ended(wait=True)

    def _stop(self, complete: bool) -> list[Any]:
        """Ends the recording; its files may still be compressed."""
        global _active
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return []
        _active = None
        recorder.end_step(whole=self._step == self._first)  # a block without step() is one step
        recorder.stop()
        recorder.export(complete)
        rank, world, source = recorder.identity
        recorder.notes.write(rank=rank, world_size=world, rank_source=source, role="rank", steps_seen=self._step)
        return list(recorder.spools)

    def __call__(self, function: Function) -> Function:
        def again() -> profile:
            return profile(self.out, name=self.name, with_=self.with_, enabled=self.enabled, folder=self.into)

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with again():
                return function(*args, **kwargs)

        @functools.wraps(function)
        def recorded_generator(*args: Any, **kwargs: Any) -> Any:
            with again():
                return (yield from function(*args, **kwargs))

        @functools.wraps(function)
        async def recorded_coroutine(*args: Any, **kwargs: Any) -> Any:
            with again():
                return await function(*args, **kwargs)

        if inspect.isasyncgenfunction(function):
            raise TypeError("stepscope.profile: an asynchronous generator is recorded with a block inside of it")
        if inspect.isgeneratorfunction(function):
            return recorded_generator  # type: ignore[return-value]
        if inspect.iscoroutinefunction(function):
            return recorded_coroutine  # type: ignore[return-value]
        return recorded  # type: ignore[return-value]

    def run(self) -> Run:
        """What was recorded, opened."""
        if self.folder is None or self._recorder is not None:
            raise RuntimeError("stepscope.profile: nothing is recorded yet; leave the block first")
        return open(self.folder)


def step() -> None:
    """The end of a step of the recording that runs in this process; without one, nothing."""
    if _active is not None:
        _active.step()


def trace_handler(out: str | os.PathLike[str] | None = None, *, name: str | None = None) -> Callable[[Any], None]:
    """For `torch.profiler.profile(on_trace_ready=stepscope.trace_handler())`: writes into a run folder, as `stepscope
    run` does. The folder is printed nowhere; it is `handler.folder`.
    """
    folder = os.environ.get("STEPSCOPE_RUN") or _run_folder(out, name)

    def handler(profiler: Any) -> None:
        hooks = _hooks()
        rank = hooks.process.rank()[0]
        target = Path(folder, "traces", hooks.parallel.folder_name(rank))
        target.mkdir(parents=True, exist_ok=True)
        process = hooks.notes.Notes(folder).name
        spool = hooks.spool.Spool(str(target / f"{process}.{time.time_ns()}.pt.trace.json.gz"))
        spool.export(profiler)
        spool.ended(wait=True)

    handler.folder = folder  # type: ignore[attr-defined]
    return handler


def _hooks() -> ModuleType:
    """The hooks of this process, which `stepscope run` may have loaded from another folder."""
    known = sys.modules.get("_stepscope_hooks")
    if known is None:
        package = Path(__file__).with_name("hooks") / "_stepscope_hooks"
        spec = importlib.util.spec_from_file_location(
            "_stepscope_hooks", package / "__init__.py", submodule_search_locations=[str(package)]
        )
        if spec is None or spec.loader is None:
            raise RuntimeError(f"stepscope: the hooks are not in {package}; install the package again")
        known = importlib.util.module_from_spec(spec)
        sys.modules["_stepscope_hooks"] = known
        spec.loader.exec_module(known)
    for part in (
        "flop_measure",
        "flop_report",
        "modules",
        "notes",
        "parallel",
        "process",
        "recorder",
        "roots",
        "settings",
        "spool",
    ):
        importlib.import_module(f"_stepscope_hooks.{part}")
    return known


def _run_folder(out: str | os.PathLike[str] | None, name: str | None) -> str:
    """<out>/<job>/<start>, the same for all ranks that one launcher started on this host."""
    parent = Path(out or os.environ.get("STEPSCOPE_OUT") or "stepscope").absolute() / (name or _job_name())
    of_launcher = _start_of_parent() if "RANK" in os.environ else None
    started = time.localtime(of_launcher if of_launcher is not None else time.time())
    stamp = _MONTHS[started.tm_mon - 1] + time.strftime("%d_%H-%M-%S", started)
    for number in range(1, 10_000):
        folder = parent / (stamp if number == 1 else f"{stamp}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)
            _write_manifest(folder)
            return str(folder)
        if of_launcher is not None:
            return str(folder)
    raise RuntimeError(f"stepscope: too many runs started in the same second in {parent}")


def _job_name() -> str:
    program = Path(sys.argv[0] if getattr(sys, "argv", None) else "").stem
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in program).lstrip(".-") or "notebook"


def _start_of_parent() -> float | None:
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        ticks = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19])
        lines = Path("/proc/stat").read_text().splitlines()
        booted = next(int(line.split()[1]) for line in lines if line.startswith("btime"))
        return booted + ticks / os.sysconf("SC_CLK_TCK")  # the same number in every child
    return None


def _write_manifest(folder: Path) -> None:
    about = {
        "schema_version": 1,
        "job": folder.parent.name,
        "command": [sys.argv[0]] if getattr(sys, "argv", None) else [],  # arguments may hold secrets
        "directory": os.getcwd(),
        "started_unix_ns": time.time_ns(),
        "processes": [],
    }
    (folder / "run.json").write_text(json.dumps(about, indent=1) + "\n")
