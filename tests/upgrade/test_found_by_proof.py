"""Cases that `tools/proof` found: placed without a word, and the judge saw another statement there."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import World, codes

BASE = '''
def f(self, batch):
    """Run a batch."""
    self.check(batch)
    self.run(batch)
    return batch
'''

DELTA = """
- name: log
  at: start
  insert: |
    self.log(batch)
"""


@pytest.mark.parametrize("text", [True, False], ids=["text", "digests"])
@pytest.mark.parametrize(
    "new",
    [
        pytest.param(
            BASE.replace("    self.check(batch)\n", "    self.open(batch)\n    self.check(batch)\n"), id="added"
        ),
        pytest.param(BASE.replace("    self.check(batch)\n", ""), id="removed"),
        pytest.param(BASE.replace("    self.check(batch)\n", "    self.check(batch, strict=True)\n"), id="changed"),
    ],
)
def test_the_first_statement_behind_the_docstring_is_a_neighbour_of_start(tmp_path: Path, new: str, text: bool) -> None:
    """Invariant 5: the next sibling of what stands at the start is another statement now, so there is a finding."""
    world = World(tmp_path)
    world.release("1.0", {"engine": BASE})
    world.release("2.0", {"engine": new})
    world.deltas(DELTA)
    world.regen()
    (entry,) = world.upgrade(old="1.0" if text else None).entries
    assert entry.status == "review"
    assert codes(entry) & {"PK510", "PK512"}


LAID_OUT = [
    ("print(batch.rows,\n        batch.size)", "print(\n        batch.rows, batch.size\n    )"),
    (
        "if batch:\n        self.one(batch)\n    else:\n        self.two('x')",
        'if (batch):\n        self.one( batch )\n    else:\n        self.two("x")',
    ),
]
LOSES = """
- name: log
  replace: |
    rows = self.rows
  with: |
    self.log(1)
- name: see
  before: |
    {anchor}
  insert: |
    self.log(2)
"""


@pytest.mark.parametrize(("old", "new"), LAID_OUT)
def test_what_is_only_laid_out_otherwise_is_no_new_reader_and_no_other_text(tmp_path: Path, old: str, new: str) -> None:
    world = World(tmp_path)
    base = f"def f(self, batch):\n    rows = None\n    rows = self.rows\n    {old}\n    print(rows,\n         batch)\n    return batch\n"
    world.release("1.0", {"engine": base})
    world.release(
        "2.0", {"engine": base.replace(old, new).replace("print(rows,\n         batch)", "print(rows, batch)")}
    )
    world.deltas(LOSES.format(anchor="if batch: ..." if old.startswith("if") else "print(batch.rows, ...)"))
    world.regen()
    (entry,) = world.upgrade().entries
    assert entry.status == "clean", codes(entry)
