"""The model's outermost modules are found among all objects; later searches go deeper."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepscope.hooks._stepscope_hooks import roots


def test_each_level_adds_its_modules_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 2)
    chain = [model]
    for _ in range(6):
        model = torch.nn.Sequential(model)
        chain.insert(0, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    looked_at = []

    def counted(module: object, original: Callable[[object], bool] = roots._callable) -> bool:
        looked_at.append(module)
        return original(module)

    monkeypatch.setattr(roots, "_callable", counted)
    for level in range(12):
        looked_at.clear()
        assert roots.outermost(optimizer, level) == chain[: level + 1]
        assert len(looked_at) <= len(chain)
