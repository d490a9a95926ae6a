"""What the shell offers behind TAB. Nothing here may fail or be slow: no YAML, no network."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from afd_patchkit.refs import names_of

_MODULE = re.compile(r"""^module:\s*["']?([^"'#\s]+)""", re.MULTILINE)
_PIN = re.compile(r"""^ {1,8}["']?([A-Za-z0-9][\w.-]*)["']?:\s*(?:#.*)?$""", re.MULTILINE)
_HEAD = 8_192
VARIABLE = "_AFD_PATCHKIT_COMPLETE"
"""The environment variable by which a shell asks."""


def manifest_files(start: Path | None) -> Iterator[Path]:
    """The YAML files of the `manifests` folder in or above `start`."""
    folder = (start or Path.cwd()).resolve()
    for place in (folder, *folder.parents):
        if (place / "manifests").is_dir():
            for root, folders, files in os.walk(place / "manifests"):
                folders.sort()
                yield from (Path(root, name) for name in sorted(files) if name.endswith((".yaml", ".yml")))
            return


def _project(ctx: click.Context) -> Path | None:
    return getattr(ctx.obj, "project", None)


def complete_modules(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Modules as the manifests name them."""
    found = []
    try:
        for path in manifest_files(_project(ctx)):
            with path.open(encoding="utf-8", errors="replace") as stream:
                if match := _MODULE.search(stream.read(_HEAD)):
                    found.append(match[1])
    except OSError:
        pass
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]


def complete_pins(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer `NAME=` for each pin."""
    names: list[str] = []
    try:
        for path in manifest_files(_project(ctx)):
            if path.name == "pins.yaml":
                _, _, block = path.read_text(encoding="utf-8", errors="replace").partition("\npins:")
                names = [name for name in _PIN.findall(block) if name != "git"]
    except OSError:
        pass
    return [CompletionItem(f"{name}=") for name in names if name.startswith(incomplete)]


def complete_entries(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Entries as the lock has them, each by its shortest name that is no other's; by the longer one that is being typed."""
    return [CompletionItem(name) for name in _unique(((ref, "") for ref in _locked(ctx)), incomplete)]


def complete_deltas(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Entries; behind `ENTRY/` the deltas of it, and deltas that begin with what was typed."""
    locked = _locked(ctx)
    deltas = ((ref, delta) for ref, known in locked.items() for delta in known)
    found = _unique(((ref, "") for ref in locked), incomplete)
    if "/" in incomplete:
        found += _unique(deltas, incomplete)
    elif incomplete:
        known = {delta for names in locked.values() for delta in names}
        found += [name for name in _unique(deltas, incomplete) if name in known]
    return [CompletionItem(_typed(name)) for name in dict.fromkeys(found)]


def _locked(ctx: click.Context) -> dict[str, list[str]]:
    """The entries of the lock, `module.py::name`, and the deltas of each; none without a lock that can be read."""
    from afd_patchkit.findings.errors import PatchkitError
    from afd_patchkit.project import load_project

    try:
        modules = json.loads(load_project(_project(ctx)).lock.read_bytes())["modules"]
        return {
            f"{module}::{name}": list(entry.get("deltas", ()))
            for module, record in modules.items()
            for name, entry in record["entries"].items()
        }
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError, PatchkitError):
        return {}


def _unique(items: Iterable[tuple[str, str]], incomplete: str) -> list[str]:
    """For each entry or delta the shortest name that is no other's and begins with what was typed."""
    named = [names_of(ref, delta) for ref, delta in items]
    counts = Counter(name for names in named for name in names)
    fitting = ((name for name in names if counts[name] == 1 and name.startswith(incomplete)) for names in named)
    return [name for names in fitting if (name := next(names, None)) is not None]


def _typed(name: str) -> str:
    """`name` as it must stand on the command line; zsh and fish see to that themselves.

    Two backslashes for one: the script that click has for bash reads lines without `-r`.
    """
    return re.sub(r"([^\w@%+=:,./-])", r"\\\\\1", name) if os.environ.get(VARIABLE) == "bash_complete" else name


def complete_topics(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Finding codes with their titles, and entries; modules (an entry is `MODULE::NAME`) where no lock knows entries."""
    from afd_patchkit.findings.finding import codes, page

    items = [
        CompletionItem(code, help=page(code).title) for code in codes() if code.startswith(incomplete.upper())
    ]  # fmt: skip
    if entries := complete_entries(ctx, parameter, incomplete):
        return [*items, *entries]
    modules = complete_modules(ctx, parameter, incomplete) if incomplete else []
    return [*items, *(CompletionItem(f"{item.value}::") for item in modules)]
