"""What memory is there, for what, of which module: the sum at every moment, its peak, and what it consisted of then.

Storages of parameters, gradients and the like are looked at between passes (`hold`); what autograd keeps is told as it
comes and goes (`keep`). Each storage counts once, for the first category of the list that has it. Every change is a
move in a list since the last `cut`; the state at the peak in between is found by going through the moves again.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque

from .storages import is_real, pieces, shared_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Layout = dict[tuple[int, int], int]  # (category, node) → bytes

CATEGORIES = (
    "parameter",
    "buffer",
    "gradient",
    "master_parameter",
    "optimizer_state",
    "activation",
    "input",
)
PARAMETER, BUFFER, GRADIENT, MASTER_PARAMETER, OPTIMIZER_STATE, ACTIVATION, INPUT = range(7)


class Entry:
    """One storage."""

    __slots__ = ("alive", "category", "device", "gone", "holders", "key", "shares", "until_freed", "watch")

    def __init__(self, ledger: Ledger, category: int, storage: Any, shares: tuple[tuple[int, int], ...]) -> None:
        self.category, self.shares = category, shares  # node, bytes
        self.key = storage._cdata
        self.device = ledger.of_device(str(storage.device))
        self.gone = ledger.gone
        self.holders = 0  # of what autograd keeps: how many Kept there are
        self.until_freed = False  # it is kept as long as there is memory behind it
        self.alive = True
        self.watch: Any = None


class Ledger:
    def __init__(self, where: Callable[[], int], problem: Callable[[str], None]) -> None:
        import torch

        self.where, self.problem = where, problem  # the node of the module that runs in this thread
        self.parameter_class: Any = torch.nn.Parameter
        self.plain, self.strided = (torch.Tensor, torch.nn.Parameter), torch.strided
        self.lock = threading.RLock()  # passes run on threads of their own
        self.gone: deque[Any] = deque()  # entries that somebody let go of; filled from anywhere, also from inside of us
        self.freed: deque[Any] = deque()
        self.entries: dict[int, Entry] = {}
        self.devices: dict[str, list[int]] = {}  # bytes by category
        self.inputs: dict[int, Any] = {}  # of the model: weak references to their storages, where there can be some
        self.total = 0
        self.moves: list[tuple[int, int, int]] = []  # category, node, bytes: since `start`
        self.start: Layout = {}
        self.weak_storages = _storages_can_be_watched()
        self.begin_interval()

    def begin_interval(self) -> None:
        self.peak = self.total
        self.peak_at = 0  # moves up to it
        self.peak_unix_ns = time.time_ns()

    def of_device(self, name: str) -> list[int]:
        return self.devices.setdefault(name, [0] * len(CATEGORIES))

    # What autograd keeps, told while the job runs -----------------------------------------------------------------
    def keep(self, tensor: Any, watched: bool) -> tuple[Any, ...]:
        if type(tensor) in self.plain and tensor.layout is self.strided:
            return self._keep_storage(tensor.untyped_storage(), tensor, watched)
        found: tuple[Any, ...] = ()
        for piece in pieces(tensor):
            found += self._keep_storage(piece.storage, tensor, watched)
        return found

    def _keep_storage(self, storage: Any, tensor: Any, watched: bool) -> tuple[Any, ...]:
        with self.lock:
            entry = self._kept(storage, tensor)
            if entry is None:
                return ()
            entry.holders += 1
            if watched:
                self._watch(entry, storage)
            return (entry,)

    def observe(self, tensor: Any) -> None:
        """Kept until its memory is free, by the end of the backward pass at the latest: recomputed for it."""
        for piece in pieces(tensor):
            with self.lock:
                entry = self._kept(piece.storage, tensor)
                if entry is not None and entry.holders == 0:
                    entry.until_freed = True
                    self._watch(entry, piece.storage)

    def _kept(self, storage: Any, tensor: Any) -> Entry | None:
        if self.gone or self.freed:
            self._settle()
        entry = self.entries.get(storage._cdata)
        if entry is not None:
            return entry if entry.category >= ACTIVATION else None
        if isinstance(tensor, self.parameter_class) or isinstance(tensor._base, self.parameter_class):
            return None  # a parameter of a model that is not looked at, or one gathered for a while
        size = storage.nbytes()
        if size == 0 or not is_real(storage):
            return None
        category = INPUT if self._is_input(storage) else ACTIVATION
        entry = Entry(self, category, storage, ((self.where(), size),))
        self._add(entry)
        return entry

    def _is_input(self, storage: Any) -> bool:
        known = self.inputs.get(storage._cdata, False)
        return known is None or (known is not False and known() is storage)

    def _watch(self, entry: Entry, storage: Any) -> None:
        if self.weak_storages and entry.watch is None:
            freed = self.freed
            entry.watch = weakref.ref(storage, lambda _: freed.append(entry))

    def failed(self, error: Exception) -> None:
        self.problem(f"a tensor that autograd keeps was not measured: {type(error).__name__}: {error}")

    def take_inputs(self, tensors: Iterable[Any]) -> None:
        """What the model is called with: of it nothing is an activation."""
        self.inputs = {}
        for tensor in tensors:
            if tensor.grad_fn is not None or isinstance(tensor, self.parameter_class):
                continue
            for piece in pieces(tensor):
                self.inputs[piece.storage._cdata] = weakref.ref(piece.storage) if self.weak_storages else None

    # What is looked at between passes -----------------------------------------------------------------------------
    def hold(self, category: int, tensors: Iterable[tuple[int, Any]]) -> None:
        """These, and no others, are in this category now."""
        found, unmeasured = shared_out(tensors)
        for why in dict.fromkeys(unmeasured):
            self.problem(f"not measured, as {CATEGORIES[category]}: {why}")
        with self.lock:
            self._settle()
            for entry in [one for one in self.entries.values() if one.category == category]:
                same = found.get(entry.key)
                if same is None or same.shares != entry.shares:
                    self._remove(entry)
            for shared in found.values():
                self._claim(category, shared)

    def add(self, category: int, node: int, tensor: Any) -> None:
        """This one too: a gradient that is there now."""
        with self.lock:
            self._settle()
            for shared in shared_out([(node, tensor)])[0].values():
                if shared.storage._cdata not in self.entries:
                    self._claim(category, shared)

    def _claim(self, category: int, shared: Any) -> None:
        known = self.entries.get(shared.storage._cdata)
        if known is not None and known.category <= category:
            return  # counted there
        if known is not None:
            self._remove(known)
        if shared.storage.nbytes() > 0:
            entry = Entry(self, category, shared.storage, shared.shares)
            self._add(entry)
            self._watch(entry, shared.storage)

    # Sums ---------------------------------------------------------------------------------------------------------
    def _add(self, entry: Entry) -> None:
        self.entries[entry.key] = entry
        self._move(entry, 1)
        if self.total > self.peak:
            self.peak, self.peak_at, self.peak_unix_ns = self.total, len(self.moves), time.time_ns()

    def _remove(self, entry: Entry) -> None:
        if entry.alive:
            entry.alive, entry.watch = False, None
            del self.entries[entry.key]
            self._move(entry, -1)

    def _move(self, entry: Entry, sign: int) -> None:
        category = entry.category
        for node, size in entry.shares:
            entry.device[category] += sign * size
            self.total += sign * size
            self.moves.append((category, node, sign * size))

    def _settle(self) -> None:
        """Takes out what is gone. In the order in which it went, and before anything new can have its address."""
        while self.gone:
            entry = self.gone.popleft()
            entry.holders -= 1
            if entry.holders == 0 and not entry.until_freed:
                self._remove(entry)
        while self.freed:
            self._remove(self.freed.popleft())

    def backward_ended(self) -> None:
        with self.lock:
            self._settle()
            for entry in [one for one in self.entries.values() if one.until_freed]:
                entry.until_freed = False
                if entry.holders == 0:
                    self._remove(entry)

    def sums(self) -> list[int]:
        with self.lock:
            self._settle()
        return [sum(device[category] for device in self.devices.values()) for category in range(len(CATEGORIES))]

    # States -------------------------------------------------------------------------------------------------------
    def layout(self) -> Layout:
        with self.lock:
            self._settle()
            return self._after(len(self.moves))

    def layout_at_peak(self) -> Layout:
        with self.lock:
            return self._after(self.peak_at)

    def _after(self, moves: int) -> Layout:
        found = dict(self.start)
        for category, node, size in self.moves[:moves]:
            found[category, node] = found.get((category, node), 0) + size
        return {key: size for key, size in found.items() if size != 0}

    def cut(self) -> None:
        """A new interval begins here."""
        with self.lock:
            self.start, self.moves = self.layout(), []
            self.begin_interval()


def _storages_can_be_watched() -> bool:
    """Whether the Python object of a storage lives as long as the storage. Where it does not, as in torch 2.1, a weak
    reference to it is not even told of its end, and crashes later."""
    import torch

    tensor = torch.empty(1)
    tensor.untyped_storage()._stepscope_was_here = True
    return hasattr(tensor.untyped_storage(), "_stepscope_was_here")
