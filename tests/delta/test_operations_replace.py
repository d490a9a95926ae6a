"""`replace:` and `remove:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import apply, refused

REFUSED = [
    (
        "statements in an expression",
        "def f():\n    a = 1\n",
        "replace: |\n    a = 1\n  with: |\n    b = __upstream__",
        "PK212",
        "cannot be part of an expression",
    ),
    (
        "statements behind a colon",
        "def f():\n    a = 1\n",
        "replace: |\n    a = 1\n  with: |\n    if a: __upstream__",
        "PK212",
        "must be on a line of its own",
    ),
    (
        "statements before a semicolon",
        "def f():\n    a = 1  # b\n",
        "replace: |\n    a = 1\n  with: |\n    __upstream__; b()",
        "PK212",
        "must be on a line of its own",
    ),
    (
        "nothing matches",
        "def f():\n    a = 1\n",
        "replace: |\n    a = 2\n  with: |\n    b = 1",
        "PK201",
        "matches nothing",
    ),
    (
        "part matches nothing",
        "def f():\n    a = 1\n    b = 2\n",
        "replace: |\n    a = 1\n  parts:\n    p: |\n      b = 2\n  with: |\n    __p__",
        "PK201",
        "part 'p' matches nothing in the replaced text",
    ),
    (
        "part matches twice",
        "def f():\n    a(x, x)\n",
        "replace: |\n    a(...)\n  parts:\n    p: |\n      x\n  with: |\n    b(__p__)",
        "PK202",
        "part 'p' matches 2 places",
    ),
    (
        "nested delta outside of what is kept",
        "def f():\n    if a: b()\n    else: c()\n",
        "replace: |\n    if a: ...\n  parts: {p: 'b()'}\n  with: |\n    __p__\n  deltas: [{name: e, call: {match: 'c()', callee: d}}]",
        "PK217",
        "nested delta 'e' lies outside",
    ),
    (
        "nested delta matches only outside of what is wrapped",
        "def f():\n    a()\n    b()\n",
        "replace: |\n    a()\n  with: |\n    __upstream__\n    c()\n  deltas:\n    - name: e\n      remove: |\n        b()",
        "PK201",
        "matches nothing",
    ),
]


@pytest.mark.parametrize(("upstream", "delta", "code", "message"), [pytest.param(*r[1:], id=r[0]) for r in REFUSED])
def test_refused(upstream, delta, code, message):
    found = refused(upstream, f"- name: d\n  {delta}\n")
    assert found.code == code
    assert message in found.message
    assert found.entry == "m.py::f"
    assert found.manifest is not None
    assert found.help


def test_the_place_of_a_misused_placeholder_is_in_the_manifest():
    found = refused(
        "def f():\n    a = 1\n", "- name: d\n  replace: |\n    a = 1\n  with: |\n    c = 2\n    b = (__upstream__)\n"
    )
    assert str(found.manifest) == "m.yaml:14:16"
    assert found.upstream is None or found.upstream.file == "acme/m.py"


def test_the_place_of_a_syntax_error_in_patched_code_is_the_delta():
    upstream = "def f():\n    a()\n    b()\n"
    deltas = """
    - name: good
      after: |
        a()
      insert: |
        c()
    - name: bad
      replace: |
        b()
      with: |
        break
    """
    found = refused(upstream, deltas)
    assert (found.code, found.delta, str(found.upstream)) == ("PK222", "bad", "acme/m.py:3:5")
    assert "'break' outside loop" in found.message
    assert any(line.startswith("> ") and "break" in line for line in found.details)


def test_all_findings_of_all_deltas():
    from afd_patchkit.findings.errors import DeltaError

    deltas = "- name: a\n  remove: |\n    x()\n- name: b\n  remove: |\n    y()\n"
    with pytest.raises(DeltaError) as caught:
        apply("def f():\n    z()\n", deltas)
    assert [(f.code, f.delta) for f in caught.value.findings] == [("PK201", "a"), ("PK201", "b")]
