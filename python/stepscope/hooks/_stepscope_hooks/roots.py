"""Objects of a class, and the model's outermost modules, found among those that Python's garbage collector tracks."""

from __future__ import annotations

import gc
import weakref

from .module_hooks import ModuleHook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .phases import Phases

MOST = 64  # outermost modules that get hooks
MOST_BESIDE = 8  # of those that no optimizer known here trains; they are many where a job keeps copies


class Root:
    """Hooks on one outermost module."""

    def __init__(self, module: Any, phases: Phases, outermost: bool = True) -> None:
        self.module = weakref.ref(module)
        self.hook = ModuleHook(module, phases.enter, phases.leave, outermost=outermost)

    def remove(self) -> None:
        self.hook.remove()


def instances(base: type) -> list[Any]:
    """All living objects of this class or one below it, that the collector tracks: 75 ms per million objects.

    No function is called for each of them: a recording with Python stacks would hold them all. isinstance would run
    code of objects that pretend to be others.
    """
    classes = {base}
    waiting = [base]
    while waiting:
        below = set(type.__subclasses__(waiting.pop())) - classes
        classes |= below
        waiting += below
    return [thing for thing in gc.get_objects() if type(thing) in classes]


def outermost(optimizer: Any, level: int = 0) -> tuple[list[Any], list[Any]]:
    """Modules that no other module holds; with an optimizer those that hold parameters of it, and beside them the
    others, as a teacher or a critic.

    `level` 1, 2 …: their children and grandchildren too, for containers whose own forward is never called.
    """
    import torch

    base = getattr(getattr(torch, "nn", None), "Module", None)
    modules = [module for module in instances(base) if "_modules" in module.__dict__] if base is not None else []
    inner = {id(child) for module in modules for child in module.__dict__["_modules"].values() if child is not None}
    found = [module for module in modules if id(module) not in inner and _callable(module)]
    found = [module for module in found if next(module.parameters(), None) is not None]
    beside: list[Any] = []
    if optimizer is not None:
        trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        everything, found = found, []
        for module in everything:
            is_trained = any(id(parameter) in trained for parameter in module.parameters())
            (found if is_trained else beside).append(module)
    unique = {id(module): module for module in found}
    for _ in range(level):
        found = [c for m in found for c in m.__dict__["_modules"].values() if c is not None and _callable(c)]
        unique.update((id(child), child) for child in found)
    return list(unique.values())[:MOST], beside[:MOST_BESIDE]


def _callable(module: Any) -> bool:
    """Hooks on a scripted module would become part of its code."""
    import torch

    return not isinstance(module, torch.jit.ScriptModule)


def optimizer_exists() -> bool:
    """Whether the job built an optimizer: torch marks the step function of each class at its first instance."""
    import torch

    base = getattr(getattr(torch, "optim", None), "Optimizer", None)
    waiting = list(base.__subclasses__()) if base is not None else []
    while waiting:
        cls = waiting.pop()
        if getattr(cls.__dict__.get("step"), "hooked", None):
            return True
        waiting += cls.__subclasses__()
    return False
