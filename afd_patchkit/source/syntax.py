"""What Python's syntax nodes are to the engine: blocks of a statement, names that a node binds, equality of two trees.

A new kind of node is made known here, in `keywords`, and where it has a meaning of its own (patterns, scopes).
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from afd_patchkit.source.keywords import frames

Node = TypeVar("Node", bound=ast.AST)

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITION = (*FUNCTION, ast.ClassDef)
TRY: tuple[type[ast.Try], ...] = (ast.Try, *([ast.TryStar] if hasattr(ast, "TryStar") else ()))  # type: ignore[attr-defined,unused-ignore]
"""`try` with `except`, and from Python 3.11 on with `except*`."""
LOOP = (ast.For, ast.AsyncFor, ast.While)
CLAUSES: dict[type[ast.AST], str] = {ast.ExceptHandler: "except", ast.match_case: "case"}
"""Nodes between a statement and its blocks, and the keywords that they begin with."""
CLAUSE = tuple(CLAUSES)
CHOICE = (ast.If, ast.Match)
"""Statements of whose blocks one runs, or none."""
CAPTURES = (ast.MatchAs, ast.MatchStar, ast.MatchMapping)
"""Patterns that may bind a name of their own."""
TYPE_ALIAS: tuple[type[Any], ...] = (ast.TypeAlias,) if hasattr(ast, "TypeAlias") else ()  # type: ignore[attr-defined,unused-ignore]
"""`type X = ...`, from Python 3.12 on."""
TYPE_PARAMETERS = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple"})

# ---- blocks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """One statement list directly below a node.

    Attributes:
        name: the field that holds it, numbered where there are several: `body`, `handlers 0`, `cases 1`.
        body: its statements; never empty.
        owner: the node whose `body`, `orelse` or `finalbody` it is: the statement, one of its handlers, or a case.
    """

    name: str
    body: list[ast.stmt]
    owner: ast.AST


def blocks(node: ast.AST) -> Iterator[Block]:
    """The statement lists directly below a statement, clause or module, in the order of the text."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        found = getattr(node, name, None)
        if not isinstance(found, list) or not found:
            continue
        if isinstance(found[0], ast.stmt):
            yield Block(name, found, node)
        else:
            yield from (Block(f"{name} {number}", clause.body, clause) for number, clause in enumerate(found))


def nodes(*roots: ast.AST) -> Iterator[ast.AST]:
    """All nodes of some trees, the roots included, in no order of use; quicker than `ast.walk`."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                stack.append(value)
            elif isinstance(value, list):
                stack += [item for item in value if isinstance(item, ast.AST)]


def clauses_only(node: ast.AST) -> bool:
    """Whether a statement has no block but those of its clauses, as `match` has."""
    first = next(blocks(node), None)
    return first is not None and first.owner is not node


def line_of(node: ast.AST) -> int:
    """The line that a node starts on; that of a clause which Python gives no place is its first part's."""
    placed = node if hasattr(node, "lineno") else next(ast.iter_child_nodes(node), node)
    return int(getattr(placed, "lineno", 1))


def branches(node: ast.stmt) -> list[list[ast.stmt]]:
    """The ways through a statement of which control takes one, before a `finally`; empty where it may take none of them.

    None for statements that leave nothing to choose, and for loops.
    """
    if isinstance(node, ast.If):
        return [node.body, node.orelse]
    if isinstance(node, TRY):
        return [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)]
    if isinstance(node, ast.Match):
        last = node.cases[-1]
        takes_all = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
        return [*(case.body for case in node.cases), *([] if takes_all else [[]])]
    return []


def own_parts(node: ast.AST) -> list[ast.AST]:
    """What stands directly below a statement or clause outside its blocks and clauses: its head's parts, or all of it."""
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, *CLAUSE))]


