"""SIGTERM, or the SIGHUP of a lost terminal, while something is recorded: a forked child writes the running part, the
job ends as it would have.

Only where the job leaves the signal to the system, which then ends it at once. Ours is in place while a window runs: it
forks, restores the default and sends the signal again, so that the job dies of it as before. Python runs it between two
bytecodes; a main thread that does not come back to Python is ended by a thread that reads the signals' wakeup pipe. A
handler of the job's own is never touched: after it the recording is written as at every other end.

Before exec, which ends a program without an end, what runs is written.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import threading
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from .notes import Notes

MOST_S = 1.0  # that the child may take
PATIENCE_S = 0.3  # for the main thread to come back to Python
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_DROPPED = "the job was ended by a signal while it recorded: the running part was dropped, "


class Termination:
    def __init__(self, notes: Notes, save: Callable[[], None]) -> None:
        self.notes = notes
        self.save = save  # what the child does
        self.wake: tuple[int, int] | None = None  # the pipe: to read, to write
        self.seen = threading.Event()
        self.forking = False  # hooks on fork are to leave this child alone
        self.masks: dict[int, set[signal.Signals | int]] = {}  # of threads that fork right now: blocked signals

    def arm(self) -> None:
        """On the main thread, where nobody else handles the signal or reads a wakeup pipe."""
        if self.wake is not None or threading.get_ident() != threading.main_thread().ident:
            return
        free = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
        if not free:
            return
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        if before != -1:  # somebody's event loop
            signal.set_wakeup_fd(before)
            os.close(reading)
            os.close(writing)
            return
        self.wake = reading, writing
        self.seen.clear()
        for number in free:
            signal.signal(number, self.handle)
        threading.Thread(target=self.watch, args=(reading,), name="stepscope-sigterm", daemon=True).start()

    def disarm(self) -> None:
        if self.wake is None or threading.get_ident() != threading.main_thread().ident:
            return
        (_, writing), self.wake = self.wake, None
        self.let_go()
        present = signal.set_wakeup_fd(-1)
        if present != writing:  # the job's own by now
            signal.set_wakeup_fd(present)
        os.close(writing)  # which ends the thread

    def let_go(self) -> None:
        for number in _ENDING:
            if signal.getsignal(number) == self.handle:
                signal.signal(number, signal.SIG_DFL)

    # A child that gets the signal right after its birth must die of it, and not write it into its parent's pipe: the
    # signal waits until the child has the default again.
    def before_fork(self) -> None:
        if self.wake is not None:
            self.masks[threading.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)

    def after_fork(self) -> None:
        mask = self.masks.pop(threading.get_ident(), None)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def forget(self) -> None:
        """In a forked child: the pipe is the parent's."""
        if self.wake is None:
            return
        pipe, self.wake = self.wake, None
        self.let_go()
        if signal.set_wakeup_fd(-1) == pipe[1]:
            for end in pipe:
                os.close(end)

    def watch(self, reading: int) -> None:
        try:
            while signals := os.read(reading, 64):
                came = [number for number in _ENDING if number in signals]
                if not came or self.seen.wait(PATIENCE_S):
                    continue
                if self.wake is not None and signal.getsignal(came[0]) == self.handle:
                    _end_now(came[0])
        finally:
            os.close(reading)

    def handle(self, number: int, frame: FrameType | None) -> None:
        if signal.getsignal(number) != self.handle:
            return  # the job has a handler by now that calls the one it found
        self.seen.set()
        try:
            self.save_in_child()
        except Exception as error:
            self.notes.problem(f"{_DROPPED}{error!r}")
        finally:
            _end_now(number)

    def save_in_child(self) -> None:
        import torch

        if torch.cuda.is_initialized():
            self.notes.problem(_DROPPED + "since a forked child cannot read it from the GPU")
            return
        late = f"{_DROPPED}since writing it took more than {MOST_S:.0f} s"
        self.forking = True
        told, tell = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of forking with threads
            child = os.fork()
        if child != 0:
            self.notes.write(finishing_pid=child, finishing_problem=late)
            os.close(tell)  # the child has the note from now on
            return
        code = 1
        try:
            with contextlib.suppress(OSError):
                os.setsid()  # what ends the job's group does not end this
            os.close(tell)
            os.read(told, 1)
            _let_go_of_files()
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            for number in _ENDING:
                signal.signal(number, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_REAL, MOST_S)
            self.save()
            self.notes.write(finishing_pid=0, finishing_problem="")
            code = 0
        finally:
            os._exit(code)


class BeforeExec:
    """Tells of os.execv and os.execve, which all others of that family call: the program ends there without an end."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act
        self.wrapped: list[tuple[str, Any, Any]] = []  # name, ours, its own

    def arm(self) -> None:
        for name in ("execv", "execve"):
            own = getattr(os, name)
            ours = self.telling(own)
            self.wrapped.append((name, ours, own))
            setattr(os, name, ours)

    def disarm(self) -> None:
        for name, ours, own in self.wrapped:
            if getattr(os, name) is ours:
                setattr(os, name, own)
        self.wrapped = []

    def telling(self, own: Any) -> Any:
        @functools.wraps(own)
        def replace(*args: Any, **kwargs: Any) -> Any:
            self.act()
            return own(*args, **kwargs)

        return replace


def _let_go_of_files() -> None:
    """The job's output ends and its peers see their connections close when it dies, not when its child does. What
    libraries say while the child writes is no output of the job either."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            os.close(int(name))
    for _ in range(3):
        os.open(os.devnull, os.O_RDWR)


def _end_now(number: int) -> None:
    """Dies of the signal from any thread; signal.signal would want the main one."""
    ctypes.CDLL(None).signal(int(number), None)  # SIG_DFL
    os.kill(os.getpid(), number)
