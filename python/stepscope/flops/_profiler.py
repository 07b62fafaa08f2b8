"""FlopsProfiler: DeepSpeed's class by its methods, its values and its report, measured by torch's profiler.

    prof = FlopsProfiler(model)
    prof.start_profile()
    loss = model(batch)
    loss.backward()                       # measured too
    prof.stop_profile()
    prof.print_model_profile(profile_step=5)
    prof.end_profile()

Nothing of torch or the model is patched. The first figure that is asked for ends the measurement, where it still runs.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from types import TracebackType
from typing import Any, Callable

from .._recording import _hooks
from .._run import Run
from .._run import open as open_run
from ._config import FlopsConfig
from ._figures import Figures, publish, withdraw
from ._job import Job, Latencies, job_of_engine, latencies_of_engine
from ._numbers import duration_to_string, macs_to_string, number_to_string, params_to_string
from ._parameters import parameters_of
from ._report import aggregated, report_text

__all__ = ["FlopsProfiler"]

_NOT_STARTED = "stepscope.flops: nothing is measured: call start_profile() before the forward pass"
_NOT_CALLED = (
    "stepscope.flops: the model was not called between start_profile() and stop_profile(), or not on the thread that "
    "started it; a scripted model cannot be seen"
)


def check_model(model: Any) -> None:
    """Raises TypeError where it is none."""
    import torch

    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"stepscope.flops: a model is a torch.nn.Module, not {type(model).__name__}")


class FlopsProfiler:
    """Measures FLOP, MACs and the latency of each module's forward, and FLOP of backward, of what runs between
    start_profile and stop_profile.

    `ds_engine`: a DeepSpeed engine, whose sizes and timers the report shows; the measurement then goes on behind
    stop_profile, up to the first figure that is asked for, so that backward is in it. `strict` gives DeepSpeed's words
    and its factor, 2 + `recompute_fwd_factor`, in place of what was measured of backward.
    FLOP are those of products: two for each multiply-add. What works element by element is not in it.
    """

    def __init__(
        self, model: Any, ds_engine: Any = None, recompute_fwd_factor: float = 0.0, *, strict: bool = False
    ) -> None:
        check_model(model)
        self.model = model
        self.ds_engine = ds_engine
        self.recompute_fwd_factor = recompute_fwd_factor
        self.strict = strict
        self.started = False
        self.flops: float | None = None  # of the last report, as the next two
        self.macs: float | None = None
        self.params: int | None = None
        self._figures: Figures | None = None
        self._ignored: tuple[type, ...] = ()
        self._timers: Latencies | None = None  # of the engine, as the measurement began
        self._runs = _Runs()
        self._refused = ""  # why nothing is measured, where that is no fault of the program
        weakref.finalize(self, self._runs.forget)

    # Measuring --------------------------------------------------------------------------------------------------------
    def start_profile(self, ignore_list: list[type] | None = None) -> None:
        """Begins to measure; what was measured before is forgotten. Modules of the classes in `ignore_list` count as
        part of what calls them. Raises RuntimeError where another torch profiler runs."""
        try:
            self.begin(ignore_list)
        except _refusals() as refused:
            if not refused.by_run:
                raise
            self._refused, self.started = str(refused), True
            warnings.warn(f"stepscope.flops measures nothing: {refused}", stacklevel=2)

    def begin(self, ignore_list: list[type] | None = None) -> None:
        """The same; raises too where it is for `stepscope run` that nothing can be measured."""
        self._forget()
        self._ignored = tuple(ignore_list or ())
        self.started = False
        self._timers = latencies_of_engine(self.ds_engine)
        self._runs.begin(self.model, self._ignored)
        self.started = True

    @property
    def running(self) -> bool:
        return self._runs.running

    def end_when(self, is_over: Callable[[], bool], over: Callable[[], None]) -> None:
        """Calls `over` before a forward pass of the model once `is_over` says so, if it still runs then."""
        measure = self._runs.measure
        measure.is_over, measure.over = is_over, over

    def stop_profile(self) -> None:
        if self.ds_engine is not None:
            self._runs.end_ranges()
        else:
            self._runs.end()

    def reset_profile(self) -> None:
        """Forgets what was measured so far; a measurement that runs begins anew."""
        if self.running:
            self.start_profile(list(self._ignored))
        else:
            self._forget()

    def end_profile(self) -> None:
        """Ends the measurement and forgets its figures."""
        self._forget()
        self.started = False

    def __enter__(self) -> FlopsProfiler:
        self.start_profile()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._runs.end()
        else:
            self.end_profile()

    def _forget(self) -> None:
        self._runs.forget()
        if self._figures is not None:
            withdraw(self._figures)
        self._figures, self._refused = None, ""

    # Figures ----------------------------------------------------------------------------------------------------------
    def figures(self) -> Figures:
        """Of all modules. Raises RuntimeError where there are none."""
        if self._figures is None:
            if not self.started:
                raise RuntimeError(_NOT_STARTED)
            if self._refused:
                self._figures = Figures([], set())
                return self._figures
            figures = self._runs.figures()
            if not figures.any_call:
                raise RuntimeError(_NOT_CALLED)
            self._figures = figures
            publish(figures, list(self.model.modules()))
        return self._figures

    def get_total_flops(self, as_string: bool = False) -> Any:
        """FLOP of the model's forward: two for each multiply-add. NaN: not known."""
        return self._told(self.figures().flops(self.model), number_to_string, as_string)

    def get_total_macs(self, as_string: bool = False) -> Any:
        """Multiply-adds of the model's forward."""
        return self._told(self.figures().macs(self.model), macs_to_string, as_string)

    def get_total_duration(self, as_string: bool = False) -> Any:
        """Seconds of the model's forward; of several calls their sum."""
        return self._told(self.figures().seconds(self.model), duration_to_string, as_string)

    def get_total_params(self, as_string: bool = False) -> Any:
        """Parameters of the model on this rank; those that are shared count once."""
        return self._told(parameters_of(self.model).here, params_to_string, as_string)

    def get_total_backward_flops(self, as_string: bool = False) -> Any:
        """FLOP of the model's backward, measured, with forward that ran again in it."""
        return self._told(self.figures().backward_flops(self.model), number_to_string, as_string)

    def _told(self, value: float | None, shown: Callable[..., str], as_string: bool) -> Any:
        if as_string:
            return shown(value)
        return float("nan") if value is None else value

    # Report -----------------------------------------------------------------------------------------------------------
    def print_model_profile(
        self,
        profile_step: int = 1,
        module_depth: int = -1,
        top_modules: int = 1,
        detailed: bool = True,
        output_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """Prints the report, or writes it to `output_file`, whose folder is made where it is not there."""
        if not self.started:
            warnings.warn(_NOT_STARTED, stacklevel=2)
            return
        write_report(self.text(profile_step, module_depth, top_modules, detailed), output_file)

    def text(self, profile_step: int = 1, module_depth: int = -1, top_modules: int = 1, detailed: bool = True) -> str:
        """What print_model_profile prints."""
        job = None
        if self.ds_engine is not None:
            passes = max(1, self.figures().calls(self.model))
            job = job_of_engine(self.ds_engine, self.model, self._timers, passes)
        wanted = FlopsConfig(
            recompute_fwd_factor=self.recompute_fwd_factor,
            profile_step=profile_step,
            module_depth=module_depth,
            top_modules=top_modules,
            detailed=detailed,
            strict=self.strict,
        )
        return self.report(wanted, job)

    def report(self, wanted: FlopsConfig, job: Job | None) -> str:
        """The same; `job`: what it says of the training."""
        figures = self.figures()
        self.flops, self.macs = figures.flops(self.model), figures.macs(self.model)
        self.params = parameters_of(self.model).here
        notes = [reason for reason in (self._refused, self._runs.cut_off) if reason]
        return report_text(self.model, figures, job, wanted, notes)

    def print_model_aggregated_profile(self, module_depth: int = -1, top_modules: int = 1) -> None:
        """Prints the classes that have most parameters, MACs and latency at each depth."""
        if not self.started:
            warnings.warn(_NOT_STARTED, stacklevel=2)
            return
        print("\n".join(aggregated(self.model, self.figures(), module_depth, top_modules)))


def write_report(text: str, output_file: str | os.PathLike[str] | None) -> None:
    """To the file, or to standard output."""
    if not output_file:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    os.makedirs(os.path.dirname(os.path.abspath(output_file)), exist_ok=True)
    with open(output_file, "w", encoding="utf-8") as out:
        out.write(text)


def _refusals() -> Any:
    return _hooks().flop_measure.Refused


class _Runs:
    """The measurement of a FlopsProfiler; not kept alive by it, so that one that is forgotten leaves nothing behind."""

    def __init__(self) -> None:
        self.measure: Any = None
        self.waiting: list[Any] = []  # texts of what was recorded, not read yet
        self.read: Figures | None = None
        self.look: Callable[[Run], None] | None = None  # at each part of the recording
        self.cut_off = ""

    @property
    def running(self) -> bool:
        return self.measure is not None and self.measure.runs

    def begin(self, model: Any, ignored: tuple[type, ...]) -> None:
        measure = _hooks().flop_measure.Measure(model, self.take, ignored)
        measure.begin()
        self.measure = measure

    def take(self, text: Any) -> None:
        """Of the parts of a long measurement each is read when the next one comes, as memory has an end."""
        self.waiting.append(text)
        if len(self.waiting) > 1:
            self.read_all()

    def read_all(self) -> Figures:
        if self.read is None:
            self.read = Figures(self.measure.members, self.measure.seen, self.measure.ignored)
        while self.waiting:
            text = self.waiting.pop(0)
            try:
                with open_run(text.path, cache=False) as run:
                    self.read.add(run)
                    if self.look is not None:
                        self.look(run)
            finally:
                text.close()
        return self.read

    def end_ranges(self) -> None:
        if self.measure is not None:
            self.measure.end_ranges()

    def end(self) -> None:
        if self.measure is not None:
            self.measure.end()

    def figures(self) -> Figures:
        if self.measure is None:
            raise RuntimeError(_NOT_STARTED)
        self.end()
        figures = self.read_all()
        self.cut_off, self.measure = self.measure.cut_off, None
        return figures

    def forget(self) -> None:
        measure, self.measure = self.measure, None
        if measure is not None:
            measure.discard()
        for text in self.waiting:
            text.close()
        self.waiting, self.read, self.cut_off = [], None, ""
