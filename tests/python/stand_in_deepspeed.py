"""A package `deepspeed` with the shape of the real one's way to its FLOPS profiler, written into a folder for a job.

As in 0.19: the engine takes the class by name when it is imported, starts it in a hook of its model on rank 0, stops it
in another one, and asks for the report at the end of step(), when it has counted that step. Timers run over
micro-batches.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

FILES = {
    "__init__.py": """
        import torch
        from .runtime.engine import DeepSpeedEngine
    """,
    "utils/timer.py": """
        import time
        FORWARD_GLOBAL_TIMER, BACKWARD_GLOBAL_TIMER, STEP_GLOBAL_TIMER = "fwd", "bwd", "step"
        class Timer:
            total = began = 0.0
            def start(self): self.began = time.time()
            def stop(self): self.total += time.time() - self.began
            def elapsed(self, reset=True):
                total = self.total
                self.total = 0.0 if reset else total
                return total * 1000
        class Timers:
            def __init__(self): self.all = {}
            def __call__(self, name): return self.all.setdefault(name, Timer())
    """,
    "profiling/flops_profiler/profiler.py": """
        class FlopsProfiler:
            def __init__(self, model, ds_engine=None, recompute_fwd_factor=0.0): pass
            def start_profile(self, ignore_list=None): print("theirs starts")
            def stop_profile(self): pass
            def end_profile(self): pass
            def print_model_profile(
                self, profile_step=1, module_depth=-1, top_modules=1, detailed=True, output_file=None
            ):
                print("theirs, step", profile_step)
    """,
    "runtime/engine.py": """
        import os
        import torch
        from deepspeed.profiling.flops_profiler.profiler import FlopsProfiler
        from deepspeed.utils.timer import Timers, FORWARD_GLOBAL_TIMER, BACKWARD_GLOBAL_TIMER, STEP_GLOBAL_TIMER

        DEFAULTS = dict(enabled=False, recompute_fwd_factor=0.0, profile_step=1, module_depth=-1, top_modules=1,
                        detailed=True, output_file=None)

        class Config:
            def __init__(self, whole): self._param_dict, self.flops = whole, {**DEFAULTS, **whole["flops_profiler"]}

        class DeepSpeedEngine:
            has_moe_layers, mp_world_size = False, 1
            def __init__(self, module, optimizer, config, micro=1):
                self.module, self.optimizer, self._config, self.micro = module, optimizer, Config(config), micro
                self.global_rank = int(os.environ.get("RANK", "0"))
                self.world_size = self.dp_world_size = int(os.environ.get("WORLD_SIZE", "1"))
                self.global_steps = self.micro_steps = 0
                self.timers = Timers()
                module.register_forward_pre_hook(lambda *_: self._forward_prologue())
                module.register_forward_hook(lambda *_: self._forward_epilogue())
                if self.flops_profiler_enabled():
                    self.flops_profiler = FlopsProfiler(self.module, self, self._config.flops["recompute_fwd_factor"])
            def flops_profiler_enabled(self): return self._config.flops["enabled"] or self.autotuning_enabled()
            def flops_profiler_profile_step(self): return self._config.flops["profile_step"]
            def flops_profiler_module_depth(self): return self._config.flops["module_depth"]
            def flops_profiler_top_modules(self): return self._config.flops["top_modules"]
            def flops_profiler_detailed(self): return self._config.flops["detailed"]
            def flops_profiler_output_file(self): return self._config.flops["output_file"]
            def autotuning_enabled(self): return bool(self._config._param_dict.get("autotuning"))
            def wall_clock_breakdown(self): return True
            def train_micro_batch_size_per_gpu(self): return 4
            def _active(self):
                at = self.global_steps == self.flops_profiler_profile_step()
                return self.flops_profiler_enabled() and at and self.global_rank == 0
            def _forward_prologue(self):
                if self._active():
                    self.flops_profiler.start_profile(ignore_list=None)
                self.timers(FORWARD_GLOBAL_TIMER).start()
            def _forward_epilogue(self):
                self.timers(FORWARD_GLOBAL_TIMER).stop()
                if self._active():
                    self.flops_profiler.stop_profile()
            def __call__(self, *inputs): return self.module(*inputs)
            def backward(self, loss):
                self.timers(BACKWARD_GLOBAL_TIMER).start()
                loss.backward()
                self.timers(BACKWARD_GLOBAL_TIMER).stop()
            def _take_model_step(self):
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.global_steps += 1
            def step(self, asks=True):
                active = self._active()
                self.timers(STEP_GLOBAL_TIMER).start()
                self.micro_steps += 1
                boundary = self.micro_steps % self.micro == 0
                if boundary:
                    self._take_model_step()
                self.timers(STEP_GLOBAL_TIMER).stop()
                if active and asks:
                    self.flops_profiler.print_model_profile(
                        profile_step=self.global_steps,
                        module_depth=self.flops_profiler_module_depth(),
                        top_modules=self.flops_profiler_top_modules(),
                        detailed=self.flops_profiler_detailed(),
                        output_file=self.flops_profiler_output_file(),
                    )
                    self.flops_profiler.end_profile()
                if boundary:
                    for timer in self.timers.all.values():
                        timer.elapsed()
    """,
}


def write(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / "deepspeed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        for above in path.relative_to(folder).parents:
            (folder / above / "__init__.py").touch() if above != Path() else None
