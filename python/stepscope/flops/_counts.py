"""A decorator that says what a function's own kernels take; docs/flop-rules.md, "In the program".

While a profiler runs, a call stands in a range whose name holds the figures, worked out from the call's arguments:
"acme.attention [flop=1200 backward_flop=3000 bytes=96 type=bfloat16]" (read by src/costs/rules.h). Otherwise the call
is the function's own, and so it is where torch.compile sees it, which would break its graph at a range.
"""

from __future__ import annotations

import functools
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, Union

    Function = TypeVar("Function", bound=Callable[..., Any])

    # A number, or a function of the call's arguments that gives one.
    Amount = Union[float, Callable[..., float]]

_MOST = 1 << 60  # more than any device does


def counts(
    *,
    flop: Amount,
    backward: Amount | None = None,
    bytes: Amount | None = None,
    name: str | None = None,
    type: str | None = None,
) -> Callable[[Function], Function]:
    """Counts each call of a function as `flop`, instead of what the operators in it would come to.

        @stepscope.flops.counts(flop=lambda q, k, v: 4 * q.numel() * k.shape[-2], backward=lambda q, k, v: ...)
        def acme_attention(q, k, v): ...

    `flop` (two for each multiply-add), `backward` (FLOP of the backward passes of all that runs in it) and `bytes`
    (moved in forward, for the roofline) are numbers, or functions that are called with the arguments of the call.
    Without `backward` the operators that run there count. `name`: the function's own, if not given. `type`: the element
    type, as "bfloat16"; that of the first tensor among the arguments, if not given.

    A function that raises, or gives anything but a number of at least 0, never disturbs the call: its range then has
    " [not counted: TypeError: ...]" in its name, and what runs in it counts as it would without this. Raises ValueError
    or TypeError for an amount that is neither a number of at least 0 nor a function.
    """

    for key, amount in (("flop", flop), ("backward", backward), ("bytes", bytes)):
        if amount is not None and not callable(amount):
            _whole(key, amount)

    def decorate(function: Function) -> Function:
        label = name or getattr(function, "__qualname__", None) or repr(function)

        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            torch = sys.modules.get("torch")
            if torch is None or torch.compiler.is_compiling() or not torch._C._autograd._profiler_enabled():
                return function(*args, **kwargs)
            with torch.profiler.record_function(_range_name(label, flop, backward, bytes, type, args, kwargs)):
                return function(*args, **kwargs)

        return counted  # type: ignore[return-value]

    return decorate


def _range_name(
    label: str,
    flop: Amount,
    backward: Amount | None,
    moved: Amount | None,
    type_name: str | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> str:
    said = []
    try:
        for key, amount in (("flop", flop), ("backward_flop", backward), ("bytes", moved)):
            if amount is not None:
                said.append(f"{key}={_whole(key, amount(*args, **kwargs) if callable(amount) else amount)}")
    except Exception as error:  # of the amounts' code, which is not the job's
        return f"{label} [not counted: {error.__class__.__name__}: {str(error)[:200]}]"
    type_name = type_name or _type_of_first_tensor(args, kwargs)
    if type_name:
        said.append(f"type={type_name}")
    return f"{label} [{' '.join(said)}]"


def _whole(key: str, amount: Any) -> int:
    number = float(amount)
    if not 0 <= number < _MOST:
        raise ValueError(f"{key} is {amount}, not a number of at least 0")
    whole: int = round(amount)
    return whole


def _type_of_first_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    for value in (*args, *kwargs.values()):
        dtype = str(getattr(value, "dtype", ""))
        if dtype.startswith("torch."):
            return dtype.removeprefix("torch.")
    return ""
