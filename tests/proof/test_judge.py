"""The judge of places: alignments of statements, fences read from the output, verdicts."""

from __future__ import annotations

import ast

import pytest

from tools.oracles.proof.judge import Alignment, Listing, Region, at, judge, region

MARKER = "### PATCH"


def unit(listing: Listing, text: str, nth: int = 0) -> int:
    return [n for n, u in enumerate(listing.units) if u.text == text][nth]


BASE = """
def f(a, b):
    x = load(a)
    if b:
        x = load(b)
        use(x)
    else:
        skip()
    return x
"""


def test_listing_holds_every_statement_and_clause_with_its_place():
    listing = Listing(
        """\
    def f(a):
        '''Doc.'''
        if a:
            one()
        elif a > 2:
            two()
        else:
            three()
        try:
            four()
        except ValueError as e:
            five()
        finally:
            six()
        match a:
            case 1:
                seven()
        @deco
        def g():
            return 8
"""
    )
    found = [(u.kind, u.text, u.first, u.column) for u in listing.units]
    assert found == [
        ("If", "if a:", 3, 4), ("Expr", "one()", 4, 8), ("elif", "elif a > 2:", 5, 4), ("Expr", "two()", 6, 8),
        ("clause", "else", 7, 4), ("Expr", "three()", 8, 8),
        ("Try", "try", 9, 4), ("Expr", "four()", 10, 8), ("clause", "except ValueError", 11, 4), ("Expr", "five()", 12, 8),
        ("clause", "finally", 13, 4), ("Expr", "six()", 14, 8),
        ("Match", "match a:", 15, 4), ("clause", "case 1", 16, 4), ("Expr", "seven()", 17, 12),
        ("FunctionDef", "@deco\ndef g():", 18, 4), ("Return", "return 8", 20, 8),
    ]  # fmt: skip
    assert listing.units[3].path == ("elif a > 2:",)
    assert listing.units[5].path == ("elif a > 2:", "else")
    assert listing.units[9].path == ("try", "except ValueError")


@pytest.mark.parametrize(
    ("new", "old", "now", "verdict"),
    [
        pytest.param(BASE, ("use(x)", 0), ("use(x)", 0), "same", id="nothing changed"),
        pytest.param(BASE.replace("    x = load(a)\n", "    log()\n    x = load(a)\n"), ("return x", 0), ("return x", 0), "same", id="shifted"),
        pytest.param(BASE.replace("use(x)", "use( x )  # why"), ("use(x)", 0), ("use(x)", 0), "same", id="layout and comments"),
        pytest.param(BASE.replace("    return x\n", "    use(x)\n    return x\n").replace("        use(x)\n", "        other()\n", 1),
                     ("use(x)", 0), ("use(x)", 0), "vanished", id="the same text elsewhere, under other headers"),
        pytest.param(BASE.replace("use(x)", "use(x, 1)"), ("use(x)", 0), ("use(x, 1)", 0), "rewritten", id="changed in place"),
        pytest.param(BASE.replace("use(x)", "throw(away)"), ("use(x)", 0), ("throw(away)", 0), "changed", id="replaced by another"),
        pytest.param(BASE.replace("        use(x)\n", ""), ("use(x)", 0), ("skip()", 0), "elsewhere", id="gone, beside another one"),
        pytest.param(BASE, ("x = load(a)", 0), ("x = load(b)", 0), "elsewhere", id="another statement"),
        pytest.param(BASE.replace("    x = load(a)\n", "").replace("    return x\n", "    x = load(a)\n    return x\n"),
                     ("x = load(a)", 0), ("x = load(a)", 0), "moved", id="moved, unique, under the same headers"),
    ],
)  # fmt: skip
def test_verdicts(new, old, now, verdict):
    alignment = Alignment(BASE.lstrip("\n"), new.lstrip("\n"))
    assert alignment.verdict(unit(alignment.old, *old), unit(alignment.new, *now)) == verdict


def test_equal_statements_are_told_apart_by_what_stands_around_them():
    base = "def f():\n    a()\n    log()\n    b()\n    log()\n    c()\n"
    new = "def f():\n    b()\n    log()\n    c()\n    log()\n"
    alignment = Alignment(base, new)
    assert alignment.verdict(unit(alignment.old, "log()", 1), unit(alignment.new, "log()", 0)) == "same"
    assert alignment.verdict(unit(alignment.old, "log()", 0), unit(alignment.new, "log()", 0)) == "elsewhere"


UPSTREAM = "    def f(a):\n        global seen\n        one(a)\n        two(a)\n        three(seen)\n"


