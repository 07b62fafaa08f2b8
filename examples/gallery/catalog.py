"""The programs of the gallery: what is wrong with each, and how it is started."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
LOADER = ("enumerate(DataLoader)",)


@dataclass(frozen=True)
class Program:
    name: str
    cause: str  # the finding that is expected first; empty: nothing is wrong
    words: str
    half: str = "tune"  # or "report": never looked at while the diagnosis is built
    needs: str = "cpu"  # "ranks2": two processes of torchrun; "cuda": a device
    threads: int | None = None  # of torch, where its own choice is not meant
    record: tuple[str, ...] = ()  # what `stepscope run` is told
    ops: tuple[str, ...] = ()  # operators that name the place too

    @property
    def file(self) -> Path:
        return FOLDER.parent / "story.py" if self.name == "story" else FOLDER / f"{self.name}.py"

    def command(self, fixed: bool, *more: str) -> list[str]:
        start = [sys.executable]
        if self.needs == "ranks2":
            start += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        if self.name == "story":
            form = ["after" if fixed else "before"]
        else:
            form = ["--fixed"] if fixed else []
        return [*start, str(self.file), *form, *more]


PROGRAMS = (
    Program("story", "python_in_step", "rare words are looked for in Python, passage by passage"),
    Program("image_loader", "loader_in_main_process", "samples are made between the steps", threads=1, ops=LOADER),
    Program(
        "remote_samples",
        "loader_too_few_workers",
        "one worker waits for one read at a time",
        "report",
        threads=1,
        ops=LOADER,
    ),
    Program("token_workers", "loader_slow_workers", "each word is split anew each time", threads=1, ops=LOADER),
    Program("detection_matching", "per_sample_loop", "the loss is made picture by picture"),
    Program("ema_teacher", "per_parameter_loop", "the moving average is made weight by weight", "report"),
    Program("tabular_double", "float64", "the model is of doubles, since the data are"),
    Program("gpt_scores", "attention_by_hand", "scores, mask and softmax one by one", "report"),
    Program("gpt2_gelu", "elementwise_chain", "an activation of eight operators in place of one"),
    Program("checkpointed_blocks", "recomputation", "every block runs twice to save memory that is not short"),
    Program("anomaly_left_on", "debug_mode", "autograd looks for NaN behind each operator", "report"),
    Program("one_thread", "too_few_threads", "torch is told to use one thread"),
    Program("thread_crowd", "too_many_threads", "four threads for each core", "report"),
    Program("collect_each_step", "garbage_collection", "all objects of Python are gone through at each step"),
    Program("fresh_buffers", "allocation_in_steps", "large buffers are made anew for each step", "report"),
    Program("running_history", "memory_growth", "all that ever was is kept, copied and counted again"),
    Program("two_losses", "retained_graph", "the trunk is gone back through once per loss", "report"),
    Program("frequent_saves", "checkpoint_in_loop", "everything is written to disk every five steps"),
)
