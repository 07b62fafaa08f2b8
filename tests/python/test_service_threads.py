"""Services that call their model in other threads than the main one: in those of a pool, in one of their own that
takes requests from a queue, in a new one for each request."""

from __future__ import annotations

import json
import sys
from typing import Any

from jobs import Job, Place, needs_torch, read, rows

pytestmark = needs_torch

SERVICE = """
    import asyncio, sys, threading, time, torch
    from concurrent.futures import ThreadPoolExecutor
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(3)])
    def features(request):
        return [[float((request * 7 + row + column) % 13) for column in range(16)] for row in range(200)]
    def rank(request):
        with torch.inference_mode():
            return net(torch.tensor(features(request)))[:, 0].argmax().item()
"""
POOL = """
    async def serve(seconds):
        with ThreadPoolExecutor(1) as pool:
            end, number = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                await asyncio.get_running_loop().run_in_executor(pool, rank, number)
                number += 1
"""

EACH_IN_A_THREAD = """
    for number in range(150):
        thread = threading.Thread(target=answer, args=(number,))
        thread.start()
        thread.join()
"""


def recorded(place: Place, text: str, *options: str) -> tuple[Job, dict[str, Any]]:
    job = place.run(sys.executable, place.script(text), options=options)
    assert job.code == 0, job.stderr
    assert "ERROR" not in job.stderr
    (process,) = job.manifest()["processes"]
    assert process["problems"] == []
    return job, process


def answers(place: Place, job: Job) -> dict[str, Any]:
    done = place.plain(str(place.stepscope), "report", str(job.folder), "--json")
    found: dict[str, Any] = json.loads(done.stdout)["answers"]
    return found


def functions(place: Place, job: Job) -> set[str]:
    return {row["function"] for row in rows(answers(place, job)["stacks"], "functions")}


def whole(process: dict[str, Any], kind: str) -> list[int]:
    return [step for window in process["windows"] if window["kind"] == kind for step in window["steps"]]


def test_the_thread_of_a_pool_that_calls_the_model_is_followed(place: Place) -> None:
    job, process = recorded(place, SERVICE + POOL + "    asyncio.run(serve(7))\n")
    assert process["steps_seen"] > 100
    assert len(whole(process, "seconds")) > 5
    assert not whole(process, "steps")
    assert {"rank", "features"} <= functions(place, job)


def test_the_window_in_seconds_waits_for_the_end_of_one_of_steps(place: Place) -> None:
    slow = SERVICE.replace("return net(", "time.sleep(0.3); return net(")
    assert slow != SERVICE
    _, process = recorded(place, slow + POOL + "    time.sleep(0.9); asyncio.run(serve(9))\n")
    assert len(whole(process, "seconds")) > 3
    assert not whole(process, "steps")


def test_so_it_is_where_the_main_thread_called_the_model_before(place: Place) -> None:
    job, process = recorded(
        place, SERVICE + POOL + "    for _ in range(4): rank(0)\n    asyncio.run(serve(1.5))\n", "--steps", "20:25"
    )
    assert whole(process, "steps") == [20, 21, 22, 23, 24]
    assert "features" in functions(place, job)


def test_one_that_ends_while_it_is_recorded_leaves_what_there_is(place: Place) -> None:
    text = """
    def work():
        for number in range(30): rank(number)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    print('answered')
    """
    job, process = recorded(place, SERVICE + text, "--steps", "20:100")
    assert whole(process, "steps") == list(range(20, 28))  # it was followed from its third call on
    assert [window["complete"] for window in process["windows"]] == [False]
    assert job.stdout == "answered\n"


def test_a_thread_for_each_request_is_a_step(place: Place) -> None:
    text = """
    def answer(number):
        rank(number)
        rank(number + 1)
    """
    job, process = recorded(place, SERVICE + text + EACH_IN_A_THREAD)
    assert whole(process, "steps") == [10, 11, 12, 13, 14]
    assert whole(process, "stacks") == [15]
    assert {"answer", "features"} <= functions(place, job)
    made = place.plain(str(place.stepscope), "query", str(job.folder), "select distinct track from steps", "--csv")
    assert len(made.stdout.split()) == 2, "one lane for all of them"  # behind the head
    for trace in job.traces():
        names = [one.get("name") for one in read(trace)["traceEvents"]]
        assert names.count("aten::argmax") == 2, "no other request"


