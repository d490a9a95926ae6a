"""Scopes and uses of names in statements, with Python's exact rules.

`symtable` of the standard library knows the rules too, but not where a name stands, and it wants a whole module; this
analysis takes statements as they are and is compared with `symtable` in the tests.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from afd_patchkit.names.scope import Context, Scope, State, Use
from afd_patchkit.source.syntax import CAPTURES, binding, typing_block

_MODE: dict[type, Context] = {ast.Load: "load", ast.Store: "store", ast.Del: "del"}


class Analysis:
    """Scopes and uses of some statements.

    Args:
        nodes: the statements.
        private: name of the class that the statements stand in, for name mangling.
    """

    def __init__(self, nodes: Iterable[ast.stmt], private: str | None = None) -> None:
        self.outer = Scope("outer", None, None, "", private)
        self.uses: list[Use] = []
        self.private = private
        """Name of the class around the statements."""
        self._scope = self.outer
        self._state = State()
        self._owners: dict[int, Scope] = {}
        self.annotated = False
        """Whether Python evaluates an annotation in the statements, were it not for `from __future__ import annotations`."""
        for node in nodes:
            self._statement(node)

    # ---- results ------------------------------------------------------------------------------------------

    def free(self) -> list[Use]:
        """The uses that nothing in the statements binds, in order of evaluation of their scopes."""
        return [use for use in self.uses if self._is_free(use)]

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope that `node` (a function, class, lambda or comprehension) opens."""
        return self._owners[id(node)]

    def _is_free(self, use: Use) -> bool:
        if use.kind == "global":
            return True
        if use.scope is self.outer:
            if use.ctx != "load":
                return False
            # a later statement of the group (`@x.setter`) sees what the earlier ones bound
            return use.early or use.name not in self.outer.bound
        if (
            use.ctx != "load"
            and use.name in use.scope.bound
            and use.name not in use.scope.globals | use.scope.nonlocals
        ):
            return False
        if self._lookup(use.name, use.scope, use.early) is not None:
            return False
        use.own = use.name in self.outer.bound
        return True

    @staticmethod
    def declared_global(use: Use) -> bool:
        """Whether a `global` statement makes the name global where it is used."""
        if use.kind == "global":
            return True
        for scope in use.scope.chain():
            if use.name in scope.globals:
                return True
            if use.name in scope.bound and scope.is_function:
                return False
        return False

    @staticmethod
    def _lookup(name: str, scope: Scope, early: bool) -> Scope | None:
        if name in scope.globals:
            return None
        if scope.kind == "class" and name in scope.bound and name not in scope.nonlocals:
            return None if early else scope
        sees_class = scope.kind == "type_params"
        if scope.is_function and name in scope.bound and name not in scope.nonlocals:
            return scope
        inside_function = scope.is_function
        parent = scope.parent
        while parent is not None:
            if parent.kind == "class":
                if name == "__class__" and inside_function:
                    return parent
                if sees_class and name in parent.bound:
                    return parent
            elif parent.kind != "outer":
                if name in parent.globals:
                    return None
                if name in parent.bound and name not in parent.nonlocals:
                    return parent
                inside_function = True
            sees_class = sees_class and parent.kind == "type_params"
            parent = parent.parent
        return None

    # ---- recording ----------------------------------------------------------------------------------------

    def _mangle(self, name: str) -> str:
        return mangle(name, self._scope.private)

    def _record(self, name: str, node: ast.AST, ctx: Context, kind: str, scope: Scope | None = None) -> None:
        scope = scope or self._scope
        name = self._mangle(name)
        early = False
        if ctx == "load":
            early = scope.kind in {"class", "outer"} and name not in scope.bound
        else:
            scope.bound.add(name)
        self.uses.append(Use(name, node, ctx, kind, scope, self._state, early))

    def _store(self, name: str, node: ast.AST, kind: str) -> None:
        self._record(name, node, "store", kind)

    # ---- visiting -----------------------------------------------------------------------------------------

    def _visit(self, node: ast.AST | None) -> None:
        if node is None:
            return
        method = _VISITORS.get(type(node))
        if method is not None:
            method(self, node)
            return
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self._visit(item)
            elif isinstance(value, ast.AST):
                self._visit(value)

    def _all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            self._visit(node)

    def _statement(self, node: ast.stmt) -> None:
        """A statement of the outer scope: what it evaluates there is its header."""
        self._state.where = "header"
        self._visit(node)
        self._state = State()

    def _enter(self, kind: str, node: ast.AST, name: str, private: str | None = None) -> Scope:
        scope = Scope(kind, node, self._scope, name, private if private is not None else self._scope.private)
        if kind != "type_params":
            self._owners[id(node)] = scope
        self._scope = scope
        return scope

    def _leave(self) -> None:
        assert self._scope.parent is not None
        self._scope = self._scope.parent

    def _name(self, node: ast.Name) -> None:
        self._record(node.id, node, _MODE[type(node.ctx)], "name")

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._all(node.decorator_list)
        arguments = node.args
        self._all(arguments.defaults)
        self._all(arguments.kw_defaults)
        parameters: Sequence[ast.AST] = getattr(node, "type_params", ())
        if parameters:
            self._enter("type_params", node, node.name)
            self._all(parameters)
        for arg in _arguments(arguments):
            self._annotation(arg.annotation)
        self._annotation(node.returns)
        self._enter("function", node, node.name)
        state, self._state = self._state, self._state.copy()
        self._state.where, self._state.deferred = "body", True
        for arg in _arguments(arguments):
            self._store(arg.arg, arg, "param")
        self._all(node.body)
        self._state = state
        self._leave()
        if parameters:
            self._leave()
        self._store(node.name, node, "def")

    def _lambda(self, node: ast.Lambda) -> None:
        self._all(node.args.defaults)
        self._all(node.args.kw_defaults)
        self._enter("lambda", node, "<lambda>")
        state, self._state = self._state, self._state.copy()
        self._state.deferred = True
        for arg in _arguments(node.args):
            self._store(arg.arg, arg, "param")
        self._visit(node.body)
        self._state = state
        self._leave()

    def _class(self, node: ast.ClassDef) -> None:
        self._all(node.decorator_list)
        parameters: Sequence[ast.AST] = getattr(node, "type_params", ())
        if parameters:
            self._enter("type_params", node, node.name)
            self._all(parameters)
        self._all(node.bases)
        self._all(node.keywords)
        scope = self._enter("class", node, node.name, node.name)
        scope.bound.update(("__module__", "__qualname__"))
        state, self._state = self._state, self._state.copy()
        self._state.where = "body"
        self._all(node.body)
        self._state = state
        self._leave()
        if parameters:
            self._leave()
        self._store(node.name, node, "def")

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first = node.generators[0]
        self._visit(first.iter)
        self._enter("comprehension", node, "<comprehension>")
        state, self._state = self._state, self._state.copy()
        if isinstance(node, ast.GeneratorExp):
            self._state.deferred = True
        self._visit(first.target)
        self._all(first.ifs)
        for generator in node.generators[1:]:
            self._visit(generator.iter)
            self._visit(generator.target)
            self._all(generator.ifs)
        if isinstance(node, ast.DictComp):
            self._visit(node.key)
            self._visit(node.value)
        else:
            self._visit(node.elt)
        self._state = state
        self._leave()

    def _walrus(self, node: ast.NamedExpr) -> None:
        self._visit(node.value)
        scope = self._scope
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        self._record(node.target.id, node.target, "store", "walrus", scope)

    def _global(self, node: ast.Global) -> None:
        for name in node.names:
            mangled = self._mangle(name)
            self._scope.globals.add(mangled)
            use = Use(mangled, node, "store", "global", self._scope, self._state, False)
            self.uses.append(use)

    def _nonlocal(self, node: ast.Nonlocal) -> None:
        self._scope.nonlocals.update(self._mangle(name) for name in node.names)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name != "*":
                name = alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
                self._store(name, alias, "alias")

    def _handler(self, node: ast.ExceptHandler) -> None:
        self._visit(node.type)
        if node.name:
            self._store(node.name, node, "except")
        self._all(node.body)

    def _capture(self, node: ast.AST) -> None:
        self._all(ast.iter_child_nodes(node))
        if (found := binding(node)) is not None:
            self._store(found[0], node, found[1])

    def _assign(self, node: ast.Assign) -> None:
        self._visit(node.value)
        self._all(node.targets)

    def _augmented(self, node: ast.AugAssign) -> None:
        self._visit(node.value)
        self._visit(node.target)

    def _annotated(self, node: ast.AnnAssign) -> None:
        state = self._state
        if self._scope.kind not in {"class", "outer"}:
            self._state = state.copy()
            self._state.evaluated = False
        self._annotation(node.annotation)
        self._state = state
        self._visit(node.value)
        self._visit(node.target)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self._visit(node.iter)
        self._visit(node.target)
        self._all(node.body)
        self._all(node.orelse)

    def _if(self, node: ast.If) -> None:
        self._visit(node.test)
        state = self._state
        hidden = typing_block(node.test)
        for name, body in (("body", node.body), ("orelse", node.orelse)):
            if name == hidden:
                self._state = state.copy()
                self._state.evaluated = False
            self._all(body)
            self._state = state

    def _fstring(self, node: ast.AST) -> None:
        state = self._state
        if state.fstring is None:
            self._state = state.copy()
            self._state.fstring = node
        self._all(node.values)  # type: ignore[attr-defined]
        self._state = state

    def _type_parameter(self, node: ast.AST) -> None:
        self._store(node.name, node, "type")  # type: ignore[attr-defined]
        self._visit(getattr(node, "bound", None))
        self._visit(getattr(node, "default_value", None))

    def _type_alias(self, node: ast.AST) -> None:
        self._visit(node.name)  # type: ignore[attr-defined]
        self._enter("type_params", node, "")
        self._all(node.type_params)  # type: ignore[attr-defined]
        state, self._state = self._state, self._state.copy()
        self._state.deferred = True
        self._visit(node.value)  # type: ignore[attr-defined]
        self._state = state
        self._leave()

    # ---- annotations --------------------------------------------------------------------------------------

    def _annotation(self, node: ast.expr | None) -> None:
        if node is None:
            return
        self.annotated = self.annotated or self._state.evaluated
        state, self._state = self._state, self._state.copy()
        self._state.where = "annotation"
        self._type(node)
        self._state = state

    def _type(self, node: ast.expr) -> None:
        """An expression in which strings are types."""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                self._quoted(node)
        elif isinstance(node, ast.Subscript):
            self._visit(node.value)
            form = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if form == "Literal":
                self._visit(node.slice)
            elif form == "Annotated" and isinstance(node.slice, ast.Tuple) and node.slice.elts:
                self._type(node.slice.elts[0])
                self._all(node.slice.elts[1:])
            else:
                self._type(node.slice)
        elif isinstance(node, (ast.Tuple, ast.List)):
            for item in node.elts:
                self._type(item)
        elif isinstance(node, ast.BinOp):
            self._type(node.left)
            self._type(node.right)
        elif isinstance(node, ast.Starred):
            self._type(node.value)
        else:
            self._visit(node)

    def _quoted(self, node: ast.Constant) -> None:
        if self._state.quoted is not None or not isinstance(node.value, str):
            return
        try:
            inner = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        state, self._state = self._state, self._state.copy()
        self._state.quoted, self._state.evaluated = node, False
        self._type(inner)
        self._state = state


