"""What a model works on for nobody: words that only fill up a batch, and places of which the loss takes nothing.

Tensors of the numbers of words and classes are kept in the step that is recorded with stacks, and looked at when it is
over.
"""

from __future__ import annotations

import contextlib
import sys
from threading import get_ident

from . import module_hooks
from .replaced import Replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    At = tuple[str, int, int]  # file, first line of the function, line

_MOST_KEPT = 8  # of each kind
_MOST_ELEMENTS = 4_000_000
_SHORTEST, _FEWEST = 8, 2  # words in a row, rows


class WastedRows:
    def __init__(self, place: Callable[[], At | None]) -> None:
        self.place = place  # of the program, that calls torch now
        self.thread = get_ident()
        self.words: list[tuple[str, Any, int, At | None]] = []  # path of the table, what is looked up, its version
        self.targets: list[tuple[Any, int, int, At | None]] = []  # classes, their version, the number of none
        self.replaced = Replaced()  # torch's function for the loss
        self._watch_losses()

    def looked_up(self, path: str, table: Any, args: Any) -> None:
        """Called with what any module is given."""
        import torch

        if len(self.words) < _MOST_KEPT and args and isinstance(table, torch.nn.Embedding):
            with contextlib.suppress(Exception):
                if get_ident() == self.thread and _is_kept(args[0]) and args[0].dim() == 2:
                    self.words.append((path, args[0], args[0]._version, self.place()))

    def _watch_losses(self) -> None:
        """Not where something is compiled, which would be compiled again for another function."""
        functional = sys.modules.get("torch.nn.functional")
        if functional is None or module_hooks.compiles():
            return

        def wrap(original: Any) -> Any:
            def cross_entropy(*args: Any, **kwargs: Any) -> Any:
                with contextlib.suppress(Exception):
                    target = kwargs["target"] if "target" in kwargs else args[1]
                    if len(self.targets) < _MOST_KEPT and get_ident() == self.thread and _is_kept(target):
                        none = kwargs.get("ignore_index", args[4] if len(args) > 4 else -100)
                        self.targets.append((target, target._version, none, self.place()))
                return original(*args, **kwargs)

            return cross_entropy

        self.replaced.replace(functional, "cross_entropy", wrap)

    def remove(self) -> None:
        self.replaced.undo()

    def padded(self) -> Iterator[tuple[str, int, int, At]]:
        """Of tables: the path, thousandths of words that fill rows up, those of them that no row needs, and where it is
        called."""
        import torch

        kept, self.words = self.words, []
        for path, words, version, at in kept:
            with contextlib.suppress(Exception), torch.no_grad():
                if at is None or words._version != version:
                    continue
                filled, needless = max(_filled(words), _filled(words.t()))
                yield path, round(1000 * filled), round(1000 * needless), at

    def ignored(self) -> Iterator[tuple[int, At]]:
        """Of losses: thousandths of the places of which they take nothing, and where they are asked for."""
        import torch

        kept, self.targets = self.targets, []
        for target, version, none, at in kept:
            with contextlib.suppress(Exception), torch.no_grad():
                if at is not None and target._version == version:
                    yield round(1000 * float((target == none).float().mean())), at


def _is_kept(tensor: Any) -> bool:
    import torch

    return (
        isinstance(tensor, torch.Tensor)
        and tensor.dtype in (torch.int64, torch.int32)
        and 0 < tensor.numel() <= _MOST_ELEMENTS
    )


def _filled(rows: Any) -> tuple[float, float]:
    """Share of the one word that most rows end with, or begin with, again and again; and of the columns of nothing
    else."""
    if rows.shape[0] < _FEWEST or rows.shape[1] < _SHORTEST:
        return 0.0, 0.0
    return max(_at_end(rows), _at_end(rows.flip(1)))


def _at_end(rows: Any) -> tuple[float, float]:
    last = rows[:, -1].mode().values
    run = (rows.flip(1) == last).long().cumprod(1).sum(1).float() / rows.shape[1]
    return float(run.mean()), float(run.min())
