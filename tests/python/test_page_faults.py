"""Page faults are counted step by step, but of very many short steps not of each."""

from __future__ import annotations

import pytest

from stepscope.hooks._stepscope_hooks import page_faults
from stepscope.hooks._stepscope_hooks.page_faults import PageFaults

SHORT_S, LONG_S = 0.001, 0.1


class System:
    """In each step the process waits for three pages."""

    def __init__(self) -> None:
        self.steps, self.asked = 0, 0

    def faults(self) -> int:
        self.asked += 1
        return 3 * self.steps

    def go(self, counted: PageFaults, steps: int, took_s: float, counts: bool = True) -> int:
        """Returns how often the system was asked meanwhile."""
        before = self.asked
        for _ in range(steps):
            self.steps += 1
            counted.boundary(took_s, counts)
        return self.asked - before


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    made = System()
    monkeypatch.setattr(page_faults, "faults", made.faults)
    return made


def test_each_long_step_is_counted(system: System) -> None:
    counted = PageFaults()
    assert system.go(counted, 301, LONG_S) == 301  # of the first nobody knows what there was before
    assert counted.counted() == (300, 3)


def test_of_many_short_steps_one_of_seven_is_counted_for_itself(system: System) -> None:
    counted = PageFaults()
    system.go(counted, 101, SHORT_S)
    assert counted.counted() == (100, 3)
    assert system.go(counted, 700, SHORT_S) == 200  # before and after each of them
    assert counted.counted() == (200, 3)  # and not what seven steps have
    system.go(counted, 6, SHORT_S)
    asked = system.go(counted, 20, LONG_S)
    assert asked >= 20 - 6  # each again, once those that go by are over


def test_what_is_recorded_is_no_step_of_these(system: System) -> None:
    counted = PageFaults()
    system.go(counted, 150, SHORT_S)
    counted.leave_out()
    system.go(counted, 5, SHORT_S, counts=False)
    before = counted.counted()
    assert before is not None and counted.around_recording(kept=True) is None
    system.go(counted, 10, SHORT_S)
    around = counted.around_recording(kept=True)
    assert around is not None and around["before"] == before and around["after"] == (9, 3)


def test_where_a_job_is_recorded_from_its_beginning_recorded_steps_stand_for_those_before(system: System) -> None:
    counted, recorder = PageFaults(), PageFaults()
    counted.boundary(LONG_S, counts=False)
    counted.leave_out(recorder)
    for more in (5, 1, 9):
        recorder.step_begins()
        system.steps += more
        recorder.step_ended()
    assert counted.around_recording(kept=True) is None  # nothing came after it
    system.go(counted, 4, LONG_S)
    around = counted.around_recording(kept=True)
    assert around is not None and around["recorded"] == (3, 3) and around["after"] == (3, 3)
    assert "before" not in around


def test_where_the_heap_is_what_it_was_no_recorded_step_stands_for_any_other(system: System) -> None:
    counted, recorder = PageFaults(), PageFaults()
    counted.leave_out(recorder)
    recorder.step_begins()
    system.steps += 5
    recorder.step_ended()
    system.go(counted, 4, LONG_S)
    around = counted.around_recording(kept=False)
    assert around is not None and around["after"] == (3, 3) and not around["kept"]
    assert "recorded" not in around and "before" not in around
