"""Leaves glibc's heap as a recording found it, so that the job runs on as if nobody had recorded.

What a recorder notes lies between the job's tensors. Of what the job gives back glibc then keeps holes that the same
tensors do not fit in again (an aligned one needs more room than it left), and the heap grows by all that a step makes,
in each recorded step: 1.8 GB instead of 0.2 for a network of 0.4 GB of activations, measured with glibc 2.36. What
lies behind these holes stays there; so the job has room afterwards that never goes back to the system, and its steps no
longer wait for new pages: 30 % shorter ones in some jobs.

Between recorded steps free pages go back to the system only where memory may become short. When all is written, holes
beyond those that were there before are taken out of use: allocated, and never touched again, so that they are addresses
without memory.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import threading
import time

from .context import available_bytes, first_line
from .process import resident_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    import resource
except ImportError:  # a Python that was built without it
    resource = None  # type: ignore[assignment]

_WORTH_BYTES = 8 << 20  # less changes nothing
_LEFT_BYTES = 64 << 20  # of holes: more is not as it was
_PART_OF_AVAILABLE = 0.25  # so much of what the system still has in holes is too much
_SMALLEST_BYTES = 64 << 10  # of a hole that is taken out of use
_MOST_TAKEN_BYTES = 64 << 30  # of addresses
_MOST_S = 0.1  # of processor time, to take holes out of use between two steps
_MOST_TIMES = 10  # between two steps
_SOON_S = 60.0  # for so long what was there before tells what is the job's own
_MAPPED, _OF_A_THREAD = 2, 4  # bits of the word before a block: mapped for itself, of another heap than the main one
_FLAGS = 7  # all bits of that word that are no size
_DONT_NEED = 4  # MADV_DONTNEED: the pages are gone, what is read there is 0
_REST = re.compile(rb'<total type="rest" count="\d+" size="(\d+)"')
_BIN = re.compile(rb'<(?:size|unsorted) from="(\d+)" to="(\d+)" total="\d+" count="(\d+)"')
_ALIKE = 0.94  # as much of a size is about that size
# By these a job says itself what its heap keeps.
_OF_THE_JOB = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_")


class _Place(ctypes.Structure):  # Dl_info
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    ]


class _Mallinfo(ctypes.Structure):  # struct mallinfo2
    _fields_ = [(f"f{i}", ctypes.c_size_t) for i in range(9)] + [("keepcost", ctypes.c_size_t)]


class Glibc:
    """Its functions. Raises AttributeError or OSError where the process has another C library or allocator, or an older
    one, which does not tell of its heap what it should, or where the job has settings or limits of its own."""

    def __init__(self) -> None:
        c = self.c = ctypes.CDLL(None)
        self.mallinfo: Any = c.mallinfo2  # since 2.33
        self.mallinfo.restype = _Mallinfo
        c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        c.free.restype, c.free.argtypes = None, [ctypes.c_void_p]
        c.sbrk.restype, c.sbrk.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
        c.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        c.malloc_trim.argtypes = [ctypes.c_size_t]
        c.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
        c.open_memstream.restype, c.open_memstream.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]
        c.fclose.argtypes = [ctypes.c_void_p]
        if len({self.library_of(one) for one in (c.malloc, c.free, c.malloc_info)}) != 1:
            raise OSError("another allocator takes the place of glibc's")
        if any(name in os.environ for name in _OF_THE_JOB) or "malloc" in os.environ.get("GLIBC_TUNABLES", ""):
            raise OSError("the job says itself what its heap keeps")
        if addresses_count():
            raise OSError("what is taken out of use would count")

    def library_of(self, function: Any) -> bytes:
        place = _Place()
        address = ctypes.cast(function, ctypes.c_void_p)
        if not self.c.dladdr(address, ctypes.byref(place)) or not place.file:
            raise OSError("no library has it")
        return bytes(place.file)

    def holes(self) -> tuple[int, list[tuple[int, int]]] | None:
        """Free bytes of the main heap before its end, which goes back to the system once it is large; and free pieces
        that are known, the largest first: bytes, and how many are at least as large. None: it does not tell."""
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        stream = self.c.open_memstream(ctypes.byref(text), ctypes.byref(size))
        if not stream:
            return None
        self.c.malloc_info(0, stream)
        self.c.fclose(stream)
        try:
            told = ctypes.string_at(text.value, size.value) if text.value else b""
        finally:
            self.c.free(text)
        main = told.partition(b"</heap>")[0]
        free = _REST.search(main)
        if free is None:
            return None
        bytes_free = max(0, int(free[1]) - int(self.mallinfo().keepcost))
        bins = (map(int, one) for one in _BIN.findall(main))
        pieces = (
            (smallest & ~_FLAGS, count) if smallest >= _ALIKE * largest else (largest & ~_FLAGS, 1)
            for smallest, largest, count in bins
        )
        return bytes_free, sorted(pieces, reverse=True)

    def end_of_holes(self) -> int:
        """The address behind which the main heap is free."""
        return int(self.c.sbrk(0)) - int(self.mallinfo().keepcost)

    def take(self, size: int, until: int) -> int | None:
        """The address of a hole of so many bytes before `until`; None: there is none any more."""
        address = self.c.malloc(size)
        if not address:
            return None
        of = ctypes.c_size_t.from_address(address - ctypes.sizeof(ctypes.c_size_t)).value
        if of & _MAPPED:
            return None  # never touched, and to free it would change what glibc maps later
        if of & _OF_A_THREAD or address >= until:
            self.c.free(address)
            return None
        return int(address)

    def forget(self, address: int, size: int) -> bool:
        """The pages in there go back to the system."""
        first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (address + size) // mmap.PAGESIZE * mmap.PAGESIZE
        return last <= first or self.c.madvise(first, last - first, _DONT_NEED) == 0

    def free(self, address: int) -> None:
        self.c.free(address)

    def trim(self) -> None:
        """All free pages of all heaps go back to the system."""
        self.c.malloc_trim(0)


def addresses_count() -> bool:
    """Does the system limit what a process may allocate without touching it?"""
    if resource is not None:
        limits = (resource.getrlimit(one)[0] for one in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
        if any(limit != resource.RLIM_INFINITY for limit in limits):
            return True
    try:
        return first_line("/proc/sys/vm/overcommit_memory") == "2"
    except OSError:
        return False


class Heap:
    """That of one process: a child that was forked off has its own."""

    def __init__(self) -> None:
        self.before: int | None = None  # bytes of holes when something was recorded
        self.before_s = 0.0  # when that was
        self.disturbed = False  # something was recorded since it was cleared up
        self.spoiled = False  # it could not be cleared up
        self.taken_bytes = 0
        self.times = 0  # that there was not enough time to clear it up
        self.glibc: Glibc | None = None
        try:
            self.glibc = Glibc()
        except (AttributeError, OSError):
            pass

    @property
    def is_as_it_was(self) -> bool:
        """As far as can be told."""
        return self.before is not None and not self.spoiled and not self.disturbed

    def holes(self) -> tuple[int, list[tuple[int, int]]] | None:
        """As Glibc has them. None: not known, or this is not the thread whose heap it is."""
        if self.glibc is None or threading.get_ident() != threading.main_thread().ident:
            return None
        return self.glibc.holes()

    def recording_begins(self, warm: bool) -> None:
        """`warm`: the job has the memory by now that it will have."""
        if self.disturbed:
            return
        self.disturbed = True
        if self.before is None or time.monotonic() - self.before_s > _SOON_S:
            told = self.holes() if warm else None
            self.before, self.before_s = None if told is None else told[0], time.monotonic()
            self.spoiled = self.spoiled or told is None

    def more(self) -> tuple[int, list[tuple[int, int]]] | None:
        """Bytes of holes that were not there before, and the pieces of all."""
        told = None if self.before is None else self.holes()
        return None if told is None or self.before is None else (told[0] - self.before, told[1])

    def recorded_step_ended(self) -> None:
        """Another one follows. Nothing is recorded here. That has to wait for pages that go back now, so that they do
        only where memory may become short."""
        if self.glibc is None or not self.disturbed:
            return
        too_much = _PART_OF_AVAILABLE * available_bytes()
        if resident_bytes() < too_much:
            return
        more = self.more()
        if more is not None and more[0] >= too_much:
            self.glibc.trim()

    def recording_ended(self) -> None:
        """All of it is written and let go."""
        if not self.disturbed:
            return
        self.disturbed = False
        if self.spoiled or self.glibc is None:
            return
        cleared = self.clear_up()
        self.times = self.times + 1 if cleared is None else 0
        self.disturbed = cleared is None and self.times < _MOST_TIMES  # it goes on between the next two steps
        self.spoiled = not cleared and not self.disturbed

    def clear_up(self) -> bool | None:
        """Whether what is left of holes beyond those before is little; None: there was no time to get that far."""
        until_s = time.thread_time() + _MOST_S
        while True:
            more = self.more()
            if more is None:
                return False
            left, pieces = more
            if left < _WORTH_BYTES or not pieces or pieces[0][0] < _SMALLEST_BYTES:
                return left < _LEFT_BYTES
            if not self.take_pieces(left, pieces, until_s):
                return False
            if time.thread_time() > until_s:
                return None

    def take_pieces(self, left: int, pieces: list[tuple[int, int]], until_s: float) -> bool:
        """As many holes as are known, the largest first; False: none of them can be taken."""
        assert self.glibc is not None
        end, taken = self.glibc.end_of_holes(), False
        for size, count in pieces:
            for _ in range(count):
                size = min(size, left) - ctypes.sizeof(ctypes.c_size_t)
                if size < _SMALLEST_BYTES // 2 or self.taken_bytes + size > _MOST_TAKEN_BYTES:
                    return taken
                address = self.glibc.take(size, end)
                if address is None:
                    return taken
                if not self.glibc.forget(address, size):  # of a process that locks its memory, say
                    self.glibc.free(address)
                    return False
                left -= size
                self.taken_bytes += size
                taken = True
                size += ctypes.sizeof(ctypes.c_size_t)
                if time.thread_time() > until_s:
                    return True
        return taken