def typing_block(test: ast.expr) -> Literal["body", "orelse"] | None:
    """The block of an `if` that only type checkers see: the test is `TYPE_CHECKING` of any module, or `not` that."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        hidden = typing_block(test.operand)
        return None if hidden is None else "orelse" if hidden == "body" else "body"
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
    return "body" if name == "TYPE_CHECKING" else None


def docstring_of(body: Sequence[ast.stmt]) -> ast.stmt | None:
    """The docstring statement of a body, if it has one."""
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first
    return None


# ---- names ----------------------------------------------------------------------------------------------------------

Carrier = Literal["name", "param", "def", "except", "capture", "rest", "alias", "type"]


def binding(node: ast.AST) -> tuple[str, Carrier] | None:
    """The name that a node itself binds, and how it carries it; None for `import *` and for what binds nothing."""
    if isinstance(node, ast.Name):
        return (node.id, "name") if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.arg):
        return node.arg, "param"
    if isinstance(node, DEFINITION):
        return node.name, "def"
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0], "alias") if node.name != "*" else None
    if isinstance(node, ast.ExceptHandler):
        return (node.name, "except") if node.name else None
    if isinstance(node, ast.MatchMapping):
        return (node.rest, "rest") if node.rest else None
    if isinstance(node, (ast.MatchAs, ast.MatchStar)):
        return (node.name, "capture") if node.name else None
    if type(node).__name__ in TYPE_PARAMETERS:
        return node.name, "type"  # type: ignore[attr-defined]
    return None


def clause_names(clause: ast.AST) -> Iterator[str]:
    """The names that the head of a clause binds, without `:=`."""
    patterns = [part for part in own_parts(clause) if isinstance(part, ast.pattern)]
    for node in (clause, *(inner for pattern in patterns for inner in ast.walk(pattern))):
        if (found := binding(node)) is not None:
            yield found[0]


def target_names(node: ast.expr) -> Iterator[str]:
    """The names that an assignment to `node` binds."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from target_names(item)
    elif isinstance(node, ast.Starred):
        yield from target_names(node.value)


def bound_names(node: ast.stmt, *, declared: bool = False) -> Iterator[str]:
    """The names that a statement binds in its own scope, without its blocks, without `import *` and `:=`.

    Args:
        node: the statement.
        declared: an annotation without a value counts, too.
    """
    if isinstance(node, DEFINITION):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            if alias.name != "*":
                yield alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from target_names(target)
    elif isinstance(node, ast.AnnAssign):
        if declared or node.value is not None:
            yield from target_names(node.target)
    elif isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor)):
        yield from target_names(node.target)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield from target_names(item.optional_vars)
    elif isinstance(node, (ast.Match, *TRY)):
        yield from (name for block in blocks(node) if block.owner is not node for name in clause_names(block.owner))
    elif isinstance(node, TYPE_ALIAS):
        yield from target_names(node.name)


# ---- equality -------------------------------------------------------------------------------------------------------

_IGNORED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def same(one: Any, other: Any) -> bool:
    """Whether two trees, or values of a field, mean the same to Python: positions, contexts and string prefixes aside."""
    if isinstance(one, ast.AST):
        return type(one) is type(other) and all(
            same(getattr(one, name, None), getattr(other, name, None)) for name in one._fields if name not in _IGNORED
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return same_value(one, other)


def same_value(one: object, other: object) -> bool:
    """Whether two constants or identifiers are the same code: `1 == True` and `0.0 == -0.0` are not."""
    if type(one) is not type(other):
        return False
    return repr(one) == repr(other) if isinstance(one, (float, complex)) else bool(one == other)


def same_code(one: str, other: str) -> bool:
    """Whether two texts are the same code, layout, quotes and redundant parentheses aside: statements, expressions, heads."""
    a, b = _parsed(one), _parsed(other)
    return a is not None and b is not None and same(a, b)


def _parsed(text: str) -> ast.AST | None:
    plain = textwrap.dedent(text).strip()
    texts = [frame.text for frame in frames(plain)]
    for one in (plain, f"(\n{plain}\n)", *texts[1:], *(f"{framed} pass" for framed in texts)):
        try:
            return ast.parse(one)
        except (SyntaxError, ValueError):
            continue
    return _cut_out(plain)


def _cut_out(text: str) -> ast.AST | None:
    """Statements whose first line is without the indentation that the others have."""
    later = [line for line in text.split("\n")[1:] if line.strip()]
    column = min((len(line) - len(line.lstrip()) for line in later), default=0)
    if not column:
        return None
    try:
        holder = ast.parse(f"if x:\n{' ' * column}{text}").body[0]
    except (SyntaxError, ValueError):
        return None
    return ast.Module(holder.body, [])  # type: ignore[attr-defined]


def filled(root: Node, new: Mapping[int, ast.AST]) -> Node:
    """A copy of `root` in which the nodes with the given ids are replaced; what is not on the way to them is shared."""
    found = _filled(root, new)
    return root if found is None else found  # type: ignore[return-value]


def _filled(node: ast.AST, new: Mapping[int, ast.AST]) -> ast.AST | None:
    """The changed copy, or None where nothing changes."""
    if id(node) in new:
        return new[id(node)]
    changed: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            copy = _filled(value, new)
            if copy is not None:
                changed[name] = copy
        elif isinstance(value, list):
            copies = [_filled(item, new) if isinstance(item, ast.AST) else None for item in value]
            if any(item is not None for item in copies):
                changed[name] = [old if item is None else item for old, item in zip(value, copies, strict=True)]
    if not changed:
        return None
    fields = dict(ast.iter_fields(node)) | changed
    copy_of = type(node)(**fields)
    return ast.copy_location(copy_of, node) if hasattr(node, "lineno") else copy_of
