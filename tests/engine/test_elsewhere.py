"""Globals that other modules of the distribution set are read as `module.name`."""

from __future__ import annotations

import importlib

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import finding
from afd_patchkit.upstream.base import CachingUpstream
from afd_patchkit.upstream.verified import SourceUpstream
from tests.engine.sample import Sample

MM = """
STATE = 1
OTHER = 2


def held():
    return STATE, OTHER


def helper():
    return "old"


def calls():
    return helper()
"""

SETTERS = [
    "import acme.mm as mm\n\ndef start():\n    mm.STATE = 5\n",
    "import acme.mm\n\ndef start():\n    acme.mm.STATE = 5\n",
    "from acme import mm\n\ndef start():\n    mm.STATE = 5\n",
    "from . import mm\n\ndef start():\n    mm.STATE = 5\n",
    "from . import (\n    engine,\n    mm as held,\n)\n\ndef start():\n    held.STATE = 5\n",
    "def start():\n    from acme import mm\n    mm.STATE = 5\n",
    "import acme.mm as mm\n\ndef start():\n    mm.STATE: int = 5\n",
    "import acme.mm as mm\n\ndef start():\n    mm.STATE += 4\n",
    "import acme.mm as mm\n\ndef start():\n    x, mm.STATE = 1, 5\n",
    "import acme.mm as mm\n\ndef start():\n    setattr(mm, 'STATE', 5)\n",
]

MANIFEST = """
schema: 1
module: acme_set/out.py
summary: Entries.
pin: acme
entries:
  - {{symbol: 'acme.mm:{name}', reason: a test}}
"""


def made(sample: Sample, setter: str, name: str = "held") -> str:
    """The text of the copy of a function that reads globals."""
    (sample.root / "manifests/acme_set/runner.yaml").unlink(missing_ok=True)
    sample.upstream("mm", MM)
    sample.upstream("other", setter)
    sample.manifest(MANIFEST.format(name=name), "out")
    assert not [f for f in sample.regen(full=True).findings if f.exit_code]
    return sample.generated("out").read_text()


@pytest.mark.parametrize("setter", SETTERS)
def test_c3_a_global_that_another_module_sets(sample: Sample, setter: str) -> None:
    text = made(sample, setter)
    assert "return _acme_mm.STATE, OTHER" in text
    module = sample.load("out")
    assert module.held() == (1, 2)
    importlib.import_module("acme.other").start()
    assert module.held() == (5, 2)


def test_a_function_that_another_module_replaces(sample: Sample) -> None:
    made(sample, "import acme.mm as mm\n\ndef start():\n    mm.helper = lambda: 'new'\n", "calls")
    module = sample.load("out")
    importlib.import_module("acme.other").start()
    assert module.calls() == "new"


@pytest.mark.parametrize(
    "setter",
    [
        "",
        "import acme.engine as mm\n\ndef start():\n    mm.STATE = 5\n",
        "def start(mm):\n    mm.STATE = 5\n",
        "import acme.mm as mm\n\ndef start():\n    return mm.STATE == 5\n",
        "import acme.mm as mm\n\ndef start(x):\n    x.mm.STATE = 5\n",
        "from acme.mm import STATE\n\ndef start():\n    STATE.x = 5\n",
        "import broken syntax\nmm.STATE = 5\n",
    ],
)
def test_all_others_are_imported(sample: Sample, setter: str) -> None:
    assert "from acme.mm import OTHER, STATE" in made(sample, setter)


def test_files_that_cannot_be_had_are_an_error(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def none(self: CachingUpstream, suffix: str = ".py") -> None:
        tries.append(suffix)
        raise UpstreamError(finding("PK401", "the index does not answer"))

    (sample.root / "manifests/acme_set/runner.yaml").unlink()
    sample.upstream("mm", MM)
    sample.upstream("other", SETTERS[0])
    entries = "".join(f"  - {{symbol: 'acme.mm:{name}', reason: a test}}\n" for name in ("held", "calls"))
    sample.manifest(MANIFEST.partition("  - {{")[0] + entries, "out")
    with monkeypatch.context() as patch:
        patch.setattr(SourceUpstream, "package_files", none)
        report = sample.regen()
    assert [(f.code, f.entry) for f in report.findings] == [
        ("PK401", "acme_set/out.py::held"),
        ("PK401", "acme_set/out.py::calls"),
    ]
    assert all("all files of pin acme are searched" in f.details[-1] and f.manifest for f in report.findings)
    assert len(tries) == 1
    assert not sample.lock.exists()
    assert not sample.regen().findings
