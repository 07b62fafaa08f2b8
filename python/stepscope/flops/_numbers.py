"""Numbers as DeepSpeed's profiler writes them, by the names that people import from there: "4.36 MMACs", "335.22 us".

A number is rounded to `precision` places of its prefix and loses zeros at its end; `units` chooses the prefix. What is
not known (None or NaN) is "n/a".
"""

from __future__ import annotations

from typing import Optional

__all__ = [
    "bytes_to_string",
    "duration_to_string",
    "flops_to_string",
    "macs_to_string",
    "number_to_string",
    "params_to_string",
]

DEFAULT_PRECISION = 2

Number = Optional[float]

_PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "K": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6}


def number_to_string(num: Number, units: str | None = None, precision: int = DEFAULT_PRECISION) -> str:
    if num is None or num != num:
        return f"n/a {units or ''}"
    prefix = _prefix_of(num) if units is None else units
    return f"{round(num / _PREFIXES.get(prefix, 1.0), precision):g} {prefix}"


def _prefix_of(num: float) -> str:
    if num == 0:
        return ""
    return next((prefix for prefix, least in _PREFIXES.items() if num >= least), "u")


def macs_to_string(macs: Number, units: str | None = None, precision: int = DEFAULT_PRECISION) -> str:
    return number_to_string(macs, units, precision) + "MACs"


def flops_to_string(flops: Number, units: str | None = None, precision: int = DEFAULT_PRECISION) -> str:
    """Of a rate: FLOP per second."""
    return number_to_string(flops, units, precision) + "FLOPS"


def bytes_to_string(b: Number, units: str | None = None, precision: int = DEFAULT_PRECISION) -> str:
    return number_to_string(b, units, precision) + "B"


def duration_to_string(duration: Number, units: str | None = None, precision: int = DEFAULT_PRECISION) -> str:
    """Of seconds."""
    return number_to_string(duration, units, precision) + "s"


def params_to_string(params_num: Number, units: str | None = None, precision: int = DEFAULT_PRECISION) -> str:
    """Billions are B."""
    chosen = "G" if units == "B" else units
    return number_to_string(params_num, chosen, precision).replace("G", "B").strip()
