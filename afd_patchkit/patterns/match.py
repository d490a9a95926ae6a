"""Whether a piece of pattern equals a piece of upstream: Python-AST equality with placeholders.

Not compared: positions, contexts, type comments, string prefixes. Everything else is, constants by type and value.
`patterns` has the rules that users see.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from afd_patchkit.source.syntax import same_value

# Stand for `...` where Python's grammar wants a name. Three characters wide, like `...`, so that columns stay.
HOLE = "\ua66e" * 3
MANY_HOLE = "\ua66d" * 3

_T = TypeVar("_T")
_IGNORED = frozenset({"ctx", "type_comment", "type_ignores"})
_MANY_FIELDS = frozenset(
    {"elts", "targets:Delete", "decorator_list", "body", "orelse", "finalbody", "items", "patterns"}
)


def is_hole(node: object) -> bool:
    """Whether a pattern's expression is `...`."""
    if isinstance(node, ast.Name):
        return node.id == HOLE
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def is_statement_hole(node: object) -> bool:
    """Whether a pattern's statement is `...`."""
    return isinstance(node, ast.Expr) and is_hole(node.value)


def only_hole(body: Sequence[ast.stmt]) -> bool:
    """Whether a pattern's suite is exactly `...`."""
    return len(body) == 1 and is_statement_hole(body[0])


def equal(pattern: Any, node: Any) -> bool:
    """Whether `node` (a node, or a field's value) is what `pattern` says."""
    if isinstance(pattern, ast.AST):
        if is_hole(pattern):
            return isinstance(node, ast.expr)
        special = _SPECIAL.get(type(pattern).__name__)
        if special is not None:
            return special(pattern, node)
        return type(pattern) is type(node) and _fields(pattern, node)
    if isinstance(pattern, list):
        return isinstance(node, list) and len(pattern) == len(node) and all(map(equal, pattern, node))
    if pattern == HOLE:
        return isinstance(node, str)
    return same_value(pattern, node)


def sequence(
    pattern: Sequence[_T],
    nodes: Sequence[_T],
    hole: Callable[[_T], bool],
    same: Callable[[_T, _T], bool],
    *,
    start: int = 0,
    whole: bool = True,
    least: int = 0,
) -> int | None:
    """Match a list in which a hole stands for `least` or more items.

    Args:
        pattern: the pattern's items.
        nodes: the items to match, from `start` on.
        hole: whether an item of the pattern is a hole.
        same: whether an item equals one of the pattern that is no hole.
        start: first item.
        whole: all items up to the end must match; otherwise the shortest run that does.
        least: how many items a hole stands for at least.

    Returns:
        The end of the match, None if there is none.
    """
    parts: list[list[_T]] = [[]]
    for item in pattern:
        if hole(item):
            parts.append([])
        else:
            parts[-1].append(item)

    def fits(part: list[_T], at: int) -> bool:
        return at + len(part) <= len(nodes) and all(same(p, nodes[at + i]) for i, p in enumerate(part))

    if not fits(parts[0], start):
        return None
    at = start + len(parts[0])
    for number, part in enumerate(parts[1:], 1):
        at += least
        if whole and number == len(parts) - 1:
            last = len(nodes) - len(part)
            return len(nodes) if last >= at and fits(part, last) else None
        # Leftmost is enough: holes capture nothing, so what an earlier part leaves can only help the later ones.
        found = next((i for i in range(at, len(nodes) - len(part) + 1) if fits(part, i)), None)
        if found is None:
            return None
        at = found + len(part)
    return at if not whole or at == len(nodes) else None


def statements(
    pattern: Sequence[ast.stmt], nodes: Sequence[ast.stmt], start: int = 0, *, whole: bool = True
) -> int | None:
    """End of the run of `nodes` that matches `pattern` from `start` on (see `sequence`).

    Args:
        pattern: statements of the pattern.
        nodes: siblings to match.
        start: number of the first of `nodes` that may match.
        whole: all of `nodes` up to the end must match; otherwise the shortest run that does.
    """
    return sequence(pattern, nodes, is_statement_hole, equal, start=start, whole=whole)


