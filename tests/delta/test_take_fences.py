"""Deltas inside taken text are named in the output like all others."""

from __future__ import annotations

from tests.delta.deltas import Case, check, table

UPSTREAM = """
def f(x):
    y = x
    return y
"""

DONOR = """
def g(x):
    start = x
    if x > limit():
        # above
        x = cut(x, 3)
    x = keep(x)
    return x
"""

TAKE = """
- name: from g
  after: |
    y = x
  insert:
    take:
      pin: donor
      symbol: acme.g:g
      from: |
        {first}
      to: |
        {last}
      deltas:
{deltas}
"""


def take(first: str, last: str, deltas: str) -> str:
    lines = "\n".join(" " * 8 + line for line in deltas.strip("\n").split("\n"))
    return TAKE.format(first=first, last=last, deltas=lines)


@table(
    Case(
        "inside a block, and a condition",
        UPSTREAM,
        take(
            "start = x",
            "x = keep(x)",
            """
- name: limit is known
  expr: |
    limit()
  with: |
    7
- name: cut less
  call:
    match: |
      cut(...)
    set: {1: "2"}
""",
        ),
        """
        def f(x):
            y = x
            # ### PATCH START: from g
            start = x
            # ### PATCH START: limit is known
            if x > 7:
            # ### PATCH END: limit is known
                # above
                # ### PATCH START: cut less
                x = cut(x, 2)
                # ### PATCH END: cut less
            x = keep(x)
            # ### PATCH END: from g
            return y
        """,
        donors={"acme.g": DONOR},
    ),
    Case(
        "first and last statement",
        UPSTREAM,
        take(
            "start = x",
            "x = keep(x)",
            """
- name: first
  expr: |
    x
  within: |
    start = x
  with: |
    x + 1
- name: last
  replace: |
    x = keep(x)
  with: |
    if x:
        __upstream__
""",
        ),
        """
        def f(x):
            y = x
            # ### PATCH START: from g
            # ### PATCH START: first
            start = x + 1
            # ### PATCH END: first
            if x > limit():
                # above
                x = cut(x, 3)
            # ### PATCH START: last
            if x:
                x = keep(x)
            # ### PATCH END: last
            # ### PATCH END: from g
            return y
        """,
        donors={"acme.g": DONOR},
    ),
    Case(
        "removed at both ends",
        UPSTREAM,
        take(
            "start = x",
            "x = keep(x)",
            """
- name: no start
  remove: |
    start = x
- name: no keep
  remove: |
    x = keep(x)
""",
        ),
        """
        def f(x):
            y = x
            # ### PATCH START: from g
            # ### PATCH START: no start
            # ### PATCH END: no start
            if x > limit():
                # above
                x = cut(x, 3)
            # ### PATCH START: no keep
            # ### PATCH END: no keep
            # ### PATCH END: from g
            return y
        """,
        donors={"acme.g": DONOR},
    ),
)
def test_take_with_deltas(case: Case) -> None:
    check(case)
