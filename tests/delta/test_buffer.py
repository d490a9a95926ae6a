"""Text that remembers where it came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.delta.buffer import Buffer, Run, upstream_line
from afd_patchkit.source.rows import indent_code
from afd_patchkit.source.text import Span, load_source

FILE = load_source("a = 1\n    b = 'é'  # ö\n\tc\n".encode(), pin="acme", path="m.py")


def whole() -> Buffer:
    """The file's text, as it stands."""
    return Buffer.verbatim(FILE, Span(0, len(FILE.data)))


def origins(buffer: Buffer) -> list[tuple[str, int | None]]:
    """The runs: text, and where it is from."""
    return [(run.text, run.start if run.file else None) for run in buffer.runs]


def test_lines_are_cut_at_line_ends():
    assert [[run.text for run in line] for line in whole().split_lines()] == [
        ["a = 1\n"],
        ["    b = 'é'  # ö\n"],
        ["\tc\n"],
    ]
    assert [upstream_line(line) for line in whole().split_lines()] == [(FILE, 1), (FILE, 2), (FILE, 3)]
    assert Buffer().split_lines() == []


def test_reindent_keeps_origins():
    moved = whole().reindent("    ", "  ")
    assert moved.text == "a = 1\n  b = 'é'  # ö\n\tc\n"
    assert [upstream_line(line) for line in moved.split_lines()] == [(FILE, 1), (FILE, 2), (FILE, 3)]
    assert all(FILE.data[run.start :].startswith(run.text.encode()) for run in moved.runs if run.file)


@pytest.mark.parametrize(
    ("text", "remove", "add", "expected"),
    [
        ("  a\n  b\n", "  ", "    ", "    a\n    b\n"),
        ("  a\n\n  b\n", "  ", "", "a\n\nb\n"),
        ("  a(\n b)\n", "  ", "    ", "    a(\n b)\n"),
        ("  a = '''\n  b'''\n  c\n", "  ", "", "a = '''\n  b'''\nc\n"),
        ("  a = '\\\n  b'\n", "  ", "", "a = '\\\n  b'\n"),
        ("\f  a\n \f  b\n", "  ", "\t", "\f\ta\n \f\tb\n"),
        ("a\n  \n", "", "  ", "  a\n  \n"),
        ("  a\n", "  ", "  ", "  a\n"),
    ],
)
def test_reindent(text, remove, add, expected):
    assert Buffer.emitted(text).reindent(remove, add).text == expected


def test_reindent_leaves_the_rest_of_a_line_alone():
    assert Buffer.emitted("  a\n  b").reindent("  ", "", skip_first=True).text == "  a\nb"


def test_replace_splits_runs_and_keeps_their_edits():
    buffer = Buffer([Run("abc", FILE, 0, (1,)), Run("def", None, 0, (2, 3))])
    changed = buffer.replace([(1, 2, "X", "name"), (2, 4, "YZ", "name"), (6, 6, "!", "name")])
    assert changed.text == "aXYZef!"
    assert [(run.text, run.edits, run.label) for run in changed.runs] == [
        ("a", (1,), "delta"),
        ("X", (1,), "name"),
        ("YZ", (1,), "name"),
        ("ef", (2, 3), "delta"),
        ("!", (), "name"),
    ]


@given(st.lists(st.tuples(st.integers(0, 22), st.integers(0, 6)), max_size=4), st.data())
def test_replace_is_replacing_in_the_text(spans, data):
    text = whole().text
    changes: list[tuple[int, int, str, str]] = []
    at = 0
    for start, length in sorted(spans):
        first, last = min(max(start, at), len(text)), min(max(start, at) + length, len(text))
        changes.append((first, last, data.draw(st.sampled_from(["", "x", "ü\n"])), "name"))
        at = last + 1
    expected, at = "", 0
    for first, last, new, _ in changes:
        expected += text[at:first] + new
        at = max(last, at)
    expected += text[at:]
    changed = whole().replace(changes)
    assert changed.text == expected
    assert all(FILE.data[run.start :].startswith(run.text.encode()) for run in changed.runs if run.file)


def test_what_is_no_whole_upstream_line():
    verbatim = Run("a = 1\n", FILE, 0)
    assert upstream_line([verbatim]) == (FILE, 1)
    assert upstream_line([Run("  ", None), verbatim]) == (FILE, 1)
    assert upstream_line([verbatim.part(0, 3)]) is None
    assert upstream_line([verbatim.part(0, 2), verbatim.part(4, 6)]) is None
    assert upstream_line([verbatim.part(0, 5), Run(";", None)]) is None
    assert upstream_line([Run("x\n", None)]) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\nb", "  a\n  b"), ("a\n\nb\n", "  a\n\n  b\n"), ("a = '''\nb\n'''\nc", "  a = '''\nb\n'''\n  c")],
)
def test_indent_code(text, expected):
    assert indent_code(text, "  ") == expected
