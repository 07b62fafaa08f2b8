"""What runs beside the model that learns: frozen layers, teachers, threads of Python."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from jobs import Place, measured, needs_torch
from test_advise import advise, recorded

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def tower(width=512):
    return nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())])

"""

FROZEN = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = tower(), nn.Linear(512, 10)

    def forward(self, x):
        return self.head(self.body(x))


model = Net()
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.01)
for step in range(30):
    loss = F.cross_entropy(model(torch.rand(64, 512)), torch.randint(0, 10, (64,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)

TAUGHT = (
    HEAD
    + """
student, teacher = nn.Linear(512, 512), tower()
optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
for step in range(30):
    x = torch.rand(64, 512)
    loss = F.mse_loss(student(x), teacher(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)


def finding(found: dict[str, Any], cause: str) -> dict[str, Any]:
    (one,) = [one for one in found["findings"] if one["id"] == cause]
    return dict(one)


@needs_torch
@measured
def test_gradients_of_layers_that_no_optimizer_has_are_told(place: Place) -> None:
    folder = recorded(place, FROZEN).folder
    assert folder is not None
    found = advise(place, str(folder.rename(place.folder / "learns")))
    assert found["findings"][0]["id"] == "unread_gradients", found["findings"]
    first = found["findings"][0]
    assert first["where"]["module"] == "body"
    assert "SGD(" in FROZEN.splitlines()[first["where"]["line"] - 1]  # says what is learned
    # Three products of four are not needed: forward, and of two backward the one that goes on.
    assert 1.5 < first["gain"]["speedup_high"] < 5
    frozen = FROZEN.replace("optimizer =", "model.body.requires_grad_(False)\noptimizer =")
    assert frozen != FROZEN
    again = advise(place, str(recorded(place, frozen).folder))
    assert "unread_gradients" not in [one["id"] for one in again["findings"]]


@needs_torch
@measured
def test_a_teacher_that_learns_nothing_is_told_where_it_is_called(place: Place) -> None:
    first = advise(place, str(recorded(place, TAUGHT).folder))["findings"][0]
    assert first["id"] == "unread_gradients"
    assert "teacher(x)" in TAUGHT.splitlines()[first["where"]["line"] - 1]
    assert first["gain"]["speedup_high"] > 1.5


TWO_NETWORKS = (
    HEAD
    + """
maker, judge = tower(), tower()
of_maker, of_judge = (torch.optim.SGD(net.parameters(), lr=0.001) for net in (maker, judge))
for step in range(60):
    of_judge.zero_grad()
    made = maker(torch.rand(64, 512))
    loss = judge(made).mean() - judge(torch.rand(64, 512)).mean()
    loss.backward()
    of_judge.step()
    of_maker.zero_grad()
    judge.requires_grad_(False)
    judge(maker(torch.rand(64, 512))).mean().neg().backward()
    judge.requires_grad_(True)
    of_maker.step()
"""
)


@needs_torch
@measured
def test_gradients_that_are_thrown_away_are_told_where_they_are_made(place: Place) -> None:
    folder = recorded(place, TWO_NETWORKS).folder
    assert folder is not None
    # Where cores are idle, the one thread that tests have comes before it.
    found = finding(advise(place, str(folder.rename(place.folder / "attached"))), "unread_gradients")
    assert "loss.backward()" in TWO_NETWORKS.splitlines()[found["where"]["line"] - 1]
    # Of a step's products in five networks forward and four back, those of one of these.
    assert 1.1 < found["gain"]["speedup_high"] < 2
    cut = TWO_NETWORKS.replace("judge(made)", "judge(made.detach())")
    assert cut != TWO_NETWORKS
    again = advise(place, str(recorded(place, cut).folder))
    assert "unread_gradients" not in [one["id"] for one in again["findings"]]


BESIDE = (
    HEAD
    + """
import threading
model = tower()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
ended = False


def count():
    number = 0
    while not ended:
        number += 1


thread = threading.Thread(target=count)
thread.start()
for step in range(30):
    loss = model(torch.rand(8, 512)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
ended = True
thread.join()
"""
)


@needs_torch
@measured
def test_a_thread_of_python_that_computes_is_named(place: Place) -> None:
    told = finding(advise(place, str(recorded(place, BESIDE).folder)), "interpreter_lock")
    assert "Thread-1 (count)" in told["sentence"]
    assert told["where"]["function"] == "count" and told["where"]["file"] == "job.py"
    assert told["gain"]["speedup_high"] > 1.1


@needs_torch
def test_who_learns_is_known_only_where_optimizers_have_parameters_of_the_models() -> None:
    torch = pytest.importorskip("torch")
    from stepscope.hooks._stepscope_hooks.modules import module_sizes

    body, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
    net = torch.nn.Sequential(body, head)
    teacher = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    known, others = module_sizes([net], [teacher], [optimizer])
    rows = {name: tuple(rest) for name, *rest in known}
    assert rows == {"Sequential": (0, 0, 0), "0": (20, 20, 0), "1": (10, 0, 10)}
    assert others == [("Linear", 12, 12, 0)]
    body.requires_grad_(False)
    rows = {name: tuple(rest) for name, *rest in module_sizes([net], [], [optimizer])[0]}
    assert rows["0"] == (20, 0, 0)
    copies = [torch.nn.Parameter(one.detach().clone()) for one in head.parameters()]  # as in another precision
    rows = {name: tuple(rest) for name, *rest in module_sizes([net], [], [torch.optim.SGD(copies, lr=0.1)])[0]}
    assert rows == {"Sequential": (0, 0, 0), "0": (20, 0, 0), "1": (10, 0, 0)}
    assert module_sizes([net])[0][1] == ("0", 20, 0, 0)


PROFILED = (
    HEAD
    + """
from torch.profiler import ProfilerActivity, profile
model = tower(64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    with profile(activities=[ProfilerActivity.CPU]) as record:
        model(torch.rand(8, 64)).square().mean().backward()
        optimizer.step()
    record.key_averages()
"""
)


@needs_torch
@measured
def test_a_profiler_that_the_program_left_on_is_told(place: Place) -> None:
    job = place.run(sys.executable, place.script(PROFILED))
    assert job.code == 0, job.stderr
    first = advise(place, str(job.folder))["findings"][0]
    assert first["id"] == "debug_mode" and first["where"]["file"] == "job.py", first
    assert "with profile(" in PROFILED.splitlines()[first["where"]["line"] - 1]
    assert first["gain"] is None and "Unknown" in first["gain_reason"]
