"""Which steps are recorded, decided at step boundaries: boundary k lies before step k (k steps are done).

Automatic mode has two windows: an early one, for jobs of a handful of steps and those that die soon, and the main one
after the warm-up, which takes its place.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .settings import Settings, Window

EARLY = (1, 6)
MAIN = (10, 15)
SOON = MAIN[0] - EARLY[1] + 1  # boundaries, from the end of one window to the other
EARLY_WITHIN_S = 30.0  # an early window only where the first step came soon: no compiling, no big model
FALLBACK_SECONDS = (3.0, 5.0)  # automatic mode in a job that builds no optimizer
IMPORTS_S = 30.0  # from the import of torch: a program may run in an import as well
PREPARES_S = 120.0  # from the import of torch: so long may it take until the model is called that is there by then
WARM_PASSES, WARMS_UP_S = 2, 10.0  # forward passes of a service before it is recorded; the first ones set up a device
AFTER_FIRST_FORWARD_S, SERVICE_S = 0.4, 0.8  # of a service that has no steps, since its model keeps gradients
# Three KB of memory for an operator while a window records, 0.1 ms to end and write it: so much is a few seconds.
LARGE_BYTES, LARGEST_BYTES = 64 << 20, 256 << 20  # the second where no forward pass is over
ENOUGH_S, ENOUGH_PASSES = 0.2, 100  # less will do where requests are short: each costs the job time when it is written


class Plan:
    def __init__(self, settings: Settings) -> None:
        self.automatic = settings.automatic
        self.windows: list[Window] = [MAIN, EARLY] if self.automatic else list(settings.steps)
        self.cycle = settings.cycle
        self.ended: Window | None = None  # before its time: nothing of it is recorded any more

    def drop_early(self) -> None:
        self.windows = [window for window in self.windows if window != EARLY or not self.automatic]

    def add(self, window: Window) -> None:
        """A window that somebody asked for while the job runs."""
        self.windows.insert(0, window)

    def at(self, boundary: int) -> Window | None:
        """The window that a recording which runs right after this boundary belongs to, or None."""
        found = self._at(boundary)
        return None if found == self.ended else found

    def _at(self, boundary: int) -> Window | None:
        for window in self.windows:
            if window[0] <= boundary < window[1]:
                return window
        if self.cycle is None or boundary < self.cycle[0]:
            return None
        first, active, period, repetitions = self.cycle
        number, place = divmod(boundary - first, period)
        if place >= active or 0 < repetitions <= number:
            return None
        return first + number * period, first + number * period + active

    def comes_soon(self, boundary: int) -> bool:
        """A window begins, or goes on, within a few steps."""
        return any(self.at(step) is not None for step in range(boundary, boundary + SOON))

    def over(self, boundary: int) -> bool:
        """No window lies at or after this boundary."""
        if self.cycle is not None:
            first, _, period, repetitions = self.cycle
            if repetitions == 0 or boundary < first + period * repetitions:
                return False
        return all(window == self.ended or boundary >= window[1] for window in self.windows)
