"""`insert:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import Case, apply, check, refused, table

PLAIN = '''
def f(x):
    """Doc."""
    # about a
    a = x  # trailing

    # about the loop
    for i in range(a):
        # inside
        a += i
        # end of the loop
    return a
'''


@table(
    Case(
        "before the first statement, below the docstring",
        PLAIN,
        """
        - name: d
          before: |
            a = x
          insert: |
            log(x)
        """,
        '''
        def f(x):
            """Doc."""
            # ### PATCH START: d
            log(x)
            # ### PATCH END: d
            # about a
            a = x  # trailing

            # about the loop
            for i in range(a):
                # inside
                a += i
                # end of the loop
            return a
        ''',
    ),
    Case(
        "after a statement: the comment on its line stays with it, those below with their own",
        PLAIN,
        """
        - name: d
          after: |
            a = x
          insert: |
            # a comment of ours
            log(x)
        """,
        '''
        def f(x):
            """Doc."""
            # about a
            a = x  # trailing
            # ### PATCH START: d
            # a comment of ours
            log(x)
            # ### PATCH END: d

            # about the loop
            for i in range(a):
                # inside
                a += i
                # end of the loop
            return a
        ''',
    ),
    Case(
        "after a block: the comment that ends it stays in it",
        PLAIN,
        """
        - name: d
          after: |
            for i in range(a): ...
          insert: |
            log(x)
        """,
        '''
        def f(x):
            """Doc."""
            # about a
            a = x  # trailing

            # about the loop
            for i in range(a):
                # inside
                a += i
                # end of the loop
            # ### PATCH START: d
            log(x)
            # ### PATCH END: d
            return a
        ''',
    ),
    Case(
        "at the start is after the docstring, at the end after the last statement",
        PLAIN,
        """
        - name: first
          at: start
          insert: |
            start()
        - name: last
          at: end
          insert: |
            if x:
                end()
        """,
        '''
        def f(x):
            """Doc."""
            # ### PATCH START: first
            start()
            # ### PATCH END: first
            # about a
            a = x  # trailing

            # about the loop
            for i in range(a):
                # inside
                a += i
                # end of the loop
            return a
            # ### PATCH START: last
            if x:
                end()
            # ### PATCH END: last
        ''',
    ),
    Case(
        "at the start and end of a block: its own comments are inside",
        PLAIN,
        """
        - name: first
          at: start
          within: |
            for i in range(a): ...
          insert: |
            start()
        - name: last
          at: end
          within: |
            for i in range(a): ...
          insert: |
            end()
        """,
        '''
        def f(x):
            """Doc."""
            # about a
            a = x  # trailing

            # about the loop
            for i in range(a):
                # ### PATCH START: first
                start()
                # ### PATCH END: first
                # inside
                a += i
                # end of the loop
                # ### PATCH START: last
                end()
                # ### PATCH END: last
            return a
        ''',
    ),
    Case(
        "only a docstring",
        '''
        def f():
            "Doc."
        ''',
        """
        - name: d
          at: start
          insert: |
            go()
        """,
        '''
        def f():
            "Doc."
            # ### PATCH START: d
            go()
            # ### PATCH END: d
        ''',
    ),
    Case(
        "before the docstring is possible when asked for",
        '''
        def f():
            "Doc."
            return 1
        ''',
        """
        - name: d
          before: |
            "Doc."
          insert: |
            go()
        """,
        '''
        def f():
            # ### PATCH START: d
            go()
            # ### PATCH END: d
            "Doc."
            return 1
        ''',
    ),
    Case(
        "the only statement",
        """
        def f():
            return 1
        """,
        """
        - name: before
          before: |
            return 1
          insert: |
            a()
        - name: after
          after: |
            return 1
          insert: |
            b()
        """,
        """
        def f():
            # ### PATCH START: before
            a()
            # ### PATCH END: before
            return 1
            # ### PATCH START: after
            b()
            # ### PATCH END: after
        """,
    ),
)
def test_places(case):
    check(case)


NESTED = """
def f(x):
    if x:
        a()
        if x > 1:
            b()
    c()
