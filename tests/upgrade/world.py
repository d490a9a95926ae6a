"""A small project around two releases of an invented upstream, `acme`."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from afd_patchkit.findings.report import Report
from afd_patchkit.upgrade.result import EntryResult, UpgradeResult
from afd_patchkit.upgrade.upgrading import upgrade
from afd_patchkit.upstream.options import SourceOptions
from tests.invented import Invented, read_tree, text_of, write_tree

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


class World(Invented):
    """One project on disk and its upstream releases beside it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root / "project", PINS, root / "cache")
        self.releases = root / "releases"
        self.releases.mkdir(parents=True)

    def release(self, version: str, files: dict[str, str | bytes], pin: str = "acme") -> Path:
        """One release: module below `acme` to text."""
        named = {f"acme/{name.replace('.', '/')}.py": text for name, text in {"__init__": "", **files}.items()}
        texts = {name: text_of(text) if isinstance(text, str) else text for name, text in named.items()}
        return write_tree(self.releases / f"{pin}-{version}", texts)

    def deltas(self, text: str, symbol: str = "f", name: str = "runner") -> None:
        """The manifest of one entry with these deltas."""
        body = textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 6)
        head = MANIFEST.format(symbol=symbol).replace("set/runner.py", f"set/{name}.py")
        self.write(
            f"manifests/set/{name}.yaml", f"{head}{body}\n" if body.strip() else head.removesuffix("    deltas:\n")
        )

    def options(self, **sources: str) -> SourceOptions:
        """Offline; explicit sources only."""
        return self.offline({key: self.releases / value for key, value in sources.items()})

    def regen(self, version: str = "1.0", **arguments: Any) -> Report:
        """Generate at a release; it must work."""
        sources = {
            p.name.rpartition("-")[0]: p.name for p in sorted(self.releases.iterdir()) if p.name.endswith("-1.0")
        }
        sources["acme"] = f"acme-{version}"
        report = self.run({key: self.releases / value for key, value in sources.items()}, **arguments)
        assert report.exit_code == 0, report.findings
        return report

    def upgrade(
        self, version: str = "2.0", *, pin: str = "acme", old: str | None = "1.0", write: bool = False
    ) -> UpgradeResult:
        """Upgrade; `old=None` hides the old release."""
        sources = {
            p.name.rpartition("-")[0]: p.name for p in sorted(self.releases.iterdir()) if p.name.endswith("-1.0")
        }
        sources.pop(pin, None)
        if (self.releases / f"{pin}-{version}").exists():
            sources[f"{pin}@{version}"] = f"{pin}-{version}"
        if old is not None:
            sources[f"{pin}@{old}"] = f"{pin}-{old}"
        return upgrade(self.project, pin_overrides={pin: version}, options=self.options(**sources), write=write)

    def state(self) -> dict[str, bytes]:
        """Every file of the project."""
        return read_tree(self.root)


def codes(result: EntryResult) -> set[str]:
    """Codes of an entry and its deltas, notes left out."""
    return {f.code for f in (*result.reasons, *(f for d in result.deltas for f in d.reasons)) if f.exit_code}


def notes(result: EntryResult) -> set[str]:
    """Codes of notes."""
    found = [*result.reasons, *(f for d in result.deltas for f in d.reasons)]
    return {f.code for f in found if not f.exit_code}
