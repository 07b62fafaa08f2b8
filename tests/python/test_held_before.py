"""What a program holds when a recording of memory begins, told by it: bytes by device, category and module."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

from stepscope.hooks._stepscope_hooks.held_before import held_before


def tied() -> nn.Sequential:
    model = nn.Sequential(nn.Embedding(10, 4), nn.BatchNorm1d(4), nn.Linear(4, 10, bias=False))
    model[2].weight = model[0].weight
    return model


def test_each_storage_counts_once_where_it_stands_first() -> None:
    rows = held_before([tied()], [])
    assert sorted(rows) == [
        ("cpu", "buffer", "1", 2 * 4 * 4 + 8),
        ("cpu", "parameter", "0", 10 * 4 * 4),
        ("cpu", "parameter", "1", 2 * 4 * 4),
    ]


def test_states_belong_to_the_modules_of_their_parameters() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2, bias=False))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    states = {module: size for _, category, module, size in held_before([model], [optimizer]) if category.endswith("e")}
    assert states == {"0": 2 * (4 * 8 + 8) * 4 + 2 * 4, "1": 2 * 8 * 2 * 4 + 4}


def test_several_models_are_told_apart() -> None:
    rows = held_before([nn.Linear(2, 2, bias=False), nn.Sequential(nn.Linear(3, 3, bias=False))], [])
    assert sorted(rows) == [("cpu", "parameter", "Linear", 16), ("cpu", "parameter", "Sequential.0", 36)]


def test_what_has_no_memory_yet_is_nothing() -> None:
    assert held_before([nn.LazyLinear(3)], []) == []
    assert held_before([nn.Linear(2, 2, device="meta")], []) == []
    assert held_before([], []) == []
