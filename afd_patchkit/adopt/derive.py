"""Two texts of one function become deltas: the smallest operation that says each change, each tried before it is taken."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from afd_patchkit.adopt.anchors import Anchors
from afd_patchkit.adopt.texts import CodeText, Texts
from afd_patchkit.adopt.wraps import KeptText, kept_as_a_whole, kept_in_pieces
from afd_patchkit.adopt.yaml_text import manifest_text
from afd_patchkit.copies.canonical import Canonical, canonical, key, origin, owner_of
from afd_patchkit.copies.difference import Contrast, Spot, compare, spots
from afd_patchkit.copies.meaning import FileNames, Lead, Leads
from afd_patchkit.delta.apply import Applied, apply_deltas
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding
from afd_patchkit.manifest.load import parse_manifest
from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.syntax import FUNCTION, blocks
from afd_patchkit.source.text import SourceFile, load_source

Keys = dict[str, Any]
"""A delta as a manifest has it, without its name."""


@dataclass(frozen=True)
class Draft:
    """One derived delta.

    Attributes:
        name: its name.
        keys: its operation and what goes with it.
        change: what it is made from.
    """

    name: str
    keys: Keys
    change: Contrast | None = None

    @property
    def operation(self) -> str:
        """The name of its operation."""
        return next(iter(self.keys))

    def data(self) -> Keys:
        """The delta as a mapping."""
        return {"name": self.name, **self.keys}


@dataclass
class Derived:
    """What two texts of a function came to.

    Attributes:
        drafts: the deltas, in order; they apply together.
        equal: whether they give the wanted function, name for name where each leads.
        frozen: findings about upstream text that they repeat.
        late: names that the wanted function reads through their module.
        why: what stands in the way when `equal` is False.
    """

    drafts: list[Draft] = field(default_factory=list)
    equal: bool = False
    frozen: tuple[Finding, ...] = ()
    late: tuple[str, ...] = ()
    why: str = ""


def derive(
    symbol: Symbol,
    base: Canonical,
    wanted: Canonical,
    file: SourceFile,
    meaning: Leads,
    *,
    name_of: Callable[[Contrast], str],
    locals_: Mapping[str, str] | None = None,
    known: Mapping[str, Lead] | None = None,
    head: Sequence[tuple[str, Keys]] = (),
) -> Derived:
    """The deltas that make the wanted function of upstream's.

    Args:
        symbol: upstream's function.
        base: it in canonical form.
        wanted: the wanted function in canonical form.
        file: the file that it was read from.
        meaning: follows names.
        name_of: names the delta of a change.
        locals_: renamed locals of the wanted function, to upstream's names.
        known: names that delta code may use besides upstream's own, and where each leads.
        head: deltas of parameters and decorators, with their names.
    """
    return _Deriver(symbol, base, wanted, file, meaning, name_of, locals_ or {}, known or {}).run(head)


class _Deriver:
    def __init__(
        self,
        symbol: Symbol,
        base: Canonical,
        wanted: Canonical,
        file: SourceFile,
        meaning: Leads,
        name_of: Callable[[Contrast], str],
        locals_: Mapping[str, str],
        known: Mapping[str, Lead],
    ) -> None:
        self.symbol, self.base, self.wanted, self.meaning = symbol, base, wanted, meaning
        self.name_of, self.known = name_of, known
        self.anchors = Anchors(symbol)
        names = FileNames(symbol.file, meaning)
        bound = module_bindings(symbol.file)
        self.upstream = {name: names.lead(name).dotted for name in bound}
        self.texts = Texts(file, wanted, self.upstream, locals_)
        self.used: dict[str, int] = {}

    def run(self, head: Sequence[tuple[str, Keys]]) -> Derived:
        changes = compare(self.base, self.wanted)
        chosen = [list(self.options(change)) for change in changes]
        picked = [self._first(options) for options in chosen]
        changes, picked = _without_covered(changes, picked)
        missing = [c for c, keys in zip(changes, picked, strict=True) if not keys]
        drafts = [Draft(self._named(name), keys) for name, keys in head]
        drafts += [
            Draft(self._named(self.name_of(change)), keys, change)
            for change, group in zip(changes, picked, strict=True)
            for keys in group
        ]
        if missing:
            return Derived(drafts, why="no operation says the change in " + _where(missing[0]))
        applied = self.applied(drafts)
        if isinstance(applied, str):
            return Derived(drafts, why=applied)
        frozen = tuple(applied.findings)
        late = tuple(sorted(self._late()))
        if (why := self.differs(applied)) is not None:
            return Derived(drafts, False, frozen, late, why)
        return Derived(drafts, True, frozen, late)

    def _late(self) -> Iterator[str]:
        """Upstream's own globals that the wanted function reads through their module, and never as they are."""
        read = set(self.wanted.free)
        leads = {dotted: name for name, dotted in self.upstream.items()}
        for dotted in self.wanted.late:
            name = leads.get(dotted)
            if name is not None and name in self.base.free and name not in read:
                yield name

    def _named(self, name: str) -> str:
        self.used[name] = self.used.get(name, 0) + 1
        return name if self.used[name] == 1 else f"{name}, {self.used[name]}"

    # ---- trying ---------------------------------------------------------------------------------------------

    def _first(self, options: Sequence[list[Keys]]) -> list[Keys]:
        """The first that applies and repeats nothing; else the first that applies."""
        applies: list[Keys] = []
        for option in options:
            drafts = [Draft(f"try {n}", keys) for n, keys in enumerate(option)]
            applied = self.applied(drafts)
            if isinstance(applied, str):
                continue
            if not applied.findings:
                return option
            applies = applies or option
        return applies

    def applied(self, drafts: Sequence[Draft]) -> Applied | str:
        """The deltas applied; else what is wrong with them."""
        data = {
            "schema": 1,
            "module": "m.py",
            "summary": "s",
            "pin": "p",
            "entries": [
                {"symbol": CodeText(self.symbol.reference), "reason": "r", "deltas": [d.data() for d in drafts]}
            ],
        }
        if not drafts:
            del data["entries"][0]["deltas"]  # type: ignore[index]
        try:
            entry = parse_manifest(manifest_text(data).encode(), "m.yaml").entries[0]
            return apply_deltas(self.symbol, entry.deltas, entry="m.py::f")  # type: ignore[union-attr]
        except PatchkitError as error:
            return error.findings[0].message

    def differs(self, applied: Applied) -> str | None:
        """What the patched text lacks of the wanted function, each name by where it leads; None when it is the same."""
        text = applied.buffer.text
        made = load_source(text.encode(), pin="-", path=self.symbol.file.path)
        node = made.tree.body[0]
        assert isinstance(node, FUNCTION)
        bound = module_bindings(self.symbol.file)
        extra = {n: lead for n, lead in self.known.items() if n not in bound}
        names = FileNames(self.symbol.file, self.meaning, extra)
        owner = owner_of(self.symbol.file, self.symbol.classes)
        private = self.symbol.classes[-1].name if self.symbol.classes else None
        found = canonical(node, names, owner=owner, private=private)
        if key(found.node) == key(self.wanted.node):
            return None
        left = compare(found, self.wanted)
        return f"what the deltas give differs from the copy in {_where(left[0])}" if left else "the parameters differ"

    # ---- options --------------------------------------------------------------------------------------------

    def options(self, change: Contrast) -> Iterator[list[Keys]]:
        """Ways to say a change, the smallest first."""
        if change.sort == "insert":
            yield from self._insert(change)
        elif change.sort == "remove":
            yield from self._remove(change)
        elif change.sort in ("statement", "head"):
            yield from self._inside(change)
            yield from self._replace(change)
        elif change.sort == "clauses":
            yield from self._clauses(change)
            yield from self._replace(change)
        else:
            yield from self._replace(change)

    def _insert(self, change: Contrast) -> Iterator[list[Keys]]:
        code = self.texts.statements(change.wanted)
        body = change.suite.body
        top = change.suite.owner is self.base.node
        if top and change.at == 0:
            yield [{"insert": code, "at": "start"}]
        if change.at < len(body):
            for text, more in self.anchors.statements(_statement(body[change.at])):
                yield [{"insert": code, "before": text, **more}]
        if change.at:
            for text, more in self.anchors.statements(_statement(body[change.at - 1])):
                yield [{"insert": code, "after": text, **more}]
        if top and change.at == len(body):
            yield [{"insert": code, "at": "end"}]

    def _remove(self, change: Contrast) -> Iterator[list[Keys]]:
        found = [self.anchors.statement(_statement(s)) for s in change.base]
        if all(a is not None for a in found):
            yield [{"remove": a[0], **a[1]} for a in found if a is not None]

    def _replace(self, change: Contrast) -> Iterator[list[Keys]]:
        target = self._target(change.base)
        if target is None or not change.wanted:
            return
        whole = (
            kept_as_a_whole(change.base, change.wanted, change.suite, change.at) if change.sort != "statement" else None
        )
        if whole is not None:
            code = self.texts.statements(change.wanted, whole.names)
            inner = self._nested(whole)
            if inner is not None:
                yield [{**target[0], "with": code, **target[1], **({"deltas": inner} if inner else {})}]
        pieces = kept_in_pieces(change.base, change.wanted, change.suite)
        if pieces.parts and change.sort != "statement":
            inner = self._nested(pieces)
            code = self.texts.statements(change.wanted, pieces.names)
            parts = {name: self._part(node) for name, node in pieces.parts.items()}
            if inner is not None:
                yield [{**target[0], "with": code, "parts": parts, **target[1], **({"deltas": inner} if inner else {})}]
        yield [{**target[0], "with": self.texts.statements(change.wanted), **target[1]}]

    def _part(self, node: ast.AST) -> CodeText:
        """A pattern of a piece, the shortest that no other place fits."""
        here = origin(node)
        anchor = self.anchors.statement(here) if isinstance(here, ast.stmt) else None
        return anchor[0] if anchor is not None and not anchor[1] else CodeText(ast.unparse(here))

    def _nested(self, whole: KeptText) -> list[Keys] | None:
        found: list[Keys] = []
        for change in whole.inner:
            options = list(self.options(change))
            if not options:
                return None
            for keys in options[0]:
                found.append({"name": self._named(f"inside {len(found) + 1}"), **keys})
        return found

    def _target(self, base: Sequence[ast.stmt]) -> tuple[Keys, Keys] | None:
        """What is replaced, and what narrows it."""
        first = self.anchors.statement(_statement(base[0]))
        if first is None:
            return None
        if len(base) == 1:
            return {"replace": first[0]}, first[1]
        last = self.anchors.statement(_statement(base[-1]))
        if last is None or "nth" in first[1] or last[1].get("within") != first[1].get("within"):
            whole = CodeText("\n".join(ast.unparse(_statement(s)) for s in base))
            if len(self.anchors.matches(whole, "statements")) == 1:
                return {"replace": whole}, {}
            return None
        return {"replace": {"from": first[0], "to": last[0]}}, first[1]

    # ---- inside a statement -----------------------------------------------------------------------------------

    def _inside(self, change: Contrast) -> Iterator[list[Keys]]:
        base, wanted = change.base[0], change.wanted[0]
        found = spots(base, wanted)
        if not found or len(found) > 6:
            return
        parents = _parents(base), _parents(wanted)
        groups: dict[int, list[Spot]] = {}
        calls: dict[int, tuple[ast.Call, ast.Call]] = {}
        rest: list[Spot] = []
        for spot in found:
            call = _call_of(spot, parents)
            if call is None:
                rest.append(spot)
            else:
                groups.setdefault(id(call[0]), []).append(spot)
                calls[id(call[0])] = call
        option: list[Keys] = []
        for number, group in groups.items():
            keys = self._call(*calls[number], group)
            if keys is None:
                rest += group
            else:
                option.append(keys)
        if not rest and option:
            yield option
        for widen in range(4):
            tried = [self._expression(spot, parents, widen) for spot in rest]
            if all(k is not None for k in tried) and (tried or option):
                yield [*option, *(k for k in _unique(tried) if k is not None)]
        tried = [self._expression(spot, parents, 0) for spot in found]
        if option and all(k is not None for k in tried):
            yield [k for k in _unique(tried) if k is not None]

    def _call(self, base: ast.Call, wanted: ast.Call, group: Sequence[Spot]) -> Keys | None:
        """A `call` that says what became of a call."""
        keys: Keys = {}
        sets: dict[Any, CodeText] = {}
        drops: list[Any] = []
        appended: list[CodeText] = []
        ours = {k.arg: k for k in base.keywords}
        theirs = {k.arg: k for k in wanted.keywords}
        stars = None in ours or None in theirs or any(isinstance(a, ast.Starred) for a in (*base.args, *wanted.args))
        same = [key(a) for a in base.args] == [key(a) for a in wanted.args]
        if stars and (not same or (None in ours) != (None in theirs)):
            return None
        if key(base.func) != key(wanted.func):
            text = self.texts.expression(wanted.func)
            if not all(part.isidentifier() for part in text.split(".")):
                return None
            keys["callee"] = text
        if len(wanted.args) < len(base.args):
            return None
        for index, value in enumerate(wanted.args):
            if index >= len(base.args):
                appended.append(self.texts.expression(value))
            elif key(value) != key(base.args[index]):
                sets[index] = self.texts.expression(value)
        for name, given in theirs.items():
            if name is not None and (name not in ours or key(given) != key(ours[name])):
                sets[name] = self.texts.expression(given.value)
        drops += [name for name in ours if name is not None and name not in theirs]
        if sets:
            keys["set"] = sets
        if drops:
            keys["drop"] = drops
        if appended:
            keys["append"] = appended
        anchor = self._call_anchor(base)
        if anchor is None or not keys:
            return None
        return {"call": {"match": anchor[0], **keys}, **anchor[1]}

    def _call_anchor(self, base: ast.Call) -> tuple[CodeText, Keys] | None:
        node: Any = origin(base)
        texts = [f"{ast.unparse(node.func)}(...)", ast.unparse(node)]
        return self.anchors.expression(node, texts)

    def _expression(
        self, spot: Spot, parents: tuple[dict[int, ast.AST], dict[int, ast.AST]], widen: int
    ) -> Keys | None:
        one, two = spot.base, spot.wanted
        if one is None or two is None or not isinstance(one, ast.expr) or not isinstance(two, ast.expr):
            one, two = spot.parents
        for _ in range(widen):
            up, other = parents[0].get(id(one)), parents[1].get(id(two))
            if up is None or other is None:
                break
            one, two = up, other
        while not isinstance(one, ast.expr) or not isinstance(two, ast.expr) or not isinstance(origin(one), ast.expr):
            up, other = parents[0].get(id(one)), parents[1].get(id(two))
            if up is None or other is None or isinstance(up, ast.stmt):
                return None
            one, two = up, other
        return self._expr(one, two)

    def _expr(self, one: ast.expr, two: ast.expr) -> Keys | None:
        anchor = self.anchors.expression(origin(one))  # type: ignore[arg-type]
        if anchor is None:
            return None
        with_ = self._with(one, two)
        return {"expr": anchor[0], "with": with_, **anchor[1]}

    def _with(self, one: ast.expr, two: ast.expr) -> CodeText:
        """The new expression, with `__upstream__` where the old one stands in it."""
        if isinstance(one, ast.BoolOp) and isinstance(two, ast.BoolOp) and type(one.op) is type(two.op):
            keys, others = [key(v) for v in one.values], [key(v) for v in two.values]
            for index in range(len(others) - len(keys) + 1):
                if others[index : index + len(keys)] == keys:
                    word = " and " if isinstance(one.op, ast.And) else " or "
                    texts = [self._operand(v) for v in two.values]
                    return CodeText(word.join([*texts[:index], "__upstream__", *texts[index + len(keys) :]]))
        for node in ast.walk(two):
            if isinstance(node, ast.expr) and key(node) == key(one):
                return self.texts.expression(two, {id(node): "__upstream__"})
            if isinstance(one, ast.BoolOp) and isinstance(node, ast.BoolOp) and type(node.op) is type(one.op):
                keys, others = [key(v) for v in one.values], [key(v) for v in node.values]
                if others == keys:
                    return self.texts.expression(two, {id(node): "__upstream__"})
        return self.texts.expression(two)

    def _operand(self, node: ast.expr) -> str:
        text = self.texts.expression(node)
        return (
            f"({text})"
            if isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)) or "\n" in text
            else text
        )

    # ---- clauses ----------------------------------------------------------------------------------------------

    def _clauses(self, change: Contrast) -> Iterator[list[Keys]]:
        """A clause more or less, where the other blocks stay."""
        base, wanted = change.base[0], change.wanted[0]
        ours, theirs = {b.name: b for b in blocks(base)}, {b.name: b for b in blocks(wanted)}
        anchor = self.anchors.statement(_statement(base))
        if anchor is None or set(theirs) - set(ours) != {"orelse"} or set(ours) - set(theirs):
            return
        if not isinstance(base, (ast.If, ast.For, ast.While)) or not all(
            [key(s) for s in ours[n].body] == [key(s) for s in theirs[n].body] for n in ours
        ):
            return
        code = self.texts.statements(theirs["orelse"].body)
        body = "\n".join(f"    {row}" if row.strip() else "" for row in code.rstrip("\n").split("\n"))
        yield [{"clause": {"of": anchor[0], "add": CodeText(f"else:\n{body}\n")}, **anchor[1]}]


