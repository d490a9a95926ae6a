"""Declared rebindings, applied to upstream's syntax tree; written without the engine."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tools.oracles.sweep.scopes import Scopes, header_expressions

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Kind = Literal["name", "super", "class", "mangled", "class-scope", "import", "globals", "static"]


@dataclass(frozen=True)
class Rebinding:
    """One declared fact: upstream's `old` stands as `new` in the generated function.

    Kinds: `name` (a global name, read or written), `super` (zero-argument `super()`; `new` is the class), `class`
    (`__class__`), `mangled` (a private name), `class-scope` (a name of the class body in the function's header), `import` (a
    relative module, dots included), `globals` (`globals()`; `new` is the module's dictionary), `static` (the decorator of a static
    method, which is a plain function outside of its class).
    """

    kind: Kind
    old: str
    new: str


class Rewrite(ast.NodeTransformer):
    """Applies facts to one function; remembers which it used."""

    def __init__(self, node: FunctionNode, facts: Iterable[Rebinding]) -> None:
        self.facts = {(fact.kind, fact.old): fact for fact in facts}
        self.used: set[Rebinding] = set()
        self.scopes = Scopes(node)
        self.header = {id(n) for e in header_expressions(node) for n in ast.walk(e)}
        arguments = [a.annotation for a in ast.walk(node) if isinstance(a, (ast.arg, ast.AnnAssign)) and a.annotation]
        returns = [
            f.returns for f in ast.walk(node) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) and f.returns
        ]
        self.annotations = {id(n) for e in [*arguments, *returns] for n in ast.walk(e)}
        self.firsts: list[str] = []

    def _new(self, kind: Kind, old: str) -> str | None:
        fact = self.facts.get((kind, old))
        if fact:
            self.used.add(fact)
        return fact.new if fact else None

    def _mangled(self, name: str) -> str:
        return self._new("mangled", name) or name

    def visit_Name(self, node: ast.Name) -> ast.expr:
        new = self._new("class", node.id) if node.id == "__class__" else None
        if new is None and id(node) in self.header:
            new = self._new("class-scope", node.id)
        if new is None and self.scopes.is_global(node):
            new = self._new("name", node.id)
        if new is not None:
            return _expression(new, node)
        node.id = self._mangled(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        node.attr = self._mangled(node.attr)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        self.generic_visit(node)
        node.arg = self._mangled(node.arg) if node.arg else None
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        self.generic_visit(node)
        node.arg = self._mangled(node.arg)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) and not node.args and not node.keywords else ""
        new = self._new("super", "super") if name == "super" else None
        if name == "globals" and (table := self._new("globals", "globals")):
            return _expression(table, node)
        self.generic_visit(node)
        if new is not None and self.firsts:
            first = ast.copy_location(ast.Name(self._mangled(self.firsts[-1]), ast.Load()), node)
            node.args = [_expression(new, node), first]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        new = self._new("import", "." * node.level + (node.module or "")) if node.level else None
        if new is not None:
            node.module, node.level = new, 0
        return node

    def visit_Global(self, node: ast.Global) -> ast.stmt:
        node.names = [n for n in node.names if ("name", n) not in self.facts]
        return node if node.names else ast.copy_location(ast.Pass(), node)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if id(node) in self.annotations and isinstance(node.value, str):
            node.value = self._quoted(node.value)
        return node

    def _quoted(self, text: str) -> str:
        """The names of an annotation that is written as a string."""
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError:
            return text
        start = len(text) - len(text.lstrip())
        for name in sorted((n for n in ast.walk(tree) if isinstance(n, ast.Name)), key=lambda n: -n.col_offset):
            new = self._new("class-scope", name.id) or self._new("name", name.id)
            if new is not None and name.lineno == 1:
                at = start + name.col_offset
                text = text[:at] + new + text[at + len(name.id) :]
        return text

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.Nonlocal:
        node.names = [self._mangled(n) for n in node.names]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        self.generic_visit(node)
        node.name = self._mangled(node.name) if node.name else None
        return node

    def _function(self, node: FunctionNode | ast.Lambda) -> ast.AST:
        parameters = [*node.args.posonlyargs, *node.args.args]
        outer = self.firsts
        if not isinstance(node, ast.Lambda):
            node.name = self._mangled(node.name) if outer else node.name
        self.firsts = [*outer, parameters[0].arg if parameters else ""]
        self.generic_visit(node)
        self.firsts = outer
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = node.body or [ast.Pass()]
            if not outer and self._new("static", "staticmethod") is not None:
                node.decorator_list = [d for d in node.decorator_list if ast.unparse(d) != "staticmethod"]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._function(node)


def _expression(text: str, place: ast.expr) -> ast.expr:
    """The expression `text`, loaded, stored or deleted as `place` is, on the lines of `place`."""
    node = ast.parse(text, mode="eval").body
    for part in ast.walk(node):
        ast.copy_location(part, place)
    ctx = getattr(place, "ctx", ast.Load())
    if not isinstance(place, ast.Call) and not isinstance(ctx, ast.Load):
        node.ctx = ctx  # type: ignore[attr-defined]
    return node
