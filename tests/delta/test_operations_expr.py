"""`expr:` and `call:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import Case, apply, check, refused, table


def one(id_: str, old: str, pattern: str, new: str, expected: str, *, head: str = "def f(x):") -> Case:
    """One expression of one statement."""
    return Case(
        id_,
        f"{head}\n    {old}\n",
        f"- name: d\n  expr: |\n    {pattern}\n  with: |\n    {new}\n",
        f"{head}\n    # ### PATCH START: d\n    {expected}\n    # ### PATCH END: d\n",
    )


@table(
    one("condition", "if x.size > 1: return x", "x.size > 1", "__upstream__ and ok", "if x.size > 1 and ok: return x"),
    one("or under and", "y = a and b", "a", "p or q", "y = (p or q) and b"),
    one("kept or under and", "y = a or b", "a or b", "__upstream__ and c", "y = (a or b) and c"),
    one("inside a chained comparison", "y = a < b < c", "b", "p == q", "y = a < (p == q) < c"),
    one("a chained comparison kept", "y = a < b < c", "a < b < c", "__upstream__ < d", "y = (a < b < c) < d"),
    one("under not", "y = not a", "a", "p and q", "y = not (p and q)"),
    one("not kept", "y = not a", "not a", "__upstream__ == b", "y = (not a) == b"),
    one("arithmetic", "y = a * b", "a", "__upstream__ + 1", "y = (a + 1) * b"),
    one("power binds to the right", "y = -a ** b", "a", "-p", "y = -(-p) ** b"),
    one("subtraction on the right", "y = a - b", "b", "p - q", "y = a - (p - q)"),
    one("conditional expression", "y = a if b else c", "b", "p if q else r", "y = a if (p if q else r) else c"),
    one("conditional expression as argument", "g(a, b)", "b", "p if q else r", "g(a, p if q else r)"),
    one("lambda", "y = lambda a: a + 1", "a + 1", "(__upstream__, 2)", "y = lambda a: (a + 1, 2)"),
    one("a lambda put in", "y = a or b", "a", "lambda: 1", "y = (lambda: 1) or b"),
    one("walrus as statement value", "y = a", "a", "p := q", "y = (p := q)"),
    one("walrus in a condition", "if a: pass", "a", "p := q", "if p := q: pass"),
    one("walrus under a comparison", "if (n := a) > 1: pass", "(n := a)", "__upstream__ or b", "if ((n := a) or b) > 1: pass"),
    one("starred value", "g(*a)", "a", "p + q", "g(*p + q)"),
    one("starred or", "g(*a)", "a", "p or q", "g(*p or q)"),
    one("starred in a display", "y = [*a, b]", "a", "p or q", "y = [*(p or q), b]"),
    one("mapping", "g(**a)", "a", "p or q", "g(**p or q)"),
    one("attribute of a new expression", "y = a.b", "a", "p + q", "y = (p + q).b"),
    one("attribute of a number", "y = a.b", "a", "1", "y = (1).b"),
    one("subscript", "y = a[b]", "b", "p, q", "y = a[p, q]"),
    one("slice bound", "y = a[b:c]", "b", "p if q else r", "y = a[p if q else r:c]"),
    one("tuple as value", "y = a", "a", "p, q", "y = p, q"),
    one("tuple as argument", "g(a)", "a", "p, q", "g((p, q))"),
    one("tuple kept", "return a, b", "(a, b)", "g(__upstream__)", "return g((a, b))"),
    one("return value", "return a", "a", "yield_(__upstream__)", "return yield_(a)"),
    one("yield", "y = a", "a", "(yield)", "y = (yield)"),
    one("await", "y = await a", "a", "p or q", "y = await (p or q)", head="async def f(x):"),
    one("await kept", "y = await a", "await a", "__upstream__.b", "y = (await a).b", head="async def f(x):"),
    one("await put in", "y = a ** b", "b", "await p", "y = a ** await p", head="async def f(x):"),
    one("comprehension element", "y = [a for a in b]", "b", "p if q else r", "y = [a for a in (p if q else r)]"),
    one("comprehension condition", "y = [a for a in b if a]", "a", "a or p", "y = [a for a in b if a or p]").__class__(
        "comprehension condition",
        "def f(x):\n    y = [c for a in b if a]\n",
        "- name: d\n  expr: |\n    a\n  nth: 2\n  with: |\n    __upstream__ or p\n",
        "def f(x):\n    # ### PATCH START: d\n    y = [c for a in b if a or p]\n    # ### PATCH END: d\n",
    ),
    one("a comprehension put in", "g(a)", "a", "p for p in q", "g(p for p in q)"),
    one("a bare generator kept", "g(p for p in q)", "(p for p in q)", "list(__upstream__)", "g(list(p for p in q))"),
    one("dict value", "y = {a: b}", "b", "lambda: 1", "y = {a: lambda: 1}"),
    one("string concatenation", "y = 'a' 'b'", "'ab'", "__upstream__ % c", "y = 'a' 'b' % c"),
    one("redundant parentheses stay", "y = ((a + b)) * c", "a + b", "p + q", "y = ((p + q)) * c"),
    one("assert, raise, del", "assert a, b", "a", "p, q", "assert (p, q), b"),
    one("target of a loop's iterable", "for i in a, b: pass", "(a, b)", "(*__upstream__, c)", "for i in (*(a, b), c): pass"),
    one("with item", "with a as b: pass", "a", "p or q", "with p or q as b: pass"),
    one("decorator-like use of kept text twice", "y = a.b", "a.b", "__upstream__ or g(__upstream__)", "y = a.b or g(a.b)"),
    one("unicode before it on the line", "y = 'äö😀', a", "a", "é", "y = 'äö😀', é"),
    one("comment in the new expression", "y = a", "a", "p  # why", "y = p  # why"),
    one("augmented assignment", "y += a", "a", "p, q", "y += p, q"),
    one("annotation", "y: a = b", "a", "p | q", "y: p | q = b"),
    one("one-line body and semicolons", "if x: g(); y = a; h()", "a", "p or q", "if x: g(); y = p or q; h()"),
)
def test_expr(case):
    check(case)


@table(
    one("field", 'y = f"{a} b"', "a", "p + q", 'y = f"{p + q} b"'),
    one("field with format and conversion", 'y = f"é{a!r:>{w}} {b}"', "a", "p or q", 'y = f"é{p or q!r:>{w}} {b}"'),
    one("inside the format", 'y = f"{a:>{w}}"', "w", "p + 1", 'y = f"{a:>{p + 1}}"'),
    one("lambda and dict get parentheses", 'y = f"{a}"', "a", "{1: 2}", 'y = f"{({1: 2})}"'),
    one("walrus", 'y = f"{a}"', "a", "p := 1", 'y = f"{(p := 1)}"'),
    one("implicit concatenation", "y = 'é' f\"{a} \" f'{b}'", "b", "p[1]", "y = 'é' f\"{a} \" f'{p[1]}'"),
    one("kept", 'y = f"{a.b(c)}"', "a.b(c)", "__upstream__ or '-'", "y = f\"{a.b(c) or '-'}\""),
    one("nested f-string", """y = f"{g(f'{a}')}\"""", "a", "p.q", """y = f"{g(f'{p.q}')}\""""),
    Case(
        "triple quotes, several lines",
        'def f(x):\n    y = f"""é\n  {x.a}\n    {x.b}\n"""\n',
        "- name: d\n  expr: |\n    x.b\n  with: |\n    __upstream__ + 1\n",
        'def f(x):\n    # ### PATCH START: d\n    y = f"""é\n  {x.a}\n    {x.b + 1}\n"""\n    # ### PATCH END: d\n',
    ),
    Case(
        "a call in an f-string",
        'def f(x):\n    y = f"ö {g(x, 1)}"\n',
        "- name: d\n  call:\n    match: |\n      g(...)\n    callee: h\n    set: {k: '2'}\n    drop: [1]\n",
        'def f(x):\n    # ### PATCH START: d\n    y = f"ö {h(x, k=2)}"\n    # ### PATCH END: d\n',
    ),
)
def test_f_strings(case):
    check(case)


