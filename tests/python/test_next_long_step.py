"""Which step is recorded with frames: one that takes long, where every so many do."""

from __future__ import annotations

import pytest

from stepscope.hooks._stepscope_hooks.recordings import next_long_step


def steps(count: int, period: int, first_s: float = 0.01) -> list[tuple[int, float]]:
    times = [0.03 if number % period == 2 % period else 0.01 for number in range(count)]
    return list(enumerate([first_s, *times[1:]]))


@pytest.mark.parametrize("period", [2, 3, 5])
@pytest.mark.parametrize("first_s", [0.01, 0.5])  # the first step of a job is long as well
def test_the_next_long_step(period: int, first_s: float) -> None:
    for count in (15, 16, 17, 18):
        found = next_long_step(steps(count, period, first_s), count)
        assert found % period == 2 % period and count <= found < count + period


def test_steps_that_are_alike_or_long_by_chance() -> None:
    assert next_long_step([], 7) == 7
    assert next_long_step(steps(15, 1000), 15) == 15
    by_chance = [(number, 0.03 if number in (3, 5, 11) else 0.01) for number in range(15)]
    assert next_long_step(by_chance, 15) == 15
