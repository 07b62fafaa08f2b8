"""Recordings that a program asks for in its own code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jobs import Place, needs_torch, read

pytestmark = needs_torch

MODEL = """
    import sys, torch, stepscope
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    def train():
        net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
"""
PYTHON = str(Path(__file__).parents[2] / "python")


def marks(place: Place) -> list[list[str]]:
    traces = sorted((place.folder / "stepscope").rglob("*.pt.trace.json.gz"))
    names = [[event.get("name", "") for event in read(trace)["traceEvents"]] for trace in traces]
    return [sorted(name for name in found if name.startswith("ProfilerStep#")) for found in names]


def run(place: Place, text: str, *command: str) -> str:
    done = place.execute([*command, sys.executable, place.script(text)], PYTHONPATH=PYTHON)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_profile_as_a_block(place: Place) -> None:
    out = run(
        place,
        MODEL
        + """
    with stepscope.profile() as recording:
        for _ in range(3):
            train()
            stepscope.step()
    train()
    report = recording.run().answer("steps")
    print(recording.folder)
    print([t["rows"][0][:2] for t in report["tables"].values()][:1], len(recording.run().files))
    """,
    )
    folder = Path(out.splitlines()[0])
    assert folder.parent == place.folder / "stepscope" / "job"
    assert marks(place)[0][:3] == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    (note,) = [json.loads(path.read_text()) for path in (folder / "processes").glob("*.json")]
    assert note["windows"][0]["steps"] == [0, 1, 2]
    assert note["windows"][0]["modules"][0]["path"] == "Sequential"
    found = place.plain(str(place.stepscope), "report", str(folder), "--only", "steps", "--json")
    assert json.loads(found.stdout)["answers"]["steps"]["scalars"]["step_count"]["value"] >= 3


def test_profile_as_a_decorator_and_switched_off(place: Place) -> None:
    text = (
        MODEL
        + """
    recorded = stepscope.profile(name="mine")(train)
    recorded()
    stepscope.profile(enabled=False)(train)()
    stepscope.step()
    with stepscope.profile(name="mine"):
        try:
            stepscope.profile().__enter__()
        except RuntimeError as error:
            print(error)
    """
    )
    out = run(place, text)
    assert "a recording runs already" in out
    assert marks(place) == [["ProfilerStep#0"], ["ProfilerStep#0"]]
    assert len(list((place.folder / "stepscope" / "mine").iterdir())) == 2


def test_an_exception_goes_through_and_what_was_recorded_stays(place: Place) -> None:
    text = (
        MODEL
        + """
    with stepscope.profile():
        train()
        stepscope.step()
        raise ValueError("the job's own")
    """
    )
    done = place.execute([sys.executable, place.script(text)], PYTHONPATH=PYTHON)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ValueError: the job's own"
    assert marks(place)[0][0] == "ProfilerStep#0"


def test_profile_under_run_takes_over(place: Place) -> None:
    text = (
        MODEL
        + """
    for _ in range(3):
        train()
    with stepscope.profile():
        train()
    for _ in range(20):
        train()
    """
    )
    job = place.run(sys.executable, place.script(text), PYTHONPATH=PYTHON)
    assert (job.code, job.others) == (0, []), job.stderr
    assert [0] in [job.step_marks(trace) for trace in job.traces()]
    assert not (place.folder / "stepscope").exists(), "it lies in the folder of the run"


def test_ranks_share_a_folder(place: Place) -> None:
    text = """
        import torch, torch.distributed as dist, stepscope
        dist.init_process_group("gloo")
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
        with stepscope.profile() as recording:
            net(torch.ones(2, 8)).sum().backward()
        dist.destroy_process_group()
    """
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    where = ["--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", place.script(text)]
    done = place.execute([sys.executable, *launcher, *where], PYTHONPATH=PYTHON)
    assert done.returncode == 0, done.stderr
    (folder,) = [path.parent for path in (place.folder / "stepscope").glob("*/*/run.json")]
    assert sorted(path.name for path in (folder / "traces").iterdir()) == ["rank0", "rank1"]


def test_a_profiler_afterwards_says_as_much_as_without_us(place: Place) -> None:
    """Kineto's level is set by the first profiler of a process, which is ours here."""
    theirs = """
        for _ in range(2):
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
                train()
        """
    ours = """
        with stepscope.profile():
            train()
        """
    said = [
        place.execute([sys.executable, place.script(MODEL + text)], PYTHONPATH=PYTHON).stderr.splitlines()
        for text in (theirs, ours + theirs)
    ]
    assert len(said[0]) == len(said[1]), said[1]


