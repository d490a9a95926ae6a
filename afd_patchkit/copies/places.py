"""Findings about what is around hand copies: assignments, imports, modules that hold a function by name, documents."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from afd_patchkit.copies.installs import HandInstall
from afd_patchkit.copies.meaning import Leads
from afd_patchkit.copies.reading import HandFile
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.names.aliases import Scanner
from afd_patchkit.names.bindings import absolute_module, module_bindings
from afd_patchkit.names.follow import names_of


def missing_targets(installs: Sequence[HandInstall], meaning: Leads) -> Iterator[Finding]:
    """Assignments that create an attribute of an upstream module that nobody reads (PK712)."""
    for install in installs:
        upstream = meaning.provider(install.holder)
        if install.foreign or upstream is None or not install.name:
            continue
        own = install.name in module_bindings(install.file.source) or install.functions
        if own and meaning.has(f"{install.holder}.{install.attribute}") is False and not _private_state(install):
            near = nearest(install.attribute, names_of(upstream, install.holder), likeness=0.7)
            yield finding(
                "PK712",
                f"{install.holder} has no {install.attribute}: what is assigned there is never read",
                entry=f"{install.file.shown}::{install.name}",
                generated=install.file.place(install.node),
                help=f"Did you mean `{near[0]}`?" if near else "It may have been renamed or moved upstream.",
            )


def _private_state(install: HandInstall) -> bool:
    """Whether the plugin keeps something of its own there: `_original_f`, `_ours_patched`."""
    return bool(re.search(r"(?:^|_)(?:orig\w*|patched|state|applied)(?:_|$)", install.attribute, re.IGNORECASE))


def missing_imports(file: HandFile, meaning: Leads) -> Iterator[Finding]:
    """Names that a file imports from an upstream module that has none of that name; guarded imports may fail."""
    guarded = {
        id(inner)
        for node in ast.walk(file.source.tree)
        if isinstance(node, (ast.Try, ast.If))
        for inner in ast.walk(node)
    }
    for node in ast.walk(file.source.tree):
        if not isinstance(node, ast.ImportFrom) or id(node) in guarded:
            continue
        module = absolute_module(file.source, node.module, node.level) if node.level else node.module
        upstream = meaning.provider(module) if module else None
        if module is None:
            continue
        if upstream is None:
            known = meaning.provider(module.partition(".")[0])
            if known is not None and not node.level:
                near = nearest(module, known.modules(), likeness=0.8)
                yield finding(
                    "PK712", f"upstream has no module {module}", generated=file.place(node),
                    help=f"Did you mean `{near[0]}`?" if near else "It may have been renamed or moved upstream.",
                )  # fmt: skip
            continue
        for item in node.names:
            if item.name != "*" and meaning.has(f"{module}.{item.name}") is False:
                near = nearest(item.name, names_of(upstream, module), likeness=0.7)
                yield finding(
                    "PK712", f"{module} has no {item.name}", generated=file.place(item),
                    help=f"Did you mean `{near[0]}`?" if near else "It may have been renamed or moved upstream.",
                )  # fmt: skip


# ---- modules that hold it by name -----------------------------------------------------------------------------------


def not_rebound(installs: Sequence[HandInstall], meaning: Leads, scanner: Scanner) -> Iterator[Finding]:
    """Modules that hold a replaced function of a module by name, and are not given the new one (PK319)."""
    by_target: dict[str, list[HandInstall]] = {}
    for install in installs:
        if not install.foreign and meaning.provider(install.holder) is not None and install.name:
            by_target.setdefault(install.target, []).append(install)
    for target, found in by_target.items():
        module, _, name = target.rpartition(".")
        if meaning.provider(module) is None or meaning.has(target) is not True:
            continue
        rebound = {module, *(i.holder for i in found), *_looped(found, meaning)}
        left = list(scanner.aliases(module, name).left_out(rebound))
        if not left:
            continue
        what = f"{module}:{name}"
        places = tuple(f"{a.module} holds {what} as `{a.name}` ({a.place})" for a in left)
        modules = len({a.module for a in left})
        yield finding(
            "PK319",
            f"{places[0] if modules == 1 else f'{modules} modules hold {what} by name'}, and {'is' if modules == 1 else 'are'} not rebound",
            entry=f"{found[0].file.shown}::{found[0].name}",
            generated=found[0].file.place(found[0].node),
            upstream=left[0].place,
            details=places if len(left) > 1 else (),
            help="Set it there too, or patch before they are imported."
            if modules > 1
            else f"Set `{left[0].name}` there too, or patch before it is imported.",
        )


def _looped(installs: Sequence[HandInstall], meaning: Leads) -> Collection[str]:
    """Modules that a file names in strings, when it sets the attribute on something that it finds at run time."""
    found: set[str] = set()
    for install in installs:
        tree = install.file.source.tree
        sets = [
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.Assign)
            and any(isinstance(t, ast.Attribute) and t.attr == install.attribute for t in n.targets)
        ]
        if len(sets) > sum(1 for i in installs if i.file is install.file):
            texts = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
            found |= {t for t in texts if "." in t and meaning.provider(t) is not None}
    return found


# ---- documents ------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"`+([A-Za-z_][\w]*(?:[.:][A-Za-z_]\w*)+)`+")
_HEAD = re.compile(r"patch|replac|overrid|cop(?:y|ied)|target|monkey", re.IGNORECASE)
_LARGEST = 2_000_000


def documents(paths: Sequence[Path]) -> Iterator[Path]:
    """The Markdown and reStructuredText files below folders."""
    for path in paths:
        if path.is_dir():
            yield from sorted(
                p
                for p in path.rglob("*")
                if p.suffix in (".md", ".rst")
                and p.is_file()
                and not p.is_symlink()
                and not any(part.startswith(".") or part == "node_modules" for part in p.relative_to(path).parts)
            )


def stale_rows(path: Path, shown: str, meaning: Leads, patched: Collection[str]) -> Iterator[Finding]:
    """Rows of tables about patches that name an upstream function that nothing of the tree replaces (PK713).

    Args:
        path: the document.
        shown: how findings name it.
        meaning: follows the names.
        patched: what is replaced or copied, as dotted texts.
    """
    try:
        data = path.read_bytes()[:_LARGEST]
        lines = data.decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return
    about = False
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("|"):
            about = False
            continue
        if number < len(lines) and re.match(r"\s*\|[\s:|-]+\|?\s*$", lines[number]):
            about = bool(_HEAD.search(line))
            continue
        if not about:
            continue
        for name in _NAME.finditer(line):
            dotted = name[1].replace(":", ".")
            if meaning.provider(dotted.partition(".")[0]) is None or _covered(dotted, patched):
                continue
            if not _is_definition(dotted, meaning):
                continue
            yield finding(
                "PK713",
                f"the table names {name[1]}, and nothing in the tree replaces or copies it",
                generated=Position(shown, number, name.start(1) + 1),
                help="Delete the row, or correct the name.",
            )


def _covered(dotted: str, patched: Collection[str]) -> bool:
    return any(p == dotted or p.startswith(f"{dotted}.") or dotted.startswith(f"{p}.") for p in patched)


def _is_definition(dotted: str, meaning: Leads) -> bool:
    """Whether it names something in a module, no module."""
    parts = dotted.split(".")
    if meaning.provider(dotted) is not None:
        return False
    return any(meaning.provider(".".join(parts[:count])) is not None for count in range(len(parts) - 1, 0, -1))


def patched_names(installs: Sequence[HandInstall], pairs: Mapping[str, str], meaning: Leads) -> set[str]:
    """Everything upstream's that the tree replaces or copies, under each name that it may be given."""
    found = set(pairs.values())
    for install in installs:
        found |= {install.target, f"{install.holder}.{install.attribute}"}
    spelled: set[str] = set()
    for dotted in found:
        try:
            spelled.add(meaning.follow(*_split(dotted)).dotted)
        except PatchkitError:
            continue
    return found | spelled


def _split(dotted: str) -> tuple[str, str]:
    module, _, name = dotted.rpartition(".")
    return module, name
