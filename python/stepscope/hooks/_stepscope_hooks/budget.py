"""What a recording may cost: a share of the job's time, and bytes of trace. Windows are shortened to keep to it.

The cost of a step is known when the first part was written: what start, stop and export took from the job. How much
slower recorded ops run is not in it; torch's own figures put that below a tenth.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .recorder import Recorder
    from .settings import Settings

_PACKED = 12  # JSON of a trace shrinks to about a twelfth


class Budget:
    def __init__(self, settings: Settings) -> None:
        self.share = settings.budget_share
        self.bytes = settings.budget_bytes

    @property
    def asked(self) -> bool:
        return self.share is not None or self.bytes is not None

    def exceeded(self, recorder: Recorder, job_s: float) -> str | None:
        """Why the window ends here, or None while one more step fits. `job_s`: how long the job has run."""
        steps = len(recorder.steps)
        if not self.asked or steps == 0 or recorder.spent_s == 0.0:
            return None
        ended = f"the window ended after {steps} step{'s' if steps > 1 else ''}: the next would"
        if self.share is not None and recorder.spent_s / steps * (steps + 1) > self.share * job_s:
            return f"{ended} cost more than {100 * self.share:.3g} % of the job's time"
        if self.bytes is not None and recorder.text_bytes / steps * (steps + 1) / _PACKED > self.bytes:
            return f"{ended} need more than {self.bytes} bytes"
        return None
