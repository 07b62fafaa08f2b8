"""What the readers of the program's source share."""

from __future__ import annotations

import ast


def first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """As code objects have it: with its decorators."""
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def called(call: ast.Call) -> str:
    """The last name of what is called; empty: it has none."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
