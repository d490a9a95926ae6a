"""Forward drift: statuses on invented text, the page, and a sample of the real facts."""

from __future__ import annotations

import random

import pytest

from afd_patchkit.source.locate import find_symbol
from afd_patchkit.source.text import load_source
from afd_patchkit.upgrade.result import DeltaResult, EntryResult, UpgradeResult
from afd_patchkit.upstream.options import SourceOptions
from tools.oracles.drift import guide
from tools.oracles.drift.compare import Comparer, Drift, compared
from tools.oracles.drift.facts import differences, normal, read_facts
from tools.oracles.drift.page import page
from tools.oracles.releases import RELEASES, read_symbols

from .releases import OLD, releases

TEXT = '@mark\ndef f(a, b=1):\n    """Doc."""\n    return call(a, b)\n'


@pytest.mark.parametrize(
    ("new", "status"),
    [
        (TEXT, "unchanged"),
        (TEXT.replace("call(a, b)", "call(\n        a,\n        b,\n    )"), "unchanged (format only)"),
        (TEXT.replace("    return", "    # a comment\n    return"), "unchanged (format only)"),
        (TEXT.replace("Doc.", "Other doc."), "unchanged (docstring only)"),
        (TEXT.replace("call(a, b)", "call(b, a)"), "body changed"),
        (TEXT.replace("b=1", "b=2"), "signature changed"),
        (TEXT.replace("(a, b=1)", "(b, a)"), "signature changed"),
        (TEXT.replace("(a, b=1)", "(a, b=1) -> int"), "signature changed"),
        (TEXT.replace("@mark\n", ""), "decorator changed"),
        (TEXT.replace("@mark\n", "@other\n").replace("b=1", "b=2"), "decorator changed"),
    ],
)
def test_status_of_a_symbol_that_is_still_there(new, status):
    old_file, new_file = (load_source(t.encode(), pin="acme", path="acme/m.py") for t in (TEXT, new))
    assert compared(find_symbol(old_file, "f"), find_symbol(new_file, "f")).status == status


@pytest.mark.parametrize(
    ("new", "status"),
    [
        (OLD.replace("def bake", "def roast"), "renamed: Oven.roast"),
        (OLD.replace("class Oven", "class Stove"), "renamed: Stove.bake"),
        ("def other():\n    pass\n", "removed"),
    ],
)
def test_status_of_a_symbol_that_is_gone(tmp_path, new, status):
    sources = releases(tmp_path, new=new)

    one = Comparer(
        SourceOptions(sources={"acme": sources["acme@1.0"]}, offline=True, cache_dir=tmp_path / "c", search_path=()),
        "acme",
        "1.0",
    )
    two = Comparer(
        SourceOptions(sources={"acme": sources["acme@2.0"]}, offline=True, cache_dir=tmp_path / "c", search_path=()),
        "acme",
        "1.0",
    )
    one._releases["2.0"] = two.release("2.0")
    assert one.drift("acme.oven:Oven.bake", "2.0").status == status
    assert one.drift("acme.oven:Oven.unknown", "2.0").status == "not at the base"


def test_differences_are_found_and_new_names_compare_without_their_module():
    found = {
        ("m:f", "2"): Drift("body changed"),
        ("m:g", "2"): Drift("moved+renamed: n:h"),
        ("m:k", "2"): Drift("removed"),
    }
    facts = {("m:f", "2"): "unchanged", ("m:g", "2"): "moved+renamed: h"}
    assert [(d.symbol, d.fact) for d in differences(found, facts)] == [("m:f", "unchanged"), ("m:k", "(no fact)")]
    assert normal("renamed: a.b:C.d") == "renamed: C.d"


def test_the_page_says_who_differs_and_what_became_of_each_entry():
    found = {("vllm.m:f", "2.0"): Drift("body changed"), ("vllm.m:g", "2.0"): Drift("moved: vllm.n:g")}
    entries = (
        EntryResult(
            "a.py::f",
            "copy",
            "m:f",
            "m:f",
            "target",
            "review",
            deltas=(DeltaResult("x", "review"), DeltaResult("y", "clean")),
        ),
        EntryResult("a.py::g", "copy", "m:g", "m:g", "target", "clean"),
    )
    text = page(
        found,
        {("vllm.m:f", "2.0"): "unchanged", ("vllm.m:g", "2.0"): "moved: vllm.n:g"},
        [UpgradeResult("vllm", "vllm", "1.0", "2.0", entries)],
    )
    assert "1 of 2 statuses differ" in text
    assert "| `vllm.m:f` | 2.0 | unchanged | body changed |" in text
    assert "| `a.py::f` | review (1 of 2) |" in text
    assert "| `a.py::g` | clean |" in text
    assert "`vllm.m:g` moved to `vllm.n:g`" in text
    assert "tools/drift --write" in text


def test_facts_cover_the_list_of_symbols():
    facts, names = read_facts(), read_symbols()
    assert len(names) == 108
    assert set(facts) == {(name, version) for name in names for version in RELEASES}


@pytest.mark.upstream
def test_a_sample_of_the_facts_is_reproduced():
    facts = read_facts()
    gone = [key for key, status in sorted(facts.items()) if status.startswith(("re", "moved"))]
    chosen = random.Random(7).sample(sorted(facts), 60) + random.Random(7).sample(gone, 4)
    comparer = Comparer()
    found = {key: comparer.drift(*key) for key in chosen}
    assert [(d.symbol, d.version, d.fact, d.found) for d in differences(found, facts)] == []


def test_the_page_of_upgrades_has_a_part_that_is_written(tmp_path):
    def result(version, status, **more):
        entries = (
            EntryResult(
                "set/a.py::f", "copy", "m:f", "m:f", "target", status, upstream_changed="acme.m:f changed | text +1/-0"
            ),
            EntryResult("set/b.py::g", "copy", "m:g", "m:g", "target", "unchanged"),
        )
        return UpgradeResult("vllm", "vllm", "1.0", version, entries, **more)

    retired = UpgradeResult("vllm", "vllm", "1.0", "4.0", (
        EntryResult("set/a.py::f", "copy", "m:f", "m:f", "target", "retire", upstream_changed="has it now: the target defines m:o"),
        EntryResult("set/b.py::g", "copy", "m:g", "m:g", "target", "unchanged"),
    ), stays=("set/b.py::g: it has no removal condition. No GPU.",))  # fmt: skip
    path = tmp_path / "page.md"
    path.write_text(f"above\n{guide.BEGIN}old\n{guide.END}below\n")
    guide.write([result("2.0", "clean"), result("3.0", "review"), retired], path)
    text = path.read_text()
    assert text.startswith(f"above\n{guide.BEGIN}")
    assert text.endswith(f"{guide.END}below\n")
    assert "old" not in text
    assert "| 2.0 | 1 | 1 |  |  |  |  | writes all 2 modules |" in text
    assert "| 3.0 | 1 |  | 1 |  |  |  | writes nothing, exit code 1: 1 entry needs a person |" in text
    assert "| 4.0 | 1 |  |  |  |  | 1 | writes `b.py` |" in text
    assert "| entry | 3.0 |" in text
    assert "| `a.py::f` | **review**: f changed \\| text +1/-0 |" in text
    assert "At 4.0 the backport retires (1 entry: the target defines m:o)" in text
    assert "* `b.py::g`: it has no removal condition. No GPU." in text
    before = text
    guide.write([result("2.0", "clean"), result("3.0", "review"), retired], path)
    assert path.read_text() == before
