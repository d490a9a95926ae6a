"""`--full` proves every entry a second time, with libcst; what the first proof lets pass is found."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from afd_patchkit.assemble import entry as entries
from afd_patchkit.assemble import module as modules
from afd_patchkit.assemble.proof.claims import Claim, ClaimedChange, Kept, OwnedClaim, Put, Renamed
from afd_patchkit.assemble.proof.prove import prove
from afd_patchkit.delta import buffer
from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.digests import sha256
from afd_patchkit.findings.finding import Severity
from tests.engine.sample import Sample

CORE = '''
"""Halves."""

from typing import overload

from .tools import helper

SIZES = {
    "one": 1,  # alone
    "two": 2,
}


@overload
def pick(one: int) -> int: ...
@overload
def pick(one: str) -> str: ...
def pick(one): return one


class Core:
    """A core."""

    def start(self, text="""a
        b"""):
        return text

    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, new):
        # kept apart
        self._size = new

    def run(
        self,
        batch,
        limit=3,  # as agreed
    ):
        """Run it.

        In one go.
        """
        found = [one for one in batch if one]

        for one in found:
            # each on its own
            if one > limit:
                helper(one,
                       limit)
            else:
                helper(limit, one)
        return found  # all of it

    def ask(self, batch):
        return self.run(batch)
'''
MANIFEST = """
schema: 1
module: acme_set/core.py
summary: Cores.
pin: acme
imports:
  - from acme_host import allowed, helped
entries:
  - symbol: acme.core:SIZES
    reason: sizes.
  - symbol: acme.core:pick
    name: choose
    reason: choice.
  - symbol: acme.core:Core.start
    reason: outside of its class.
  - part: parts/own.py
    kind: owned
    reason: ours.
  - class:
      name: Halves
      members:
        - symbol: acme.core:Core.size
          reason: size.
        - symbol: acme.core:Core.run
          reason: run.
          deltas:
            - name: more
              parameter: {add: "more: int = 0", after: limit}
            - name: only allowed
              replace: |
                for one in found: ...
              with: |
                if allowed(found):
                    __upstream__
                else:
                    found = []
              deltas:
                - name: helped
                  call:
                    match: |
                      helper(one, limit)
                    callee: helped
            - name: no rest
              remove: |
                found = ...
            - name: found
              at: start
              insert: |
                found = [
                    one
                    for one in batch
                ]
        - symbol: acme.core:Core.ask
          kind: delegate
          reason: asks.
          via: original
          deltas:
            - name: quiet
              parameter: {add: "quiet: bool = True"}
          body: |
            return None if quiet else __original__(...)
