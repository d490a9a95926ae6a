"""What other modules of the distribution do to the globals of a module, and to what it defines.

`import acme.mm as mm; mm.STATE = 5` sets a global; `mm.show.register(int, f)`, `mm.f.count = 1` complete a definition.

All files are searched once for each distribution. The lock keeps the globals, and a digest of what is done to each definition, so
that later runs need not read the files, but for an entry of such a definition.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, get_args
from weakref import WeakKeyDictionary

from afd_patchkit.digests import short
from afd_patchkit.findings.errors import PatchkitError, UpstreamError
from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.names.follow import Destination, find_definition
from afd_patchkit.names.touches import MUTATORS, How, Touch, acting, touches
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.syntax import nodes
from afd_patchkit.source.text import SourceFile, load_source
from afd_patchkit.source.tokens import significant, tokens_in
from afd_patchkit.upstream.base import Upstream, module_table

FORMAT = "4"
"""Of what is kept in the cache."""
KEYS = frozenset({"set", "completed"})
"""Where the lock keeps the answer."""
Plain = dict[str, dict[str, list[str]]]
"""The whole answer as JSON data: `set` and `completed`."""


@dataclass(frozen=True)
class Elsewhere:
    """What the modules of a distribution do to each other.

    Attributes:
        names: module to the names that others set in it.
        digests: `module:qualname` to a digest of what others do to that definition.
        acts: the same in full, each as `path:line how digest`; None when only the digests are known.
    """

    names: Mapping[str, Collection[str]]
    digests: Mapping[str, str]
    acts: Mapping[str, Collection[str]] | None = None

    @classmethod
    def of(cls, answer: Plain) -> Elsewhere:
        """The whole answer."""
        acts = answer["completed"]
        return cls(answer["set"], {name: short("\n".join(acts[name])) for name in acts}, acts)


@dataclass(frozen=True)
class Keeping:
    """Where the whole answer for an upstream is kept: both functions are for the user's cache."""

    load: Callable[[], Plain | None]
    save: Callable[[Plain], None]


_KNOWN: WeakKeyDictionary[Upstream, Elsewhere] = WeakKeyDictionary()
_KEPT: WeakKeyDictionary[Upstream, Keeping] = WeakKeyDictionary()
_FAILED: WeakKeyDictionary[Upstream, PatchkitError] = WeakKeyDictionary()
_ASKED: ContextVar[set[str] | None] = ContextVar("_ASKED", default=None)
_STORES = (
    re.compile(rb"^[ \t]*(?!self\.|cls\.)([A-Za-z_][\w.]*)\.\w+[ \t]*(?::[^=\n]*|[-+*/|&^%@<>]{0,2})=(?!=)", re.M),
    re.compile(rb"^[ \t]*([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)[ \t]*=(?!=)", re.M),
    re.compile(rb"^[ \t]*del[ \t]+([\w., \t]+)", re.M),
    re.compile(rb"\bsetattr\(\s*([A-Za-z_][\w.]*)"),
)
"""What may set or delete an attribute of a module; quick to search for, and then parsed."""
_ACTS = (
    re.compile(rb"^[ \t]*([A-Za-z_]\w*)\b[^=\n(]*(?<=[-+*/|&^%@<>])=(?!=)", re.M),
    re.compile(rb"^[ \t]*([A-Za-z_]\w*)[\w.]*\[", re.M),
    re.compile(rb"^[ \t]*([A-Za-z_][\w.]*(?:\[[^\n=]*\])?,[^=\n()#]*\[[^=\n()#]*)=(?!=)", re.M),
    re.compile(rb"^[ \t]*@([A-Za-z_][\w.]*)\.", re.M),
    re.compile(rb"^([A-Za-z_]\w*)[\w.]*\.\w+\(", re.M),
    re.compile(rb"\b(?:delattr|vars)\(\s*([A-Za-z_][\w.]*)"),
    re.compile(rb"\b(?:for|as)[ \t]+([A-Za-z_]\w*)[.\[]"),
)
_MUTATES = re.compile(rb"\.(?:%s)\(" % b"|".join(sorted(name.encode() for name in MUTATORS)))
_HOW: Mapping[str, How] = {how.replace(" ", "-"): how for how in get_args(How)}
_IMPORT = re.compile(rb"^[ \t]*(?:from|import)\b(?:[^\n(]*\([^)]*\)|[^\n]*)", re.M)
_WORDS = re.compile(rb"[A-Za-z_]\w*")


def set_elsewhere(upstream: Upstream) -> Mapping[str, Collection[str]]:
    """The globals that other modules of an upstream set, by module.

    Raises:
        PatchkitError: its files cannot be had.
    """
    return _answer(upstream).names


