"""How long backward and optimizer took in a recorded step, for a report without timers of an engine.

With device work: from the first to the last work of a stretch of one phase, so that gaps within count and what lies
between two micro-batches does not. Without: the same of autograd's nodes on the host, and the optimizer's ranges less
what runs within them (some trainers run forward and backward there).
"""

from __future__ import annotations

from .._run import Run

Stretch = tuple[str, int, int]  # phase, start, end

_DEVICE = """
    select phase, start_ns, start_ns + dur_ns from device_work
    where kind <> 'sync' and phase in ('forward', 'backward', 'optimizer') order by start_ns
"""
_HOST = """
    select case when name like 'Optimizer.step#%' then 'optimizer' when name = '0' then 'forward' else 'backward' end,
           start_ns, start_ns + dur_ns
    from slices
    where name like 'autograd::engine::evaluate_function: %' or name like 'Optimizer.step#%'
       or (name = '0' and category = 'module')
    order by start_ns
"""


def backward_and_step(run: Run) -> tuple[float | None, float | None]:
    """Seconds; None: no such work was recorded."""
    rows = _rows(run, _DEVICE)
    if rows:
        found = _stretches(rows)
        first = next((at for at, (phase, *_) in enumerate(found) if phase == "backward"), 0)
        step = _length([one for one in found[first:] if one[0] == "optimizer"])
    else:
        rows = _rows(run, _HOST)
        found = _stretches([row for row in rows if row[0] != "optimizer"])
        step = sum(_rest(row, found) for row in rows if row[0] == "optimizer")
    backward = _length([one for one in found if one[0] == "backward"])
    return backward / 1e9 or None, step / 1e9 or None


def _rows(run: Run, sql: str) -> list[Stretch]:
    return [tuple(row) for row in run.query(sql)._rows(None)]


def _stretches(rows: list[Stretch]) -> list[Stretch]:
    """Rows in order of their start, those of one phase that follow each other as one."""
    found: list[Stretch] = []
    for phase, start, end in rows:
        if found and found[-1][0] == phase:
            found[-1] = (phase, found[-1][1], max(found[-1][2], end))
        else:
            found.append((phase, start, end))
    return found


def _length(stretches: list[Stretch]) -> int:
    return sum(end - start for _, start, end in stretches)


def _rest(row: Stretch, others: list[Stretch]) -> int:
    _, start, end = row
    inside = sum(max(0, min(end, one[2]) - max(start, one[1])) for one in others)
    return max(0, end - start - inside)
