"""Step marks of a job that only runs forward passes: outermost module calls without gradients, on one thread.

Global module hooks are in place only while a window in seconds is recorded: torch.compile would trace them, so they
return at once while it does.
"""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .recorder import Recorder


class ForwardMarks:
    def __init__(self, recorder: Recorder) -> None:
        import torch
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self.handles: list[Any] = []
        compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
        if compiling is None:
            return
        thread = threading.get_ident()
        state = {"depth": 0, "number": 0}

        def before(module: object, args: object) -> None:
            if compiling() or threading.get_ident() != thread:
                return
            if state["depth"] == 0 and not torch.is_grad_enabled():
                recorder.begin_step(state["number"])
                state["number"] += 1
            state["depth"] += 1

        def after(module: object, args: object, output: object) -> None:
            if compiling() or threading.get_ident() != thread or state["depth"] == 0:
                return
            state["depth"] -= 1
            if state["depth"] == 0:
                recorder.end_step()

        self.handles = [register_module_forward_pre_hook(before), register_module_forward_hook(after, always_call=True)]

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
