"""`clause:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import Case, apply, check, refused, table

CHAIN = """
def f(x):
    if x:
        a()
        # end of a
    # about the elif
    elif x > 1:
        b()
    else:
        c()
    return x
"""


def clause(of: str, change: str, name: str = "d") -> str:
    """A clause delta."""
    return f"- name: {name}\n  clause:\n    of: |\n      {of}\n    {change}\n"


@table(
    Case(
        "elif goes before else, behind the other elifs",
        CHAIN,
        clause("if x: ...", "add: |\n      elif x > 2:\n          # ours\n          d()"),
        """
        def f(x):
            if x:
                a()
                # end of a
            # about the elif
            elif x > 1:
                b()
            # ### PATCH START: d
            elif x > 2:
                # ours
                d()
            # ### PATCH END: d
            else:
                c()
            return x
        """,
    ),
    Case(
        "elif and else for a lone if, from several deltas, in the order that Python needs",
        """
        def f(x):
            if x:
                a()
                # end of a
            return x
        """,
        clause("if x: ...", "add: |\n      else:\n          c()", "else")
        + clause("if x: ...", "add: |\n      elif x > 1:\n          b()\n      elif x > 2:\n          b()", "elif"),
        """
        def f(x):
            if x:
                a()
                # end of a
            # ### PATCH START: elif
            elif x > 1:
                b()
            elif x > 2:
                b()
            # ### PATCH END: elif
            # ### PATCH START: else
            else:
                c()
            # ### PATCH END: else
            return x
        """,
    ),
    Case(
        "else for loops, at the end of the function, nested and one-line",
        """
        def f(x):
            for i in x:
                while i: a()
        """,
        clause("for i in x: ...", "add: |\n      else:\n          b()", "for")
        + clause("while i: ...", "add: |\n      else: c()", "while"),
        """
        def f(x):
            for i in x:
                while i: a()
                # ### PATCH START: while
                else: c()
                # ### PATCH END: while
            # ### PATCH START: for
            else:
                b()
            # ### PATCH END: for
        """,
    ),
    Case(
        "except, else and finally of a try",
        """
        def f(x):
            try:
                a()
            except A:
                b()
        """,
        clause("try: ...", "add: |\n      finally:\n          f()", "finally")
        + clause("try: ...", "add: |\n      else:\n          e()", "else")
        + clause("try: ...", "add: |\n      except (B, C) as e:\n          raise", "except"),
        """
        def f(x):
            try:
                a()
            except A:
                b()
            # ### PATCH START: except
            except (B, C) as e:
                raise
            # ### PATCH END: except
            # ### PATCH START: else
            else:
                e()
            # ### PATCH END: else
            # ### PATCH START: finally
            finally:
                f()
            # ### PATCH END: finally
        """,
    ),
    Case(
        "except for a try that only has finally",
        """
        def f(x):
            try: a()
            finally: b()
        """,
        clause("try: ...", "add: |\n      except A:\n          c()"),
        """
        def f(x):
            try: a()
            # ### PATCH START: d
            except A:
                c()
            # ### PATCH END: d
            finally: b()
        """,
    ),
    Case(
        "case, with a string of several lines",
        """
        def f(x):
            if x:
                match x:
                    case 1:
                        a()
                    case 2: b()
        """,
        clause("match x: ...", "add: |\n      case [3, *_] if x:\n          s = '''one\n        two'''\n          c(s)"),
        """
        def f(x):
            if x:
                match x:
                    case 1:
                        a()
                    case 2: b()
                    # ### PATCH START: d
                    case [3, *_] if x:
                        s = '''one
          two'''
                        c(s)
                    # ### PATCH END: d
        """,
    ),
    Case(
        "tabs",
        b"def f(x):\n\tmatch x:\n\t\tcase 1:\n\t\t\ta()\n\tif x: b()\n",
        clause("match x: ...", "first: |\n      case 0:\n          c()", "case")
        + clause("if x: ...", "add: |\n      else:\n          d()", "else"),
        "def f(x):\n\tmatch x:\n\t\t# ### PATCH START: case\n\t\tcase 0:\n\t\t    c()\n\t\t# ### PATCH END: case\n\t\tcase 1:\n\t\t\ta()\n"
        "\tif x: b()\n\t# ### PATCH START: else\n\telse:\n\t    d()\n\t# ### PATCH END: else\n",
    ),
)
def test_add(case):
    check(case)


@table(
    Case(
        "if: upstream's becomes elif, its comments stay above",
        """
        def f(x):
            # about x
            if x:
                a()
            else:
                b()
        """,
        clause("if x: ...", "first: |\n      if x is None:\n          c()\n      elif x == 2:\n          d()"),
        """
        def f(x):
            # about x
            # ### PATCH START: d
            if x is None:
                c()
            elif x == 2:
                d()
            elif x:
            # ### PATCH END: d
                a()
            else:
                b()
        """,
    ),
    Case(
        "two deltas: manifest order",
        """
        def f(x):
            if x: a()
        """,
        clause("if x: ...", "first: |\n      if x == 1:\n          b()", "one")
        + clause("if x: ...", "first: |\n      if x == 2:\n          c()", "two"),
        """
        def f(x):
            # ### PATCH START: one
            if x == 1:
                b()
            # ### PATCH START: two
            elif x == 2:
                c()
            elif x: a()
            # ### PATCH END: two
            # ### PATCH END: one
        """,
    ),
    Case(
        "except and case",
        """
        def f(x):
            try:
                a()
            # about A
            except A:
                b()
            match x:
                # about 1
                case 1:
                    c()
        """,
        clause("try: ...", "first: |\n      except B:\n          d()", "except")
        + clause("match x: ...", "first: |\n      case 0:\n          e()", "case"),
        """
        def f(x):
            try:
                a()
            # about A
            # ### PATCH START: except
            except B:
                d()
            # ### PATCH END: except
            except A:
                b()
            match x:
                # about 1
                # ### PATCH START: case
                case 0:
                    e()
                # ### PATCH END: case
                case 1:
                    c()
        """,
    ),
    Case(
        "inside a wrapped statement, at its edge",
        """
        def f(x):
            if x:
                a()
        """,
        """
        - name: wrap
          replace: |
            if x: ...
          with: |
            with x:
                __upstream__
        """
        + "\n        ".join(["", *clause("if x: ...", "first: |\n      if y:\n          b()", "first").splitlines()]),
        """
        def f(x):
            # ### PATCH START: wrap
            with x:
                # ### PATCH START: first
                if y:
                    b()
                elif x:
                # ### PATCH END: first
                    a()
            # ### PATCH END: wrap
        """,
    ),
)
def test_first(case):
    check(case)


@table(
    Case(
        "elif with its suite kept",
        CHAIN,
        clause('if x: ...', 'replace: "elif x > 1"') + "  with: |\n    elif x > 1 and y:\n        log()\n        __upstream__\n",
        """
        def f(x):
            if x:
                a()
                # end of a
            # about the elif
            # ### PATCH START: d
            elif x > 1 and y:
                log()
            # ### PATCH END: d
                b()
            else:
                c()
            return x
        """,
    ),
    Case(
        "the first if, else, except, finally, case; what is put into a kept suite stays in it",
        """
        def f(x):
            if x:
                a()
            else: b()
            try:
                c()
            except A:
                d()
                # end of d
            finally:
                e()
            match x:
                case 1:
                    g(
                        x)
        """,
        clause("if x: ...", 'replace: "if x"', "if") + "  with: |\n    if y:\n        pass\n"
        + clause("if x: ...", 'replace: "else"', "else") + "  with: |\n    elif z:\n        __upstream__\n    else:\n        h()\n"
        + clause("try: ...", 'replace: "except A"', "except") + "  with: |\n    except B as b:\n        __upstream__\n"
        + clause("try: ...", 'replace: "finally"', "finally") + "  with: |\n    finally:\n        i()\n"
        + clause("match x: ...", 'replace: "case 1"', "case") + "  with: |\n    case 1 | 2:\n        if x:\n            __upstream__\n"
        + "- name: in before\n  before: |\n    d()\n  insert: |\n    p()\n"
        + "- name: in after\n  after: |\n    d()\n  insert: |\n    q()\n"
        + "- name: out after\n  after: |\n    try: ...\n  insert: |\n    r()\n",
        """
        def f(x):
            # ### PATCH START: if
            if y:
                pass
            # ### PATCH END: if
            # ### PATCH START: else
            elif z:
                b()
            else:
                h()
            # ### PATCH END: else
            try:
                c()
            # ### PATCH START: except
            except B as b:
            # ### PATCH END: except
                # ### PATCH START: in before
                p()
                # ### PATCH END: in before
                d()
                # ### PATCH START: in after
                q()
                # ### PATCH END: in after
                # end of d
            # ### PATCH START: finally
            finally:
                i()
            # ### PATCH END: finally
            # ### PATCH START: out after
            r()
            # ### PATCH END: out after
            match x:
                # ### PATCH START: case
                case 1 | 2:
                    if x:
                        g(
                            x)
                # ### PATCH END: case
        """,
    ),
)  # fmt: skip
def test_replace(case):
    check(case)


@table(
    Case(
        "elif and else",
        CHAIN,
        clause("if x: ...", 'remove: "elif x > 1"', "elif") + clause("if x: ...", 'remove: "else"', "else"),
        """
        def f(x):
            if x:
                a()
                # end of a
            # about the elif
            # ### PATCH START: elif
            # ### PATCH END: elif
            # ### PATCH START: else
            # ### PATCH END: else
            return x
        """,
    ),
    Case(
        "the first if: the next elif takes its place",
        CHAIN,
        clause("if x: ...", 'remove: "if x"'),
        """
        def f(x):
            # ### PATCH START: d
            if x > 1:
            # ### PATCH END: d
                b()
            else:
                c()
            return x
        """,
    ),
    Case(
        "else of loops, except, else, finally, cases",
        """
        def f(x):
            for i in x:
                a()
            else:
                b()
            while x: a()
            else: b()
            try:
                a()
            except A:
                b()
            except B:
                c()
            else:
                d()
            finally:
                e()
            match x:
                case 1:
                    a()
                case 2:
                    b()
        """,
        clause("for i in x: ...", 'remove: "else"', "for")
        + clause("while x: ...", 'remove: "else"', "while")
        + clause("try: ...", 'remove: "except A"', "except")
        + clause("try: ...", 'remove: "else"', "else")
        + clause("try: ...", 'remove: "finally"', "finally")
        + clause("match x: ...", 'remove: "case 1"', "case"),
        """
        def f(x):
            for i in x:
                a()
            # ### PATCH START: for
            # ### PATCH END: for
            while x: a()
            # ### PATCH START: while
            # ### PATCH END: while
            try:
                a()
            # ### PATCH START: except
            # ### PATCH END: except
            except B:
                c()
            # ### PATCH START: else
            # ### PATCH END: else
            # ### PATCH START: finally
            # ### PATCH END: finally
            match x:
                # ### PATCH START: case
                # ### PATCH END: case
                case 2:
                    b()
        """,
    ),
)
def test_remove(case):
    check(case)


TRY = "def f(x):\n    try:\n        a()\n    except A:\n        b()\n"


@pytest.mark.parametrize(
    ("upstream", "of", "change", "code", "message", "help_"),
    [
        ("def f(x):\n    a()\n", "a()", "add: 'else: b()'", "PK203", "no single compound statement", "Match the whole"),
        ("def f(x):\n    if x: a()\n", "if x: ...", "add: 'except A: b()'", "PK203", "`except` cannot be added to `if`", "`elif` and `else`"),
        ("def f(x):\n    with x: a()\n", "with x: ...", "add: 'else: b()'", "PK203", "`else` cannot be added to `with`", "no further"),
        ("def f(x):\n    for i in x: a()\n", "for i in x: ...", "add: 'finally: b()'", "PK203", "to `for`", "It takes `else`"),
        ("def f(x):\n    if x: a()\n    else: b()\n", "if x: ...", "add: 'else: b()'", "PK221", "has `else` already", "absorbed"),
        ("def f(x):\n    if x: a()\n", "if x: ...", "first: 'elif y: b()'", "PK203", "`elif` clause cannot come first", "`first` takes"),
        ("def f(x):\n    if x: a()\n", "if x: ...", "remove: 'else'", "PK203", "there is no clause `else`", ""),
        ("def f(x):\n    if x: a()\n    else: b()\n", "if x: ...", "remove: 'if x'", "PK203", "cannot stand without its `if`", "whole statement"),
        (TRY, "try: ...", "remove: 'except A'", "PK203", "cannot stand without its `except`", "whole statement"),
        (TRY + "    else:\n        c()\n    finally:\n        d()\n", "try: ...", "remove: 'except A'", "PK203", "without its `except`", ""),
        ("def f(x):\n    try: a()\n    finally: b()\n", "try: ...", "remove: 'finally'", "PK203", "without its `finally`", ""),
        ("def f(x):\n    match x:\n        case 1: a()\n", "match x: ...", "remove: 'case 1'", "PK203", "without its `case`", ""),
        ("def f(x):\n    try: a()\n    finally: b()\n", "try: ...", "add: 'else: c()'", "PK222", "does not compile", "Correct"),
    ],
)  # fmt: skip
def test_refused(upstream, of, change, code, message, help_):
    found = refused(upstream, clause(of, change))
    assert (found.code, found.delta) == (code, "d")
    assert message in found.message
    assert help_ in (found.help or "")
    assert str(found.manifest).startswith("m.yaml:")
    assert str(found.upstream).startswith("acme/m.py:")


def test_a_pattern_of_two_statements_is_no_compound_statement():
    found = refused(
        "def f(x):\n    if x: a()\n    b()\n",
        "- name: d\n  clause:\n    of: |\n      if x: ...\n      b()\n    add: |\n      else: c()\n",
    )
    assert (found.code, found.message) == ("PK203", "`clause.of` matches no single compound statement")


def test_two_deltas_cannot_both_add_else():
    found = refused(
        "def f(x):\n    if x: a()\n", clause("if x: ...", "add: 'else: b()'", "one") + clause("if x: ...", "add: 'else: c()'", "two")
    )
    assert (found.code, found.delta, found.message) == ("PK210", "two", "delta 'one' adds `else` to the same statement")


def test_else_of_a_try_may_keep_the_suite():
    upstream = TRY + "    else:\n        c()\n"
    applied = apply(upstream, clause("try: ...", 'replace: "else"') + "  with: |\n    else:\n        if x:\n            __upstream__\n")
    assert applied.buffer.text.endswith(
        "    # ### PATCH START: d\n    else:\n        if x:\n            c()\n    # ### PATCH END: d\n"
    )
