"""A small project around an invented upstream, `acme`, that every test can bend."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from afd_patchkit.api import RunOptions, check, load_project, regen
from afd_patchkit.findings.report import Report
from afd_patchkit.upstream.options import SourceOptions

ENGINE = '''
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright the acme authors
"""Steps."""

import functools

from .tools import helper
from .log import init_logger

logger = init_logger(__name__)
LIMIT = 3


class Base:
    def step(self, batch):
        return ("base", batch)


class Engine(Base):
    """Runs steps."""

    rank = 7

    def __init__(self, model):
        self.model = model

    def dispatch(self, batch, *, rank=0):
        return ("dispatch", batch, rank)

    @functools.wraps(Base.step)
    def step(self, batch):
        """Run one step."""
        desc = self.dispatch(batch)
        # a batch may be large
        if len(batch) > 1:
            logger.info("large %d", len(batch))
        out = self.model(batch)
        return desc, helper(out, LIMIT), super().step(batch)


def total(values):
    out = 0
    for value in values:
        out += value
    return out
'''

TOOLS = """
def helper(out, limit):
    return (out, limit)
"""

LOG = """
import logging


def init_logger(name):
    return logging.getLogger(name)
"""

MANIFEST = """
schema: 1
module: acme_set/runner.py
summary: Step loop with seams.
pin: acme
imports:
  - from acme_host import allowed
entries:
  - class:
      name: Runner
      bases: [Engine]
      doc: Engine with seams.
      members:
        - symbol: acme.engine:Engine.step
          reason: acme runs one batch per step.
          functionality: asks before it runs a large batch.
          deltas:
            - name: ask first
              expr: |
                len(batch) > 1
              with: |
                __upstream__ and allowed(batch)
            - name: own rank
              call:
                match: |
                  self.dispatch(...)
                set: {rank: "self.rank"}
            - name: halves
              replace: |
                out = self.model(...)
              with: |
                if len(batch) < 4:
                    __upstream__
                else:
                    out = self.model(batch[:2]) + self.model(batch[2:])
  - symbol: acme.engine:total
    reason: needed beside the runner.
"""

PINS = """
schema: 1
pins:
  acme:
    distribution: acme
    version: "{version}"
"""


class Sample:
    """One project on disk; `source` is the tree that stands for pin `acme`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = root.parent / f"{root.name}-acme"
        self.write("pyproject.toml", '[tool.afd-patchkit]\npackage = "generated_acme"\n')
        self.write("manifests/pins.yaml", PINS.format(version="1.0"))
        self.manifest(MANIFEST.replace("from acme_host import allowed", "from acme_host import allowed\n  - from acme.engine import Engine"))
        for name, text in (("__init__", ""), ("engine", ENGINE), ("tools", TOOLS), ("log", LOG)):
            self.upstream(name, text)

    def write(self, name: str, text: str) -> Path:
        """A file below the project's root."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def manifest(self, text: str, name: str = "runner") -> Path:
        """A manifest of the set."""
        return self.write(f"manifests/acme_set/{name}.yaml", text)

    def edit(self, path: Path | str, old: str, new: str) -> None:
        """Replace text that must be there once."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, (old, text.count(old))
        file.write_text(text.replace(old, new), encoding="utf-8")

    def upstream(self, module: str, text: str) -> Path:
        """A module of `acme`."""
        path = self.source / "acme" / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8")
        return path

    def release(self, module: str, old: str, new: str) -> None:
        """Change one place of an upstream module."""
        path = self.source / "acme" / f"{module}.py"
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, (old, text.count(old))
        path.write_text(text.replace(old, new), encoding="utf-8")

    def regen(self, **arguments: Any) -> Report:
        """Regenerate in this process, `acme` read from the source tree."""
        return regen(load_project(self.root), self.options(**arguments))

    def check(self, **arguments: Any) -> Report:
        """Check in this process."""
        return check(load_project(self.root), self.options(**arguments))

    def options(self, *, sources: Mapping[str, Path] | None = None, **more: Any) -> RunOptions:
        """The options of a run that reads `acme` from the source tree."""
        paths = {"acme": self.source, **(sources or {})}
        return RunOptions(sources=SourceOptions(sources=paths, offline=True, cache_dir=self.root.parent / "cache"), **more)

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.root / "generated/patchkit.lock"

    def generated(self, name: str = "runner") -> Path:
        """A generated module."""
        return self.root / f"generated/generated_acme/acme_set/{name}.py"

    def outline(self, name: str = "runner") -> Path:
        """An outline."""
        return self.root / f"generated/outlines/acme_set/{name}.outline"

    def state(self) -> dict[str, bytes]:
        """Every file below `generated/`."""
        folder = self.root / "generated"
        return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

    def load(self, name: str = "runner", **host: Any) -> ModuleType:
        """Import a generated module; `host` is what `acme_host` provides. Forgets earlier imports; the fixture restores `sys.path`."""
        forget()
        stand_in = ModuleType("acme_host")
        stand_in.__dict__.update({"allowed": lambda batch: True, **host})
        sys.modules["acme_host"] = stand_in
        paths = [str(self.source), str(self.root / "generated")]
        sys.path[:0] = paths
        importlib.invalidate_caches()
        return importlib.import_module(f"generated_acme.acme_set.{name}")


def forget() -> None:
    """Drop the invented packages from `sys.modules`: every test has its own."""
    for module in [m for m in sys.modules if m.split(".")[0] in ("acme", "generated_acme", "acme_host")]:
        del sys.modules[module]


def codes(report: Report) -> list[str]:
    """Codes of a report's findings, in order."""
    return [f.code for f in report.findings]