@table(
    Case(
        "an elif and the test of a while",
        """
        def f(x):
            if x:
                a()
            elif x > 1:
                b()
            while x: c()
        """,
        """
        - name: elif
          expr: |
            x > 1
          with: |
            __upstream__ and y
        - name: while
          expr: |
            x
          within: |
            while x: ...
          with: |
            not __upstream__
        """,
        """
        def f(x):
            if x:
                a()
            # ### PATCH START: elif
            elif x > 1 and y:
            # ### PATCH END: elif
                b()
            # ### PATCH START: while
            while not x: c()
            # ### PATCH END: while
        """,
    ),
    Case(
        "new text of several lines gets brackets and the line's indentation",
        """
        def f(x):
            if x:
                y = x.a
        """,
        """
        - name: d
          expr: |
            x.a
          with: |
            (__upstream__ or
             x.b) and
            x.c
        """,
        """
        def f(x):
            if x:
                # ### PATCH START: d
                y = ((x.a or
                 x.b) and
                x.c)
                # ### PATCH END: d
        """,
    ),
    Case(
        "new text that ends with a comment and needs brackets",
        """
        def f(x):
            y = x.a * 2
        """,
        """
        - name: d
          expr: |
            x.a
          with: |
            x.b + 1  # why
        """,
        """
        def f(x):
            # ### PATCH START: d
            y = (x.b + 1  # why
            ) * 2
            # ### PATCH END: d
        """,
    ),
    Case(
        "kept text of several lines with comments",
        """
        def f(x):
            y = g(
                x.a +  # one
                x.b    # two
            )
        """,
        """
        - name: d
          expr: |
            x.a + x.b
          with: |
            h(__upstream__)
        """,
        """
        def f(x):
            y = g(
                # ### PATCH START: d
                h(x.a +  # one
                x.b)    # two
                # ### PATCH END: d
            )
        """,
    ),
    Case(
        "a string of several lines in the new text",
        """
        def f(x):
            if x:
                y = x.a
        """,
        """
        - name: d
          expr: |
            x.a
          with: |
            '''one
            two''' + x
        """,
        """
        def f(x):
            if x:
                # ### PATCH START: d
                y = '''one
        two''' + x
                # ### PATCH END: d
        """,
    ),
    Case(
        "decorator, default, annotation, return annotation, default of a nested function",
        """
        @deco(1)
        def f(x: int = A, *, y=lambda a, b: a) -> Out:
            def g(z=B): return z
            return g
        """,
        """
        - name: decorator
          expr: |
            1
          with: |
            2
        - name: default
          expr: |
            A
          with: |
            A or C
        - name: annotation
          expr: |
            int
          with: |
            __upstream__ | None
        - name: lambda
          expr: |
            lambda a, b: a
          with: |
            None
        - name: returns
          expr: |
            Out
          with: |
            list[__upstream__]
        - name: nested
          expr: |
            B
          with: |
            1
        """,
        """
        # ### PATCH START: decorator
        @deco(2)
        # ### PATCH END: decorator
        # ### PATCH START: default
        # ### PATCH START: annotation
        # ### PATCH START: lambda
        # ### PATCH START: returns
        def f(x: int | None = A or C, *, y=None) -> list[Out]:
        # ### PATCH END: returns
        # ### PATCH END: lambda
        # ### PATCH END: annotation
        # ### PATCH END: default
            # ### PATCH START: nested
            def g(z=1): return z
            # ### PATCH END: nested
            return g
        """,
    ),
    Case(
        "except types and case guards",
        """
        def f(x):
            try:
                a()
            except A as e:
                b()
            match x:
                case [y] if y > 1:
                    c()
        """,
        """
        - name: except
          expr: |
            A
          with: |
            A, B
        - name: guard
          expr: |
            y > 1
          with: |
            __upstream__ or y
        """,
        """
        def f(x):
            try:
                a()
            # ### PATCH START: except
            except (A, B) as e:
            # ### PATCH END: except
                b()
            match x:
                # ### PATCH START: guard
                case [y] if y > 1 or y:
                # ### PATCH END: guard
                    c()
        """,
    ),
    Case(
        "several deltas on one expression: each keeps the others",
        """
        def f(x):
            if x.a:
                return x
        """,
        """
        - name: outer
          expr: |
            x.a
          with: |
            __upstream__ and b
        - name: inner
          expr: |
            x.a
          with: |
            __upstream__ or c
        - name: innermost
          expr: |
            x.a
          with: |
            __upstream__ + d
        """,
        """
        def f(x):
            # ### PATCH START: outer
            # ### PATCH START: inner
            # ### PATCH START: innermost
            if (x.a + d or c) and b:
            # ### PATCH END: innermost
            # ### PATCH END: inner
            # ### PATCH END: outer
                return x
        """,
    ),
    Case(
        "one replaces what the other keeps, in either order",
        """
        def f(x):
            a = x.a
            b = x.b
        """,
        """
        - name: a keeps
          expr: |
            x.a
          with: |
            not __upstream__
        - name: a replaces
          expr: |
            x.a
          with: |
            p or q
        - name: b replaces
          expr: |
            x.b
          with: |
            p or q
        - name: b keeps
          expr: |
            x.b
          with: |
            not __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: a keeps
            # ### PATCH START: a replaces
            a = not (p or q)
            # ### PATCH END: a replaces
            # ### PATCH END: a keeps
            # ### PATCH START: b keeps
            # ### PATCH START: b replaces
            b = not (p or q)
            # ### PATCH END: b replaces
            # ### PATCH END: b keeps
        """,
    ),
    Case(
        "nested expressions of one pattern and of several deltas",
        """
        def f(x):
            return g(g(x))
        """,
        """
        - name: both
          expr: |
            g(...)
          count: 2
          with: |
            h(__upstream__)
        - name: x
          expr: |
            x
          with: |
            x + 1
        """,
        """
        def f(x):
            # ### PATCH START: both
            # ### PATCH START: x
            return h(g(h(g(x + 1))))
            # ### PATCH END: x
            # ### PATCH END: both
        """,
    ),
    Case(
        "each of several matches, nth, next_to, within a clause",
        """
        def f(x):
            a = x.n
            b = x.n
            if x:
                c = x.n
            else:
                c = x.n
        """,
        """
        - name: nth
          expr: |
            x.n
          nth: 2
          with: |
            2
        - name: beside
          expr: |
            x.n
          next_to: |
            b = ...
          with: |
            1
        - name: clause
          expr: |
            x.n
          within: {of: "if x: ...", clause: "else"}
          with: |
            4
        """,
        """
        def f(x):
            # ### PATCH START: beside
            a = 1
            # ### PATCH END: beside
            # ### PATCH START: nth
            b = 2
            # ### PATCH END: nth
            if x:
                c = x.n
            else:
                # ### PATCH START: clause
                c = 4
                # ### PATCH END: clause
        """,
    ),
    Case(
        "in a statement with continuation lines left of it, tabs, form feed and CRLF",
        b"def f(x):\r\n\f\tif x:\r\n\t\ty = x.a + \\\r\n x.b\r\n",
        "- name: d\n  expr: |\n    x.b\n  with: |\n    p or q\n",
        "def f(x):\n\f\tif x:\n\t\t# ### PATCH START: d\n\t\ty = x.a + \\\n (p or q)\n\t\t# ### PATCH END: d\n",
    ),
    Case(
        "a constant of a module and a field of a class",
        "class f:\n    y = [1,\n         A]\n",
        "- name: d\n  expr: |\n    A\n  with: |\n    B\n",
        "class f:\n    y = [1,\n         # ### PATCH START: d\n         B]\n         # ### PATCH END: d\n",
    ),
)
def test_expr_places(case):
    check(case)


