"""What the answer memory says memory is used for, against what the tensors of a real training are."""

from __future__ import annotations

import gc
import importlib.util
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from flops_models import BY_NAME, Job
from torch.profiler import ProfilerActivity, profile, record_function

import stepscope

pytestmark = pytest.mark.usefixtures("one_thread")


class Training:
    """Steps of a model under torch.profiler from the first one on: nothing but the parameters was there before."""

    def __init__(self, job: Job, optimizer: Any) -> None:
        self.job, self.optimizer, self.saved = job, optimizer, 0

    def step(self, number: int) -> None:
        own = {parameter.untyped_storage().data_ptr() for parameter in self.job.model.parameters()}
        own |= {value.untyped_storage().data_ptr() for value in self.job.inputs}
        storages: dict[int, int] = {}

        def pack(tensor: Any) -> Any:
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with record_function(f"ProfilerStep#{number}"):
            self.optimizer.zero_grad()
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), record_function("forward"):
                loss = self.job.forward()
            self.saved = sum(size for address, size in storages.items() if address not in own)
            loss.backward()
            self.optimizer.step()

    def record(self, path: Path, steps: int = 3) -> Path:
        gc.collect()  # what other tests left behind would be freed in the recording
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as recording:
            for number in range(steps):
                self.step(number)
        recording.export_chrome_trace(str(path))
        return path

    def bytes_of_parameters(self) -> int:
        return sum(value.numel() * value.element_size() for value in self.job.model.parameters())


def by_category(trace: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """Rows by category, and the bytes that were allocated before the recording."""
    with stepscope.open(trace, cache=False) as run:
        tables = run.answer("memory")["tables"]
    named = {
        name: [dict(zip([column["name"] for column in one["columns"]], row)) for row in one["rows"]]
        for name, one in tables.items()
    }
    return {row["category"]: row for row in named["by_category"]}, named["devices"][0]["first_bytes"]


@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt", "gpt_gqa", "gpt_checkpoint", "self_attention", "lstm"])
def test_a_training_is_told_apart(name: str, tmp_path: Path) -> None:
    job = BY_NAME[name].job()
    training = Training(job, torch.optim.Adam(job.model.parameters(), foreach=False))
    found, before = by_category(training.record(tmp_path / "trace.json"))
    parameters = training.bytes_of_parameters()
    # Adam keeps two values for each parameter, and the number of its step.
    assert found["optimizer state"]["peak_bytes"] == pytest.approx(2 * parameters, rel=0.01, abs=4096)
    assert found["gradient"]["peak_bytes"] == pytest.approx(parameters, rel=0.05, abs=4096)
    # What the graph keeps, and what the program does until the next step: the output and the loss.
    assert found["activation"]["peak_bytes"] >= 0.99 * training.saved - 4096
    assert found["activation"]["peak_bytes"] <= 1.25 * training.saved + 65536
    # What tests before this one left in the process has nobody in the recording to name it.
    assert found.get("unknown", {"at_peak_bytes": 0})["at_peak_bytes"] <= before + 0.02 * training.saved + 4096


def test_categories_add_up_to_what_is_allocated(tmp_path: Path) -> None:
    job = BY_NAME["gpt"].job()
    trace = Training(job, torch.optim.SGD(job.model.parameters(), lr=0.1)).record(tmp_path / "trace.json")
    with stepscope.open(trace, cache=False) as run:
        answer = run.answer("memory")
    found = answer["tables"]["by_category"]
    assert sum(row[4] for row in found["rows"]) == pytest.approx(1)
    assert "optimizer state" not in {row[2] for row in found["rows"]}
    charted = [one for one in answer["series"].values() if one.get("metric") == "memory of cpu"]
    assert {one["target"] for one in charted} >= {"activation", "gradient", "temporary"}
