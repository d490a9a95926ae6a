"""Where patterns are found: entries, `within`, `next_to`, `nth`, `count`, ranges, and what the findings say."""

from __future__ import annotations

import pytest

from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import Position
from afd_patchkit.model import ClauseOf, Code, Range
from afd_patchkit.patterns.select import (
    Match,
    compile_pattern,
    find_all,
    find_range,
    find_ranges,
    select,
    select_clause,
)
from afd_patchkit.source.locate import Symbol, find_symbol
from afd_patchkit.source.text import SourceFile, load_source

SOURCE = '''\
LIMIT = max(8, 4)


class Mill:
    """Grinds."""

    size = 3

    @cached(key="grain")
    @traced
    def grind(self, grain, *, speed=fast(1), times: Count = 2):
        # prepare
        self.load(grain)
        if grain.wet:
            out = self.dry(grain)
            self.log("wet")
        elif grain.hard:
            out = self.soak(grain)
        else:
            out = None
        for i in range(times):
            self.turn(i); self.log(f"turn {self.name!r:>{self.width}} of {times}")

        def later(x):
            out = self.turn(x)
            return out

        try:
            out = (self.turn(0))
        except (Jam, Stop) as error:
            self.log("jam")
        else:
            self.log("fine")
        finally:
            self.log("done")
        return out

    def rest(self):
        self.sleep(8)
'''


@pytest.fixture(scope="module")
def file() -> SourceFile:
    return load_source(SOURCE.encode(), pin="acme", path="acme/mill.py")


@pytest.fixture(scope="module")
def grind(file: SourceFile) -> Symbol:
    return find_symbol(file, "Mill.grind")


def code(text: str) -> Code:
    return Code(text, Position("m.yaml", 10, 7), 6)


def run(symbol: Symbol, pattern: str, kind: str = "auto", **options) -> list[str]:
    found = select(compile_pattern(code(pattern), kind), symbol, entry="m.py::grind", delta="d", **options)
    return [symbol.file.slice(match.span) for match in found]


def fails(symbol: Symbol, pattern: str, kind: str = "auto", **options):
    with pytest.raises(DeltaError) as caught:
        run(symbol, pattern, kind, **options)
    (finding,) = caught.value.findings
    assert (finding.entry, finding.delta, finding.manifest.file) == ("m.py::grind", "d", "m.yaml")
    assert finding.help
    return finding


@pytest.mark.parametrize(
    ("pattern", "kind", "expected"),
    [
        ("self.load(...)", "auto", "self.load(grain)"),
        ("self.load(...)", "statements", "self.load(grain)"),
        ("out = self.turn(0)", "auto", "out = (self.turn(0))"),
        ("self.turn(0)", "expression", "self.turn(0)"),
        ("self.name", "expression", "self.name"),
        ("self.width", "expression", "self.width"),
        ("fast(...)", "expression", "fast(1)"),
        ("Count", "expression", "Count"),
        ("cached(...)", "expression", 'cached(key="grain")'),
        ("(Jam, Stop)", "expression", "(Jam, Stop)"),
        ("grain.hard", "expression", "grain.hard"),
        ("self.turn(i)\nself.log(...)", "statements", 'self.turn(i); self.log(f"turn {self.name!r:>{self.width}} of {times}")'),
        ("def later(...): ...", "statements", "def later(x):\n            out = self.turn(x)\n            return out"),
        ("self.load(...)\n...\nfor ... in ...: ...", "statements", None),
    ],
)  # fmt: skip
def test_found_once(grind, pattern, kind, expected):
    (text,) = run(grind, pattern, kind)
    if expected is None:
        assert text.startswith("self.load(grain)\n        if grain.wet")
        assert text.endswith('of {times}")')
    else:
        assert text == expected


def test_all_matches_come_in_source_order_at_any_depth(grind):
    assert run(grind, "out = ...", count=5) == [
        "out = self.dry(grain)", "out = self.soak(grain)", "out = None", "out = self.turn(x)", "out = (self.turn(0))",
    ]  # fmt: skip


def test_a_match_knows_its_siblings(file, grind):
    (match,) = find_all(compile_pattern(code("self.log('wet')"), "statements"), grind.node, file)
    assert match.body is match.siblings
    assert (match.index, match.end, len(match.body)) == (1, 2, 2)
    assert match.owner.test.attr == "wet"
    (match,) = find_all(compile_pattern(code("self.dry(grain)"), "expression"), grind.node, file)
    assert match.body is None
    assert match.siblings[match.index] is match.owner