@pytest.mark.parametrize(
    ("upstream", "delta", "message"),
    [
        ("def f(x):\n    x.a = 1\n", "expr: |\n    x.a\n  with: |\n    x + 1", "cannot stand where the old one stood"),
        ('def f(x):\n    y = f"{x.a}"\n', 'expr: |\n    x.a\n  with: |\n    x["b"]', "quotes"),
        ("def f(x):\n    y = f'''{x.a}'''\n", "expr: |\n    x.a\n  with: |\n    '\\n'.join(x)", "backslash"),
        ('def f(x):\n    y = f"{x.a}"\n', "expr: |\n    x.a\n  with: |\n    (x.b +\n     1)", "line"),
        ('def f(x):\n    y = f"""{x.a}"""\n', "expr: |\n    x.a\n  with: |\n    x.b  # why", "comment"),
        ('def f(x):\n    y = f"{x=}"\n', "expr: |\n    x\n  with: |\n    y", "cannot stand"),
    ],
)
def test_expr_that_cannot_stand_there(upstream, delta, message):
    found = refused(upstream, f"- name: d\n  {delta}\n")
    assert found.code == "PK213"
    assert message in found.message
    assert str(found.manifest) == "m.yaml:13:11"
    assert str(found.upstream).startswith("acme/m.py:2:")
    assert "`replace:`" in (found.help or "")


