"""What other modules of the distribution do to the globals of a module, and to what it defines.

`import acme.mm as mm; mm.STATE = 5` sets a global; `mm.show.register(int, f)`, `mm.f.count = 1` complete a definition.

All files are searched once for each distribution; the lock keeps the answer, so that later runs need not read them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args
from weakref import WeakKeyDictionary

from afd_patchkit.digests import short
from afd_patchkit.findings.errors import PatchkitError, UpstreamError
from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.names.follow import Destination, find_definition
from afd_patchkit.names.touches import MUTATORS, How, Touch, touches
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.syntax import DEFINITION
from afd_patchkit.source.text import SourceFile, load_source
from afd_patchkit.source.tokens import significant, tokens_in
from afd_patchkit.upstream.base import Upstream, module_table

FORMAT = "2"
"""Of what is kept in the cache."""
KEYS = frozenset({"set", "completed"})
"""Where the lock keeps the answer."""
Plain = dict[str, dict[str, list[str]]]
"""The answer as JSON data: `set` and `completed`."""


@dataclass(frozen=True)
class Elsewhere:
    """What the modules of a distribution do to each other.

    Attributes:
        names: module to the names that others set in it.
        acts: `module:qualname` to what others do to that definition, each as `path:line how digest`.
    """

    names: Mapping[str, Collection[str]]
    acts: Mapping[str, Collection[str]]


_KNOWN: WeakKeyDictionary[Upstream, Elsewhere] = WeakKeyDictionary()
_SAVE: WeakKeyDictionary[Upstream, Callable[[Plain], None]] = WeakKeyDictionary()
_ASKED: ContextVar[set[str] | None] = ContextVar("_ASKED", default=None)
_STORES = (
    re.compile(rb"^[ \t]*(?!self\.|cls\.)([A-Za-z_][\w.]*)\.\w+[ \t]*(?::[^=\n]*|[-+*/|&^%@<>]{0,2})=(?!=)", re.M),
    re.compile(rb"^[ \t]*([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)[ \t]*=(?!=)", re.M),
    re.compile(rb"^[ \t]*del[ \t]+([\w., \t]+)", re.M),
    re.compile(rb"\bsetattr\(\s*([A-Za-z_][\w.]*)"),
)
"""What may set or delete an attribute of a module; quick to search for, and then parsed."""
_ACTS = (
    re.compile(rb"^[ \t]*([A-Za-z_][\w.]*)(?:\[[^=\n]*\][\w.]*)?[ \t]*[-+*/|&^%@<>]{0,2}=(?!=)", re.M),
    re.compile(rb"^[ \t]*@([A-Za-z_][\w.]*)\.", re.M),
    re.compile(rb"\bdelattr\(\s*([A-Za-z_][\w.]*)"),
)
"""What else may act on a definition."""
_MUTATES = re.compile(rb"\.(?:%s)\(" % b"|".join(sorted(name.encode() for name in MUTATORS)))
_HOW: Mapping[str, How] = {how.replace(" ", "-"): how for how in get_args(How)}
_IMPORT = re.compile(rb"^[ \t]*(?:from|import)\b(?:[^\n(]*\([^)]*\)|[^\n]*)", re.M)
_WORDS = re.compile(rb"[A-Za-z_]\w*")


def set_elsewhere(upstream: Upstream) -> Mapping[str, Collection[str]]:
    """The globals that other modules of an upstream set, by module; nothing where its files cannot be had."""
    return _answer(upstream).names


def acts_elsewhere(upstream: Upstream, reference: str) -> Iterator[tuple[How, str, int, str]]:
    """What other modules do to a definition, `module:qualname`: how, the path, the line and a digest of each statement."""
    for act in _answer(upstream).acts.get(reference, ()):
        place, how, digest = act.split(" ")
        path, _, line = place.rpartition(":")
        yield _HOW[how], path, int(line), digest


def _answer(upstream: Upstream) -> Elsewhere:
    if (names := _ASKED.get()) is not None:
        names.add(upstream.pin)
    known = _KNOWN.get(upstream)
    if known is None:
        try:
            known = _KNOWN[upstream] = _searched(upstream)
        except PatchkitError:
            return Elsewhere({}, {})
        if upstream in _SAVE:
            _SAVE[upstream](told(upstream) or {})
    return known


@contextmanager
def asked() -> Iterator[set[str]]:
    """The pins whose files are asked for meanwhile, whether the answer is known or not."""
    names: set[str] = set()
    token = _ASKED.set(names)
    try:
        yield names
    finally:
        _ASKED.reset(token)


def tell(upstream: Upstream, known: Mapping[str, Mapping[str, Collection[str]]]) -> None:
    """Spare the search: somebody knows the answer for the same artifact."""
    _KNOWN[upstream] = Elsewhere(known["set"], known["completed"])


def save(upstream: Upstream, keep: Callable[[Plain], None]) -> None:
    """Have the answer kept when it has been searched for."""
    _SAVE[upstream] = keep


def told(upstream: Upstream) -> Plain | None:
    """What the lock keeps; None when it is not known."""
    known = _KNOWN.get(upstream)
    if known is None:
        return None
    return {
        "set": {module: sorted(names) for module, names in sorted(known.names.items())},
        "completed": {reference: sorted(acts) for reference, acts in sorted(known.acts.items())},
    }


def _searched(upstream: Upstream) -> Elsewhere:
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
        heads = _heads(tree, package)
        if sets:
            for module, name in _stores(tree, heads, modules):
                if module != own:
                    names.setdefault(module, set()).add(name)
        if does:
            for reference, touch in _acts(file, heads, upstream):
                acts.setdefault(reference, set()).add(_written(file, touch))
    return Elsewhere(names, acts)


def _roots(data: bytes, shapes: Collection[re.Pattern[bytes]]) -> set[bytes]:
    """The names that statements of these shapes begin with."""
    found = (match[1] for shape in shapes for match in shape.finditer(data))
    return {part.strip().partition(b".")[0] for parts in found for part in parts.split(b",")}


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


def _heads(tree: ast.Module, package: str) -> dict[str, str]:
    """What a file imports anywhere: the name that is bound to the dotted name of the thing."""
    heads: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            heads.update(
                (a.asname or a.name.partition(".")[0], a.name if a.asname else a.name.partition(".")[0])
                for a in node.names
            )
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(node, package)
            heads.update((a.asname or a.name, f"{source}.{a.name}".strip(".")) for a in node.names)
    return heads


def _stores(tree: ast.Module, heads: Mapping[str, str], modules: Collection[str]) -> Iterator[tuple[str, str]]:
    """Module and name of each global of another module that a file sets or deletes."""
    for node in ast.walk(tree):
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
        if not members and isinstance(destination.node, DEFINITION):
            # of a function or class, `pop` or `update` is a method of its own
            some = [t for t in some if "extended" not in (t.how, t.does)]
        if not members and isinstance(destination.node, ast.ClassDef):
            some = [t for t in some if not isinstance(t.node, DEFINITION) or _registers(t)]
        yield from ((reference, touch) for touch in some)


def _registers(touch: Touch) -> bool:
    """Whether a decorator that is taken from a class says that it registers something: other ones are plain decorators."""
    decorators: list[ast.expr] = getattr(touch.node, "decorator_list", [])
    plain = (d.func if isinstance(d, ast.Call) else d for d in decorators)
    return any(
        isinstance(d, ast.Attribute) and dotted(d.value) == touch.subject and "register" in d.attr for d in plain
    )


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
