"""Random deltas: an operation and an anchor made of a function's own statements, with holes, that matches exactly once."""

from __future__ import annotations

import ast
import builtins
import random
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from afd_patchkit.delta.apply import apply_deltas
from afd_patchkit.fence import MARKER
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Position
from afd_patchkit.model import Code
from afd_patchkit.patterns.compile import compile_pattern
from afd_patchkit.patterns.search import find_all
from afd_patchkit.patterns.select import symbol_windows
from afd_patchkit.source.locate import Symbol
from tools.oracles.proof.engine import Engine

OPERATIONS = {
    "before": "insert", "after": "insert", "start": "insert", "end": "insert", "replace": "replace", "range": "replace",
    "remove": "remove", "expr": "expr", "call": "call", "clause": "clause", "elements": "elements", "parameter": "parameter",
    "returns": "returns", "decorator": "decorator", "rebind": "rebind", "member": "member", "field": "field",
}  # fmt: skip
"""What is drawn, and which operation of the engine's table it is."""
OF_CLASS = ("member", "field", "decorator")
HEADERS = ("parameter", "returns", "decorator", "rebind", "member", "field")
"""What stands where its name says: no statement tells its place."""
_WEIGHTS = {
    "before": 4, "after": 4, "start": 1, "end": 1, "replace": 4, "range": 2, "remove": 3, "expr": 4, "call": 5, "clause": 3,
    "elements": 2, "parameter": 1, "returns": 1, "decorator": 1, "rebind": 1,
}  # fmt: skip
_TRIES = 60
_NTH = 0.15
"""Share of ambiguous anchors that are kept and narrowed by `nth` or `within`."""

Draw = random.Random
Place = Literal["before", "behind", "inside", "clause"]


@dataclass(frozen=True)
class Sample:
    """One delta.

    Attributes:
        operation: one of `OPERATIONS`.
        yaml: the delta as it stands in a manifest.
        anchors: where it stands at the base.
    """

    operation: str
    yaml: str
    anchors: tuple[Anchor, ...]


@dataclass(frozen=True)
class Anchor:
    """One statement that says where a delta stands.

    Attributes:
        place: how the delta's lines stand to it: `before` (they start where it starts), `behind` (they end where it ends),
            `inside` (they are lines of its own), `clause` (they are or add a clause of it).
        line: its first line in the symbol, from 1.
        kind: its node type.
    """

    place: Place
    line: int
    kind: str


def sample(draw: Draw, engine: Engine, symbol: Symbol) -> Sample | None:
    """One delta that applies to the symbol; None when luck has it that none was found."""
    statements = list(_statements(symbol))
    if not statements:
        return None
    for _ in range(_TRIES):
        of_class = isinstance(symbol.node, ast.ClassDef)
        operation = draw.choice(OF_CLASS) if of_class else draw.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        suited = {"clause": _has_clauses, "elements": _has_elements}.get(operation)
        statement = draw.choice([s for s in statements if suited is None or suited(s)] or statements)
        if operation not in ("expr", "call", "elements", *HEADERS) and _is_elif(symbol, statement):
            continue  # patterns of statements do not reach an `elif`
        if operation == "start":
            statement = statements[0]
        elif operation == "end":
            statement = _body(symbol)[-1]
        try:
            made = _MAKERS[operation](draw, symbol, statement)
        except _NotThis:
            continue
        found = Sample(operation, made.yaml, tuple(_anchored(symbol, p, n) for p, n in made.places))
        if _applies(engine, symbol, found):
            return found
    return None


@dataclass(frozen=True)
class _Made:
    yaml: str
    places: tuple[tuple[Place, ast.stmt], ...]


def _anchored(symbol: Symbol, place: Place, node: ast.stmt) -> Anchor:
    return Anchor(place, _line(symbol, node), "elif" if _is_elif(symbol, node) else type(node).__name__)


class _NotThis(Exception):
    """The operation does not suit the statement."""