"""


@table(
    Case(
        "one point, three depths: deeper blocks end first, whatever the manifest's order",
        NESTED,
        """
        - name: outer
          after: |
            if x: ...
          insert: |
            o()
        - name: middle
          after: |
            if x > 1: ...
          insert: |
            m()
        - name: inner
          after: |
            b()
          insert: |
            i()
        """,
        """
        def f(x):
            if x:
                a()
                if x > 1:
                    b()
                    # ### PATCH START: inner
                    i()
                    # ### PATCH END: inner
                # ### PATCH START: middle
                m()
                # ### PATCH END: middle
            # ### PATCH START: outer
            o()
            # ### PATCH END: outer
            c()
        """,
    ),
    Case(
        "one point, clauses and statements: clauses end their statement first",
        NESTED,
        """
        - name: after outer
          after: |
            if x: ...
          insert: |
            o()
        - name: else outer
          clause:
            of: |
              if x: ...
            add: |
              else:
                  e()
        - name: in inner
          after: |
            b()
          insert: |
            i()
        - name: elif inner
          clause:
            of: |
              if x > 1: ...
            add: |
              elif x > 2:
                  j()
        """,
        """
        def f(x):
            if x:
                a()
                if x > 1:
                    b()
                    # ### PATCH START: in inner
                    i()
                    # ### PATCH END: in inner
                # ### PATCH START: elif inner
                elif x > 2:
                    j()
                # ### PATCH END: elif inner
            # ### PATCH START: else outer
            else:
                e()
            # ### PATCH END: else outer
            # ### PATCH START: after outer
            o()
            # ### PATCH END: after outer
            c()
        """,
    ),
    Case(
        "one point, one depth: manifest order",
        NESTED,
        """
        - name: d2
          before: |
            c()
          insert: |
            two()
        - name: d1
          before: |
            c()
          insert: |
            one()
        - name: d3
          after: |
            c()
          insert: |
            three()
        - name: d4
          after: |
            c()
          insert: |
            four()
        """,
        """
        def f(x):
            if x:
                a()
                if x > 1:
                    b()
            # ### PATCH START: d2
            two()
            # ### PATCH END: d2
            # ### PATCH START: d1
            one()
            # ### PATCH END: d1
            c()
            # ### PATCH START: d3
            three()
            # ### PATCH END: d3
            # ### PATCH START: d4
            four()
            # ### PATCH END: d4
        """,
    ),
    Case(
        "before a statement that also gets a first clause",
        """
        def f(x):
            if x:
                return 1
        """,
        """
        - name: clause
          clause:
            of: |
              if x: ...
            first: |
              if x > 1:
                  return 2
        - name: statement
          before: |
            if x: ...
          insert: |
            x += 1
        """,
        """
        def f(x):
            # ### PATCH START: statement
            x += 1
            # ### PATCH END: statement
            # ### PATCH START: clause
            if x > 1:
                return 2
            elif x:
            # ### PATCH END: clause
                return 1
        """,
    ),
    Case(
        "each of several matches",
        """
        def f(x):
            a()
            if x:
                a()
        """,
        """
        - name: d
          after: |
            a()
          count: 2
          insert: |
            b()
        """,
        """
        def f(x):
            a()
            # ### PATCH START: d (1/2)
            b()
            # ### PATCH END: d (1/2)
            if x:
                a()
                # ### PATCH START: d (2/2)
                b()
                # ### PATCH END: d (2/2)
        """,
    ),
    Case(
        "within, next_to, nth",
        """
        def f(x):
            a()
            b()
            a()
            if x:
                a()
            else:
                a()
        """,
        """
        - name: beside
          before: |
            a()
          next_to: |
            if x: ...
          insert: |
            beside()
        - name: clause
          before: |
            a()
          within: {of: "if x: ...", clause: "else"}
          insert: |
            clause()
        - name: third
          before: |
            a()
          nth: 3
          insert: |
            third()
        """,
        """
        def f(x):
            a()
            b()
            # ### PATCH START: beside
            beside()
            # ### PATCH END: beside
            a()
            if x:
                # ### PATCH START: third
                third()
                # ### PATCH END: third
                a()
            else:
                # ### PATCH START: clause
                clause()
                # ### PATCH END: clause
                a()
        """,
    ),
)
def test_one_point(case):
    check(case)


@table(
    Case(
        "one-line body",
        """
        def f(x):
            if x: return 1
            return 2
        """,
        """
        - name: d
          before: |
            return 1
          insert: |
            log(x)
        """,
        """
        def f(x):
            # ### PATCH START: d
            if x:
                log(x)
                return 1
            # ### PATCH END: d
            return 2
        """,
    ),
    Case(
        "one-line body of several statements, several deltas",
        """
        def f(x):
            for i in x: a(i); b(i)  # both
            return 2
        """,
        """
        - name: after b
          after: |
            b(i)
          insert: |
            c(i)
        - name: after a
          after: |
            a(i)
          insert: |
            if i:
                d(i)
        - name: start
          at: start
          within: |
            for i in x: ...
          insert: |
            s(i)
        """,
        """
        def f(x):
            # ### PATCH START: after b
            for i in x:
                # ### PATCH START: start
                s(i)
                # ### PATCH END: start
                a(i)
                # ### PATCH START: after a
                if i:
                    d(i)
                # ### PATCH END: after a
                b(i)  # both
                c(i)
            # ### PATCH END: after b
            return 2
        """,
    ),
    Case(
        "one-line function, class and else",
        """
        class f:
            def g(self): return 1
            if 1: x = 1
            else: x = 2
        """,
        """
        - name: g
          before: |
            return 1
          insert: |
            log()
        - name: e
          after: |
            x = 2
          insert: |
            y = 3
        """,
        """
        class f:
            # ### PATCH START: g
            def g(self):
                log()
                return 1
            # ### PATCH END: g
            if 1: x = 1
            # ### PATCH START: e
            else:
                x = 2
                y = 3
            # ### PATCH END: e
        """,
    ),
    Case(
        "semicolons: simple code shares the line, a block does not",
        """
        def f(x):
            a(); b(); c()  # three
            d();
            e();  # five
        """,
        """
        - name: simple
          before: |
            b()
          insert: |
            x += 1
        - name: block
          before: |
            c()
          insert: |
            if x:
                y()
        - name: trailing
          after: |
            d()
          insert: |
            z()
        - name: commented
          after: |
            e()
          insert: |
            z2()
        """,
        """
        def f(x):
            # ### PATCH START: block
            # ### PATCH START: simple
            a(); x += 1; b()
            # ### PATCH END: simple
            if x:
                y()
            c()  # three
            # ### PATCH END: block
            d();
            # ### PATCH START: trailing
            z()
            # ### PATCH END: trailing
            e();  # five
            # ### PATCH START: commented
            z2()
            # ### PATCH END: commented
        """,
    ),
    Case(
        "code with a comment never shares a line",
        """
        def f(x):
            a(); b()
        """,
        """
        - name: d
          after: |
            a()
          insert: |
            c()  # why
        """,
        """
        def f(x):
            # ### PATCH START: d
            a()
            c()  # why
            b()
            # ### PATCH END: d
        """,
    ),
    Case(
        "line continuations: before, behind, and between",
        """
        def f(x):
            a = x + \\
                1
            if x: \\
                b()
            c(); \\
                d()
        """,
        """
        - name: after a
          after: |
            a = x + 1
          insert: |
            p()
        - name: before b
          before: |
            b()
          insert: |
            q()
        - name: before d
          before: |
            d()
          insert: |
            if x:
                r()
        """,
        """
        def f(x):
            a = x + \\
                1
            # ### PATCH START: after a
            p()
            # ### PATCH END: after a
            # ### PATCH START: before b
            if x:
                q()
            # ### PATCH END: before b
                b()
            # ### PATCH START: before d
            c()
            if x:
                r()
            d()
            # ### PATCH END: before d
        """,
    ),
    Case(
        "a comment that ends with a backslash continues nothing",
        """
        def f(x):
            a()
            # C:\\
            b()
        """,
        """
        - name: d
          before: |
            b()
          insert: |
            c()
        """,
        """
        def f(x):
            a()
            # ### PATCH START: d
            c()
            # ### PATCH END: d
            # C:\\
            b()
        """,
    ),
    Case(
        "strings in the new code keep their lines",
        """
        def f(x):
            if x:
                a()
        """,
        """
        - name: d
          after: |
            a()
          insert: |
            t = '''one
              two
            # ### PATCH START: no fence
            '''
            b(t)
        """,
        """
        def f(x):
            if x:
                a()
                # ### PATCH START: d
                t = '''one
          two
        # ### PATCH START: no fence
        '''
                b(t)
                # ### PATCH END: d
        """,
    ),
    Case(
        "tabs, form feeds and CRLF",
        b"def f(x):\r\n\tif x:\r\n\t\ta()\r\n\f\r\n\tif x: b()\r\n\tc()\r\n",
        """
        - name: tab
          after: |
            a()
          insert: |
            if x:
                p()
        - name: one line
          before: |
            b()
          insert: |
            q()
        """,
        "def f(x):\n\tif x:\n\t\ta()\n\t\t# ### PATCH START: tab\n\t\tif x:\n\t\t    p()\n\t\t# ### PATCH END: tab\n\f\n"
        "\t# ### PATCH START: one line\n\tif x:\n\t\tq()\n\t\tb()\n\t# ### PATCH END: one line\n\tc()\n",
    ),
    Case(
        "form feed in front of the symbol and of a statement",
        b"class C:\n    x = 1\n\f    def f(self):\n        a()\n\f        b()\n        c()\n",
        """
        - name: d
          before: |
            b()
          insert: |
            p()
        - name: e
          after: |
            b()
          insert: |
            q()
        """,
        "\fdef f(self):\n    a()\n    # ### PATCH START: d\n    p()\n    # ### PATCH END: d\n\f    b()\n"
        "    # ### PATCH START: e\n    q()\n    # ### PATCH END: e\n    c()\n",
        symbol="C.f",
    ),
    Case(
        "unicode before the anchor on its line",
        """
        def f(x):
            s = "äöü€😀"; a(); b()
        """,
        """
        - name: d
          before: |
            b()
          insert: |
            t = "é"
        """,
        """
        def f(x):
            # ### PATCH START: d
            s = "äöü€😀"; a(); t = "é"; b()
            # ### PATCH END: d
        """,
    ),
    Case(
        "async, nested functions and classes, decorated statements",
        """
        async def f(x):
            async with x as y:
                await y

            @deco(
                1,
            )
            def inner():
                return 1

            class C:
                z = 1
            return inner
        """,
        """
        - name: a
          after: |
            await y
          insert: |
            await y.done()
        - name: b
          before: |
            def inner(): ...
          insert: |
            b()
        - name: c
          at: start
          within: |
            def inner(): ...
          insert: |
            c()
        - name: d
          at: end
          within: |
            class C: ...
          insert: |
            w = 2
        """,
        """
        async def f(x):
            async with x as y:
                await y
                # ### PATCH START: a
                await y.done()
                # ### PATCH END: a

            # ### PATCH START: b
            b()
            # ### PATCH END: b
            @deco(
                1,
            )
            def inner():
                # ### PATCH START: c
                c()
                # ### PATCH END: c
                return 1

            class C:
                z = 1
                # ### PATCH START: d
                w = 2
                # ### PATCH END: d
            return inner
        """,
    ),
    Case(
        "comments of other indentation belong to the block above",
        """
        def f(x):
            if x:
                a()
                # still in the block
        # commented_out()
            b()
        """,
        """
        - name: d
          before: |
            b()
          insert: |
            c()
        """,
        """
        def f(x):
            if x:
                a()
                # still in the block
        # commented_out()
            # ### PATCH START: d
            c()
            # ### PATCH END: d
            b()
        """,
    ),
    Case(
        "before elif and else: at the end of the clause above",
        """
        def f(x):
            if x:
                a()
            elif x > 1:
                b()
                # last of the elif
            else:
                c()
        """,
        """
        - name: one
          at: end
          within: |
            if x: ...
          insert: |
            p()
        - name: two
          at: end
          within: {of: "if x: ...", clause: "elif x > 1"}
          insert: |
            q()
        """,
        """
        def f(x):
            if x:
                a()
                # ### PATCH START: one
                p()
                # ### PATCH END: one
            elif x > 1:
                b()
                # last of the elif
                # ### PATCH START: two
                q()
                # ### PATCH END: two
            else:
                c()
        """,
    ),
    Case(
        "match cases",
        """
        def f(x):
            match x:
                case 1: return 1
                case [a, *_]:
                    return a
        """,
        """
        - name: one
          at: start
          within: {of: "match x: ...", clause: "case 1"}
          insert: |
            p()
        - name: two
          at: end
          within: {of: "match x: ...", clause: "case [a, *_]"}
          insert: |
            q()
        """,
        """
        def f(x):
            match x:
                # ### PATCH START: one
                case 1:
                    p()
                    return 1
                # ### PATCH END: one
                case [a, *_]:
                    return a
                    # ### PATCH START: two
                    q()
                    # ### PATCH END: two
        """,
    ),
)
def test_layouts(case):
    check(case)


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