def test_handler_for_torch_profiler(place: Place) -> None:
    text = (
        MODEL
        + """
    from torch.profiler import profile, schedule
    handler = stepscope.trace_handler()
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1), on_trace_ready=handler) as prof:
        for _ in range(6):
            train()
            prof.step()
    print(handler.folder)
    """
    )
    out = run(place, text)
    folder = Path(out.splitlines()[-1])
    assert marks(place) == [["ProfilerStep#2", "ProfilerStep#3"]]
    assert place.plain(str(place.stepscope), "report", str(folder)).returncode == 0


def test_decorated_generators_and_coroutines_are_recorded_to_their_end(place: Place) -> None:
    text = (
        MODEL
        + """
    import asyncio
    @stepscope.profile(folder="made")
    def steps():
        for i in range(2):
            train()
            stepscope.step()
            yield i
        return "end"
    @stepscope.profile(folder="awaited")
    async def job():
        await asyncio.sleep(0)
        train()
        return 7
    def whole():
        print((yield from steps()))
    print(list(whole()), asyncio.run(job()))
    try:
        @stepscope.profile()
        async def both():
            yield 1
    except TypeError as error:
        print(error)
    """
    )
    out = run(place, text)
    assert out.splitlines() == ["end", "[0, 1] 7", out.splitlines()[-1]] and "asynchronous" in out
    for folder, steps in (("made", 2), ("awaited", 1)):
        (trace,) = (place.folder / folder).rglob("*.pt.trace.json.gz")
        names = [event.get("name", "") for event in read(trace)["traceEvents"]]
        assert names.count("Optimizer.step#SGD.step") == steps


def test_internevo_under_run_writes_into_its_own_folder(place: Place) -> None:
    text = (
        MODEL
        + """
    from stepscope.internevo import initialize_llm_profile
    with initialize_llm_profile(True, start_time="now") as prof:
        for _ in range(10):
            train()
            prof.step()
    """
    )
    place.environment["JOB_NAME"] = "7b_train"
    run(place, text, str(place.stepscope), "run", "--steps", "2:4", "--")
    (trace,) = (place.folder / "7b_train" / "now").rglob("*.pt.trace.json.gz")
    assert trace.parent.name == "rank0_dp0_tp0_pp0"
    assert len(marks(place)) == 2  # that window, and the step with stacks


def test_internevo(place: Place) -> None:
    text = (
        MODEL
        + """
    from stepscope.internevo import initialize_llm_profile
    for profiling in (False, True):
        with initialize_llm_profile(profiling, start_time="Sep08_11-00-51") as prof:
            for _ in range(10):
                train()
                prof.step()
    """
    )
    place.environment["JOB_NAME"] = "7b_train"
    run(place, text)
    (trace,) = (place.folder / "7b_train" / "Sep08_11-00-51").rglob("*.pt.trace.json.gz")
    assert trace.parent.name == "rank0_dp0_tp0_pp0"
    events = read(trace)["traceEvents"]
    names = [event.get("name", "") for event in events]
    assert names.count("Optimizer.step#SGD.step") == 1
    assert any(event.get("cat") == "python_function" for event in events)
    assert "[memory]" in names
