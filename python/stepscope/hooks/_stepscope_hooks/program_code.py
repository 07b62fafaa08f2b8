"""Which functions are the program's own, and on which lines they call what, or loop over it.

Recorded frames name a function by the line at which it begins, and give no hint of whether it is the user's or a
library's. Both are in the sources that the program has loaded: its own are those that lie neither beside torch and
other installed packages nor beside Python's.
"""

from __future__ import annotations

import ast
import os
import site
import sys
import sysconfig
import time
import warnings

from . import carried_state, constants, doubles, modules, syntax

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .gradient_use import GradientUse

# In place of what is called:
CARRIES = "(carries)"  # and the last line of the loop that begins there: each turn needs what the one before it made
TURNS = "(turns)"  # and the last line of the loop that begins there
RETAINS = "backward(retain_graph)"
CALLS = "(calls) "  # before the model: where the program was when it called it
KEEPS = "(keeps)"  # a function that sets what is there when it is done: an attribute, a place in a list of another's
CONSTANT = "(constant)"  # a function that gives the same whenever it is called
SAME = "(same)"  # one that gives the same of the same; whether it is given that is in the notes of the process
WORKERS = "(workers)"  # a data loader that is made; the line is that of num_workers, where it is given
FLOAT64 = "(float64)"  # an expression that asks for it
ALL_FLOAT64 = "(all float64)"  # one that makes a model float64, or all that follows
DROPS = "(drops) "  # before the name: what the call gives back is not used
EACH = "(each) "  # before the name: the loop calls it on each of its items, whatever they are: callbacks, layers
AGAIN = "(again) "  # before the number of a call, of all in a step, and the module: it was given the same before
PADDED = "(padded) "  # before thousandths of its words that fill up, of those that no row needs, and the table
FRAMES = "(frames) "  # the same of frames as of sound, with rows and length, and the module that is given them
THROWN = "(thrown) "  # before the number of a backward pass, of all in a step, and a module: nobody reads its gradients
SYMBOL = "(symbol) "  # before "+" or "[]": an operator of Python's, which calls nothing that frames would name
IGNORED = "(ignored) "  # before thousandths of the places of which a loss takes nothing
MOST_FILES = 200  # whose calls are read
MOST_S = 0.5  # of reading: the job waits
MOST_BYTES = 1_000_000  # of a source that is still read

Call = tuple[str, int, str, int]  # file as frames are recorded, first line of the function, what is called, line
# Functions that give the same of the same, by file as Python calls it and first line: their parameters, and of each
# whether its shape and kind alone count.
Given = dict[tuple[str, int], dict[str, bool]]


def calls() -> tuple[list[Call], Given]:
    """One row per call, loop and function ("def evaluate").

    And one for each file that calls nothing ("", 0), so that all files are known.
    """
    rows: list[Call] = []
    of_the_same: Given = {}
    began = time.perf_counter()
    prefixes = _prefixes()

    own = own_files()
    for model, at in list(modules.called_at.items()):
        if at is not None and os.path.abspath(at[0]) in own:
            rows.append((_without(prefixes, own[os.path.abspath(at[0])]), at[1], CALLS + model, at[2]))
    for number, path in enumerate(sorted(own)):
        name = _without(prefixes, own[path])
        rows.append((name, 1, "", 0))  # it is the program's, whether or not its calls are read
        if number >= MOST_FILES or time.perf_counter() - began > MOST_S:
            continue
        try:
            if os.path.getsize(path) > MOST_BYTES:
                continue
            with open(path, "rb") as source, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of its text, which it has heard or not when it was compiled
                tree = ast.parse(source.read(), path)
            rows.extend([(name, *row) for row in dict.fromkeys(_rows(tree))])
            if time.perf_counter() - began < MOST_S:
                rows.extend([(name, at, FLOAT64, line) for at, line in sorted(set(doubles.asked_for(tree)))])
                rows.extend([(name, at, ALL_FLOAT64, line) for at, line in sorted(set(doubles.changed_to(tree)))])
                for one, unless, given in constants.constants(tree):
                    what = SAME if given else CONSTANT
                    what = f"{what} unless {' '.join(unless)}" if unless else what
                    rows.append((name, syntax.first_line(one), what, one.lineno))
                    if given:
                        of_the_same[own[path], syntax.first_line(one)] = given
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return rows, of_the_same


