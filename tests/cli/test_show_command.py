"""`show`: upstream's text with upstream's line numbers."""

from __future__ import annotations

import json

import pytest

from tests.engine.sample import ENGINE, Sample

BRANCHES = """
import sys

if sys.platform == "win32":
    def where():
        return "there"
else:
    def where():
        return "here"


class Box:
    size: int

    @property
    def lid(self):
        return 1

    other = 2

    @lid.setter
    def lid(self, value):
        pass
"""


@pytest.fixture
def sample(tmp_path, run, monkeypatch) -> Sample:
    made = Sample(tmp_path / "project")
    made.upstream("boxes", BRANCHES)
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture
def show(run, sample):
    return lambda *arguments: run("show", "--offline", f"--source=acme={sample.source}", *arguments)


def numbered(text: str, first: int, last: int) -> str:
    rows = text.lstrip("\n").split("\n")
    return "".join(f"{n:>6}  {rows[n - 1]}".rstrip() + "\n" for n in range(first, last + 1))


@pytest.mark.parametrize("name", ["acme.engine:total", "acme.engine.total", "total"])
def test_a_function(show, name):
    rows = ENGINE.lstrip("\n").split("\n")
    first = rows.index("def total(values):") + 1
    result = show(name)
    head = f"acme.engine:total  acme/engine.py:{first}-{first + 4} of pin acme (1.0)\n"
    assert (result.exit_code, result.stdout) == (0, head + numbered(ENGINE, first, first + 4))


@pytest.mark.parametrize("name", ["acme.engine:Engine.step", "acme.engine.Engine.step", "Engine.step"])
def test_a_method_with_its_decorators(show, name):
    text = show(name).stdout
    assert text.startswith("acme.engine:Engine.step  acme/engine.py:")
    assert "@functools.wraps(Base.step)\n" in text.split("\n", 2)[1] + "\n"


def test_the_one_that_an_entry_has_is_meant(show):
    assert show("step").stdout.startswith("acme.engine:Engine.step "), "Base.step is no entry"


def test_no_entry_is_needed_nor_a_lock(show, sample):
    assert not sample.lock.exists()
    assert show("init_logger").stdout.startswith("acme.log:init_logger ")
    assert show("acme.engine:LIMIT").stdout.startswith("acme.engine:LIMIT  acme/engine.py:11 of pin")


def test_a_module_is_shown_whole(show):
    text = BRANCHES.lstrip("\n")
    assert show("acme.boxes").stdout.partition("\n")[2] == numbered(BRANCHES, 1, text.count("\n"))


def test_all_branches_and_parts_are_shown(show):
    blocks = show("where").stdout.split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == [
        'acme.boxes:where  acme/boxes.py:4-5 of pin acme (1.0), under if sys.platform == "win32"',
        'acme.boxes:where  acme/boxes.py:7-8 of pin acme (1.0), under else of if sys.platform == "win32"',
    ]
    found = json.loads(show("Box.size", "--format", "json").stdout)["found"]
    assert [(item["symbol"], item["lines"]) for item in found] == [("acme.boxes:Box.size", [[12, "    size: int"]])]


def test_another_release(run, sample, tmp_path):
    from tests.invented import write_tree

    write_tree(tmp_path / "next", {"acme/__init__.py": "", "acme/engine.py": "def total():\n    return 7\n"})
    options = ["--offline", f"--source=acme={tmp_path / 'next'}", "--pin=acme=2.0"]
    assert run("show", "total", *options).stdout == (
        "acme.engine:total  acme/engine.py:1-2 of pin acme (2.0)\n     1  def total():\n     2      return 7\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["acme.engine:totl"], 1, "PK205: acme.engine has no totl upstream acme/engine.py | near: acme.engine:total"),
        (["acme.engine.Engine.stp"], 1, "| near: acme.engine:Engine.step"),
        (["acme.engin:total"], 1, "PK205: pin acme (1.0) has no module acme.engin"),
        (["totl"], 1, "PK205: no pin that was searched (acme) defines totl | near: total"),
        (["helper.deeper"], 1, "PK205"),
        (["dispatch.x"], 1, "PK205"),
        (["a b"], 2, "PK006: 'a b' is not a symbol"),
        (["a:b:c"], 2, "PK006"),
        (["total", "--in", "acne"], 2, "PK091"),
        (["total", "--pin", "acne=1"], 2, "PK091"),
    ],
)
def test_what_cannot_be_shown(show, arguments, code, said):
    result = show(*arguments)
    assert result.exit_code == code, result.output
    assert said in " ".join(result.stdout.split())


def test_several_symbols_are_listed(show, sample):
    sample.upstream("other", "class A:\n    def run_it(self): ...\n\ndef run_it(): ...\n")
    result = show("run_it")
    assert result.exit_code == 1
    assert "PK206: run_it names 2 symbols of pin acme | acme.other:A.run_it | acme.other:run_it" in " ".join(
        result.stdout.split()
    )
    assert show("A.run_it").exit_code == 0


def test_an_upstream_that_cannot_be_had(run, sample):
    result = run("show", "--offline", "total")
    assert result.exit_code == 3
    assert "PK401" in result.stdout
