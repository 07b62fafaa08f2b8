"""DeepSpeed's engine with `flops_profiler` in its configuration gets our report in the place of its own.

The engine makes its profiler by one name in deepspeed.runtime.engine; that name is ours from its import on. It starts
the profiler in a hook of its model, before the forward pass of the chosen step, on rank 0, and prints when step() ends.
Where the package or its library is not there (hooks that were copied alone), where another profiler has that step, or
where anything of ours fails, theirs does what it ever did, and the note of the process says so.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import weakref

from . import flop_report, own_code, recorder
from .replaced import Replaced
from .when_imported import WhenImported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .capture import Capture

_ENGINE = "deepspeed.runtime.engine"
_NAME = "FlopsProfiler"


class DeepSpeedFlops:
    """Waits for the engine's module."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.replaced = Replaced()
        self.waits: WhenImported | None = None
        self.profilers: list[EngineProfiler] = []

    def watch(self) -> None:
        self.waits = WhenImported(_ENGINE, self.came)

    def leave(self) -> None:
        if self.waits is not None:
            self.waits.cancel()
        self.replaced.undo()

    def finish(self) -> None:
        """At the end of the process."""
        for profiler in self.profilers:
            with self.capture.notes.guard("reporting FLOP at the end of the process"):
                if profiler.ours.running and profiler.is_over() and recorder.device_settles():
                    profiler.nobody_asked()

    def came(self, engine_module: Any) -> None:
        with self.capture.notes.guard("taking the place of DeepSpeed's FLOPS profiler"):
            self.replaced.replace(engine_module, _NAME, self.made_in_place_of)

    def made_in_place_of(self, theirs: Any) -> Any:
        def make(model: Any, ds_engine: Any = None, recompute_fwd_factor: float = 0.0) -> Any:
            capture = self.capture
            if capture.detached or ds_engine is None or _is_tuned(ds_engine):
                return theirs(model, ds_engine, recompute_fwd_factor)
            try:
                ours = EngineProfiler(capture, theirs, model, ds_engine, recompute_fwd_factor)
            except Exception as error:
                capture.notes.problem(f"DeepSpeed's own FLOPS profiler stays in place: {error}")
                return theirs(model, ds_engine, recompute_fwd_factor)
            self.profilers.append(ours)
            capture.recordings.takers.append(TakesStep(capture, ds_engine))
            return ours

        return make


def _is_tuned(engine: Any) -> bool:
    """The autotuner compares what its own profiler says of many runs."""
    asked = getattr(engine, "autotuning_enabled", None)
    return asked is not None and bool(asked())


def _is_pipeline(engine: Any) -> bool:
    pipeline = getattr(sys.modules.get("deepspeed.runtime.pipe.engine"), "PipelineEngine", None)
    return pipeline is not None and isinstance(engine, pipeline)


class TakesStep:
    """Says whether the step that begins is the profiled one: on all ranks, so that they record the same steps.

    We count a step when the optimizer is done, the engine a moment later; what lies between the two counts is learned,
    and again where the engine went on from a checkpoint.
    """

    def __init__(self, capture: Capture, engine: Any) -> None:
        self.capture, self.engine = capture, weakref.ref(engine)
        self.ahead = engine.global_steps - capture.boundary

    def __call__(self) -> bool:
        engine = self.engine()
        if engine is None:
            return False
        ahead = engine.global_steps - self.capture.boundary
        if ahead not in (self.ahead, self.ahead - 1):
            self.ahead = ahead + 1
        return bool(self.capture.boundary + self.ahead == engine.flops_profiler_profile_step())