def _fields(pattern: ast.AST, node: ast.AST, skip: frozenset[str] = frozenset()) -> bool:
    return all(
        _field(pattern, name, getattr(pattern, name, None), getattr(node, name, None))
        for name in pattern._fields
        if name not in _IGNORED and name not in skip
    )


def _field(owner: ast.AST, name: str, pattern: Any, node: Any) -> bool:
    many = name in _MANY_FIELDS or f"{name}:{type(owner).__name__}" in _MANY_FIELDS
    if many and isinstance(pattern, list) and isinstance(node, list):
        if pattern and isinstance(pattern[0], ast.stmt):
            return statements(pattern, node) is not None
        return sequence(pattern, node, _element_hole, equal) is not None
    return equal(pattern, node)


def _element_hole(item: ast.AST) -> bool:
    if isinstance(item, ast.withitem):
        return item.optional_vars is None and is_hole(item.context_expr)
    if isinstance(item, ast.MatchAs):
        return _pattern_hole(item)
    return is_hole(item)


# ---- expressions ----------------------------------------------------------------------------------------------


def _constant(pattern: ast.Constant, node: Any) -> bool:
    if not isinstance(node, ast.Constant):
        return False
    a, b = pattern.value, node.value
    if type(a) is not type(b):
        return False
    return repr(a) == repr(b) if isinstance(a, (float, complex)) else bool(a == b)


def _name(pattern: ast.Name, node: Any) -> bool:
    if pattern.id == "Ellipsis" and isinstance(node, ast.Constant) and node.value is Ellipsis:
        return True
    return isinstance(node, ast.Name) and pattern.id == node.id


def _joined(pattern: ast.JoinedStr, node: Any) -> bool:
    return type(pattern) is type(node) and equal(_pieces(pattern), _pieces(node))


def _pieces(joined: ast.JoinedStr) -> list[ast.expr]:
    """The values of an f-string with neighbouring literal pieces joined (implicit concatenation)."""
    pieces: list[ast.expr] = []
    for value in joined.values:
        last = pieces[-1] if pieces else None
        if isinstance(value, ast.Constant) and isinstance(last, ast.Constant):
            pieces[-1] = ast.Constant(last.value + value.value)  # type: ignore[operator]
        else:
            pieces.append(value)
    return [p for p in pieces if not (isinstance(p, ast.Constant) and p.value == "")]


def _bool_op(pattern: ast.BoolOp, node: Any) -> bool:
    if not isinstance(node, ast.BoolOp) or type(pattern.op) is not type(node.op):
        return False
    return sequence(pattern.values, node.values, is_hole, equal, least=1) is not None


def _call(pattern: ast.Call, node: Any) -> bool:
    return (
        isinstance(node, ast.Call)
        and equal(pattern.func, node.func)
        and _arguments(pattern.args, pattern.keywords, node.args, node.keywords)
    )


def _arguments(
    pattern: list[ast.expr], pattern_keywords: list[ast.keyword], args: list[ast.expr], keywords: list[ast.keyword]
) -> bool:
    if sequence(pattern, args, is_hole, equal) is None:
        return False
    wanted = [k for k in pattern_keywords if not _many(k.value)]
    if len(wanted) < len(pattern_keywords) or any(map(is_hole, pattern)):
        return _subset(wanted, keywords)
    return equal(wanted, keywords)


def _subset(wanted: list[ast.keyword], keywords: list[ast.keyword]) -> bool:
    """Whether each wanted keyword has one of its own among `keywords`."""
    fitting = [[i for i, keyword in enumerate(keywords) if equal(one, keyword)] for one in wanted]
    taken: dict[int, int] = {}

    def finds(number: int, tried: set[int]) -> bool:
        for i in fitting[number]:
            if i not in tried:
                tried.add(i)
                if i not in taken or finds(taken[i], tried):
                    taken[i] = number
                    return True
        return False

    return all(finds(number, set()) for number in range(len(wanted)))


