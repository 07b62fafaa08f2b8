"""Models that are copied, pickled, saved or scripted while they have our hooks."""

from __future__ import annotations

import sys

from jobs import Place, needs_torch

pytestmark = needs_torch


def test_copies_files_and_scripts_of_a_model_have_no_hooks(place: Place) -> None:
    """At every step, inside the window and outside: as many bytes as without us."""
    script = place.script("""
        import copy, io, pickle, torch
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for number in range(14):
            net(torch.ones(4, 8)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            file = io.BytesIO()
            torch.save(net, file)
            copied = copy.deepcopy(net)
            print(number, len(pickle.dumps(net)), len(file.getvalue()), copied._forward_hooks)
            if number in (5, 12):
                print(torch.jit.script(net)(torch.ones(1, 8)), torch.jit.trace(net, torch.ones(1, 8)).graph)
    """)
    plain = place.plain(sys.executable, script)
    job = place.run(sys.executable, script, options=("--steps", "10:14"))
    assert (job.code, job.stdout, job.others) == (plain.returncode, plain.stdout, plain.stderr.splitlines())
    assert job.recorded_steps() == [[10, 11, 12, 13]]


def test_a_model_whose_class_writes_its_own_state_opens_without_us(place: Place) -> None:
    script = place.script("""
        import pickle, torch
        class Own(torch.nn.Linear):
            def __getstate__(self):
                return dict(self.__dict__)
        if __name__ == "__main__":
            net = Own(8, 8)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
            for number in range(14):
                net(torch.ones(4, 8)).sum().backward()
                optimizer.step()
                with open(f"{number}.pickle", "wb") as file:
                    pickle.dump(net, file)
    """)
    job = place.run(sys.executable, script)
    assert (job.code, job.others) == (0, [])
    opens = """
        import pickle, torch, __main__, job
        __main__.Own = job.Own
        print([pickle.load(open(f"{number}.pickle", "rb"))(torch.ones(1, 8)).shape[1] for number in range(14)])
    """
    again = place.plain(sys.executable, place.script(opens, "opens.py"))
    assert (again.stdout, again.stderr) == (f"{[8] * 14}\n", "")
