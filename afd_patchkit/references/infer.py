"""What an expression is, as far as definitions, annotations and plain assignments tell."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from afd_patchkit.names.analysis import mangle
from afd_patchkit.references.class_body import how_decorated
from afd_patchkit.references.classes import Classes
from afd_patchkit.references.things import (
    UNKNOWN,
    Class,
    Function,
    FunctionNode,
    Instance,
    Missing,
    Module,
    Outside,
    Super,
    Thing,
    Value,
)
from afd_patchkit.runtime.loaded import CAPTURE
from afd_patchkit.source.decorators import changing
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.syntax import binding, clauses_only, own_parts

_WRAPPERS = frozenset(["Optional", "Annotated", "ClassVar", "Final", "InitVar", "Required", "NotRequired", "ReadOnly"])
_NARROWING = frozenset(["isinstance", "issubclass", "callable"])
_DEPTH = 6
"""How many values are followed to their origin."""
_NESTED = 150
"""How deep an expression may be nested; what stands deeper is unknown."""


class Env:
    """The names of one function and those around it.

    Attributes:
        module: dotted name of the module.
        owner: the class whose body the code stands in.
        names: what local names are; `UNKNOWN` for those that are bound more than once, or by something unclear.
        parent: the names around it.
    """

    def __init__(self, module: str, owner: Class | None, names: dict[str, Thing], parent: Env | None = None) -> None:
        self.module, self.owner, self.names, self.parent = module, owner, names, parent

    def find(self, name: str) -> Thing | None:
        """What a local name is; None when it is not local."""
        env: Env | None = self
        while env is not None:
            if name in env.names:
                return env.names[name]
            env = env.parent
        return None

    @property
    def private(self) -> str | None:
        """Name of the class that mangles private names here."""
        return self.owner.name if self.owner is not None else None


class Inference:
    """Says what expressions are.

    Args:
        classes: the classes of the trees.
        receivers: the class that the first parameter of a function is an instance of, by the identity of the function: for
            copies of methods that stand outside a class.
    """

    def __init__(self, classes: Classes, receivers: Mapping[int, Class] | None = None) -> None:
        self.classes, self.trees = classes, classes.trees
        self.receivers = receivers or {}
        self._envs: dict[int, Env] = {}
        self._depth = self._nested = 0

    # ---- expressions ------------------------------------------------------------------------------------------

    def of(self, node: ast.expr, env: Env) -> Thing:
        """What an expression gives."""
        if self._depth >= _DEPTH:
            return UNKNOWN
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Await, ast.NamedExpr, ast.IfExp)):
            self._nested += 1
            try:
                return self._of(node, env) if self._nested < _NESTED else UNKNOWN
            finally:
                self._nested -= 1
        return UNKNOWN

    def _of(self, node: ast.expr, env: Env) -> Thing:
        if isinstance(node, ast.Name):
            return self.name(mangle(node.id, env.private), env)
        if isinstance(node, ast.Attribute):
            return self.attribute(self.of(node.value, env), mangle(node.attr, env.private))
        if isinstance(node, ast.Call):
            return self._call(node, env)
        if isinstance(node, ast.Await):
            inner = node.value
            if isinstance(inner, ast.Call):
                called = self.of(inner.func, env)
                return self.result(called) if isinstance(called, Function) else UNKNOWN
            return UNKNOWN
        if isinstance(node, ast.NamedExpr):
            return self.of(node.value, env)
        if isinstance(node, ast.IfExp):
            one, other = self.of(node.body, env), self.of(node.orelse, env)
            return one if one == other else UNKNOWN
        return UNKNOWN

    def name(self, name: str, env: Env) -> Thing:
        """What a name means."""
        local = env.find(name)
        return local if local is not None else self.kept(self.classes.at_top(env.module, name), env)

    def kept(self, thing: Thing, env: Env) -> Thing:
        """Of a global that keeps a delegate's original, the original; all else as it is."""
        if not isinstance(thing, Value) or len(thing.values) != 1 or not self.trees.is_ours(thing.module):
            return thing
        call = thing.values[0][0]
        if not isinstance(call, ast.Call) or dotted(call.func) != CAPTURE or len(call.args) != 3:
            return thing
        name = call.args[1]
        if not isinstance(name, ast.Constant):
            return thing
        found = self.attribute(self.of(call.args[0], Env(thing.module, None, {})), str(name.value))
        return replace(found, bound=False) if isinstance(found, Function) else found

    def value(self, thing: Thing) -> Thing:
        """What an attribute holds: of a property its result, of a field what its annotation says."""
        if isinstance(thing, Function) and thing.how == "property":
            return self.result(thing)
        if not isinstance(thing, Value):
            return thing
        if thing.what == "member":
            return Instance(thing.owner) if thing.owner is not None else UNKNOWN
        if thing.annotation is not None:
            return self.annotation(thing.annotation, thing.module, thing.owner)
        return self._assigned(thing)

    def _assigned(self, thing: Value) -> Thing:
        """What all plain assignments agree on; `None` beside them does not count."""
        if self._depth >= _DEPTH:
            return UNKNOWN
        self._depth += 1
        try:
            found = set()
            for expression, method in thing.values:
                if isinstance(expression, ast.Constant) and expression.value is None:
                    continue
                env = (
                    self.env(method, Env(thing.module, thing.owner, {}))
                    if method is not None
                    else Env(thing.module, thing.owner, {})
                )
                found.add(self.value(self.of(expression, env)))
        finally:
            self._depth -= 1
        plain = len(thing.values) == len(thing.nodes)
        return found.pop() if plain and len(found) == 1 else UNKNOWN

    def attribute(self, thing: Thing, name: str) -> Thing:
        """What `thing.name` gives; `Missing` when it cannot be there."""
        thing = self.value(thing)
        if isinstance(thing, Module):
            return self.trees.name(thing.name, name)
        if isinstance(thing, Class):
            return self.classes.member(thing, name, instance=False)
        if isinstance(thing, Instance):
            member = self.classes.member(thing.of, name, instance=True)
            return UNKNOWN if thing.narrowed and isinstance(member, Missing) else member
        if isinstance(thing, Super):
            return self.classes.member(thing.of, name, instance=thing.instance, after=thing.of)
        if isinstance(thing, Outside):
            return Outside(f"{thing.name}.{name}")
        return UNKNOWN

    # ---- calls ----------------------------------------------------------------------------------------------

    def bound(self, node: ast.expr, env: Env) -> Thing:
        """What `function.__get__(...)` gives; unknown for all else."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "__get__":
            return UNKNOWN
        thing = self.of(node.func.value, env)
        if not isinstance(thing, Function) or thing.how == "property":
            return UNKNOWN
        return replace(thing, bound=thing.how != "static")

    def _call(self, node: ast.Call, env: Env) -> Thing:
        if isinstance(node.func, ast.Name) and env.find(node.func.id) is None:
            special = self._builtin_call(node, node.func.id, env)
            if special is not None:
                return special
        return self.called(self.value(self.of(node.func, env)))

    def _builtin_call(self, node: ast.Call, name: str, env: Env) -> Thing | None:
        thing = self.classes.at_top(env.module, name)
        if not isinstance(thing, Outside):
            return None
        if name == "super":
            return self._super(node, env)
        if name == "type" and len(node.args) == 1:
            inner = self.of(node.args[0], env)
            return inner.of if isinstance(inner, Instance) and not inner.narrowed else UNKNOWN
        if thing.name in {"typing.cast", "typing_extensions.cast"} and len(node.args) == 2:
            return self.annotation(node.args[0], env.module, env.owner)
        return None

    def _super(self, node: ast.Call, env: Env) -> Thing:
        if node.args:
            start = self.of(node.args[0], env)
            first = self.of(node.args[1], env) if len(node.args) > 1 else UNKNOWN
            return Super(start, isinstance(first, Instance)) if isinstance(start, Class) else UNKNOWN
        inside: Env | None = env
        while inside is not None:
            for thing in list(inside.names.values())[:1]:
                if isinstance(thing, Instance):
                    return Super(env.owner or thing.of, True)
                if isinstance(thing, Class) and env.owner is not None:
                    return Super(env.owner, False)
            inside = inside.parent
        return UNKNOWN

    def called(self, thing: Thing) -> Thing:
        """What calling something gives."""
        if isinstance(thing, Class):
            if self.classes.view(thing).metaclass or "__new__" in self.classes.facts(thing).sites:
                return UNKNOWN
            return Instance(thing)
        if isinstance(thing, Function) and not isinstance(thing.node, ast.AsyncFunctionDef):
            return self.result(thing)
        return UNKNOWN

    def result(self, function: Function) -> Thing:
        """What a function returns, by its annotation."""
        node = function.node
        if node.returns is None or is_generator(node) or changing(node, "result"):
            return UNKNOWN
        return self.annotation(node.returns, function.module, function.owner)

    # ---- annotations ----------------------------------------------------------------------------------------

    def annotation(self, node: ast.expr, module: str, owner: Class | None) -> Thing:
        """What a value annotated so is: an instance of a class, a class (`type[K]`), or unknown."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return UNKNOWN
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = [s for s in (node.left, node.right) if not (isinstance(s, ast.Constant) and s.value is None)]
            return self.annotation(sides[0], module, owner) if len(sides) == 1 else UNKNOWN
        if isinstance(node, ast.Subscript):
            name = dotted(node.value).rpartition(".")[2]
            inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            if name in _WRAPPERS:
                return self.annotation(inner, module, owner)
            if name in {"type", "Type"}:
                found = self.annotation(inner, module, owner)
                return found.of if isinstance(found, Instance) else UNKNOWN
            return self.annotation(node.value, module, owner)
        chain = dotted(node)
        if not chain:
            return UNKNOWN
        if chain.rpartition(".")[2] == "Self":
            return Instance(owner) if owner is not None else UNKNOWN
        if owner is not None and chain in self.classes.facts(owner).sites:
            return UNKNOWN  # a name of the class body
        thing = self.trees.chain(module, chain, typing=True)
        return Instance(thing) if isinstance(thing, Class) and not self._structural(thing) else UNKNOWN

    def _structural(self, cls: Class) -> bool:
        """Whether values of the type are objects of other classes (protocols, typed dictionaries)."""
        return any(
            dotted(b.value if isinstance(b, ast.Subscript) else b).rpartition(".")[2] in {"Protocol", "TypedDict"}
            for one in self.classes.view(cls).order
            for b in one.node.bases
        )

    # ---- functions ------------------------------------------------------------------------------------------

    def env(self, function: FunctionNode | ast.Lambda, around: Env) -> Env:
        """The names of a function."""
        known = self._envs.get(id(function))
        if known is not None:
            return known
        names: dict[str, Thing] = {}
        env = self._envs[id(function)] = Env(
            around.module, around.owner, names, around if around.names or around.parent else None
        )
        a = function.args
        arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs]
        first = arguments[0] if a.posonlyargs or a.args else None
        for argument in arguments:
            names[argument.arg] = UNKNOWN
            if argument.annotation is not None:
                names[argument.arg] = self.annotation(argument.annotation, env.module, env.owner)
        for extra in (a.vararg, a.kwarg):
            if extra is not None:
                names[extra.arg] = UNKNOWN
        if isinstance(function, ast.Lambda):
            return env
        receiver = self.receivers.get(id(function))
        direct = around.owner is not None and not around.names and around.parent is None
        if first is not None and (receiver is not None or direct):
            of = receiver or around.owner
            assert of is not None
            how = how_decorated(function)
            if how == "class" or function.name == "__new__":
                names[first.arg] = of
            elif how != "static":
                names[first.arg] = Instance(of)
        self._locals(function, env)
        return env

    def _locals(self, function: FunctionNode, env: Env) -> None:
        """Names that the body binds: what they are when one plain assignment, import or definition says so."""
        counted: Counter[str] = Counter(env.names.keys())
        assigned: dict[str, ast.expr | ast.AnnAssign] = {}
        imported: dict[str, Thing] = {}
        declared: set[str] = set()
        for node in own_statements(function.body):
            for name, value in _bindings(node):
                counted[name] += 1
                if isinstance(value, (ast.expr, ast.AnnAssign)):
                    assigned[name] = value
                elif isinstance(value, tuple):
                    imported[name] = self._imported(*value)
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                declared.update(node.names)
        for name, count in counted.items():
            if name not in env.names or count > 1:
                env.names[name] = imported.get(name, UNKNOWN) if count == 1 else UNKNOWN
        for name in declared:
            env.names.pop(name, None)
        narrowed = {name for node in own_statements(function.body) for name in _narrowed(node)}
        for name, value in assigned.items():
            if counted[name] == 1 and name in env.names:
                env.names[name] = self._local(value, env)
        for name in narrowed & env.names.keys():
            known = env.names[name]
            env.names[name] = replace(known, narrowed=True) if isinstance(known, Instance) else UNKNOWN

    def _local(self, value: ast.expr | ast.AnnAssign, env: Env) -> Thing:
        if self._depth >= _DEPTH:
            return UNKNOWN
        self._depth += 1
        try:
            if isinstance(value, ast.AnnAssign):
                return self.annotation(value.annotation, env.module, env.owner)
            return self.value(self.of(value, env))
        finally:
            self._depth -= 1

    def _imported(self, module: str | None, attribute: str | None) -> Thing:
        if module is None:
            return UNKNOWN
        found = self.trees.module(module) if attribute is None else self.trees.name(module, attribute)
        return UNKNOWN if isinstance(found, Missing) else found