def seen_in_step(ranges: modules.ModuleRanges, gradients: GradientUse | None) -> list[Call]:
    """What calls of modules and of losses were given, where the program makes them, and which gradients nobody read."""
    said: list[tuple[str, tuple[str, int, int]]] = []
    if ranges.again is not None:
        said += [(f"{AGAIN}{number} {count} {path}", at) for path, number, count, at in ranges.again.rows()]
    if ranges.wasted is not None:
        said += [(f"{PADDED}{filled} {needless} {path}", at) for path, filled, needless, at in ranges.wasted.padded()]
        for path, filled, needless, rows, length, at in ranges.wasted.padded_frames():
            said.append((f"{FRAMES}{filled} {needless} {rows} {length} {path}", at))
        said += [(f"{IGNORED}{share}", at) for share, at in ranges.wasted.ignored()]
    if gradients is not None:
        said += [(f"{THROWN}{number} {count} {path}", at) for number, count, path, at in gradients.rows()]
    own = own_files()
    files = [own.get(os.path.abspath(at[0])) for _, at in said]
    return [(shown(file), at[1], what, at[2]) for file, (what, at) in zip(files, said) if file is not None]


def shown(path: str) -> str:
    """As recorded frames name it."""
    return _without(_prefixes(), path)


def _without(prefixes: list[str], path: str) -> str:
    return next((path[len(prefix) :] for prefix in prefixes if path.startswith(prefix)), path)


def own_files() -> dict[str, str]:
    """Absolute paths of the program's own modules, as far as they are loaded; and what Python calls each: started as
    python jobs/../train.py, the latter has the way round in it, and so have its frames."""
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # the package
    libraries = {os.path.abspath(path) for path in sysconfig.get_paths().values()}
    with_site = [*site.getsitepackages(), site.getusersitepackages(), ours]
    libraries |= {os.path.abspath(path) for path in with_site}
    libraries -= {os.path.abspath(os.path.dirname(sys.executable)), os.path.abspath(sys.prefix)}
    around = tuple(path + os.sep for path in libraries if path != os.sep)
    files = {}
    for module in list(sys.modules.values()):
        try:
            # Asked otherwise, a module that is loaded lazily would load itself, and one with a __getattr__ of its own
            # would run that.
            path = object.__getattribute__(module, "__dict__").get("__file__")
        except Exception:
            continue
        if isinstance(path, str) and path.endswith(".py"):
            whole = os.path.abspath(path)
            if not whole.startswith(around) and "site-packages" not in whole and "dist-packages" not in whole:
                files[whole] = path
    return files


def _prefixes() -> list[str]:
    """What torch's profiler takes off the paths of frames."""
    try:
        from torch.profiler import python_tracer

        return list(python_tracer._prefix_regex())
    except Exception:
        return sorted({os.path.abspath(path) + os.sep for path in sys.path}, reverse=True)


def _called_on_each(loop: ast.For | ast.AsyncFor) -> Iterator[tuple[str, int]]:
    items = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    for node in (inner for statement in loop.body for inner in ast.walk(statement)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if isinstance(node.func.value, ast.Name) and node.func.value.id in items:
            yield node.func.attr, node.func.end_lineno or node.lineno


def _rows(tree: ast.Module) -> Iterator[tuple[int, str, int]]:
    def walk(node: ast.AST, function: int) -> Iterator[tuple[int, str, int]]:
        types = (getattr(node, "annotation", None), getattr(node, "returns", None))
        for child in ast.iter_child_nodes(node):
            if child in types:
                continue
            inside = function
            if symbol := syntax.symbol(child):
                yield function, SYMBOL + symbol[0], symbol[1]
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside = syntax.first_line(child)
                yield inside, f"def {child.name}", child.lineno
                if carried_state.keeps(child):
                    yield inside, KEEPS, child.lineno
            elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Call):
                if called := syntax.called(child.value):
                    yield function, DROPS + called, child.value.func.end_lineno or child.lineno
            elif isinstance(child, ast.Call):
                called = syntax.called(child)
                base = getattr(getattr(child.func, "value", None), "id", "")
                if called == "compile" and base in ("re", "regex"):
                    called = "re.compile"  # is not torch's
                if called:  # of a call that goes over several lines, that of the name
                    yield function, called, child.func.end_lineno or child.lineno
                if called.endswith("DataLoader"):
                    given = [one.value.lineno for one in child.keywords if one.arg == "num_workers"]
                    yield function, WORKERS, given[0] if given else child.func.end_lineno or child.lineno
                if called == "backward" and any(one.arg == "retain_graph" for one in child.keywords):
                    yield function, RETAINS, child.func.end_lineno or child.lineno
            elif isinstance(child, (ast.For, ast.AsyncFor)):
                yield function, "__next__", child.iter.lineno  # each turn asks for the next item there
                yield function, f"{TURNS} {child.end_lineno}", child.iter.lineno
                for called, line in _called_on_each(child):
                    yield function, EACH + called, line
                if carried_state.carries(child):
                    yield function, f"{CARRIES} {child.end_lineno}", child.iter.lineno
            yield from walk(child, inside)

    yield from walk(tree, 1)