def _statement(node: ast.AST) -> ast.stmt:
    found = origin(node)
    assert isinstance(found, ast.stmt)
    return found


def _without_covered(
    changes: Sequence[Contrast], picked: Sequence[list[Keys]]
) -> tuple[list[Contrast], list[list[Keys]]]:
    """Where a whole statement is replaced, the changes inside it are said by that."""
    covered: set[int] = set()
    for change, keys in zip(changes, picked, strict=True):
        if change.sort in ("head", "clauses") and any("replace" in k for k in keys):
            covered |= {id(n) for n in ast.walk(change.base[0])}
    kept = [(c, k) for c, k in zip(changes, picked, strict=True) if id(c.suite.owner) not in covered]
    return [c for c, _ in kept], [k for _, k in kept]


def _where(change: Contrast) -> str:
    first, last = change.lines
    return f"line {first}" if first >= last else f"lines {first}-{last}"


def _unique(items: Sequence[Keys | None]) -> list[Keys | None]:
    found: list[Keys | None] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def _parents(node: ast.AST) -> dict[int, ast.AST]:
    return {id(child): parent for parent in ast.walk(node) for child in ast.iter_child_nodes(parent)}


def _call_of(spot: Spot, parents: tuple[dict[int, ast.AST], dict[int, ast.AST]]) -> tuple[ast.Call, ast.Call] | None:
    """The calls whose callee or arguments a spot is, on both sides."""
    one, two = spot.parents
    for _ in range(8):
        if isinstance(one, ast.Call) and isinstance(two, ast.Call):
            return one, two
        if not isinstance(one, (ast.keyword, ast.expr)) or not isinstance(two, (ast.keyword, ast.expr)):
            return None
        up, other = parents[0].get(id(one)), parents[1].get(id(two))
        if up is None or other is None:
            return None
        one, two = up, other
    return None
