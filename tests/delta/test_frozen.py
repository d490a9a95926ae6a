"""The `frozen` finding: what is a repetition of replaced text, and what is not."""

from __future__ import annotations

import pytest

from afd_patchkit.findings.finding import Severity
from tests.delta.deltas import apply

UPSTREAM = """
def f(self, batch, out=None):
    if batch.size > self.limit and batch.ready and not batch.empty:
        out = self.model(batch.ids, batch.positions, cache=self.cache)
        self.count += 1
    elif isinstance(batch, Small):
        out = self.small(ids=batch.ids, cache=self.cache, kind="s")
    else:
        for item in batch.items(self.kind):
            run(item)
        log(len(batch))
    if out is None:
        return out
    return out.view(-1)
"""


def replaced(pattern: str, code: str, more: str = "") -> str:
    """A delta that replaces statements."""
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    return (
        f"- name: d\n  replace: {{from: '{pattern}', to: '{pattern}'}}\n".replace(
            f"{{from: '{pattern}', to: '{pattern}'}}", f"|\n    {pattern}"
        )
        + f"  with: |\n{lines}{more}"
    )


REPEATED = [
    ("a call with one argument more", "out = self.model(...)", "out = self.model(batch.ids, batch.positions, cache=self.cache, x=1)", "self.model"),
    ("a call with one argument changed", "out = self.model(...)", "out = self.model(batch.ids, batch.positions, cache=None)", "self.model"),
    ("a call with one argument less", "out = self.model(...)", "out = self.model(batch.ids, batch.positions)", "self.model"),
    ("the call inside another expression", "out = self.model(...)", "out = other(self.model(batch.ids, batch.positions, cache=self.cache))", "self.model"),
    ("a copy in another branch", "out = self.model(...)", "if x:\n    __upstream__\nelse:\n    out = self.model(batch.ids, batch.positions, cache=self.x)", "self.model"),
    ("a call with keywords only", "out = self.small(...)", "out = self.small(ids=batch.ids, cache=self.cache, kind='l')", "self.small"),
    ("a block with its statements", "for item in batch.items(self.kind): ...", "for item in batch.items(self.kind):\n    run(item, 1)", "batch.items"),
    ("a statement of a replaced block", "if batch.size > self.limit and ...: ...", "if x:\n    self.count += 1\n    out = self.model(batch.ids, batch.positions, cache=self.cache)", "self.model"),
    ("a condition with one operand more", "if batch.size > self.limit and ...: ...", "if batch.ready and not batch.empty and self.on:\n    pass", "batch.size > self.limit and batch.ready"),
    ("a comparison", "if batch.size > self.limit and ...: ...", "if x or batch.size > self.limit:\n    pass", "batch.size > self.limit"),
    ("a small call", "return out.view(-1)", "return g(out.view(-1))", "out.view(-1)"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "code", "what"), [pytest.param(*row[1:], id=row[0]) for row in REPEATED])
def test_repeated(pattern, code, what):
    (found,) = apply(UPSTREAM, replaced(pattern, code)).findings
    assert (found.code, found.severity, found.exit_code, found.delta) == ("PK220", Severity.WARNING, 1, "d")
    assert f"repeats upstream text that it replaces: `{what}" in found.message or what in found.message
    assert str(found.manifest) == "m.yaml:13:11"
    assert str(found.upstream).startswith("acme/m.py:")
    assert "`__upstream__`" in (found.help or "")


NOT_REPEATED = [
    ("another call", "out = self.model(...)", "out = run_halves(self.model, batch)"),
    (
        "the same function about something else",
        "out = self.model(...)",
        "out = self.model(half.ids, half.positions, cache=self.cache)",
    ),
    ("kept", "out = self.model(...)", "if x:\n    __upstream__\nelse:\n    out = None"),
    ("a small statement", "self.count += 1", "self.count = 0\nself.count += 1"),
    ("a return of a name", "if out is None: ...", "if out is None:\n    out = 1\nreturn out"),
    ("a check of a type", "log(len(batch))", "log(len(batch) + 1, isinstance(batch, Small))"),
    ("names and attributes", "out = self.small(...)", "out = batch.ids + self.cache"),
    ("one keyword of three", "out = self.small(...)", "out = self.small(ids=x, cache=self.cache, kind=y)"),
]