def test_threads_that_do_not_call_the_model_are_none_of_them(place: Place) -> None:
    text = """
    def note(number):
        time.sleep(0.001)
    for number in range(40):
        threads = [threading.Thread(target=what, args=(number,)) for what in (note, rank, note)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
    _, process = recorded(place, SERVICE + text)
    assert whole(process, "steps") == [10, 11, 12, 13, 14]
    assert 30 <= process["steps_seen"] <= 40


def test_requests_of_their_kind_that_do_not_call_it_are_no_steps(place: Place) -> None:
    text = """
    def answer(number):
        if number % 3 == 0:
            rank(number)
    """
    job, process = recorded(place, SERVICE + text + EACH_IN_A_THREAD)
    assert whole(process, "steps") == [10, 11, 12, 13, 14]
    assert whole(process, "stacks") == [15]
    assert {len(window["steps"]) for window in process["windows"]} == {1}
    assert "features" in functions(place, job)


def test_a_thread_that_stays_is_no_request(place: Place) -> None:
    text = """
    def answer(seconds):
        end = time.monotonic() + seconds
        while True:
            rank(1)
            time.sleep(0.01)
            if time.monotonic() >= end: break
    for seconds in (0, 0, 0, 0, 0, 7):
        thread = threading.Thread(target=answer, args=(seconds,))
        thread.start()
        thread.join()
    """
    _, process = recorded(place, SERVICE + text, "--steps", "20:25")
    assert whole(process, "steps") == [20, 21, 22, 23, 24]


def test_seconds_that_were_asked_for_go_on_from_request_to_request(place: Place) -> None:
    text = """
    end = time.monotonic() + 5
    while time.monotonic() < end:
        thread = threading.Thread(target=rank, args=(1,))
        thread.start()
        thread.join()
        time.sleep(0.02)
    """
    _, process = recorded(place, SERVICE + text, "--time", "1", "--warmup", "1")
    assert len(whole(process, "seconds")) > 5


def test_what_a_daemon_records_while_the_job_ends_is_lost_and_told(place: Place) -> None:
    text = """
    def work():
        for number in range(30): rank(number)
        time.sleep(100)
    threading.Thread(target=work, daemon=True).start()
    time.sleep(3)
    print('answered')
    """
    job = place.run(sys.executable, place.script(SERVICE + text), options=("--steps", "20:100"))
    assert (job.code, job.stdout) == (0, "answered\n")
    (process,) = job.manifest()["processes"]
    assert [problem for problem in process["problems"] if "lost" in problem]
    assert process["ended"]


def test_a_second_training_in_a_thread_of_its_own_is_recorded_as_the_first(place: Place) -> None:
    text = """
        import threading, torch
        net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16))
        def train():
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(20):
                net(torch.ones(4, 16)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        for _ in range(2):
            thread = threading.Thread(target=train)
            thread.start()
            thread.join()
    """
    job, process = recorded(place, text, "--steps", "25:30")
    assert whole(process, "steps") == [25, 26, 27, 28, 29]
    phases = {row["phase"] for row in rows(answers(place, job)["steps"], "phases")}
    assert {"forward", "backward", "optimizer"} <= phases


def test_a_service_that_nobody_asks_in_its_window_is_recorded_later(place: Place) -> None:
    text = """
    for number in range(25): rank(number)
    time.sleep(7)
    for number in range(2000): rank(number)
    """
    job, process = recorded(place, SERVICE + text)
    assert len(whole(process, "seconds")) > 5
    assert "features" in functions(place, job)


def test_a_training_in_a_thread_of_its_own_prints_nothing_of_ours(place: Place) -> None:
    text = """
        import threading, torch
        net = torch.nn.Linear(16, 16)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        def train():
            for _ in range(20):
                net(torch.ones(4, 16)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
    """
    _, process = recorded(place, text)
    assert whole(process, "steps") == [10, 11, 12, 13, 14]
