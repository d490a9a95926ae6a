"""Leaving out items of a manifest: by exact lines, and nothing else."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from afd_patchkit.manifest.load import parse_manifest
from tools.mutation.deltas import CannotDrop, Mutation, mutations, own_code, without

MANIFEST = textwrap.dedent("""\
    schema: 1
    module: set/oven.py
    summary: An oven.
    pin: acme
    entries:
      # the loop
      - symbol: acme.oven:bake
        reason: one
        deltas:
          # what is first
          - name: first
            at: start
            insert: |
              # - name: not an item

              log()

          # what wraps
          - name: wraps
            replace: |
              run(...)
            with: |
              if ready:
                  __upstream__
            deltas:
              - name: inside
                expr: |
                  x
                with: |
                  y
          -   name: taken
              at: end
              insert:
                take:
                  pin: donor
                  symbol: acme.oven:bake
                  deltas:
                    - name: of the taken text
                      remove: |
                        a = ...
                    - name: another of it
                      remove: |
                        b = ...
      - class:
          name: Oven
          members:
            - symbol: acme.oven:Oven.warm
              reason: two
              deltas:
                - name: only
                  at: end
                  insert: |
                    stop()
    """)  # fmt: skip


def of(name: str, text: str = MANIFEST, *, entries: bool = False) -> Mutation:
    return next(m for m in mutations(text.encode(), "oven.yaml", entries=entries) if m.name == name)


def test_all_deltas_also_inner_ones_are_found():
    assert [m.name for m in mutations(MANIFEST.encode(), "oven.yaml")] == [
        "oven.py::bake/first", "oven.py::bake/wraps", "oven.py::bake/inside", "oven.py::bake/taken",
        "oven.py::bake/of the taken text", "oven.py::bake/another of it", "oven.py::Oven.warm/only",
    ]  # fmt: skip
    assert of("oven.py::bake/taken").inner == ("of the taken text", "another of it")
    assert [m.name for m in mutations(MANIFEST.encode(), "oven.yaml", entries=True)] == [
        "oven.py::bake",
        "oven.py::Oven.warm",
    ]


CUTS = {
    "first": ("      - name: first", "          log()\n"),
    "wraps": ("      - name: wraps", "              y\n"),
    "inside": ("        deltas:\n          - name: inside", "              y\n"),
    "taken": ("      -   name: taken", "                    b = ...\n"),
    "of the taken text": ("                - name: of", "                    a = ...\n"),
    "another of it": ("                - name: another", "                    b = ...\n"),
    "only": ("          deltas:\n            - name: only", "                stop()\n"),
}


@pytest.mark.parametrize("delta", CUTS)
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_a_delta_goes_with_its_lines_and_nothing_else(delta, eol):
    mutation = next(m for m in mutations(MANIFEST.encode(), "oven.yaml") if m.delta == delta)
    start, end = CUTS[delta]
    first = MANIFEST.index(start)
    last = MANIFEST.index(end, first) + len(end)
    wanted = MANIFEST[:first] + MANIFEST[last:]
    assert without(MANIFEST.replace("\n", eol).encode(), "oven.yaml", mutation).decode() == wanted.replace("\n", eol)


def test_an_entry_goes_and_a_class_with_its_only_member():
    first = without(MANIFEST.encode(), "oven.yaml", of("oven.py::bake", entries=True)).decode()
    assert first == MANIFEST[: MANIFEST.index("  - symbol: acme.oven:bake")] + MANIFEST[MANIFEST.index("  - class:") :]
    second = without(MANIFEST.encode(), "oven.yaml", of("oven.py::Oven.warm", entries=True)).decode()
    assert second == MANIFEST[: MANIFEST.index("  - class:")]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("bake/first", "      - name: first\n        at: start\n", "      -\n        name: first\n        at: start\n"),
        (
            "Oven.warm/only",
            "          deltas:\n            - name: only",
            "          deltas: # here\n            - name: only",
        ),
    ],
)
def test_an_item_that_does_not_stand_on_lines_of_its_own_is_refused(name, old, new):
    text = MANIFEST.replace(old, new)
    assert text != MANIFEST
    mutation = of(f"oven.py::{name}", text)
    with pytest.raises(CannotDrop):
        without(text.encode(), "oven.yaml", mutation)


def test_flow_style_is_refused():
    head, _, _ = MANIFEST.partition("    deltas:\n")
    text = head + '    deltas: [{name: a, at: end, insert: "f()"}, {name: b, at: end, insert: "g()"}]\n'
    with pytest.raises(CannotDrop, match="a line of its own"):
        without(text.encode(), "oven.yaml", mutations(text.encode(), "oven.yaml")[1])


def test_our_own_manifests_can_all_be_mutated(root: Path):
    files = sorted((root / "manifests").glob("*/*.yaml"))
    names = set()
    for file in files:
        data = file.read_bytes()
        count = len(parse_manifest(data, file.name).entries)
        for entries in (False, True):
            for mutation in mutations(data, file.name, entries=entries):
                changed = without(data, file.name, mutation)
                lines = iter(data.splitlines())
                assert all(line in lines for line in changed.splitlines()), mutation.name  # a part of it, in order
                names.add(mutation.name)
        assert count
    assert len(names) > 100


OWNED = """\
schema: 1
module: set/oven.py
summary: An oven.
pin: kitchen
entries:
  - kind: owned
    part: parts/oven.py
    reason: The kitchen has none.
    functionality: An oven.
    forwarded: not-needed
"""


def test_code_of_a_module_is_known_again_until_it_changes(tmp_path: Path):
    part = tmp_path / "parts/oven.py"
    part.parent.mkdir()
    part.write_text("HEAT = 1\n", encoding="utf-8")
    module, code = own_code(OWNED.encode(), "oven.yaml", tmp_path)
    assert (module, len(code)) == ("set/oven.py", 10)
    assert own_code(OWNED.replace("none", "one").encode(), "oven.yaml", tmp_path) == (module, code)
    part.write_text("HEAT = 2\n", encoding="utf-8")
    assert own_code(OWNED.encode(), "oven.yaml", tmp_path)[1] != code
    assert own_code(MANIFEST.encode(), "oven.yaml", tmp_path)[1] == ""