def acts_elsewhere(upstream: Upstream, reference: str) -> Iterator[tuple[How, str, int, str]]:
    """What other modules do to a definition, `module:qualname`: how, the path, the line and a digest of each statement.

    Raises:
        PatchkitError: the files of the upstream cannot be had.
    """
    if reference in _answer(upstream).digests:
        for act in (_answer(upstream, whole=True).acts or {}).get(reference, ()):
            place, how, digest = act.split(" ")
            path, _, line = place.rpartition(":")
            yield _HOW[how], path, int(line), digest


def _answer(upstream: Upstream, *, whole: bool = False) -> Elsewhere:
    if (names := _ASKED.get()) is not None:
        names.add(upstream.pin)
    known = _KNOWN.get(upstream)
    if known is None or (whole and known.acts is None):
        kept = _KEPT.get(upstream)
        found = kept.load() if kept is not None else None
        if found is None:
            found = _tried(upstream)
            if kept is not None:
                kept.save(found)
        known = _KNOWN[upstream] = Elsewhere.of(found)
    return known


def _tried(upstream: Upstream) -> Plain:
    """The search; what kept it from succeeding once is not tried again for each entry."""
    if upstream in _FAILED:
        raise _FAILED[upstream]
    try:
        return _searched(upstream)
    except PatchkitError as error:
        why = f"all files of pin {upstream.pin} are searched for what its modules do to each other: no lock or cache knows"
        said = type(error)(*(replace(f, details=(*f.details, why)) for f in error.findings))
        _FAILED[upstream] = said
        raise said from error


@contextmanager
def asked() -> Iterator[set[str]]:
    """The pins whose files are asked for meanwhile, whether the answer is known or not."""
    names: set[str] = set()
    token = _ASKED.set(names)
    try:
        yield names
    finally:
        _ASKED.reset(token)


def remember(upstream: Upstream, kept: Keeping, locked: Mapping[str, Any] | None = None) -> None:
    """Say where the answer for an upstream is kept, and what the lock knows of the same artifact."""
    _KEPT[upstream] = kept
    if locked is not None and locked.keys() >= KEYS:
        _KNOWN[upstream] = Elsewhere(locked["set"], locked["completed"])


def told(upstream: Upstream) -> dict[str, Any]:
    """What the lock keeps.

    Raises:
        PatchkitError: it was not asked for yet, and the files of the upstream cannot be had.
    """
    known = _answer(upstream)
    return {
        "set": {module: sorted(names) for module, names in sorted(known.names.items())},
        "completed": dict(sorted(known.digests.items())),
    }


