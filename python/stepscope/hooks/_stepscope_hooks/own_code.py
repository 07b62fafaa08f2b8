"""Our functions as torch.compile meets them: never compiled, and never part of what is.

Between the pieces of a compiled program, as around its backward() and optimizer.step(), torch offers every function
that Python calls to its compiler. Ours would be compiled too; those inside of a piece would be traced once and never
run again.
"""

from __future__ import annotations

import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_marked: set[types.CodeType] = set()


def called_as_is(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where a compiled program calls this one, the piece ends, as at all that torch cannot compile."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]  # what torch.compiler.disable sets
    return function


def keep_from_compiler() -> None:
    """Tells torch's compiler, once it is loaded, to leave our functions alone; never loads it."""
    skip = getattr(sys.modules.get("torch._dynamo.eval_frame"), "skip_code", None)
    if skip is None:
        return
    for code in _all_codes():
        if code not in _marked:
            _marked.add(code)
            skip(code)


def _all_codes() -> Iterator[types.CodeType]:
    package = __package__ + "."
    for name, module in list(sys.modules.items()):
        if name.startswith(package):
            for thing in list(vars(module).values()):
                if getattr(thing, "__module__", None) == name:
                    yield from _codes(thing)


def _codes(thing: Any) -> Iterator[types.CodeType]:
    if isinstance(thing, type):
        for member in list(vars(thing).values()):
            yield from _codes(member)
    elif isinstance(thing, types.CodeType):
        yield thing
        for constant in thing.co_consts:
            yield from _codes(constant)
    elif isinstance(thing, (staticmethod, classmethod)):
        yield from _codes(thing.__func__)
    elif isinstance(thing, property):
        yield from _codes(thing.fget)
    elif isinstance(thing, types.FunctionType):
        yield from _codes(thing.__code__)
        yield from _codes(getattr(thing, "__wrapped__", None))
