"""The memory behind tensors: storages, each counted once, whoever shares it.

A tensor may be a view of a larger storage, share it with others (tied weights, flat buffers of gradients), or be a
shell around further tensors (DTensor, sparse, quantized). What is no memory of its own (meta, fake) has none here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_SPARSE_PARTS = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


class Unmeasured(Exception):
    """A tensor whose memory torch does not show, such as one in MKL-DNN's own layout."""


class Piece:
    """Bytes `start` to `end` of one storage."""

    __slots__ = ("end", "start", "storage")

    def __init__(self, storage: Any, start: int, end: int) -> None:
        self.storage, self.start, self.end = storage, start, end


def pieces(tensor: Any) -> Iterator[Piece]:
    flatten = getattr(type(tensor), "__tensor_flatten__", None)
    layout = str(tensor.layout)
    if flatten is not None:
        for part in (getattr(tensor, name) for name in flatten(tensor)[0]):
            if hasattr(part, "untyped_storage"):  # torch 2.13 names a DTensor's mesh too
                yield from pieces(part)
    elif layout in _SPARSE_PARTS:
        for part in _SPARSE_PARTS[layout]:
            yield from pieces(getattr(tensor, part)())
    elif layout not in ("torch.strided", "torch.jagged"):
        raise Unmeasured(f"a tensor of layout {layout}")
    else:
        storage = tensor.untyped_storage()
        if is_real(storage):
            yield Piece(storage, *_extent(tensor, storage))


def is_lazy(tensor: Any) -> bool:
    """Of a lazy module, which makes it at its first call: it has no memory yet."""
    return type(tensor).__name__.startswith("Uninitialized")


def is_real(storage: Any) -> bool:
    """Not that of a meta or fake tensor, nor of a shell without memory of its own."""
    try:
        return bool(storage.device.type != "meta" and (storage.nbytes() == 0 or storage.data_ptr() != 0))
    except RuntimeError:  # of a tensor that stands for another while torch traces
        return False


def _extent(tensor: Any, storage: Any) -> tuple[int, int]:
    if getattr(tensor, "is_nested", False):
        return 0, storage.nbytes()
    if tensor.numel() == 0:
        return 0, 0
    size = tensor.element_size()
    last = sum((count - 1) * stride for count, stride in zip(tensor.shape, tensor.stride()))
    start = tensor.storage_offset() * size
    return start, start + (last + 1) * size


class Shared:
    """A storage and who has how many bytes of it."""

    __slots__ = ("parts", "shares", "storage")

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.parts: list[tuple[int, int, int, int]] = []  # start, order, end, node
        self.shares: tuple[tuple[int, int], ...] = ()  # node, bytes

    def divide(self) -> None:
        """Each byte to the first tensor that shows it; bytes that none shows to the first of all."""
        own: dict[int, int] = {}
        reached = 0
        for start, _, end, node in sorted(self.parts):
            own[node] = own.get(node, 0) + max(0, end - max(start, reached))
            reached = max(reached, end)
        first = min(self.parts, key=lambda part: part[1])[3]
        own[first] += self.storage.nbytes() - sum(own.values())
        self.shares = tuple(own.items())


def shared_out(tensors: Iterable[tuple[int, Any]]) -> tuple[dict[int, Shared], list[str]]:
    """Storages of the tensors of these nodes by their address in torch, and what could not be measured."""
    found: dict[int, Shared] = {}
    unmeasured: list[str] = []
    for order, (node, tensor) in enumerate(tensors):
        if is_lazy(tensor):
            continue
        try:
            for piece in pieces(tensor):
                key = piece.storage._cdata
                shared = found.setdefault(key, Shared(piece.storage))
                shared.parts.append((piece.start, order, piece.end, node))
        except Exception as error:
            unmeasured.append(f"{type(tensor).__name__}: {error}")
    for shared in found.values():
        shared.divide()
    return found, unmeasured
