"""A profiler of the job's own. torch has room for one: a second takes what the first recorded, without a word.

Constructing one is seen; so is starting one that was constructed before an attach brought the hooks in.
"""

from __future__ import annotations

import os
import threading

from . import parallel, process, program_code, torch_profiler
from .modules import program_around
from .replaced import Replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .capture import Capture


MOST_TRACES = 100  # of the job's own, that are noted


class OtherProfiler:
    """What the job does with torch.profiler itself. Ours gives way and does not come back; what theirs writes is noted,
    and `stepscope run` puts it beside ours at the end."""

    def __init__(self, capture: Capture) -> None:
        self.capture, self.notes = capture, capture.notes
        self.seen = False
        self.steps = 0  # that ended while one recorded
        self.replaced = Replaced()

    def watch(self) -> None:
        import torch

        outer, inner = torch.profiler._KinetoProfile, torch.autograd.profiler.profile
        self.replaced.replace(outer, "__init__", self.before)
        for name in ("__init__", "_prepare_trace"):
            self.replaced.replace(inner, name, self.before)
        self.replaced.replace(inner, "_start_trace", self.before_start)
        for owner in (outer, inner):
            self.replaced.replace(owner, "export_chrome_trace", self.after_export)
        if runs():  # in a process that was attached to
            self.comes()

    def step_ended(self) -> None:
        if self.seen and runs():
            self.steps += 1

    def before(self, original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not ours():
                self.comes()
            return original(*args, **kwargs)

        return call

    def before_start(self, original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not ours():
                self.comes()
                torch_profiler.leaves_environment()
            return original(*args, **kwargs)

        return call

    def after_export(self, original: Any) -> Any:
        def call(profiler: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
            outermost = not ours()
            with own_profiler():  # one of the two calls the other, at times with a temporary file
                result = original(profiler, path, *args, **kwargs)
            if outermost:
                with self.notes.guard("noting a trace of the job's own"):
                    self.wrote(os.path.abspath(os.fspath(path)))
            return result

        return call

    def comes(self) -> None:
        capture = self.capture
        if self.seen or capture.off:
            return
        self.seen = True
        with self.notes.guard("giving way to the job's own profiler"):
            capture.recordings.close(complete=False)
            at = program_around()
            place = None if at is None else [program_code.shown(at[0]), at[2]]
            capture.tell(own_profiler=True, own_profiler_at=place)
        with self.notes.guard("answering requests"):  # whatever became of ours: a second start would empty theirs
            capture.record_no_more("the job runs a profiler of its own, and torch has room for one")

    def wrote(self, path: str) -> None:
        traces = self.notes.fields.setdefault("own_traces", [])
        folder = os.path.realpath(self.notes.run_folder) + os.sep
        known = any(path == trace["path"] for trace in traces)
        if known or len(traces) >= MOST_TRACES or os.path.realpath(path).startswith(folder):
            return
        number, _, _ = self.capture.identity = process.rank(self.capture.identity)
        tail = ".pt.trace.json" + (".gz" if path.endswith(".gz") else "")
        name = f"{self.notes.name}.own{len(traces)}{tail}"
        traces.append({"path": path, "trace": os.path.join("traces", parallel.folder_name(number), name)})
        self.notes.write()


def runs() -> bool:
    """Whether a profiler of the job's own records now, in any thread or by other means (emit_nvtx, emit_itt)."""
    import torch

    native = getattr(getattr(torch, "_C", None), "_autograd", None)
    here = getattr(native, "_profiler_enabled", None)  # of this thread
    return bool(getattr(torch.autograd.profiler, "_is_profiler_enabled", False) or (here is not None and here()))


def is_alone(ours: Any = None) -> bool:
    """Whether no profiler of torch's but this one is prepared or runs: a second one takes the place of the first, and
    the end of the first is then the end of the second. Looks at all objects: 75 ms per million."""
    import torch

    from .roots import instances

    found = [one for one in instances(torch.autograd.profiler.profile) if one is not ours]
    return not any(getattr(one, "entered", False) and one.kineto_results is None for one in found)


def may_warm_up() -> bool:
    """Whether a torch.profiler.profile is there: nothing else tells of one that is prepared and does not run yet."""
    import torch

    known = getattr(getattr(torch.autograd.profiler, "KinetoStepTracker", None), "_step_dict", None)
    return known is None or "ProfilerStep" in known


_own = threading.local()


def ours() -> bool:
    return getattr(_own, "depth", 0) > 0


class own_profiler:
    """Within this block a profiler is constructed, started or exported by stepscope."""

    def __enter__(self) -> None:
        _own.depth = getattr(_own, "depth", 0) + 1

    def __exit__(self, *exc: object) -> None:
        _own.depth -= 1
