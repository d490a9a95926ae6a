"""`take:` text of another pin's symbol."""

from __future__ import annotations

import pytest

from afd_patchkit.delta.buffer import upstream_line
from tests.delta.deltas import apply, refused

UPSTREAM = """
def f(self, x):
    if x:
        a(x)
    return x
"""

DONOR = '''
class Engine:
    def step(self, batch):
        """Doc."""
        # about state
        state = self.prepare(
            batch,
            key="é",
        )  # prepared
        if state.split:
            run(state, """
  text
""")
            # end of if
        # about out
        out = self.model(state)
        return out
'''

TAKE = """
- name: d
  after: |
    a(x)
  insert:
    take:
      pin: donor
      symbol: acme.engine:Engine.step
"""


def take(more: str) -> str:
    """The delta `TAKE` with more keys under `take`."""
    return TAKE + "".join(f"      {line}\n" for line in more.strip("\n").splitlines())


def test_taken_lines_are_the_donor_s_and_noted():
    applied = apply(UPSTREAM, take("from: |\n  if state.split: ...\nto: |\n  out = ..."), donors={"acme.engine": DONOR})
    lines = [
        found for line in applied.buffer.split_lines() if (found := upstream_line(line)) and found[0].pin == "donor"
    ]
    assert [number for _, number in lines] == [9, 10, 11, 12, 13, 14, 15]
    ((key, (file, span)),) = applied.taken.items()
    assert key == ("donor", "acme.engine:Engine.step")
    assert file.slice(span).startswith("if state.split:")
    assert file.slice(span).endswith("out = self.model(state)")
    assert [e.delta for e in applied.edits] == ["d"]


def test_two_takes_of_one_symbol_note_all_that_lies_between():
    second = take("from: |\n  out = ...").replace("name: d", "name: e").replace("a(x)", "return x")
    applied = apply(UPSTREAM, take("from: |\n  state = ...") + second, donors={"acme.engine": DONOR})
    (file, span) = applied.taken["donor", "acme.engine:Engine.step"]
    assert file.slice(span).startswith("state = ")
    assert file.slice(span).endswith("out = self.model(state)")


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        ("from: |\n  nothing = ...", "PK201", "matches nothing in Engine.step"),
        ("from: |\n  state = ...\nto: |\n  run(...)", "PK207", "`to` matches no later sibling"),
        ("from: |\n  state = ...\ndeltas: [{name: e, remove: 'return out'}]", "PK201", "matches nothing"),
        ("from: |\n  state = ...\nrename: {nothing: 'x'}", "PK224", "`nothing` does not occur"),
        ("from: |\n  state = ...\nrename: {state: 'self.state'}", "PK224", "`state` is bound in the text"),
    ],
)
def test_refused(more, code, message):
    found = refused(UPSTREAM, take(more), donors={"acme.engine": DONOR})
    assert found.code == code
    assert message in found.message
    assert (found.entry, str(found.upstream).split(":")[0]) == ("m.py::f", "acme/engine.py")
    assert found.help


def test_a_function_has_a_body_to_take():
    found = refused(
        "def f():\n    pass\n", TAKE.replace("a(x)", "pass"), donors={"acme.engine": "class Engine:\n    step = 1\n"}
    )
    assert (found.code, found.message) == ("PK215", "acme.engine:Engine.step has no body to take from")


def test_names_bound_by_inner_scopes_are_not_renamed():
    donors = {"acme.engine": "class Engine:\n    def step(self):\n        return (lambda a: a)(1)\n"}
    found = refused(UPSTREAM, take("rename: {a: 'b'}"), donors=donors)
    assert (found.code, found.delta) == ("PK224", "d")
