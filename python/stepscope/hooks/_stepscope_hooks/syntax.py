"""What the readers of the program's source share."""

from __future__ import annotations

import ast


def first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """As code objects have it: with its decorators."""
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def called(call: ast.Call) -> str:
    """The last name of what is called; empty: it has none."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


SYMBOLS = {
    "Add": "+",
    "Sub": "-",
    "USub": "-",
    "Mult": "*",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "Pow": "**",
    "MatMult": "@",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "Invert": "~",
    "Eq": "==",
    "NotEq": "!=",
    "Lt": "<",
    "LtE": "<=",
    "Gt": ">",
    "GtE": ">=",
}


def symbol(node: ast.AST) -> tuple[str, int] | None:
    """Of an expression such as `a @ b` the symbol of its operator and the line that is on; None: it is none, or surely
    one of numbers and texts alone."""
    if isinstance(node, ast.Subscript):
        return "[]", node.slice.lineno if hasattr(node.slice, "lineno") else node.lineno
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        operator: ast.AST = node.op
    elif isinstance(node, ast.UnaryOp):
        left = right = node.operand
        operator = node.op
    elif isinstance(node, ast.Compare):
        left, right, operator = node.left, node.comparators[0], node.ops[0]
    else:
        return None
    name = SYMBOLS.get(type(operator).__name__)
    constants = [isinstance(one, (ast.Constant, ast.JoinedStr)) for one in (left, right)]
    if name is None or all(constants) or any(isinstance(getattr(one, "value", None), str) for one in (left, right)):
        return None
    # What is on the right in brackets has its first line behind them.
    at = left.end_lineno or left.lineno
    return name, at if isinstance(right, (ast.BinOp, ast.Compare)) else right.lineno
