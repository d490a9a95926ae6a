"""The parts of the upgrade engine: merge, alignment, line digests, edits of YAML."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.findings.errors import PatchkitError, UpstreamError
from afd_patchkit.findings.finding import Position
from afd_patchkit.source.locate import Symbol, find_symbol
from afd_patchkit.source.text import load_source
from afd_patchkit.upgrade.align import align
from afd_patchkit.upgrade.merge import as_text, line_digests, merge, normal, placed, private_marker
from afd_patchkit.upgrade.sides import LineDiff
from afd_patchkit.upgrade.yaml_edit import ScalarEdit, edit_scalars, find_scalar, remove_key

from .world import World

# ---- merge ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "base", "theirs", "expected"),
    [
        ("a\nX\nb\nc\nd\n", "a\nb\nc\nd\n", "a\nb\nc\nD\n", ("a\nX\nb\nc\nD\n", True)),
        ("a\n", "a\n", "b\n", ("b\n", True)),
        ("b\n", "a\n", "a\n", ("b\n", True)),
        ("b\n", "a\n", "b\n", ("b\n", True)),
    ],
)
def test_merge(ours: str, base: str, theirs: str, expected: tuple[str, bool]) -> None:
    found = merge(ours, base, theirs)
    assert (found.text, found.clean) == expected


def test_a_conflict_shows_all_three() -> None:
    found = merge("ours\n", "old\n", "theirs\n")
    assert not found.clean
    assert all(text in found.text for text in ("<<<<<<< generated\nours\n", "||||||| base\nold\n", ">>>>>>> new\n"))


def test_the_users_git_configuration_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = merge("ours\n", "old\n", "theirs\n")
    (tmp_path / ".gitconfig").write_text("[merge]\n\tconflictStyle = zdiff3\n[core]\n\tautocrlf = true\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert merge("ours\n", "old\n", "theirs\n") == before


def test_no_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(UpstreamError) as error:
        merge("ours\n", "old\n", "theirs\n")
    assert [f.code for f in error.value.findings] == ["PK506"]


def test_normal_form_leaves_fences_and_blank_lines_out() -> None:
    marker = private_marker(["# ~delta~0~ START: a"])
    assert marker == "~delta~1~"
    text = f"a  \n\n    # {marker} START: x\n    b\n    # {marker} END: x\n# ### PATCH START: theirs\n"
    assert normal(text, marker) == ["a", "    b", "# ### PATCH START: theirs"]


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([("x", (2, 1))], ["a", "delta x", "b", "c", "d"]),
        ([("x", (2, 3))], ["a", "delta x", "d"]),
        ([("x", (5, 4))], ["a", "b", "c", "d", "delta x"]),
        ([("x", (1, 0)), ("y", (1, 1))], ["delta x", "delta y", "b", "c", "d"]),
        ([("x", (2, 3)), ("y", (3, 3))], ["a", "delta x, y", "d"]),
    ],
)
def test_edits_in_place_of_lines(edits: list[tuple[str, tuple[int, int]]], expected: list[str]) -> None:
    assert placed(["a", "b", "c", "d"], [(name, {"lines": list(lines)}) for name, lines in edits]) == expected
    assert as_text(expected).count("\n") == len(expected)


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_line_diff_counts(old: list[str], new: list[str]) -> None:
    diff = LineDiff(line_digests(old), line_digests(new))
    assert len(diff.added) == diff.plus == len(new) - len(diff.kept)
    assert diff.minus == len(old) - len(diff.kept)
    assert all(old[a - 1] == new[b - 1] for a, b in diff.kept.items())
    assert (diff.plus == diff.minus == 0) == (old == new)


# ---- alignment --------------------------------------------------------------------------------------------------------


def symbol(text: str) -> Symbol:
    return find_symbol(load_source(text.encode(), pin="p", path="m.py"), "f")


def pairs(base: str, new: str) -> dict[str, str | None]:
    """First lines of the old statements and of what they became."""
    one, other = symbol(base), symbol(new)
    found = align(one, other)

    def head(source: Symbol, start: int) -> str:
        line = source.file.line_of(start)
        return source.file.lines(line, line)[0].strip()

    out: dict[str, str | None] = {}
    for statement in found.base.by_id.values():
        became = found.find(statement.node)
        out[head(one, statement.span.start)] = head(other, became.span.start) if became else None
    return out


BASE = "def f(q):\n    a = one(q)\n    if q:\n        b = two(a)\n        c = three(b)\n    return a\n"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (BASE, {}),
        (BASE.replace("two(a)", "two(a, 1)"), {"b = two(a)": "b = two(a, 1)"}),
        (BASE.replace("if q:", "if q and q.x:"), {"if q:": "if q and q.x:"}),
        (BASE.replace("        c = three(b)\n", ""), {"c = three(b)": None}),
        ("def f(q):\n    with lock:\n        a = one(q)\n        if q:\n            b = two(a)\n            c = three(b)\n        return a\n", {}),
        (BASE.replace("    if q:\n        b = two(a)\n        c = three(b)\n", "    b = two(a)\n    c = three(b)\n"), {"if q:": None}),
        (BASE.replace("a = one(q)", "x = other(q)\n    a = one(q)"), {}),
        ("def f(q):\n    a = one(q)\n    return a\n    if q:\n        b = two(a)\n        c = three(b)\n", {}),
    ],
)  # fmt: skip
def test_alignment(new: str, expected: dict[str, str | None]) -> None:
    found = pairs(BASE, new)
    assert found == {**{k: k for k in found}, **expected}


def test_equal_statements_keep_their_order() -> None:
    one, other = (
        symbol("def f(q):\n    go()\n    stop()\n    go()\n"),
        symbol("def f(q):\n    go()\n    go()\n    stop()\n    go()\n"),
    )
    found = align(one, other)
    body, new = one.node.body, other.node.body  # type: ignore[union-attr]
    became = [new.index(s.node) if (s := found.find(n)) else None for n in body]
    assert became[1:] == [2, 3]
    assert became[0] in (0, 1)
    assert len(found.unmatched()) == 1


NAMES = st.sampled_from(["go()", "stop(q)", "a = 1", "if q:\n        b()\n        c()", "for x in q:\n        d(x)"])


@given(st.lists(NAMES, min_size=1, max_size=8), st.lists(NAMES, min_size=1, max_size=8))
def test_alignment_is_a_matching(one: list[str], other: list[str]) -> None:
    base, new = (symbol("def f(q):\n" + "".join(f"    {s}\n" for s in lines)) for lines in (one, other))
    found = align(base, new)
    landed = [id(s.node) for s in found.pairs.values()]
    assert len(landed) == len(set(landed)), "no new statement is two old ones"
    if one == other:
        assert all(found.base.by_id[k].digest == s.digest for k, s in found.pairs.items())
        assert len(found.pairs) == len(found.base.by_id)
        assert found.unmatched() == []


# ---- YAML -------------------------------------------------------------------------------------------------------------

TEXT = """\
# head
a:   {x: "1", y: 'two'}   # tail
b:
    - |

      old text

    # between
    - plain
