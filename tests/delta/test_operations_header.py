"""`parameter:`, `returns:`, `decorator:`, `rebind:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import Case, apply, check, refused, table


def one(id_: str, header: str, deltas: str, expected: str) -> Case:
    """A one-line header of `def f...`; the deltas are `key: value` mappings, one a line."""
    listed = "".join(f"- {{name: d{n}, {line}}}\n" for n, line in enumerate(deltas.splitlines(), 1))
    count = len(deltas.splitlines())
    start = "".join(f"# ### PATCH START: d{n}\n" for n in range(1, count + 1))
    end = "".join(f"# ### PATCH END: d{n}\n" for n in range(count, 0, -1))
    return Case(id_, f"def f{header}:\n    pass\n", listed, f"{start}def f{expected}:\n{end}    pass\n")


@table(
    one("the first one", "()", "parameter: {add: 'a: int = 0'}", "(a: int = 0)"),
    one("at the end", "(a, b=1)", "parameter: {add: 'c=2'}", "(a, b=1, c=2)"),
    one("at the end, trailing comma", "(a, b=1,)", "parameter: {add: 'c=2'}", "(a, b=1, c=2,)"),
    one("before *args", "(a, *args, k, **kw)", "parameter: {add: 'b'}", "(a, b, *args, k, **kw)"),
    one("before the star", "(a, *, k)", "parameter: {add: 'b'}", "(a, b, *, k)"),
    one("before **kwargs", "(a, **kw)", "parameter: {add: 'b'}", "(a, b, **kw)"),
    one("behind positional-only ones", "(a, /)", "parameter: {add: 'b'}", "(a, /, b)"),
    one("positional-only, by place", "(a, /, b)", "parameter: {add: 'c', before: a}", "(c, a, /, b)"),
    one("before and after", "(a, b=1)", "parameter: {add: 'c', before: b}\nparameter: {add: 'd', after: a}", "(a, c, d, b=1)"),
    one("keyword-only, new star", "(a, b=1)", "parameter: {add: 'c', kind: keyword-only}", "(a, b=1, *, c)"),
    one("keyword-only, empty list", "()", "parameter: {add: 'c', kind: keyword-only}", "(*, c)"),
    one("keyword-only, before **kwargs", "(a, **kw)", "parameter: {add: 'c', kind: keyword-only}", "(a, *, c, **kw)"),
    one("keyword-only, only **kwargs", "(**kw)", "parameter: {add: 'c', kind: keyword-only}", "(*, c, **kw)"),
    one("keyword-only, a star is there", "(a, *, k)", "parameter: {add: 'c', kind: keyword-only}", "(a, *, k, c)"),
    one("keyword-only, *args is there", "(a, *args)", "parameter: {add: 'c', kind: keyword-only}", "(a, *args, c)"),
    one("keyword-only, placed", "(a, *, k)", "parameter: {add: 'c', kind: keyword-only, before: k}", "(a, *, c, k)"),
    one("*args and **kwargs", "(a)", "parameter: {add: '**kw'}\nparameter: {add: '*args'}", "(a, **kw, *args)").__class__(
        "*args and **kwargs of two deltas",
        "def f(a):\n    pass\n",
        "- {name: args, parameter: {add: '*args'}}\n- {name: kw, parameter: {add: '**kw'}}\n",
        "# ### PATCH START: args\n# ### PATCH START: kw\ndef f(a, *args, **kw):\n# ### PATCH END: kw\n# ### PATCH END: args\n    pass\n",
    ),
    one("several keyword-only, one star; plain ones before it", "(a)",
        "parameter: {add: 'k', kind: keyword-only}\nparameter: {add: 'b'}\nparameter: {add: 'l', kind: keyword-only}", "(a, b, *, k, l)"),
    one("several for an empty list", "()",
        "parameter: {add: 'k', kind: keyword-only}\nparameter: {add: 'b'}\nparameter: {add: '**kw'}\nparameter: {add: 'l=1', kind: keyword-only}",
        "(b, *, k, l=1, **kw)"),
    one("lambda and string defaults with commas", "(a=lambda x, y: x, b=',', c={1: 2})", "parameter: {add: 'd=1'}", "(a=lambda x, y: x, b=',', c={1: 2}, d=1)"),
    one("replace", "(a, b: int = 1, *, k)", "parameter: {replace: b}, with: 'b: int = 2'", "(a, b: int = 2, *, k)"),
    one("replace *args and **kwargs", "(*args, **kw)", "parameter: {replace: args}, with: '*rest'\nparameter: {replace: kw}, with: '**more'", "(*rest, **more)"),
    one("remove the first", "(a, b)", "parameter: {remove: a}", "(b)"),
    one("remove the last", "(a, b)", "parameter: {remove: b}", "(a)"),
    one("remove the only one", "(a)", "parameter: {remove: a}", "()"),
    one("remove in between", "(a, b, c)", "parameter: {remove: b}", "(a, c)"),
    one("remove the only keyword-only one: its star goes too", "(a, *, k)", "parameter: {remove: k}", "(a)"),
    one("remove all keyword-only ones", "(a, *, k, l, **kw)", "parameter: {remove: l}\nparameter: {remove: k}", "(a, **kw)").__class__(
        "remove all keyword-only ones, by two deltas",
        "def f(a, *, k, l, **kw):\n    pass\n",
        "- {name: l, parameter: {remove: l}}\n- {name: k, parameter: {remove: k}}\n",
        "# ### PATCH START: l\n# ### PATCH START: k\ndef f(a, **kw):\n# ### PATCH END: k\n# ### PATCH END: l\n    pass\n",
    ),
    one("remove the only keyword-only one and add another", "(a, *, k)", "parameter: {remove: k}\nparameter: {add: 'l', kind: keyword-only}", "(a, *, l)"),
    one("remove the first two", "(a, b, c)", "parameter: {remove: b}\nparameter: {remove: a}", "(c)"),
    one("remove all", "(a, b)", "parameter: {remove: a}\nparameter: {remove: b}", "()"),
    one("remove one of two keyword-only ones", "(a, *, k, l)", "parameter: {remove: k}", "(a, *, l)"),
    one("remove the only positional-only one: its slash goes too", "(a, /, b)", "parameter: {remove: a}", "(b)"),
    one("remove **kwargs and *args", "(a, *args, **kw)", "parameter: {remove: kw}\nparameter: {remove: args}", "(a)"),
    one("unicode names", "(ä, ö='é😀')", "parameter: {add: 'ü', after: ä}", "(ä, ü, ö='é😀')"),
    one("return annotation", "(a)", "returns: 'int'", "(a) -> int"),
    one("return annotation replaced", "(a) -> list[int]", "returns: 'dict[str, int]'", "(a) -> dict[str, int]"),
    one("return annotation in parentheses", "(a) -> (int)", "returns: 'str'", "(a) -> (str)"),
    one("return annotation removed", "(a) -> (int) ", "returns: 'none'", "(a)"),
    one("a return annotation of None", "(a) -> int", "returns: 'None'", "(a) -> None"),
    one("return annotation with colons and strings", "(a) -> 'a: b'", "returns: 'none'", "(a)"),
)  # fmt: skip
def test_one_line_headers(case):
    check(case)


VERTICAL = """
class C:
    @deco
    async def f(
        self,
        a: int,  # about a
        # about b
        b: int = 1,
    ) -> int:
        pass
