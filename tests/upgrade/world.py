"""A small project around two releases of an invented upstream, `acme`."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from afd_patchkit.api import RunOptions, load_project, regen
from afd_patchkit.findings.report import Report
from afd_patchkit.project import Project
from afd_patchkit.upgrade.result import EntryResult, UpgradeResult
from afd_patchkit.upgrade.upgrading import upgrade
from afd_patchkit.upstream.options import SourceOptions

PINS = """\
# where acme comes from
schema: 1
pins:
  acme:   # the target
    distribution: acme
    version: "1.0"
    role: target
"""

MANIFEST = """\
schema: 1
module: set/runner.py
summary: Copies.
pin: acme
entries:
  - symbol: acme.engine:{symbol}
    reason: a test
    deltas:
"""


class World:
    """One project on disk and its upstream releases beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.releases = root / "releases"
        self.cache = root / "cache"
        self.releases.mkdir(parents=True)
        self.write("pyproject.toml", '[tool.afd-patchkit]\npackage = "generated_acme"\n')
        self.write("manifests/pins.yaml", PINS)

    def write(self, name: str, text: str) -> Path:
        """A file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def release(self, version: str, files: dict[str, str | bytes], pin: str = "acme") -> Path:
        """One release: module below `acme` to text."""
        folder = self.releases / f"{pin}-{version}"
        for name, text in {"__init__": "", **files}.items():
            path = folder / "acme" / f"{name.replace('.', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode())
        return folder

    def deltas(self, text: str, symbol: str = "f", name: str = "runner") -> None:
        """The manifest of one entry with these deltas."""
        body = textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 6)
        head = MANIFEST.format(symbol=symbol).replace("set/runner.py", f"set/{name}.py")
        self.write(f"manifests/set/{name}.yaml", f"{head}{body}\n" if body.strip() else head.removesuffix("    deltas:\n"))

    @property
    def project(self) -> Project:
        """The project as the tool sees it."""
        return load_project(self.root)

    def options(self, **sources: str) -> SourceOptions:
        """Offline; explicit sources only."""
        return SourceOptions(
            sources={key: self.releases / value for key, value in sources.items()},
            offline=True,
            cache_dir=self.cache,
            search_path=(),
        )

    def regen(self, version: str = "1.0", **arguments: Any) -> Report:
        """Generate at a release; it must work."""
        sources = {p.name.rpartition("-")[0]: p.name for p in sorted(self.releases.iterdir()) if p.name.endswith("-1.0")}
        sources["acme"] = f"acme-{version}"
        report = regen(self.project, RunOptions(sources=self.options(**sources), **arguments))
        assert report.exit_code == 0, report.findings
        return report

    def upgrade(self, version: str = "2.0", *, pin: str = "acme", old: str | None = "1.0", write: bool = False) -> UpgradeResult:
        """Upgrade; `old=None` hides the old release."""
        sources = {p.name.rpartition("-")[0]: p.name for p in sorted(self.releases.iterdir()) if p.name.endswith("-1.0")}
        sources.pop(pin, None)
        if (self.releases / f"{pin}-{version}").exists():
            sources[f"{pin}@{version}"] = f"{pin}-{version}"
        if old is not None:
            sources[f"{pin}@{old}"] = f"{pin}-{old}"
        return upgrade(self.project, pin_overrides={pin: version}, options=self.options(**sources), write=write)

    def state(self) -> dict[str, bytes]:
        """Every file of the project."""
        return {p.relative_to(self.root).as_posix(): p.read_bytes() for p in sorted(self.root.rglob("*")) if p.is_file()}


def codes(result: EntryResult) -> set[str]:
    """Codes of an entry and its deltas, notes left out."""
    return {f.code for f in (*result.reasons, *(f for d in result.deltas for f in d.reasons)) if f.exit_code}


def notes(result: EntryResult) -> set[str]:
    """Codes of notes."""
    found = [*result.reasons, *(f for d in result.deltas for f in d.reasons)]
    return {f.code for f in found if not f.exit_code}
