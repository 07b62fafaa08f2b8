"""torch's caching allocator for CUDA, modeled: what it would give, split, merge, map and record for mallocs.

Written from the rules of c10/cuda/CUDACachingAllocator.cpp (sizes rounded to 512 B, pools of small and large blocks for
each stream, best fit, segments of 2 MiB, 20 MiB or what is asked for, expandable segments, private pools, cached
segments given back before memory runs out), so that snapshots for tests have the form, the sizes and the holes of real
ones without a GPU. It knows the true state at any event, which is what the tests compare stepscope's answers with.
"""

from __future__ import annotations

import bisect
import copy
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
LEAST = 512
SMALL = MIB  # the largest block of the pool of small ones
Pool = tuple[int, int]


class OutOfMemory(Exception):
    pass


@dataclass(eq=False)
class Block:
    segment: Segment
    address: int
    size: int
    requested: int = 0
    free: bool = True
    pending: bool = False
    frames: list[dict[str, Any]] = field(default_factory=list)


@dataclass(eq=False)
class Segment:
    address: int
    small: bool
    stream: int
    pool: Pool
    expandable: bool
    blocks: list[Block] = field(default_factory=list)  # by address; of an expandable one only what is mapped
    frames: list[dict[str, Any]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)


def rounded(size: int) -> int:
    return LEAST if size < LEAST else (size + LEAST - 1) // LEAST * LEAST


