"""The report of a profiled step as text, in the lines, the order and the padding of DeepSpeed's profiler.

A line of the summary is its label padded to 70, two blanks, the value padded to 8. Where a figure was measured and
theirs is a factor of forward, the label says so behind its "="; `strict` gives their words and their factor.
"""

from __future__ import annotations

from typing import Any, Callable

from ._config import FlopsConfig
from ._figures import Figures
from ._job import Job
from ._numbers import (
    DEFAULT_PRECISION,
    duration_to_string,
    flops_to_string,
    macs_to_string,
    number_to_string,
    params_to_string,
)
from ._parameters import parameters_of
from ._tree import tree_text

_TITLE = "\n-------------------------- DeepSpeed Flops Profiler --------------------------"
_NOTATIONS = (
    "Notations:\n"
    "data parallel size (dp_size), model parallel size(mp_size),\n"
    "number of parameters (params), number of multiply-accumulate operations(MACs),\n"
    "number of floating-point operations (flops), floating-point operations per second (FLOPS),\n"
    "fwd latency (forward propagation latency), bwd latency (backward propagation latency),\n"
    "step (weights update latency), iter latency (sum of fwd, bwd and step latency)\n"
)
_AGGREGATED = "\n----------------------------- Aggregated Profile per GPU -----------------------------"
_DETAILED = "\n------------------------------ Detailed Profile per GPU ------------------------------"
_LEGEND = (
    "Each module profile is listed after its name in the following order: \n"
    "params, percentage of total params, MACs, percentage of total MACs, fwd latency, percentage of total fwd latency, "
    "fwd FLOPS"
)
_NOTES = (
    "\nNote: 1. A module can have torch.nn.module or torch.nn.functional to compute logits (e.g. CrossEntropyLoss). "
    "They are not counted as submodules, thus not to be printed out. However they make up the difference between a "
    "parent's MACs (or latency) and the sum of its submodules'.\n"
    "2. Number of floating-point operations is a theoretical estimation, thus FLOPS computed using that could be "
    "larger than the maximum system throughput.\n"
    "3. The fwd latency listed in the top module's profile is directly captured at the module forward function in "
    "PyTorch, thus it's less than the fwd latency shown above which is captured in DeepSpeed.\n"
)
_UNSEEN = "within a compiled or a scripted module nobody sees which of its modules runs; it has what they did"
_END = "------------------------------------------------------------------------------"


def line(label: str, value: object) -> str:
    return f"{label:<70}  {value!s:<8}"


def per_second(amount: float | None, seconds: float | None) -> str:
    return flops_to_string(None if amount is None or not seconds else amount / seconds)


def added(*parts: float | None) -> float | None:
    """Their sum; None where one of them is not known."""
    total = 0.0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def report_text(model: Any, figures: Figures, job: Job | None, wanted: FlopsConfig, notes: list[str]) -> str:
    """`notes`: why figures are missing, below the report; there too, but for `strict`, what was not counted."""
    factor = 2 + wanted.recompute_fwd_factor if wanted.strict else None
    lines = [_TITLE, f"Profile Summary at step {wanted.profile_step}:", _NOTATIONS]
    lines += summary(model, figures, job, factor)
    lines += [_AGGREGATED, *aggregated(model, figures, wanted.module_depth, wanted.top_modules)]
    if wanted.detailed:
        lines += [_DETAILED, _LEGEND, _NOTES, tree_text(model, figures)]
    if not notes and not all(figures.knows(module) for module in model.modules()):
        notes = [_UNSEEN]
    lines += [_END, *(f"n/a: {note}" for note in notes), *([] if wanted.strict else figures.notes())]
    return "\n".join(lines) + "\n"


# Summary --------------------------------------------------------------------------------------------------------------
def summary(model: Any, figures: Figures, job: Job | None, factor: float | None) -> list[str]:
    """`factor`: backward is this many times forward; None: it was measured."""
    flops, forward = figures.flops(model), figures.seconds(model)
    ranks = job.mp_world_size if job is not None else 1
    if job is not None and job.latencies is not None:
        forward = job.latencies.forward
    lines = [] if job is None else _job_lines(job)
    lines += _parameter_lines(model, job, ranks)
    lines += [
        line("fwd MACs per GPU: ", macs_to_string(figures.macs(model))),
        line("fwd flops per GPU: ", number_to_string(flops)),
        line(
            "fwd flops of model = fwd flops per GPU * mp_size: ",
            number_to_string(None if flops is None else flops * ranks),
        ),
        line("fwd latency: ", duration_to_string(forward)),
        line("fwd FLOPS per GPU = fwd flops per GPU / fwd latency: ", per_second(flops, forward)),
    ]
    return lines if job is None or job.latencies is None else lines + _step_lines(model, figures, job, factor)


