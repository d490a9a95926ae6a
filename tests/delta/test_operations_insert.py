"""`insert:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import apply, refused


def test_indentation_of_the_result():
    applied = apply(
        "class C:\n    def f(self):\n        a()\n",
        """
        - name: d
          after: |
            a()
          insert: |
            b()
        """,
        symbol="C.f",
        indent="        ",
    )
    assert applied.buffer.text == (
        "        def f(self):\n            a()\n            # ### PATCH START: d\n            b()\n            # ### PATCH END: d\n"
    )


@pytest.mark.parametrize(
    ("upstream", "delta", "code", "message"),
    [
        ("def f():\n    a()\n", "before: |\n    b()\n  insert: |\n    c()", "PK201", "matches nothing"),
        ("def f():\n    a()\n    a()\n", "before: |\n    a()\n  insert: |\n    c()", "PK202", "matches 2 times"),
        ("f = 1\n", "at: start\n  insert: |\n    c()", "PK215", "acme.m:f has no body"),
        (
            "def f():\n    a()\n",
            "at: end\n  within: |\n    a()\n  insert: |\n    c()",
            "PK215",
            "`within` names a statement without a body",
        ),
        ("def f():\n    a()\n", "after: |\n    a()\n  insert: |\n    await c()", "PK222", "does not compile"),
        ("f = 1\n", "before: |\n    f = 1\n  insert: |\n    await c()", "PK222", "does not compile"),
    ],
)
def test_refused(upstream, delta, code, message):
    found = refused(upstream, f"- name: d\n  {delta}\n")
    assert found.code == code
    assert message in found.message
    assert (found.entry, found.delta) == ("m.py::f", "d")
    assert found.manifest is not None
    assert found.manifest.file == "m.yaml"
    assert found.upstream is not None
    assert found.help
