"""Changes of code: what is changed, how it is named, and that nothing else is."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tools.mutation.code import code_mutations


def changes(text: str, upstream: tuple[str, ...] = ()) -> list[str]:
    """The line that each mutation makes."""
    return [mutation.change.partition(" => ")[2] for mutation in code_mutations(dedent(text), "set/m.py", upstream)]


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("x = a < b", ["x = a <= b", "x = a >= b"]),
        ("x = a is not b", ["x = a is b"]),
        ("x = a not in b", ["x = a in b"]),
        ("x = (a) == (b)", ["x = (a) != (b)"]),
        ("if a == b: f", ["if False: f", "if True: f"]),
        ("if not a: f", ["if False: f", "if True: f"]),
        ("if a < b: f", ["if False: f", "if True: f", "if a <= b: f", "if a >= b: f"]),
        ("x = a and b", ["x = b", "x = a"]),
        ("x = not a", ["x = a"]),
        ("x = a if b else c", ["x = a if False else c", "x = a if True else c"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if False]", "x = [a for a in b if True]"]),
        ("while a: f", ["while False: f"]),
        ("x = 0, True, 'name', 'a message', 1.5", ["x = 1, True, 'name', 'a message', 1.5", "x = 0, False, 'name', 'a message', 1.5",
         "x = 0, True, 'xname', 'a message', 1.5", "x = 0, True, 'name', 'a message', 2.5"]),
        ("x = a - b", ["x = a + b"]),
        ("f(a)", ["pass"]),
        ("x = a.clone()", ["x = a"]),
        ("x = max(a, b)", ["x = a", "x = b", "x = min(a, b)"]),
        ("x = f(a, b=c, d=e)", ["x = f(a, d=e)", "x = f(a, b=c)"]),
        ("x = f(b=c, d=e)", ["x = f( d=e)", "x = f(b=c)"]),
        ("x = a[b:c]", ["x = a[:c]", "x = a[b:]"]),
        ("a.b = c", ["pass"]),
        ("a[b], a.c = c", ["pass"]),
        ("a += b", ["pass"]),
        ("raise a from b", ["pass"]),
        ("with a, b as c: f", ["with __import__('contextlib').nullcontext(), b as c: f"]),
        ("x: int = y", []),
        ("assert a == b", []),
        ("x = f'{a == b}'", []),
        ("logger.info('x', a == b)", ["pass"]),
        ("del a", ["pass"]),
        ("T = TypeVar('T', bound=int)", []),
        ("a = _patchkit_original(b, 'name', 'kept')", []),
        ("def _patchkit_original(a):\n    return a == 1", []),
    ],
)  # fmt: skip
def test_what_a_line_becomes(line: str, made: list[str]) -> None:
    assert sorted(changes(line)) == sorted(made)


TEXT = '''
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a import b

SIZE = 3


class A(f(1)):
    """Of A."""

    def g(self, x: int = 1) -> bool:
        """Of g."""
        try:
            self.h(
                x,
            )
        except BaseException:
            raise
        return x == 1 or x == 1

    def theirs(self) -> bool:
        return 1 == 2
'''


def test_a_module() -> None:
    found = code_mutations(TEXT, "set/m.py", {"A.theirs"})
    assert {m.scope for m in found} == {"", "A.g"}
    assert {m.change: m.reached for m in found} == {
        "SIZE = 3 => SIZE = 4": 0,
        "def g(self, x: int = 1) -> bool: => def g(self, x: int = 2) -> bool:": 0,
        "self.h( ... => pass": 18,
        "except BaseException: => except Exception:": 17,
        "raise => pass": 22,
        "return x == 1 or x == 1 => return x == 1": 23,
        "return x == 1 or x == 1 => return x == 1 (2)": 23,
        "return x == 1 or x == 1 => return x != 1 or x == 1": 23,
        "return x == 1 or x == 1 => return x == 2 or x == 1": 23,
        "return x == 1 or x == 1 => return x == 1 or x != 1": 23,
        "return x == 1 or x == 1 => return x == 1 or x == 2": 23,
    }
    assert len({m.name for m in found}) == len(found)
    for mutation in found:
        changed = mutation.apply(TEXT)
        ast.parse(changed)
        assert changed != TEXT
        assert changed[: mutation.start] == TEXT[: mutation.start]


def test_positions_are_in_bytes() -> None:
    (mutation,) = code_mutations("é = a == 'ü b'\n", "m.py")
    assert mutation.apply("é = a == 'ü b'\n") == "é = a != 'ü b'\n"
