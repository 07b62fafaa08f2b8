"""InternEvo's way to ask for a profile: `from stepscope.internevo import initialize_llm_profile`.

The same arguments, the same steps and the same place as its own: of the first data and tensor rank of each pipeline
stage the eighth step (five skipped, one waited, one of warm-up), into JOB_NAME/START_TIME/traces/rankR_dpD_tpT_ppP.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType

from ._recording import _hooks, _job_name, profile

__all__ = ["initialize_llm_profile"]

_RECORDED_AFTER = 7  # steps: skip_first=5, wait=1, warmup=1


class LLMProfile:
    """A context manager with `step()`; without profiling both do nothing."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder  # None: this rank is not recorded
        self._steps = 0
        self._recording: profile | None = None

    def __enter__(self) -> LLMProfile:
        return self

    def step(self) -> None:
        self._steps += 1
        if self._folder is None:
            return
        if self._steps == _RECORDED_AFTER:
            self._recording = profile(folder=self._folder, with_="shapes,memory,modules,stack")
            self._recording.__enter__()
        else:
            self._end()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._recording is not None:
            self._recording.__exit__(None, None, None)
        self._recording = None


def initialize_llm_profile(profiling: bool = False, start_time: str | None = None) -> LLMProfile:
    """The profiler of this rank. `start_time`: the name of the folder; the ranks of a job are to give the same."""
    if not profiling:
        return LLMProfile(None)
    hooks = _hooks()
    rank, world, _ = hooks.process.rank()
    hooks.parallel.assume({"dp": (rank, world), "tp": (0, 1), "pp": (0, 1)})  # its names hold all of them
    places = hooks.parallel.places()
    if places["dp"][0] != 0 or places["tp"][0] != 0:
        return LLMProfile(None)
    return LLMProfile(os.path.join(_name_of_job(), start_time or time.strftime("%b%d_%H-%M-%S")))


def _name_of_job() -> str:
    context = sys.modules.get("internlm.core.context")
    config = getattr(getattr(context, "global_context", None), "config", None)
    return getattr(config, "JOB_NAME", None) or os.environ.get("JOB_NAME") or _job_name()
