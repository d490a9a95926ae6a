"""Invented projects on disk, with the invented releases that they are about; what tests of several folders build theirs on."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from afd_patchkit.api import RunOptions, check, load_project, regen
from afd_patchkit.findings.report import Report
from afd_patchkit.project import Project
from afd_patchkit.upstream.options import SourceOptions

SETTINGS = '[tool.afd-patchkit]\npackage = "generated_acme"\n'


def text_of(block: str) -> str:
    """A text block of a test as a file holds it."""
    return textwrap.dedent(block).lstrip("\n")


def write_tree(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files by their path below a folder; bytes and text are taken as they are."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def replace_once(path: Path, old: str, new: str) -> None:
    """Replace text that must be there once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (old, text.count(old))
    path.write_text(text.replace(old, new), encoding="utf-8")


def forget() -> None:
    """Drop the invented packages from `sys.modules`: every test has its own."""
    for module in list(sys.modules):
        top = module.split(".")[0]
        if top in ("acme", "acme_host") or top.startswith("generated_"):
            del sys.modules[module]


class Invented:
    """One project on disk, with its settings and pins.

    Args:
        root: the project's folder.
        pins: the text of its pins.
        cache: the user's cache folder.
    """

    def __init__(self, root: Path, pins: str, cache: Path) -> None:
        self.root, self.cache = root, cache
        self.write("pyproject.toml", SETTINGS)
        self.write("manifests/pins.yaml", pins)

    def write(self, name: str, text: str) -> Path:
        """A file below the project's root."""
        return write_tree(self.root, {name: text_of(text)}) / name

    def edit(self, path: Path | str, old: str, new: str) -> None:
        """Replace text of one of its files that must be there once."""
        replace_once(self.root / path, old, new)

    @property
    def project(self) -> Project:
        """The project as the tool sees it."""
        return load_project(self.root)

    def offline(self, sources: Mapping[str, Path]) -> SourceOptions:
        """Nothing but these trees, by pin, or pin and version, and the cache."""
        return SourceOptions(sources=dict(sources), offline=True, cache_dir=self.cache, search_path=())

    def run(self, sources: Mapping[str, Path], *, only_check: bool = False, **more: Any) -> Report:
        """Regenerate, or check, in this process, upstreams read from trees."""
        options = RunOptions(sources=self.offline(sources), **more)
        return check(self.project, options) if only_check else regen(self.project, options)
