"""The pages of the finding codes: every code has one, every one is used, and all say what a page must say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import afd_patchkit
from afd_patchkit.findings.finding import Group, Severity, codes, finding, page

PACKAGE = Path(afd_patchkit.__file__).parent
PAGES = PACKAGE / "findings" / "pages"
CODE = re.compile(r"\bPK\d{3}\b")
HEAD = re.compile(
    r"---\ntitle: (\S.*)\nseverity: (error|warning|note)\nexit: ([0-3])\n(?:group: (\w+)\n)?(?:upgrade: (PK\d{3})\n)?---\n\s*(\S(?s:.*))"
)
# exit code of everything in a range but notes (design, section 8)
RANGES = {"0": 2, "1": 1, "2": 1, "3": 1, "4": 3, "5": 1, "7": 1}

EVERY_CODE = pytest.mark.parametrize("code", codes())


def used() -> dict[str, list[str]]:
    """Codes that the package's source mentions as strings, or a page as what an upgrade brings, with the files."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for code in re.findall(r"""["'](PK\d{3})["']""", path.read_text(encoding="utf-8")):
            found.setdefault(code, []).append(str(path.relative_to(PACKAGE)))
    for code in codes():
        if later := page(code).on_upgrade:
            found.setdefault(later, []).append(f"{code}.md")
    return found


def test_every_code_in_the_source_has_a_page():
    assert {code: files for code, files in used().items() if code not in codes()} == {}


def test_every_page_is_used():
    assert set(codes()) - set(used()) == set()


def test_only_pages_lie_in_the_folder():
    assert [p.name for p in PAGES.iterdir() if not re.fullmatch(r"PK\d{3}\.md", p.name)] == []


def test_titles_tell_codes_apart():
    titles = [page(code).title for code in codes()]
    assert len(set(titles)) == len(titles)


@EVERY_CODE
def test_front_matter_and_body(code):
    text = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    match = HEAD.fullmatch(text)
    assert match is not None, (
        "front matter: title, severity, exit, group, upgrade, in this order, the last two where they say something"
    )
    title, severity, exit_code, group, upgrade, body = match.groups()
    entry = page(code)
    assert (entry.title, entry.severity.value, entry.exit_code) == (title, severity, int(exit_code))
    assert (entry.group, entry.on_upgrade) == (group, upgrade)
    assert group is None or group in get_args(Group)
    assert upgrade is None or page(upgrade).family == "upgrade"
    assert len(title) <= 72
    assert not title.endswith(".")
    assert title[0].isupper() or title[0] == "`" or title.split()[0].endswith("()")
    assert len(body.split()) >= 30, "say what it means, why it matters, and what to do"
    assert "`" in body, "show an example"
    assert text.endswith("\n")
    assert "\r" not in text


@EVERY_CODE
def test_severity_and_exit_code_fit_the_range(code):
    entry = page(code)
    if entry.severity is Severity.NOTE or code[2] == "6":
        assert (entry.severity, entry.exit_code) == (Severity.NOTE, 0)
    else:
        assert entry.exit_code == RANGES[code[2]]


@EVERY_CODE
def test_codes_that_a_page_mentions_exist(code):
    assert set(CODE.findall(page(code).body)) <= set(codes())


@pytest.mark.parametrize("code", ["PK999", "", "../PK090", "PK090.md", "pk090"])
def test_codes_without_a_page(code):
    with pytest.raises(KeyError):
        finding(code, "message")


def test_a_page_knows_its_family():
    families = {code: page(code).family for code in codes()}
    assert {families[code] for code in families if page(code).severity is Severity.NOTE} == {"note"}
    assert (families["PK001"], families["PK106"], families["PK201"], families["PK501"]) == (
        "manifest",
        "lock",
        "delta",
        "upgrade",
    )
