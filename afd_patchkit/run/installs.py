"""What generated modules replace where they are installed: found at the pin, compared with who holds it, and put into the lock."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from afd_patchkit.assemble.originals import class_path, meaning
from afd_patchkit.assemble.result import ModuleResult
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.findings.nearest import did_you_mean
from afd_patchkit.model import Entry, Install, Manifest
from afd_patchkit.names.aliases import Alias, Aliases, Scanner
from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.names.follow import find_definition
from afd_patchkit.references.texts import OwnText
from afd_patchkit.runtime.proof import digest
from afd_patchkit.source.forward import mangled
from afd_patchkit.source.locate import Symbol, find_symbol
from afd_patchkit.source.syntax import DEFINITION, bound_names
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Upstream
from afd_patchkit.upstream.cache import Store

Record = dict[str, Any]


def with_installs(
    workspace: Workspace,
    manifests: Sequence[Manifest],
    results: Sequence[ModuleResult],
    store: Store | None,
) -> list[ModuleResult]:
    """The results with what they install in what the lock keeps of them, and with what is wrong with it.

    Args:
        workspace: the upstreams.
        manifests: all manifests of the project.
        results: what was generated now.
        store: keeps what the search for aliases has found.
    """
    described = {manifest.module: manifest for manifest in manifests}
    plans = _Plans(workspace, manifests, store)
    return [plans.recorded(described[r.module], r) for r in results]


def install_problems(
    workspace: Workspace,
    manifests: Sequence[Manifest],
    texts: Mapping[str, OwnText],
    retired: Collection[str],
    store: Store | None,
) -> Iterator[tuple[str, Finding]]:
    """What keeps installs from replacing anything on these upstreams, each with the entry, `module.py::name`, that is installed.

    Args:
        workspace: the upstreams.
        manifests: all manifests of the project.
        texts: module to its text, of the modules that are generated.
        retired: references of entries that are not.
        store: keeps what the search for aliases has found.
    """
    plans = _Plans(workspace, manifests, store)
    for manifest in manifests:
        if manifest.module in texts:
            for plan in plans.of(manifest, texts[manifest.module], retired):
                yield from ((f"{manifest.module}::{plan.name}", f) for f in plan.findings if f.exit_code)


@dataclass(frozen=True)
class _Plan:
    """One install: what the lock keeps of it, None where it cannot be, and what is to be said."""

    name: str
    record: Record | None
    findings: tuple[Finding, ...]
    file: SourceFile | None = None


@dataclass(frozen=True)
class _Found:
    """What an install replaces: the definition, and the pin whose release it is bound on."""

    pin: str
    upstream: Upstream
    symbol: Symbol
    imported: bool


class _Plans:
    def __init__(self, workspace: Workspace, manifests: Sequence[Manifest], store: Store | None) -> None:
        self.workspace, self.manifests, self.store = workspace, manifests, store

    def recorded(self, manifest: Manifest, result: ModuleResult) -> ModuleResult:
        """One module with its installs."""
        if result.own is None or result.wholly_retired or not manifest.installs:
            return result
        plans = list(self.of(manifest, result.own, result.retired))
        problems = [f for plan in plans for f in plan.findings]
        files = {pin: dict(paths) for pin, paths in result.files.items()}
        for file in (plan.file for plan in plans if plan.file is not None):
            files.setdefault(file.pin, {})[file.path] = (file.raw_sha256, file.sha256)
        records = [plan.record for plan in plans if plan.record is not None]
        return replace(
            result,
            lock={**result.lock, "installs": records} if records else result.lock,
            files=files,
            findings=(*result.findings, *problems),
            failed=result.failed or any(f.exit_code for f in problems),
        )

    def of(self, manifest: Manifest, own: OwnText, retired: Collection[str]) -> Iterator[_Plan]:
        """The installs of a module, but for those of what is retired."""
        for install in manifest.installs:
            name = install.with_ or next(iter(manifest.standing_for(install.symbol.text.strip())), "")
            if _retired(manifest, retired, name):
                continue
            try:
                found = self._found(manifest, install)
                record, findings = self._record(install, name, found)
            except PatchkitError as error:
                yield _Plan(name, None, tuple(f.at(manifest=install.symbol.position) for f in error.findings))
            else:
                yield _Plan(name, record, (*_unbound(manifest, own, install, name), *findings), found.symbol.file)

    # ---- what is replaced ---------------------------------------------------------------------------------------

    def _found(self, manifest: Manifest, install: Install) -> _Found:
        """The definition that is replaced.

        Raises:
            PatchkitError: there is none that can be (PK336), or it cannot be read.
        """
        module, _, qualname = install.symbol.text.strip().partition(":")
        pins = self.workspace.pins.pins
        pin = next((name for name, each in pins.items() if each.role == "target" and each.provides(module)), None)
        if pin is None:
            raise _cannot(install, f"no target pin has a module {module}")
        upstream = self.workspace.upstream(pin)
        if module not in upstream.modules():
            raise _cannot(install, f"{module} is not there", did_you_mean(module, upstream.modules(), ""))
        file = upstream.read(module)
        head, _, rest = qualname.partition(".")
        binding = module_bindings(file).get(head)
        if binding is None:
            raise _cannot(install, f"{module} has no {head}", did_you_mean(head, module_bindings(file), ""))
        imported = binding.module is not None
        if imported:
            leads = find_definition(upstream, module, head)
            if leads is None or leads.file is None or not leads.name:
                raise _cannot(install, f"{module} takes {head} from elsewhere, and where that ends cannot be told")
            file, qualname = leads.file, ".".join([leads.name, *([rest] if rest else [])])
        entry = self._entry(manifest, install)
        symbol = find_symbol(file, qualname, branch=entry.branch if entry else None)
        if not all(isinstance(node, DEFINITION) for node in symbol.nodes):
            raise _cannot(install, f"{symbol.reference} is a constant: who has read it keeps its value")
        return _Found(pin, upstream, symbol, imported)

    @staticmethod
    def _entry(manifest: Manifest, install: Install) -> Entry | None:
        wanted = install.symbol.text.strip()
        return next((e for e, _ in manifest.all_entries() if e.symbol and e.symbol.text.strip() == wanted), None)

    def _record(self, install: Install, name: str, found: _Found) -> tuple[Record, list[Finding]]:
        """What the lock keeps of an install, and what is to be said of it."""
        symbol, pin = found.symbol, self.workspace.pins.pins[found.pin]
        target = install.symbol.text.strip()
        module, _, qualname = target.partition(":")
        path = [*class_path(symbol), mangled(symbol.name, symbol.classes[-1].name if symbol.classes else None)]
        where = qualname.split(".")[:1] + path[1:] if found.imported else path
        member = len(where) > 1
        aliases, findings = (None, []) if member else self._aliases(install, module, qualname)
        everywhere = install.aliases == "all" or (install.aliases is None and not found.imported)
        held = [] if aliases is None else [alias for alias in aliases.found if alias.static]
        sites = sorted({(a.module, a.name) for a in held if a.bound})
        if not everywhere and aliases is not None:
            findings += _unlisted(install, aliases)
        findings += [
            _beyond(target, a) for a in held if not a.bound and _reaches(install, a.module, everywhere=everywhere)
        ]
        is_class = isinstance(symbol.node, ast.ClassDef)
        if is_class and install.mode == "process":
            findings.append(
                finding(
                    "PK665", f"{target} is a class, replaced for the whole process", manifest=install.symbol.position
                )
            )
        record: Record = {
            "symbol": f"{module}:{'.'.join(where)}",
            "with": name,
            "mode": install.mode,
            "pin": found.pin,
            "original": f"{symbol.file.module}:{'.'.join(path)}",
            "class": is_class,
            "parts": [list(part) for part in _parts(symbol)],
            "layers": max(len(getattr(node, "decorator_list", ())) for node in symbol.nodes),
            "roots": _roots(symbol, pin.import_packages),
            "aliases": "all" if everywhere else list(install.aliases or ()),
            "native": sorted(install.native),
            "sites": [list(site) for site in sites],
        }
        return record, [f.at(manifest=f.manifest or install.symbol.position) for f in findings]

    # ---- who holds it -------------------------------------------------------------------------------------------

    @cached_property
    def _scanner(self) -> Scanner:
        """The target pins that entries come from: others are not searched, so that a lock says the same wherever it is made."""
        pins = self.workspace.pins.pins
        used = {
            pins[name].distribution
            for manifest in self.manifests
            for entry, _ in manifest.all_entries()
            if entry.kind != "owned" and (name := entry.pin or manifest.pin) is not None
        }
        used |= {
            pin.distribution
            for manifest in self.manifests
            for install in manifest.installs
            for pin in pins.values()
            if pin.provides(install.symbol.text.strip().partition(":")[0])
        }
        return Scanner(
            [
                (self.workspace.upstream(name), pin.import_packages)
                for name, pin in pins.items()
                if pin.role == "target" and pin.distribution in used
            ],
            self.store,
        )

    def _aliases(self, install: Install, module: str, name: str) -> tuple[Aliases, list[Finding]]:
        found = self._scanner.aliases(module, name)
        holders = {module, *(a.module for a in found.found if a.static)}
        return found, [
            *found.problems,
            *(_stale(found.symbol, m, "stays native") for m in install.native if m not in holders),
        ]


def _unlisted(install: Install, aliases: Aliases) -> list[Finding]:
    """What a list of modules leaves out, and what does not belong on it."""
    listed = install.aliases if isinstance(install.aliases, tuple) else ()
    found = [
        finding(
            "PK319",
            f"{a.module} holds {aliases.symbol} as `{a.name}` ({a.place}), and is not rebound",
            upstream=a.place,
            help="Add the module to `aliases` or, where it is to keep upstream's, to `native`; or say `aliases: all`.",
        )
        for a in aliases.left_out([*listed, *install.native])
    ]
    return [*found, *(_stale(aliases.symbol, module, "is rebound") for module in aliases.stale(listed))]


def _reaches(install: Install, module: str, *, everywhere: bool) -> bool:
    return module not in install.native and (everywhere or module in (install.aliases or ()))


def _beyond(symbol: str, alias: Alias) -> Finding:
    """The note about an object that keeps the original, whatever is bound."""
    return finding(
        "PK666",
        f"{alias.module} keeps {symbol} in `{alias.name}` ({alias.kind}, {alias.place}), where it cannot be replaced",
        upstream=alias.place,
    )


def _stale(symbol: str, module: str, what: str) -> Finding:
    return finding(
        "PK320",
        f"{module} {what}, but does not hold {symbol}",
        help="Take the module off the list. If PK319 names another one, that is where the import went.",
    )


def _cannot(install: Install, why: str, help_: str | None = None) -> PatchkitError:
    symbol = install.symbol.text.strip()
    return PatchkitError(
        finding("PK336", f"{symbol} cannot be replaced: {why}", manifest=install.symbol.position, help=help_ or None)
    )


def _retired(manifest: Manifest, retired: Collection[str], name: str) -> bool:
    """Whether what replaces it is not generated any more."""
    gone = {ref.partition("::")[2] for ref in retired if ref.startswith(f"{manifest.module}::")}
    members = [manifest.ref(e, g).partition("::")[2] for e, g in manifest.all_entries() if g and g.name == name]
    return name in gone or (bool(members) and gone.issuperset(members))


def _unbound(manifest: Manifest, own: OwnText, install: Install, name: str) -> Iterator[Finding]:
    """A finding when the generated module binds no such name."""
    if not own.parses:
        return  # said where it was generated
    names: set[str] = set()
    for node in own.file.tree.body:
        names |= set(bound_names(node))
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{member}" for inner in node.body for member in bound_names(inner)}
    if name not in names:
        yield finding(
            "PK032",
            f"`installs`: {manifest.module} binds no `{name}`",
            manifest=install.where,
            help=did_you_mean(
                name, names, "Say by `with` what replaces it: a name of the generated module, or Class.member."
            ),
        )


def _parts(symbol: Symbol) -> Iterator[tuple[int, str]]:
    """Of each function that the attribute is made of, or of the class, the number of lines and their digest."""
    wanted = list(symbol.accessors.values()) if symbol.accessors else [symbol.nodes[-1]]
    for node, (first, last) in zip(symbol.nodes, symbol.line_ranges, strict=True):
        if node in wanted:
            yield last - first + 1, digest(symbol.file.lines(first, last))


def _roots(symbol: Symbol, packages: Sequence[str]) -> list[str]:
    """The top-level packages that its wrappers may come from: upstream's own, and those of its decorators."""
    found = {package.partition(".")[0] for package in packages}
    for node in symbol.nodes:
        for decorator in getattr(node, "decorator_list", ()):
            name = meaning(symbol.file, decorator)
            found |= {name.partition(".")[0]} if "." in name else set()
    return sorted(found)