def _applies(engine: Engine, symbol: Symbol, found: Sample) -> bool:
    try:
        delta = engine.parse(symbol.reference, found.yaml)
        apply_deltas(symbol, [delta], entry="proof", marker=MARKER)
    except PatchkitError:
        return False
    return True


# ---- statements ---------------------------------------------------------------------------------------------------


def _body(symbol: Symbol) -> list[ast.stmt]:
    body: list[ast.stmt] = symbol.node.body  # type: ignore[union-attr]
    first = body[0]
    docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if docstring else body


def _statements(symbol: Symbol) -> Iterator[ast.stmt]:
    """Every statement of the function, at any depth, in order."""
    stack = list(reversed(_body(symbol)))
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(list(_children(node)))


def _children(node: ast.stmt) -> Iterator[ast.stmt]:
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, name, ()):
            if isinstance(child, ast.stmt):
                yield child
            else:
                yield from child.body


def _is_elif(symbol: Symbol, node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and symbol.file.data.startswith(
        b"elif", symbol.file.offset(node.lineno, node.col_offset)
    )


def _line(symbol: Symbol, node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return first - symbol.line_ranges[-1][0] + 1


def _expressions(node: ast.stmt) -> list[ast.expr]:
    """Expressions of the statement itself that are read."""
    found: list[ast.expr] = []
    stack: list[ast.AST] = [
        c for c in ast.iter_child_nodes(node) if not isinstance(c, (ast.stmt, ast.ExceptHandler, ast.match_case))
    ]
    while stack:
        item = stack.pop()
        if isinstance(item, (ast.JoinedStr, ast.pattern)):
            continue
        if isinstance(item, ast.expr) and isinstance(getattr(item, "ctx", ast.Load()), ast.Load):
            found.append(item)
        stack += ast.iter_child_nodes(item)
    return found


# ---- anchors ------------------------------------------------------------------------------------------------------


def _shapes(node: ast.stmt) -> list[str]:
    """Patterns of a statement, some with holes."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        raise _NotThis
    found = [ast.unparse(node)] if not any(True for _ in _children(node)) else []
    value = getattr(node, "value", None)
    call = value.value if isinstance(value, ast.Await) else value
    word = "await " if isinstance(value, ast.Await) else ""
    head = f"{word}{ast.unparse(call.func)}(...)" if isinstance(call, ast.Call) else None
    if isinstance(node, ast.Assign):
        targets = " = ".join(ast.unparse(t) for t in node.targets)
        found += [f"{targets} = ...", *([f"{targets} = {head}", f"... = {head}"] if head else [])]
    elif isinstance(node, ast.AugAssign):
        found.append(re.sub(r"= .*\Z", "= ...", ast.unparse(node), count=1, flags=re.DOTALL))
    elif isinstance(node, ast.Return) and value is not None:
        found += ["return ...", *([f"return {head}"] if head else [])]
    elif isinstance(node, ast.Expr) and head:
        found.append(head)
    elif isinstance(node, ast.Assert):
        found.append(f"assert {ast.unparse(node.test)}" + (", ..." if node.msg else ""))
    elif isinstance(node, (ast.If, ast.While)):
        word = "if" if isinstance(node, ast.If) else "while"
        found.append(f"{word} {ast.unparse(node.test)}: ...")
    elif isinstance(node, ast.For):
        found += [
            f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}: ...",
            f"for {ast.unparse(node.target)} in ...: ...",
        ]
    elif isinstance(node, ast.With):
        found.append(f"with {', '.join(map(ast.unparse, node.items))}: ...")
    return found


@dataclass(frozen=True)
class _Found:
    """A pattern that matches once, perhaps narrowed."""

    pattern: str
    narrowing: str = ""


def _anchor(draw: Draw, symbol: Symbol, shapes: Sequence[str], node: ast.AST, kind: str) -> _Found:
    """One of the shapes that finds `node` alone."""
    shapes = list(shapes)
    draw.shuffle(shapes)
    for shape in shapes:
        try:
            pattern = compile_pattern(Code(shape + "\n", Position("proof")), kind)  # type: ignore[arg-type]
            found = find_all(pattern, symbol_windows(symbol), symbol.file)
        except PatchkitError:
            continue
        places = [n for n, m in enumerate(found) if m.nodes[0] is node]
        if not places:
            continue
        if len(found) == 1:
            return _Found(shape)
        if draw.random() < _NTH:
            return _Found(shape, f"nth: {places[0] + 1}")
        if draw.random() < _NTH and (around := _around(symbol, node)) is not None:
            return _Found(shape, _block("within", around))
    raise _NotThis


def _around(symbol: Symbol, node: ast.AST) -> str | None:
    """A pattern of the innermost compound statement around a node."""
    found = None
    for one in ast.walk(symbol.node):
        if isinstance(one, (ast.If, ast.While, ast.For, ast.With)) and one is not node:
            body = [n for s in one.body for n in ast.walk(s)]
            found = one if any(n is node for n in body) else found
    return None if found is None or _is_elif(symbol, found) else _shapes(found)[0]


def _statement(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Found:
    return _anchor(draw, symbol, _shapes(node), node, "statements")


# ---- code ---------------------------------------------------------------------------------------------------------


def _code(draw: Draw, symbol: Symbol, node: ast.stmt) -> str:
    """A statement to add: it prints, perhaps a local of the statement, and sometimes leaves early."""
    arguments = symbol.node.args  # type: ignore[union-attr]
    bound = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    bound |= {n.id for n in ast.walk(symbol.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    near = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & bound)
    what = f'print("probe", {draw.choice(near)})' if near and draw.random() < 0.6 else 'print("probe")'
    if draw.random() < 0.12:
        return f"if {what}:\n    return"
    return what


def _block(key: str, text: str) -> str:
    return f"{key}: |\n{textwrap.indent(text, '  ')}\n"


def _delta(*parts: str) -> str:
    text = "name: probe\n" + "".join(part if part.endswith("\n") else part + "\n" for part in parts if part)
    first, _, rest = text.partition("\n")
    return f"- {first}\n" + textwrap.indent(rest, "  ")


# ---- operations ---------------------------------------------------------------------------------------------------


def _insert(key: str) -> Callable[[Draw, Symbol, ast.stmt], _Made]:
    place: Place = "before" if key in ("before", "start") else "behind"

    def make(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
        code = _block("insert", _code(draw, symbol, node))
        if key in ("start", "end"):
            return _Made(_delta(f"at: {key}", code), ((place, node),))
        anchor = _statement(draw, symbol, node)
        return _Made(_delta(_block(key, anchor.pattern), anchor.narrowing, code), ((place, node),))

    return make


_BEHIND = '__upstream__\nprint("probe")'
_WITH = (
    'if print("probe"):\n    __upstream__\nelse:\n    print("other")',
    'try:\n    __upstream__\nfinally:\n    print("probe")',
    _BEHIND,
)


def _ends(new: str, first: ast.stmt, last: ast.stmt) -> tuple[tuple[Place, ast.stmt], ...]:
    """Fences hold changed lines only: code behind `__upstream__` stands behind it."""
    return (("behind", last),) if new == _BEHIND else (("before", first), ("behind", last))


def _replace(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    anchor = _statement(draw, symbol, node)
    new = draw.choice((*_WITH, _code(draw, symbol, node)))
    return _Made(
        _delta(_block("replace", anchor.pattern), anchor.narrowing, _block("with", new)), _ends(new, node, node)
    )


def _range(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    for owner in ast.walk(symbol.node):
        for name in ("body", "orelse", "finalbody"):
            suite = getattr(owner, name, None)
            if isinstance(suite, list) and node in suite[:-1]:
                later = suite[suite.index(node) + 1 :][:4]
                first = _statement(draw, symbol, node)
                end = draw.choice(later)
                last = _statement(draw, symbol, end)
                if first.narrowing or last.narrowing:
                    raise _NotThis
                ends = textwrap.indent(_block("from", first.pattern) + _block("to", last.pattern), "  ")
                new = draw.choice((*_WITH, 'print("probe")'))
                return _Made(_delta("replace:\n" + ends, _block("with", new)), _ends(new, node, end))
    raise _NotThis


def _remove(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    anchor = _statement(draw, symbol, node)
    return _Made(_delta(_block("remove", anchor.pattern), anchor.narrowing), _ends("", node, node))


def _expr(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    found = [e for e in _expressions(node) if not isinstance(e, (ast.Constant, ast.Starred, ast.Slice))]
    if not found:
        raise _NotThis
    chosen = draw.choice(found)
    shapes = [ast.unparse(chosen)]
    if isinstance(chosen, ast.Call):
        shapes.append(f"{ast.unparse(chosen.func)}(...)")
    elif isinstance(chosen, ast.Compare) and len(chosen.ops) == 1:
        shapes.append(f"{ast.unparse(chosen.left)} {_OPERATORS[type(chosen.ops[0])]} ...")
    anchor = _anchor(draw, symbol, shapes, chosen, "expression")
    new = draw.choice(("__upstream__ and bool(1)", "print(__upstream__)", "(__upstream__, 1)[0]"))
    return _Made(_delta(_block("expr", anchor.pattern), anchor.narrowing, _block("with", new)), (("inside", node),))


_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def _call(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    calls = [e for e in _expressions(node) if isinstance(e, ast.Call)]
    if not calls:
        raise _NotThis
    chosen = draw.choice(calls)
    anchor = _anchor(draw, symbol, [f"{ast.unparse(chosen.func)}(...)", ast.unparse(chosen)], chosen, "expression")
    parts = [_block("match", anchor.pattern)]
    named = [k.arg for k in chosen.keywords if k.arg]
    choice = draw.randrange(6)
    if choice == 0:
        parts.append('set: {probe: "1"}\n')
    elif choice == 1:
        parts.append("callee: print\n")
    elif choice == 2:
        parts.append('append: ["1"]\n')
    elif choice == 3 and named:
        parts.append(f"drop: [{draw.choice(named)}]\n")
    elif choice == 4 and named:
        parts.append(f"rename: {{{draw.choice(named)}: probe}}\n")
    elif named:
        parts.append(f'set: {{{draw.choice(named)}: "None"}}\n')
    else:
        raise _NotThis
    return _Made(_delta("call:\n" + textwrap.indent("".join(parts), "  "), anchor.narrowing), (("inside", node),))


def _clause(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    if isinstance(node, ast.If):
        change = draw.choice(
            (
                _block("add", 'elif print("probe"):\n    pass'),
                _block("first", 'if print("probe"):\n    pass'),
                _block("add", "else:\n    print()"),
            )
        )
        shapes = [f"if {ast.unparse(node.test)}: ..."]
    elif isinstance(node, ast.Try):
        change = draw.choice((_block("add", "except ValueError:\n    pass"), _block("add", "finally:\n    print()")))
        shapes = (
            [f"try:\n    {ast.unparse(node.body[0])}\n    ..."]
            if not any(True for _ in _children(node.body[0]))
            else ["try: ..."]
        )
    else:
        raise _NotThis
    anchor = _anchor(draw, symbol, shapes, node, "statements")
    if anchor.narrowing:
        raise _NotThis
    return _Made(
        _delta("clause:\n" + textwrap.indent(_block("of", anchor.pattern) + change, "  ")), (("clause", node),)
    )


def _has_clauses(node: ast.stmt) -> bool:
    return isinstance(node, (ast.If, ast.Try))


def _has_elements(node: ast.stmt) -> bool:
    return any(isinstance(e, (ast.Tuple, ast.List, ast.Set)) and e.elts for e in _expressions(node))


def _elements(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    found = [e for e in _expressions(node) if isinstance(e, (ast.Tuple, ast.List, ast.Set)) and e.elts]
    if not found:
        raise _NotThis
    chosen = draw.choice(found)
    if isinstance(node, (ast.Return, ast.Assign)) and node.value is chosen and draw.random() < 0.5:
        anchor = _anchor(draw, symbol, _shapes(node), node, "statements")
    else:
        anchor = _anchor(draw, symbol, [ast.unparse(chosen)], chosen, "expression")
    element = ast.unparse(draw.choice(chosen.elts))
    change = draw.choice((_block("add", 'print("probe")'), _block("remove", element), _block("replace", element)))
    new = _block("with", "(__upstream__, 1)[0]") if change.startswith("replace") else ""
    parts = textwrap.indent(_block("of", anchor.pattern) + change, "  ")
    return _Made(_delta("elements:\n" + parts, anchor.narrowing, new), (("inside", node),))


# ---- headers and classes ------------------------------------------------------------------------------------------


def _header(*ways: str) -> Callable[[Draw, Symbol, ast.stmt], _Made]:
    return lambda draw, symbol, node: _Made(_delta(draw.choice(ways)), ())


def _parameter(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    arguments = symbol.node.args  # type: ignore[union-attr]
    ways = ["kind: keyword-only\nadd: |\n  probe=None\n", "add: |\n  probe=None\n"]
    ways += [f"remove: {a.arg}\n" for a in arguments.kwonlyargs]
    return _Made(_delta("parameter:\n" + textwrap.indent(draw.choice(ways), "  ")), ())


def _rebind(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    names = [n for n in ast.walk(symbol.node) if isinstance(n, ast.Name)]
    bound = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | {
        a.arg for a in ast.walk(symbol.node) if isinstance(a, ast.arg)
    }
    called = {n.func.id for n in ast.walk(symbol.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    free = sorted(called - bound - set(dir(builtins)))
    if not free:
        raise _NotThis
    return _Made(_delta(f'rebind: {{{draw.choice(free)}: "print"}}'), ())


def _member(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    methods = [n for n in symbol.node.body if isinstance(n, ast.FunctionDef) and not n.decorator_list]  # type: ignore[union-attr]
    ways = ["add: |\n  def probe(self):\n      return 1\n"]
    ways += [f"remove: {n.name}\n" for n in methods[:1]]
    return _Made(_delta("member:\n" + textwrap.indent(draw.choice(ways), "  ")), ())


def _field(draw: Draw, symbol: Symbol, node: ast.stmt) -> _Made:
    fields = [n for n in symbol.node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]  # type: ignore[union-attr]
    ways = ["add: |\n  probe: int = 1\n"]
    ways += [f"remove: {n.target.id}\n" for n in fields[:3] if isinstance(n.target, ast.Name)]
    return _Made(_delta("field:\n" + textwrap.indent(draw.choice(ways), "  ")), ())


_MAKERS: dict[str, Callable[[Draw, Symbol, ast.stmt], _Made]] = {
    "before": _insert("before"),
    "after": _insert("after"),
    "start": _insert("start"),
    "end": _insert("end"),
    "replace": _replace,
    "range": _range,
    "remove": _remove,
    "expr": _expr,
    "call": _call,
    "clause": _clause,
    "elements": _elements,
    "parameter": _parameter,
    "returns": _header('returns: "object"', "returns: none"),
    "decorator": _header('decorator: {add: "print"}'),
    "rebind": _rebind,
    "member": _member,
    "field": _field,
}


def elided(yaml: str) -> str:
    """The delta with every run of upstream's text cut to a short excerpt."""
    out = []
    for line in yaml.split("\n"):
        text = line.lstrip()
        out.append(line if len(text) <= 60 or "probe" in text else f"{line[: len(line) - len(text)]}{text[:57]}...")
    return "\n".join(out)
