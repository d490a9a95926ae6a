"""Which upstream function a hand copy is a copy of; where that cannot be told for sure, candidates, and a doubt that is said."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from afd_patchkit.copies.canonical import Canonical, canonical, key, name_unread, owner_of, rename_locals, renamed
from afd_patchkit.copies.installs import HandInstall
from afd_patchkit.copies.meaning import FileNames, Leads
from afd_patchkit.copies.reading import HandFile, HandFunction
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.source.locate import Symbol, find_symbol
from afd_patchkit.source.syntax import FUNCTION, blocks, same
from afd_patchkit.source.text import SourceFile

Evidence = Literal["assignment", "override", "comment", "name"]

_ALIKE = 0.5
_CLEARLY = 0.1
_MOST = 24
_SMALL = 5


@dataclass(frozen=True, eq=False)
class CopyPair:
    """A hand copy and what it is a copy of.

    Attributes:
        hand: the hand copy.
        symbol: upstream's function.
        evidence: what says so.
        likeness: share of the statements that both have, 0 to 1, those in fences left out.
        base: upstream's function in canonical form.
        wanted: the hand copy in canonical form, with upstream's names for renamed locals.
        locals: renamed locals: the hand copy's name, to upstream's.
        install: the assignment, when one says so.
        delegates: the hand copy calls the original, and is no copy of its body.
    """

    hand: HandFunction
    symbol: Symbol
    evidence: Evidence
    likeness: float
    base: Canonical
    wanted: Canonical
    locals: dict[str, str] = field(default_factory=dict)
    install: HandInstall | None = None
    delegates: bool = False


@dataclass(frozen=True, eq=False)
class Unpaired:
    """A hand copy whose upstream is not known.

    Attributes:
        hand: the hand copy.
        why: what is wrong, as a sentence.
        candidates: upstream functions that it may be a copy of, likeliest first.
        several: several of these are as likely.
        other: it says that it comes from a distribution that was not given.
    """

    hand: HandFunction
    why: str
    candidates: tuple[str, ...] = ()
    several: bool = False
    other: bool = False

    @property
    def code(self) -> str:
        """The code of its finding."""
        return "PK670" if self.other else "PK716" if self.several else "PK715"


class CopyFinder:
    """Pairs functions with those of the pins.

    Args:
        meaning: follows names through the pins.
        distributions: names of the pins' distributions.
    """

    def __init__(self, meaning: Leads, distributions: Collection[str] = ()) -> None:
        self.meaning, self.distributions = meaning, tuple(distributions)
        self._index: dict[str, list[str]] | None = None
        self._symbols: dict[str, Symbol | str] = {}
        self._bases: dict[int, Canonical] = {}

    # ---- upstream -----------------------------------------------------------------------------------------

    def symbol(self, dotted: str) -> Symbol | str:
        """The function that a dotted text leads to; else why there is none."""
        if dotted not in self._symbols:
            self._symbols[dotted] = self._symbol(dotted)
        return self._symbols[dotted]

    def _symbol(self, dotted: str) -> Symbol | str:
        parts = dotted.split(".")
        for count in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:count])
            upstream = self.meaning.provider(module)
            if upstream is None:
                continue
            try:
                found = find_symbol(upstream.read(module), ".".join(parts[count:]))
            except PatchkitError as error:
                inherited = self._inherited(module, parts[count:])
                return inherited if inherited is not None else error.findings[0].message
            if isinstance(found.node, FUNCTION):
                return found
            return f"{found.reference} is no function"
        return f"no pin that was given has {dotted}"

    def _inherited(self, module: str, names: Sequence[str]) -> Symbol | None:
        if len(names) < 2:
            return None
        for base in self.bases(f"{module}.{'.'.join(names[:-1])}"):
            found = self.symbol(f"{base}.{names[-1]}")
            if isinstance(found, Symbol):
                return found
        return None

    def bases(self, dotted: str) -> list[str]:
        """Where the bases of an upstream class lead."""
        parts = dotted.split(".")
        for count in range(len(parts) - 1, 0, -1):
            upstream = self.meaning.provider(".".join(parts[:count]))
            if upstream is None:
                continue
            file = upstream.read(".".join(parts[:count]))
            try:
                node = find_symbol(file, ".".join(parts[count:])).node
            except PatchkitError:
                return []
            if not isinstance(node, ast.ClassDef):
                return []
            names = FileNames(file, self.meaning)
            leads = (names.of(b.value if isinstance(b, ast.Subscript) else b) for b in node.bases)
            return [lead.dotted for lead in leads if lead is not None]
        return []

    def base(self, symbol: Symbol) -> Canonical:
        """Upstream's function in canonical form; made once."""
        node = symbol.node
        assert isinstance(node, FUNCTION)
        if id(node) not in self._bases:
            owner = owner_of(symbol.file, symbol.classes)
            private = symbol.classes[-1].name if symbol.classes else None
            names = FileNames(symbol.file, self.meaning)
            self._bases[id(node)] = canonical(node, names, owner=owner, private=private)
        return self._bases[id(node)]

    def named(self, name: str) -> list[str]:
        """Dotted places of all functions of that name in the pins' packages."""
        if self._index is None:
            self._index = {}
            shape = re.compile(rb"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
            for upstream, packages in self.meaning.upstreams:
                folders = tuple(f"{p.replace('.', '/')}{end}" for p in packages for end in ("/", ".py"))
                for path, data in upstream.package_files():
                    if path.startswith(folders):
                        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                        for found in set(shape.findall(data)):
                            self._index.setdefault(found.decode(), []).append(module)
        return [dotted for module in self._index.get(name, ()) for dotted in self._in(module, name)]

    def _in(self, module: str, name: str) -> Iterator[str]:
        upstream = self.meaning.provider(module)
        if upstream is None:
            return
        try:
            file = upstream.read(module)
            tree = file.tree
        except PatchkitError:
            return
        yield from (f"{module}.{q}" for q in _qualnames(tree.body, name))

    # ---- pairs --------------------------------------------------------------------------------------------

    def pair(self, hand: HandFunction, installs: Sequence[HandInstall]) -> CopyPair | Unpaired | None:
        """The pair of a hand copy; None for a function that is none.

        Args:
            hand: the function.
            installs: the assignments of its file that put it in an upstream one's place, first the one that counts.
        """
        if hand.functions and not installs and not hand.claims.said:
            return None  # a part of the function around it
        if installs and installs[0].foreign:
            return Unpaired(hand, f"it replaces a function of {installs[0].foreign}, which was not given", other=True)
        for evidence, dotted in self._said(hand, installs):
            found = self.symbol(dotted)
            if isinstance(found, Symbol):
                install = installs[0] if installs else None
                return self.made(hand, found, evidence, install if evidence == "assignment" else None)
        return self._guessed(hand)

    def _said(self, hand: HandFunction, installs: Sequence[HandInstall]) -> Iterator[tuple[Evidence, str]]:
        yield from (("assignment", i.target) for i in installs[:1])
        claimed = list(self._claimed(hand))
        if len(claimed) == 1:
            yield "comment", claimed[0]
        if hand.classes:
            names = FileNames(hand.file.source, self.meaning).within(hand.functions)
            for base in hand.classes[-1].bases:
                lead = names.of(base.value if isinstance(base, ast.Subscript) else base)
                if lead is not None and isinstance(self.symbol(f"{lead.dotted}.{hand.node.name}"), Symbol):
                    yield "override", f"{lead.dotted}.{hand.node.name}"

    def _claimed(self, hand: HandFunction) -> Iterator[str]:
        """The functions that a comment may mean: by path and name, by a dotted name, by `Class.method`."""
        text = hand.claims.text("upstream")
        if not text:
            return
        seen: set[str] = set()
        modules = [p.removesuffix(".py").replace("/", ".") for p in re.findall(r"[\w/]+/[\w/]*\w\.py", text)]
        modules = [m for m in modules if self.meaning.provider(m) is not None]
        dotted = [
            w.strip(".") for w in re.findall(r"[A-Za-z_][\w.]*\.[A-Za-z_]\w*", text.replace(":", ".")) if "/" not in w
        ]
        for word in dotted:
            if isinstance(self.symbol(word), Symbol) and word not in seen:
                seen.add(word)
                yield word
        for module in modules:
            for place in self._in(module, hand.node.name):
                if place not in seen:
                    seen.add(place)
                    yield place
        if not seen:
            for word in dotted:
                for place in self.named(word.rpartition(".")[2]):
                    if place.endswith(f".{word}") and place not in seen:
                        seen.add(place)
                        yield place

    def _guessed(self, hand: HandFunction) -> CopyPair | Unpaired | None:
        """By the comments' candidates, else by name and likeness."""
        if "__" in hand.node.name[:2] and not hand.fences and not hand.claims.text("upstream"):
            return None
        marked = bool(hand.fences or hand.claims.text("upstream"))
        other = self._elsewhere(hand)
        places = list(self._claimed(hand)) or ([] if other else self.named(hand.node.name))
        if len(places) > _MOST:  # `forward`, `__init__`: a name says nothing
            if not marked or not hand.classes:
                return None if not marked else Unpaired(hand, f"{len(places)} upstream functions have its name")
            places = [p for p in places if self._same_class(p, hand)]
        if not marked and not self._large(hand):
            return None
        rated = sorted(self._rated(hand, places), key=lambda p: (-p.likeness, p.symbol.reference))
        near = [p for p in rated if p.likeness >= _ALIKE]
        if near and (len(near) == 1 or near[0].likeness >= near[1].likeness + _CLEARLY):
            return near[0]
        if not marked:
            return None
        if near:
            names = tuple(f"{p.symbol.reference} ({p.likeness:.0%} alike)" for p in near[:6])
            return Unpaired(hand, "it may be a copy of several upstream functions", names, several=True)
        if other:
            return Unpaired(hand, f"it comes from {other}, which was not given", other=True)
        shown = tuple(f"{p.symbol.reference} ({p.likeness:.0%} alike)" for p in rated[:3])
        return Unpaired(hand, "no upstream function of its name is like it", shown)

    def _elsewhere(self, hand: HandFunction) -> str:
        """The distribution that a copy names, when it is none of the pins'."""
        text = hand.claims.text("upstream")
        known = {name.lower().replace("_", "-") for name in self.distributions}
        words: list[str] = re.findall(r"[A-Za-z][\w-]*", text)
        for word in words:
            plain = word.lower().replace("_", "-")
            if plain in known:
                return ""
            if re.match(r"[a-z]+-[a-z-]+$", plain) and any(plain.startswith(f"{name}-") for name in known):
                return word
        names = FileNames(hand.file.source, self.meaning).within(hand.functions)
        for cls in hand.classes[-1:]:
            for base in cls.bases:
                lead = names.of(base)
                if lead is not None and self.meaning.provider(lead.dotted.partition(".")[0]) is None and lead.module:
                    return lead.dotted.partition(".")[0]
        return ""

    @staticmethod
    def _same_class(place: str, hand: HandFunction) -> bool:
        """Whether the class around is called alike, a prefix of ours aside."""
        theirs = place.split(".")[-2]
        return len(theirs) > 4 and hand.classes[-1].name.endswith(theirs)

    def _large(self, hand: HandFunction) -> bool:
        return len(_leaves(hand.node)) > _SMALL

    def _rated(self, hand: HandFunction, places: Sequence[str]) -> Iterator[CopyPair]:
        for dotted in places:
            found = self.symbol(dotted)
            if isinstance(found, Symbol) and _roughly(found.node, hand):
                yield self.made(hand, found, "comment" if hand.claims.text("upstream") else "name", None)

    def made(self, hand: HandFunction, symbol: Symbol, evidence: Evidence, install: HandInstall | None) -> CopyPair:
        """The pair of two functions.

        Args:
            hand: the hand copy.
            symbol: upstream's function.
            evidence: what says that they are a pair.
            install: the assignment that does.
        """
        base = self.base(symbol)
        wanted = self.wanted(hand, symbol)
        names = renamed(base, wanted)
        if names:
            rename_locals(wanted, names)
        name_unread(base, wanted)
        like = likeness(base, wanted, hand)
        delegates = like < _ALIKE and self._calls_original(hand, symbol)
        if delegates:  # its body is its own, whatever statement of upstream's it happens to look like
            wanted, names = self.wanted(hand, symbol), {}
        return CopyPair(hand, symbol, evidence, like, base, wanted, names, install, delegates)

    def wanted(self, hand: HandFunction, symbol: Symbol) -> Canonical:
        """The hand copy in canonical form, as a copy of `symbol`."""
        names = FileNames(hand.file.source, self.meaning).within(hand.functions)
        owner = owner_of(hand.file.source, hand.classes)
        own = self._own_twins(hand.file, symbol.file)
        private = hand.classes[-1].name if hand.classes else None
        return canonical(hand.node, names, owner=owner, private=private, same_globals=own)

    @staticmethod
    def _own_twins(hand: HandFile, upstream: SourceFile) -> dict[str, str]:
        """Globals that the hand file makes for itself by the same statement as upstream."""
        found = {}
        theirs = module_bindings(upstream)
        for name, binding in module_bindings(hand.source).items():
            other = theirs.get(name)
            if binding.kind == "assign" and other is not None and other.kind == "assign":
                one, two = (getattr(b.sites[-1].node, "value", None) for b in (binding, other))
                if one is not None and two is not None and same(one, two):
                    found[name] = f"{upstream.module}.{name}"
        return found

    def _calls_original(self, hand: HandFunction, symbol: Symbol) -> bool:
        """Whether the body calls what it stands for: by `super()`, by the class, or by a name that keeps it."""
        last = symbol.name
        for node in ast.walk(hand.node):
            if not isinstance(node, ast.Call):
                continue
            func = node.func
            if isinstance(func, ast.Attribute) and func.attr == last:
                value = func.value
                if is_super(value) or (isinstance(value, ast.Name) and value.id[:1].isupper()):
                    return True
            if keeps_original(func, last):
                return True
        return False


def is_super(node: ast.expr) -> bool:
    """Whether this is `super()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def keeps_original(node: ast.expr, name: str) -> bool:
    """Whether a name, or the last of a chain, says that it keeps the original of `name`: `_original_step`, `core.step_orig`."""
    text = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    text = text.rpartition(".")[2]  # a name in canonical form is dotted
    return "orig" in text.lower() and name.strip("_") in text


def _qualnames(body: Sequence[ast.stmt], name: str, prefix: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, FUNCTION):
            if node.name == name:
                yield prefix + name
        elif isinstance(node, ast.ClassDef):
            yield from _qualnames(node.body, name, f"{prefix}{node.name}.")
        else:
            for block in blocks(node):
                yield from _qualnames(block.body, name, prefix)


# ---- likeness -------------------------------------------------------------------------------------------------------


def likeness(base: Canonical, wanted: Canonical, hand: HandFunction) -> float:
    """Share of the statements and heads that both functions have; of the hand copy what is fenced does not count."""
    ours = Counter(_pieces(base.node))
    theirs = Counter(_pieces(wanted.node, hand))
    total = sum(ours.values()) + sum(theirs.values())
    return 2 * sum((ours & theirs).values()) / total if total else 0.0


def _pieces(node: ast.AST, hand: HandFunction | None = None) -> Iterator[str]:
    for statement in ast.walk(node):
        if not isinstance(statement, ast.stmt) or statement is node:
            continue
        line = statement.lineno
        if hand is not None and any(f.holds(line, line) for f in hand.fences):
            continue
        if any(True for _ in blocks(statement)):
            parts = [key(c) for c in ast.iter_child_nodes(statement) if isinstance(c, ast.expr)]
            yield f"{type(statement).__name__} {' '.join(parts)}"
        else:
            yield key(statement)


def _leaves(node: ast.AST) -> list[ast.AST]:
    return [n for n in ast.walk(node) if isinstance(n, ast.stmt)]


def _roughly(node: ast.AST, hand: HandFunction) -> bool:
    """Whether two functions are worth a comparison: of a size, and sharing words."""
    if hand.fences or hand.claims.text("upstream"):
        return True
    ours, theirs = _attributes(node), _attributes(hand.node)
    total = sum(ours.values()) + sum(theirs.values())
    return bool(total) and 2 * sum((ours & theirs).values()) / total >= 0.4


def _attributes(node: ast.AST) -> Counter[str]:
    known: Counter[str] | None = node.__dict__.get("_words")
    if known is None:
        known = Counter(
            n.attr if isinstance(n, ast.Attribute) else n.id
            for n in ast.walk(node)
            if isinstance(n, (ast.Attribute, ast.Name))
        )
        node._words = known  # type: ignore[attr-defined]
    return known
