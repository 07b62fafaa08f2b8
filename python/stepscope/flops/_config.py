"""The block `flops_profiler` of a DeepSpeed configuration, with DeepSpeed's defaults."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["FlopsConfig"]

_BLOCK = "flops_profiler"
_WANTED = {
    "enabled": "true or false",
    "recompute_fwd_factor": "a number of 0 or more",
    "profile_step": "a whole number of 0 or more",
    "module_depth": "a whole number of -1 or more",
    "top_modules": "a whole number of 1 or more",
    "detailed": "true or false",
    "output_file": "a path or null",
    "strict": "true or false",
}


@dataclass(frozen=True)
class FlopsConfig:
    enabled: bool = False
    recompute_fwd_factor: float = 0.0
    profile_step: int = 1
    module_depth: int = -1
    top_modules: int = 1
    detailed: bool = True
    output_file: str | None = None
    strict: bool = False  # ours: DeepSpeed's words, and its factor in place of what was measured

    @classmethod
    def read(cls, source: str | os.PathLike[str] | Mapping[str, Any]) -> FlopsConfig:
        """Of a configuration: a JSON file, or what is in one. Without the block all defaults. Raises ValueError for an
        unknown key or a wrong value."""
        where, whole = _opened(source)
        block = whole.get(_BLOCK, {})
        if not isinstance(block, Mapping):
            raise ValueError(f'{where}{_BLOCK} is {block!r}; it is a block such as {{"enabled": true}}')
        for key, value in block.items():
            _check(where, key, value)
        return cls(**block)


def _opened(source: Any) -> tuple[str, Mapping[str, Any]]:
    """Where it is from, for errors, and what is in it."""
    if isinstance(source, Mapping):
        return "", source
    where = os.fspath(source)
    with open(source, encoding="utf-8") as file:
        try:
            whole = json.load(file)
        except ValueError as error:
            raise ValueError(f"{where}: this is no JSON: {error}") from None
    if not isinstance(whole, Mapping):
        raise ValueError(f'{where}: a DeepSpeed configuration is an object, such as {{"{_BLOCK}": {{}}}}')
    return f"{where}: ", whole


def _check(where: str, key: str, value: Any) -> None:
    if key not in _WANTED:
        import difflib

        near = difflib.get_close_matches(key, _WANTED, 1)
        known = f"did you mean {near[0]}?" if near else f"it knows {', '.join(_WANTED)}"
        raise ValueError(f"{where}{_BLOCK} has no {key!r}; {known}")
    if not _fits(key, value):
        raise ValueError(f"{where}{_BLOCK}.{key} is {value!r}; it wants {_WANTED[key]}")


def _fits(key: str, value: Any) -> bool:
    if _WANTED[key] == "true or false":
        return isinstance(value, bool)
    if key == "output_file":
        return value is None or isinstance(value, (str, os.PathLike))
    if isinstance(value, bool) or not isinstance(value, (int, float) if key == "recompute_fwd_factor" else int):
        return False
    least = {"module_depth": -1, "top_modules": 1}.get(key, 0)
    return bool(value >= least)


assert set(_WANTED) == {field.name for field in fields(FlopsConfig)}