def test_the_owner_of_a_clause_is_the_clause(file, grind):
    (match,) = find_all(compile_pattern(code("self.log('jam')")), grind.node, file)
    assert type(match.owner).__name__ == "Expr"
    (match,) = find_all(compile_pattern(code("self.log('jam')"), "statements"), grind.node, file)
    assert type(match.owner).__name__ == "ExceptHandler"


@pytest.mark.parametrize(
    ("qualname", "pattern", "expected"),
    [
        ("LIMIT", "LIMIT = ...", ["LIMIT = max(8, 4)"]),
        ("LIMIT", "max(...)", ["max(8, 4)"]),
        ("Mill", "size = ...", ["size = 3"]),
        ("Mill", "def rest(self): ...", ["def rest(self):\n        self.sleep(8)"]),
        ("Mill.rest", "self.sleep(...)", ["self.sleep(8)"]),
    ],
)
def test_entries_of_each_kind(file, qualname, pattern, expected):
    assert run(find_symbol(file, qualname), pattern) == expected


def test_a_class_entry_is_searched_with_its_header(file):
    (text,) = run(find_symbol(file, "Mill"), "class Mill: ...")
    assert text.startswith("class Mill:")
    assert text.endswith("self.sleep(8)")


def test_decorators_belong_to_the_span(file):
    (text,) = run(find_symbol(file, "Mill"), "def grind(...): ...")
    assert text.startswith('@cached(key="grain")\n')


def test_an_accessor_group_is_searched_as_a_whole():
    text = b"class A:\n    @property\n    def x(self):\n        return self._x\n\n    @x.setter\n    def x(self, v):\n        self._x = v\n"
    symbol = find_symbol(load_source(text, pin="acme", path="a.py"), "A.x")
    assert run(symbol, "return ...", "statements") == ["return self._x"]
    assert run(symbol, "self._x = v") == ["self._x = v"]


@pytest.mark.parametrize(
    ("pattern", "options", "expected"),
    [
        ("self.log(...)", {"within": code("if grain.wet: ...")}, ['self.log("wet")']),
        ("self.log(...)", {"within": code("for ... in ...: ...")}, ['self.log(f"turn {self.name!r:>{self.width}} of {times}")']),
        ("out = ...", {"within": ClauseOf(of=code("if grain.wet: ..."), clause=code("elif grain.hard"))}, ["out = self.soak(grain)"]),
        ("out = ...", {"within": ClauseOf(of=code("if grain.wet: ..."), clause=code("else"))}, ["out = None"]),
        ("self.log(...)", {"within": ClauseOf(of=code("try: ..."), clause=code("except ..."))}, ['self.log("jam")']),
        ("grain.wet", {"within": code("if grain.wet: ...")}, ["grain.wet"]),
        ("self.load(...)", {"within": code("self.load(grain)\n...\nfor ... in ...: ...")}, ["self.load(grain)"]),
        ("self.log(...)", {"next_to": code("out = self.dry(...)")}, ['self.log("wet")']),
        ("self.log(...)", {"next_to": code("self.turn(i)")}, ['self.log(f"turn {self.name!r:>{self.width}} of {times}")']),
        ("self.turn(...)", {"next_to": code("return out")}, ["self.turn(x)"]),
        ("for ... in ...: ...", {"next_to": code("if grain.wet: ...")}, None),
        ("for ... in ...: ...", {"next_to": code("self.load(...)\nif ...: ...")}, None),
        ("out = ...", {"nth": 3}, ["out = None"]),
        ("self.log(...)", {"nth": 2, "within": code("try: ...")}, ['self.log("fine")']),
    ],
)  # fmt: skip
def test_narrowing(grind, pattern, options, expected):
    kind = "expression" if pattern in ("grain.wet", "self.turn(...)") else "statements"
    found = run(grind, pattern, kind, **options)
    assert len(found) == 1
    assert found == expected or expected is None


def test_nothing_found_lists_what_is_similar(grind):
    finding = fails(grind, "self.laod(grain)", "statements")
    assert finding.code == "PK201"
    assert finding.message == "the pattern matches nothing in Mill.grind"
    assert finding.upstream == Position("acme/mill.py", 9, 1)
    assert finding.details[0] == "similar: acme/mill.py:13:9: self.load(grain)"


def test_nothing_found_compares_headers_of_compound_statements(grind):
    finding = fails(grind, "if grain.wett: ...")
    assert finding.details[0] == "similar: acme/mill.py:14:9: if grain.wet:"


