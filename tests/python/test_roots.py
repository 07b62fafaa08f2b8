"""The model's outermost modules are found among all objects; later searches go deeper."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepscope.hooks._stepscope_hooks import phases, roots


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
        if any(module is one for one in chain):  # not what other tests have left
            looked_at.append(module)
        return original(module)

    monkeypatch.setattr(roots, "_callable", counted)
    for level in range(12):
        looked_at.clear()
        assert roots.outermost(optimizer, level)[0] == chain[: level + 1]
        assert len(looked_at) <= len(chain)


def test_a_search_before_the_optimizer_is_there_costs_no_level() -> None:
    """The clock looks for models of jobs without one; what it found may be pieces of a model that is being built."""
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    searched = phases.Phases(None)  # type: ignore[arg-type]  # nobody is told
    try:
        searched.find_roots()
        searched.find_roots(optimizer)
        assert [root.module() for root in searched.roots] == [net]
        searched.find_roots(optimizer)
        assert [root.module() for root in searched.roots] == [net, net[0]]
    finally:
        searched.remove_roots()