def is_generator(node: FunctionNode) -> bool:
    """Whether a function yields."""
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_statements(node.body))


def own_statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes below `body` in the order of the text, nested functions and classes given but not entered."""
    for statement in body:
        yield from _below(statement)


def _below(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _below(child)


_Bound = ast.expr | ast.AnnAssign | tuple[str | None, str | None] | None


def _bindings(node: ast.AST) -> Iterator[tuple[str, _Bound]]:
    """The names that one node binds, and what tells what they are: an expression, an annotation, an import."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node
    elif isinstance(node, ast.NamedExpr):
        yield node.target.id, node.value
    elif isinstance(node, ast.Import):
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            yield alias.asname or whole, (whole, None)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, (node.module if not node.level else None, alias.name)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, None
    elif not isinstance(node, (ast.Name, ast.arg, ast.alias)) and (bound := binding(node)) is not None:
        yield bound[0], None
    for deleted in node.targets if isinstance(node, ast.Delete) else ():
        if isinstance(deleted, ast.Name):
            yield deleted.id, None
    for unclear in _unclear_targets(node):
        for name in ast.walk(unclear):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                yield name.id, None


def _unclear_targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [t for t in node.targets if isinstance(t, (ast.Tuple, ast.List, ast.Starred))]
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [node.target]
    if isinstance(node, ast.withitem) and node.optional_vars is not None:
        return [node.optional_vars]
    return []


def _narrowed(node: ast.AST) -> Iterator[str]:
    """Names whose type a test may narrow: what is known of them is not all that they have."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NARROWING:
        for argument in node.args[:1]:
            if isinstance(argument, ast.Name):
                yield argument.id
    elif isinstance(node, ast.Compare):
        for side in (node.left, *node.comparators):
            if (
                isinstance(side, ast.Call)
                and dotted(side.func) == "type"
                and side.args
                and isinstance(side.args[0], ast.Name)
            ):
                yield side.args[0].id
    elif isinstance(node, ast.stmt) and clauses_only(node):
        yield from (part.id for part in own_parts(node) if isinstance(part, ast.Name))