"""


@table(
    Case(
        "vertical, with trailing comma",
        VERTICAL,
        "- {name: c, parameter: {add: 'c: int = 2'}}\n- {name: k, parameter: {add: 'k: int = 3', kind: keyword-only}}\n- {name: a, parameter: {remove: a}}\n",
        """
        @deco
        async def f(
            self,
            # ### PATCH START: a
            # ### PATCH END: a
            # about b
            b: int = 1,
            # ### PATCH START: c
            c: int = 2,
            # ### PATCH END: c
            # ### PATCH START: k
            *,
            k: int = 3,
            # ### PATCH END: k
        ) -> int:
            pass
        """,
        symbol="C.f",
    ),
    Case(
        "vertical, first and in between",
        VERTICAL,
        "- {name: c, parameter: {add: 'c', after: self}}\n- {name: z, parameter: {add: 'z', before: self}}\n",
        """
        @deco
        async def f(
            # ### PATCH START: z
            z,
            # ### PATCH END: z
            self,
            # ### PATCH START: c
            c,
            # ### PATCH END: c
            a: int,  # about a
            # about b
            b: int = 1,
        ) -> int:
            pass
        """,
        symbol="C.f",
    ),
    Case(
        "vertical, without trailing comma; hanging",
        """
        def f(
            a,
            b  # about b
        ): pass
        """,
        "- {name: c, parameter: {add: 'c'}}\n",
        """
        def f(
            a,
            # ### PATCH START: c
            b,  # about b
            c
            # ### PATCH END: c
        ): pass
        """,
    ),
    Case(
        "hanging, and a header of several lines with its return annotation",
        """
        def f(a,
              b=1) -> dict[
                  str, int]:
            pass
        """,
        "- {name: c, parameter: {add: 'c=2'}}\n- {name: r, returns: 'none'}\n",
        """
        def f(a,
              # ### PATCH START: c
              # ### PATCH START: r
              b=1, c=2):
              # ### PATCH END: r
              # ### PATCH END: c
            pass
        """,
    ),
    Case(
        "CRLF, tabs and comments with brackets",
        b"def f(\r\n\ta,  # (\r\n\tb,\r\n):  # ) -> x:\r\n\tpass\r\n",
        "- {name: c, parameter: {add: 'c'}}\n- {name: r, returns: 'int'}\n",
        "def f(\n\ta,  # (\n\tb,\n\t# ### PATCH START: c\n\tc,\n\t# ### PATCH END: c\n# ### PATCH START: r\n) -> int:  # ) -> x:\n# ### PATCH END: r\n\tpass\n",
    ),
    Case(
        "the implementation of an overload group",
        """
        from typing import overload

        @overload
        def f(a: int) -> int: ...

        @overload
        def f(a: str) -> str: ...

        def f(a): return a
        """,
        "- {name: p, parameter: {add: 'b=None'}}\n",
        """
        @overload
        def f(a: int) -> int: ...

        @overload
        def f(a: str) -> str: ...

        # ### PATCH START: p
        def f(a, b=None): return a
        # ### PATCH END: p
        """,
    ),
)
def test_layouts(case):
    check(case)


DECORATED = """
@one
# about two
@two(
    2,
)  # end of two
@three
def f():
    pass
