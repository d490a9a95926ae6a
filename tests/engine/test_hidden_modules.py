"""Modules that something else hides under their name in their package: the module itself is meant."""

from __future__ import annotations

import importlib
import sys

import pytest

from tests.engine.sample import Sample

FUSE = """
state = 1


def fuse(x):
    return ("upstream", x, state)


def raised(x):
    global state
    state += x
    return state
"""

HEAD = """
schema: 1
module: acme_set/out.py
summary: Entries.
pin: acme
entries:
"""

INITS = [
    "from .fuse import fuse",
    "from acme.ops.fuse import fuse",
    "from .fuse import *",
    "def fuse(x):\n    return x",
    "fuse = None",
    "try:\n    from .fuse import fuse\nexcept ImportError:\n    fuse = None",
    "class fuse:\n    pass",
]


def made(sample: Sample, init: str, entries: str) -> None:
    """A project around a package with a module `fuse`."""
    (sample.root / "manifests/acme_set/runner.yaml").unlink(missing_ok=True)
    (sample.source / "acme/ops").mkdir(parents=True, exist_ok=True)
    sample.upstream("ops/__init__", init + "\n")
    sample.upstream("ops/fuse", FUSE)
    sample.manifest(HEAD + entries, "out")
    assert not [f for f in sample.regen(full=True).findings if f.exit_code]


DELEGATE = """
  - symbol: acme.ops.fuse:fuse
    kind: delegate
    via: original
    reason: a test
    body: |
      return "ours", __original__(...)
"""


@pytest.mark.parametrize("init", INITS)
def test_a_delegate_of_a_hidden_module(sample: Sample, init: str) -> None:
    made(sample, init, DELEGATE)
    assert sample.load("out").fuse(1) == ("ours", ("upstream", 1, 1))


@pytest.mark.parametrize("init", INITS)
def test_a_write_reaches_the_module(sample: Sample, init: str) -> None:
    made(sample, init, "  - {symbol: 'acme.ops.fuse:raised', reason: a test}\n")
    assert sample.load("out").raised(4) == 5
    importlib.import_module("acme.ops.fuse")
    assert sys.modules["acme.ops.fuse"].state == 5


@pytest.mark.parametrize("init", ["", "from . import fuse", "import acme.ops.fuse", "from .fuse import raised"])
def test_what_is_not_hidden_is_imported(sample: Sample, init: str) -> None:
    made(sample, init, DELEGATE)
    assert "import acme.ops.fuse as _acme_ops_fuse" in sample.generated("out").read_text()
    assert sample.load("out").fuse(1) == ("ours", ("upstream", 1, 1))


def test_a_hidden_package(sample: Sample) -> None:
    sample.upstream("__init__", "from acme.ops.fuse import fuse as ops\n")
    made(sample, "", DELEGATE)
    assert sample.load("out").fuse(1) == ("ours", ("upstream", 1, 1))


def test_an_import_of_ours_binds_what_python_binds(sample: Sample) -> None:
    """A manifest's own `import ... as` gives the function, so an attribute of the module is missing."""
    sample.upstream("engine", "def run(n):\n    out = n\n    return out\n")
    (sample.source / "acme/ops").mkdir(parents=True)
    sample.upstream("ops/__init__", "from .fuse import fuse\n")
    sample.upstream("ops/fuse", FUSE)
    (sample.root / "manifests/acme_set/runner.yaml").unlink()
    text = HEAD.replace("entries:", "imports:\n  - import acme.ops.fuse as fused\nentries:")
    delta = "    deltas:\n      - name: ours\n        after: |\n          out = ...\n        insert: |\n          {}\n"
    entry = "  - symbol: acme.engine:run\n    reason: a test\n"
    sample.manifest(text + entry + delta.format("fused(n)"), "out")
    assert not [f for f in sample.regen().findings if f.exit_code]
    sample.manifest(text + entry + delta.format("fused(n, 2)"), "out")
    assert [f.code for f in sample.regen().findings if f.exit_code] == ["PK331"]
