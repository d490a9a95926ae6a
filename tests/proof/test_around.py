"""Changes around a delta: the text that they leave, and what counts as wrong."""

from __future__ import annotations

import ast

import pytest

from afd_patchkit.source.locate import find_symbol
from afd_patchkit.upstream.base import MemoryUpstream
from tools.oracles.proof.around import KINDS, QUIET, Around, table
from tools.oracles.proof.surrounding import Text

CODE = '''
class K:
    def f(self, n):
        """Docs."""
        first(n)
        if n:
            second(n)
        return n
'''


@pytest.fixture
def text() -> Text:
    """A method as the changes see it."""
    file = MemoryUpstream({"acme/__init__.py": "", "acme/engine.py": CODE}).read("acme.engine")
    return Text(find_symbol(file, "K.f"))


def test_code_goes_above_the_first_statement_and_below_all_but_the_last(text: Text) -> None:
    above = [ast.unparse(n) for n in ast.parse(text.above("if n:\n    return")).body[0].body]  # type: ignore[attr-defined]
    assert above[:3] == ["'Docs.'", "if n:\n    return", "first(n)"]
    below = [ast.unparse(n) for n in ast.parse(text.below("print(n)")).body[0].body]  # type: ignore[attr-defined]
    assert below[-2:] == ["print(n)", "return n"]


def test_a_node_is_written_otherwise_and_nothing_else(text: Text) -> None:
    condition = text.node.body[2].test
    assert text.replaced(condition, "n and 1") == text.plain.replace("if n:", "if n and 1:")


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_layout_or_anothers_may_and_must_be_silent(kind: str) -> None:
    silent, told = (Around(1, kind, "m:f", "- name: probe", status) for status in ("clean", "review"))
    assert (silent.wrong, told.wrong) == ((False, True) if kind in QUIET else (True, False))
    assert "with the wrong status: 1 of 2" in list(table([silent, told], 1))
