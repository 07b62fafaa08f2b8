"""stepscope.flops: DeepSpeed's FLOPS profiler by its names, its values and its report; measured (docs/flops.md).

    from stepscope.flops import FlopsProfiler, get_model_profile
    flops, macs, params = get_model_profile(model, input_shape=(32, 256))

Backward and what runs again are measured, not a factor of forward. Nothing of torch or of the model is patched.
"""

from __future__ import annotations

from ._config import FlopsConfig
from ._figures import Figures, get_module_duration, get_module_flops, get_module_macs
from ._model_profile import get_model_profile
from ._numbers import (
    bytes_to_string,
    duration_to_string,
    flops_to_string,
    macs_to_string,
    number_to_string,
    params_to_string,
)
from ._profiler import FlopsProfiler, write_report
from ._step_report import StepReport

__all__ = [
    "Figures",
    "FlopsConfig",
    "FlopsProfiler",
    "StepReport",
    "bytes_to_string",
    "duration_to_string",
    "flops_to_string",
    "get_model_profile",
    "get_module_duration",
    "get_module_flops",
    "get_module_macs",
    "macs_to_string",
    "number_to_string",
    "params_to_string",
    "write_report",
]
