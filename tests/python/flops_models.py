"""Models of which we know, by hand, the FLOPs of a step: what an analysis of their traces must find.

One multiply-add is two FLOPs; products of matrices, convolutions, attention and recurrent cells count, nothing else.
A formula comes from the sizes that built the model, never from a run. It follows the algorithm that runs where that is
not a matter of taste: fused attention computes its scores once more in backward, a recurrent kernel has no switch for
the gradient of its input. Two conventions stand side by side: attention over the whole square, and half of it where
the call says `is_causal`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import flops_nets as nets
import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

FUSED, MATH = Fraction(5, 2), Fraction(2)  # products in backward over products in forward: 5 to 2, and 4 to 2


@dataclass(frozen=True)
class Flops:
    full: int
    causal: int  # attention under a causal mask counts half


@dataclass(frozen=True)
class Truth:
    forward: Flops
    backward: Flops  # without what is recomputed
    recompute: Flops  # forward that ran again during backward
    modules: dict[str, int]  # of forward, full: dotted path of named_modules() -> itself and all below it


@dataclass
class Sum:
    """Multiply-adds, and how many of them a causal mask touches."""

    all: Fraction = Fraction(0)
    masked: Fraction = Fraction(0)

    def flops(self) -> Flops:
        return Flops(int(2 * self.all), int(2 * self.all - self.masked))


@dataclass
class Cost:
    """Adds up a model, layer by layer."""

    forward: Sum = field(default_factory=Sum)
    backward: Sum = field(default_factory=Sum)
    again: Sum = field(default_factory=Sum)
    modules: dict[str, int] = field(default_factory=dict)

    def layer(self, path: str, macs: int, *, dx: bool = True, dw: bool = True) -> int:
        """y = x·w: each of the gradients dx = dy·wᵀ and dw = xᵀ·dy is as large as y, where something needs it."""
        return self.add(path, macs, Fraction(dx + dw))

    def attention(self, path: str, macs: int, times: Fraction, causal: bool) -> int:
        self.forward.masked += macs * causal
        self.backward.masked += macs * times * causal
        return self.add(path, macs, times)

    def add(self, path: str, macs: int, times: Fraction) -> int:
        self.forward.all += macs
        self.backward.all += macs * times
        names = path.split(".") if path else []
        for depth in range(len(names) + 1):
            above = ".".join(names[:depth])
            self.modules[above] = self.modules.get(above, 0) + 2 * macs
        return macs

    def recompute(self, macs: int, causal: int) -> None:
        self.again.all += macs
        self.again.masked += causal

    def truth(self) -> Truth:
        return Truth(self.forward.flops(), self.backward.flops(), self.again.flops(), self.modules)


@dataclass
class Job:
    model: Any
    inputs: tuple[Any, ...]

    def forward(self) -> Any:
        out = self.model(*self.inputs)
        return getattr(out, "logits", out).float().square().sum()

    def step(self) -> None:
        self.model.zero_grad(set_to_none=True)
        self.forward().backward()


@dataclass(frozen=True)
class Row:
    name: str
    build: Callable[[], Job]
    truth: Callable[[], Truth]
    needs: str = ""  # a package

    def job(self) -> Job:
        """Made anew; skips the test where a package is missing (`make test` installs all)."""
        if self.needs:
            pytest.importorskip(self.needs)
        torch.manual_seed(0)
        return self.build()


# ---- plain layers ----


def mlp(frozen: bool = False) -> Job:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    model[2].requires_grad_(not frozen)
    return Job(model, (torch.randn(32, 256),))


def mlp_truth(frozen: bool = False) -> Truth:
    """rows·in·out a layer. Nothing needs the gradient of the data, nor that of a frozen weight."""
    cost = Cost()
    cost.layer("0", 32 * 256 * 512, dx=False)
    cost.layer("2", 32 * 512 * 10, dw=not frozen)
    return cost.truth()


def thrice_truth() -> Truth:
    """One layer is used three times; its path is the first of its names."""
    cost = Cost()
    for number in range(3):
        cost.layer("a", 100 * 100, dx=number > 0)
    return cost.truth()


def conv_macs(batch: int, out: int, kernel: int, channels_in: int, channels_out: int, groups: int = 1) -> int:
    """Each output pixel of each output channel sees kernel² pixels of the input channels of its group; the zeros
    that pad the input are multiplied too. `out` is the side of the output; for a transposed convolution, where each
    input pixel is spread, give the side of the input and exchange the channels."""
    return batch * out * out * channels_out * (channels_in // groups) * kernel * kernel


def cnn_truth() -> Truth:
    """Sides: (127+4-11)/4+1 = 31, pooled 15; padded by 2 for 5: 15, pooled 7; padded by 1 for 3: 7."""
    cost = Cost()
    cost.layer("c1", conv_macs(2, 31, 11, 3, 64), dx=False)
    cost.layer("c2", conv_macs(2, 15, 5, 64, 192))
    cost.layer("c3", conv_macs(2, 7, 3, 192, 256))
    cost.layer("fc", 2 * 256 * 7 * 7 * 100)
    return cost.truth()


def grouped() -> Job:
    layers = [
        nn.Conv2d(64, 64, 1),
        nn.Conv2d(64, 128, 3, padding=1, groups=8),
        nn.Conv2d(128, 128, 3, padding=1, groups=128),
    ]
    return Job(nn.Sequential(*layers), (torch.randn(8, 64, 16, 16),))


def grouped_truth() -> Truth:
    cost = Cost()
    cost.layer("0", conv_macs(8, 16, 1, 64, 64), dx=False)
    cost.layer("1", conv_macs(8, 16, 3, 64, 128, 8))
    cost.layer("2", conv_macs(8, 16, 3, 128, 128, 128))
    return cost.truth()


def transposed() -> Job:
    layers = [nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ConvTranspose2d(16, 32, 4, 2, 1, groups=4)]
    return Job(nn.Sequential(*layers), (torch.randn(8, 32, 8, 8),))


def transposed_truth() -> Truth:
    """Sides of the inputs: 8, then 2·8."""
    cost = Cost()
    cost.layer("0", conv_macs(8, 8, 4, 16, 32), dx=False)
    cost.layer("1", conv_macs(8, 16, 4, 32, 16, 4))
    return cost.truth()


def same_truth() -> Truth:
    """The side stays 16: one row and column of zeros before, two after."""
    cost = Cost()
    cost.layer("", conv_macs(8, 16, 4, 8, 16), dx=False)
    return cost.truth()


# ---- transformers ----

BATCH, TIME, HIDDEN, WORDS, LAYERS = 2, 64, 128, 500, 2


def gpt(
    attention: str = "fused", heads: int = 4, kv_heads: int = 4, checkpointed: bool = False, backend: str = ""
) -> Job:
    model = nets.Gpt(HIDDEN, heads, kv_heads, LAYERS, WORDS, attention, checkpointed)
    run = torch.compile(model, backend=backend) if backend else model
    return Job(run, (torch.randint(0, WORDS, (BATCH, TIME)),))


def attention_macs(batch: int, time: int, width: int) -> int:
    """Scores q·kᵀ and scores·v: time² products of `width` = heads·head size, twice. Shared keys save none."""
    return 2 * batch * time * time * width


def gpt_truth(times: Fraction = FUSED, heads: int = 4, kv_heads: int = 4, checkpointed: bool = False) -> Truth:
    """Every layer has a gradient on both sides: the embedding below needs one, itself is a look-up and no product.

    A checkpointed block runs again in backward, up to the first operator after which nothing that backward needs is
    missing: `down` keeps its input and weight, so it is begun, and left before it multiplies.
    """
    cost, tokens, kv = Cost(), BATCH * TIME, 2 * kv_heads * (HIDDEN // heads)
    for number in range(LAYERS):
        path = f"blocks.{number}"
        macs = cost.layer(f"{path}.q", tokens * HIDDEN * HIDDEN)
        macs += cost.layer(f"{path}.kv", tokens * HIDDEN * kv)
        inner = cost.attention(path, attention_macs(BATCH, TIME, HIDDEN), times, causal=True)
        macs += cost.layer(f"{path}.o", tokens * HIDDEN * HIDDEN)
        macs += cost.layer(f"{path}.up", tokens * HIDDEN * 4 * HIDDEN)
        cost.layer(f"{path}.down", tokens * 4 * HIDDEN * HIDDEN)
        if checkpointed:
            cost.recompute(macs + inner, causal=inner)
    cost.layer("head", tokens * HIDDEN * WORDS)
    return cost.truth()


def self_attention_truth() -> Truth:
    """q, k and v are one product of the data, 3·64 wide; its weight belongs to the module itself. No mask."""
    cost = Cost()
    cost.layer("attention", 2 * 32 * 64 * 3 * 64, dx=False)
    cost.attention("attention", attention_macs(2, 32, 64), FUSED, causal=False)
    cost.layer("attention", 2 * 32 * 64 * 64)
    return cost.truth()


NO_MARKS = {"bos_token_id": 0, "eos_token_id": 0}  # the real ones are beyond our few words
HF = {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 512}


def hugging_face(config: str, model: str, **sizes: Any) -> Job:
    package = importlib.import_module("transformers")
    made = getattr(package, model)(getattr(package, config)(vocab_size=1000, **sizes))
    return Job(made.eval(), (torch.randint(0, 1000, (2, 64)),))  # the CPU's fused attention has no dropout


def bert_truth() -> Truth:
    """q, k, v and the output are four squares; the pooler sees the first token of each row. No mask."""
    cost, tokens = Cost(), 2 * 64
    for number in range(2):
        path = f"bert.encoder.layer.{number}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            cost.layer(f"{path}.{name}", tokens * 128 * 128)
        cost.attention(f"{path}.attention.self", attention_macs(2, 64, 128), FUSED, causal=False)
        cost.layer(f"{path}.intermediate.dense", tokens * 128 * 512)
        cost.layer(f"{path}.output.dense", tokens * 512 * 128)
    cost.layer("bert.pooler.dense", 2 * 128 * 128)
    cost.layer("classifier", 2 * 128 * 2)
    return cost.truth()


def gpt2_truth() -> Truth:
    cost, tokens = Cost(), 2 * 64
    for number in range(2):
        path = f"transformer.h.{number}"
        cost.layer(f"{path}.attn.c_attn", tokens * 128 * 3 * 128)
        cost.attention(f"{path}.attn", attention_macs(2, 64, 128), FUSED, causal=True)
        cost.layer(f"{path}.attn.c_proj", tokens * 128 * 128)
        cost.layer(f"{path}.mlp.c_fc", tokens * 128 * 512)
        cost.layer(f"{path}.mlp.c_proj", tokens * 512 * 128)
    cost.layer("lm_head", tokens * 128 * 1000)
    return cost.truth()


def llama_truth() -> Truth:
    """Two heads of 32 for keys and values. transformers 5 multiplies positions and frequencies element by element;
    older versions do it as a product, of 2·rows·16·64 more."""
    cost, tokens = Cost(), 2 * 64
    for number in range(2):
        path = f"model.layers.{number}"
        for name, width in (("q_proj", 128), ("k_proj", 64), ("v_proj", 64), ("o_proj", 128)):
            cost.layer(f"{path}.self_attn.{name}", tokens * 128 * width)
        cost.attention(f"{path}.self_attn", attention_macs(2, 64, 128), FUSED, causal=True)
        for name in ("gate_proj", "up_proj", "down_proj"):
            cost.layer(f"{path}.mlp.{name}", tokens * 128 * 512)
    cost.layer("lm_head", tokens * 128 * 1000)
    return cost.truth()


# ---- products that are not layers ----


def products_truth() -> Truth:
    """Three products of 256 rows with 32·32, one with 32·48, one with a vector. The first has no dx; of the vector
    product dx is the outer product of two vectors: a product with an inner size of one."""
    cost = Cost()
    for number in range(3):
        cost.layer("", 256 * 32 * 32, dx=number > 0)
    cost.layer("", 256 * 32 * 48)
    cost.layer("", 256 * 48)
    return cost.truth()


def experts_truth() -> Truth:
    """However the tokens are dealt out: 2·128 rows pass one expert each. Of an expert alone the data decides."""
    cost = Cost()
    cost.layer("router", 128 * 64 * 4, dx=False)
    cost.layer("experts", 2 * 128 * 64 * 256, dx=False)
    cost.layer("experts", 2 * 128 * 256 * 64)
    return cost.truth()


def grouped_products() -> Job:
    ends = torch.tensor([16, 48, 80, 128], dtype=torch.int32)
    return Job(nets.GroupedProducts(4, 64, 128), (torch.randn(128, 64, dtype=torch.bfloat16), ends))


def grouped_products_truth() -> Truth:
    """Each of the 128 rows meets the matrix of its group."""
    cost = Cost()
    cost.layer("", 128 * 64 * 128, dx=False)
    return cost.truth()


def lstm_truth() -> Truth:
    """Four gates see the input and the state: rows·time·4·hidden·(input+hidden) a layer. In backward the kernel
    computes the gradients of its input and of the first state as well, whether needed or not: twice forward."""
    cost = Cost()
    cost.layer("lstm", 4 * 16 * 4 * 64 * (32 + 64))
    cost.layer("lstm", 4 * 16 * 4 * 64 * (64 + 64))
    return cost.truth()


def job(model: Callable[[], Any], *sizes: int) -> Callable[[], Job]:
    return lambda: Job(model(), (torch.randn(*sizes),))


ROWS = [
    Row("mlp", mlp, mlp_truth),
    Row("cnn", job(nets.Cnn, 2, 3, 127, 127), cnn_truth),
    Row("grouped_conv", grouped, grouped_truth),
    Row("conv_transpose", transposed, transposed_truth),
    Row("conv_same", job(lambda: nn.Conv2d(8, 16, 4, padding="same"), 8, 8, 16, 16), same_truth),
    Row("gpt", gpt, gpt_truth),
    Row("gpt_keywords", lambda: gpt("keywords"), gpt_truth),
    Row("gpt_math", lambda: gpt("math"), lambda: gpt_truth(MATH)),
    Row("gpt_gqa", lambda: gpt(heads=8, kv_heads=2), lambda: gpt_truth(heads=8, kv_heads=2)),
    Row("gpt_checkpoint", lambda: gpt(checkpointed=True), lambda: gpt_truth(checkpointed=True)),
    Row(
        "hf_bert",
        lambda: hugging_face("BertConfig", "BertForSequenceClassification", num_labels=2, **HF),
        bert_truth,
        "transformers",
    ),
    Row(
        "hf_gpt2",
        lambda: hugging_face(
            "GPT2Config", "GPT2LMHeadModel", n_embd=128, n_layer=2, n_head=4, n_positions=128, **NO_MARKS
        ),
        gpt2_truth,
        "transformers",
    ),
    Row(
        "hf_llama_gqa",
        lambda: hugging_face("LlamaConfig", "LlamaForCausalLM", num_key_value_heads=2, **HF),
        llama_truth,
        "transformers",
    ),
    Row("products", job(nets.Products, 4, 64, 32), products_truth),
    Row("experts", job(lambda: nets.Experts(64, 4, 2), 128, 64), experts_truth),
    Row("grouped_mm", grouped_products, grouped_products_truth),
    Row("linear_thrice", job(lambda: nets.OneLinearThrice(100), 1, 100), thrice_truth),
    Row("self_attention", job(lambda: nets.SelfAttention(64, 4), 2, 32, 64), self_attention_truth),
    Row("lstm", job(lambda: nets.Lstm(32, 64), 4, 16, 32), lstm_truth),
    # The default backend takes a minute of C++ compilers; the operators of its trace are the same.
    Row("gpt_compiled", lambda: gpt(backend="aot_eager"), gpt_truth),
    Row("mlp_frozen", lambda: mlp(frozen=True), lambda: mlp_truth(frozen=True)),  # beyond the table
]
BY_NAME = {row.name: row for row in ROWS}


def record_step(made: Job, path: Path, warm: int = 2) -> Path:
    """The trace of one step (forward, loss, backward) after `warm` others; with none, of the first of all."""
    for _ in range(warm):
        made.step()
    with (
        profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording,
        record_function("ProfilerStep#0"),  # as the profiler's own step() marks it
    ):
        made.step()
    recording.export_chrome_trace(str(path))
    return path
