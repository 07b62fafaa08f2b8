"""torch's compiler, which an optimizer imports at its first use to be left alone by it: that takes as long as all else
of a small job. Here it is loaded when a job uses it for anything else.

What jobs of tests run in their first line (jobs.py).
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
import types
from typing import Any

NAME = "torch._dynamo"
LOCK = threading.RLock()


class Late(types.ModuleType):
    """Stands for the package, and becomes it."""

    @staticmethod
    def disable(fn: Any = None, *more: Any, **named: Any) -> Any:
        return fn if fn is not None else lambda one: one

    @staticmethod
    def graph_break(*more: Any, **named: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):  # who looks through all modules asks for such names
            become(self)
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def become(module: types.ModuleType) -> None:
    """The package runs in the module that stands for it, once."""
    with LOCK:
        if FINDER not in sys.meta_path:
            return
        sys.meta_path.remove(FINDER)
        spec = importlib.machinery.PathFinder.find_spec(NAME, sys.modules["torch"].__path__)
        assert spec is not None and spec.loader is not None and spec.submodule_search_locations is not None
        module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
        module.__path__ = spec.submodule_search_locations
        spec.loader.exec_module(module)
        module.__class__ = types.ModuleType


class Made(importlib.abc.Loader):
    """The loader of a module that is there already."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: Any) -> types.ModuleType:
        return self.module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.spec or module.__spec__


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
