"""What differs between versions of torch.profiler, and what it would do to the job beyond recording.

_KinetoProfile.prepare_trace imports torch._inductor, seconds in a job that never compiles, and warns in some versions
that events are of one window only: the profiler inside is built here. torch's CPU allocator prints a line, once a
second, when a block is freed that is older than the recording: unless the job chose a level, the C++ log shows errors
only meanwhile. Kineto's log is silenced too.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def prepare(features: frozenset[str]) -> Any:
    import torch

    options: dict[str, Any] = {
        "record_shapes": "shapes" in features,
        "profile_memory": "memory" in features,
        "with_stack": "stack" in features,
        "with_flops": "flops" in features,
    }
    wanted = activities(torch)
    if len(wanted) > 1 and wanted[1].name == "CUDA":
        options.update(waits_of_the_device())
    profiler = torch.profiler._KinetoProfile(activities=wanted, **options)
    if "torch._inductor.config" in sys.modules and hasattr(profiler, "has_cudagraphs"):
        profiler.has_cudagraphs = sys.modules["torch._inductor.config"].triton.cudagraphs
    device = next((kind.name.lower() for kind in wanted if kind.name != "CPU"), None)
    options.update(use_cpu=True, use_device=device, use_cuda=device == "cuda", use_kineto=True)
    known = inspect.signature(torch.autograd.profiler.profile.__init__).parameters
    if "use_device" in known:
        options.pop("use_cuda")  # deprecated there
    profiler.profiler = torch.autograd.profiler.profile(**{k: v for k, v in options.items() if k in known})
    with _kineto_set_up():
        profiler.profiler._prepare_trace()
    takes_device()
    return profiler


def start(profiler: Any, memory: bool) -> contextlib.ExitStack:
    """Starts it; what comes back is to be closed when it has stopped."""
    quiet = contextlib.ExitStack()
    if memory:
        quiet.enter_context(errors_only())
    profiler.start_trace()
    return quiet


def waits_of_the_device() -> dict[str, Any]:
    """What has streams tell which event they wait for, and the host's waits their ends; nothing in older torch."""
    import torch

    try:
        return {"experimental_config": torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)}
    except (AttributeError, TypeError):
        return {}


_TEARDOWN = "TEARDOWN_CUPTI"  # what Kineto asks at each start and stop
_set_by_us = False


def gives_device_back() -> None:
    """The stop that comes also ends CUPTI in this process: else every launch takes longer, for the rest of the job.

    Kineto does so with the next call of the runtime. Before CUDA 12.6 graphs crashed after it.
    """
    global _set_by_us
    import torch

    version = getattr(torch.version, "cuda", None) or "0"
    if not torch.cuda.is_initialized() or tuple(int(part) for part in version.split(".")[:2]) < (12, 6):
        return
    if _set_by_us or _TEARDOWN not in os.environ:
        os.environ[_TEARDOWN], _set_by_us = "1", True


def gave_device_back() -> bool:
    """Whether a recording that begins now has to begin CUPTI anew, once its end is over."""
    return _set_by_us and os.environ.get(_TEARDOWN) == "1"


def takes_device() -> None:
    """CUPTI has begun anew, for which Kineto had to be told of its end; the stops that come are not the last."""
    if _set_by_us:
        os.environ[_TEARDOWN] = "0"


def leaves_environment() -> None:
    """To a profiler of the job's own, which has begun CUPTI anew by now and ends it as it likes."""
    global _set_by_us
    if _set_by_us:
        os.environ.pop(_TEARDOWN, None)
        _set_by_us = False


def entered_range(name: str) -> Any:
    """A range of the recording that has begun; None where torch has none that costs next to nothing."""
    import torch

    kind = getattr(torch._C._profiler, "_RecordFunctionFast", None)
    if kind is None:
        return None
    entered = kind(name)
    entered.__enter__()
    return entered


def errors_only() -> contextlib.AbstractContextManager[None]:
    """Within this block torch's C++ log shows no warnings, unless the job chose its level."""
    if "TORCH_CPP_LOG_LEVEL" in os.environ:
        return contextlib.nullcontext()
    return _at_least("libc10.so", "FLAGS_caffe2_log_level", 2)


def quiet_kineto() -> contextlib.AbstractContextManager[None]:
    """Within this block Kineto writes nothing to the job's stderr. `stepscope run` sees to that by the environment, but
    a process that was attached to has read its environment long ago."""
    if "KINETO_LOG_LEVEL" in os.environ:
        return contextlib.nullcontext()
    return _at_least("libtorch_cpu.so", "_ZN9libkineto6Logger14severityLevel_E", 6)


_is_set_up = False
_OF_KINETO = b"ERROR: External init callback must run in same thread"


@contextlib.contextmanager
def _kineto_set_up() -> Iterator[None]:
    """The first profiler of a process sets Kineto up. On another thread than the one that loaded torch Kineto then
    prints a line to C's stderr, whatever its log level; it is about a client that torch has no use for."""
    global _is_set_up
    first, _is_set_up = not _is_set_up, True
    if not first or threading.get_ident() == threading.main_thread().ident:
        yield
        return
    text, size = ctypes.c_char_p(), ctypes.c_size_t()
    try:
        c = ctypes.CDLL(None)
        assert c.gnu_get_libc_version  # of others stderr may be no variable
        stderr = ctypes.c_void_p.in_dll(c, "stderr")
        c.open_memstream.restype = ctypes.c_void_p
        memory = c.open_memstream(ctypes.byref(text), ctypes.byref(size))
    except (AttributeError, OSError, ValueError):
        memory = None
    if memory is None:
        yield
        return
    before, stderr.value = stderr.value, memory
    try:
        yield
    finally:
        if stderr.value == memory:
            stderr.value = before
        c.fflush(ctypes.c_void_p(memory))  # it is never closed: another thread may be about to write there
        lines = (text.value or b"").splitlines(keepends=True)
        others = b"".join(line for line in lines if not line.startswith(_OF_KINETO))
        if others:
            os.write(2, others)


@contextlib.contextmanager
def _at_least(library: str, symbol: str, least: int) -> Iterator[None]:
    """Raises a log level that is a plain int in one of torch's libraries; nothing where there is no such symbol."""
    import torch

    try:
        handle = ctypes.CDLL(
            os.path.join(os.path.dirname(torch.__file__), "lib", library), os.RTLD_NOLOAD | os.RTLD_LAZY
        )
        level = ctypes.c_int.in_dll(handle, symbol)
    except (OSError, ValueError):
        yield
        return
    before, raised = level.value, max(level.value, least)
    level.value = raised
    try:
        yield
    finally:
        if level.value == raised:  # else it was set up meanwhile, as Kineto's is by the first profiler
            level.value = before


def activities(torch: Any) -> list[Any]:
    kinds = torch.profiler.ProfilerActivity
    wanted = [kinds.CPU]
    other_tool = "NSYS_PROFILING_SESSION_ID" in os.environ or "CUDA_INJECTION64_PATH" in os.environ
    if torch.cuda.is_initialized() and not other_tool:  # CUPTI serves one tool at a time
        wanted.append(kinds.CUDA)
    elif getattr(torch, "xpu", None) is not None and torch.xpu.is_available() and hasattr(kinds, "XPU"):
        wanted.append(kinds.XPU)
    return wanted