"""


@table(
    Case(
        "add: outermost, above, below, innermost",
        DECORATED,
        """
        - {name: outermost, decorator: {add: "zero(0)"}}
        - {name: above, decorator: {add: "before_two", before: "two(...)"}}
        - {name: below, decorator: {add: "after_two", after: "two(...)"}}
        - {name: innermost, decorator: {add: "four", after: "three"}}
        """,
        """
        # ### PATCH START: outermost
        @zero(0)
        # ### PATCH END: outermost
        @one
        # about two
        # ### PATCH START: above
        @before_two
        # ### PATCH END: above
        @two(
            2,
        )  # end of two
        # ### PATCH START: below
        @after_two
        # ### PATCH END: below
        @three
        # ### PATCH START: innermost
        @four
        # ### PATCH END: innermost
        def f():
            pass
        """,
    ),
    Case(
        "add the first one; async, in a class; several lines",
        "class C:\n    async def f(self): pass\n",
        """
        - name: d
          decorator:
            add: |
              deco(
                  1,
              )
        """,
        """
        # ### PATCH START: d
        @deco(
            1,
        )
        # ### PATCH END: d
        async def f(self): pass
        """,
        symbol="C.f",
    ),
    Case(
        "replace and remove",
        DECORATED,
        """
        - {name: one, decorator: {remove: "one"}}
        - {name: two, decorator: {replace: "two(...)"}, with: "two(3)"}
        - {name: three, decorator: {remove: "three"}}
        """,
        """
        # ### PATCH START: one
        # ### PATCH END: one
        # about two
        # ### PATCH START: two
        @two(3)
        # ### PATCH END: two
        # ### PATCH START: three
        # ### PATCH END: three
        def f():
            pass
        """,
    ),
    Case(
        "the only one, of a class",
        "@deco\nclass f: x = 1\n",
        '- {name: d, decorator: {remove: "deco"}}\n',
        """
        # ### PATCH START: d
        # ### PATCH END: d
        class f: x = 1
        """,
    ),
    Case(
        "in parentheses, with a matrix product",
        """
        @(
            a @ b  # why
        )
        def f(): pass
        """,
        '- {name: d, decorator: {replace: "a @ b"}, with: "c"}\n- {name: e, decorator: {add: "d", after: "a @ b"}}\n',
        """
        # ### PATCH START: d
        @c
        # ### PATCH END: d
        # ### PATCH START: e
        @d
        # ### PATCH END: e
        def f(): pass
        """,
    ),
)
def test_decorators(case):
    check(case)


@pytest.mark.parametrize(
    ("upstream", "delta", "code", "message", "help_"),
    [
        ("def f(a): pass\n", "parameter: {add: 'a'}", "PK221", "has a parameter 'a' already", "absorbed"),
        ("def f(a): pass\n", "parameter: {add: 'b', before: c}", "PK219", "has no parameter 'c'", "It has: a."),
        ("def f(a, *, k): pass\n", "parameter: {remove: b}", "PK219", "has no parameter 'b'", "It has: a, k."),
        ("def f(a, b): pass\n", "parameter: {add: 'k', kind: keyword-only, after: a}", "PK219", "cannot go there", "Leave out"),
        ("def f(a, *, b): pass\n", "parameter: {add: 'k', kind: keyword-only, before: a}", "PK219", "cannot go there", "Leave out"),
        ("def f(a, *b): pass\n", "parameter: {add: 'k', kind: keyword-only, before: b}", "PK219", "cannot go there", "Leave out"),
        ("def f(a, b=1): pass\n", "parameter: {add: 'k'}", "PK222", "default", "Correct"),
        ("def f(a, **k): pass\n", "parameter: {add: 'b', after: k}", "PK222", "does not compile", "Correct"),
        ("f = 1\n", "parameter: {add: 'k'}", "PK215", "is not a function", "functions only"),
        ("class f: pass\n", "returns: 'int'", "PK215", "is not a function", "functions only"),
        ("def f(): pass\n", "returns: 'none'", "PK221", "no return annotation", "Delete the delta"),
        ("f = 1\n", "decorator: {add: 'd'}", "PK215", "takes no decorators", "functions and classes"),
        ("@a\ndef f(): pass\n", "decorator: {remove: 'b'}", "PK201", "no decorator of acme.m:f matches `b`", "It has: @a."),
        ("@a\n@a\ndef f(): pass\n", "decorator: {remove: 'a'}", "PK202", "2 decorators of acme.m:f match `a`", "It has: @a, @a."),
    ],
)  # fmt: skip
def test_refused(upstream, delta, code, message, help_):
    found = refused(upstream, f"- {{name: d, {delta}}}\n")
    assert (found.code, found.delta, str(found.manifest)) == (code, "d", "m.yaml:9:9")
    assert message in found.message
    assert help_ in (found.help or "")
    assert str(found.upstream).startswith("acme/m.py:")


def test_rebind_is_collected():
    applied = apply("def f(): g(h)\n", "- name: d\n  rebind: {g: 'mod.g2', h: 'k'}\n- name: e\n  rebind: {l: 'm'}\n")
    assert {name: code.text for name, code in applied.rebind.items()} == {"g": "mod.g2", "h": "k", "l": "m"}
    assert applied.buffer.text == "def f(): g(h)\n"
    assert applied.edits == applied.fences == ()


def test_rebind_twice_is_refused():
    found = refused("def f(): g()\n", "- name: d\n  rebind: {g: 'h'}\n- name: e\n  rebind: {g: 'i'}\n")
    assert (found.code, found.delta, found.message) == ("PK214", "e", "`g` is rebound twice: by 'd' and by 'e'")
