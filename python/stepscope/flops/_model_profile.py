"""get_model_profile: one pass of a model measured, in one call."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from ._numbers import macs_to_string, number_to_string, params_to_string
from ._profiler import FlopsProfiler, check_model

__all__ = ["get_model_profile"]

_MODES = ("forward", "generate")


def get_model_profile(
    model: Any,
    input_shape: tuple[int, ...] | None = None,
    args: Any = [],  # noqa: B006 -- the signature is DeepSpeed's; nobody changes it
    kwargs: dict[str, Any] = {},  # noqa: B006
    print_profile: bool = True,
    detailed: bool = True,
    module_depth: int = -1,
    top_modules: int = 1,
    warm_up: int = 1,
    as_string: bool = True,
    output_file: str | os.PathLike[str] | None = None,
    ignore_modules: list[type] | None = None,
    mode: str = "forward",
    *,
    strict: bool = False,
) -> tuple[Any, Any, Any]:
    """(FLOP, MACs, parameters) of one pass: numbers, or texts such as "8.72 M", "4.36 MMACs", "136.71 K".

    `input_shape`: one tensor of ones of this shape is the input, in place of `args`. `mode="generate"` measures
    model.generate. `warm_up` passes go before. The pass runs in evaluation mode; then each module has its own again.
    """
    inputs = _inputs_of(model, input_shape, args, kwargs)
    if mode not in _MODES:
        raise ValueError(f"stepscope.flops: mode is {mode!r}; it is one of {', '.join(_MODES)}")
    run = model if mode == "forward" else model.generate
    profiler = FlopsProfiler(model, strict=strict)
    try:
        with _evaluating(model):
            for _ in range(warm_up):
                run(*inputs, **kwargs)
            profiler.start_profile(ignore_list=ignore_modules)
            run(*inputs, **kwargs)
            profiler.stop_profile()
        found = profiler.get_total_flops(), profiler.get_total_macs(), profiler.get_total_params()
        if print_profile:
            profiler.print_model_profile(warm_up, module_depth, top_modules, detailed, output_file)
    finally:
        profiler.end_profile()
    flops, macs, params = found
    return (number_to_string(flops), macs_to_string(macs), params_to_string(params)) if as_string else found


def _inputs_of(model: Any, shape: Any, args: Any, kwargs: Any) -> list[Any]:
    import torch

    check_model(model)
    if not isinstance(args, (tuple, list)):  # a tensor would be taken apart
        raise TypeError(f"stepscope.flops: args is of type {type(args).__name__}; give a list, such as args=[x]")
    if shape is None:
        if len(args) == 0 and len(kwargs) == 0:
            raise ValueError("stepscope.flops: give input_shape, args or kwargs: what the model is called with")
        return list(args)
    if not isinstance(shape, (tuple, list)) or not shape:
        raise ValueError(f"stepscope.flops: input_shape is {shape!r}; give a tuple such as (32, 256)")
    parameter = next(model.parameters(), None)
    like = {} if parameter is None else {"dtype": parameter.dtype, "device": parameter.device}
    return [torch.ones(*shape, **like)]


@contextlib.contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Without train() and eval(), which classes overload with what changes the model."""
    before = [(module, module.training) for module in model.modules()]
    try:
        for module, _ in before:
            module.training = False
        yield
    finally:
        for module, training in before:
            module.training = training