@pytest.mark.parametrize(("pattern", "code"), [pytest.param(*row[1:], id=row[0]) for row in NOT_REPEATED])
def test_not_repeated(pattern, code):
    assert apply(UPSTREAM, replaced(pattern, code)).findings == ()


@pytest.mark.parametrize(
    ("delta", "frozen"),
    [
        ("expr: |\n    batch.size > self.limit\n  with: |\n    batch.size > self.limit or x", True),
        ("expr: |\n    batch.size > self.limit\n  with: |\n    __upstream__ or x", False),
        ("expr: |\n    out is None\n  with: |\n    out is None or x", True),
        ("expr: |\n    batch.ready\n  with: |\n    batch.ready or x", False),
        ("call:\n    match: |\n      self.model(...)\n    set: {cache: 'self.cache or x'}", False),
        ("call:\n    match: |\n      batch.items(...)\n    set: {0: 'g(self.kind)'}", False),
        ("call:\n    match: |\n      log(...)\n    set: {0: 'len(batch) + 1'}", True),
        ("call:\n    match: |\n      log(...)\n    set: {0: '__upstream__ + 1'}", False),
        ("clause: {of: 'if batch.size > self.limit and ...: ...', replace: 'else'}\n  with: |\n    else:\n        run(item)\n        log(len(batch))", True),
        ("clause: {of: 'if batch.size > self.limit and ...: ...', replace: 'else'}\n  with: |\n    else:\n        x()\n        __upstream__", False),
        ("after: |\n    self.count += 1\n  insert: |\n    out = self.model(batch.ids, batch.positions, cache=self.cache)", False),
    ],
)  # fmt: skip
def test_other_operations(delta, frozen):
    found = apply(UPSTREAM, f"- name: d\n  {delta}\n").findings
    assert [f.code for f in found] == ["PK220"] * frozen


def test_members_decorators_and_cases():
    upstream = "class f:\n    def m(self, a, b):\n        return self.go(a, b)\n"
    member = "- name: d\n  member: {replace: m}\n  with: |\n    def m(self, a, b):\n        return self.go(a, b, 1)\n"
    assert [f.code for f in apply(upstream, member).findings] == ["PK220"]
    decorated = "@deco(a, b=1)\ndef f(): pass\n"
    decorator = "- name: d\n  decorator: {replace: 'deco(...)'}\n  with: 'deco(a, b=1, c=2)'\n"
    assert [f.code for f in apply(decorated, decorator).findings] == ["PK220"]
    matched = "def f(x):\n    match x:\n        case 1:\n            self.go(x, 2)\n"
    case = (
        "- name: d\n  clause: {of: 'match x: ...', replace: 'case 1'}\n  with: |\n    case 2:\n        self.go(x, 2)\n"
    )
    assert [f.code for f in apply(matched, case).findings] == ["PK220"]


def test_a_reason_makes_it_a_note():
    delta = replaced("return out.view(-1)", "return g(out.view(-1))", more="  frozen: it is that simple\n")
    (found,) = apply(UPSTREAM, delta).findings
    assert (found.code, found.severity, found.exit_code, found.help) == ("PK220", Severity.NOTE, 0, "it is that simple")


def test_nested_deltas_are_looked_at():
    delta = (
        "- name: d\n  replace: |\n    return out.view(-1)\n  with: |\n    if x:\n        __upstream__\n"
        "  deltas:\n    - name: e\n      expr: |\n        out.view(-1)\n      with: |\n        g(out.view(-1))\n"
    )
    assert [(f.code, f.delta) for f in apply(UPSTREAM, delta).findings] == [("PK220", "e")]


def test_one_finding_for_each_delta():
    delta = replaced(
        "if batch.size > self.limit and ...: ...",
        "self.model(batch.ids)\nself.small(ids=batch.ids, cache=self.cache)\nrun(item)",
    )
    assert len(apply(UPSTREAM, delta).findings) == 1
