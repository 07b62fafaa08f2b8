"""torch's compiler, which an optimizer imports at its first use to be left alone by it: that takes as long as all else
of a small job. Here it is loaded when a job uses it for anything else.

What jobs of tests run in their first line (jobs.py).
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any

NAME = "torch._dynamo"


class Late(types.ModuleType):
    """Stands for the package, and becomes it."""

    @staticmethod
    def disable(fn: Any = None, *more: Any, **named: Any) -> Any:
        return fn if fn is not None else lambda one: one

    @staticmethod
    def graph_break(*more: Any, **named: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # who looks through all modules uses none
        become(self)
        return getattr(self, name)


def become(module: types.ModuleType) -> None:
    sys.meta_path.remove(FINDER)
    spec = importlib.machinery.PathFinder.find_spec(NAME, sys.modules["torch"].__path__)
    assert spec is not None and spec.loader is not None and spec.submodule_search_locations is not None
    module.__class__ = types.ModuleType
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__path__ = spec.submodule_search_locations
    spec.loader.exec_module(module)


class Made(importlib.abc.Loader):
    """The loader of a module that is there already."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module

    def create_module(self, spec: Any) -> types.ModuleType:
        return self.module

    def exec_module(self, module: types.ModuleType) -> None: ...


class Finder:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == NAME:
            return importlib.util.spec_from_loader(name, Made(Late(name)), is_package=True)
        if not name.startswith(NAME + "."):
            return None
        package = sys.modules[NAME]
        become(package)
        if name in sys.modules:
            return importlib.util.spec_from_loader(name, Made(sys.modules[name]))
        return importlib.machinery.PathFinder.find_spec(name, package.__path__)


FINDER = Finder()
sys.meta_path.insert(0, FINDER)
