"""Which gradients of a step's backward passes nobody reads, as the hooks see them beside the passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from stepscope.hooks._stepscope_hooks.gradient_use import GradientUse  # noqa: E402

At = tuple[str, int, int]
Said = set[tuple[int, int, str]]


class Two:
    """A network that makes something, and one that judges it, each with an optimizer."""

    def __init__(self) -> None:
        self.maker, self.judge = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
        self.of_maker = torch.optim.SGD(self.maker.parameters(), lr=0.1)
        self.of_judge = torch.optim.SGD(self.judge.parameters(), lr=0.1)
        self.watch()

    def watch(self) -> None:
        """A step begins."""
        modules = [("Maker", self.maker), ("Judge", self.judge)]
        self.use = GradientUse(modules, [self.of_maker, self.of_judge], lambda: ("train.py", 1, 9))

    def back(self, loss: Any) -> None:
        self.use.backward_begins()
        loss.backward()
        self.use.backward_ended()

    def step(self, optimizer: Any) -> None:
        self.use.optimizer_begins(optimizer)
        optimizer.step()

    def judge_learns(self, detach: bool, none: bool = True) -> None:
        self.of_judge.zero_grad(set_to_none=none)
        made = self.maker(torch.randn(3, 4))
        self.back(self.judge(made.detach() if detach else made).sum())
        self.step(self.of_judge)

    def maker_learns(self, none: bool = True) -> None:
        self.of_maker.zero_grad(set_to_none=none)
        self.back(self.judge(self.maker(torch.randn(3, 4))).sum())
        self.step(self.of_maker)

    def said(self) -> Said:
        return {(number, count, path) for number, count, path, _ in self.use.rows()}


def judge_first(two: Two) -> None:
    two.judge_learns(detach=False)
    two.maker_learns()


def maker_first(two: Two) -> None:
    """The step begins behind that of the judge, which left gradients to the maker."""
    two.maker.weight.grad = torch.ones_like(two.maker.weight)
    two.maker.bias.grad = torch.ones_like(two.maker.bias)
    two.maker_learns()
    two.judge_learns(detach=False)


def detached(two: Two) -> None:
    two.judge_learns(detach=True)
    two.judge.requires_grad_(False)
    two.maker_learns()


def set_to_zero(two: Two) -> None:
    """Behind the first step there are gradients from then on."""
    for _ in range(2):
        two.watch()
        two.judge_learns(detach=False, none=False)
        two.maker_learns(none=False)


def gathered(two: Two) -> None:
    """Gradients of two passes are read at once, behind a look at their size."""
    two.back(two.judge(two.maker(torch.randn(3, 4))).sum())
    torch.nn.utils.clip_grad_norm_(two.maker.parameters(), 0.1)
    two.back(two.judge(two.maker(torch.randn(3, 4))).sum())
    two.step(two.of_maker)
    two.step(two.of_judge)


def unknown_optimizer(two: Two) -> None:
    """One that came later may read anything."""
    two.back(two.judge(two.maker(torch.randn(3, 4))).sum())
    two.step(torch.optim.SGD([*two.maker.parameters(), *two.judge.parameters()], lr=0.1))


def every_fourth(two: Two) -> None:
    """The maker's optimizer steps in another step, for which gradients are added up."""
    two.back(two.judge(two.maker(torch.randn(3, 4))).sum())
    two.step(two.of_judge)


def read_by_the_program(two: Two) -> None:
    """Gradients of two losses, of which it makes one itself."""
    own = []
    for _ in range(2):
        two.of_maker.zero_grad()
        two.back(two.maker(torch.randn(3, 4)).sum())
        own.append([one.grad for one in two.maker.parameters()])
    for one, *grads in zip(two.maker.parameters(), *own):
        one.grad = sum(grads)
    two.step(two.of_maker)


def made_in_part(two: Two) -> None:
    """The same of what all losses share, and not of what is each one's own."""
    two.judge.requires_grad_(False)
    shared = [two.maker.weight]
    own = []
    for _ in range(2):
        two.maker.weight.grad = None
        two.back(two.maker(torch.randn(3, 4)).sum())
        own.append([one.grad for one in shared])
    for one, *grads in zip(shared, *own):
        one.grad = sum(grads)
    two.step(two.of_maker)


def too_many(two: Two) -> None:
    for _ in range(20):
        judge_first(two)


CASES: list[tuple[Callable[[Two], None], Said]] = [
    (judge_first, {(1, 2, "Maker"), (2, 2, "Judge")}),
    (maker_first, {(2, 2, "Maker"), (1, 2, "Judge")}),
    (detached, set()),
    (set_to_zero, set()),
    (gathered, set()),
    (unknown_optimizer, set()),
    (every_fourth, set()),
    (read_by_the_program, set()),
    (made_in_part, set()),
    (too_many, set()),
]


@pytest.mark.parametrize(("job", "said"), CASES, ids=[job.__name__ for job, _ in CASES])
def test_gradients_that_nobody_reads(job: Callable[[Two], None], said: Said) -> None:
    two = Two()
    job(two)
    assert two.said() == said


def test_nothing_of_the_job_is_kept() -> None:
    two = Two()
    two.judge_learns(detach=False)
    two.use.remove()
    assert not two.use.parameters and not two.use.before
