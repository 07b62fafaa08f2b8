"""Calls us once a module of somebody else's has been imported, and never imports it: an entry of sys.meta_path.

sitecustomize.py waits for torch in the same way; it stands alone, as nothing of this package is there by then.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class WhenImported:
    """`act` gets the module, now or when it comes; it must not raise."""

    def __init__(self, name: str, act: Callable[[Any], None]) -> None:
        self.name, self.act = name, act
        known = sys.modules.get(name)
        spec = getattr(known, "__spec__", None)
        if known is not None and not getattr(spec, "_initializing", False):
            act(known)
        else:
            sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                self._wrap(spec)
                return spec
        return None

    def _wrap(self, spec: Any) -> None:
        execute = getattr(spec.loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: Any) -> None:
            execute(module)
            self.cancel()
            self.act(module)

        # A module that fails to import shows its own traceback: Python leaves out frames of this file name.
        exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
        try:
            spec.loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader that takes no attributes: theirs stays as it is
