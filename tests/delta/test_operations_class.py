"""`member:` and `field:`, and other operations on classes and constants."""

from __future__ import annotations

import pytest

from tests.delta.deltas import Case, check, refused, table

CLASS = '''
@dataclass
class f(Base):
    """Doc."""

    # about a
    a: int
    b: str = "x"  # about b

    def m(self):
        return self.a

    @property
    def p(self):
        return 1

    @p.setter
    def p(self, value):
        pass
        # end of p
'''


@table(
    Case(
        "members: at the end, before, after",
        CLASS,
        """
        - name: last
          member:
            add: |
              def last(self):
                  return '''one
              two'''
        - name: before
          member:
            before: m
            add: |
              @staticmethod
              def before(): ...
        - name: after
          member:
            after: m
            add: |
              # about C
              class C:
                  pass
        """,
        '''
        @dataclass
        class f(Base):
            """Doc."""

            # about a
            a: int
            b: str = "x"  # about b

            # ### PATCH START: before
            @staticmethod
            def before(): ...
            # ### PATCH END: before

            def m(self):
                return self.a

            # ### PATCH START: after
            # about C
            class C:
                pass
            # ### PATCH END: after

            @property
            def p(self):
                return 1

            @p.setter
            def p(self, value):
                pass

            # ### PATCH START: last
            def last(self):
                return \'\'\'one
        two\'\'\'
            # ### PATCH END: last
        ''',
    ),
    Case(
        "fields: behind the last field, before, after",
        CLASS,
        """
        - {name: last, field: {add: "c: int = 0"}}
        - {name: first, field: {add: "z: int", before: a}}
        - {name: middle, field: {add: "y: list[int]", after: a}}
        """,
        '''
        @dataclass
        class f(Base):
            """Doc."""

            # ### PATCH START: first
            z: int
            # ### PATCH END: first
            # about a
            a: int
            # ### PATCH START: middle
            y: list[int]
            # ### PATCH END: middle
            b: str = "x"  # about b
            # ### PATCH START: last
            c: int = 0
            # ### PATCH END: last

            def m(self):
                return self.a

            @property
            def p(self):
                return 1

            @p.setter
            def p(self, value):
                pass
        ''',
    ),
    Case(
        "replace and remove: a property goes with its setter",
        CLASS,
        """
        - name: m
          member: {replace: m}
          with: |
            if DEBUG:
                __upstream__
            else:
                m = None
        - {name: p, member: {remove: p}}
        - {name: a, field: {remove: a}}
        - {name: b, field: {replace: b}, with: "b: str = 'y'"}
        """,
        '''
        @dataclass
        class f(Base):
            """Doc."""

            # about a
            # ### PATCH START: a
            # ### PATCH END: a
            # ### PATCH START: b
            b: str = 'y'
            # ### PATCH END: b

            # ### PATCH START: m
            if DEBUG:
                def m(self):
                    return self.a
            else:
                m = None
            # ### PATCH END: m

            # ### PATCH START: p
            # ### PATCH END: p
        ''',
    ),
    Case(
        "no fields yet: below the docstring, or first",
        '''
        class f:
            """Doc."""
            def m(self): pass
        ''',
        '- {name: d, field: {add: "a = 1"}}\n',
        '''
        class f:
            """Doc."""
            # ### PATCH START: d
            a = 1
            # ### PATCH END: d
            def m(self): pass
        ''',
    ),
    Case(
        "no fields and no docstring: above the first method",
        "class f:\n    # about m\n    def m(self): pass\n",
        '- {name: d, field: {add: "a = 1"}}\n- {name: e, field: {add: "b = 2"}}\n',
        """
        class f:
            # ### PATCH START: d
            a = 1
            # ### PATCH END: d

            # ### PATCH START: e
            b = 2
            # ### PATCH END: e

            # about m
            def m(self): pass
        """,
    ),
    Case(
        "the only member, the only field, by two deltas",
        "class f:\n    a = 1\n    def m(self): pass\n",
        "- {name: m, member: {remove: m}}\n- {name: a, field: {remove: a}}\n",
        """
        class f:
            # ### PATCH START: a
            # ### PATCH END: a
            # ### PATCH START: m
            pass
            # ### PATCH END: m
        """,
    ),
    Case(
        "one-line class",
        "class f: a = 1; b = 2\n",
        """
        - name: m
          member:
            add: |
              def m(self): pass
        - {name: a, field: {replace: a}, with: "a = 3"}
        """,
        """
        # ### PATCH START: m (1/2)
        class f:
            # ### PATCH START: a
            a = 3
            # ### PATCH END: a
            b = 2
        # ### PATCH END: m (1/2)

            # ### PATCH START: m (2/2)
            def m(self): pass
            # ### PATCH END: m (2/2)
        """,
    ),
    Case(
        "a member's own text with statement and expression deltas; nested class; tabs",
        b"class f:\n\tclass C:\n\t\tdef m(self, x):\n\t\t\treturn x\n",
        """
        - name: d
          before: |
            return x
          insert: |
            x += 1
        - name: p
          member:
            add: |
              def n(self): ...
        """,
        "class f:\n\tclass C:\n\t\tdef m(self, x):\n\t\t\t# ### PATCH START: d\n\t\t\tx += 1\n\t\t\t# ### PATCH END: d\n\t\t\treturn x\n"
        "\n\t# ### PATCH START: p\n\tdef n(self): ...\n\t# ### PATCH END: p\n",
    ),
    Case(
        "a constant: replaced, an expression in it",
        "f = {\n    'a': 1,\n    'b': 2,\n}\n",
        "- name: d\n  expr: |\n    2\n  with: |\n    3\n",
        "f = {\n    'a': 1,\n    # ### PATCH START: d\n    'b': 3,\n    # ### PATCH END: d\n}\n",
    ),
    Case(
        "a field between others on one line",
        "class f:\n    a = 1; b = 2; c = 3\n    d = 4; e = 5\n",
        "- name: d\n  field: {replace: b}\n  with: |\n    b = (\n        4\n    )\n",
        """
        class f:
            # ### PATCH START: d
            a = 1
            b = (
                4
            )
            c = 3
            # ### PATCH END: d
            d = 4; e = 5
        """,
    ),
    Case(
        "the first field of a line",
        "class f:\n    a = 1; b = 2; c = 3\n",
        "- {name: d, field: {replace: a}, with: 'a = 7'}\n",
        """
        class f:
            # ### PATCH START: d
            a = 7
            b = 2; c = 3
            # ### PATCH END: d
        """,
    ),
    Case(
        "a constant wrapped, comments above it are not its own",
        "# about f\nf: int = 1  # one\n",
        "- name: d\n  replace: |\n    f: int = ...\n  with: |\n    if X:\n        __upstream__\n    else:\n        f: int = 2\n"
        "- name: e\n  before: |\n    f: int = 1\n  insert: |\n    X = 1\n",
        """
        # ### PATCH START: e
        X = 1
        # ### PATCH END: e
        # ### PATCH START: d
        if X:
            f: int = 1  # one
        else:
            f: int = 2
        # ### PATCH END: d
        """,
    ),
)
def test_class(case):
    check(case)


