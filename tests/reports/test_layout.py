from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.reports.layout import (
    PLAIN,
    Style,
    columns,
    human_bytes,
    human_seconds,
    human_share,
    plural,
    printable,
    shorten,
    table,
    wrap,
)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (9_949, "9.9 kB"), (9_951, "10 kB"), (812_345, "812 kB"),
        (999_499, "999 kB"), (999_500, "1.0 MB"), (2_400_000, "2.4 MB"), (38_000_000, "38 MB"), (5 * 10**15, "5000 TB"),
    ],
)  # fmt: skip
def test_bytes(count, expected):
    assert human_bytes(count) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0401, "0.04 s"),
        (0.994, "0.99 s"),
        (0.996, "1.0 s"),
        (3.42, "3.4 s"),
        (59.9, "59.9 s"),
        (59.96, "1 min 00 s"),
        (125, "2 min 05 s"),
    ],
)
def test_seconds(seconds, expected):
    assert human_seconds(seconds) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [(None, "-"), (0.0, "0.0%"), (0.983, "98.3%"), (0.99999, "99.9%"), (1.0, "100.0%"), (2999 / 3000, "99.9%")],
)
def test_share_is_never_rounded_up_to_all(share, expected):
    assert human_share(share) == expected


def test_plural():
    assert [plural(n, "entry", "entries") for n in (0, 1, 12_345)] == ["0 entries", "1 entry", "12,345 entries"]


@given(st.text())
def test_printable_leaves_nothing_that_a_terminal_obeys(text):
    shown = printable(text)
    assert not any((ord(c) < 32 and c not in "\t\n") or 0x7F <= ord(c) <= 0x9F for c in shown)
    assert printable(shown) == shown


@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Zs", "Zl", "Zp", "Mn", "Me")), min_size=0),
    st.integers(20, 80),
)
def test_wrapping_loses_no_word_and_keeps_the_width_where_words_allow(text, width):
    lines = wrap(text, Style(width=width), first="* ", rest="  ")
    assert " ".join(" ".join(lines).split()) == " ".join(f"* {text}".split())
    assert all(columns(line) <= width or len(line.split()) <= 2 for line in lines)


def test_wrapping_keeps_long_paths_whole_and_pipes_unwrapped():
    path = "manifests/" + "x" * 90 + ".yaml:31:18"
    assert wrap(f"see {path} there", Style(width=40)) == ["see", path, "there"]
    assert wrap("a " * 100, PLAIN) == [("a " * 100).rstrip()]


def test_columns_ignore_colour_and_count_wide_characters():
    style = Style(color=True)
    assert columns(style.paint("written", "bold", "green")) == 7
    assert columns("日本") == 4
    assert columns("e\u0301") == 1


def test_shorten_keeps_the_end():
    assert shorten("generated/very/long/path.py", 14) == "...ong/path.py"
    assert shorten("short.py", 14) == "short.py"


def test_table_fits_the_width_and_aligns():
    rows = [("vllm_v026_mrv2_dbo/a_rather_long_module_name_that_goes_on.py", "written", "3"), ("b.py", "differs", "12")]
    lines = table(("module", "status", "n"), rows, Style(width=40), right=(2,), footer=("total", "", "15"))
    assert all(columns(line) <= 40 for line in lines)
    assert lines[0].split() == ["module", "status", "n"]
    assert [line[-2:] for line in lines[1:]] == [" 3", "12", "15"]
    whole = table(("module", "status", "n"), rows, PLAIN, right=(2,))
    assert rows[0][0] in whole[1]