"""
PART = '''
"""Ours."""

import json


# what we hold
OURS = json.dumps([1])  # one


def ours(one):
    """It."""
    return [one,
            OURS]
'''


@pytest.fixture
def project(sample: Sample) -> Sample:
    """The sample, with a module that has an entry of each kind."""
    sample.upstream("core", CORE)
    sample.manifest(MANIFEST, "core")
    sample.write("manifests/acme_set/parts/own.py", PART)
    return sample


def test_a_project_is_proved(project):
    assert project.regen(full=True).exit_code == 0
    assert project.check(full=True, jobs=2).exit_code == 0


# ---- mutations of the output ------------------------------------------------------------------------------------------

BENT = [
    ("a comment", "# each on its own", "# each of its own"),
    ("a comment at the end of a line", "# all of it", "# all of them"),
    ("white space before a comment", "return found  # all", "return found # all"),
    ("white space in a line", '"two": 2,', '"two":  2,'),
    ("a blank line lost", "END: no rest\n\n", "END: no rest\n"),
    ("a blank line more", "new):\n", "new):\n\n"),
    ("a trailing comma", '"two": 2,\n', '"two": 2\n'),
    ("a continuation line moved", "\n                           limit)", "\n                          limit)"),
    ("quotes", '"one": 1', "'one': 1"),
    ("a number", '"one": 1', '"one": 0x1'),
    ("white space inside a string", "In one go.", "In  one go."),
    ("a string re-indented", '"""a\n        b"""', '"""a\n    b"""'),
    ("a decorator lost", "    @size.setter\n", ""),
    ("an overload lost", "@overload\ndef choose(one: str) -> str: ...\n", ""),
    ("another default", "limit=3", "limit=4"),
    ("kept text in a wrap", "if one > limit:", "if one >= limit:"),
    ("kept text in a wrap, of another length", "helper(limit, one)", "helper(limit, one, 1)"),
    ("a kept block deeper", "            for one in found:", "              for one in found:"),
    ("new text", "if allowed(found):", "if not allowed(found):"),
    ("new text, moved", "            found = []", "             found = []"),
    ("the new name in a call", "helped(one,", "helped_(one,"),
    ("a line beside the fences", "        # ### PATCH START: only", "        found.sort()\n        # ### PATCH START: only"),
    ("a comment at the end", "return found  # all of it\n", "return found  # all of it\n        # more\n"),
    ("a statement at the end", "return found  # all of it\n", "return found  # all of it\n        return 0\n"),
    ("a fence that ends early", "    one\n            for one in batch\n        ]\n        # ### PATCH END: found\n",
     "    one\n        # ### PATCH END: found\n            for one in batch\n        ]\n"),
    ("a fence not closed", "        # ### PATCH END: only allowed\n", ""),
    ("a fence of another name", "END: found", "END: bound"),
    ("fences of no delta", "    def size(self):\n", "    # ### PATCH START: x\n    # ### PATCH END: x\n    def size(self):\n"),
    ("a removal without its fence", "        # ### PATCH START: no rest\n        # ### PATCH END: no rest\n", ""),
    ("a delegate's body", "return None if quiet", "return 0 if quiet"),
    ("a delegate's header", "def ask(self, batch", "def ask(self, batches"),
    ("the new name", "def choose(one):", "def chosen(one):"),
    ("owned code", "[1])  # one", "[1])  # two"),
    ("owned code moved", "\n            OURS]", "\n           OURS]"),
    ("a comment in owned code", "# one\n\n\ndef ours", "# one\n\n# b\ndef ours"),
    ("an entry twice", "\nclass Halves", "\n\nSIZES = {}\n\n\nclass Halves"),
]  # fmt: skip


def bend(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> list[str]:
    """Change the text of a module once the first proof is through with it; lists each text that was changed."""
    assembled = modules.ModuleMaker.assembled
    reached: list[str] = []

    def bent(maker: Any, *arguments: Any) -> Any:
        made = assembled(maker, *arguments)
        reached.extend([made.text] * (old in made.text))
        return replace(made, text=made.text.replace(old, new, 1))

    monkeypatch.setattr(modules.ModuleMaker, "assembled", bent)
    return reached


@pytest.mark.parametrize(("old", "new"), [pytest.param(old, new, id=id) for id, old, new in BENT])
def test_a_mutation_behind_the_first_proof_is_found(project, monkeypatch, old, new):
    reached = bend(monkeypatch, old, new)
    report = project.regen(full=True)
    assert len(reached) == 1
    found = [f for f in report.findings if f.severity is Severity.ERROR]
    assert {f.code for f in found} == {"PK114"}
    assert all(f.entry and f.manifest for f in found)
    assert report.exit_code == 1
    assert not project.generated("core").exists()


# ---- faults of the engine that the first proof accepts ----------------------------------------------------------------


def _strings_are_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "string_lines", lambda text: frozenset())


def _an_undeclared_name(monkeypatch: pytest.MonkeyPatch) -> None:
    edit = entries.edit_names

    def bent(body: Buffer, plan: Any, file: Any) -> Any:
        at = body.text.find("found  #")
        if at < 0:
            return edit(body, plan, file)
        changed, changes = edit(body, plan, file)
        again, more = entries._changed(changed, [(at, at + 5, "batch", "rebind")], file)
        return again, [*changes, *more]

    monkeypatch.setattr(entries, "edit_names", bent)


def _white_space_at_ends_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    place = entries.put_in_place

    def bent(body: Buffer, indent: str, symbol: Any) -> Buffer:
        at = body.text.find("\n\n")
        return place(body.replace([(at, at + 1, "", "gap")]) if at >= 0 else body, indent, symbol)

    monkeypatch.setattr(entries, "put_in_place", bent)


@pytest.mark.parametrize("fault", [_strings_are_moved, _an_undeclared_name, _white_space_at_ends_is_lost])
def test_a_fault_that_the_first_proof_accepts_is_found(project, monkeypatch, fault):
    fault(monkeypatch)
    report = project.regen(full=True)
    assert {f.code for f in report.findings if f.severity is Severity.ERROR} == {"PK114"}
    assert not project.generated("core").exists()
    assert project.regen().exit_code == 0, "the first proof accepts it"


def test_both_sides_are_shown(project, monkeypatch):
    bend(monkeypatch, "if one > limit", "if one < limit")
    (found,) = (f for f in project.regen(full=True).findings if f.code == "PK114")
    assert found.entry == "acme_set/core.py::Halves.run"
    assert found.upstream is not None
    assert found.upstream.file == "acme/core.py"
    assert "-            if one > limit:" in found.details
    assert "+            if one < limit:" in found.details


# ---- the proof on its own ---------------------------------------------------------------------------------------------


def claim(upstream: str, *parts: Kept, **fields: Any) -> Claim:
    """A claim of the function `f` of a file."""
    return Claim(
        "m.py::f", "f", None, "f", "acme/m.py", upstream, "", parts or (Kept(0, len(upstream.encode())),), **fields
    )


def says(text: str, *claims: Claim | OwnedClaim) -> list[str]:
    """What the proof has against a module."""
    return [f.message for f in prove(text, claims, "### PATCH")]


NEW_SYNTAX = [
    "def f[T: (int, str), *A](one: T) -> T:\n    return one\n",
    "def f(x):\n    return f\"{x['a']!r:{'>'}10}\"\n",
    "def f(x):\n    try:\n        x()\n    except* ValueError:\n        pass\n",
    "def f(x):\n    type A = int\n    return A\n",
]


@pytest.mark.parametrize("text", NEW_SYNTAX)
def test_it_reads_syntax_newer_than_the_python_that_runs(text):
    if sys.version_info < (3, 11):
        with pytest.raises(SyntaxError):
            ast.parse(text)
    assert says(text, claim(text)) == []
    assert says(text.replace("return", "return not").replace("pass", "x"), claim(text)) == [
        "without its deltas it is not upstream's"
    ]


def test_what_the_lock_declares_is_what_was_made():
    text = "def f(x):\n    return x\n"
    change = ClaimedChange("d", 21, 22, (Put("y"),))
    made = "def f(x):\n    # ### PATCH START: d\n    return y\n    # ### PATCH END: d\n"
    right = claim(text, Kept(0, len(text), (change,)), edits=frozenset({("d", 21, 22, sha256(b"y")[:16])}))
    assert says(made, right) == []
    assert any("other changes" in said for said in says(made, claim(text, Kept(0, len(text), (change,)))))
    moved = claim(text, Kept(0, len(text), (ClaimedChange("d", 20, 22, (Put("y"),)),)), edits=right.edits)
    assert any("other changes" in said for said in says(made, moved))


def test_names_that_change_are_told_and_declared():
    text = "def f(x):\n    return g(x)\n"
    new = Renamed("g", "m.g", (21, 22))
    made = "x = 1\n\n\n# Written out: g -> m.g\ndef f(x):\n    return m.g(x)\n"
    assert says(made, claim(text, renamed=(new,), names=frozenset({(21, 22)}))) == []
    assert any("changed names" in said for said in says(made, claim(text, renamed=(new,))))
    assert any(
        "does not say" in said
        for said in says(made[made.index("def") :], claim(text, renamed=(new,), names=frozenset({(21, 22)})))
    )
    assert says(made.replace("m.g(", "m.h("), claim(text, renamed=(new,), names=frozenset({(21, 22)})))


def test_text_kept_twice_is_held_to_upstream_twice():
    text = "def f(x):\n    a(x)\n"
    kept = Kept(14, 18)
    change = ClaimedChange("d", 14, 18, (Put("if x:\n        "), kept, Put("\n    else:\n        "), kept))
    made = "def f(x):\n    # ### PATCH START: d\n    if x:\n        a(x)\n    else:\n        a(x)\n    # ### PATCH END: d\n"
    known = claim(
        text, Kept(0, len(text), (change,)), edits=frozenset({("d", 14, 18, sha256(change.put.encode())[:16])})
    )
    assert says(made, known) == []
    for number in (1, 2):
        parts = made.split("a(x)")
        bent = "a(x)".join(parts[:number]) + "a(y)" + "a(x)".join(parts[number:])
        assert says(bent, known)


def test_upstream_text_that_no_claim_mentions_is_missed():
    text = "def f(x):\n    return x\n"
    lost = claim(text, Kept(0, 10), edits=frozenset())
    assert says("def f(x):\n", lost)


def test_taken_text_must_be_where_it_is_said_to_come_from():
    text = "def f(x):\n    return x\n"
    made = "def f(x):\n    # ### PATCH START: d\n    return y\n    # ### PATCH END: d\n"
    for data, wrong in ((b"y", False), (b"z", True)):
        change = ClaimedChange("d", 21, 22, (Put("y", ("acme/n.py", data, 0)),))
        known = claim(text, Kept(0, len(text), (change,)), edits=frozenset({("d", 21, 22, sha256(b"y")[:16])}))
        assert bool(says(made, known)) == wrong


UNREADABLE = "def f(x):\n    (x.a): int = 1\n"


def test_what_libcst_cannot_read_is_a_note_and_no_proof(project):
    assert [f.unread for f in prove(UNREADABLE, [claim(UNREADABLE)], "### PATCH")] == [True]
    project.release(
        "core", "        return self.run(batch)\n", "        (self.a): int = 1\n        return self.run(batch)\n"
    )
    report = project.regen(full=True)
    assert report.exit_code == 0
    assert {f.code for f in report.findings} >= {"PK664"}


def test_what_libcst_cannot_read_in_the_output_alone_is_an_error():
    text = "def f(x):\n    return x\n"
    (found,) = prove(text + UNREADABLE, [claim(text)], "### PATCH")
    assert not found.unread


def test_libcst_is_imported_for_full_runs_only():
    code = "import sys, afd_patchkit.run.generate, afd_patchkit.assemble.module as m; sys.exit('libcst' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
