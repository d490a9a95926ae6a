"""The table of clauses: each parses in the frame that it says, and the statements have the clauses that they list."""

from __future__ import annotations

import ast

import pytest

from afd_patchkit.source.keywords import KEYWORDS, ORDERS, frames, keyword_of

CODE = {
    "elif": "elif a:\n    b\nelif c:\n    d",
    "else": "else:\n    a",
    "except": "except E as e:\n    a\nexcept F:\n    b",
    "finally": "finally:\n    a",
    "case": 'case [a, *b] if a:\n    c = """\n  text\n"""\ncase _:\n    d',
    "if": "if a:\n    b",
}


def test_every_keyword_is_tried() -> None:
    assert set(CODE) == set(KEYWORDS)


@pytest.mark.parametrize("word", CODE)
def test_code_that_begins_with_it_parses_in_a_frame(word: str) -> None:
    code = CODE[word]
    assert keyword_of(code) == word
    parsed = []
    for frame in frames(code):
        assert frame.bare(frame.text) == code
        try:
            parsed.append(ast.parse(frame.text))
        except SyntaxError:
            continue
    assert len(parsed) == (2 if word == "else" else 1)
    assert all(len(tree.body) == 1 for tree in parsed)


@pytest.mark.parametrize("code", ["iffy = 1", "case = 3", "else_()", "f(x)", "", "# if"])
def test_what_is_no_clause_is_tried_as_it_stands(code: str) -> None:
    first, *others = frames(code)
    assert first.text == code
    assert all(frame.code != code for frame in others)


def test_what_follows_a_first_clause_can_be_written() -> None:
    for first, words in ORDERS.items():
        assert words[0] == first
        assert set(words[1:]) <= set(KEYWORDS)