def _job_lines(job: Job) -> list[str]:
    lines = [
        line("world size: ", _known(job.world_size)),
        line("data parallel size: ", _known(job.dp_world_size)),
        line("model parallel size: ", job.mp_world_size),
        line("batch size per GPU: ", _known(job.batch_size)),
    ]
    if job.expert_tensor_parallel is not None:
        lines.append(line("expert tensor parallelism enabled: ", job.expert_tensor_parallel > 1))
    return lines


def _known(number: int | None) -> object:
    return "n/a" if number is None else number


def _parameter_lines(model: Any, job: Job | None, ranks: int) -> list[str]:
    parameters = parameters_of(model)
    common = parameters.common * ranks
    lines = [line("params per GPU: ", params_to_string(parameters.here))]
    expert = parameters.expert_of_model * ((job and job.expert_tensor_parallel) or 1)
    if expert == 0:
        return [*lines, line("params of model = params per GPU * mp_size: ", params_to_string(common))]
    return [
        *lines,
        line("params of model: ", params_to_string(common + expert)),
        line("   non-expert params of model: ", params_to_string(common)),
        line("   expert params of model: ", params_to_string(expert)),
    ]


def _step_lines(model: Any, figures: Figures, job: Job, factor: float | None) -> list[str]:
    assert job.latencies is not None
    times, flops = job.latencies, figures.flops(model)
    if factor is None:
        backward: float | None = figures.backward_flops(model) or None
        words = ("measured bwd flops per GPU", "measured fwd+bwd flops", "measured fwd+bwd flops per GPU")
    else:
        backward = None if flops is None else factor * flops
        both = f"{factor + 1:g} * fwd flops per GPU"
        words = (f"{factor:g} * fwd flops per GPU", both, both)
    total, iteration = added(flops, backward), added(times.forward, times.backward, times.step)
    passes = added(times.forward, times.backward)
    return [
        line("bwd latency: ", duration_to_string(times.backward)),
        line(f"bwd FLOPS per GPU = {words[0]} / bwd latency: ", per_second(backward, times.backward)),
        line(f"fwd+bwd FLOPS per GPU = {words[1]} / (fwd+bwd latency): ", per_second(total, passes)),
        line("step latency: ", duration_to_string(times.step)),
        line("iter latency: ", duration_to_string(iteration)),
        line(f"FLOPS per GPU = {words[2]} / iter latency: ", per_second(total, iteration)),
        line("samples/second: ", _samples_per_second(job, iteration)),
    ]


def _samples_per_second(job: Job, iteration: float | None) -> object:
    if job.batch_size is None or job.dp_world_size is None or not iteration:
        return "n/a"
    return round(job.batch_size * job.passes * job.dp_world_size / iteration, DEFAULT_PRECISION)


# By depth -------------------------------------------------------------------------------------------------------------
def aggregated(model: Any, figures: Figures, depth: int, top: int) -> list[str]:
    """The classes that have most, at each depth; -1: to the deepest one."""
    levels: list[dict[str, _Sums]] = []
    _walk(model, figures, 0, levels)
    shown = levels if depth == -1 else levels[: max(0, depth)]
    lines = [f"Top {top} modules in terms of params, MACs or fwd latency at different model depths:"]
    for number, level in enumerate(shown):
        lines += [
            f"depth {number}:",
            f"    params      - {_top(level, top, 'params', params_to_string)}",
            f"    MACs        - {_top(level, top, 'macs', macs_to_string)}",
            f"    fwd latency - {_top(level, top, 'seconds', duration_to_string)}",
        ]
    return lines


class _Sums:
    """Of all modules of one class at one depth."""

    def __init__(self) -> None:
        self.values: dict[str, float | None] = {"params": None, "macs": None, "seconds": None}

    def add(self, name: str, value: float | None) -> None:
        if value is not None:
            self.values[name] = (self.values[name] or 0) + value


def _walk(module: Any, figures: Figures, depth: int, levels: list[dict[str, _Sums]]) -> None:
    if depth == len(levels):
        levels.append({})
    sums = levels[depth].setdefault(type(module).__name__, _Sums())
    sums.add("params", parameters_of(module).here)
    sums.add("macs", figures.macs(module))
    sums.add("seconds", figures.seconds(module))
    for child in module.children():
        _walk(child, figures, depth + 1, levels)


def _top(level: dict[str, _Sums], top: int, name: str, shown: Callable[..., str]) -> dict[str, str]:
    def order(kind: str) -> float:
        value = level[kind].values[name]
        return -1 if value is None else value

    most = sorted(level, key=order, reverse=True)[: max(0, top)]
    return {kind: shown(level[kind].values[name]) for kind in most}