def call(id_: str, old: str, change: str, expected: str, *, match: str = "g(...)", head: str = "def f(x):") -> Case:
    """One call of one statement."""
    return Case(
        id_,
        f"{head}\n    {old}\n",
        f"- name: d\n  call:\n    match: |\n      {match}\n    {change}\n",
        f"{head}\n    # ### PATCH START: d\n    {expected}\n    # ### PATCH END: d\n",
    )


@table(
    call("callee", "g(x)", "callee: h", "h(x)"),
    call("callee of an attribute", "self.g(x)", "callee: self.h.i", "self.h.i(x)", match="self.g(...)"),
    call("callee in parentheses", "(g)(x)", "callee: h", "(h)(x)"),
    call("new keyword", "g(a)", "set: {k: '1'}", "g(a, k=1)"),
    call("new keyword, no arguments", "g()", "set: {k: '1', l: 'x'}", "g(k=1, l=x)"),
    call("new keyword, no arguments, spaces", "g( )", "set: {k: '1'}", "g(k=1 )"),
    call("several", "g(a)", "set: {k: '1', l: 'x if y else z'}", "g(a, k=1, l=x if y else z)"),
    call("new keyword behind a trailing comma", "g(a, b,)", "set: {k: '1'}", "g(a, b, k=1,)"),
    call("new keyword behind mappings and stars", "g(*a, **b)", "set: {k: '1'}", "g(*a, **b, k=1)"),
    call("an existing keyword", "g(a, k=b or c, l=d)", "set: {k: '__upstream__ + 1'}", "g(a, k=(b or c) + 1, l=d)"),
    call("an existing position", "g(a, b)", "set: {0: 'p, q', 1: 'not __upstream__'}", "g((p, q), not b)"),
    call("an argument in parentheses", "g((a), (b  ), c)", "set: {1: 'p'}", "g((a), (p  ), c)"),
    call("a new one behind an argument in parentheses", "g((a))", "set: {k: '1'}", "g((a), k=1)"),
    call("bare generator, new keyword", "g(a for a in b)", "set: {k: '1'}", "g((a for a in b), k=1)"),
    call("bare generator, spaces", "g( a for a in b )", "set: {k: '1'}", "g( (a for a in b), k=1 )"),
    call("bare generator replaced", "g(a for a in b)", "set: {0: 'list(__upstream__)'}", "g(list(a for a in b))"),
    call("bare generator kept and a keyword", "g(a for a in b)", "set: {0: 'h(__upstream__)', k: '1'}", "g((h(a for a in b)), k=1)"),
    call("lambda with commas", "g(lambda a, b: a, c)", "set: {1: 'd', k: '1'}", "g(lambda a, b: a, d, k=1)"),
    call("subscripts, dicts and strings with commas", "g(a[1, 2], {3: 4}, ',', c)", "drop: [2]", "g(a[1, 2], {3: 4}, c)"),
    call("drop the first", "g(a, b, k=c)", "drop: [0]", "g(b, k=c)"),
    call("drop the last", "g(a, b, k=c)", "drop: [k]", "g(a, b)"),
    call("drop the last, trailing comma", "g(a, b, k=c,)", "drop: [k]", "g(a, b)"),
    call("drop one in between", "g(a, b, k=c)", "drop: [1]", "g(a, k=c)"),
    call("drop neighbours", "g(a, b, k=c, l=d)", "drop: [1, k]", "g(a, l=d)"),
    call("drop neighbours at the end", "g(a, k=c, l=d)", "drop: [l, k]", "g(a)"),
    call("drop all", "g(a, k=c)", "drop: [0, k]", "g()"),
    call("drop all, trailing comma", "g(a, k=c, )", "drop: [0, k]", "g( )"),
    call("drop all, set another", "g(a, k=c)", "drop: [0, k]\n    set: {l: '1'}", "g(l=1)"),
    call("drop the last, set another", "g(a, k=c)", "drop: [k]\n    set: {l: '1'}", "g(a, l=1)"),
    call("everything", "y = g(a, k=b)", "callee: h\n    set: {k: 'c', l: '1'}\n    drop: [0]\n    targets: 'y, z'", "y, z = h(k=c, l=1)"),
    call("targets for a statement that has none", "g(x)", "targets: 'y, z'", "y, z = g(x)"),
    call("targets of an assignment", "y = g(x)", "targets: 'a.b, *c'", "a.b, *c = g(x)"),
    call("targets in parentheses", "(y) = g(x)", "targets: 'z'", "z = g(x)"),
    call("targets of a tuple", "y, [z, w] = g(x)", "targets: 'z'", "z = g(x)"),
    call("targets, annotated, one", "y: list[int] = g(x)", "targets: 'z'", "z: list[int] = g(x)"),
    call("targets, annotated in parentheses", "(y): int = g(x)", "targets: 'z.a'", "z.a: int = g(x)"),
    call("targets, annotated, several", "y: T[int] = g(x)", "targets: 'z, w'", "z, w = g(x)"),
    call("targets of an awaited call", "y = await g(x)", "targets: 'z'", "z = await g(x)", head="async def f(x):"),
    call("targets for an awaited statement", "await g(x)", "targets: 'z'", "z = await g(x)", head="async def f(x):"),
    call("the statement as pattern", "y = g(x)", "callee: h", "y = h(x)", match="y = g(...)"),
    call("a returned, awaited call as pattern", "return await g(x)", "callee: h", "return await h(x)", match="return await g(...)", head="async def f(x):"),
    call("inside a condition", "if g(x) and y: pass", "set: {k: '1'}", "if g(x, k=1) and y: pass"),
    call("unicode before it", "y = 'é😀'; g(x, k='ü')", "set: {k: '1', l: 'ö'}", "y = 'é😀'; g(x, k=1, l=ö)"),
    call("a call of a call", "g(x)(y)", "set: {k: '1'}", "g(x)(y, k=1)", match="g(x)(...)"),
)  # fmt: skip
def test_call(case):
    check(case)


