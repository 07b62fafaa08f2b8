"""The programs of the gallery: what is wrong with each, and how it is started."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from verdicts import Places, places_of

FOLDER = Path(__file__).resolve().parent
LOADER = ("enumerate(DataLoader)",)
REDUCE = ("allreduce", "all_reduce")


@dataclass(frozen=True)
class Program:
    name: str
    cause: str  # the finding that is expected first; empty: nothing is wrong
    words: str  # one line on the fault
    half: str = "tune"  # or "report": never looked at while the diagnosis is built
    needs: str = (
        "cpu"  # "ranks2": two processes of torchrun; "cuda": a device; "bfloat16": products that are faster in it
    )
    threads: int | None = None  # of torch, where its own choice is not meant
    record: tuple[str, ...] = ()  # what `stepscope run` is told
    ops: tuple[str, ...] = ()  # operators that name the place too
    rank: int | None = None  # a rank that does

    @property
    def file(self) -> Path:
        return FOLDER.parent / "story.py" if self.name == "story" else FOLDER / f"{self.name}.py"

    def places(self) -> Places:
        return places_of(self.file, self.ops, self.rank)

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
    Program("thread_crowd", "too_many_threads", "eight threads for each core", "report"),
    Program("collect_often", "garbage_collection", "all objects of Python are gone through every five steps"),
    Program("fresh_buffers", "allocation_in_steps", "large buffers are made anew for each step", "report"),
    Program(
        "trimmed_heap",
        "memory_returned",
        "the C library gives memory back in each step",
        record=("--steps", "30:35"),  # a recording within the first ones keeps what goes back in the others
        ops=("conv", "Conv", "upsample", "cat"),
    ),
    Program(
        "running_history",
        "memory_growth",
        "all that ever was is kept, copied and counted again",
        record=("--steps", "78:83"),
    ),
    Program("two_losses", "retained_graph", "the trunk is gone back through once per loss", "report"),
    Program("frequent_saves", "checkpoint_in_loop", "everything is written to disk every five steps"),
    Program("frequent_evaluation", "evaluation_in_loop", "all test images are looked at every five steps", "report"),
    Program(
        "histograms", "logging_in_loop", "all weights and gradients are counted for a journal at each step", "report"
    ),
    Program("whole_shards", "file_io", "a shard is read for a few of its rows"),
    Program("feature_store", "network_io", "each step asks a server and waits", "report"),
    Program("plain_adam", "unfused_optimizer", "each weight is updated by a dozen operators", ops=("Optimizer.step",)),
    Program(
        "tied_words",
        "layout_copies",
        "the table of words is turned around in memory in each step",
        "report",
        ops=("aten::contiguous", "aten::clone"),
    ),
    Program("bf16_left_off", "float32_matmul", "large products were taken out of autocast", needs="bfloat16"),
    Program("many_lengths", "recompilations", "compiled again for each length of a sentence"),
    Program("watched_layers", "graph_breaks", "a look at the values in each layer cuts what is compiled", "report"),
    Program("generate_again", "no_cache", "all words are read again for each new one"),
    Program(
        "service_with_gradients",
        "no_inference_mode",
        "a service keeps what only learning needs",
        "report",
    ),
    Program("one_by_one", "tiny_batches", "requests that wait together are answered one by one"),
    Program(
        "hand_reduced",
        "exposed_communication",
        "gradients are added up weight by weight after the backward pass",
        needs="ranks2",
        ops=REDUCE,
    ),
    Program("bucket_crumbs", "small_buckets", "each gradient travels alone", "report", needs="ranks2", ops=REDUCE),
    Program(
        "reduce_often", "reduce_every_micro_batch", "gradients travel four times a step", needs="ranks2", ops=REDUCE
    ),
    Program("sorted_shards", "straggler_data", "one rank has all the long sentences", "report", needs="ranks2", rank=1),
    Program("rank_zero_report", "straggler_host", "one rank also counts in Python", needs="ranks2"),
    Program(
        "one_micro_batch", "pipeline_bubbles", "each half of the network waits for the other", "report", needs="ranks2"
    ),
    Program("cuda_small_layers", "small_launches", "hundreds of tiny kernels, launched one by one", needs="cuda"),
    Program("cuda_watched_loss", "hidden_sync", "the loss of each task is read at once", "report", needs="cuda"),
    Program("cuda_pageable_batches", "pageable_copies", "batches come from memory that is not pinned", needs="cuda"),
    Program("cuda_masks_again", "repeated_copies", "the same mask is copied at each step", "report", needs="cuda"),
    Program("cuda_routing_on_cpu", "op_on_cpu", "experts are chosen on the CPU", needs="cuda"),
    Program("cuda_full_precision", "no_tensor_cores", "products without tensor cores", "report", needs="cuda"),
    Program("cuda_channels_first", "layout_copies", "convolutions turn their input around", needs="cuda"),
    Program("healthy_gpt", "", "trains a GPT", "report"),
    Program("healthy_images", "", "trains a CNN on pictures in memory"),
    Program("healthy_loader", "", "trains a CNN on what a worker of the loader makes", "report"),
    Program("healthy_recommender", "", "trains tables and a tower", "report"),
    Program("healthy_graph", "", "trains a graph network"),
    Program("healthy_mlp", "", "trains a wide network"),
    Program("healthy_service", "", "serves in batches", "report"),
    Program("healthy_ranks", "", "trains on two ranks", needs="ranks2"),
)
