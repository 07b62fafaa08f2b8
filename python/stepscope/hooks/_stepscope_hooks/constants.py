"""Functions that give the same whenever they are called, as the source has it: positions, masks, filters, distances.

They make it of numbers and of what their object has had since it was made, never of chance or of the weights. What they
give could be made once and kept; where they are given something, if that is the same (same_arguments.py looks). Where
the source leaves a doubt, a function is none of these; but where only certain other methods change what it is made of,
as those that fill an index, it is one unless they run.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BUILT_IN = frozenset(("range", "len", "int", "float", "bool", "max", "min", "abs", "sum", "round", "enumerate", "zip"))
# Parts of names: what is another thing each time.
_CHANCE = ("rand", "normal", "uniform", "bernoulli", "exponential", "geometric", "cauchy", "poisson", "dropout")
_DRAWS = ("multinomial", "gumbel", "choice", "shuffle", "sample", "gauss", "permutation", "rng", "seed", "integers")
# What does more than to be looked at.
_FILES = (
    "open",
    "load",
    "save",
    "memmap",
    "fromfile",
    "from_file",
    "loadtxt",
    "genfromtxt",
    "imread",
    "listdir",
    "glob",
)
_READS = frozenset(("read", "readline", "recv", "next", "get", "pop", "popleft", "input", "print", *_FILES))
# Options that make a function of torch's draw.
_DRAWING = frozenset(("dropout_p", "training", "generator"))
_PUTS = frozenset(("append", "extend", "update", "clear", "insert", "remove", "backward", "step"))
_SORTS = frozenset(("sort", "reverse"))  # lists
_FILLS = frozenset(("fill", "put", "copyto", "shuffle"))  # arrays
# What learning changes.
_WEIGHTS = frozenset(("weight", "bias", "grad", "data", "running_mean", "running_var", "state_dict"))
_MODULES = frozenset(("parameters", "named_parameters", "buffers", "named_buffers", "children", "modules"))
_CHANGES = _READS | _PUTS | _WEIGHTS | _MODULES
_PURE = frozenset(("torch", "math", "numpy", "einops"))  # packages whose functions, beside those, only compute
_NO_DATA = ("Module", "Optimizer", "Iterator", "Iterable", "Generator", "Callable", "Any", "Loader")
# What asks a tensor for its shape and kind, and not for its numbers.
_OF_SHAPE = frozenset(("shape", "device", "dtype", "ndim", "layout", "is_cuda", "size", "dim", "numel", "nelement"))
_LIKE = frozenset(("len", "zeros_like", "ones_like", "full_like", "empty_like"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MORE_THAN_LOOKED_AT = (
    ast.Global,
    ast.Nonlocal,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Delete,
    ast.Import,
    ast.ImportFrom,
    *_FUNCTIONS,
    ast.ClassDef,
    ast.Lambda,
)


def constants(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, list[str], dict[str, bool]]]:
    """Those that call something: what only reads is none to be kept. With each the methods that must not have run, and
    what it is given beside its object: of each whether its shape and kind alone count."""
    source = _Source(tree)
    for node in tree.body:
        of = _Class(node) if isinstance(node, ast.ClassDef) else None
        for function in of.methods.values() if of is not None else [node]:
            if not isinstance(function, ast.FunctionDef) or function.name.startswith("__"):
                continue
            calls = any(isinstance(inner, ast.Call) for inner in ast.walk(function))
            given = [one.arg for one in _parameters(function)]
            if not calls or (of is not None and given[:1] != ["self"]):
                continue
            unless = source.unless(function, of)
            if unless is not None:
                yield function, sorted(unless), _given(function, given if of is None else given[1:])


def _given(function: ast.FunctionDef, names: list[str]) -> dict[str, bool]:
    nodes = [inner for statement in function.body for inner in ast.walk(statement)]
    of_shape: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and (node.attr in _OF_SHAPE or node.attr.startswith("new_")):
            of_shape.add(id(node.value))
        elif isinstance(node, ast.Call) and _called(node) in _LIKE and node.args:
            of_shape.add(id(node.args[0]))
    used = [one for one in nodes if isinstance(one, ast.Name)]
    return {name: all(id(one) in of_shape for one in used if one.id == name) for name in names}


def _changes(name: str) -> bool:
    name = name.replace("normalize", "")
    return name in _CHANGES or any(part in name for part in (*_CHANCE, *_DRAWS))


class _Class:
    def __init__(self, node: ast.ClassDef) -> None:
        self.methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
        self.set_at_first: dict[str, list[tuple[ast.expr, ast.FunctionDef]]] = {}
        # Methods by what they change of the object, and by what they set anew; but for the first one.
        self.changed_by: dict[str, set[str]] = {}
        self.set_by: dict[str, set[str]] = {}
        self.named_elsewhere: set[str] = set()  # what has another name as well
        self.sliced: set[str] = set()  # x[:, a:b], as arrays and tensors are, of what is no model with weights
        self.name = node.name
        self.is_model = any("Module" in ast.dump(base) for base in node.bases)
        for method in node.body:
            if isinstance(method, _FUNCTIONS):
                self._look_at_views(method)
                for inner in ast.walk(method):
                    self._look(inner, method)
                    if isinstance(inner, (*_FUNCTIONS, ast.Lambda)) and inner is not method:
                        # It runs when nobody sees the method that made it, as a hook does.
                        self.named_elsewhere |= {one for name in ast.walk(inner) if (one := _own_attribute(name))}

    def _look_at_views(self, method: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """What is changed in place under a name that a slice of an attribute has is the attribute."""
        views: dict[str, ast.expr] = {}
        nodes = list(ast.walk(method))
        for node in nodes:
            for target, value in _assigned(node):
                if isinstance(target, ast.Name) and isinstance(value, ast.Subscript) and _own_attribute(_base(value)):
                    views[target.id] = _base(value)
        for node in nodes if views else []:
            names = (one.id for one in _changed_in_place(node) if isinstance(one, ast.Name))
            self._change((views[name] for name in names if name in views), method)

    def _look(self, node: ast.AST, method: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        first = method if isinstance(method, ast.FunctionDef) and method.name == "__init__" else None
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target, value in _assigned(node):
                name = _own_attribute(target)
                if name is not None and first is not None:
                    self.set_at_first.setdefault(name, []).append((value, first))
                elif name is not None:
                    self.set_by.setdefault(name, set()).add(method.name)
                else:
                    self._change(ast.walk(target), method)
                if first is None and (named := _own_attribute(value)):
                    self.named_elsewhere.add(named)
        elif isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor)):
            self._change(ast.walk(node.target), method)
        elif isinstance(node, ast.Delete):
            self._change((inner for target in node.targets for inner in ast.walk(target)), method)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            places = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            name = None if self.is_model else _own_attribute(node.value)
            if name is not None and any(isinstance(place, ast.Slice) for place in places):
                self.sliced.add(name)
        elif isinstance(node, ast.Call):
            self._change(_changed_by(node), method)
            is_buffer = first is not None and _own_attribute(node.func) == "register_buffer" and len(node.args) >= 2
            if first is not None and is_buffer and isinstance(node.args[0], ast.Constant):
                self.set_at_first.setdefault(str(node.args[0].value), []).append((node.args[1], first))

    def _change(self, what: Iterable[ast.AST], method: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for one in what:
            name = _own_attribute(one)
            if name is not None:
                self.changed_by.setdefault(name, set()).add(method.name)


class _Source:
    def __init__(self, tree: ast.Module) -> None:
        self.known: dict[int, frozenset[str] | None] = {}  # functions that give the same unless these run, or do not
        self.functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        self.imported: dict[str, str] = {}  # package by the name that it, or a part of it, has here
        for one in tree.body:
            if isinstance(one, (ast.Import, ast.ImportFrom)):
                for alias in one.names:
                    package = alias.name if isinstance(one, ast.Import) else one.module or ""
                    name = (alias.asname or alias.name).partition(".")[0]
                    whole = f"{package}.{alias.name}" if isinstance(one, ast.ImportFrom) else package
                    is_known = getattr(one, "level", 0) == 0 and ".distributed" not in whole
                    plain = isinstance(one, ast.Import) and alias.asname is None  # `import torch.distributed`: torch
                    self.imported[name] = package.partition(".")[0] if is_known or plain else ""
        self.changed_names: set[str] = set()  # in place, wherever something has that name
        self.given_names: dict[str, set[str]] = {}  # to what makes an object, by its class
        once = _set_once(_outside_functions(tree))
        self.names = {name for name, value in once.items() if self.is_data(value, None)}
        self.changed: set[str] = set()  # attributes of objects, by others than themselves
        for inner in ast.walk(tree):
            if isinstance(inner, ast.Global):
                self.names -= set(inner.names)
            elif isinstance(inner, ast.Call):
                given = [*inner.args, *(pair.value for pair in inner.keywords)]
                names = {one.id for one in given if isinstance(one, ast.Name)}
                self.given_names.setdefault(_called(inner), set()).update(names)
            self._changed(_changed_in_place(inner))

    def _changed(self, what: Iterable[ast.expr]) -> None:
        for one in what:
            if isinstance(one, ast.Name):
                self.names.discard(one.id)
                self.changed_names.add(one.id)
            elif isinstance(one, ast.Attribute) and _own_attribute(one) is None:
                self.changed.add(one.attr)
                self.names.discard(getattr(one.value, "id", ""))

    def is_data(
        self, value: ast.expr, method: ast.FunctionDef | None, of: _Class | None = None, is_sliced: bool = False
    ) -> bool:
        """Is what a name, or in `method` an attribute, is set to made of numbers and tensors, as far as names tell?

        `is_sliced`: it is used as arrays are. What is subtracted is no list and no path, but a number or an array."""
        untold = {id(value)} if is_sliced else set[int]()
        for node in ast.walk(value):
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.FloorDiv, ast.Pow)):
                untold |= {id(inner) for one in (node.left, node.right) for inner in _base_names(one)}
        given = {one.arg: one.annotation for one in _parameters(method)} if method is not None else {}
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and not self._makes_data(node.func):
                return False
            if isinstance(node, ast.Name) and node.id in given and node.id != "self":
                annotation = given[node.id]
                if annotation is None and (id(node) not in untold or self.may_change(node.id, of)):
                    return False
                if annotation is not None and any(word in ast.dump(annotation) for word in _NO_DATA):
                    return False
            elif isinstance(node, _MORE_THAN_LOOKED_AT):
                return False
        return True

    def may_change(self, argument: str, of: _Class | None) -> bool:
        """Is what an object is given perhaps changed in place elsewhere, under this name or one that its maker has?"""
        given = self.given_names.get(of.name, set()) if of is not None else set[str]()
        return argument in self.changed_names or not self.changed_names.isdisjoint(given)

    def _makes_data(self, function: ast.expr) -> bool:
        """Random numbers that are drawn once stay; what draws them (`default_rng`) does not."""
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name[:1].isupper() or name in _MODULES or name in _READS or "rng" in name or "nerator" in name:
            return False
        if isinstance(function, ast.Name):
            return function.id in _BUILT_IN or self.imported.get(function.id) in _PURE
        root = _root(function)
        return not isinstance(root, ast.Name) or self.imported.get(root.id, "torch") in _PURE

    def unless(self, function: ast.FunctionDef, of: _Class | None) -> frozenset[str] | None:
        """It gives the same of the same arguments whenever it is called, unless one of these ran; None: it does not."""
        if id(function) not in self.known:
            self.known[id(function)] = None  # those that call each other
            self.known[id(function)] = _Function(self, function, of).unless()
        return self.known[id(function)]


class _Function:
    def __init__(self, source: _Source, function: ast.FunctionDef, of: _Class | None) -> None:
        self.source, self.function, self.of = source, function, of
        self.local = {one.arg for one in _parameters(function)}
        self.excused: set[str] = set()
        nodes = [inner for statement in function.body for inner in ast.walk(statement)]
        self.nodes = nodes
        self.local |= {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        self.called = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
        self.asked = {id(one.value) for one in nodes if isinstance(one, ast.Attribute)}
        self.tests = {id(one.test) for one in nodes if isinstance(one, (ast.If, ast.IfExp))}
        self.kept = self._kept()

    def unless(self) -> frozenset[str] | None:
        if self.function.args.vararg or self.function.args.kwarg or self._changes_what_it_is_given():
            return None
        gives = (
            any(self._makes(node.value) for node in self.nodes if isinstance(node, ast.Return)) and self._kept_alone()
        )
        return frozenset(self.excused) if gives and all(self._is_fine(node) for node in self.nodes) else None

    def _changes_what_it_is_given(self) -> bool:
        given = {one.arg for one in _parameters(self.function)} - {"self"}
        changed = [one for node in self.nodes for one in _changed_in_place(node)]
        for node in self.nodes:  # a list, where nobody uses what it gives back
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _called(node.value) in _SORTS:
                changed += [node.value.func.value] if isinstance(node.value.func, ast.Attribute) else []
        return any(isinstance(one, ast.Name) and one.id in given for one in changed)

    def _kept(self) -> set[str]:
        """What it sets of its object, for its next call."""
        stored = (_own_attribute(one) for one in self.nodes if isinstance(getattr(one, "ctx", None), ast.Store))
        return {name for name in stored if name is not None}

    def _kept_alone(self) -> bool:
        """It only gives that back, or asks whether it is there: what is made of it differs from call to call."""
        free: set[int] = set()
        for node in self.nodes:
            if isinstance(node, ast.Return) and node.value is not None:
                free.add(id(node.value))
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                free.add(id(node.left))
        return all(
            id(node) in free
            for node in self.nodes
            if isinstance(getattr(node, "ctx", None), ast.Load) and _own_attribute(node) in self.kept
        )

    def _makes(self, returned: ast.expr | None) -> bool:
        """Not what it has kept itself since an earlier call."""
        return returned is not None and not any(_own_attribute(one) in self.kept for one in ast.walk(returned))

    def _is_fine(self, node: ast.AST) -> bool:
        if isinstance(node, _MORE_THAN_LOOKED_AT):
            return False
        if isinstance(node, ast.Call):
            draws = (one for one in node.keywords if one.arg in _DRAWING)
            return self._may_call(node.func) and not any(getattr(one.value, "value", True) for one in draws)
        if isinstance(node, ast.Attribute):
            name = _own_attribute(node)
            if name is not None and isinstance(node.ctx, ast.Store):
                return self._keeps(name, is_test=False)  # what it made once, for the next call
            stays = name is None or id(node) in self.called or self._keeps(name, id(node) in self.tests)
            return isinstance(node.ctx, ast.Load) and not _changes(node.attr) and stays
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return isinstance(node.value, ast.Name) and node.value.id in self.local and node.value.id != "self"
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id == "self" and id(node) not in self.asked:
                return False  # whoever is given the object may ask it for anything
            known = node.id in self.local or node.id in self.source.names or node.id in self.source.functions
            return known or node.id in self.source.imported or node.id in _BUILT_IN
        return True

    def _keeps(self, name: str, is_test: bool) -> bool:
        """Is that attribute what it was when the object was made, or what this function set it to, and no model or
        weight? `is_test`: it only decides which way to go."""
        of = self.of
        if of is None or name in self.source.changed or name in of.named_elsewhere:
            return False
        values = of.set_at_first.get(name, [])
        by, set_by = of.changed_by.get(name, set()), of.set_by.get(name, set())
        if is_test and not by and not set_by and values and all(isinstance(value, ast.Name) for value, _ in values):
            return True
        if not values or not all(self.source.is_data(*one, of, name in of.sliced) for one in values):
            return False
        if self.function.name in by:
            return False
        self.excused |= (by | set_by) - {"__init__", self.function.name}
        return True

    def _may_call(self, function: ast.expr) -> bool:
        source, of = self.source, self.of
        if isinstance(function, ast.Name):
            if function.id in source.functions:
                return self._gives_the_same(source.functions[function.id], None)
            is_pure = source.imported.get(function.id) in _PURE and not _changes(function.id)
            return is_pure or function.id in _BUILT_IN
        if not isinstance(function, ast.Attribute):
            return False
        if _own_attribute(function) is not None:
            method = of.methods.get(function.attr) if of is not None else None
            return method is not None and self._gives_the_same(method, of)
        root = _root(function)
        is_pure = not isinstance(root, ast.Name) or source.imported.get(root.id, "torch") in _PURE
        # Else an object, that may do anything; or what depends on other ranks.
        return is_pure and not function.attr[:1].isupper() and not _has_part(function, "distributed")

    def _gives_the_same(self, function: ast.FunctionDef, of: _Class | None) -> bool:
        unless = self.source.unless(function, of)
        self.excused |= unless or set()
        return unless is not None


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is set, each with what it is set to: of `a, b = 1, 2` both."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(target.elts) == len(node.value.elts)
        ):
            yield from zip(target.elts, node.value.elts)
        else:
            yield target, node.value


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _own_attribute(node: ast.AST) -> str | None:
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else None


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _has_part(node: ast.expr, name: str) -> bool:
    while isinstance(node, ast.Attribute):
        if node.attr == name:
            return True
        node = node.value
    return False


def _base(node: ast.expr) -> ast.expr:
    """Of `self.rows[0].T` the attribute `self.rows`; of `rows[0]` the name."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and _own_attribute(node) is None):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            break
        node = node.value
    return node


def _base_names(node: ast.expr) -> Iterator[ast.Name]:
    """Of `panel.shape[1]` the name `panel`; what is called may give anything."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _changed_in_place(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        yield from _changed_by(node)
    elif isinstance(node, ast.AugAssign):
        yield _base(node.target)
    elif isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        yield _base(node)
        yield node


def _changed_by(call: ast.Call) -> Iterator[ast.expr]:
    """What a call changes in place, as far as its name tells."""
    name = _called(call)
    in_place = name.endswith("_") or name in _PUTS or name in _READS or name in _FILLS
    if in_place and isinstance(call.func, ast.Attribute):
        yield _base(call.func.value)
    given = [inner for one in call.args for inner in ast.walk(one)] if in_place else []
    for one in (*given, *(pair.value for pair in call.keywords if pair.arg == "out")):
        if isinstance(one, (ast.Name, ast.Attribute)):
            yield one


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            yield node
            yield from _outside_functions(node)


def _set_once(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
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