def test_nothing_found_says_that_it_is_elsewhere(grind):
    assert fails(grind, "self.sleep(...)").details == ("matches outside Mill.grind: acme/mill.py:39:9: self.sleep(8)",)
    assert "own definition" in fails(grind, "def grind(...): ...").details[0]


def test_nothing_found_inside_within_says_where_it_is(grind):
    finding = fails(grind, "self.load(...)", within=code("if grain.wet: ..."))
    assert finding.message == "the pattern matches nothing in Mill.grind, inside `within`"
    assert finding.details == ("matches outside `within`: acme/mill.py:13:9: self.load(grain)",)


def test_an_elif_is_no_statement(grind):
    finding = fails(grind, "if grain.hard: ...")
    assert finding.details == ("an `elif` matches (use `clause`): acme/mill.py:17:9: elif grain.hard:",)


def test_an_if_inside_else_is_one():
    text = b"def f():\n    if a:\n        b\n    else:\n        if c:\n            d\n"
    assert run(find_symbol(load_source(text, pin="acme", path="a.py"), "f"), "if c: ...") == ["if c:\n            d"]


def test_several_found_lists_all(grind):
    finding = fails(grind, "out = ...")
    assert finding.code == "PK202"
    assert finding.message == "the pattern matches 5 times in Mill.grind, not once"
    assert finding.details[:2] == (
        "candidate 1: acme/mill.py:15:13: out = self.dry(grain)",
        "candidate 2: acme/mill.py:18:13: out = self.soak(grain)",
    )
    assert finding.upstream.line == 15


def test_several_in_one_line_have_their_columns():
    symbol = find_symbol(load_source(b"def f(x):\n    return g(x) + x\n", pin="acme", path="a.py"), "f")
    assert fails(symbol, "x", "expression").details == (
        "candidate 1: a.py:2:14: return g(x) + x",
        "candidate 2: a.py:2:19: return g(x) + x",
    )


@pytest.mark.parametrize("kind", ["statements", "auto"])
def test_an_assignment_that_is_an_argument_is_told_of_call(kind):
    text = b"def f(x):\n    y = g(x, rank=0)\n    return h(g(y, rank=1))\n"
    symbol = find_symbol(load_source(text, pin="acme", path="a.py"), "f")
    assert fails(symbol, "rank=0", kind).details == (
        "an argument is so called (use `call: {match: ..., set: {rank: ...}}`): a.py:2:14: y = g(x, rank=0)",
        "an argument is so called (use `call: {match: ..., set: {rank: ...}}`): a.py:3:19: return h(g(y, rank=1))",
    )


def test_fewer_than_count(grind):
    finding = fails(grind, "self.load(...)", "statements", count=2)
    assert finding.code == "PK202"
    assert finding.message.endswith("matches once in Mill.grind, not 2 times")


def test_filters_that_leave_nothing(grind):
    finding = fails(grind, "out = ...", next_to=code("self.load(...)"))
    assert finding.code == "PK201"
    assert "matches 5 times in Mill.grind, 0 of them next to `next_to`" in finding.message
    assert len(finding.details) == 5
    assert "`nth` is 9" in fails(grind, "out = ...", nth=9).message


@pytest.mark.parametrize(("within", "number"), [("if nothing: ...", "PK201"), ("out = ...", "PK202")])
def test_within_must_match_once(grind, within, number):
    finding = fails(grind, "self.load(...)", within=code(within))
    assert finding.code == number
    assert "`within` pattern" in finding.message


def test_the_list_of_candidates_ends_somewhere():
    text = "def f():\n" + "    x = 1\n" * 50
    symbol = find_symbol(load_source(text.encode(), pin="acme", path="a.py"), "f")
    assert fails(symbol, "x = 1").details[-1] == "and 30 more"


# ---- ranges ---------------------------------------------------------------------------------------------------


def from_to(first: str, last: str) -> Range:
    return Range(**{"from": code(first), "to": code(last)})


def test_range(file, grind):
    match = find_range(from_to("self.load(...)", "for ... in ...: ..."), grind, entry="e", delta="d")
    assert isinstance(match, Match)
    assert [type(n).__name__ for n in match.nodes] == ["Expr", "If", "For"]
    assert file.slice(match.span).startswith("self.load(grain)\n        if grain.wet")
    assert (match.index, match.end) == (0, 3)


def test_range_takes_siblings_only(grind):
    match = find_range(from_to("out = self.dry(...)", "self.log(...)"), grind, entry="e", delta="d")
    assert len(match.nodes) == 2


