"""StepReport: one step of a training loop measured and reported, whatever the trainer; the callbacks stand on it.

    report = StepReport(model, profile_step=5)
    for batch in loader:
        train(batch)
        report.step()

Rank 0 measures and prints, as with DeepSpeed. What goes wrong is a warning: the training goes on.
"""

from __future__ import annotations

import atexit
import sys
import warnings
import weakref
from typing import Any

from .._errors import StepscopeError
from .._recording import _hooks
from .._run import Run
from ._config import FlopsConfig
from ._job import Job, Latencies, job_of_process
from ._latencies import backward_and_step
from ._profiler import FlopsProfiler, write_report

__all__ = ["StepReport"]


class ReportedStep:
    """For callbacks, which know the trainer's steps.

    `config`: a DeepSpeed configuration (a path, or what is in the file), whose block `flops_profiler` says the rest;
    without one the keywords do, which are those of the block. `batch_size`: samples of a forward pass on this rank."""

    def __init__(self, model: Any, config: Any = None, *, batch_size: int | None = None, **keywords: Any) -> None:
        self.config = chosen(config, keywords)
        self.model, self.batch_size = model, batch_size
        self.passes: int | None = None  # forward passes of the step; None: as often as the model was called
        self._profiler: FlopsProfiler | None = None
        self._latencies: tuple[float | None, float | None] = (None, None)
        self._over = not self.config.enabled or _hooks().process.rank()[0] != 0

    def at(self, step: int) -> None:
        """A boundary of steps, with how many are done."""
        if self._profiler is not None and step > self.config.profile_step:
            self._finish()
        elif self._profiler is None and not self._over and step == self.config.profile_step:
            self._begin()

    def batch_begins(self, samples: int | None) -> None:
        """For trainers whose model is not called as a whole: a forward pass of so many samples."""
        if self._profiler is not None:
            self.batch_size, self.passes = samples, (self.passes or 0) + 1

    def end(self) -> None:
        """Of the training."""
        if not self._over:
            within = "within" if self._profiler is not None else "without"
            _warn(f"the training ended {within} step {self.config.profile_step}")
        self.stop()

    def stop(self) -> None:
        """Nothing is measured any more."""
        if self._profiler is not None:
            self._profiler.end_profile()
        self._over, self._profiler = True, None

    def _begin(self) -> None:
        profiler = FlopsProfiler(
            self.model, recompute_fwd_factor=self.config.recompute_fwd_factor, strict=self.config.strict
        )
        profiler._runs.look = self._look
        try:
            profiler.start_profile()
        except RuntimeError as error:
            self._over = True
            _warn(str(error))
            return
        self._profiler = profiler

    def _look(self, run: Run) -> None:
        self._latencies = backward_and_step(run)

    def _finish(self) -> None:
        profiler, self._profiler, self._over = self._profiler, None, True
        assert profiler is not None
        config = self.config
        try:
            text = profiler.report(config, self._job(profiler))
            write_report(text, config.output_file)
            keep_in_run_folder(text, config.profile_step)
        except (RuntimeError, OSError, StepscopeError) as error:
            _warn(str(error))
        finally:
            profiler.end_profile()

    def _job(self, profiler: FlopsProfiler) -> Job:
        figures = profiler.figures()
        latencies = Latencies(figures.seconds(self.model), *self._latencies)
        passes = self.passes or max(1, figures.calls(self.model))
        return job_of_process(self.batch_size, passes, latencies)


class StepReport(ReportedStep):
    """For a loop of one's own; step 0 begins where this is made."""

    def __init__(self, model: Any, config: Any = None, *, batch_size: int | None = None, **keywords: Any) -> None:
        super().__init__(model, config, batch_size=batch_size, **keywords)
        self._steps = 0
        atexit.register(_ended, weakref.ref(self))
        self.at(0)

    def step(self) -> None:
        """The end of one step and the begin of the next."""
        self._steps += 1
        self.at(self._steps)


def _ended(report: weakref.ref[StepReport]) -> None:
    """At the exit of the program: a step that never came is told."""
    known = report()
    if known is not None:
        known.end()


def chosen(config: Any, keywords: dict[str, Any]) -> FlopsConfig:
    """Of a configuration, or of the keywords, which switch it on."""
    if isinstance(config, FlopsConfig):
        return config
    if config is not None:
        return FlopsConfig.read(config)
    return FlopsConfig.read({"flops_profiler": {"enabled": True, **keywords}})


def keep_in_run_folder(text: str, step: int) -> None:
    """Under `stepscope run`."""
    capture = getattr(sys.modules.get("_stepscope_hooks"), "_capture", None)
    if capture is not None and not capture.detached:
        _hooks().flop_report.keep(capture.notes, text, step)


def _warn(why: str) -> None:
    warnings.warn(f"stepscope.flops reports nothing: {why}", stacklevel=2)
