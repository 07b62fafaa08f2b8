"""For the Trainer of Lightning: `from stepscope.lightning import StepscopeCallback` (docs/python.md)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from ._callback import StepRecording, recorded_by_run
from .flops._step_report import ReportedStep, chosen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Callback = object
elif "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

__all__ = ["FlopsCallback", "StepscopeCallback"]


class StepscopeCallback(Callback):
    """Records steps of a training, counted as `trainer.global_step` counts them: whatever a step accumulates is in it.

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
        """The run folder, once the training began."""
        return self._recording.folder

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if recorded_by_run():
            return
        chosen = self._recording.new_folder() if trainer.is_global_zero else None
        self._recording.folder = trainer.strategy.broadcast(chosen)  # Lightning starts ranks without a common parent

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._recording.at(trainer.global_step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        last = trainer.should_stop or 0 <= trainer.max_steps <= trainer.global_step
        self._recording.at(trainer.global_step, last)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._recording.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._recording.end()


class FlopsCallback(Callback):
    """Measures FLOP of one step and prints DeepSpeed's report of it, on rank 0 (docs/flops.md).

    `config` is a DeepSpeed configuration with a block `flops_profiler`, or keywords say what would be in the block:
    `profile_step` (of `trainer.global_step`), `module_depth`, `top_modules`, `detailed`, `output_file`.
    """

    def __init__(self, config: Any = None, **keywords: Any) -> None:
        self._wanted = config, keywords
        self._report: ReportedStep | None = None
        chosen(config, keywords)  # a mistake is told before the training

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        config, keywords = self._wanted
        self._report = ReportedStep(pl_module, config, **keywords)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self._report is not None:
            self._report.at(trainer.global_step)
            self._report.batch_begins(_samples(batch))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self._report is not None:
            self._report.at(trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self._report is not None:
            self._report.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self._report is not None:
            self._report.stop()


def _samples(batch: Any) -> int | None:
    """Of a batch: the first size of the first tensor in it; None: there is none."""
    if getattr(batch, "ndim", 0) > 0:
        return int(batch.shape[0])
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (list, tuple)) else ()
    return next((found for found in map(_samples, parts) if found is not None), None)