def _searched(upstream: Upstream) -> Plain:
    names: dict[str, set[str]] = {}
    acts: dict[str, set[str]] = {}
    modules = upstream.modules()
    last = {name.rpartition(".")[2].encode() for name in modules}
    tops = {name.partition(".")[0].encode() for name in modules}
    for path, data in upstream.package_files():
        imports = _IMPORT.findall(data)
        stored = _roots(data, _STORES)
        sets = _imports_module(imports, stored, last)
        does = _imports_any(imports, stored | _roots(data, _ACTS) | _mutated(data), tops)
        if not sets and not does:
            continue
        try:
            file = load_source(data, pin=upstream.pin, path=path)
            tree = file.tree
        except (PatchkitError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        own = next(iter(module_table([path])), "")
        package = own if path.endswith("/__init__.py") else own.rpartition(".")[0]
        every = list(nodes(tree))
        heads = _heads(every, package)
        if sets:
            for module, name in _stores(every, heads, modules):
                if module != own:
                    names.setdefault(module, set()).add(name)
        if does:
            for reference, touch in _acts(file, heads, upstream):
                acts.setdefault(reference, set()).add(_written(file, touch))
    return {
        "set": {module: sorted(found) for module, found in sorted(names.items())},
        "completed": {reference: sorted(found) for reference, found in sorted(acts.items())},
    }


def _roots(data: bytes, shapes: Collection[re.Pattern[bytes]]) -> set[bytes]:
    """The names that statements of these shapes begin with."""
    found = (match[1] for shape in shapes for match in shape.finditer(data))
    return {word[0] for parts in found for part in parts.split(b",") if (word := _WORDS.search(part))}


def _mutated(data: bytes) -> set[bytes]:
    """Names on the lines that change something in place, left of it."""
    out: set[bytes] = set()
    for match in _MUTATES.finditer(data):
        out.update(_WORDS.findall(data, data.rfind(b"\n", 0, match.start()) + 1, match.start()))
    return out


def _imports_module(imports: Collection[bytes], roots: Collection[bytes], last: Collection[bytes]) -> bool:
    """Whether something that may be a module is imported under one of these names; `last`: last parts of modules' names."""
    for statement in imports if roots else ():
        words = _WORDS.findall(statement)
        renamed = {name for word, name in pairwise(words) if word == b"as"}
        plain = statement.lstrip().startswith(b"import")
        if any(word in roots and (plain or word in last or word in renamed) for word in words):
            return True
    return False


def _imports_any(imports: Collection[bytes], roots: set[bytes], tops: set[bytes]) -> bool:
    """Whether something of the tree, whose packages are `tops`, is imported under one of these names."""
    for statement in imports if roots else ():
        source, _, names = statement.partition(b"import")
        relative = source.lstrip()[4:].lstrip().startswith(b".")
        if (relative or not tops.isdisjoint(_WORDS.findall(statement))) and not roots.isdisjoint(_WORDS.findall(names)):
            return True
    return False


def _heads(every: Iterable[ast.AST], package: str) -> dict[str, str]:
    """What the nodes of a file import anywhere: the name that is bound to the dotted name of the thing."""
    heads: dict[str, str] = {}
    for node in every:
        if isinstance(node, ast.Import):
            heads.update(
                (a.asname or a.name.partition(".")[0], a.name if a.asname else a.name.partition(".")[0])
                for a in node.names
            )
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(node, package)
            heads.update((a.asname or a.name, f"{source}.{a.name}".strip(".")) for a in node.names)
    return heads


def _stores(every: Iterable[ast.AST], heads: Mapping[str, str], modules: Collection[str]) -> Iterator[tuple[str, str]]:
    """Module and name of each global of another module that the nodes of a file set or delete."""
    for node in every:
        name = None
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            chain, name = dotted(node.value), node.attr
        elif isinstance(node, ast.Call) and dotted(node.func) == "setattr" and len(node.args) == 3:
            chain, named = dotted(node.args[0]), node.args[1]
            name = named.value if isinstance(named, ast.Constant) and isinstance(named.value, str) else None
        if name is None:
            continue
        head, _, rest = chain.partition(".")
        module = ".".join(part for part in (heads.get(head, ""), rest) if part)
        if head in heads and module in modules:
            yield module, name


def _acts(file: SourceFile, heads: Mapping[str, str], upstream: Upstream) -> Iterator[tuple[str, Touch]]:
    """What a file does to definitions of other modules, each with the definition's `module:qualname`."""
    found = touches(file)
    for subject, all_of_it in found.items():
        head, _, rest = subject.partition(".")
        some = [t for t in all_of_it if t.how != "passed" and (rest or "rebound" not in (t.how, t.does))]
        some = [t for t in some if rest or "deleted" not in (t.how, t.does)]
        if head not in heads or not some or _bound_otherwise(found.get(head, ())):
            continue
        try:
            to = _definition(upstream, heads[head].split(".") + (rest.split(".") if rest else []))
        except UpstreamError:
            continue
        if to is None or to[0].module == file.module:
            continue
        destination, members = to
        if members and not isinstance(destination.node, ast.ClassDef):
            continue  # nobody copies an attribute of a function or a value
        reference = ".".join([destination.reference, *members])
        if not members:
            some = [t for t in acting(some, destination.node) if t.how != "passed"]
        yield from ((reference, touch) for touch in some)


def _bound_otherwise(acts: Collection[Touch]) -> bool:
    """Whether a file binds a name by something else than an import, too."""
    return any(
        (t.how == "rebound" or t.does == "rebound") and not isinstance(t.node, (ast.Import, ast.ImportFrom))
        for t in acts
    )


def _definition(upstream: Upstream, parts: list[str]) -> tuple[Destination, list[str]] | None:
    """The definition that a dotted name leads to, and what is taken from it; None for modules, and for what cannot be told."""
    modules = upstream.modules()
    length = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in modules), 0)
    module, rest = ".".join(parts[:length]), parts[length:]
    while module and rest:
        found = find_definition(upstream, module, rest.pop(0))
        if found is None or found.node is not None:
            return (found, rest) if found is not None and not _imported(found) else None
        module = found.module
    return None


def _imported(found: Destination) -> bool:
    """Whether a module may have imported what it binds: no definition of its own."""
    binding = module_bindings(found.file).get(found.name) if found.file is not None else None
    return binding is None or any(isinstance(site.node, (ast.Import, ast.ImportFrom)) for site in binding.sites)


def _written(file: SourceFile, touch: Touch) -> str:
    text = " ".join(t.text for t in significant(tokens_in(file, touch.span)))
    return f"{file.path}:{file.line_of(touch.span.start)} {touch.how.replace(' ', '-')} {short(text)}"


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])