def _many(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Name) and node.id == MANY_HOLE


def _dict(pattern: ast.Dict, node: Any) -> bool:
    if not isinstance(node, ast.Dict):
        return False
    return (
        sequence(
            list(zip(pattern.keys, pattern.values, strict=True)),
            list(zip(node.keys, node.values, strict=True)),
            lambda item: item[0] is None and _many(item[1]),
            lambda p, n: equal(p[0], n[0]) and equal(p[1], n[1]),
        )
        is not None
    )


def _set(pattern: ast.Set, node: Any) -> bool:
    if isinstance(node, ast.Dict):  # `{...}` does not say which of the two
        return all(map(is_hole, pattern.elts))
    return isinstance(node, ast.Set) and _fields(pattern, node)


# ---- parameters -----------------------------------------------------------------------------------------------

_Parameter = tuple[str, ast.arg, "ast.expr | None"]


def parameters(arguments: ast.arguments) -> list[_Parameter]:
    """The parameters in order, each with its kind and default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    found: list[_Parameter] = [
        ("positional-only" if i < len(arguments.posonlyargs) else "positional", arg, default)
        for i, (arg, default) in enumerate(zip(positional, defaults, strict=True))
    ]
    if arguments.vararg:
        found.append(("*", arguments.vararg, None))
    found += [("keyword-only", arg, d) for arg, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg:
        found.append(("**", arguments.kwarg, None))
    return found


def _parameter_hole(item: _Parameter) -> bool:
    return item[0] not in ("*", "**") and item[1].arg == HOLE


def _parameters(pattern: ast.arguments, node: Any) -> bool:
    if not isinstance(node, ast.arguments):
        return False
    items = parameters(pattern)
    first = next((i for i, item in enumerate(items) if _parameter_hole(item)), len(items))
    # Behind a hole the `*` may be among what it stands for, in front of one the `/`.
    before = {id(item[1]) for item in items[:first]} if first < len(items) else set()
    behind = {id(item[1]) for item in items[first + 1 :]}

    def same(p: _Parameter, n: _Parameter) -> bool:
        loose = (id(p[1]) in behind and (p[0], n[0]) == ("positional", "keyword-only")) or (
            id(p[1]) in before and (p[0], n[0]) == ("positional", "positional-only")
        )
        return (p[0] == n[0] or loose) and equal(p[1], n[1]) and equal(p[2], n[2])

    return sequence(items, parameters(node), _parameter_hole, same) is not None


# ---- statements -----------------------------------------------------------------------------------------------


def _definition(pattern: Any, node: Any) -> bool:
    if type(pattern) is not type(node):
        return False
    free = {"decorator_list", "returns", "type_params"} if only_hole(pattern.body) else set()
    skip = {name for name in free if not getattr(pattern, name, None)}
    if isinstance(pattern, ast.ClassDef):
        skip |= {"bases", "keywords"}
        if not _arguments(pattern.bases, pattern.keywords, node.bases, node.keywords):
            return False
    return _fields(pattern, node, frozenset(skip))


def _looped(pattern: Any, node: Any) -> bool:
    """`if`, `for`, `while`: the `else` is open behind a suite that is exactly `...`."""
    if type(pattern) is not type(node) or not _fields(pattern, node, frozenset({"orelse"})):
        return False
    return _tail(pattern.orelse, node.orelse, only_hole(pattern.body))


def _tail(pattern: list[ast.stmt], node: list[ast.stmt], free: bool) -> bool:
    if not pattern:
        return free or not node
    return bool(node) and statements(pattern, node) is not None


def _try(pattern: Any, node: Any) -> bool:
    if type(pattern) is not type(node) or statements(pattern.body, node.body) is None:
        return False
    free = only_hole(pattern.body)
    handlers = node.handlers[: len(pattern.handlers)] if free else node.handlers
    return (
        equal(pattern.handlers, handlers)
        and _tail(pattern.orelse, node.orelse, free)
        and ((free and only_mark(pattern.finalbody)) or _tail(pattern.finalbody, node.finalbody, free))
    )


def only_mark(body: Sequence[ast.stmt]) -> bool:
    """Whether a `finally` was only added to make `try: ...` parse."""
    return len(body) == 1 and isinstance(body[0], ast.Expr) and _many(body[0].value)


def handler(pattern: ast.ExceptHandler, node: Any, *, suite: bool = True) -> bool:
    """Whether an `except` clause matches; `except ...` alone stands for any that names an exception."""
    if not isinstance(node, ast.ExceptHandler) or (suite and statements(pattern.body, node.body) is None):
        return False
    if pattern.name is None and pattern.type is not None and is_hole(pattern.type):
        return node.type is not None
    return equal(pattern.type, node.type) and equal(pattern.name, node.name)


def case(pattern: ast.match_case, node: Any, *, suite: bool = True) -> bool:
    """Whether a `case` clause matches; `case ...` alone stands for any pattern with any guard."""
    if not isinstance(node, ast.match_case) or (suite and statements(pattern.body, node.body) is None):
        return False
    if pattern.guard is None and _pattern_hole(pattern.pattern):
        return True
    return equal(pattern.pattern, node.pattern) and equal(pattern.guard, node.guard)


def with_items(pattern: Any, node: Any) -> bool:
    """Whether the items of a `with` match."""
    return sequence(pattern.items, node.items, _element_hole, equal) is not None


def _match(pattern: ast.Match, node: Any) -> bool:
    if not isinstance(node, ast.Match) or not equal(pattern.subject, node.subject):
        return False

    def hole(item: ast.match_case) -> bool:
        return item.guard is None and _pattern_hole(item.pattern) and only_hole(item.body)

    return sequence(pattern.cases, node.cases, hole, case) is not None


def _pattern_hole(pattern: ast.AST) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name == HOLE


def _match_as(pattern: ast.MatchAs, node: Any) -> bool:
    if _pattern_hole(pattern):
        return isinstance(node, ast.pattern)
    return isinstance(node, ast.MatchAs) and _fields(pattern, node)


def _match_class(pattern: ast.MatchClass, node: Any) -> bool:
    if not isinstance(node, ast.MatchClass) or not equal(pattern.cls, node.cls):
        return False
    if sequence(pattern.patterns, node.patterns, _element_hole, equal) is None:
        return False
    wanted = [(a, p) for a, p in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True) if a != HOLE]
    given = dict(zip(node.kwd_attrs, node.kwd_patterns, strict=True))
    if len(wanted) < len(pattern.kwd_attrs) or any(map(_element_hole, pattern.patterns)):
        return all(a in given and equal(p, given[a]) for a, p in wanted)
    return [a for a, _ in wanted] == node.kwd_attrs and all(equal(p, given[a]) for a, p in wanted)


def _annotated(pattern: ast.AnnAssign, node: Any) -> bool:
    skip = frozenset({"simple"}) if is_hole(pattern.target) else frozenset()
    return isinstance(node, ast.AnnAssign) and _fields(pattern, node, skip)


_SPECIAL: dict[str, Callable[[Any, Any], bool]] = {
    "Constant": _constant,
    "Name": _name,
    "JoinedStr": _joined,
    "BoolOp": _bool_op,
    "Call": _call,
    "Dict": _dict,
    "Set": _set,
    "arguments": _parameters,
    "FunctionDef": _definition,
    "AsyncFunctionDef": _definition,
    "ClassDef": _definition,
    "If": _looped,
    "For": _looped,
    "AsyncFor": _looped,
    "While": _looped,
    "Try": _try,
    "TryStar": _try,
    "ExceptHandler": handler,
    "match_case": case,
    "Match": _match,
    "MatchAs": _match_as,
    "MatchClass": _match_class,
    "AnnAssign": _annotated,
}
