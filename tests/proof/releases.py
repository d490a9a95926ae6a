"""Two releases of an invented upstream, and the proof's engine on them."""

from __future__ import annotations

import textwrap
from pathlib import Path

from afd_patchkit.upstream.options import SourceOptions
from tools.oracles.proof.engine import Engine

OLD = '''
"""An oven."""


class Oven:
    """Bakes."""

    def bake(self, loaves, limit=3, slow=False):
        """Bake loaves."""
        done = []
        heat = self.warm(limit)
        for index, loaf in enumerate(loaves):
            if loaf is None:
                self.note("nothing at", index)
                continue
            if slow:
                heat = self.lower(heat)
            elif loaf.thick:
                heat = self.raise_(heat)
            try:
                done.append(self.put(loaf, heat))
            except ValueError:
                self.note("burnt", index)
            rest = self.rest(loaf)
            self.keep(rest)
        self.note("all", len(done))
        return done
'''

NEW = OLD.replace(
    "        heat = self.warm(limit)\n", "        heat = self.warm(limit)\n        self.lamp(True)\n"
).replace('        self.note("all", len(done))\n', '        self.note("all", len(done))\n        self.lamp(False)\n')


def releases(folder: Path, old: str = OLD, new: str = NEW) -> dict[str, Path]:
    """Write both releases; sources as `acme@VERSION`."""
    found = {}
    for version, text in (("1.0", old), ("2.0", new)):
        path = folder / version
        (path / "acme").mkdir(parents=True)
        (path / "acme" / "__init__.py").write_text("", encoding="utf-8")
        (path / "acme" / "oven.py").write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        found[f"acme@{version}"] = path
    return found


def engine(folder: Path, old: str = OLD, new: str = NEW) -> Engine:
    """The proof's engine on the two releases."""
    options = SourceOptions(
        sources=releases(folder / "releases", old, new), offline=True, cache_dir=folder / "cache", search_path=()
    )
    (folder / "project").mkdir()
    return Engine("acme", "1.0", options, folder / "project")
