"""The oracle of the sweep: is a generated function upstream's own function? Written without the engine.

It compiles the whole upstream file, finds the function's code object by qualified name and first line, and compares it
recursively with the code object of the same function compiled from the generated module: instructions, exception table,
constants with their types, names, variables, flags. What a code object does not hold (decorators, defaults, annotations: they
run in the scope around it) is compared as syntax. Global names must lead to the same objects: `from a import b` is followed on
both sides.

Declared rebindings are *facts* (kind, old, new). The oracle applies them to upstream's syntax tree in its own way, compiles the
result inside its classes, and compares with that. So a wrong, missing or undeclared change is a difference.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Literal

from tools.oracles.sweep.code import difference, find_code
from tools.oracles.sweep.rewrite import FunctionNode, Rebinding, Rewrite
from tools.oracles.sweep.scopes import (
    DEFINED,
    Scopes,
    absolute,
    bindings,
    header_expressions,
    own_parts,
    statements,
    without_type_checking,
)


@dataclass(frozen=True)
class Function:
    """One function or method of a file; `twin` counts the ones of that name before it."""

    qualname: str
    node: FunctionNode
    classes: tuple[ast.ClassDef, ...]
    twin: int = 0

    @property
    def first_line(self) -> int:
        """As `co_firstlineno` has it: decorators included."""
        return min([self.node.lineno, *(d.lineno for d in self.node.decorator_list)])


@dataclass
class UpstreamFile:
    """One upstream file, parsed once and compiled once."""

    module: str
    text: str
    is_package: bool = False
    tree: ast.Module = field(init=False)
    functions: list[Function] = field(init=False)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text)
        self.functions = list(_functions(self.tree.body, ()))
        self.names = bindings(self.tree.body, self.package)
        self.names_at_run_time = bindings(without_type_checking(self.tree.body), self.package).keys()
        self.mutable = {name for n in ast.walk(self.tree) if isinstance(n, ast.Global) for name in n.names}
        self.lines = self.text.split("\n")

    @cached_property
    def code(self) -> CodeType:
        """The code object of the whole file."""
        return compile(self.text, "<upstream>", "exec", dont_inherit=True)

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.module if self.is_package else self.module.rpartition(".")[0]


@dataclass(frozen=True)
class Verdict:
    """`verbatim`, `rebound` (verbatim with declared rebindings) or `wrong`, with the first difference."""

    status: Literal["verbatim", "rebound", "wrong"]
    detail: str = ""


def _functions(body: Iterable[ast.stmt], classes: tuple[ast.ClassDef, ...]) -> Iterator[Function]:
    seen: dict[str, int] = {}
    for node in statements(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            twin = seen[node.name] = seen.get(node.name, -1) + 1
            yield Function(".".join([*(c.name for c in classes), node.name]), node, classes, twin)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, (*classes, node))


def in_context(
    futures: Sequence[ast.stmt], imports: Iterable[str], classes: Sequence[ast.ClassDef], node: FunctionNode
) -> CodeType | None:
    """Code of `node` compiled with its file's future imports, inside classes of the names (and type parameters) of these.

    The compiler calls methods of an imported name by other instructions than those of any other global, and `super()` too if
    the file mentions `super` at module level: so such names are part of the context.

    Args:
        futures: the file's future imports.
        imports: names that change how the compiler calls.
        classes: the classes around it, outermost first.
        node: the function.
    """
    names = sorted(imports)
    known = ast.parse(f"if 0: import {', '.join(names)}").body if names else []
    body: list[ast.stmt] = [node]
    for outer in reversed(classes):
        holder = ast.parse(f"class {outer.name}: pass").body[0]
        holder.body, holder.type_params = body, getattr(outer, "type_params", [])  # type: ignore[attr-defined]
        body = [holder]
    tree = ast.fix_missing_locations(ast.Module(body=[*futures, *known, *body], type_ignores=[]))
    code = compile(tree, "<in context>", "exec", dont_inherit=True)
    return find_code(code, [*(c.name for c in classes), node.name], None)


def future_imports(tree: ast.Module) -> list[ast.ImportFrom]:
    """The `__future__` imports of a file."""
    return [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]


def context_names(tree: ast.Module, names: dict[str, set[str]]) -> set[str]:
    """The global names of a file that change how functions compile: imported ones, and `super` if the file mentions it."""
    found = {name for name, targets in names.items() if targets - {DEFINED} and name != "*"}
    for node in statements(tree.body):
        if any(isinstance(part, ast.Name) and part.id == "super" for part in own_parts(node)):
            found.add("super")
    return found


def class_cell(node: ast.AST) -> str | None:
    """How a function asks for the class it stands in: `super()` or `__class__`; classes inside it have their own."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
        return "super()"
    if isinstance(node, ast.Name) and node.id == "__class__":
        return "__class__"
    inner = (class_cell(child) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.ClassDef))
    return next(filter(None, inner), None)


