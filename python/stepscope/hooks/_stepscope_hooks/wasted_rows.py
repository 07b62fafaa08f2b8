"""What a model works on for nobody: words and frames that only fill up a batch, and places of which the loss takes
nothing.

Tensors of the numbers of words and classes, and of the frames that a model is given, are kept in the step that is
recorded with stacks, and looked at when it is over.
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
_MOST_FRAMES = 2  # tensors: what the model is given, and not what its layers make of it
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
        self.frames: list[tuple[str, Any, int, At | None]] = []  # the same of what the model is given in rows of frames
        self.targets: list[tuple[Any, int, int, At | None]] = []  # classes, their version, the number of none
        self.replaced = Replaced()  # torch's function for the loss
        self._watch_losses()

    def looked_up(self, path: str, table: Any, args: Any) -> None:
        """Called with what any module is given."""
        with contextlib.suppress(Exception):
            import torch

            is_rows = args and isinstance(table, torch.nn.Embedding) and args[0].dim() == 2
            if is_rows and self._takes(args[0], self.words):
                self.words.append((path, args[0], _version(args[0]), self.place()))
            is_framed = args and type(args[0]) is torch.Tensor and args[0].dim() == 3 and args[0].is_floating_point()
            is_new = is_framed and all(args[0] is not one for _, one, *_ in self.frames)
            if is_new and len(self.frames) < _MOST_FRAMES and self._has_room(args[0]):
                self.frames.append((path, args[0], _version(args[0]), self.place()))

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
                        self.targets.append((target, _version(target), none, self.place()))
                return original(*args, **kwargs)

            return cross_entropy

        self.replaced.replace(functional, "cross_entropy", wrap)

    def _takes(self, tensor: Any, kept: list[Any]) -> bool:
        import torch

        if len(kept) >= _MOST_KEPT or type(tensor) is not torch.Tensor:
            return False
        return tensor.dtype in (torch.int64, torch.int32) and self._has_room(tensor)

    def _has_room(self, tensor: Any) -> bool:
        count = tensor.numel()
        if self.over or get_ident() != self.thread or not 0 < count <= _MOST_ELEMENTS - self.elements:
            return False
        self.elements += count
        return True

    def remove(self) -> None:
        """Nothing is kept any more, whoever still has our function."""
        self.over = True
        self.words, self.frames, self.targets = [], [], []
        self.replaced.undo()

    def padded(self) -> Iterator[tuple[str, int, int, At]]:
        """Of tables: the path, thousandths of words that fill rows up, those of them that no row needs, and where it is
        called. Positions, which are the same in all rows, are none."""
        for path, words, version, at in self.words:
            with contextlib.suppress(Exception), _aside():
                if at is None or _version(words) != version or _is_small(words) or bool((words == words[:1]).all()):
                    continue
                filled, needless = max(_filled(words), _filled(words.t()))
                yield path, round(1000 * filled), round(1000 * needless), at

    def padded_frames(self) -> Iterator[tuple[str, int, int, int, int, At]]:
        """Of modules that are given rows of frames: the same, with how many rows there are and how long they are. Rows
        that are all filled up alike are no such."""
        for path, given, version, at in self.frames:
            with contextlib.suppress(Exception), _aside():
                if at is None or _version(given) != version:
                    continue
                for frames in (given, given.transpose(1, 2)):
                    filled, needless = _filled_frames(frames)
                    if filled > 0:
                        yield path, round(1000 * filled), round(1000 * needless), *frames.shape[:2], at

    def ignored(self) -> Iterator[tuple[int, At]]:
        """Of losses: thousandths of the places of which they take nothing, and where they are asked for."""
        for target, version, none, at in self.targets:
            with contextlib.suppress(Exception), _aside():
                if at is not None and _version(target) == version:
                    yield round(1000 * float((target == none).float().mean())), at


def _version(tensor: Any) -> int:
    """Those that are made in inference mode have none: they may hold another batch later, filled up as well."""
    return -1 if tensor.is_inference() else int(tensor._version)


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


def _filled_frames(frames: Any) -> tuple[float, float]:
    """The same of frames, (rows, length, numbers of a frame): those all of whose numbers are one and the same."""
    if frames.shape[0] < _FEWEST or frames.shape[1] < _SHORTEST or frames.shape[2] < _FEWEST:
        return 0.0, 0.0
    best = 0.0, 0.0
    for ends in (frames, frames.flip(1)):
        run = _run((ends == ends[:, -1, 0].mode().values).all(2))
        if run is not None and bool((run != run[0]).any()):
            best = max(best, _shares(run, frames.shape[1]))
    return best


def _at_end(rows: Any) -> tuple[float, float]:
    run = _run(rows == rows[:, -1].mode().values)
    return (0.0, 0.0) if run is None else _shares(run, rows.shape[1])


def _run(fills: Any) -> Any:
    """How many at the end of each row fill it up; None: such ones stand elsewhere as well, as an empty field of a board
    does."""
    run = fills.flip(1).long().cumprod(1).sum(1)
    return None if float(fills.sum()) > (1 + _OUTSIDE) * float(run.sum()) else run


def _shares(run: Any, length: int) -> tuple[float, float]:
    return float(run.float().mean()) / length, float(run.min()) / length