c: >-
  folded
"""


@pytest.mark.parametrize(
    ("line", "column", "old", "new", "expected"),
    [
        (2, 10, "1", "2", TEXT.replace('"1"', '"2"')),
        (2, 18, "two", "it's", TEXT.replace("'two'", "'it''s'")),
        (9, 7, "plain", "other", TEXT.replace("plain", "other")),
        (5, 7, "\nold text\n", "new\ntext\n", TEXT.replace("\n      old text\n", "      new\n      text\n")),
    ],
)
def test_edit_of_one_scalar(line: int, column: int, old: str, new: str, expected: str) -> None:
    edit = ScalarEdit(Position("x.yaml", line, column), old, new)
    assert edit_scalars(TEXT.encode(), [edit], "x.yaml").decode() == expected
    crlf = edit_scalars(TEXT.replace("\n", "\r\n").encode(), [edit], "x.yaml")
    assert crlf.decode() == expected.replace("\n", "\r\n")


def test_a_scalar_that_is_not_there_any_more() -> None:
    with pytest.raises(PatchkitError) as error:
        edit_scalars(TEXT.encode(), [ScalarEdit(Position("x.yaml", 2, 10), "3", "4")], "x.yaml")
    assert [f.code for f in error.value.findings] == ["PK549"]


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=20))
def test_quoted_scalars_hold_any_text(text: str) -> None:
    for quote in ("'", '"'):
        data = f"a: {quote}1{quote} # c\n".encode()
        found = find_scalar(data, ["a"])
        assert found is not None
        out = edit_scalars(data, [ScalarEdit(found.position, "1", text)], "x.yaml")
        assert yaml.safe_load(out)["a"] == text
        assert out.endswith(b" # c\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p:\n  a: 1\n  k: 2  # gone\n  b: 3\n", "p:\n  a: 1\n  b: 3\n"),
        ("p: {a: 1, k: 2, b: 3}\n", "p: {a: 1, b: 3}\n"),
        ("p: {a: 1, k: 2}\n", "p: {a: 1}\n"),
        ("p: {k: 2, b: 3}\n", "p: {b: 3}\n"),
        ("p: {b: 3}\n", "p: {b: 3}\n"),
    ],
)
def test_remove_key(text: str, expected: str) -> None:
    assert remove_key(text.encode(), ["p", "k"], "x.yaml").decode() == expected


# ---- yanked -----------------------------------------------------------------------------------------------------------


def test_a_yanked_target_is_compared_and_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from afd_patchkit.findings.finding import finding
    from afd_patchkit.run import pins
    from afd_patchkit.upstream.verified import SourceUpstream

    world = World(tmp_path)
    text = "def f(a):\n    return a\n"
    world.release("1.0", {"engine": text})
    world.release("2.0", {"engine": text})
    world.deltas("")
    world.regen()
    original = pins.open_upstream

    def yanked(name: str, pin: object, *arguments: object, **more: object) -> SourceUpstream:
        upstream = original(name, pin, *arguments, **more)  # type: ignore[arg-type]
        if upstream.version == "2.0":
            upstream.notes.append(finding("PK640", "acme-2.0 was yanked by its publisher: broken"))
        return upstream

    monkeypatch.setattr(pins, "open_upstream", yanked)
    before = world.state()
    result = world.upgrade(write=True)
    assert [f.code for f in result.findings] == ["PK504", "PK542"]
    assert [e.status for e in result.entries] == ["unchanged"]
    assert world.state() == before
