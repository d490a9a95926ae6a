"""One entry for several symbols, and what the manifest says for all its entries."""

from __future__ import annotations

import importlib

import pytest

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.manifest.load import parse_manifest
from afd_patchkit.model import Manifest
from tests.invented import forget
from tests.upgrade.world import World

HEAD = "schema: 1\nmodule: set/runner.py\nsummary: Copies.\npin: acme\n"
SEVERAL = """\
reason: acme asks twice.
forwarded: not-needed
entries:
  - symbols: ["acme.engine:f", "acme.engine:g"]
    deltas:
      - name: ask once
        call: {match: "ask(...)", append: ["1"]}
  - symbol: acme.engine:h
    reason: another one.
    functionality: does it.
  - class:
      name: K
      members:
        - symbols:
            - acme.engine:C.m
            - acme.engine:C.n
          forwarded: "#12"
"""
ENGINE = """
def ask(x, y=0): return x + y

def f(x):
    return ask(x)

def g(x):
    return ask(x) * 2

def h(x):
    return x

class C:
    def m(self): return 1
    def n(self): return 2
"""


def parsed(text: str) -> Manifest:
    return parse_manifest((HEAD + text).encode(), "m.yaml")


def test_each_symbol_is_an_entry() -> None:
    made = parsed(SEVERAL)
    assert list(made.by_ref()) == [f"set/runner.py::{name}" for name in ("f", "g", "h", "K.m", "K.n")]
    assert [(e.reason, e.functionality, e.forwarded) for e, _ in made.all_entries()] == [
        ("acme asks twice.", None, "not-needed"),
        ("acme asks twice.", None, "not-needed"),
        ("another one.", "does it.", "not-needed"),
        ("acme asks twice.", None, "#12"),
        ("acme asks twice.", None, "#12"),
    ]
    symbols = [e.symbol for e, _ in made.all_entries()]
    assert [(s.text, s.position.line) for s in symbols if s][3:] == [("acme.engine:C.m", 19), ("acme.engine:C.n", 20)]


def test_they_are_generated_and_move_one_by_one(tmp_path) -> None:
    world = World(tmp_path)
    world.release("1.0", {"engine": ENGINE})
    world.release("2.0", {"engine": ENGINE.replace("def g(x):", "def g(x, z=1):")})
    world.write("manifests/set/runner.yaml", HEAD + SEVERAL)
    assert world.regen(full=True).findings == ()
    text = (world.root / "generated/generated_acme/set/runner.py").read_text()
    assert text.count("ask(x, 1)") == 2
    assert text.count("# Patch reason: acme asks twice.") == 4
    result = world.upgrade()
    assert {e.ref.partition("::")[2]: e.status for e in result.entries} == {
        "f": "unchanged", "g": "clean", "h": "unchanged", "K.m": "unchanged", "K.n": "unchanged"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "line", "message"),
    [
        ("entries:\n  - symbols: ['a:f']\n", "PK009", 6, "entry needs `reason`"),
        ("reason: r\nentries:\n  - symbols: ['a:f']\n    symbol: a:g\n", "PK013", 8, "do not go together"),
        ("reason: r\nentries:\n  - symbols: ['a:f']\n    name: g\n", "PK013", 8, "do not go together"),
        ("reason: r\nentries:\n  - kind: copy\n", "PK013", 7, "needs `symbol`"),
        ("reason: r\nentries:\n  - kind: owned\n    part: p.py\n    symbols: ['a:f']\n", "PK013", 9, "does not go with"),
        ("reason: r\nentries:\n  - symbols: ['a f']\n", "PK006", 7, "is not a symbol"),
        ("reason: r\nentries:\n  - class:\n      name: K\n      members:\n        - symbols: ['a:C.m', 'a:D.m']\n", "PK015", 10, "twice"),
    ],
)  # fmt: skip
def test_refused(text: str, code: str, line: int, message: str) -> None:
    with pytest.raises(ManifestError) as error:
        parsed(text)
    (found,) = error.value.findings
    assert (found.code, found.manifest and found.manifest.line) == (code, line)
    assert message in found.message


FIELDS = """\
reason: a test
imports:
  - from acme.engine import C
entries:
  - class:
      name: K
      bases: [C]
      doc: Ours.
      fields: |
        # whether somebody waits
        waiting: bool = False
        sizes = [1, 2]
      members:
        - symbols: ["acme.engine:C.LIMIT", "acme.engine:C.third"]
        - symbol: acme.engine:C.other
          deltas:
            - name: more
              expr: |
                ask(...)
              with: |
                __upstream__ + 2
        - symbol: acme.engine:C.m
"""


def test_a_class_has_fields_of_its_own_and_of_upstream(tmp_path, monkeypatch) -> None:
    world = World(tmp_path)
    text = ENGINE.replace("class C:\n", "class C:\n    LIMIT: int = 3\n    other = ask(LIMIT)\n    third = 3\n")
    world.release("1.0", {"engine": text})
    world.release("2.0", {"engine": text.replace("LIMIT: int = 3", "LIMIT: int = 4")})
    world.write("manifests/set/runner.yaml", HEAD + FIELDS)
    assert {f.code for f in world.regen(full=True).findings} == {"PK632"}
    monkeypatch.syspath_prepend(str(world.root / "generated"))
    monkeypatch.syspath_prepend(str(world.releases / "acme-1.0"))
    forget()
    made = importlib.import_module("generated_acme.set.runner").K
    assert (made.waiting, made.sizes, made.LIMIT, made.other, made.third, made().m()) == (False, [1, 2], 3, 5, 3, 1)
    assert made.__annotations__ == {"waiting": bool, "LIMIT": int}
    text = (world.root / "generated/generated_acme/set/runner.py").read_text()
    assert "    # whether somebody waits\n    waiting: bool = False\n" in text
    result = world.upgrade()
    assert result.findings == ()
    statuses = {e.ref.partition("::")[2]: e.status for e in result.entries}
    assert statuses == {"K.LIMIT": "clean", "K.third": "unchanged", "K.other": "unchanged", "K.m": "unchanged"}
    forget()


@pytest.mark.parametrize(
    ("fields", "code", "line", "column", "message"),
    [
        ("x = 1\n        def f(self): ...", "PK020", 11, 9, "not an assignment"),
        ("x = 1\n        m = 2", "PK015", 13, 11, "twice"),
        ("x = ", "PK020", 10, 12, "not Python"),
        ("a.b = 1", "PK020", 10, 9, "not an assignment"),
    ],
)
def test_fields_refused(fields: str, code: str, line: int, column: int, message: str) -> None:
    text = f"reason: r\nentries:\n  - class:\n      name: K\n      fields: |\n        {fields}\n      members:\n        - symbol: a:C.m\n"
    with pytest.raises(ManifestError) as error:
        parsed(text)
    (found,) = error.value.findings
    assert found.manifest is not None
    assert (found.code, found.manifest.line - (code == "PK015"), found.manifest.column) == (
        code,
        line - (code == "PK015"),
        column,
    )
    assert message in found.message
