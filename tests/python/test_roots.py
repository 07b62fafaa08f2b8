"""The model's outermost modules are found among all objects; later searches go deeper."""

from __future__ import annotations

import pytest
from stepscope.hooks._stepscope_hooks import roots


def test_each_level_adds_its_modules_once() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 2)
    chain = [model]
    for _ in range(6):
        model = torch.nn.Sequential(model)
        chain.insert(0, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for level in range(40):  # without a bound where a module is counted once for each way to it
        assert roots.outermost(optimizer, level) == chain[: level + 1]
