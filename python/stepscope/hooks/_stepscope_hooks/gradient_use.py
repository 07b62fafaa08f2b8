"""Which gradients a backward pass makes that are thrown away before any optimizer reads them, in the step with stacks.

A discriminator that learns from pictures which still know how they were generated goes back through the generator too,
whose gradients are set to None before its own optimizer steps. Only what lies in p.grad is looked at, before and behind
each backward pass: who throws it away, and how, is the job's. Such as were set to zero in place are not known from such
as were clipped, without asking for their values: they pass for read.

No function is called for each parameter: the stacks would hold them all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    At = tuple[str, int, int]  # file, first line of the function, line

MOST_PARAMETERS = 20_000
MOST_PASSES = 16  # backward passes in a step


class GradientUse:
    def __init__(
        self, modules: Iterable[tuple[str, Any]], optimizers: Sequence[Any], place: Callable[[], At | None]
    ) -> None:
        """`modules`: path and module; each parameter is of the first that has it."""
        self.place = place  # of the program, that goes back now
        self.parameters: dict[int, Any] = {}
        self.owned: dict[str, set[int]] = {}
        for path, module in modules:
            for one in module.__dict__.get("_parameters", {}).values():
                if one is not None and one.requires_grad and one.is_leaf and id(one) not in self.parameters:
                    self.parameters[id(one)] = one
                    self.owned.setdefault(path, set()).add(id(one))
        if len(self.parameters) > MOST_PARAMETERS:
            self.parameters, self.owned = {}, {}
        self.reads = {
            id(optimizer): {id(one) for group in optimizer.param_groups for one in group["params"]}
            for optimizer in optimizers
        }
        self.over = False
        self.before: dict[int, int] = {}  # versions of gradients when the pass that runs began; -1: there was none
        self.places: list[At | None] = []  # of the passes
        # Of each pass: whose gradients nobody has read yet, whose somebody has, whose were thrown away.
        self.waiting: list[set[int]] = []
        self.read: list[set[int]] = []
        self.thrown: list[set[int]] = []
        self.none_at_first: set[int] = set()  # what had no gradient when the first pass began, and was not read before
        self.stepped: set[int] = set()  # what an optimizer has that stepped

    def give_up(self) -> None:
        """Nothing is told of this step: too much goes back in it, or an optimizer and a backward pass are within one
        another, as with a closure."""
        self.remove()
        self.places, self.waiting, self.read, self.thrown = [], [], [], []
        self.over = True

    def backward_begins(self) -> None:
        if len(self.places) >= MOST_PASSES:
            self.give_up()
        if self.over:
            return
        self.before = {key: -1 if one.grad is None else one.grad._version for key, one in self.parameters.items()}
        gone = {key for key, version in self.before.items() if version < 0}
        if not self.places:
            self.none_at_first = gone - self.stepped
        self._ends(gone, self.thrown)

    def backward_ended(self) -> None:
        before, self.before = self.before, {}
        if self.over or not before:  # the recording began within it
            return
        self.places.append(self.place())
        self.waiting.append(
            {key for key, one in self.parameters.items() if one.grad is not None and one.grad._version != before[key]}
        )
        self.read.append(set())
        self.thrown.append(set())

    def optimizer_begins(self, optimizer: Any) -> None:
        keys = self.reads.get(id(optimizer), set(self.parameters))
        self._ends(keys, self.read)
        self.stepped |= keys

    def rows(self) -> Iterator[tuple[int, int, str, At]]:
        """Number of a backward pass, from 1, how many there are in the step, path of a module all of whose gradients of
        this pass are thrown away, and where the program goes back. What nobody has read by the end of the step is
        thrown away where the first pass of the step found nothing, if its optimizer steps in each: steps are alike. A
        pass of which no optimizer reads anything has another reader, such as the program itself."""
        self._ends(self.none_at_first & self.stepped, self.thrown)
        count = len(self.places)
        for number, (at, thrown) in enumerate(zip(self.places, self.thrown), 1):
            if not self.read[number - 1]:
                continue
            used = self.read[number - 1] | self.waiting[number - 1]
            # Who reads some of it lets the program make the rest, as for several losses.
            for keys in self.reads.values():
                if keys & self.read[number - 1]:
                    used |= keys
            for path, keys in self.owned.items():
                if at is not None and keys & thrown and not keys & used:
                    yield number, count, path, at

    def remove(self) -> None:
        """Nothing of the job's is kept."""
        self.parameters, self.before = {}, {}

    def _ends(self, keys: set[int], fates: list[set[int]]) -> None:
        for waiting, fate in zip(self.waiting, fates):
            fate |= waiting & keys
            waiting -= keys