def private_name(node: ast.AST) -> str | None:
    """A private name in a function, which the compiler would rename inside a class."""
    for part in ast.walk(node):
        for name in (getattr(part, key, None) for key in ("id", "attr", "arg")):
            if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
                return name
    return None


# ---- the verdict ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Generated:
    """A generated module, parsed once."""

    text: str
    tree: ast.Module
    code: CodeType
    names: dict[str, set[str]]

    @classmethod
    def of(cls, text: str) -> Generated:
        """Parse and compile.

        Raises:
            SyntaxError: it is not Python.
        """
        tree = ast.parse(text)
        return cls(text, tree, compile(text, "<generated>", "exec", dont_inherit=True), bindings(tree.body, ""))


def judge(
    upstream: UpstreamFile,
    functions: Sequence[Function],
    text: str,
    facts: Iterable[Rebinding] = (),
    *,
    container: str | None = None,
) -> Verdict:
    """Whether a generated module holds exactly these upstream functions of one name.

    Args:
        upstream: the file.
        functions: one function, or a group that Python binds to one name (overloads, property and setter), in order.
        text: the generated module.
        facts: the declared rebindings.
        container: the generated class they are members of; None for module level.
    """
    facts = list(facts)
    try:
        generated = Generated.of(text)
    except (SyntaxError, ValueError) as error:
        return Verdict("wrong", f"does not compile: {error}")
    body: list[ast.stmt] = generated.tree.body
    extra = _foreign(body, {functions[0].node.name, container})
    if extra:
        return Verdict("wrong", extra)
    holder: ast.ClassDef | None = None
    if container:
        holder = next((n for n in body if isinstance(n, ast.ClassDef) and n.name == container), None)
        if holder is None:
            return Verdict("wrong", f"no class {container}")
        body = holder.body
    name = functions[0].node.name
    nodes = [f.node for f in _functions(body, ()) if f.qualname == name]
    if len(nodes) != len(functions):
        return Verdict("wrong", f"{len(nodes)} definitions of {name}, upstream has {len(functions)}")
    used: set[Rebinding] = set()
    for function, node in zip(functions, nodes, strict=True):
        found = _one(upstream, function, generated, node, holder, facts, used)
        if found:
            return Verdict("wrong", found)
    found = _meanings(upstream, functions, generated, nodes, facts)
    if found:
        return Verdict("wrong", found)
    unused = [fact for fact in facts if fact not in used]
    if unused:
        return Verdict("wrong", f"declared but not in upstream: {unused[0].kind} {unused[0].old}")
    return Verdict("rebound" if facts else "verbatim")


def _foreign(body: Iterable[ast.stmt], expected: set[str | None]) -> str | None:
    """A statement of the generated module that is neither an import, nor a docstring, nor the entry."""
    top = list(body)
    for node in statements(top):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name not in expected:
                return f"line {node.lineno}: {node.name} is not the entry"
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            if node in top:  # it may stand in for an import that fails
                return f"line {node.lineno}: an assignment at module level"
        elif isinstance(node, ast.Expr):
            if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, (str, type(...)))):
                return f"line {node.lineno}: an expression at module level"
        elif not isinstance(node, (ast.Import, ast.ImportFrom, ast.If, ast.Try, ast.Pass)):
            return f"line {node.lineno}: {type(node).__name__} at module level"
    return None


