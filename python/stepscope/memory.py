"""InternEvo's way to see what fills the memory of a model: `from stepscope.memory import SimpleMemoryProfiler`.

The same arguments and methods as its own, and the same files in the folder: memory.log and five pages; beside them
memory_state.json, to the byte (docs/memory.md). Thin: what is measured, and how, is in the hooks of `stepscope run`.
The hooks of the model hold the measurement, never the profiler, so that the end of the profiler can be seen.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import os
import warnings
import weakref
from typing import Any

from ._recording import _hooks

__all__ = ["SimpleMemoryProfiler"]


class SimpleMemoryProfiler:
    """Measures from now on until `step()` was called `total_steps` times; call it after the optimizer's step.

    `model`: a module, or a ModuleList of the chunks of a pipeline. What fails is in `problems` and in the files; only a
    `total_steps` that is no whole number of at least 1 is an error here. A profiler that goes away earlier, or with the
    program, writes what it has; the files say of how many steps that is.
    """

    def __init__(self, model: Any, optimizer: Any, log_folder: str | os.PathLike[str], total_steps: int = 5) -> None:
        self._steps_left = _at_least_one(total_steps)
        self.problems: list[str] = []
        self._measurement = _Measurement(self.problems)
        with self._measurement.guard("measuring memory"):
            self._measurement.begin(model, optimizer, os.path.abspath(log_folder), self._steps_left)
        self._measurement.warn()
        self._early_end = weakref.finalize(self, _Measurement.end, self._measurement, complete=False)

    @property
    def folder(self) -> str:
        return self._measurement.folder

    def point(self, with_options: str = "", create: bool = False) -> None:
        """A record of this moment. `with_options`: "params,grads,os_params,os_state,activation_base", some, or "all";
        `create` begins the log anew."""
        with self._measurement.guard("recording the state of memory"):
            self._measurement.point(with_options, create)

    def step(self) -> None:
        """A step of the training is over."""
        if self._steps_left <= 0:
            return
        self._steps_left -= 1
        with self._measurement.guard("recording a step"):
            self._measurement.step_ended(last=self._steps_left == 0)
        if self._steps_left == 0:
            self._early_end.detach()
            self._measurement.end(complete=True)


class _Measurement:
    """Of one profiler; without a state where there is nothing to measure, or nowhere to write it."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        self.folder = ""
        self.pid = os.getpid()
        self.state: Any = None
        self.passes: Any = None
        self.over = False

    def begin(self, model: Any, optimizer: Any, folder: str, steps: int) -> None:
        self.folder = folder
        chunks = _chunks(model)
        if chunks is None:
            self.problem(
                f"nothing is measured: the model is no torch.nn.Module, but of type {type(model).__qualname__}"
            )
        elif self._has_folder():
            self._begin(chunks, optimizer, steps)

    def _has_folder(self) -> bool:
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            self.problem(f"nothing is measured: the folder cannot be made: {error}")
            return False
        return True

    def _begin(self, chunks: list[tuple[str, Any]], optimizer: Any, steps: int) -> None:
        about = _part("memory_watch").about(_part("notes").host_name(), steps)
        self.state = _part("memory_state").MemoryState(self.folder, about, lambda: [optimizer], self.problem)
        self.passes = _part("memory_passes").Passes(self.state, [module for _, module in chunks])
        self.state.begin(chunks)
        self.passes.begin()

    def warn(self) -> None:
        """Once: of what fails at the beginning, after which little or nothing is measured."""
        if self.problems:
            with contextlib.suppress(Warning):  # where the program makes errors of warnings
                warnings.warn(f"stepscope: {self.problems[0]}", RuntimeWarning, stacklevel=3)

    def point(self, options: str, create: bool) -> None:
        if self.state is None:
            return
        known = _part("memory_log").SECTIONS
        asked = [name.strip() for name in options.split(",") if name.strip()]
        for name in asked:
            if name not in (*known, "all"):
                self.problem(f'point() knows no "{name}": it is left out; known are {", ".join(known)}, and all')
        asked = [name for name in asked if name in known] if "all" not in asked else ["all"]
        self.state.look()
        self.state.point("asked", ",".join(asked), create)

    def step_ended(self, last: bool) -> None:
        if self.state is not None:
            self.state.step_ended(last=last)

    def end(self, complete: bool) -> None:
        if self.over or self.state is None or os.getpid() != self.pid:  # a forked child has no part in it
            return
        self.over = True
        with self.guard("writing the state of memory"):
            if self.passes is not None:
                self.passes.end()
            self.state.end(complete=complete)
        with self.guard("making the pages"):
            self._make_pages(complete)

    def _make_pages(self, complete: bool) -> None:
        from ._errors import StepscopeError
        from ._library import library

        try:
            library().memory_pages(os.fsencode(self.folder))
        except StepscopeError as error:
            command = f"stepscope report {self.folder} --only memory_state --html {self.folder}"
            self.problem(f"the pages were not made: {error}; make them with: {command}")
            self.state.write(complete=complete)

    def problem(self, sentence: str) -> None:
        if sentence not in self.problems:
            self.problems.append(sentence)
            if self.state is not None:
                self.state.record.note(sentence)

    def guard(self, doing: str) -> _Guard:
        return _Guard(doing, self.problem)


class _Guard:
    """What goes wrong on our side is no error of the training."""

    def __init__(self, doing: str, problem: Any) -> None:
        self._doing, self._problem = doing, problem

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if isinstance(error, Exception):
            self._problem(f"{self._doing} failed: {type(error).__name__}: {error}")
        return isinstance(error, Exception)


def _at_least_one(total_steps: Any) -> int:
    try:
        steps = operator.index(total_steps)
    except TypeError:
        steps = 0
    if steps < 1:
        raise ValueError(f"total_steps is {total_steps!r}: a whole number of at least 1 is wanted, such as 5")
    return steps


def _part(name: str) -> Any:
    """Of the hooks, from wherever this process has them."""
    _hooks()
    return importlib.import_module(f"_stepscope_hooks.{name}")


def _chunks(model: Any) -> list[tuple[str, Any]] | None:
    """Each with its path; None: it is no model."""
    import torch

    if not isinstance(model, torch.nn.Module):
        return None
    if isinstance(model, torch.nn.ModuleList) and len(model) > 1:
        return [(str(number), chunk) for number, chunk in enumerate(model)]
    return [("", model)]
