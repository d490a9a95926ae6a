"""What one manifest cannot know: pins, other manifests, the files of owned code."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from afd_patchkit.files import read_regular
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.nearest import did_you_mean
from afd_patchkit.header import INSTALL_FUNCTIONS
from afd_patchkit.manifest.nested import nested, takes_of
from afd_patchkit.manifest.texts import module_problem
from afd_patchkit.model import ClassGroup, Entry, Manifest, Pins
from afd_patchkit.project import Project
from afd_patchkit.source.text import LONGEST, too_long


@dataclass(frozen=True, slots=True)
class _Placed:
    """An entry and where it is."""

    manifest: Manifest
    entry: Entry
    group: ClassGroup | None

    @property
    def label(self) -> str:
        """`module.py::name`, as findings call it."""
        return self.manifest.ref(self.entry, self.group)

    @property
    def pin(self) -> str | None:
        """The pin that the entry names, or else its manifest's."""
        return self.entry.pin or self.manifest.pin


def problems(
    project: Project, pins: Pins | None, manifests: Sequence[Manifest], *, whole: bool = True
) -> Iterator[Finding]:
    """Every problem between files. What could be read of broken files, which were reported already, takes part.

    Args:
        project: where they are.
        pins: None when `pins.yaml` is broken.
        manifests: all that could be read.
        whole: whether nothing is missing from them, so that what they do not have is not there.
    """
    placed = [_Placed(m, entry, group) for m in manifests for entry, group in m.all_entries()]
    yield from _modules(manifests)
    yield from _names(project, manifests, placed)
    yield from _targets(placed)
    yield from _installs(manifests)
    if whole:
        yield from _dependencies(placed)
    if pins is not None:
        for item in placed:
            yield from _pins(item, pins)


# ---- modules and names ------------------------------------------------------------------------------------------------