def _one(
    upstream: UpstreamFile,
    function: Function,
    generated: Generated,
    node: FunctionNode,
    holder: ast.ClassDef | None,
    facts: Sequence[Rebinding],
    used: set[Rebinding],
) -> str | None:
    name, inside = function.qualname, [holder] if holder else []
    if function.classes and class_cell(node):
        return f"{name}: {class_cell(node)} means another class here"
    wanted: FunctionNode = function.node
    if facts:
        wanted = copy.deepcopy(function.node)
        rewrite = Rewrite(wanted, facts)
        rewrite.visit(wanted)
        used |= rewrite.used
    found = _header(node, wanted)
    if found:
        return found
    if not facts:
        found = _same_lines(upstream, function, generated, node)
        if found:
            return found
        theirs = find_code(upstream.code, name.split("."), function.first_line)
        line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        ours = find_code(generated.code, [*(c.name for c in inside), node.name], line)
        if ours and theirs and not difference(ours, theirs):
            return None
    if function.classes and not inside and private_name(wanted):
        return f"{name}: {private_name(wanted)} is private to {function.classes[-1].name}"
    # once more with the same names known on both sides; at module level a class would only add a cell for `super`
    imports = context_names(upstream.tree, upstream.names) | context_names(generated.tree, generated.names)
    classes = function.classes if inside else ()
    theirs = in_context(future_imports(upstream.tree), imports, classes, wanted)
    ours = in_context(future_imports(generated.tree), imports, inside, node)
    if theirs is None or ours is None:
        return f"{name}: no code object ({'upstream' if theirs is None else 'generated'})"
    return difference(ours, theirs)


def _header(ours: FunctionNode, theirs: FunctionNode) -> str | None:
    """Decorators, parameters with defaults and annotations, return annotation, kind: as syntax."""
    if type(ours) is not type(theirs):
        return f"{theirs.name}: {type(ours).__name__}, upstream has {type(theirs).__name__}"
    parts: list[tuple[str, Callable[[FunctionNode], list[ast.AST]]]] = [
        ("decorators", lambda n: list(n.decorator_list)),
        ("parameters", lambda n: [n.args]),
        ("return annotation", lambda n: [n.returns] if n.returns else []),
        ("type parameters", lambda n: list(getattr(n, "type_params", ()))),
    ]
    for what, get in parts:
        one, other = ([ast.dump(part) for part in get(n)] for n in (ours, theirs))
        if one != other:
            return f"{theirs.name}: {what} differ from upstream's"
    return None


def _same_lines(upstream: UpstreamFile, function: Function, generated: Generated, node: FunctionNode) -> str | None:
    """Without rebindings every line is upstream's, indentation aside."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    ours = generated.text.split("\n")[first - 1 : node.end_lineno]
    theirs = upstream.lines[function.first_line - 1 : function.node.end_lineno]
    if len(ours) != len(theirs):
        return f"{function.qualname}: {len(ours)} lines, upstream has {len(theirs)}"
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True), first):
        if one.lstrip(" \t\f") != other.lstrip(" \t\f"):
            return f"line {number}: {one.strip()!r}, upstream has {other.strip()!r}"
    return None


def _meanings(
    upstream: UpstreamFile,
    functions: Sequence[Function],
    generated: Generated,
    nodes: Sequence[FunctionNode],
    facts: Sequence[Rebinding],
) -> str | None:
    """Every global name of the generated function leads to the object upstream's name leads to."""
    names = generated.names
    classes = functions[0].classes
    inner = bindings(classes[-1].body, "") if classes else {}
    roots = {fact.new.partition(".")[0] for fact in facts if fact.kind not in {"mangled", "import", "static"}}
    for fact in facts:
        found = _fact_meaning(upstream, functions[0], names, fact)
        if found:
            return found
    future = any(alias.name == "annotations" for n in future_imports(upstream.tree) for alias in n.names)
    for function, node in zip(functions, nodes, strict=True):
        scopes = Scopes(node)
        if scopes.written:
            return f"{function.qualname}: writes {sorted(scopes.written)[0]} in the generated module, not in upstream's"
        for name in sorted(evaluated_here(node, future) & inner.keys() - roots - {node.name}):
            return f"{function.qualname}: {name} of the class body means something else here"
        for name in sorted(scopes.globals - roots - {node.name}):
            found = _global_meaning(upstream, names.get(name), name, inner.keys() if future else ())
            if found:
                return f"{function.qualname}: {found}"
    return None


