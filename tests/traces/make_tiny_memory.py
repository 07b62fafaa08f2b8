"""Makes tiny_memory_state.json: what SimpleMemoryProfiler measures of a tiny training, with times and host made fixed.

    PYTHONPATH=python python tests/traces/make_tiny_memory.py

It needs torch. The bytes are as torch keeps them, so that another torch may give others.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stepscope.memory import SimpleMemoryProfiler

HERE = Path(__file__).resolve().parent
BEGAN_UNIX_NS = 1_795_500_000_000_000_000


def measured() -> dict[str, Any]:
    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
    model = nn.Sequential(nn.Embedding(512, 64), block, nn.LayerNorm(64), nn.Linear(64, 512))
    optimizer = torch.optim.AdamW(model.parameters())
    with tempfile.TemporaryDirectory() as folder:
        profiler = SimpleMemoryProfiler(model, optimizer, folder, total_steps=2)
        for _ in range(2):
            for _ in range(2):
                words = torch.randint(512, (4, 33))
                found = model(words[:, :-1]).flatten(0, 1)
                nn.functional.cross_entropy(found, words[:, 1:].flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
        state: dict[str, Any] = json.loads(Path(folder, "memory_state.json").read_text())
    return state


def fixed(state: dict[str, Any]) -> dict[str, Any]:
    state.update(host="made", pid=7, torch="2.13.0", started_unix_ns=BEGAN_UNIX_NS, notes=[])
    for number, point in enumerate(state["points"]):
        point.update(time_s=number / 100, unix_ns=BEGAN_UNIX_NS + number * 10_000_000)
    for one in [state["peak"], *state["step_peaks"]]:
        one["unix_ns"] = BEGAN_UNIX_NS
    return state


(HERE / "tiny_memory_state.json").write_text(json.dumps(fixed(measured()), separators=(",", ":")) + "\n")