class Allocator:
    """One device with `capacity` bytes, of which `outside` are taken by others."""

    def __init__(
        self, capacity: int = 80 * GIB, *, expandable: bool = False, outside: int = 0, device: int = 0
    ) -> None:
        self.capacity, self.outside, self.expandable, self.device = capacity, outside, expandable, device
        self.segments: list[Segment] = []
        self.events: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.live: dict[int, Block] = {}
        self.next_address = 0x7F00_0000_0000
        self.now = 1_700_000_000_000_000  # µs
        self.recording = True
        self.stream, self.pool = 0, (0, 0)
        self.states: dict[int, list[dict[str, Any]]] = {}  # true segments by number of the event they are after

    # ---- what the program calls ----

    def malloc(self, size: int, frames: list[dict[str, Any]] | None = None, **said: Any) -> int:
        frames = frames or []
        wanted = rounded(size)
        block = self._find(wanted) or self._grow(wanted, frames)
        if block is None:
            self._give_back_cached(frames)
            block = self._grow(wanted, frames)
        if block is None:
            self._record("oom", frames, size=wanted, device_free=self.device_free(), stream=self.stream, **said)
            raise OutOfMemory
        self._take(block, wanted, size, frames)
        self._record("alloc", frames, addr=block.address, size=size, stream=self.stream, **said)
        return block.address

    def free(self, address: int, frames: list[dict[str, Any]] | None = None, *, pending: bool = False) -> None:
        """pending: a stream still uses it (record_stream); complete() ends that."""
        block = self.live[address]
        self._record("free_requested", frames or [], addr=address, size=block.requested, stream=block.segment.stream)
        block.pending = True
        if not pending:
            self.complete(address, frames)

    def complete(self, address: int, frames: list[dict[str, Any]] | None = None) -> None:
        block = self.live.pop(address)
        self._record("free_completed", frames or [], addr=address, size=block.requested, stream=block.segment.stream)
        block.free, block.pending, block.frames = True, False, []
        self._merge(block)

    def mark(self, name: str, stage: str) -> None:
        self.now += 1
        self.annotations.append({"stage": stage, "name": name, "device": self.device, "time_us": self.now})
        self.now += 1

    def empty_cache(self) -> None:
        self._give_back_cached([])

    # ---- the truth ----

    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    def device_free(self) -> int:
        return self.capacity - self.outside - self.reserved()

    def remember(self) -> int:
        """Keeps the true segments after the newest event; gives its number."""
        self.states[len(self.events) - 1] = self._segment_infos()
        return len(self.events) - 1

    def snapshot(self, newest: int | None = None) -> dict[str, Any]:
        """As torch.cuda.memory._snapshot() gives it; with `newest` a ring that held so many events."""
        events = self.events[-newest:] if newest else self.events
        return {
            "segments": self._segment_infos(),
            "device_traces": [[] for _ in range(self.device)] + [copy.copy(events)],
            "allocator_settings": {
                "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True" if self.expandable else "",
                "max_split_size": -1,
                "garbage_collection_threshold": 0.0,
                "expandable_segments": self.expandable,
                "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)},
            },
            "external_annotations": list(self.annotations),
        }

    # ---- how it works ----

    def _record(self, action: str, frames: list[dict[str, Any]], **said: Any) -> None:
        self.now += 3
        if self.recording:
            self.events.append({"action": action, **said, "time_us": self.now, "frames": frames})

    def _find(self, wanted: int) -> Block | None:
        """The smallest free block that is large enough, of the lowest address."""
        small = wanted <= SMALL
        fits = [
            block
            for segment in self.segments
            if segment.small == small and segment.stream == self.stream and segment.pool == self.pool
            for block in segment.blocks
            if block.free and block.size >= wanted
        ]
        return min(fits, key=lambda block: (block.size, block.address), default=None)

    def _grow(self, wanted: int, frames: list[dict[str, Any]]) -> Block | None:
        if self.expandable:
            return self._map(wanted, frames)
        if wanted <= SMALL:
            size = 2 * MIB
        elif wanted < 10 * MIB:
            size = 20 * MIB
        else:
            size = (wanted + 2 * MIB - 1) // (2 * MIB) * (2 * MIB)
        if size > self.device_free():
            return None
        segment = Segment(self._reserve(size), wanted <= SMALL, self.stream, self.pool, False, frames=frames)
        block = Block(segment, segment.address, size)
        segment.blocks.append(block)
        self.segments.append(segment)
        self._record("segment_alloc", frames, addr=segment.address, size=size, stream=self.stream)
        return block

    def _map(self, wanted: int, frames: list[dict[str, Any]]) -> Block | None:
        """Grows the expandable segment of the stream and pool at its end, by whole pages."""
        small = wanted <= SMALL
        page = 2 * MIB if small else 20 * MIB
        same = (small, self.stream, self.pool)
        segment = next((s for s in self.segments if (s.small, s.stream, s.pool) == same), None)
        if segment is None:
            segment = Segment(self._reserve(4 * self.capacity), *same, True)
            self.segments.append(segment)
        last = segment.blocks[-1] if segment.blocks else None
        start = last.address + last.size if last else segment.address
        missing = wanted - (last.size if last and last.free else 0)
        size = (missing + page - 1) // page * page
        if size > self.device_free():
            return None
        self._record("segment_map", frames, addr=start, size=size, stream=self.stream)
        block = Block(segment, start, size)
        segment.blocks.append(block)
        self._merge(block)
        return segment.blocks[-1]

    def _reserve(self, size: int) -> int:
        address = self.next_address
        self.next_address += (size + 4 * MIB) // (2 * MIB) * (2 * MIB)
        return address

    def _take(self, block: Block, wanted: int, requested: int, frames: list[dict[str, Any]]) -> None:
        rest = block.size - wanted
        segment = block.segment
        if rest >= LEAST if segment.small or self.expandable else rest > SMALL:
            at = segment.blocks.index(block)
            segment.blocks.insert(at + 1, Block(segment, block.address + wanted, rest))
            block.size = wanted
        block.free, block.requested, block.frames = False, requested, frames
        self.live[block.address] = block

    def _merge(self, block: Block) -> None:
        blocks = block.segment.blocks
        at = blocks.index(block)
        if at + 1 < len(blocks) and blocks[at + 1].free:
            block.size += blocks.pop(at + 1).size
        if at > 0 and blocks[at - 1].free:
            blocks[at - 1].size += blocks.pop(at).size

    def _give_back_cached(self, frames: list[dict[str, Any]]) -> None:
        for segment in list(self.segments):
            if segment.expandable:
                self._unmap(segment, frames)
            elif all(block.free for block in segment.blocks):
                self.segments.remove(segment)
                self._record("segment_free", frames, addr=segment.address, size=segment.size, stream=segment.stream)

    def _unmap(self, segment: Segment, frames: list[dict[str, Any]]) -> None:
        """The whole pages within free blocks. What is left on either side stays mapped."""
        page = 2 * MIB if segment.small else 20 * MIB
        for block in [block for block in segment.blocks if block.free]:
            low = segment.address + (block.address - segment.address + page - 1) // page * page
            high = segment.address + (block.address + block.size - segment.address) // page * page
            if low >= high:
                continue
            at = segment.blocks.index(block)
            rest = [
                Block(segment, start, end - start)
                for start, end in ((block.address, low), (high, block.address + block.size))
                if end > start
            ]
            segment.blocks[at : at + 1] = rest
            self._record("segment_unmap", frames, addr=low, size=high - low, stream=segment.stream)
        if not segment.blocks:
            self.segments.remove(segment)

    def _segment_infos(self) -> list[dict[str, Any]]:
        infos = []
        for segment in self.segments:
            run: list[Block] = []
            for block in [*segment.blocks, None]:
                if run and (block is None or run[-1].address + run[-1].size != block.address):
                    infos.append(self._info(segment, run))
                    run = []
                if block is not None:
                    run.append(block)
        infos.sort(key=lambda info: info["address"])
        return infos

    def _info(self, segment: Segment, blocks: list[Block]) -> dict[str, Any]:
        held = [block for block in blocks if not block.free]
        state = {(True, False): "inactive", (False, False): "active_allocated", (False, True): "active_pending_free"}
        return {
            "device": self.device,
            "address": blocks[0].address,
            "total_size": sum(block.size for block in blocks),
            "allocated_size": sum(block.size for block in held if not block.pending),
            "active_size": sum(block.size for block in held),
            "requested_size": sum(block.requested for block in held),
            "stream": segment.stream,
            "segment_type": "small" if segment.small else "large",
            "segment_pool_id": segment.pool,
            "is_expandable": segment.expandable,
            "frames": segment.frames,
            "blocks": [
                {
                    "address": block.address,
                    "size": block.size,
                    "requested_size": block.requested,
                    "state": state[block.free, block.pending],
                    "frames": block.frames,
                }
                for block in blocks
            ],
        }


