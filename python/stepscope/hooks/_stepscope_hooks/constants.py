"""Functions that give the same whenever they are called, as the source has it: positions, masks, filters, distances.

They make it of numbers and of what their object has had since it was made, never of chance or of the weights, and all
who call them give them the same. What they give could be made once and kept. Where the source leaves a doubt, a
function is none of these.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_BUILT_IN = frozenset(("range", "len", "int", "float", "bool", "max", "min", "abs", "sum", "round", "enumerate", "zip"))
# What is another thing each time: also all that begins with "rand".
_CHANCE = frozenset(
    ("normal", "multinomial", "bernoulli", "dropout", "poisson", "choice", "choices", "shuffle", "sample")
)
# What does more than to be looked at.
_READS = frozenset(
    ("read", "readline", "recv", "next", "get", "pop", "popleft", "load", "open", "input", "save", "print")
)
_PUTS = frozenset(("append", "extend", "update", "clear", "insert", "remove", "backward", "step"))
# What learning changes.
_WEIGHTS = frozenset(("weight", "bias", "grad", "data", "running_mean", "running_var", "state_dict"))
_MODULES = frozenset(("parameters", "named_parameters", "buffers", "named_buffers", "children", "modules"))
_CHANGES = _CHANCE | _READS | _PUTS | _WEIGHTS | _MODULES
_PURE = frozenset(("torch", "math", "numpy", "einops"))  # packages whose functions, beside those, only compute
_NO_DATA = ("Module", "Optimizer", "Iterator", "Iterable", "Generator", "Callable", "Any", "Loader")


def _changes(name: str) -> bool:
    return name in _CHANGES or name.startswith("rand")


class _Class:
    def __init__(self, node: ast.ClassDef) -> None:
        self.methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
        self.set_at_first: dict[str, list[tuple[ast.expr, ast.FunctionDef]]] = {}
        self.changed: set[str] = set()
        for name, method in self.methods.items():
            for inner in ast.walk(method):
                self._look(inner, method, name == "__init__")

    def _look(self, node: ast.AST, method: ast.FunctionDef, at_first: bool) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.For)):
            targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else [node.target]
            for target in (inner for one in targets for inner in ast.walk(one)):
                name = _own_attribute(target)
                if name is None:
                    continue
                value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) and at_first else None
                if value is not None and target in targets:
                    self.set_at_first.setdefault(name, []).append((value, method))
                else:
                    self.changed.add(name)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = _own_attribute(node.func.value)
            if name is not None and (node.func.attr.endswith("_") or _changes(node.func.attr)):
                self.changed.add(name)
            is_own = isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
            is_buffer = at_first and is_own and node.func.attr == "register_buffer" and len(node.args) >= 2
            if is_buffer and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                self.set_at_first.setdefault(node.args[0].value, []).append((node.args[1], method))

    def stays(self, name: str) -> bool:
        """Is that attribute what it was when the object was made, and no model or weight?"""
        values = self.set_at_first.get(name)
        return name not in self.changed and bool(values) and all(_is_data(*one) for one in values or ())


class _Source:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.calls: dict[str, list[tuple[ast.FunctionDef, ast.Call]]] | None = None  # by the name, with who calls
        self.sets: dict[int, dict[str, ast.expr]] = {}  # of a function: names and what they are set to
        self.known: dict[int, bool] = {}  # functions that give the same, or do not
        self.functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        self.names: set[str] = set()
        self.imported: dict[str, str] = {}  # package by the name that it, or a part of it, has here
        for one in tree.body:
            if isinstance(one, (ast.Import, ast.ImportFrom)):
                for alias in one.names:
                    package = alias.name if isinstance(one, ast.Import) else one.module or ""
                    name = (alias.asname or alias.name).partition(".")[0]
                    self.imported[name] = package.partition(".")[0] if getattr(one, "level", 0) == 0 else ""
        for name, value in _set_once(_outside_functions(tree)).items():
            if _is_data(value, None):
                self.names.add(name)
        self.changed: set[str] = set()  # attributes of objects, by others than themselves
        for inner in ast.walk(tree):
            changed: ast.expr | None = None
            if isinstance(inner, ast.Global):
                self.names -= set(inner.names)
            elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                if inner.func.attr.endswith("_") or _changes(inner.func.attr):
                    changed = inner.func.value
            elif isinstance(inner, ast.Subscript) and not isinstance(inner.ctx, ast.Load):
                changed = inner.value
            elif isinstance(inner, ast.Attribute) and not isinstance(inner.ctx, ast.Load):
                changed = inner
                self.names.discard(getattr(inner.value, "id", ""))
            if isinstance(changed, ast.Name):
                self.names.discard(changed.id)
            elif isinstance(changed, ast.Attribute) and _own_attribute(changed) is None:
                self.changed.add(changed.attr)

    def is_given_the_same(self, called: str) -> bool:
        """By every call of that name, of which there is one at least: numbers, sizes, where a tensor is."""
        if self.calls is None:
            self.calls = {}
            for caller in (one for one in ast.walk(self.tree) if isinstance(one, ast.FunctionDef)):
                for node in ast.walk(caller):
                    if isinstance(node, ast.Call):
                        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                        self.calls.setdefault(name, []).append((caller, node))
        calls = self.calls.get(called, [])
        given = [
            (caller, one) for caller, call in calls for one in (*call.args, *(pair.value for pair in call.keywords))
        ]
        return bool(calls) and all(self._stays(one, self._set_in(caller), set()) for caller, one in given)

    def _set_in(self, function: ast.FunctionDef) -> dict[str, ast.expr]:
        if id(function) not in self.sets:
            self.sets[id(function)] = _set_once(ast.walk(function))
        return self.sets[id(function)]

    def _stays(self, value: ast.expr, sets: dict[str, ast.expr], seen: set[str]) -> bool:
        """`seen`: names that have been looked at, or are being so."""
        if isinstance(value, ast.Name) and value.id in sets:
            if value.id in seen:
                return True
            seen.add(value.id)
            return self._stays(sets[value.id], sets, seen)
        if isinstance(value, ast.Name):
            return value.id in self.names or value.id in self.imported
        if isinstance(value, ast.Call):
            return getattr(value.func, "attr", getattr(value.func, "id", "")) in ("size", "len")
        if isinstance(value, ast.Attribute):
            return value.attr in ("shape", "device", "dtype") or (
                isinstance(value.value, ast.Name) and self.imported.get(value.value.id) in _PURE
            )
        if isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Tuple)):
            inner = [one for one in ast.iter_child_nodes(value) if isinstance(one, ast.expr)]
            return all(self._stays(one, sets, seen) for one in inner)
        return isinstance(value, ast.Constant)

    def gives_the_same(self, function: ast.FunctionDef, of: _Class | None) -> bool:
        """Of the same arguments, whenever it is called."""
        if id(function) not in self.known:
            self.known[id(function)] = False  # those that call each other
            self.known[id(function)] = self._gives_the_same(function, of)
        return self.known[id(function)]

    def _gives_the_same(self, function: ast.FunctionDef, of: _Class | None) -> bool:
        if function.args.vararg or function.args.kwarg:
            return False
        local = {one.arg for one in _parameters(function)}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                local.add(node.id)
        called = {id(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
        asked = {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Attribute)}
        gives = False
        for node in (inner for statement in function.body for inner in ast.walk(statement)):
            if isinstance(node, ast.Return) and node.value is not None:
                gives = True
            if isinstance(node, ast.Name) and node.id == "self" and id(node) not in asked:
                return False  # whoever is given the object may ask it for anything
            if not self._is_fine(node, of, local, called):
                return False
        return gives

    def _is_fine(self, node: ast.AST, of: _Class | None, local: set[str], called: set[int]) -> bool:
        if isinstance(node, _MORE_THAN_LOOKED_AT):
            return False
        if isinstance(node, ast.Call):
            return self._may_call(node.func, of)
        if isinstance(node, ast.Attribute):
            name = _own_attribute(node)
            stays = name is None or id(node) in called or (of is not None and self._keeps(of, name))
            return isinstance(node.ctx, ast.Load) and not _changes(node.attr) and stays
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return isinstance(node.value, ast.Name) and node.value.id in local and node.value.id != "self"
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            known = node.id in local or node.id in self.names or node.id in self.functions
            return known or node.id in self.imported or node.id in _BUILT_IN
        return True

    def _keeps(self, of: _Class, name: str) -> bool:
        return name not in self.changed and of.stays(name)

    def _may_call(self, function: ast.expr, of: _Class | None) -> bool:
        if isinstance(function, ast.Name):
            if function.id in self.functions:
                return self.gives_the_same(self.functions[function.id], None)
            return function.id in _BUILT_IN or self.imported.get(function.id) in _PURE
        if not isinstance(function, ast.Attribute):
            return False
        if _own_attribute(function) is not None:
            method = of.methods.get(function.attr) if of is not None else None
            return method is not None and self.gives_the_same(method, of)
        root: ast.expr = function
        while isinstance(root, ast.Attribute):
            root = root.value
        is_pure = not isinstance(root, ast.Name) or self.imported.get(root.id, "torch") in _PURE
        return is_pure and not function.attr[:1].isupper()  # else an object, that may do anything


_MORE_THAN_LOOKED_AT = (
    ast.Global,
    ast.Nonlocal,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Delete,
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
)


def constants(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Those that call something, and are given the same by all who call them. What only reads is none to be kept."""
    source = _Source(tree)
    for node in tree.body:
        of = _Class(node) if isinstance(node, ast.ClassDef) else None
        for function in of.methods.values() if of is not None else [node]:
            if not isinstance(function, ast.FunctionDef) or function.name.startswith("__"):
                continue
            calls = any(isinstance(inner, ast.Call) for inner in ast.walk(function))
            given = _parameters(function)[1 if of is not None else 0 :]
            if calls and (not given or source.is_given_the_same(function.name)) and source.gives_the_same(function, of):
                yield function


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _own_attribute(node: ast.AST) -> str | None:
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else None


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield node
            yield from _outside_functions(node)


def _set_once(nodes: Iterator[ast.AST]) -> dict[str, ast.expr]:
    """Names that are set at one place, which is no loop's, with what they are set to."""
    sets: dict[str, ast.expr] = {}
    places: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            places[node.id] = places.get(node.id, 0) + 1
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                sets.update({inner.id: node.value for inner in ast.walk(target) if isinstance(inner, ast.Name)})
    return {name: value for name, value in sets.items() if places.get(name) == 1}


def _is_data(value: ast.expr, method: ast.FunctionDef | None) -> bool:
    """Is what a name, or in `method` an attribute, is set to made of numbers and tensors, as far as names tell?"""
    given = {one.arg: one for one in _parameters(method)} if method is not None else {}
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if not name[:1].islower() or name in _MODULES or name == "load":
                return False  # an object, or weights
        if isinstance(node, ast.Name) and node.id in given and node.id != "self":
            annotation = given[node.id].annotation
            if annotation is None or any(word in ast.dump(annotation) for word in _NO_DATA):
                return False
    return True