def _modules(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    seen: dict[str, Manifest] = {}
    good = [m for m in manifests if not module_problem(m.module)]
    for manifest in good:
        first = seen.setdefault(manifest.module.casefold(), manifest)
        if first is not manifest:
            yield finding(
                "PK015",
                f"{manifest.module} is described by two manifests",
                manifest=manifest.where,
                help=f"The other one is {first.path}. Join them, or give one another `module`.",
            )
    for manifest in good:
        for folder in Path(manifest.module).parents:
            first_ = seen.get(f"{folder.as_posix()}.py".casefold())
            if first_ is not None:
                yield finding(
                    "PK015",
                    f"{manifest.module} lies in a package that has the name of the module {first_.module}",
                    manifest=manifest.where,
                    help=f"Python would import only one of them. Rename one; {first_.module} is described in {first_.path}.",
                )


def _installs(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    """Attributes that would be replaced twice, or together with what they are attributes of; modules that hide a function."""
    for manifest in manifests if any(m.installs for m in manifests) else ():
        first = manifest.module.removesuffix(".py").partition("/")[0]
        if first in INSTALL_FUNCTIONS:
            yield finding(
                "PK015",
                f"{manifest.module} has the name of the package's function `{first}`",
                manifest=manifest.where,
                help="A package with `installs` has functions of these names: give the module, or its folder, another one.",
            )
    seen: dict[str, Position] = {}
    for install in (each for manifest in manifests for each in manifest.installs if each.mode != "subclass"):
        symbol = install.symbol.text.strip()
        taken = next((s for s in seen if s == symbol or s.startswith(f"{symbol}.") or symbol.startswith(f"{s}.")), None)
        if taken is not None:
            yield finding(
                "PK033",
                f"`installs` replaces {symbol}, and {'that' if taken == symbol else taken} at {seen[taken]}",
                manifest=install.symbol.position,
                help="Two replacements of one attribute, or of a class and of its member, undo each other: keep one.",
            )
        seen.setdefault(symbol, install.symbol.position)


def _names(project: Project, manifests: Sequence[Manifest], placed: Sequence[_Placed]) -> Iterator[Finding]:
    """Names that a generated module would bind twice, and the files of owned code."""
    owned: dict[int, tuple[str, ...]] = {}
    taken: set[tuple[str, str]] = set()
    for item in placed:
        if item.entry.part is None:
            continue
        names, found = _part(project, item)
        yield from found
        key = (item.manifest.module, item.entry.part)
        if key not in taken:  # a file that several entries name is taken once
            owned[id(item.entry)] = names
        taken.add(key)
    for manifest in manifests:
        seen: dict[str, Position] = {}
        for group_or_entry in manifest.entries:
            entry = group_or_entry if isinstance(group_or_entry, Entry) else group_or_entry.class_
            if isinstance(entry, Entry) and entry.part is not None:
                names = owned.get(id(entry), ())
            else:
                name = entry.generated_name if isinstance(entry, Entry) else entry.name
                names = (name,) if name else ()
            for name in names:
                if name in seen:
                    yield finding(
                        "PK015",
                        f"{manifest.module} holds `{name}` twice",
                        manifest=entry.where,
                        help=f"The other one is at {seen[name]}. Give one of them another name.",
                    )
                seen.setdefault(name, entry.where)
    yield from _labels(placed)


def _labels(placed: Sequence[_Placed]) -> Iterator[Finding]:
    """Owned entries that reports could not tell apart."""
    seen: dict[str, Position] = {}
    for item in placed:
        if item.entry.part is not None:
            if item.label in seen:
                yield finding(
                    "PK015",
                    f"two owned entries are called {item.label}",
                    entry=item.label,
                    manifest=item.entry.where,
                    help=f"The other one is at {seen[item.label]}. Say by `name` which definition of the part each is.",
                )
            seen.setdefault(item.label, item.entry.where)


def _part(project: Project, item: _Placed) -> tuple[tuple[str, ...], list[Finding]]:
    """The names an owned part defines, and what is wrong with its file."""
    part = item.entry.part or ""
    path = (project.root / item.manifest.path).parent / part
    shown = project.shown(path)

    def wrong(
        message: str, help_: str | None = None, where: Position | None = None
    ) -> tuple[tuple[str, ...], list[Finding]]:
        where = where or item.entry.where
        return (), [finding("PK012", message, entry=item.label, manifest=where, help=help_)]

    if ".." in part.split("/") or not part.endswith(".py"):
        return (), []  # reported with the entry
    if not project.holds(path):
        return (), [project.outside(path).at(entry=item.label)]
    try:
        data = read_regular(path)
        text = data.decode("utf-8-sig")
    except OSError as error:
        return wrong(f"cannot read the part {shown}: {error.strerror or error}", "Write the file, or correct `part`.")
    except UnicodeDecodeError:
        return wrong(f"the part {shown} is not UTF-8", "Save it as UTF-8.", Position(shown))
    if too_long(data):
        return wrong(f"the part {shown} has more than {LONGEST:,} words", "Split it.", Position(shown))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        return wrong(
            f"the part is not Python: {error.msg}", None, Position(shown, error.lineno or 0, error.offset or 0)
        )
    except (ValueError, RecursionError, MemoryError) as error:
        return wrong(f"the part is not Python: {error}", None, Position(shown))
    names = tuple(dict.fromkeys(_defined(tree)))
    name = item.entry.name
    if name is not None and name not in names:
        help_ = did_you_mean(name, names, f"It defines: {', '.join(names) or 'nothing'}.")
        return wrong(f"the part {shown} does not define `{name}`", help_)
    return names, []


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _targets(placed: Sequence[_Placed]) -> Iterator[Finding]:
    """Symbols that are generated in several classes or modules: two patches of one function overwrite each other unnoticed.

    Beside each other, under two names, they are meant.
    """
    groups: dict[tuple[str | None, str, object], list[_Placed]] = {}
    for item in placed:
        if item.entry.symbol is not None:
            groups.setdefault((item.pin, item.entry.symbol.text, item.entry.branch), []).append(item)
    for (pin, symbol, _), items in groups.items():
        homes = {(item.manifest.module, item.group and item.group.name) for item in items}
        if len(homes) > 1 and not all(item.entry.share for item in items):
            first = items[0]
            for item in items[1:]:
                assert item.entry.symbol is not None
                yield finding(
                    "PK015",
                    f"{symbol} of pin {pin} is generated twice",
                    entry=item.label,
                    manifest=item.entry.symbol.position,
                    help=f"The other one is {first.label} at {first.entry.where}. Join them, or say `share: true` in both.",
                )


def _dependencies(placed: Sequence[_Placed]) -> Iterator[Finding]:
    known = {item.label for item in placed}
    modules = {item.manifest.module for item in placed}
    for item in placed:
        for name in item.entry.depends_on:
            if "::" in name and name not in known:
                missing = "entry" if name.partition("::")[0] in modules else "module"
                yield finding(
                    "PK019",
                    f"`depends_on`: there is no such {missing}: {name}",
                    entry=item.label,
                    manifest=item.entry.where,
                    help=did_you_mean(name, known, "Write `module.py::name` of another entry."),
                )


# ---- pins -------------------------------------------------------------------------------------------------------------


def _pins(item: _Placed, pins: Pins) -> Iterator[Finding]:
    entry = item.entry

    def wrong(message: str, help_: str | None, where: Position = entry.where, delta: str | None = None) -> Finding:
        return finding("PK016", message, entry=item.label, delta=delta, manifest=where, help=help_)

    name = item.pin
    if name is None:
        if entry.symbol is not None or entry.watch:
            yield wrong("the entry has no pin", "Give `pin` here or, for all entries, at the manifest's top.")
    elif name not in pins.pins:
        yield wrong(*_unknown(name, pins))
    else:
        role = pins.pins[name].role
        wanted = {"copy": "target", "delegate": "target", "backport": "donor"}.get(entry.kind, role)
        if role != wanted:
            help_ = (
                "To take code from a newer release, say `kind: backport`."
                if role == "donor"
                else "A backport names the donor pin that has the code; code of the target itself is a `copy`."
            )
            yield wrong(f"a {entry.kind} takes from a {wanted} pin, and {name} is a {role}", help_)
    for delta in nested(entry.deltas):
        for take in takes_of(delta):
            if take.pin not in pins.pins:
                yield wrong(*_unknown(take.pin, pins), take.where, delta.name)


def _unknown(name: str, pins: Pins) -> tuple[str, str]:
    help_ = did_you_mean(name, pins.pins, f"pins.yaml has: {', '.join(pins.pins) or 'none'}.")
    return f"pins.yaml has no pin `{name}`", help_
