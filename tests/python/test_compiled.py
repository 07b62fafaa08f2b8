"""torch.compile in a job that is recorded: the same graphs as without us, and steps and phases all the same."""

from __future__ import annotations

import json
import sys

import pytest
from jobs import LOOP, NET, Place, needs_torch, read
from rings import rings

pytestmark = needs_torch

WAIT_S = "4"  # until the clock has looked for models; alone, the job waits for nobody
COMPILED = """
    import torch._dynamo.utils as utils
    compiled = [frame.co_name for frame in utils.get_compilation_metrics()]
    print(compiled, dict(utils.counters["graph_break"]), utils.counters["stats"]["unique_graphs"])
"""


def test_compiled_models_are_not_compiled_again(place: Place) -> None:
    text = NET.replace("net = Net()", "net = Net(); eager = net.layers[0]; net = torch.compile(net, backend='eager')")
    script = place.script(text + LOOP + COMPILED)
    plain = place.plain(sys.executable, script, "20")
    job = place.run(sys.executable, script, "20")
    assert (job.code, job.stdout) == (plain.returncode, plain.stdout)
    assert job.others == plain.stderr.splitlines(), "no warning either"
    ((_, marks),) = rings(job)
    assert [mark.phase for mark in marks if mark.kind == 3 and mark.step == 18] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("what", "when"),
    [
        ("layers", "at_once"),
        ("net", "after_hooks"),
        pytest.param("net", "at_once", marks=pytest.mark.soak),
        pytest.param("layers", "after_hooks", marks=pytest.mark.soak),
    ],
)
def test_what_is_compiled_in_place_has_phases_and_its_own_range(place: Place, what: str, when: str) -> None:
    """Module.compile() takes the hooks of the module into the program."""
    wait = "for _ in range(40): time.sleep(0.05)" if when == "after_hooks" else ""  # the clock looks for models
    modules = "[net]" if what == "net" else "net.layers"
    text = f"{NET}\n    import time\n    {wait}\n    for module in {modules}: module.compile(backend='eager')\n{LOOP}"
    script = place.script(text + COMPILED)
    plain = place.plain(sys.executable, script, "20")
    job = place.run(sys.executable, script, "20", options=("--steps", "10:14"))
    assert (job.code, job.stdout) == (plain.returncode, plain.stdout)
    ((_, marks),) = rings(job)
    assert [mark.phase for mark in marks if mark.kind == 3 and mark.step == 18] == [1, 2, 3, 4]
    names = [event["name"] for trace in job.traces() for event in read(trace)["traceEvents"] if "name" in event]
    ranges = [name for name in names if name.startswith("stepscope.module: ")]
    inner = {"stepscope.module: layers.0 (Block)", "stepscope.module: layers.1 (Block)"} if what == "layers" else set()
    assert set(ranges) == {"stepscope.module: Net (Net)", *inner}
    assert len(ranges) == 4 * len(set(ranges))


def test_what_is_compiled_again_in_steps_that_nobody_recorded_has_its_guard(place: Place) -> None:
    """A number that every eight steps is another; torch knows why it compiles, and is asked at the end."""
    script = place.script(
        """
        import torch
        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.heat = torch.nn.Linear(8, 8), 1.0
            def forward(self, x):
                return self.layer(x) / self.heat
        net = Scaled()
        scaled = torch.compile(net, backend="eager", dynamic=False)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for step in range(64):
            net.heat = 1.0 + step // 8
            scaled(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        """
    )
    job = place.run(sys.executable, script)
    assert job.code == 0, job.stderr
    done = place.plain(str(place.stepscope), "advise", str(job.folder), "--json")
    first = json.loads(done.stdout)["findings"][0]
    assert (first["id"], first["where"]["line"], first["where"]["function"]) == ("recompilations", 8, "forward")
    assert any("self.heat == 7.0" in one["text"] for one in first["evidence"]), first["evidence"]


@pytest.mark.parametrize("what", ["module", "function"])
def test_what_is_compiled_late_or_again_is_compiled_without_hooks(place: Place, what: str) -> None:
    """The model is found, and gets hooks, long before torch.compile; and once more compiled inside the window."""
    text = f"""
    import sys, time, torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    def forward(x):
        return net(x).square().sum()
    if "{what}" == "function":
        forward = torch.compile(forward, backend="eager")
    time.sleep(float(sys.argv[1]))
    if "{what}" == "module":
        net = torch.compile(net, backend="eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for number in range(18):
        loss = forward(torch.ones(4 if number < 12 else 5, 8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
    """
    script = place.script(text + COMPILED)
    plain = place.plain(sys.executable, script, "0")
    job = place.run(sys.executable, script, WAIT_S)
    assert (job.code, job.stdout) == (plain.returncode, plain.stdout)
    assert plain.stdout.endswith(" 2\n"), "it is compiled again for another shape"
    assert job.others == plain.stderr.splitlines()
    assert job.recorded_steps() == [[10, 11, 12, 13, 14]]


@pytest.mark.parametrize("what", ["step", "epoch", "optimizer"])
def test_steps_of_what_is_compiled_as_a_whole_are_seen(place: Place, what: str) -> None:
    """torch compiles a step in pieces; between them it looks at all functions, and ours are none of the program."""
    text = f"""
    import torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(80, 8)), batch_size=4)
    def step(x):
        loss = net(x).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    def epoch():
        for (x,) in loader:
            loss = step(x)
        return loss
    if "{what}" == "step":
        step = torch.compile(step, backend="eager")
    elif "{what}" == "epoch":
        epoch = torch.compile(epoch, backend="eager")
    else:
        optimizer.step = torch.compile(optimizer.step, backend="eager")
    print(epoch().item())
    import torch._dynamo.utils as utils
    # The rest of the function around step() that calls hooks is a piece of its own where there are none.
    names = [frame.co_name for frame in utils.get_compilation_metrics()]
    print([name for name in names if "resume_in_wrapper" not in name], dict(utils.counters["stats"]))
    """
    script = place.script(text)
    plain = place.plain(sys.executable, script)
    job = place.run(sys.executable, script, options=("--steps", "5:8"))
    assert (job.code, job.stdout) == (plain.returncode, plain.stdout)
    assert job.recorded_steps() == [[5, 6, 7]]
    ((_, marks),) = rings(job)
    assert sum(mark.kind == 2 for mark in marks) == 20


def test_what_comes_by_the_clock_between_compiled_pieces_is_not_compiled(place: Place) -> None:
    text = """
    import sys, time, torch
    seconds = float(sys.argv[1])
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    @torch.compile(backend="eager")
    def forward(x):
        first = net(x)
        time.sleep(seconds)  # ends a piece, and the search for the model comes
        return first + net(x)
    forward(torch.ones(4, 8))
    """
    script = place.script(text + COMPILED)
    plain = place.plain(sys.executable, script, "0")
    job = place.run(sys.executable, script, WAIT_S)
    assert (job.code, job.stdout) == (plain.returncode, plain.stdout)
