"""Signatures as facts: texts, comparison, digest, one-line rendering."""

from __future__ import annotations

import ast
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.source.signature import Difference, Parameter, Signature, compare, digest, render, signature
from afd_patchkit.source.text import Text, parse_quietly


def of(source: str) -> Signature:
    return signature(ast.parse(source).body[-1], Text(source.encode()))


def test_everything_in_order():
    found = of("@a\n@b(1)\nasync def f(p, /, q: int=1, *r: str, s, t=None, **u) -> x.Y: pass")
    assert found == Signature(
        parameters=(
            Parameter("p", "positional-only"),
            Parameter("q", "positional", "1", "int"),
            Parameter("r", "*", None, "str"),
            Parameter("s", "keyword-only"),
            Parameter("t", "keyword-only", "None"),
            Parameter("u", "**"),
        ),
        returns="x.Y",
        decorators=("a", "b(1)"),
        is_async=True,
    )


def test_classes_and_constants():
    assert of("@d\nclass C(A, b.B, metaclass=M, **k): pass") == Signature(
        decorators=("d",), bases=("A", "b.B", "metaclass=M", "**k"), what="class"
    )
    assert of("X: int = 1") == Signature(returns="int", what="constant")
    assert of("X = 1") == Signature(what="constant")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a  or\\\n b", "a or b"),
        ("( # why\n  1 +\n  2)", "1 + 2"),
        ("'x'", '"x"'),
        ("'say \"x\"'", "'say \"x\"'"),
        (r"'\n'", r"'\n'"),
        ("f( a,b = 1 , *c, ** d )", "f(a, b=1, *c, **d)"),
        ("[\n    1,\n    2,\n]", "[1, 2]"),
        ("(1,)", "(1,)"),
        ("((1,),)", "((1,),)"),
        ("x[a,]", "x[a,]"),
        ("-1", "-1"),
        ("- x** -2", "-x ** -2"),
        ("not(a)and b", "not (a) and b"),
        ("lambda*a,b=1:a+b", "lambda *a, b = 1: a + b"),
        ("{'a':1}", '{"a": 1}'),
        ("x[1:2]", "x[1:2]"),
        ("a if b else-c", "a if b else -c"),
        ("(a:=1)", "(a := 1)"),
        ("f'{a}'", "f'{a}'"),
        ("...", "..."),
        ("Callable[[int],None]|None", "Callable[[int], None] | None"),
        ("a<b", "a < b"),
        ("a.b . c", "a.b.c"),
        ("x @ y", "x @ y"),
        ("a[0].b", "a[0].b"),
    ],
)
def test_texts_are_normalised(written, expected):
    found = of(f"def f(x={written}): pass").parameters[0].default
    assert found == expected
    assert ast.dump(parse_quietly(expected).body[0].value) == ast.dump(parse_quietly(f"({written})").body[0].value)


@pytest.mark.parametrize(
    "source",
    [
        "def f(): pass",
        "def f(a, /): pass",
        "def f(a, /, b, *, c): pass",
        "def f(*, c=1, **d): pass",
        "def f(*a: int, c: str = 'x') -> None: pass",
        "async def f(a=lambda x, *y: (x, y), b=(n := 3)): pass",
    ],
)
def test_rendered_it_parses_to_the_same(source):
    node = ast.parse(source).body[0]
    line = render(of(source), "f")
    assert "\n" not in line
    again = parse_quietly(line + ": pass").body[0]
    assert ast.dump(again) == ast.dump(node)


def test_rendering_of_others():
    assert render(of("class C(A, metaclass=M): pass"), "C") == "class C(A, metaclass=M)"
    assert render(of("class C: pass"), "C") == "class C"
    assert render(of("X: int = 1"), "X") == "X: int"
    assert render(of("def f(a): pass")) == "def(a)"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="grammar of Python 3.12")
def test_type_parameters():
    found = of("def f[T: int, *Ts](a: T): pass")
    assert found.type_params == ("T: int", "*Ts")
    assert render(found, "f") == "def f[T: int, *Ts](a: T)"
    assert [d.change for d in compare(of("def f(a: T): pass"), found)] == ["type parameters"]