_VISITORS: dict[type, Callable[[Analysis, Any], None]] = {
    ast.Name: Analysis._name,
    ast.FunctionDef: Analysis._function,
    ast.AsyncFunctionDef: Analysis._function,
    ast.Lambda: Analysis._lambda,
    ast.ClassDef: Analysis._class,
    ast.ListComp: Analysis._comprehension,
    ast.SetComp: Analysis._comprehension,
    ast.DictComp: Analysis._comprehension,
    ast.GeneratorExp: Analysis._comprehension,
    ast.NamedExpr: Analysis._walrus,
    ast.Global: Analysis._global,
    ast.Nonlocal: Analysis._nonlocal,
    ast.Import: Analysis._import,
    ast.ImportFrom: Analysis._import,
    ast.ExceptHandler: Analysis._handler,
    **dict.fromkeys(CAPTURES, Analysis._capture),
    ast.Assign: Analysis._assign,
    ast.AugAssign: Analysis._augmented,
    ast.AnnAssign: Analysis._annotated,
    ast.For: Analysis._for,
    ast.AsyncFor: Analysis._for,
    ast.If: Analysis._if,
    ast.JoinedStr: Analysis._fstring,
}
for _name, _method in (
    ("TypeVar", Analysis._type_parameter),
    ("ParamSpec", Analysis._type_parameter),
    ("TypeVarTuple", Analysis._type_parameter),
    ("TypeAlias", Analysis._type_alias),
    ("TemplateStr", Analysis._fstring),
):
    if hasattr(ast, _name):
        _VISITORS[getattr(ast, _name)] = _method


def _arguments(node: ast.arguments) -> Iterator[ast.arg]:
    yield from node.posonlyargs
    yield from node.args
    if node.vararg:
        yield node.vararg
    yield from node.kwonlyargs
    if node.kwarg:
        yield node.kwarg


def mangle(name: str, private: str | None) -> str:
    """`name` as Python looks it up inside a class called `private`."""
    if private is None or not is_private(name):
        return name
    stripped = private.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


def is_private(name: str) -> bool:
    """Whether Python mangles this identifier inside a class."""
    return name.startswith("__") and not name.endswith("__") and "." not in name
