"""For the Trainer of transformers: `from stepscope.huggingface import StepscopeCallback` (docs/python.md)."""

from __future__ import annotations

import os

from ._callback import StepRecording
from .flops._step_report import ReportedStep, chosen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    TrainerCallback = object
else:
    from transformers import TrainerCallback

__all__ = ["FlopsCallback", "StepscopeCallback"]


class StepscopeCallback(TrainerCallback):
    """Records steps of a training, counted as `state.global_step` counts them: whatever a step accumulates is in it.

    `steps` is "10:15" for steps 10 to 14, "10:15,40:45", or "7"; `out`, `name` and `with_` as in `stepscope.profile`.
    Under `stepscope run`, which records anyway, it does nothing.
    """

    def __init__(
        self,
        steps: str = "10:15",
        *,
        out: str | os.PathLike[str] | None = None,
        name: str | None = None,
        with_: str = "shapes,memory,modules",
    ) -> None:
        self._recording = StepRecording(steps, out, name, with_)

    @property
    def folder(self) -> str | None:
        """The run folder, once something was recorded."""
        return self._recording.folder

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recording.at(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recording.at(state.global_step, last=control.should_training_stop)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recording.end()


class FlopsCallback(TrainerCallback):
    """Measures FLOP of one step and prints DeepSpeed's report of it, on rank 0 (docs/flops.md).

    `config` is a DeepSpeed configuration with a block `flops_profiler`, or keywords say what would be in the block:
    `profile_step` (of `state.global_step`), `module_depth`, `top_modules`, `detailed`, `output_file`.
    """

    def __init__(self, config: Any = None, **keywords: Any) -> None:
        self._wanted = config, keywords
        self._report: ReportedStep | None = None
        chosen(config, keywords)  # a mistake is told before the training

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        config, keywords = self._wanted
        self._report = ReportedStep(model, config, batch_size=args.per_device_train_batch_size, **keywords)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._report is not None:
            self._report.at(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._report is not None:
            self._report.at(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._report is not None:
            self._report.end()