class EngineProfiler:
    """What the engine calls: every method goes to ours, and to theirs once ours has failed."""

    def __init__(self, capture: Capture, theirs: Any, model: Any, engine: Any, factor: float) -> None:
        self.capture, self.engine = capture, engine
        self.package = package_with_library()
        self.make_theirs: Callable[[], Any] = lambda: theirs(model, engine, factor)
        self.ours = self.package.FlopsProfiler(model, engine, factor, strict=_wants_strict(engine))
        self.theirs: Any = None
        self.step = 0

    @own_code.called_as_is
    def start_profile(self, ignore_list: Any = None) -> None:
        if self.ours.running and _is_pipeline(self.engine) and self.step == self.engine.global_steps:
            return  # the next of its micro-batches; theirs would forget the ones before
        self.step = self.engine.global_steps
        if self.theirs is None:
            try:
                self.ours.begin(ignore_list)
                self.ours.end_when(self.is_over, self.nobody_asked)
                return
            except Exception as error:
                self.capture.notes.problem(f"DeepSpeed's own FLOPS profiler measured step {self.step}: {error}")
                self.theirs = self.make_theirs()
        self.theirs.start_profile(ignore_list)

    def is_over(self) -> bool:
        return bool(self.engine.global_steps != self.step)

    def nobody_asked(self) -> None:
        """The engine counted the step and went on without a report, as pipelines do; this is between two passes."""
        engine = self.engine
        self.print_model_profile(
            self.step,
            engine.flops_profiler_module_depth(),
            engine.flops_profiler_top_modules(),
            engine.flops_profiler_detailed(),
            engine.flops_profiler_output_file(),
        )
        self.end_profile()

    @own_code.called_as_is
    def stop_profile(self) -> None:
        self._either("stop_profile")

    def reset_profile(self) -> None:
        self._either("reset_profile")

    def end_profile(self) -> None:
        self._either("end_profile")
        self.theirs = None

    def get_total_flops(self, as_string: bool = False) -> Any:
        return self._either("get_total_flops", as_string)

    def get_total_macs(self, as_string: bool = False) -> Any:
        return self._either("get_total_macs", as_string)

    def get_total_duration(self, as_string: bool = False) -> Any:
        return self._either("get_total_duration", as_string)

    def get_total_params(self, as_string: bool = False) -> Any:
        return self._either("get_total_params", as_string)

    def print_model_aggregated_profile(self, module_depth: int = -1, top_modules: int = 1) -> None:
        self._either("print_model_aggregated_profile", module_depth, top_modules)

    def _either(self, method: str, *arguments: Any) -> Any:
        if self.theirs is not None:
            return getattr(self.theirs, method)(*arguments)
        try:
            return getattr(self.ours, method)(*arguments)
        except Exception as error:
            self.capture.notes.problem(f"{method} of the FLOPS profiler failed: {type(error).__name__}: {error}")
            return "n/a" if arguments == (True,) else float("nan")

    def print_model_profile(
        self,
        profile_step: int = 1,
        module_depth: int = -1,
        top_modules: int = 1,
        detailed: bool = True,
        output_file: str | None = None,
    ) -> None:
        """Of the step that was measured; the engine counts it before it asks."""
        if self.theirs is not None:
            self.theirs.print_model_profile(self.step, module_depth, top_modules, detailed, output_file)
            return
        notes = self.capture.notes
        try:
            text = self.ours.text(self.step, module_depth, top_modules, detailed)
            flop_report.keep(notes, text, self.step)
        except Exception as error:
            notes.problem(f"step {self.step} has no report of FLOP: {type(error).__name__}: {error}")
            text = f"stepscope: step {self.step} has no report of FLOP: {error}\n"
        with notes.guard("writing the report of FLOP"):
            self.package.write_report(text, output_file)


def _wants_strict(engine: Any) -> bool:
    """A key of ours in the block of the configuration, which DeepSpeed passes over."""
    whole = getattr(getattr(engine, "_config", None), "_param_dict", None)
    block = whole.get("flops_profiler", {}) if isinstance(whole, dict) else {}
    return isinstance(block, dict) and block.get("strict") is True


def package_with_library() -> Any:
    """stepscope.flops: of the stepscope that the job has loaded, else of the package that these hooks lie in, else of
    the one that the job can import."""
    before = set(sys.modules)
    try:
        if "stepscope" not in sys.modules:
            _load_package()
        found = importlib.import_module("stepscope.flops")
        importlib.import_module("stepscope._library").library()
    except BaseException:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == "stepscope":
                del sys.modules[name]
        raise
    return found


def _load_package() -> None:
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    start = os.path.join(folder, "__init__.py")
    if not os.path.isfile(start) or not os.path.isdir(os.path.join(folder, "flops")):
        if importlib.util.find_spec("stepscope") is None:
            raise RuntimeError("the package stepscope is not beside the hooks, and the job cannot import it")
        return
    spec: Any = importlib.util.spec_from_file_location("stepscope", start, submodule_search_locations=[folder])
    module = importlib.util.module_from_spec(spec)
    sys.modules["stepscope"] = module
    spec.loader.exec_module(module)
