"""What is wrong between files: pins, modules, targets, parts; and that every error of every file comes in one run."""

from __future__ import annotations

import os

import pytest

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.project import load_project
from tests.manifest.samples import marked

PINS = """\
schema: 1
pins:
  acme: {distribution: acme, version: "1.4.0"}
  next: {distribution: acme, version: "2.0.0", role: donor}
"""


def manifest(module: str, *entries: str, top: str = "pin: acme") -> str:
    return f"schema: 1\nmodule: {module}\nsummary: s\n{top}\nentries:\n" + "".join(f"  - {e}\n" for e in entries)


def load(folder, files):
    for name, text in {"pyproject.toml": "[tool.afd-patchkit]\n", "manifests/pins.yaml": PINS, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_manifests(load_project(folder))


def refused(folder, files):
    with pytest.raises(ManifestError) as caught:
        load(folder, files)
    return caught.value.findings


def step(symbol: str = "a:f", more: str = "") -> str:
    return f"{{symbol: {symbol}, reason: r{', ' + more if more else ''}}}"


def test_a_good_project(tmp_path):
    loaded = load(
        tmp_path,
        {
            "manifests/b.yaml": manifest("x/b.py", step("a:g", "depends_on: ['x/a.py::f', 'x/a.py::C.h']")),
            "manifests/a.yaml": manifest(
                "x/a.py",
                step(),
                f"class: {{name: C, members: [{step('a:D.h')}]}}",
                "{kind: owned, part: parts/p.py, reason: r}",
            ),
            "manifests/parts/p.py": "def own(): ...\n",
            "manifests/donor.yaml": manifest(
                "d.py", step("a:f", "kind: backport, pin: next, remove_when: [{defines: 'a:f'}]")
            ),
        },
    )
    assert [m.module for m in loaded.manifests] == ["x/a.py", "x/b.py", "d.py"]
    assert [m.path for m in loaded.manifests] == ["manifests/a.yaml", "manifests/b.yaml", "manifests/donor.yaml"]
    assert list(loaded.pins.pins) == ["acme", "next"]


# files with ¶ where findings are expected, and their codes in the order of files and places
CASES = {
    "duplicate target over manifests": (
        {"a.yaml": manifest("a.py", step()), "b.yaml": manifest("b.py", "{symbol: ¶a:f, reason: r, name: g}")},
        ["PK015"],
    ),
    "duplicate target, one of them in a class": (
        {"a.yaml": manifest("a.py", step("a:C.f"), "class: {name: C, members: [{symbol: ¶a:C.f, reason: r}]}")},
        ["PK015"],
    ),
    "duplicate target, shared by one side only": (
        {"a.yaml": manifest("a.py", step("a:f", "share: true")), "b.yaml": manifest("b.py", "{symbol: ¶a:f, reason: r}")},
        ["PK015"],
    ),
    "module twice": ({"a.yaml": manifest("a.py", step()), "b.yaml": "¶" + manifest("a.py", step("a:g"))}, ["PK015"]),
    "module twice for systems that fold case": (
        {"a.yaml": manifest("a.py", step()), "b.yaml": "¶" + manifest("A.py", step("a:g"))},
        ["PK015"],
    ),
    "module and package": (
        {"a.yaml": manifest("a.py", step()), "b.yaml": "¶" + manifest("a/b.py", step("a:g"))},
        ["PK015"],
    ),
    "name twice": ({"a.yaml": manifest("a.py", step("a:f"), "¶" + step("b:f"))}, ["PK015"]),
    "name of an entry and of a class": (
        {"a.yaml": manifest("a.py", step("a:C"), f"class: ¶{{name: C, members: [{step()}]}}")},
        ["PK015"],
    ),
    "name of an entry and in a part": (
        {
            "a.yaml": manifest("a.py", step("a:own"), "¶{kind: owned, part: p.py, reason: r}"),
            "p.py": "own = 1\n",
        },
        ["PK015"],
    ),
    "part taken twice": (
        {
            "a.yaml": manifest("a.py", "{kind: owned, part: p.py, reason: r}", "¶{kind: owned, part: p.py, reason: r}"),
            "p.py": "own: int = 1\n",
        },
        ["PK015"],
    ),
    "part that is missing": ({"a.yaml": manifest("a.py", "¶{kind: owned, part: p.py, reason: r}")}, ["PK012"]),
    "part that is a folder": (
        {"a.yaml": manifest("a.py", "¶{kind: owned, part: p.py, reason: r}"), "p.py/x.txt": "x"},
        ["PK012"],
    ),
    "part that does not parse": (
        {"a.yaml": manifest("a.py", "{kind: owned, part: p.py, reason: r}"), "p.py": "x = 1\ny = = 2\n".replace("= = 2", "= ¶= 2")},
        ["PK012"],
    ),
    "part without the name": (
        {"a.yaml": manifest("a.py", "¶{kind: owned, part: p.py, reason: r, name: owm}"), "p.py": "class own: ...\n"},
        ["PK012"],
    ),
    "unknown pin of the manifest": ({"a.yaml": manifest("a.py", "¶" + step(), top="pin: acmee")}, ["PK016"]),
    "unknown pin of an entry": ({"a.yaml": manifest("a.py", "¶" + step("a:f", "pin: nxt"))}, ["PK016"]),
    "no pin": ({"a.yaml": manifest("a.py", "¶" + step(), top="imports: []")}, ["PK016"]),
    "unknown pin of a take": (
        {
            "a.yaml": manifest(
                "a.py", step("a:f", "deltas: [{name: d, at: end, insert: {take: ¶{pin: nxt, symbol: 'a:f'}}}]")
            )
        },
        ["PK016"],
    ),
    "copy from a donor": ({"a.yaml": manifest("a.py", "¶" + step("a:f", "pin: next"))}, ["PK016"]),
    "delegate to a donor": (
        {"a.yaml": manifest("a.py", "¶" + step("a:f", "pin: next, kind: delegate, via: original, body: 'pass'"))},
        ["PK016"],
    ),
    "backport from a target": (
        {"a.yaml": manifest("a.py", "¶" + step("a:f", "kind: backport, remove_when: [{defines: 'a:f'}]"))},
        ["PK016"],
    ),
    "depends_on of an unknown entry": (
        {"a.yaml": manifest("a.py", step()), "b.yaml": manifest("b.py", "¶" + step("a:g", "depends_on: ['a.py::ff']"))},
        ["PK019"],
    ),
    "errors of all files": (
        {
            "a.yaml": manifest("a.py", step("a:f", "¶rason: x")),
            "b.yaml": "a: ¶@\n",
            "c.yaml": manifest("c.py", "{symbol: a:g, reason: r, kind: ¶copi}"),
            "d.yaml": manifest("d.py", "{symbol: ¶a:f, reason: r, name: g}"),
            "e.yaml": "",
        },
        ["PK002", "PK001", "PK004", "PK015", "PK001"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_says_what_and_where(tmp_path, case):
    files, codes = CASES[case]
    plain, places = {}, set()
    for name, text in files.items():
        clean, marks = marked(text)
        plain[f"manifests/{name}"] = clean
        places |= {f"manifests/{name}:{line}:{column}" for line, column in marks}
        if not text:
            places.add(f"manifests/{name}")
    found = refused(tmp_path, plain)
    assert [f.code for f in found] == codes, found
    assert {str(f.manifest) for f in found} == places


def test_two_names_in_one_module_or_class_need_no_word(tmp_path):
    both = "entries:\n  - {symbol: 'a:f', reason: r}\n  - {symbol: 'a:f', name: g, reason: r}\n"
    members = "entries:\n  - class: {name: K, members: [{symbol: 'a:C.m', reason: r}, {symbol: 'a:C.m', name: n, reason: r}]}\n"
    head = "schema: 1\nmodule: {}.py\nsummary: S.\npin: acme\n"
    files = {"manifests/a.yaml": head.format("a") + both, "manifests/b.yaml": head.format("b") + members}
    assert len(load(tmp_path, files).manifests) == 2


def test_two_that_share_a_symbol_on_purpose(tmp_path):
    files = {f"manifests/{name}.yaml": manifest(f"{name}.py", step("a:f", "share: true")) for name in "ab"}
    assert len(load(tmp_path, files).manifests) == 2


def test_two_definitions_of_one_name_are_no_duplicates(tmp_path):
    entries = [step("a:f", "branch: 1"), step("a:f", "branch: 2, name: g")]
    assert len(load(tmp_path, {"manifests/a.yaml": manifest("a.py", *entries)}).manifests) == 1


def test_several_entries_may_name_definitions_of_one_part(tmp_path):
    entries = [f"{{kind: owned, part: p.py, reason: r, name: {name}}}" for name in ("A", "b")]
    files = {"manifests/a.yaml": manifest("a.py", *entries), "manifests/p.py": "class A: ...\ndef b(): ...\n"}
    assert len(load(tmp_path, files).manifests) == 1


def test_pins_are_wanted_and_help_is_given(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.afd-patchkit]\n")
    with pytest.raises(ManifestError) as caught:
        load_manifests(load_project(tmp_path))
    (finding,) = caught.value.findings
    assert (finding.code, str(finding.manifest)) == ("PK024", "manifests/pins.yaml")
    assert "afd-patchkit init" in finding.help


def test_broken_pins_do_not_blame_the_entries(tmp_path):
    found = refused(
        tmp_path, {"manifests/pins.yaml": "schema: 1\npins: []\n", "manifests/a.yaml": manifest("a.py", step())}
    )
    assert [(f.code, str(f.manifest)) for f in found] == [("PK004", "manifests/pins.yaml:2:7")]


def test_what_a_broken_manifest_lacks_is_not_missed(tmp_path):
    files = {
        "manifests/a.yaml": manifest("a.py", step("a:f", "kind: copi"), step("a:h")),
        "manifests/b.yaml": manifest("b.py", step("a:g", "depends_on: ['a.py::f']")),
    }
    assert [f.code for f in refused(tmp_path, files)] == ["PK004"]


def test_folders_where_files_should_be(tmp_path):
    (tmp_path / "manifests" / "pins.yaml").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.afd-patchkit]\n")
    with pytest.raises(ManifestError) as caught:
        load_manifests(load_project(tmp_path))
    assert [(f.code, str(f.manifest)) for f in caught.value.findings] == [("PK024", "manifests/pins.yaml")]


def test_a_part_may_not_be_a_link_out(tmp_path):
    files = {"root/manifests/a.yaml": "", "p.py": "x = 1\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    os.symlink(tmp_path / "p.py", tmp_path / "root" / "manifests" / "p.py")
    found = refused(tmp_path / "root", {"manifests/a.yaml": manifest("a.py", "{kind: owned, part: p.py, reason: r}")})
    assert {(f.code, str(f.manifest)) for f in found} == {("PK023", "manifests/p.py")}


def test_names_near_what_was_written(tmp_path):
    (finding,) = refused(tmp_path, {"manifests/a.yaml": manifest("a.py", step("a:f", "pin: nxt"))})
    assert finding.help == "Did you mean `next`?"
    assert finding.entry == "a.py::f"


def test_the_order_of_findings_does_not_depend_on_the_file_system(tmp_path, monkeypatch):
    files, _ = CASES["errors of all files"]
    plain = {f"manifests/{name}": marked(text)[0] for name, text in files.items()}
    once = refused(tmp_path, plain)
    walk = os.walk

    def backwards(*args, **kwargs):
        for folder, folders, names in walk(*args, **kwargs):
            folders.reverse()
            yield folder, folders, names[::-1]

    monkeypatch.setattr(os, "walk", backwards)
    assert refused(tmp_path, plain) == once
