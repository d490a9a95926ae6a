"""`regen` for another release: what it says of the entries, and that it writes all or nothing."""

from __future__ import annotations

import pytest

from afd_patchkit.api import RunOptions, regen

from .world import World

ENGINE = "def f(batch):\n    batch.work()\n    batch.done()\n\n\ndef g(x):\n    return x\n\n\ndef h(x):\n    return x\n"
SET = """\
schema: 1
module: set/runner.py
summary: Copies.
pin: acme
entries:
  - symbol: acme.engine:f
    reason: f waits for everything.
    remove_when:
      - defines: acme.engine:Overlap
    removal: acme overlaps
      by itself
    deltas:
      - name: ask first
        before: |
          batch.work()
        insert: |
          print(batch)
  - symbol: acme.engine:g
    reason: hardware that acme does not know.
  - symbol: acme.engine:h
    reason: h is slow.
    remove_when:
      - missing: acme.engine:h
"""
RELEASES = {
    "nothing": ENGINE,
    "clean": ENGINE.replace("return x\n\n\ndef h", "return x + 0\n\n\ndef h"),
    "review": ENGINE.replace("    batch.work()\n", "    batch.wait()\n    batch.work()\n"),
    "conflict": ENGINE.replace("    batch.work()\n", ""),
    "retire": ENGINE.replace("return x\n\n\ndef h", "return x + 0\n\n\ndef h") + "\n\nclass Overlap: ...\n",
}


@pytest.fixture
def world(tmp_path) -> World:
    world = World(tmp_path)
    world.release("1.0", {"engine": ENGINE})
    world.write("manifests/set/runner.yaml", SET)
    world.regen()
    return world


def said(world: World, name: str) -> tuple[int, list[tuple[str, str, str | None]]]:
    world.release("2.0", {"engine": RELEASES[name]})
    options = world.options(**{"acme": "acme-2.0", "acme@1.0": "acme-1.0", "acme@2.0": "acme-2.0"})
    report = regen(world.project, RunOptions(overrides={"acme": "2.0"}, sources=options))
    return report.exit_code, [
        (f.code, f.message, f.entry) for f in report.findings if f.code in ("PK501", "PK660", "PK661", "PK662", "PK663")
    ]


G = "set/runner.py::g"


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("nothing", 0, [("PK660", "acme 2.0: 3 unchanged", None)]),
        ("clean", 0, [("PK660", "acme 2.0: 1 clean, 2 unchanged", None)]),
        ("review", 1, [
            ("PK501", "acme.engine:f is not settled at acme 2.0: review", "set/runner.py::f"),
            ("PK660", "acme 2.0: 1 review, 2 unchanged", None),
        ]),
        ("conflict", 1, [
            ("PK501", "acme.engine:f is not settled at acme 2.0: conflict", "set/runner.py::f"),
            ("PK660", "acme 2.0: 1 conflict, 2 unchanged", None),
        ]),
        ("retire", 0, [
            ("PK660", "acme 2.0: 1 clean, 1 unchanged, 1 retire", None),
            ("PK661", "not generated for acme 2.0, 1 entry: the target defines acme.engine:Overlap", None),
            ("PK663", "this entry retires at acme 2.0: acme overlaps by itself", "set/runner.py::f"),
            ("PK662", "this entry stays at acme 2.0: it has no removal condition. hardware that acme does not know.", G),
            ("PK662", "this entry stays at acme 2.0: its removal condition does not hold: the target lacks acme.engine:h. h is slow.", "set/runner.py::h"),
        ]),
    ],
)  # fmt: skip
def test_what_is_said_and_written(world: World, name: str, code: int, expected) -> None:
    before = world.state()
    assert said(world, name) == (code, expected)
    written = {path for path, data in world.state().items() if before.get(path) != data}
    assert {path.split("/")[0] for path in written} == ({"generated-acme-2.0"} if code == 0 else set())
    if code == 0:
        text = (world.root / "generated-acme-2.0/generated_acme/set/runner.py").read_text()
        assert ("def f(" in text) == (name != "retire")
        assert "def g(" in text


def test_the_pinned_release_says_nothing(world: World) -> None:
    report = regen(world.project, RunOptions(overrides={"acme": "1.0"}, sources=world.options(acme="acme-1.0")))
    assert [f for f in report.findings if f.code.startswith("PK66")] == []
