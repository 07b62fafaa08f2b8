"""What a model works on for nobody: words that only fill up a batch, and places of which the loss takes nothing.

Tensors of the numbers of words and classes are kept in the step that is recorded with stacks, and looked at when it is
over.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from threading import get_ident

from . import module_hooks
from .replaced import Replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    At = tuple[str, int, int]  # file, first line of the function, line

_MOST_KEPT = 8  # of each kind
_MOST_ELEMENTS = 4_000_000  # of all together
_SHORTEST, _FEWEST = 8, 2  # words in a row, rows
_OUTSIDE = 0.1  # as often as a word fills rows up it may stand elsewhere in them


class WastedRows:
    def __init__(self, place: Callable[[], At | None]) -> None:
        self.place = place  # of the program, that calls torch now
        self.thread = get_ident()
        self.elements = 0  # that are kept
        self.over = False
        self.words: list[tuple[str, Any, int, At | None]] = []  # path of the table, what is looked up, its version
        self.targets: list[tuple[Any, int, int, At | None]] = []  # classes, their version, the number of none
        self.replaced = Replaced()  # torch's function for the loss
        self._watch_losses()

    def looked_up(self, path: str, table: Any, args: Any) -> None:
        """Called with what any module is given."""
        with contextlib.suppress(Exception):
            import torch

            is_rows = args and isinstance(table, torch.nn.Embedding) and args[0].dim() == 2
            if is_rows and self._takes(args[0], self.words):
                self.words.append((path, args[0], args[0]._version, self.place()))

    def _watch_losses(self) -> None:
        """Not where something is compiled, which would be compiled again for another function."""
        functional = sys.modules.get("torch.nn.functional")
        overrides: Any = sys.modules.get("torch.overrides")
        if functional is None or overrides is None or module_hooks.compiles():
            return

        def wrap(original: Any) -> Any:
            def cross_entropy(*args: Any, **kwargs: Any) -> Any:
                # torch hands such tensors the function by its name in the module, which is ours now.
                given = [*args[:3], *(kwargs[name] for name in ("input", "target", "weight") if name in kwargs)]
                if overrides.has_torch_function(given):
                    return overrides.handle_torch_function(original, given, *args, **kwargs)
                with contextlib.suppress(Exception):
                    target = kwargs["target"] if "target" in kwargs else args[1]
                    if self._takes(target, self.targets):
                        none = kwargs.get("ignore_index", args[4] if len(args) > 4 else -100)
                        self.targets.append((target, target._version, none, self.place()))
                return original(*args, **kwargs)

            return cross_entropy

        self.replaced.replace(functional, "cross_entropy", wrap)

    def _takes(self, tensor: Any, kept: list[Any]) -> bool:
        import torch

        if self.over or len(kept) >= _MOST_KEPT or get_ident() != self.thread or type(tensor) is not torch.Tensor:
            return False
        count = tensor.numel()
        if tensor.dtype not in (torch.int64, torch.int32) or not 0 < count <= _MOST_ELEMENTS - self.elements:
            return False
        self.elements += count
        return True

    def remove(self) -> None:
        """Nothing is kept any more, whoever still has our function."""
        self.over = True
        self.words, self.targets = [], []
        self.replaced.undo()

    def padded(self) -> Iterator[tuple[str, int, int, At]]:
        """Of tables: the path, thousandths of words that fill rows up, those of them that no row needs, and where it is
        called. Positions, which are the same in all rows, are none."""
        for path, words, version, at in self.words:
            with contextlib.suppress(Exception), _aside():
                if at is None or words._version != version or _is_small(words) or bool((words == words[:1]).all()):
                    continue
                filled, needless = max(_filled(words), _filled(words.t()))
                yield path, round(1000 * filled), round(1000 * needless), at

    def ignored(self) -> Iterator[tuple[int, At]]:
        """Of losses: thousandths of the places of which they take nothing, and where they are asked for."""
        for target, version, none, at in self.targets:
            with contextlib.suppress(Exception), _aside():
                if at is not None and target._version == version:
                    yield round(1000 * float((target == none).float().mean())), at


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """Nothing of the job's meets what we ask torch. Raises where it would."""
    import torch

    if torch._C._len_torch_dispatch_stack() > 0:
        raise RuntimeError("a mode of the job's would see it")
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a device is waited for
        yield


def _is_small(words: Any) -> bool:
    return bool(words.shape[0] < _FEWEST or words.shape[1] < _FEWEST)


def _filled(rows: Any) -> tuple[float, float]:
    """Share of the one word that most rows end with, or begin with, again and again; and of the columns of nothing
    else."""
    if rows.shape[0] < _FEWEST or rows.shape[1] < _SHORTEST:
        return 0.0, 0.0
    return max(_at_end(rows), _at_end(rows.flip(1)))


def _at_end(rows: Any) -> tuple[float, float]:
    last = rows[:, -1].mode().values
    run = (rows.flip(1) == last).long().cumprod(1).sum(1)
    # A word that stands elsewhere as well is one of them, as an empty field of a board is.
    if float((rows == last).sum()) > (1 + _OUTSIDE) * float(run.sum()):
        return 0.0, 0.0
    return float(run.float().mean()) / rows.shape[1], float(run.min()) / rows.shape[1]
