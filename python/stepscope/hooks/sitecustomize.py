"""Python runs this at start-up because `stepscope run` put this folder in front of PYTHONPATH.

It imports nothing, takes itself out of sys.path again and hands over to the user's own sitecustomize. What remains is
one entry of sys.meta_path that waits for torch: a process that never imports torch does nothing further.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _TorchImport:
    """Finds torch by the other finders and lets the hooks in once the module has been executed."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name != "torch":
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                self._wrap(spec)
                return spec
        return None

    def _wrap(self, spec: "Any") -> None:
        execute = getattr(spec.loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: object) -> None:
            execute(module)
            arm()

        def arm() -> None:
            try:
                sys.meta_path.remove(self)
                _load(self.folder).arm()
            except Exception as error:
                _say_why(error)

        # A torch that fails to import shows the user's own traceback: Python leaves out frames of this file name.
        exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
        try:
            spec.loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader that takes no attributes: the job runs, unprofiled


def _load(folder: str) -> "Any":
    """Imports the hooks by their path; their folder is no longer in sys.path."""
    import importlib.util

    package = os.path.join(folder, "_stepscope_hooks")
    spec: Any = importlib.util.spec_from_file_location(
        "_stepscope_hooks", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["_stepscope_hooks"] = module
    spec.loader.exec_module(module)
    return module


def _say_why(error: Exception) -> None:
    try:
        with open(os.path.join(os.environ["STEPSCOPE_RUN"], "hooks.log"), "a") as log:
            log.write(f"{os.getpid()}: the hooks could not start: {error!r}\n")
    except Exception:
        pass


def _take_out(folder: str) -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    for entry in list(sys.path_importer_cache):
        if os.path.abspath(entry or ".") == folder:
            del sys.path_importer_cache[entry]


_folder = os.path.dirname(os.path.abspath(__file__))
_take_out(_folder)
if os.environ.get("STEPSCOPE_RUN"):
    sys.meta_path.insert(0, _TorchImport(_folder))

# The user's own, or the ImportError that tells `site` that there is none: as if this file were not here.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402,F401