VERTICAL = """
def f(x):
    y = g(
        a,
        b,  # bee
        # about k
        k=c,
    )
"""


@table(
    Case(
        "vertical: set, drop and add change their own lines only",
        VERTICAL,
        """
        - name: d
          call:
            match: |
              g(...)
            set: {k: "d", l: "1", m: "2"}
            drop: [1]
        """,
        """
        def f(x):
            y = g(
                a,
                # ### PATCH START: d (1/2)
                # ### PATCH END: d (1/2)
                # about k
                # ### PATCH START: d (2/2)
                k=d,
                l=1,
                m=2,
                # ### PATCH END: d (2/2)
            )
        """,
    ),
    Case(
        "vertical: the new last one, by several deltas",
        VERTICAL,
        """
        - name: one
          call:
            match: |
              g(...)
            set: {l: "1"}
        - name: two
          call:
            match: |
              g(...)
            set: {m: "2"}
        """,
        """
        def f(x):
            y = g(
                a,
                b,  # bee
                # about k
                k=c,
                # ### PATCH START: one
                l=1,
                # ### PATCH END: one
                # ### PATCH START: two
                m=2,
                # ### PATCH END: two
            )
        """,
    ),
    Case(
        "vertical without trailing comma: the comment stays with its argument",
        """
        def f(x):
            g(
                a,
                b  # bee
            )
            h(
                a,
                b)
        """,
        """
        - name: g
          call:
            match: |
              g(...)
            set: {k: "1"}
        - name: h
          call:
            match: |
              h(...)
            set: {k: "1"}
        """,
        """
        def f(x):
            g(
                a,
                # ### PATCH START: g
                b,  # bee
                k=1
                # ### PATCH END: g
            )
            h(
                a,
                # ### PATCH START: h
                b,
                k=1)
                # ### PATCH END: h
        """,
    ),
    Case(
        "vertical: drop the last one without trailing comma, and all",
        """
        def f(x):
            g(
                a,
                b  # bee
            )
            h(
                a,
                b)
            i(
                a,  # a
                b,
            )
        """,
        """
        - name: g
          call:
            match: |
              g(...)
            drop: [1]
        - name: h
          call:
            match: |
              h(...)
            drop: [1]
        - name: i
          call:
            match: |
              i(...)
            drop: [0, 1]
        """,
        """
        def f(x):
            g(
                a,
                # ### PATCH START: g
                # ### PATCH END: g
            )
            h(
                # ### PATCH START: h
                a)
                # ### PATCH END: h
            i(
                # ### PATCH START: i
                # ### PATCH END: i
            )
        """,
    ),
    Case(
        "hanging and mixed layouts, comments between arguments",
        """
        def f(x):
            y = g(a,  # first
                  b, c,
                  # about k
                  k=d)  # end
        """,
        """
        - name: d
          call:
            match: |
              g(...)
            set: {l: "1"}
            drop: [1, k]
        """,
        """
        def f(x):
            y = g(a,  # first
                  # ### PATCH START: d (1/2)
                  c, l=1,
                  # ### PATCH END: d (1/2)
                  # about k
                  # ### PATCH START: d (2/2)
                  )  # end
                  # ### PATCH END: d (2/2)
        """,
    ),
    Case(
        "calls of calls: each its own",
        """
        def f(x):
            g(g(x), g(y, z))
        """,
        """
        - name: outer
          call:
            match: |
              g(g(x), ...)
            set: {k: "1"}
        - name: inner
          call:
            match: |
              g(y, ...)
            drop: [1]
            callee: h
        """,
        """
        def f(x):
            # ### PATCH START: outer
            # ### PATCH START: inner
            g(g(x), h(y), k=1)
            # ### PATCH END: inner
            # ### PATCH END: outer
        """,
    ),
    Case(
        "each of several calls",
        """
        def f(x):
            g(1)
            return g(2)
        """,
        """
        - name: d
          call:
            match: |
              g(...)
            set: {k: "x"}
          count: 2
        """,
        """
        def f(x):
            # ### PATCH START: d
            g(1, k=x)
            return g(2, k=x)
            # ### PATCH END: d
        """,
    ),
    Case(
        "a call in the decorator, and one inside a wrapped statement",
        """
        @deco(1)
        def f(x):
            g(x)
        """,
        """
        - name: deco
          call:
            match: |
              deco(...)
            set: {k: "2"}
        - name: wrap
          replace: |
            g(x)
          with: |
            if x:
                __upstream__
        - name: targets
          call:
            match: |
              g(x)
            targets: "y"
        """,
        """
        # ### PATCH START: deco
        @deco(1, k=2)
        # ### PATCH END: deco
        def f(x):
            # ### PATCH START: wrap
            if x:
                # ### PATCH START: targets
                y = g(x)
                # ### PATCH END: targets
            # ### PATCH END: wrap
        """,
    ),
    Case(
        "arguments that upstream adds later are kept",
        "def f(x):\n    return g(x, new=1)\n",
        "- name: d\n  call:\n    match: |\n      g(x, ...)\n    set: {k: '2'}\n",
        "def f(x):\n    # ### PATCH START: d\n    return g(x, new=1, k=2)\n    # ### PATCH END: d\n",
    ),
)
def test_call_layouts(case):
    check(case)


