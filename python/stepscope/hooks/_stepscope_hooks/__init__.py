"""What `stepscope run` does inside a Python process that imports torch: plain Python >= 3.9, torch >= 2.1.

settings: what was asked for     process: which rank this is     notes: what is said in the run folder
windows: which steps or seconds  recorder: torch.profiler        capture: puts them together
Nothing here may raise into the job, print, or change what the job computes.
"""

from __future__ import annotations


def arm() -> None:
    """Called once, right after torch was imported."""
    from . import capture, notes, process, settings

    wanted = settings.from_environment()
    if wanted is None:
        return
    log = notes.Notes(wanted.run_folder)
    with log.guard("setting up"):
        if process.is_compile_worker():
            return
        capture.Capture(wanted, log).arm()
