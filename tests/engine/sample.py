"""A small project around an invented upstream, `acme`, that every test can bend."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from afd_patchkit.findings.report import Report
from tests.invented import Invented, forget, read_tree, replace_once, write_tree

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


def spare(out, limit=0):
    return out, limit
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


class Sample(Invented):
    """One project on disk; `source` is the tree that stands for pin `acme`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, PINS.format(version="1.0"), root.parent / "cache")
        self.source = root.parent / f"{root.name}-acme"
        self.manifest(
            MANIFEST.replace(
                "from acme_host import allowed", "from acme_host import allowed\n  - from acme.engine import Engine"
            )
        )
        for name, text in (("__init__", ""), ("engine", ENGINE), ("tools", TOOLS), ("log", LOG)):
            self.upstream(name, text)

    def manifest(self, text: str, name: str = "runner") -> Path:
        """A manifest of the set."""
        return self.write(f"manifests/acme_set/{name}.yaml", text)

    def upstream(self, module: str, text: str) -> Path:
        """A module of `acme`."""
        name = f"acme/{module}.py"
        return write_tree(self.source, {name: text.lstrip("\n")}) / name

    def release(self, module: str, old: str, new: str) -> None:
        """Change one place of an upstream module."""
        replace_once(self.source / "acme" / f"{module}.py", old, new)

    def regen(self, *, sources: Mapping[str, Path] | None = None, **more: Any) -> Report:
        """Regenerate in this process, `acme` read from the source tree."""
        return self.run({"acme": self.source, **(sources or {})}, **more)

    def check(self, *, sources: Mapping[str, Path] | None = None, **more: Any) -> Report:
        """Check in this process."""
        return self.run({"acme": self.source, **(sources or {})}, only_check=True, **more)

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
        return read_tree(self.root / "generated")

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


def codes(report: Report) -> list[str]:
    """Codes of a report's findings, in order."""
    return [f.code for f in report.findings]
