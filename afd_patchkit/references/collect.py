"""Walks the text of a module of ours and tells of every reference in it to what it leads."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from afd_patchkit.names.analysis import mangle
from afd_patchkit.names.bindings import absolute_module, module_bindings
from afd_patchkit.references.calls import Shape, copies
from afd_patchkit.references.infer import Env, Inference
from afd_patchkit.references.things import (
    UNKNOWN,
    Class,
    Function,
    Instance,
    Missing,
    Module,
    Outside,
    Several,
    Super,
    Thing,
    Unknown,
    Value,
)
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.syntax import TRY, typing_block
from afd_patchkit.source.text import SourceFile

_CATCH_ABSENCE = frozenset(
    ["AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "TypeError", "Exception", "BaseException"]
)

_ASK_FOR_CLASS = frozenset(["isinstance", "issubclass"])

Use = Literal["call", "read", "owner", "base", "type", "set", "import", "annotation", "copy", "all"]


@dataclass(frozen=True)
class Reference:
    """One reference in the text of a module.

    Attributes:
        key: what is referred to, as it is looked up: `package.module`, `package.module:name`, `package.module:Class.name`;
            with `super` between class and name when a class's bases are meant. It stays the same when the definition moves to a base.
        use: how it is used; `type` where only a class can stand (`isinstance`, `except`, `case`, before a member's name); `copy` where a record is
            made of another one field by field; `all` when everything about it counts.
        thing: what that leads to.
        node: the expression, or the import.
        line: 1-based line of the text.
        column: 0-based byte column.
        shape: of a call, how it gives its arguments.
        call: that call.
        receiver: what the attribute is read from.
        by_annotation: that this is known from an annotation, so a subclass may stand there.
    """

    key: str
    use: Use
    thing: Thing
    node: ast.AST
    line: int
    column: int
    shape: Shape | None = None
    call: ast.Call | None = None
    receiver: Thing = UNKNOWN
    by_annotation: bool = False

    def to(self, key: str, thing: Thing) -> Reference:
        """The same reference, leading elsewhere."""
        return replace(self, key=key, thing=thing)

    @property
    def doubtful(self) -> bool:
        """Whether what it leads to may be overridden by a subclass that the code around asks for."""
        return isinstance(self.receiver, Instance) and self.receiver.narrowed

    @property
    def used(self) -> str:
        """The use as the lock writes it."""
        return f"call {self.shape}" if self.use == "call" and self.shape is not None else self.use


def collect(file: SourceFile, inference: Inference, wanted: Callable[[ast.AST], bool]) -> Iterator[Reference]:
    """Every reference of a module of ours.

    Args:
        file: the module's text.
        inference: what knows the trees.
        wanted: whether a node is to be looked at; its children are looked at in any case.
    """
    yield from _Collector(file, inference, wanted).module()


class _Collector:
    """The walk; its stack is a list, as upstream text may be nested deeper than Python's own."""

    def __init__(self, file: SourceFile, inference: Inference, wanted: Callable[[ast.AST], bool]) -> None:
        self.file, self.inference, self.wanted = file, inference, wanted
        self.trees, self.classes = inference.trees, inference.classes
        self.found: list[Reference] = []
        self.stack: list[tuple[ast.AST, Env, Use, frozenset[str]]] = []
        self.excused: frozenset[str] = frozenset()
        """Attributes that the code around asks for or catches the absence of; `*` for all."""

    def module(self) -> list[Reference]:
        env = Env(self.file.module, None, {})
        self._push(self.file.tree.body, env)
        while self.stack:
            node, env, use, self.excused = self.stack.pop()
            self._visit(node, env, use)
        return sorted(self.found, key=lambda r: (r.line, r.column))

    def _push(
        self, nodes: Iterable[ast.AST | None], env: Env, use: Use = "read", excused: frozenset[str] | None = None
    ) -> None:
        around = self.excused if excused is None else excused
        self.stack += [(node, env, use, around) for node in nodes if node is not None]

    # ---- walking ----------------------------------------------------------------------------------------------

    def _visit(self, node: ast.AST, env: Env, use: Use) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._function(node, env)
        elif isinstance(node, ast.Lambda):
            self._push([node.args], env)
            self._push([node.body], self.inference.env(node, env))
        elif isinstance(node, ast.ClassDef):
            self._class(node, env)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self._comprehension(node, env)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node)
        elif isinstance(node, ast.Call):
            self._call(node, env)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            self._chain(node, env, use)
        elif isinstance(node, ast.AnnAssign):
            self._push([node.target], env, "set")
            self._push([node.annotation], env, "annotation")
            self._push([node.value], env)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
            read = ast.copy_location(ast.Attribute(node.target.value, node.target.attr, ast.Load()), node.target)
            self._push([node.value, node.target, read], env)
        elif isinstance(node, ast.If) and (hidden := typing_block(node.test)):
            self._push(node.orelse if hidden == "body" else node.body, env)
        elif isinstance(node, TRY):
            self._try(node, env)
        elif isinstance(node, ast.ExceptHandler):
            self._types(node.type, env)
            self._push(node.body, env)
        elif isinstance(node, ast.MatchClass):
            self._types(node.cls, env)
            self._push([*node.patterns, *node.kwd_patterns], env)
        else:
            self._push(ast.iter_child_nodes(node), env)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> None:
        self._push([*node.decorator_list, *node.args.defaults, *node.args.kw_defaults], env)
        inner = self.inference.env(node, env)
        arguments = [a for a in ast.walk(node.args) if isinstance(a, ast.arg)]
        self._push([*(a.annotation for a in arguments), node.returns], env, "annotation")
        asked = {name for n in ast.walk(node) for name in _asked_for(n)}
        self._push(node.body, inner, excused=self.excused | asked)

    def _class(self, node: ast.ClassDef, env: Env) -> None:
        self._push([*node.decorator_list, *(k.value for k in node.keywords)], env)
        self._push([b.value if isinstance(b, ast.Subscript) else b for b in node.bases], env, "base")
        thing = self.trees.name(self.file.module, node.name) if env.owner is None and not env.names else UNKNOWN
        owner = thing if isinstance(thing, Class) and thing.node is node else None
        if owner is None:
            outer = f"{env.owner.qualname}." if env.owner is not None else ""
            owner = Class(self.file.module, outer + node.name, self.file, node)
        self._push(node.body, Env(env.module, owner, {}, env if env.names else None))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, env: Env) -> None:
        names: dict[str, Thing] = {}
        inner = Env(env.module, env.owner, names, env)
        for generator in node.generators:
            names.update((t.id, UNKNOWN) for t in ast.walk(generator.target) if isinstance(t, ast.Name))
            self._push([generator.iter, *generator.ifs], inner)
        self._push([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], inner)

    def _try(self, node: Any, env: Env) -> None:
        """What a `try` catches the absence of is not missed."""
        types = [h.type if h.type is not None else ast.Name("Exception") for h in node.handlers]
        caught = {
            dotted(n).rpartition(".")[2] for t in types for n in ast.walk(t) if isinstance(n, (ast.Name, ast.Attribute))
        }
        self._push(node.body, env, excused=self.excused | {"*"} if caught & _CATCH_ABSENCE else self.excused)
        self._push([*node.handlers, *node.orelse, *node.finalbody], env)

    # ---- references -------------------------------------------------------------------------------------------

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if not self.wanted(node):
            return
        for alias in node.names:
            if isinstance(node, ast.Import):
                self._add(alias.name, "import", self.trees.module(alias.name), node)
                continue
            module = absolute_module(self.file, node.module, node.level)
            if module is None or alias.name == "*":
                continue
            self._add(_key_in_module(module, alias.name), "import", self.trees.name(module, alias.name), node)

    def _call(self, node: ast.Call, env: Env) -> None:
        func = node.func
        bound = self.inference.bound(func, env)
        if isinstance(func, (ast.Name, ast.Attribute)):
            self._chain(func, env, "call", node)
        elif isinstance(bound, Function) and self._judged(node, node):
            self._add(bound.reference, "call", bound, func, node)
        else:
            self._push([func], env)
        arguments = list(node.args)
        if (
            isinstance(func, ast.Name)
            and func.id in _ASK_FOR_CLASS
            and len(arguments) == 2
            and env.find(func.id) is None
        ):
            self._types(arguments.pop(), env)
        self._push([*arguments, *(k.value for k in node.keywords)], env)

    def _types(self, node: ast.expr | None, env: Env) -> None:
        """What can only be a class, a tuple of such, or a union."""
        if isinstance(node, ast.Tuple):
            for item in node.elts:
                self._types(item, env)
        elif isinstance(node, ast.BinOp):
            self._types(node.left, env)
            self._types(node.right, env)
        else:
            self._push([node], env, "type" if isinstance(node, (ast.Name, ast.Attribute)) else "read")

    def _chain(self, node: ast.Name | ast.Attribute, env: Env, use: Use, call: ast.Call | None = None) -> None:
        """A name or an attribute; the attributes before the last one are read."""
        if isinstance(node, ast.Attribute):
            self._push([node.value], env, "owner")
        if isinstance(node.ctx, ast.Store):
            use = "set"
        elif isinstance(node.ctx, ast.Del) and isinstance(node, ast.Name):
            return
        if isinstance(node, ast.Name):
            self._name(node, env, use, call)
            return
        base = self.inference.value(self.inference.of(node.value, env))
        name = mangle(node.attr, env.private)
        if isinstance(base, (Unknown, Outside, Several, Value, Function, Missing)):
            if self._judged(node, call):
                self._add("?", use, Outside("?") if isinstance(base, Outside) else UNKNOWN, node, call)
            return
        thing = self.inference.attribute(base, name)
        if use == "set" and isinstance(base, Instance) and self._judged(node, call):
            # whether it may be set is for the class to say
            refused = isinstance(thing, Missing) and self.classes.slotted(base.of)
            if isinstance(thing, Missing) and not refused:
                self._add(base.of.reference, "set", base.of, node)
                return
        if self._judged(node, call):
            self._add(
                _attribute_key(base, name), use, thing, node, call, base, by_annotation=self._annotated(node.value, env)
            )

    def _name(self, node: ast.Name, env: Env, use: Use, call: ast.Call | None) -> None:
        name = mangle(node.id, env.private)
        if env.find(name) is not None or use == "set":
            if use != "set" and isinstance(env.find(name), (Class, Function)) and self._judged(node, call):
                self._named(name, node, env, use, call)
            return
        if self._judged(node, call):
            self._named(name, node, env, use, call)

    def _named(self, name: str, node: ast.Name, env: Env, use: Use, call: ast.Call | None) -> None:
        local = env.find(name)
        if local is not None:
            assert isinstance(local, (Class, Function))
            self._add(local.reference, use, local, node, call)
            return
        key, thing = self._global(name)
        if key is not None:
            self._add(key, use, thing, node, call)

    def _global(self, name: str) -> tuple[str | None, Thing]:
        """What a name of the module is, by the import that binds it."""
        binding = module_bindings(self.file).get(name)
        if binding is None or not binding.sites:
            return None, UNKNOWN
        site = binding.sites[-1]
        typing = binding.guard == "type_checking"
        thing = self.trees.name(self.file.module, name, typing=typing)
        original = self.inference.kept(thing, Env(self.file.module, None, {}))
        if original is not thing:
            return original.reference if isinstance(original, Function) else None, original
        if site.kind == "from" and site.module is not None and site.attribute is not None:
            return _key_in_module(site.module, site.attribute), thing
        if site.kind == "import" and site.bound_module is not None:
            return site.bound_module, thing
        return f"{self.file.module}:{name}", thing

    def _judged(self, node: ast.AST, call: ast.Call | None) -> bool:
        return self.wanted(node) or (call is not None and self.wanted(call))

    def _annotated(self, node: ast.expr, env: Env) -> bool:
        """Whether an object is known by an annotation only: not the first parameter of a method, nor made in place."""
        if isinstance(node, ast.Name):
            return node.id not in {"self", "cls"}
        return not isinstance(node, ast.Call) or not isinstance(self.inference.of(node.func, env), Class)

    def _add(
        self, key: str, use: Use, thing: Thing, node: ast.AST, call: ast.Call | None = None, receiver: Thing = UNKNOWN,
        *, by_annotation: bool = False,
    ) -> None:  # fmt: skip
        if self._expected_absent(node):
            return
        if use == "owner":
            use = "type" if isinstance(thing, Class) else "read"
        shape = Shape.of(call) if call is not None else None
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        found = Reference(key, use, thing, node, line, column, shape, call, receiver, by_annotation)
        self.found.append(found)
        made = self.classes.constructor(thing) if call is not None and isinstance(thing, Class) else None
        if call is not None and isinstance(made, list) and copies(call, made):
            self.found.append(replace(found, use="copy", shape=None))

    def _expected_absent(self, node: ast.AST) -> bool:
        return "*" in self.excused or (isinstance(node, ast.Attribute) and node.attr in self.excused)


def _key_in_module(module: str, name: str) -> str:
    return f"{module}:{name}"


def _attribute_key(base: Thing, name: str) -> str:
    if isinstance(base, Module):
        return f"{base.name}:{name}"
    if isinstance(base, Instance):
        return f"{base.of.reference}.{name}"
    if isinstance(base, Super):
        return f"{base.of.reference}.super.{name}"
    assert isinstance(base, Class)
    return f"{base.reference}.{name}"


def _asked_for(node: ast.AST) -> Iterator[str]:
    """Attributes that a function asks for before it reads them: `hasattr(x, "name")`, `getattr(x, "name", None)`."""
    if isinstance(node, ast.Call) and dotted(node.func) in {"hasattr", "getattr"} and len(node.args) > 1:
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value
