"""What worker processes of a data loader tell of themselves: how busy they are, and which function makes them so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jobs import Place, measured, needs_torch

WORKERS = """
    import sys, time, torch
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 160

        def __getitem__(self, at):
            return torch.full((4,), float(at))

    def slow(rows):
        total = 0
        for number in range(800_000):
            total += number % 7
        return torch.stack(rows)

    def waits(rows):
        time.sleep(0.03)
        return torch.stack(rows)

    def quick(rows):
        return torch.stack(rows)

    def main():
        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        collate = {"slow": slow, "waits": waits, "quick": quick}[sys.argv[1]]
        loader = DataLoader(Rows(), 4, num_workers=2, collate_fn=collate, multiprocessing_context=sys.argv[2])
        seen = 0.0
        for rows in loader:
            seen += rows.sum().item()
            optimizer.zero_grad()
            net(rows).sum().backward()
            optimizer.step()
            time.sleep(0.005)
        print("seen", seen)

    if __name__ == "__main__":
        main()
"""


def notes_of(place: Place, stepscope: Path, *arguments: str) -> dict[str, Any]:
    job = place.run(sys.executable, place.script(WORKERS), *arguments)
    assert "seen 50880.0" in job.stdout, job.stderr
    query = [str(stepscope), "query", str(job.folder), "select key, json from metadata", "--json"]
    asked = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60).stdout
    return {row["key"]: json.loads(row["json"]) for row in json.loads(asked) if "loader" in row["key"]}


@needs_torch
@pytest.mark.parametrize(
    ("collate", "busy", "on_core"), [("slow", True, True), ("waits", True, False), ("quick", False, None)]
)
@measured
def test_workers_tell_how_busy_they_are_and_with_what(
    place: Place, stepscope: Path, collate: str, busy: bool, on_core: bool | None
) -> None:
    notes = notes_of(place, stepscope, collate, "fork")
    assert notes["stepscope_loader_workers"] == 2
    assert (notes["stepscope_loader_busy_permille"] > 250) == busy, notes
    assert (notes["stepscope_loader_batch_ns"] > 20_000_000) == busy, notes
    if on_core is None:
        return
    assert (notes["stepscope_loader_cpu_permille"] > 150) == on_core, notes
    assert notes["stepscope_loader_function"] == collate
    assert notes["stepscope_loader_permille"] > 700
    source = Path(place.script(WORKERS)).read_text().splitlines()
    assert source[notes["stepscope_loader_line"] - 1].strip() == f"def {collate}(rows):"


@needs_torch
def test_of_workers_that_are_started_anew_nothing_is_known(place: Place, stepscope: Path) -> None:
    notes = notes_of(place, stepscope, "slow", "spawn")
    assert set(notes) == {"stepscope_loader_workers"}


AHEAD = """
    import torch
    from torch.utils.data import DataLoader

    def gather(rows):
        return torch.stack([torch.full((4,), float(row)) for row in rows])

    def one_ahead(loader):
        rows = iter(loader)
        batch = next(rows)
        for following in rows:
            yield batch
            batch = following
        yield batch

    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for batch in one_ahead(DataLoader(range(64), 4, collate_fn=gather)):
            net(batch).sum().backward()
            optimizer.step()
"""


@needs_torch
def test_a_step_with_frames_loads_a_batch_as_others_do(place: Place, stepscope: Path) -> None:
    """Sixteen batches a pass: the step behind the window is the last of one, in which nothing is loaded."""
    job = place.run(sys.executable, place.script(AHEAD))
    assert job.code == 0, job.stderr
    (process,) = job.manifest()["processes"]
    assert [window["steps"] for window in process["windows"] if window["kind"] == "stacks"] == [[16]]
    done = place.plain(str(stepscope), "report", str(job.folder), "--json")
    functions = json.loads(done.stdout)["answers"]["stacks"]["tables"]["functions"]["rows"]
    assert any("gather" in map(str, row) for row in functions)


@needs_torch
def test_while_workers_load_nothing_holds_the_early_steps_up(place: Place) -> None:
    """Stacks of step 6 take a moment to write, in which the workers get ahead of the window after it."""
    text = """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        net = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for (x,) in DataLoader(TensorDataset(torch.ones(36, 8)), batch_size=4, num_workers=1):
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()
    """
    job = place.run(sys.executable, place.script(text))
    (process,) = job.manifest()["processes"]
    assert [(window["kind"], window["steps"]) for window in process["windows"]] == [("steps", [1, 2, 3, 4, 5])], (
        job.stderr
    )
