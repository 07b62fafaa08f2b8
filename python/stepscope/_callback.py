"""What the callbacks for trainers share (huggingface.py, lightning.py): chosen steps of a training are recorded, with
the trainer's own step numbers, by the hooks that `stepscope.profile` uses.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from typing import Any

from ._recording import _hooks, _run_folder, profile

__all__ = ["StepRecording"]


class StepRecording:
    """`at(step)` is called at each boundary of steps, with how many are done; `last`: no more follow."""

    def __init__(self, steps: str, out: str | os.PathLike[str] | None, name: str | None, with_: str) -> None:
        self.windows = [_window(part) for part in steps.split(",")]
        self.out, self.name, self.with_ = out, name, with_
        self.folder: str | None = None  # the run folder, of all windows
        self._notes: Any = None  # of this process, on all windows
        self._off = False
        self._at: int | None = None
        self._running: tuple[profile, tuple[int, int]] | None = None
        self._spools: list[Any] = []  # of windows that are over: compressed meanwhile

    def new_folder(self) -> str:
        """One that is there, for all ranks; trainers that can tell the others do."""
        return _run_folder(self.out, self.name)

    def at(self, step: int, last: bool = False) -> None:
        if step == self._at or self._off:  # a step begins where the one before ended
            return
        self._at = step
        window = None if last else next((one for one in self.windows if one[0] <= step < one[1]), None)
        if self._running is not None:
            recording, running = self._running
            if window == running:
                recording._begin(step)
                return
            self._stop(whole=True)
        if window is not None:
            self._begin(window, step)

    def _begin(self, window: tuple[int, int], step: int) -> None:
        if recorded_by_run():
            self._off = True
            return
        self.folder = self.folder or self.new_folder()
        recording = profile(folder=self.folder, with_=self.with_)
        recording._first, recording._notes = step, self._notes
        try:
            recording.__enter__()
        except RuntimeError as error:  # another profiler runs; the training goes on
            self._off = True
            warnings.warn(f"stepscope records nothing: {error}", stacklevel=2)
            return
        self._notes, self._running = recording._notes, (recording, window)
        atexit.register(self._end_of_process)

    def _stop(self, whole: bool) -> None:
        """`whole`: the running step is over."""
        if self._running is None:
            return
        (recording, _), self._running = self._running, None
        recording._recorder.end_step(whole)
        self._spools += recording._stop(complete=whole)

    def end(self) -> None:
        """Of the training: a step that was begun is not whole."""
        self._stop(whole=False)
        for spool in self._spools:
            spool.ended(wait=True)
        self._at, self._spools = None, []
        atexit.unregister(self._end_of_process)

    def _end_of_process(self) -> None:
        """An exception ended the training; a GPU that waits for other ranks is not waited for."""
        if _hooks().recorder.device_settles():
            self.end()


def recorded_by_run() -> bool:
    """Whether `stepscope run` or `stepscope attach` records this process: then that is enough."""
    capture = getattr(sys.modules.get("_stepscope_hooks"), "_capture", None)
    return capture is not None and not capture.detached


def _window(text: str) -> tuple[int, int]:
    first, _, end = text.partition(":")
    try:
        window = int(first), int(end or int(first) + 1)
    except ValueError:
        window = (0, 0)
    if not 0 <= window[0] < window[1]:
        raise ValueError(f'steps="{text}": write "10:15" for steps 10 to 14, or "7"; commas between several')
    return window
