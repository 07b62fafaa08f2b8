"""What a recording may cost: a share of the job's time, and bytes of trace. Windows are shortened to keep to it.

All windows of a process count, and what else our part of a step boundary took. What a step costs is known once a part
was written: what start, stop and export took from the job. How much slower recorded operators run is not in it:
docs/recording.md has what was measured.
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
        self.other_s = 0.0  # of the job's time, that no recorder counts

    @property
    def asked(self) -> bool:
        return self.share is not None or self.bytes is not None

    def exceeded(self, recorder: Recorder, before: list[Recorder], job_s: float) -> str | None:
        """Why the window ends here, or None while one more step fits. `before`: other recorders of this process;
        `job_s`: how long the job has run."""
        steps = len(recorder.steps)
        if not self.asked or recorder.written_steps == 0:
            return None
        as_many = (steps + 1) / recorder.written_steps
        too_much = self._too_much(before, recorder.spent_s * as_many, recorder.text_bytes * as_many, job_s)
        if too_much is None:
            return None
        return f"the window ended after {steps} step{'s' if steps > 1 else ''}: the next would {too_much}"

    def unpaid(self, before: list[Recorder], job_s: float) -> str | None:
        """Why no window begins now: even one of a single step, as the last one began, would be too much."""
        known = [one for one in before if one.written_steps > 0]
        if not self.asked or not known:
            return None
        a_step = known[-1].spent_s / known[-1].written_steps, known[-1].text_bytes / known[-1].written_steps
        too_much = self._too_much(before, *a_step, job_s)
        return f"it would {too_much}" if too_much else None

    def _too_much(self, before: list[Recorder], more_s: float, more_bytes: float, job_s: float) -> str | None:
        if self.share is not None and self.other_s + sum(one.spent_s for one in before) + more_s > self.share * job_s:
            return f"cost more than {100 * self.share:.3g} % of the job's time"
        if self.bytes is not None and (sum(one.text_bytes for one in before) + more_bytes) / _PACKED > self.bytes:
            return f"need more than {self.bytes} bytes"
        return None
