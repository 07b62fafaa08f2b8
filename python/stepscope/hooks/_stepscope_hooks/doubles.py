"""Where a source asks for float64: that is where it is mended, and not where the operators are called."""

from __future__ import annotations

import ast

from . import syntax

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = ("float64", "double")  # torch.float64, np.float64, x.double(), np.double
_TAKE_TYPES = ("astype", "asarray", "array", "dtype", "type")  # besides dtype=, as text
_ASK_NOTHING = ("isinstance", "issubclass")


def asked_for(tree: ast.AST, function: int = 1) -> Iterator[tuple[int, int]]:
    """First line of the function around it, and its own. Comparing types, naming them in an annotation or a table asks
    for none."""
    for node in _that_run(tree):
        inside = function
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = syntax.first_line(node)
        elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
            yield function, node.end_lineno or node.lineno
        elif isinstance(node, ast.Call):
            named = [one.value for one in node.keywords if one.arg == "dtype"]
            if syntax.called(node) in _TAKE_TYPES:
                named += node.args
            texts = [one.value for one in named if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if any(text in _NAMES for text in texts):
                yield function, node.func.end_lineno or node.lineno
        yield from asked_for(node, inside)


def _that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """What stands right in it and may ask for a type."""
    annotation = getattr(tree, "annotation", None)
    table: list[ast.AST] = []
    if isinstance(tree, ast.Dict):
        keys = [getattr(key, "value", None) for key in tree.keys]
        table = [value for key, value in zip(keys, tree.values) if key != "dtype" and isinstance(value, ast.Attribute)]
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Compare, ast.Assert)) or node is annotation or node is getattr(tree, "returns", None):
            continue
        if isinstance(node, ast.Call) and syntax.called(node) in _ASK_NOTHING:
            continue
        if not any(node is one for one in table):
            yield node


def changed_to(tree: ast.AST, function: int = 1) -> Iterator[tuple[int, int]]:
    """The same for what becomes float64 as a whole: a model by its method, whose result is dropped or takes its place,
    what a class has just made, and all that is made from then on."""
    for node in ast.iter_child_nodes(tree):
        inside = function
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = syntax.first_line(node)
        elif isinstance(node, (ast.Expr, ast.Assign)) and isinstance(node.value, ast.Call):
            asks = any(True for _ in asked_for(node.value))
            if asks and _changes(node.value, getattr(node, "targets", [])):
                yield function, node.value.func.end_lineno or node.value.lineno
        yield from changed_to(node, inside)


def _changes(call: ast.Call, targets: list[ast.expr]) -> bool:
    if syntax.called(call) == "set_default_dtype":
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("double", "to"):
        return False
    of = call.func.value
    if isinstance(of, ast.Call):
        return syntax.called(of)[:1].isupper()
    return not targets or any(ast.dump(one).replace("ctx=Store()", "ctx=Load()") == ast.dump(of) for one in targets)