# ---- the oracle: plain answers from a snapshot as Python loads it ----


@dataclass
class Truth:
    """What lived over the events of one device, replayed in the plainest way."""

    held: list[int]  # bytes after so many events; static blocks left out
    static: dict[int, dict[str, Any]]  # blocks by address, older than the trace and there at its end
    older: dict[int, int]  # bytes by address: older than the trace, freed within it
    alive: list[dict[int, tuple[int, Any]]] = field(
        default_factory=list
    )  # (bytes, frames) by address, after each event

    @property
    def peak(self) -> tuple[int, int]:
        """Bytes, and the number of events after which it is first reached."""
        most = max(self.held)
        return most, self.held.index(most)


def replayed(snapshot: dict[str, Any], device: int = 0, *, states: bool = False) -> Truth:
    events = snapshot["device_traces"][device]
    given: set[int] = set()
    older: dict[int, int] = {}
    for event in events:
        address = event.get("addr")
        if event["action"] == "alloc":
            given.add(address)
        elif event["action"] == "free_completed" and address not in given:
            older.setdefault(address, event["size"])
    blocks = {
        block["address"]: block
        for segment in snapshot["segments"]
        if segment["device"] == device
        for block in segment["blocks"]
        if block["state"] != "inactive"
    }
    live = {address: (size, None) for address, size in older.items()}
    truth = Truth([sum(older.values())], {}, older, [dict(live)] if states else [])
    for event in events:
        if event["action"] == "alloc":
            live[event["addr"]] = (event["size"], event["frames"])
        elif event["action"] == "free_completed":
            live.pop(event["addr"])
        change = {"alloc": 1, "free_completed": -1}.get(event["action"], 0) * event["size"]
        truth.held.append(truth.held[-1] + change)
        if states:
            truth.alive.append(dict(live))
    truth.static = {address: block for address, block in blocks.items() if address not in live}
    return truth


def free_runs(infos: list[dict[str, Any]]) -> list[int]:
    """Sizes of the free blocks of true segments."""
    return [block["size"] for info in infos for block in info["blocks"] if block["state"] == "inactive"]


def dump(snapshot: object, path: Path, protocol: int = 4) -> Path:
    with path.open("wb") as file:
        pickle.dump(snapshot, file, protocol=protocol)
    return path


def nearest_event(events: list[dict[str, Any]], time_us: int) -> int:
    """The number of the last event that is not later."""
    return bisect.bisect_right([event["time_us"] for event in events], time_us) - 1