def evaluated_here(node: FunctionNode, future: bool) -> set[str]:
    """Names that are evaluated where the function is defined: of decorators and defaults, and of annotations if they are."""
    plain = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
    expressions = plain if future else header_expressions(node)
    return {n.id for e in expressions for n in ast.walk(e) if isinstance(n, ast.Name)}


def _global_meaning(upstream: UpstreamFile, got: set[str] | None, name: str, unevaluated: Iterable[str]) -> str | None:
    allowed = _targets(upstream, name)
    if got is None:
        if name in _MODULE_NAMES and name not in unevaluated:
            return f"{name} means the generated module here"
        known = name in unevaluated or (name not in upstream.names_at_run_time and hasattr(builtins, name))
        return None if known else f"{name} is not bound in the generated module"
    if not got <= allowed:
        return f"{name} is {', '.join(sorted(got - allowed))}, upstream has {', '.join(sorted(allowed))}"
    if name in upstream.mutable:
        return f"{name} is imported by value, but upstream assigns it in functions"
    return None


_MODULE_NAMES = {"__name__", "__file__", "__doc__", "__package__", "__spec__", "__loader__"}


def _targets(upstream: UpstreamFile, name: str) -> set[str]:
    """What upstream's global `name` may be reached by: through its own module, or from where that imported it."""
    if name not in upstream.names and hasattr(builtins, name) and name not in _MODULE_NAMES:
        return {f"builtins.{name}"}
    stars = {target[:-1] + name for target in upstream.names.get("*", ())}
    return {f"{upstream.module}.{name}", *upstream.names.get(name, ()), *(stars if name not in upstream.names else ())}


def _fact_meaning(
    upstream: UpstreamFile, function: Function, names: dict[str, set[str]], fact: Rebinding
) -> str | None:
    if fact.kind in {"mangled", "import"}:
        return _spelling(upstream, function, fact)
    if fact.kind == "static":
        hidden = "staticmethod" in upstream.names
        return f"{function.qualname}: `staticmethod` is upstream's own" if hidden or not function.classes else None
    root, _, rest = fact.new.partition(".")
    paths = {f"{target}.{rest}".rstrip(".") for target in names.get(root, ())}
    owner = ".".join([upstream.module, *(c.name for c in function.classes)])
    allowed = {
        "name": _targets(upstream, fact.old) - {DEFINED},
        "globals": {f"{upstream.module}.__dict__"},
        "super": {owner},
        "class": {owner},
        "class-scope": {f"{owner}.{fact.old}"},
    }[fact.kind]
    if not paths or not paths <= allowed:
        return f"{fact.kind} {fact.old}: {fact.new} is {', '.join(sorted(paths)) or 'not bound'}, not {', '.join(sorted(allowed))}"
    return None


def _spelling(upstream: UpstreamFile, function: Function, fact: Rebinding) -> str | None:
    if fact.kind == "mangled":
        right = f"_{function.classes[-1].name.lstrip('_')}{fact.old}" if function.classes else fact.old
    else:
        level = len(fact.old) - len(fact.old.lstrip("."))
        right = absolute(ast.ImportFrom(module=fact.old[level:] or None, names=[], level=level), upstream.package)
    return None if fact.new == right else f"{fact.kind} {fact.old}: {fact.new}, it is {right}"