def changes(old: str, new: str, **names) -> list[str]:
    return [d.message for d in compare(of(old), of(new), **names)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("def f(a): pass", "def f(a): return 1", []),
        ("def f(a, b='x'): pass", "def f(\n    a,\n    b=\"x\",\n): pass", []),
        ("def f(a): pass", "def f(a, *, prepend=None): pass", ["added keyword-only parameter prepend=None (position 2)"]),
        ("def f(a): pass", "def f(a, b): pass", ["added required positional parameter b (position 2)"]),
        ("def f(a): pass", "def f(a, **k): pass", ["added parameter **k (position 2)"]),
        ("def f(a: int, b): pass", "def f(b): pass", ["parameter a: int removed (position 1)"]),
        ("def f(a=0): pass", "def f(a=1): pass", ["default of a changed from 0 to 1"]),
        ("def f(a=0): pass", "def f(a): pass", ["default of a removed (was 0)"]),
        ("def f(a): pass", "def f(a=0): pass", ["default of a added: 0"]),
        ("def f(a=1): pass", "def f(a=True): pass", ["default of a changed from 1 to True"]),
        ("def f(a, b): pass", "def f(a, *, b): pass", ["parameter b changed from positional to keyword-only"]),
        ("def f(a, b, c): pass", "def f(b, a, c): pass", ["parameters reordered: a, b, c became b, a, c"]),
        ("def f(*, a, b): pass", "def f(*, b, a): pass", []),
        ("def f(a: int): pass", "def f(a: str): pass", ["annotation of a changed from int to str"]),
        ("def f(a: 'Engine | None'): pass", "def f(a: Engine|None): pass", []),
        ("def f(a: Literal['x']): pass", "def f(a: Literal['y']): pass", ['annotation of a changed from Literal["x"] to Literal["y"]']),
        ("def f() -> int: pass", "def f(): pass", ["return annotation removed (was int)"]),
        ("def f() -> int: pass", "def f() -> str: pass", ["return annotation changed from int to str"]),
        ("def f(): pass", "@d\ndef f(): pass", ["decorator @d added"]),
        ("@d(1)\ndef f(): pass", "@d(2)\ndef f(): pass", ["decorator @d(1) removed", "decorator @d(2) added"]),
        ("@d\n@e\ndef f(): pass", "@e\n@d\ndef f(): pass", ["decorators reordered: @e, @d"]),
        ("@d\n@d\ndef f(): pass", "@d\ndef f(): pass", ["decorator @d removed"]),
        ("def f(): pass", "async def f(): pass", ["became async"]),
        ("async def f(): pass", "def f(): pass", ["is no longer async"]),
        ("class C(A): pass", "class C(B): pass", ["bases changed from (A) to (B)"]),
        ("def f(): pass", "class f: pass", ["def became class"]),
        ("X: int = 1", "X: str = 1", ["annotation changed from int to str"]),
    ],
)  # fmt: skip
def test_differences(old, new, expected):
    assert changes(old, new) == expected
    assert (digest(of(old)) == digest(of(new))) is (not expected) or "Engine" in old or "*, a, b" in old


def test_differences_carry_what_they_are_about():
    (found,) = compare(of("def f(a=0): pass"), of("def f(a=1): pass"))
    assert found == Difference("default", "a", "")
    assert str(found) == found.message


def test_two_spellings_of_one_object():
    old, new = (
        "@t.no_grad()\ndef f(a: Optional[np.ndarray] = np.x): pass",
        "@torch.no_grad()\ndef f(a: t.Optional[numpy.ndarray] = numpy.x): pass",
    )
    names = {"np": "numpy", "Optional": "typing.Optional", "t": "torch"}
    assert changes(old, new, old_names=names, new_names={"t": "typing"}) == []
    assert changes(old, new) != []
    # an attribute that is called like an alias is none
    assert changes("def f(a: x.np): pass", "def f(a: x.numpy): pass", old_names=names) != []


@given(st.permutations(["a", "b=1", "c: int", "d: str = 'x'"]), st.integers(0, 4), st.integers(0, 4))
def test_generated_signatures_render_and_compare(parts, slash, star):
    slash, star = min(slash, star), max(slash, star)
    items = [*parts[:slash], *(["/"] if slash else []), *parts[slash:star], *(["*"] if star < 4 else []), *parts[star:]]
    source = f"def f({', '.join(items)}): pass"
    try:
        node = ast.parse(source).body[0]
    except SyntaxError:  # a default in front of none
        return
    found = of(source)
    assert compare(found, found) == ()
    assert ast.dump(ast.parse(render(found, "f") + ": pass").body[0]) == ast.dump(node)
