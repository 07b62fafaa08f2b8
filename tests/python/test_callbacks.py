"""Callbacks for the trainers of transformers and Lightning, with the real ones."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jobs import Place, needs_torch, read

PYTHON = str(Path(__file__).resolve().parents[2] / "python")


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


HUGGINGFACE = """
    import sys, torch
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
    from stepscope.huggingface import StepscopeCallback
    sizes = dict(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    model = LlamaForCausalLM(LlamaConfig(**sizes, max_position_embeddings=16))
    data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(64)]
    arguments = TrainingArguments(
        "checkpoints", max_steps=8, per_device_train_batch_size=2, gradient_accumulation_steps=2, use_cpu=True,
        report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
    )
    callback = StepscopeCallback(steps=sys.argv[1], name="finetune")
    Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
    print(callback.folder)
"""
LIGHTNING = """
    import sys, torch, logging, warnings
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    from lightning.pytorch import LightningModule, Trainer
    from stepscope.lightning import StepscopeCallback
    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(8, 1)
        def training_step(self, batch, index):
            return self.net(batch).square().mean()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)
    def main():
        callback = StepscopeCallback(steps=sys.argv[1], name="finetune")
        quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
        devices = int(sys.argv[2])
        trainer = Trainer(
            max_steps=8, accumulate_grad_batches=2, accelerator="cpu", devices=devices, callbacks=[callback], **quiet
        )
        trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(64, 8), 2))
        if trainer.is_global_zero:
            print(callback.folder)
    if __name__ == "__main__":
        main()
"""


def recorded(folder: Path, module: str) -> dict[str, list[list[str]]]:
    """Per rank the marks of each window. `module` runs once in each of the two micro-batches of a step."""
    found: dict[str, list[list[str]]] = {}
    for trace in sorted((folder / "traces").rglob("*.gz")):
        names = [event.get("name", "") for event in read(trace)["traceEvents"]]
        found.setdefault(trace.parent.name, []).append(
            sorted(name for name in names if name.startswith("ProfilerStep#"))
        )
        steps = len(found[trace.parent.name][-1])
        assert sum(name.startswith("Optimizer.step#") for name in names) == steps
        assert names.count(f"stepscope.module: {module}") == 2 * steps
    return found


def train(place: Place, text: str, *arguments: str) -> Path:
    done = place.execute([sys.executable, place.script(text), *arguments], PYTHONPATH=PYTHON)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1])
    assert folder.parent == place.folder / "stepscope" / "finetune"
    return folder


def windows(folder: Path) -> list[list[list[Any]]]:
    notes = [json.loads(path.read_text()) for path in sorted((folder / "processes").glob("*.json"))]
    assert all(note["problems"] == [] for note in notes)
    return [[[one["steps"], one["partial_steps"]] for one in note["windows"]] for note in notes]


def marks(*steps: int) -> list[str]:
    return [f"ProfilerStep#{step}" for step in steps]


@needs_torch
@needs("transformers")
@needs("accelerate")
def test_trainer_of_transformers(place: Place) -> None:
    folder = train(place, HUGGINGFACE, "0:2,5:20")
    assert windows(folder) == [[[[0, 1], []], [[5, 6, 7], []]]], "the training ends within the second window"
    assert recorded(folder, "lm_head (Linear)") == {"rank0": [marks(0, 1), marks(5, 6, 7)]}
    report = place.plain(str(place.stepscope), "report", str(folder), "--only", "steps", "--json")
    assert json.loads(report.stdout)["answers"]["steps"]["scalars"]["step_count"]["value"] == 3


@needs_torch
@needs("lightning")
def test_trainer_of_lightning_and_the_ranks_that_it_starts(place: Place) -> None:
    folder = train(place, LIGHTNING, "0:2,6:20", "2")
    assert windows(folder) == [[[[0, 1], []], [[6, 7], []]]] * 2
    both = [marks(0, 1), marks(6, 7)]
    assert recorded(folder, "net (Linear)") == {"rank0": both, "rank1": both}
    assert len(list(folder.parent.iterdir())) == 1, "all ranks share a folder"


@needs_torch
@needs("lightning")
def test_under_run_the_callback_does_nothing(place: Place) -> None:
    script = place.script(LIGHTNING)
    job = place.run(sys.executable, script, "0:2", "1", options=("--steps", "4:6"), PYTHONPATH=PYTHON)
    assert (job.code, job.stdout) == (0, "None\n"), job.stderr
    assert job.recorded_steps() == [[4, 5]]
    assert not (place.folder / "stepscope").exists()


@needs_torch
def test_a_training_that_fails_keeps_what_was_recorded(place: Place) -> None:
    text = """
        import torch
        from stepscope._callback import StepRecording
        recording = StepRecording("1:4,7", None, "finetune", "shapes")
        for step in range(8):
            recording.at(step)
            torch.ones(2, 2).sum()
            if step == 2:
                print(recording.folder, flush=True)
                raise ValueError("the training's own")
    """
    done = place.execute([sys.executable, place.script(text)], PYTHONPATH=PYTHON)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "ValueError: the training's own")
    assert windows(Path(done.stdout.strip())) == [[[[1], [2]]]]


@needs_torch
def test_where_another_profiler_runs_the_training_goes_on(place: Place) -> None:
    text = """
        import torch, stepscope, warnings
        from stepscope._callback import StepRecording
        recording = StepRecording("0:2", None, "finetune", "shapes")
        with stepscope.profile(name="own"), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for step in range(3):
                recording.at(step)
                torch.ones(2, 2).sum()
        recording.end()
        print([str(one.message).split(":")[0] for one in said])
    """
    done = place.execute([sys.executable, place.script(text)], PYTHONPATH=PYTHON)
    assert (done.stdout, done.stderr) == ("['stepscope records nothing']\n", "")


@pytest.mark.parametrize("steps", ["", "a", "5:5", "7:3", "-1:2", "1:2,"])
def test_steps_that_make_no_sense(steps: str) -> None:
    from stepscope._callback import StepRecording

    with pytest.raises(ValueError, match="10:15"):
        StepRecording(steps, None, None, "shapes")


def test_the_package_loads_no_trainer(place: Place) -> None:
    text = "import sys, stepscope; print({'torch', 'transformers', 'lightning'} & set(sys.modules))"
    done = place.execute([sys.executable, "-c", text], PYTHONPATH=PYTHON)
    assert done.stdout == "set()\n", done.stderr