@pytest.mark.parametrize(
    ("first", "last", "number", "message"),
    [
        ("self.load(...)", "out = None", "PK207", "matches no later sibling of the `from` in line 13"),
        ("for ... in ...: ...", "self.load(...)", "PK207", "no later sibling"),
        ("self.load(...)", "self.load(...)", "PK207", "no later sibling"),
        ("self.load(...)", "nothing", "PK207", "no later sibling"),
        ("nothing", "self.load(...)", "PK201", "matches nothing"),
    ],
)
def test_range_errors(grind, first, last, number, message):
    with pytest.raises(DeltaError) as caught:
        find_range(from_to(first, last), grind, entry="e", delta="d")
    finding = caught.value.findings[0]
    assert finding.code == number
    assert message in finding.message


def test_a_start_without_an_end_starts_no_run(grind):
    match = find_range(from_to("out = ...", "return ..."), grind, next_to=None, entry="e", delta="d")
    assert match.owner.name == "later"


LOOP = b"def f():\n    a = 1\n    b = 1\n    a = 1\n    c\n    b = 1\n    d\n    b = 2\n"


def test_ranges_end_before_the_next_start():
    symbol = find_symbol(load_source(LOOP, pin="acme", path="a.py"), "f")
    runs = find_ranges(from_to("a = 1", "b = 1"), symbol, count=2, entry="e", delta="d")
    assert [len(r.nodes) for r in runs] == [2, 3]
    (second,) = find_ranges(from_to("a = 1", "b = 1"), symbol, nth=2, entry="e", delta="d")
    assert second.index == 2
    (beside,) = find_ranges(from_to("a = 1", "b = 1"), symbol, next_to=code("d"), entry="e", delta="d")
    assert beside.index == 2


def test_a_range_with_two_ends_is_ambiguous():
    symbol = find_symbol(load_source(LOOP, pin="acme", path="a.py"), "f")
    with pytest.raises(DeltaError) as caught:
        find_range(from_to("a = 1", "b = ..."), symbol, nth=2, entry="e", delta="d")
    assert caught.value.findings[0].code == "PK202"
    assert len(caught.value.findings[0].details) == 2


# ---- spans ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("total(x for x in y)", "(x for x in y)", "x for x in y"),
        ("total( (x for x in y), 1)", "(x for x in y)", "(x for x in y)"),
        ("total((x for x in y))", "(x for x in y)", "(x for x in y)"),
        ("z = (a + b) * c", "a + b", "a + b"),
        ("z = ((a, b))", "(a, b)", "(a, b)"),
        ("'é' + naïve", "naïve", "naïve"),
        ("f'é{naïve}' + x", "naïve", "naïve"),
        ("f'''\n{a +\nb}'''", "a + b", "a +\nb"),
        ("f'{x,}'", "(x,)", "x,"),
        ("f'{a}' f'{b}'", "b", "b"),
        ("f'{f\"{deep}\"}'", "deep", "deep"),
        ("f'{x:{w}}'", "w", "w"),
        ("x[a, b]", "a, b", "a, b"),
    ],
)
def test_expression_spans(text, pattern, expected):
    file = load_source(f"def f():\n    {text}\n".encode(), pin="acme", path="a.py")
    (match,) = find_all(compile_pattern(code(pattern), "expression"), find_symbol(file, "f").node, file)
    assert file.slice(match.span) == expected


def test_literal_pieces_of_f_strings_are_no_expressions():
    file = load_source(b"f'a{x}' + 'a'\n", pin="acme", path="a.py")
    assert len(find_all(compile_pattern(code("'a'"), "expression"), file.tree, file)) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@a\n@b\ndef g(): pass", "@a\n@b\ndef g(): pass"),
        ("@(\n    a\n)\ndef g(): pass", "@(\n    a\n)\ndef g(): pass"),
        ("@ a\n# why\nclass g: pass", None),
        ("if 1:\n    @a\n    def g(): pass", "@a\n    def g(): pass"),
    ],
)
def test_decorated_spans(text, expected):
    file = load_source((text + "\n").encode(), pin="acme", path="a.py")
    found = find_all(compile_pattern(code("def g(): ..."), "statements"), file.tree.body, file)
    assert [file.slice(m.span) for m in found] == ([expected] if expected else [])


def test_a_clause_by_of_and_head(grind):
    clause = select_clause(ClauseOf(of=code("try: ..."), clause=code("finally")), grind, entry="e", delta="d")
    assert clause.kind == "finally"
