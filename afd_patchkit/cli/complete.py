"""What the shell offers behind TAB. Nothing here may fail or be slow: no YAML, no network."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

_MODULE = re.compile(r"""^module:\s*["']?([^"'#\s]+)""", re.MULTILINE)
_PIN = re.compile(r"""^ {1,8}["']?([A-Za-z0-9][\w.-]*)["']?:\s*(?:#.*)?$""", re.MULTILINE)
_HEAD = 8_192


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


def complete_topics(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Finding codes with their titles, and modules (an entry is `MODULE::NAME`)."""
    from afd_patchkit.findings.finding import codes, page

    items = [
        CompletionItem(code, help=page(code).title) for code in codes() if code.startswith(incomplete.upper())
    ]  # fmt: skip
    modules = complete_modules(ctx, parameter, incomplete) if incomplete else []
    return [*items, *(CompletionItem(f"{item.value}::") for item in modules)]
