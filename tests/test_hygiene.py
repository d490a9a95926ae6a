"""The search for upstream text in tracked files, with an invented upstream."""

from __future__ import annotations

import subprocess
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import hygiene_check as hygiene

UPSTREAM = '''\
# SPDX-License-Identifier: Apache-2.0
import os


def forecast(harvest, rainfall):
    """Tons of barley."""
    # the wet years
    wet = [year for year in rainfall if rainfall[year] > 400]

    dry = sorted(set(rainfall) - set(wet))
    total = sum(harvest[year] for year in wet)  # tons
    penalty = 3.5 * len(dry)
    if total < penalty:
        return 0
    else:
        return total - penalty
'''
LINES = UPSTREAM.splitlines()
BODY = "\n".join(LINES[6:15])


@pytest.fixture(scope="module")
def index() -> hygiene.Index:
    return hygiene.Index.of("barley 1.0", [("barley/empty.py", ""), ("barley/forecast.py", UPSTREAM)])


def found(index: hygiene.Index, text: str) -> list[str]:
    return [str(problem) for problem in hygiene.copies("our.py", text, index)]


def test_a_copy_is_named_with_both_places(index):
    text = "x = 1\n" + BODY + "\ny = 2\n"
    assert found(index, text) == ["our.py:3: 7 code lines as in barley 1.0, barley/forecast.py:8 (to line 10)"]


DISGUISES = {
    "indented": BODY.replace("\n", "\n        "),
    "other comments and blank lines": BODY.replace("\n    ", "\n\n    # ours\n    "),
    "comments at the ends": BODY.replace("\n", "  # ours\n"),
    "other spaces": BODY.replace(" = ", "=").replace("(", "( "),
    "CRLF in YAML": "a: |\r\n  " + BODY.replace("\n", "\r\n  ") + "\r\nb: 1\r\n",
}


@pytest.mark.parametrize("name", DISGUISES)
def test_comments_blank_lines_and_white_space_do_not_hide_it(index, name):
    assert len(found(index, DISGUISES[name].replace("\r\n", "\n"))) == 1


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (LINES[7:11], 0),  # three code lines and a blank one
        (LINES[7:12], 0),  # four
        (LINES[7:13], 1),  # five
        ([*LINES[7:10], "rest = 1", *LINES[10:13]], 0),  # a line of ours in between
        ([*LINES[7:13], "a = 1", "b = 2", *LINES[7:13]], 2),
    ],
)
def test_five_lines_are_a_copy(index, lines, expected):
    assert len(found(index, "\n".join(lines))) == expected


TRIVIAL = [
    "import os\nimport re\nimport sys\nimport time\nimport typing\nimport uuid\n",
    "from barley import (\n    forecast,\n    harvest,\n    rainfall,\n    wet,\n    dry,\n)\n",
    "        )\n    ]\n)\nelse:\n    return None\n",
    "try:\n    pass\nfinally:\n    return\nelse:\n    raise\n",
    "    def __exit__(\n        self,\n        exc_type: type[BaseException] | None,\n        exc_value: BaseException | None,\n        traceback: TracebackType | None,\n    ) -> None:\n",
]


@pytest.mark.parametrize("text", TRIVIAL)
def test_what_anybody_writes_is_no_copy(text):
    index = hygiene.Index.of("barley 1.0", [("barley/forecast.py", text)])
    assert found(index, text) == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("x = 1  # one", "x = 1  "),
        ("x = '#1'  # one", "x = '#1'  "),
        ('x = "\\"#"  # one', 'x = "\\"#"  '),
        ("# all", ""),
        ("plain", "plain"),
    ],
)
def test_comments(line, code):
    assert hygiene.without_comment(line) == code


@given(st.lists(st.sampled_from(LINES), max_size=30))
def test_text_of_the_upstream_in_order_is_found_and_other_orders_are_not(lines):
    index = hygiene.Index.of("barley 1.0", [("barley/forecast.py", UPSTREAM)])
    wanted = [line.text for line in hygiene.code_lines(UPSTREAM)]
    ours = hygiene.code_lines("\n".join(lines))
    runs = 0
    for _, at in hygiene.windows(ours):
        window = [line.text for line in ours[at : at + hygiene.LINES]]
        runs += any(wanted[i : i + hygiene.LINES] == window for i in range(len(wanted)))
    assert bool(found(index, "\n".join(lines))) == bool(runs)


def test_the_index_is_stored_and_damage_is_noticed(index, tmp_path):
    path = tmp_path / "cache" / "barley.index"
    assert hygiene.Index.load(path) is None
    index.save(path)
    assert hygiene.Index.load(path) == index
    path.write_bytes(path.read_bytes()[:-9])
    assert hygiene.Index.load(path) is None
    path.write_bytes(array("Q", [2**60, 2**60]).tobytes())
    assert hygiene.Index.load(path) is None


WORDS = [
    ("see https://" + "pypi" + ".org/simple", "package index"),
    ("files." + "pythonhosted" + ".org", "package index"),
    ("PYPI" + ".ORG", "package index"),
    ("cd /" + "work/main", "path of one machine"),
    ("<<<" + "<<<< ours", "conflict marker"),
]


@pytest.mark.parametrize(("line", "word"), WORDS)
def test_words_that_may_not_stand_in_a_file(line, word):
    problems = list(hygiene.words("docs/a.md", f"one\n{line}\n"))
    assert [p.line for p in problems] == [2]
    assert word in problems[0].message


def test_all_tracked_files_are_read_and_no_others(index, tmp_path):
    def git(*args: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=tmp_path, check=True)

    git("init", "-q")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "a.yaml").write_text("with: |\n" + BODY, encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\0" + BODY.encode())
    (tmp_path / "ignored.py").write_text(BODY, encoding="utf-8")
    (tmp_path / "link").symlink_to("ignored.py")
    (tmp_path / "ünï.py").write_text(BODY, encoding="utf-8")
    git("add", "manifests", "binary", "link", "ünï.py")
    problems = hygiene.check(tmp_path, [index])
    assert [(p.path, p.line) for p in problems] == [("manifests/a.yaml", 3), ("ünï.py", 2)]
    (tmp_path / "ünï.py").unlink()
    assert len(hygiene.check(tmp_path, [index])) == 1
