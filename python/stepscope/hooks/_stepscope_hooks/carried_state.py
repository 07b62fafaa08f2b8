"""Loops whose turns need what the turn before them made, as the source has it: `state = cell(x, state)`.

Such a loop cannot be one call over all of its turns, however small its operators are. A name is carried when the body
reads it before it sets it, and what it is set to is computed from it: by a call, a product, a quotient or a difference.
Sums (`total += loss`), lists that grow and positions (`start = end`) are none: a batch has them as well.

The same of functions: which of them set what is there when they are done, and so do more than to be looked at.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Calls that only put together, compare or count what they are given.
_PUT_TOGETHER = frozenset(
    (
        "cat",
        "concat",
        "concatenate",
        "stack",
        "hstack",
        "vstack",
        "append",
        "add",
        "maximum",
        "minimum",
        "max",
        "min",
        "sum",
        "len",
        "int",
        "float",
        "bool",
        "str",
        "range",
        "list",
        "tuple",
        "dict",
        "set",
        "enumerate",
        "zip",
        "item",
        "tolist",
        "size",
        "numel",
        "dim",
        "detach",
        "clone",
        "to",
        "cpu",
        "cuda",
        "isinstance",
        "print",
    )
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_MOST_NAMES = 200  # in one body; each is looked at on its own


def carries(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    sets: list[tuple[str, ast.expr]] = []
    early: set[str] = set()  # read before they are set
    given = set() if isinstance(loop, ast.While) else set(_targets([loop.target]))  # anew to each turn
    _go_through(loop.body, set(given), early, sets)
    if isinstance(loop, ast.While):
        early |= set(_names(loop.test))
    fresh = {name for name, _ in sets if name.partition(".")[0] not in given} & early
    if not fresh or len(sets) > _MOST_NAMES:
        return False
    needs: dict[str, dict[str, bool]] = {}  # per name that is set: what it is made of; True: computed
    for name, value in sets:
        for needed, computed in _made_of(value, False):
            known = needs.setdefault(name, {})
            known[needed] = known.get(needed, False) or computed
    return any(_reaches_itself(name, needs) for name in fresh)


def keeps(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it sets what is there when it is done; counting (`self.calls += 1`) is none of it."""
    own: set[str] = set()  # names that are set in it, and are nobody else's
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return True
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            own |= {name for name in _targets(targets) if "." not in name}
    for node in ast.walk(function):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        for target in _flat(node.targets if isinstance(node, ast.Assign) else [node.target]):
            if isinstance(target, ast.Attribute):
                return True
            if isinstance(target, ast.Subscript):
                base = target.value
                if not (isinstance(base, ast.Name) and base.id in own):
                    return True
    return False


def _flat(targets: Iterable[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            yield from _flat(target.elts)
        else:
            yield target.value if isinstance(target, ast.Starred) else target


def _reaches_itself(name: str, needs: dict[str, dict[str, bool]]) -> bool:
    """By a way on which something is computed."""
    seen: set[tuple[str, bool]] = set()
    todo = [(name, False)]
    while todo:
        at, computed = todo.pop()
        for needed, here in needs.get(at, {}).items():
            on_the_way = computed or here
            if needed == name and on_the_way:
                return True
            if (needed, on_the_way) not in seen:
                seen.add((needed, on_the_way))
                todo.append((needed, on_the_way))
    return False


def _go_through(body: Iterable[ast.stmt], known: set[str], early: set[str], sets: list[tuple[str, ast.expr]]) -> None:
    """`known`: names that are set for sure when a statement begins."""
    for statement in body:
        if isinstance(statement, _FUNCTIONS):
            continue
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            value = statement.value
            if value is None:
                continue
            early |= set(_names(value)) - known
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if isinstance(statement, ast.AugAssign):
                early |= set(_targets(targets)) - known
                if not isinstance(statement.op, (ast.Add, ast.Sub, ast.BitOr, ast.BitAnd)):
                    value = ast.BinOp(left=_as_read(statement.target), op=statement.op, right=value)
            for target in targets:
                for name in _targets([target]):
                    sets.append((name, value))
                    if not isinstance(target, ast.Subscript):
                        known.add(name)
            continue
        for field in ast.iter_child_nodes(statement):
            if field is getattr(statement, "target", None):
                continue
            if isinstance(field, ast.expr):
                early |= set(_names(field)) - known
            elif isinstance(field, ast.withitem):
                early |= set(_names(field.context_expr)) - known
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            _go_through(statement.body, known, early, sets)
            continue
        given = set(_targets([statement.target])) if isinstance(statement, (ast.For, ast.AsyncFor)) else set()
        # What is set on one way only is not set for sure.
        for part in ("body", "orelse", "finalbody"):
            _go_through(getattr(statement, part, []), known | given, early, sets)
        for handler in getattr(statement, "handlers", []):
            _go_through(handler.body, set(known), early, sets)


def _as_read(target: ast.expr) -> ast.expr:
    return target if not isinstance(target, ast.Name) else ast.Name(id=target.id, ctx=ast.Load())


def _targets(targets: Iterable[ast.expr]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            yield from _targets(target.elts)
        elif isinstance(target, ast.Starred):
            yield from _targets([target.value])
        elif isinstance(target, (ast.Name, ast.Attribute)) and (name := _dotted(target)):
            yield name


def _dotted(node: ast.expr) -> str:
    """ "self.state"; nothing of what is no name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _names(node: ast.AST) -> Iterator[str]:
    """All that are read; of "self.cell.state" also "self" and "self.cell"."""
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Lambda):
            continue
        if isinstance(one, (ast.Name, ast.Attribute)) and (name := _dotted(one)):
            yield name
        todo.extend(ast.iter_child_nodes(one))


def _made_of(value: ast.AST, computed: bool) -> Iterator[tuple[str, bool]]:
    todo = [(value, computed)]
    while todo:
        node, by = todo.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, (ast.Name, ast.Attribute)) and (name := _dotted(node)):
            yield name, by
            continue
        if isinstance(node, ast.Call):
            # A method computes with what it is called on; a function or a module is no data.
            if isinstance(node.func, ast.Attribute):
                called = node.func.attr
                todo.append((node.func.value, by or called not in _PUT_TOGETHER))
            else:
                called = getattr(node.func, "id", "")
            inside = by or called not in _PUT_TOGETHER
            todo.extend((child, inside) for child in [*node.args, *(keyword.value for keyword in node.keywords)])
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.MatMult, ast.Div, ast.Pow)):
            by = True
        if isinstance(node, ast.Subscript):
            # Of what is taken from a list the place is no part.
            todo.append((node.value, by))
            continue
        todo.extend((child, by) for child in ast.iter_child_nodes(node))
