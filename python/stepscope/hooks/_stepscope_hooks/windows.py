"""Which stretch of the job is recorded: step windows, decided at step boundaries.

Boundary k lies before step k (k optimizer steps are done). Automatic mode has two windows: an early one that is kept
only when the job ends before the main one did (jobs of a handful of steps), and the main one after the warm-up.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    Window = tuple[int, int]  # (first step, end)

EARLY = (1, 6)
MAIN = (10, 15)
EARLY_WITHIN_S = 30.0  # an early window only where the first step came soon: no compiling, no big model
FALLBACK_SECONDS = (3.0, 5.0)  # automatic mode in a job that builds no optimizer


class StepWindows:
    def __init__(self, wanted: Window | None) -> None:
        self.automatic = wanted is None
        self.main = MAIN if wanted is None else wanted
        self.early: Window | None = EARLY if wanted is None else None

    def drop_early(self) -> None:
        self.early = None

    def at(self, boundary: int) -> Window | None:
        """The window that a recording which runs right after this boundary belongs to, or None."""
        for window in (self.main, self.early):
            if window and window[0] <= boundary < window[1]:
                return window
        return None

    def over(self, boundary: int) -> bool:
        return boundary >= self.main[1]