@pytest.mark.parametrize(
    ("generated", "expected"),
    [
        pytest.param(
            "def f(a):\n    global seen\n    one(a)\n    # ### PATCH START: x\n    ours()\n    # ### PATCH END: x\n    two(a)\n    three(seen)\n",
            Region(4, 4, 4), id="insertion",
        ),
        pytest.param(
            "def f(a):\n    global seen\n    # ### PATCH START: x\n    if ours():\n        one(a)\n    # ### PATCH END: x\n    two(a)\n    three(seen)\n",
            Region(3, 4, 4), id="wrapped",
        ),
        pytest.param(
            "def f(a):\n    pass\n    one(a)\n    # ### PATCH START: x\n    # ### PATCH END: x\n    _vllm_a_b.three(_vllm_a_b.seen)\n",
            Region(4, 5, 4), id="removed, with names edited",
        ),
        pytest.param(
            "def f(a):\n    global seen\n    one(a)\n    two(a)\n    three(seen)\n    # ### PATCH START: x\n    ours()\n    # ### PATCH END: x\n",
            Region(6, 6, 4), id="at the end",
        ),
        pytest.param("def f(a):\n    global seen\n    one(a)\n", None, id="no fence"),
        pytest.param(
            "def f(a):\n    q()\n    r()\n    s()\n    t()\n    # ### PATCH START: x\n    # ### PATCH END: x\n", None, id="not upstream's lines"
        ),
    ],
)  # fmt: skip
def test_fences_are_read_from_the_output(generated, expected):
    assert region(generated, UPSTREAM, MARKER) == expected


NESTED = Listing("def f(a):\n    if a:\n        for b in a:\n            c(b)\n    # then\n    d()\n")


@pytest.mark.parametrize(
    ("where", "place", "kind", "text"),
    [
        (Region(5, 5, 4), "before", "Expr", "d()"),
        (Region(3, 3, 8), "before", "For", "for b in a:"),
        (Region(5, 5, 4), "behind", "If", "if a:"),
        (Region(5, 5, 8), "behind", "For", "for b in a:"),
        (Region(5, 5, 12), "behind", "Expr", "c(b)"),
        (Region(3, 4, 8), "inside", "For", "for b in a:"),
        (Region(5, 5, 4), "clause", "If", "if a:"),
        (Region(7, 7, 4), "before", "Expr", None),
    ],
)
def test_the_statement_a_delta_stands_at(where, place, kind, text):
    found = at(NESTED, where, place, kind)
    assert (NESTED.units[found].text if found is not None else None) == text


def test_a_clause_added_in_front_of_another_statement_belongs_to_the_one_above():
    listing = Listing("def f(a):\n    if a:\n        b()\n    if not a:\n        c()\n")
    assert listing.units[at(listing, Region(4, 4, 4), "clause", "If")].text == "if a:"
    assert listing.units[at(listing, Region(4, 5, 4), "clause", "If")].text == "if not a:"
    assert listing.units[at(listing, Region(6, 6, 4), "clause", "If")].text == "if not a:"


def test_a_place_that_the_engine_got_wrong_is_seen():
    alignment = Alignment(BASE.lstrip("\n"), BASE.lstrip("\n"))
    wrong = BASE.lstrip("\n").replace(
        "        x = load(b)\n",
        "        x = load(b)\n        # ### PATCH START: p\n        print()\n        # ### PATCH END: p\n",
    )
    old = unit(alignment.old, "x = load(a)")
    assert judge(alignment, old, wrong, BASE.lstrip("\n"), "behind", "Assign", MARKER)[0] == "elsewhere"
    assert judge(alignment, old, BASE.lstrip("\n"), BASE.lstrip("\n"), "behind", "Assign", MARKER) == (
        "unreadable",
        None,
    )


def test_the_judge_imports_nothing_of_the_engine():
    from pathlib import Path

    import tools.oracles.proof.judge as module

    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imported = {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert not [name for name in imported if name.startswith(("afd_patchkit", "tools"))]


def test_a_static_method_that_stands_without_its_decorator_is_read():
    new = "@staticmethod\ndef f(n):\n    a(n)\n    b(n)\n    c(n)\n    d(n)\n"
    ours = "def f(n):\n    a(n)\n    b(n)\n    # ### PATCH START: x\n    ours()\n    # ### PATCH END: x\n    c(n)\n    d(n)\n"
    found = region(ours, new, "### PATCH")
    assert found is not None
    assert found.first == 5
