"""InternEvo's way to see what fills the memory of a model: `from stepscope.memory import SimpleMemoryProfiler`.

The same arguments and methods as its own, and the same files in the folder: memory.log and five pages; beside them
memory_state.json, to the byte (docs/memory.md). Thin: what is measured, and how, is in the hooks of `stepscope run`.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from ._recording import _hooks

__all__ = ["SimpleMemoryProfiler"]


class SimpleMemoryProfiler:
    """Measures from now on until `step()` was called `total_steps` times; call it after the optimizer's step.

    `model`: a module, or a ModuleList of the chunks of a pipeline. What fails is in `problems` and in the files; only a
    folder that cannot be made is an error here.
    """

    def __init__(self, model: Any, optimizer: Any, log_folder: str | os.PathLike[str], total_steps: int = 5) -> None:
        self.folder = os.path.abspath(log_folder)
        os.makedirs(self.folder, exist_ok=True)
        self.problems: list[str] = []
        self._steps_left = total_steps
        self._passes: Any = None
        about = _part("memory_watch").about(_part("notes").host_name(), total_steps)
        self._state = _part("memory_state").MemoryState(self.folder, about, lambda: [optimizer], self._problem)
        with self._guard("measuring memory"):
            chunks = _chunks(model)
            self._passes = _part("memory_passes").Passes(self._state, [module for _, module in chunks])
            self._state.begin(chunks)
            self._passes.begin()

    def point(self, with_options: str = "", create: bool = False) -> None:
        """A record of this moment. `with_options`: "params,grads,os_params,os_state,activation_base", some, or "all";
        `create` begins the log anew."""
        with self._guard("recording the state of memory"):
            self._state.look()
            self._state.point("asked", with_options, create)

    def step(self) -> None:
        """A step of the training is over."""
        if self._steps_left <= 0:
            return
        self._steps_left -= 1
        with self._guard("recording a step"):
            self._state.step_ended(last=self._steps_left == 0)
        if self._steps_left == 0:
            self._end()

    def _end(self) -> None:
        with self._guard("writing the state of memory"):
            if self._passes is not None:
                self._passes.end()
            self._state.end(complete=True)
        with self._guard("making the pages"):
            self._make_pages()

    def _make_pages(self) -> None:
        from ._errors import StepscopeError
        from ._library import library

        try:
            library().memory_pages(os.fsencode(self.folder))
        except StepscopeError as error:
            command = f"stepscope report {self.folder} --only memory_state --html {self.folder}"
            self._problem(f"the pages were not made: {error}; make them with: {command}")
            self._state.write(complete=True)

    def _problem(self, sentence: str) -> None:
        if sentence not in self.problems:
            self.problems.append(sentence)
            self._state.record.note(sentence)

    def _guard(self, doing: str) -> _Guard:
        return _Guard(doing, self._problem)


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


def _part(name: str) -> Any:
    """Of the hooks, from wherever this process has them."""
    _hooks()
    return importlib.import_module(f"_stepscope_hooks.{name}")


def _chunks(model: Any) -> list[tuple[str, Any]]:
    import torch

    if isinstance(model, torch.nn.ModuleList) and len(model) > 1:
        return [(str(number), chunk) for number, chunk in enumerate(model)]
    return [("", model)]
