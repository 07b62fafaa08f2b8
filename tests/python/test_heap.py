"""A recording leaves the heap of the job as it was: what the job takes of memory, and how often it waits for pages."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from jobs import Place, needs_torch

from stepscope.hooks._stepscope_hooks import context, heap

HOOKS = Path(heap.__file__).parents[1]
MIB = 1 << 20

# 48 activations of 4 MiB in each step, and small tensors beside them.
JOB = """
import resource
import torch
torch.manual_seed(0)
parts = [torch.nn.Linear(256, 256), torch.nn.LayerNorm(256), torch.nn.GELU(), torch.nn.Dropout(0.1)]
model = torch.nn.Sequential(*[part for _ in range(12) for part in parts])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows, faults = torch.rand(4096, 256), []
for step in range(40):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    loss = model(rows).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step >= 20:
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
sizes = {line.split(":")[0]: int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("Vm")}
print("job", sizes["VmHWM"] // 1024, sizes["VmRSS"] // 1024, sum(faults) // len(faults))
"""


def figures(said: str) -> tuple[int, int, int]:
    """MiB at the peak and at the end, and pages that a step waited for."""
    (line,) = [line for line in said.splitlines() if line.startswith("job ")]
    peak, end, faults = map(int, line.split()[1:])
    return peak, end, faults


@needs_torch
def test_a_recording_keeps_none_of_the_memory_that_the_job_gives_back(place: Place) -> None:
    """Left to itself torch's profiler makes the heap grow by all activations in each recorded step: by 1,000 MiB, all
    of which stayed, and no step waited for a page any more."""
    script = str(place.script(JOB))
    alone = figures(subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout)
    run = place.run(sys.executable, script)
    assert run.code == 0, run.stderr
    beside = figures(run.stdout)
    assert beside[1] < alone[1] + 350, (alone, beside)
    if alone[2] > 2000:  # else its memory happens to stay
        assert beside[2] > alone[2] / 10, (alone, beside)


# 200 blocks of 1 MiB with something small behind each; then the blocks are given back.
HOLES = """
import ctypes, mmap, sys
sys.path.insert(0, sys.argv[1])
from _stepscope_hooks import heap
MIB = 1 << 20
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
c.free.argtypes = [ctypes.c_void_p]
c.mallopt(-3, 64 * MIB)  # M_MMAP_THRESHOLD
c.mallopt(-1, 64 * MIB)  # M_TRIM_THRESHOLD
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE // MIB
own = heap.Heap()
own.recording_begins(warm=True)
blocks, behind = [], []
for _ in range(200):
    blocks.append(c.malloc(MIB))
    ctypes.memset(blocks[-1], 1, MIB)
    behind.append(c.malloc(2000))
    ctypes.memset(behind[-1], 7, 2000)
full = resident()
for block in blocks:
    c.free(block)
STEP
holes = own.glibc.holes()[0]
whole = all(bytes((ctypes.c_char * 2000).from_address(one)) == bytes([7]) * 2000 for one in behind)
more = [c.malloc(MIB) for _ in range(100)]
for one in more:
    ctypes.memset(one, 3, MIB)
print(full - before, holes // MIB, whole, sum(min(blocks) <= one <= max(blocks) for one in more), resident() - full)
"""


def holes_after(step: str) -> tuple[int, int, bool, int, int]:
    """MiB that went back, MiB of holes, whether what lies between them is whole, how many of 100 new blocks lie in
    holes, and MiB that the process has more than before it gave anything back."""
    program = HOLES.replace("STEP", step + "\nbefore = resident()")
    out = subprocess.run([sys.executable, "-c", program, str(HOOKS)], capture_output=True, text=True, check=True)
    back, holes, whole, inside, more = out.stdout.split()
    return int(back), int(holes), whole == "True", int(inside), int(more)


def has_glibc() -> bool:
    return heap.Heap().glibc is not None


@pytest.mark.skipif(not has_glibc(), reason="another C library or allocator")
def test_holes_that_a_recording_leaves_are_taken_out_of_use_and_have_no_pages() -> None:
    back, holes, whole, inside, more = holes_after("own.recording_ended()")
    assert back > 180 and holes < 15 and whole
    assert inside < 15  # what the job makes next lies behind them, as if they were not there
    assert more < 0
    back, holes, whole, inside, _ = holes_after("own.disturbed = False; own.recording_ended()")
    assert back < 20 and holes > 180 and whole and inside > 90  # nothing was recorded: left alone


@pytest.mark.skipif(not has_glibc(), reason="another C library or allocator")
def test_between_recorded_steps_pages_of_holes_go_back_where_memory_may_become_short() -> None:
    back, holes, whole, inside, _ = holes_after("own.recorded_step_ended()")
    assert back < 20 and inside > 90  # the machine has more than these
    back, holes, whole, inside, _ = holes_after("heap.available_bytes = lambda: 400.0 * MIB; own.recorded_step_ended()")
    assert back > 180 and holes > 180 and whole and inside > 90


def test_with_another_allocator_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def library_of(self: heap.Glibc, function: object) -> bytes:
        return b"libjemalloc.so.2" if function is self.c.malloc else b"libc.so.6"

    monkeypatch.setattr(heap.Glibc, "library_of", library_of)
    other = heap.Heap()
    assert other.glibc is None
    other.recording_begins(warm=True)
    other.recorded_step_ended()
    other.recording_ended()
    assert not other.is_as_it_was and other.taken_bytes == 0


def test_where_the_job_says_what_its_heap_keeps_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"):
        with monkeypatch.context() as only:
            only.setenv(name, "glibc.malloc.trim_threshold=1000000000")
            assert heap.Heap().glibc is None


class Stand:
    """A heap of holes: each as large as it says."""

    def __init__(self) -> None:
        self.free_bytes = [4 * MIB]
        self.locked, self.trims = False, 0

    def holes(self) -> tuple[int, list[tuple[int, int]]]:
        return sum(self.free_bytes), sorted(Counter(self.free_bytes).items(), reverse=True)

    def end_of_holes(self) -> int:
        return 1 << 40

    def take(self, size: int, until: int) -> int | None:
        fits = [one for one in self.free_bytes if one >= size]
        if not fits:
            return None
        self.free_bytes.remove(min(fits))
        return 1

    def forget(self, address: int, size: int) -> bool:
        return not self.locked

    def free(self, address: int) -> None:
        self.free_bytes.append(8 * MIB)

    def trim(self) -> None:
        self.trims += 1


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> tuple[heap.Heap, Stand]:
    made, stand = heap.Heap(), Stand()
    monkeypatch.setattr(made, "glibc", stand)
    return made, stand


def test_what_was_there_before_stays_and_what_came_is_taken(
    own: tuple[heap.Heap, Stand], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, stand = own
    made.recording_begins(warm=True)
    assert made.disturbed and not made.is_as_it_was
    made.recorded_step_ended()
    assert stand.trims == 0  # no holes
    stand.free_bytes += [16 * MIB] * 5 + [2 * MIB]
    made.recorded_step_ended()
    assert stand.trims == 0  # the machine has more
    monkeypatch.setattr(heap, "available_bytes", lambda: 300.0 * MIB)
    monkeypatch.setattr(heap, "resident_bytes", lambda: 500.0 * MIB)
    made.recorded_step_ended()
    assert stand.trims == 1
    made.recording_ended()
    assert sum(stand.free_bytes) < 12 * MIB and made.is_as_it_was
    assert made.taken_bytes > 60 * MIB
    taken = made.taken_bytes
    made.recording_ended()
    assert made.taken_bytes == taken  # nothing was recorded since


def test_what_takes_too_long_at_once_goes_on_between_the_next_steps(
    own: tuple[heap.Heap, Stand], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, stand = own
    made.recording_begins(warm=True)
    stand.free_bytes += [16 * MIB] * 4
    monkeypatch.setattr(heap, "_MOST_S", -1.0)
    for left in (3, 2, 1):
        made.recording_ended()  # one hole each time
        assert stand.free_bytes.count(16 * MIB) == left and made.disturbed and not made.is_as_it_was
    monkeypatch.setattr(heap, "_MOST_S", 10.0)
    made.recording_ended()
    assert stand.free_bytes == [4 * MIB] and not made.disturbed and made.is_as_it_was


def test_soon_afterwards_the_first_recording_tells_what_was_there(
    own: tuple[heap.Heap, Stand], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, stand = own
    made.recording_begins(warm=True)
    made.recording_ended()
    stand.free_bytes += [16 * MIB]
    made.recording_begins(warm=True)
    assert made.before == 4 * MIB
    made.recording_ended()
    stand.free_bytes = [40 * MIB]
    monkeypatch.setattr(heap, "_SOON_S", -1.0)
    made.recording_begins(warm=True)
    assert made.before == 40 * MIB
    made.recording_ended()
    assert stand.free_bytes == [40 * MIB] and made.is_as_it_was


def test_what_cannot_be_cleared_up_is_not_called_as_it_was(own: tuple[heap.Heap, Stand]) -> None:
    made, stand = own
    made.recording_begins(warm=True)
    stand.free_bytes += [100 * MIB]
    stand.locked = True
    made.recording_ended()
    assert made.spoiled and not made.is_as_it_was
    small, stand = heap.Heap(), Stand()
    small.glibc = stand  # type: ignore[assignment]
    small.recording_begins(warm=True)
    stand.free_bytes = [1000] * 200_000
    small.recording_ended()
    assert not small.is_as_it_was and small.taken_bytes == 0


def test_before_the_first_step_there_is_nothing_to_compare_and_another_thread_has_another_heap(
    own: tuple[heap.Heap, Stand],
) -> None:
    made, stand = own
    made.recording_begins(warm=False)
    stand.free_bytes += [100 * MIB]
    made.recording_ended()
    assert not made.is_as_it_was and made.taken_bytes == 0
    other = heap.Heap()
    other.glibc = stand  # type: ignore[assignment]
    thread = threading.Thread(target=other.recording_begins, args=(True,))
    thread.start()
    thread.join()
    other.recording_ended()
    assert not other.is_as_it_was and other.taken_bytes == 0


def test_what_is_available_is_less_than_the_machine_has() -> None:
    sizes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total = 1024 * int(sizes["MemTotal"].split()[0])
    assert MIB < context.available_bytes() < total
