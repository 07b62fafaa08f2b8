"""Where tensors are, and what tells that they were written to. Nothing is asked of torch that it would record."""

from __future__ import annotations

import ctypes
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 64 << 20  # that are read, of all tensors together
PLACES, PLACE_BYTES = 64, 64  # of a tensor whose version is known


class Contents:
    """Methods raise where it is too much, or not in the host's memory."""

    def __init__(self) -> None:
        self.bytes = 0  # that were read

    def of(self, tensor: Any) -> tuple[int, int, int]:
        """Of a tensor of inference mode, for which torch counts no versions, its contents."""
        version = self.whole(tensor) if tensor.is_inference() else tensor._version
        return tensor.data_ptr(), tensor.storage_offset(), version

    def whole(self, tensor: Any) -> int:
        memory = tensor.untyped_storage()
        if tensor.device.type != "cpu" or self.bytes + memory.nbytes() > MOST_BYTES:
            raise ValueError("not compared")
        self.bytes += memory.nbytes()
        return zlib.crc32((ctypes.c_char * memory.nbytes()).from_address(memory.data_ptr()))

    def in_part(self, tensor: Any) -> int:
        """Some, from all over it, for what is written without a new version, as by way of .data; all of what another
        library has as well, such as numpy, which may write a single number."""
        memory = tensor.untyped_storage()
        start, size = memory.data_ptr(), memory.nbytes()
        if not memory.resizable() or size <= PLACES * PLACE_BYTES:
            return self.whole(tensor)
        at = ((size - PLACE_BYTES) * place // (PLACES - 1) for place in range(PLACES))
        return hash(b"".join(ctypes.string_at(start + one, PLACE_BYTES) for one in at))