@pytest.mark.parametrize(
    ("statement", "change", "code", "message", "help_"),
    [
        ("g(x)", "drop: [k]", "PK219", "no argument 'k'", "It has: 0."),
        ("g(*x, y)", "set: {1: 'z'}", "PK219", "no argument 1", "It has: *, 1."),
        ("g(**x)", "set: {0: 'z'}", "PK219", "no argument 0", "It has: **."),
        ("y = z = g(x)", "targets: 'a'", "PK218", "`targets` needs a statement", "replace"),
        ("y += g(x)", "targets: 'a'", "PK218", "`targets` needs a statement", "replace"),
        ("return g(x)", "targets: 'a'", "PK218", "`targets` needs a statement", "replace"),
        ("y = g(x) + 1", "targets: 'a'", "PK218", "`targets` needs a statement", "replace"),
        ("y = [g(x)]", "callee: h", "PK218", "not one call", "Match the call itself"),
    ],
)
def test_call_refused(statement, change, code, message, help_):
    match = "y = [...]" if "[" in statement else "g(...)"
    found = refused(f"def f(x):\n    {statement}\n", f"- name: d\n  call:\n    match: |\n      {match}\n    {change}\n")
    assert found.code == code
    assert message in found.message
    assert help_ in (found.help or "")
    assert (found.delta, str(found.manifest)) == ("d", "m.yaml:9:9")
    assert str(found.upstream).startswith("acme/m.py:2:")


def test_statements_around_are_untouched():
    applied = apply("def f(x):\n    a = 1  # é\n    b = g(\n        x)\n", "- name: d\n  expr: |\n    x\n  with: |\n    y\n")
    assert [(e.span.start, e.span.end, e.emitted) for e in applied.edits] == [(45, 46, "y")]
