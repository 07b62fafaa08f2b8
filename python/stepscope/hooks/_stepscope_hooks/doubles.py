"""Where a source asks for float64: that is where it is mended, and not where the operators are called."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = ("float64", "double")  # torch.float64, np.float64, x.double(), np.double


def asked_for(tree: ast.AST, function: int = 1) -> Iterator[tuple[int, int]]:
    """First line of the function around it, and its own. What only compares types asks for none."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Compare, ast.Assert)):
            continue
        inside = function
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
            yield function, node.end_lineno or node.lineno
        elif isinstance(node, ast.Call):
            named = [*node.args, *(one.value for one in node.keywords if one.arg == "dtype")]
            if any(isinstance(one, ast.Constant) and one.value in _NAMES for one in named):
                yield function, node.func.end_lineno or node.lineno
        yield from asked_for(node, inside)
