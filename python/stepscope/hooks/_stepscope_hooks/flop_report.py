"""A report of FLOP beside the recordings: flops/rank-R_step-N.txt in the run folder, named in the process's note."""

from __future__ import annotations

import os

from . import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .notes import Notes


def keep(notes: Notes, text: str, step: int) -> None:
    with notes.guard("keeping a report of FLOP"):
        name = os.path.join("flops", f"rank-{process.rank()[0]}_step-{step}.txt")
        path = os.path.join(notes.run_folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        reports = notes.fields.setdefault("flops_reports", [])
        if name not in reports:
            reports.append(name)
        notes.write()
