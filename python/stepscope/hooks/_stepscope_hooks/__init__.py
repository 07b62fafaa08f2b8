"""What `stepscope run` does inside a Python process that imports torch: plain Python >= 3.9, torch >= 2.1.

settings: what was asked for    process: which rank this is   notes: what is said in the run folder
plan, requests: which steps     moments: when to start, stop  capture: puts them together
phases, roots, module_hooks, cuda_graphs: hooks on steps   marks: the record of all steps   modules: ranges of the model
recorder, spool: torch.profiler               nvtx: for nsys in its place
memory_history, memory_snapshot: of GPUs         page_faults: in recorded steps and in others
called_again, wasted_rows: what modules and losses are given in the step with stacks
replaced: ours in the place of a function of torch's          own_code: what torch.compile leaves alone
flop_measure, flop_report: of stepscope.flops      deepspeed_flops, when_imported: in the place of DeepSpeed's profiler
Nothing here may raise into the job, print, or change what the job computes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .capture import Capture
    from .settings import Settings

_capture: Capture | None = None  # of this process


def arm() -> None:
    """Called once, right after torch was imported, in a job that `stepscope run` started."""
    from . import settings

    wanted = settings.from_environment()
    if wanted is not None:
        _start(wanted)


def attach(run_folder: str, capture: str) -> None:
    """Called in a process that runs already; it records what requests in the run folder ask for."""
    from . import notes, settings

    def enter() -> None:
        _start(settings.Settings(run_folder, capture))
        if _capture is not None:
            _capture.tell()  # whoever attaches waits for the note

    if _capture is None or _capture.detached:
        enter()
    elif _capture.leaving:
        _capture.successor = enter
    elif _capture.settings.run_folder != run_folder:
        notes.Notes(run_folder).write(refused=f"it is recorded already, into {_capture.settings.run_folder}")


def _start(wanted: Settings) -> None:
    global _capture
    from . import capture, notes, process

    log = notes.Notes(wanted.run_folder)
    with log.guard("setting up"):
        if not process.is_compile_worker():
            _capture = capture.Capture(wanted, log)
            _capture.arm()