@pytest.mark.parametrize(
    ("upstream", "delta", "code", "message", "help_"),
    [
        ("def f(): pass\n", "member: {remove: m}", "PK215", "acme.m:f is not a class", "classes only"),
        ("class f:\n    a = 1\n", "member: {remove: a}", "PK201", "has no member 'a'", "It has: none."),
        ("class f:\n    a = 1\n    b: int\n", "field: {remove: c}", "PK201", "has no field 'c'", "It has: a, b."),
        ("class f:\n    a = 1\n", "field: {add: 'a = 2'}", "PK221", "has 'a' already", "absorbed"),
        ("class f:\n    def m(self): ...\n", "member: {add: 'def m(self): pass'}", "PK221", "has 'm' already", "absorbed"),
        ("class f:\n    a = 1\n", "field: {add: 'b = 2', before: c}", "PK201", "has no field 'c'", "It has: a."),
        (
            "class f:\n    def m(self): ...\n    x = 1\n    def m(self, a): ...\n",
            "member: {remove: m}",
            "PK202",
            "defines member 'm' in several places (lines 2, 4)",
            "`replace` with a pattern",
        ),
        ("class f:\n    a = 1\n", "member: {add: 'b = 2'}", "PK215", "`member` takes functions and classes", "`field`"),
        ("class f:\n    a = 1\n", "field: {add: 'def m(): pass'}", "PK215", "`field` takes assignments", "`member`"),
    ],
)
def test_refused(upstream, delta, code, message, help_):
    found = refused(upstream, f"- {{name: d, {delta}}}\n")
    assert (found.code, found.delta, str(found.manifest)) == (code, "d", "m.yaml:9:9")
    assert message in found.message
    assert help_ in (found.help or "")
    assert str(found.upstream).startswith("acme/m.py:")
