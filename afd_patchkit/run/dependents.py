"""Modules that are judged anew because another one of ours has changed: what is said of a module follows from what it leans on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from afd_patchkit.assemble.module import module_name
from afd_patchkit.assemble.result import ModuleResult
from afd_patchkit.model import Manifest
from afd_patchkit.project import Project
from afd_patchkit.run.lock import Lock
from afd_patchkit.run.ownership import module_path

_RELATIVE = re.compile(r"^[ \t]*from[ \t]+\.", re.M)


def dependents(
    project: Project,
    lock: Lock,
    kept: Collection[str],
    results: Sequence[ModuleResult],
    manifests: Sequence[Manifest],
) -> set[str]:
    """The kept modules that lean, at however many removes, on one that has changed; more rather than fewer.

    Args:
        project: the project.
        lock: its lock, which the files of the kept modules are known to fit.
        kept: paths of the modules that were not generated.
        results: those that were.
        manifests: all manifests of the project.
    """
    before = {name: found.get("sha256") for name, found in lock["modules"].items()}
    changed = {
        r.module for r in results if not r.failed and before.get(r.module, "new") != r.lock.get("sha256")
    } | before.keys() - {m.module for m in manifests}
    if not changed:
        return set()
    texts = {r.module: r.text for r in results} | {name: _text(project, name) for name in kept}
    found = changed | {
        name for name in kept if any(_takes(texts[name], symbol) for symbol in _replaced(manifests, changed))
    }
    was_and_is = [text for name in changed for text in (_text(project, name), texts.get(name, ""))]
    lost = any(name in before and not _text(project, name) for name in changed)
    excused = {name: names for name in kept if (names := lock["modules"][name].get("excused"))}
    found |= {name for name, names in excused.items() if lost or _excused(names, was_and_is)}
    waiting = list(found)
    while waiting:
        dotted = module_name(project.package, waiting.pop())
        more = {name for name, text in texts.items() if name not in found and _mentions(text, dotted)}
        found |= more
        waiting += more
    return found & set(kept)


def _text(project: Project, module: str) -> str:
    path = module_path(project, module)
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _mentions(text: str, dotted: str) -> bool:
    """Whether a module may import another one."""
    if re.search(rf"{re.escape(dotted)}(?!\w)", text) or _RELATIVE.search(text):
        return True
    parent, _, leaf = dotted.rpartition(".")
    return re.search(rf"\bfrom\s+{re.escape(parent)}\s+import\b(?:\s*\([^)]*|[^\n]*)\b{leaf}\b", text) is not None


def _replaced(manifests: Sequence[Manifest], changed: Collection[str]) -> Iterator[str]:
    """Upstream's definitions that changed modules stand for."""
    for manifest in manifests:
        if manifest.module in changed:
            yield from (e.symbol.text.strip() for e, _ in manifest.all_entries() if e.symbol is not None)


def _excused(names: Mapping[str, str], texts: Collection[str]) -> bool:
    """Whether one of some texts gives what upstream lacks: names, and whether they are set or come with a class."""
    marks = [rf"\b{re.escape(name)}\b" for name, how in names.items() if how == "set"]
    marks += [r"^class\s"] if len(marks) < len(names) else []
    said = re.compile("|".join(marks), re.M)
    return any(map(said.search, texts))


def _takes(text: str, symbol: str) -> bool:
    """Whether a module may take a definition of upstream's by name."""
    module, _, name = symbol.partition(":")
    return "." not in name and module in text and re.search(rf"\b{re.escape(name)}\b", text) is not None
