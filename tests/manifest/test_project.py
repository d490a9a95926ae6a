"""Settings: found, checked, and cheap to read."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.project import load_project

SECTION = "[tool.afd-patchkit]\n"


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def refused(start):
    with pytest.raises(ManifestError) as caught:
        load_project(start)
    return [(f.code, str(f.manifest)) for f in caught.value.findings]


def test_defaults(tmp_path):
    write(tmp_path, {"pyproject.toml": SECTION})
    project = load_project(tmp_path)
    assert (project.root, project.settings) == (tmp_path, tmp_path / "pyproject.toml")
    assert project.manifests == tmp_path / "manifests"
    assert project.pins == tmp_path / "manifests" / "pins.yaml"
    assert project.generated == tmp_path / "generated"
    assert project.lock == tmp_path / "generated" / "patchkit.lock"
    assert (project.package, project.track, project.marker) == ("afd_backports", False, "### PATCH")


def test_every_setting(tmp_path):
    text = 'manifests = "a/b"\ngenerated = "c"\npackage = "d"\nlock = "locks/e"\ntrack = true\nmarker = "== P"\n'
    write(tmp_path, {"afd-patchkit.toml": text})
    project = load_project(tmp_path)
    assert project.manifests == tmp_path / "a" / "b"
    assert project.lock == tmp_path / "c" / "locks" / "e"
    assert (project.package, project.track, project.marker) == ("d", True, "== P")


def test_is_found_from_below_and_from_a_file(tmp_path):
    write(tmp_path, {"pyproject.toml": SECTION, "a/pyproject.toml": "[project]\n", "a/b/x.yaml": ""})
    assert load_project(tmp_path / "a" / "b").root == tmp_path
    assert load_project(tmp_path / "a" / "b" / "x.yaml").root == tmp_path


def test_the_current_folder_is_the_default(tmp_path, monkeypatch):
    write(tmp_path, {"pyproject.toml": SECTION})
    monkeypatch.chdir(tmp_path)
    assert load_project().root == tmp_path


def test_no_project(tmp_path):
    assert [code for code, _ in refused(tmp_path)] == ["PK021"]


WRONG = [
    ('generatd = "x"', 3, 1),
    ('  "generatd" = "x"', 3, 3),
    ("track = 1", 3, 1),
    ("package = 1", 3, 1),
    ('package = "a..b"', 3, 1),
    ('package = "a-b"', 3, 1),
    ('manifests = "/m"', 3, 1),
    ('manifests = "../m"', 3, 1),
    ('manifests = "a\\\\b"', 3, 1),
    ('manifests = "C:/m"', 3, 1),
    ('manifests = ""', 3, 1),
    ('lock = "../patchkit.lock"', 3, 1),
    ('lock = "afd_backports/lock"', 3, 1),
    ('generated = "manifests/generated"', 3, 1),
    ('generated = "manifests"', 3, 1),
    ('marker = ""', 3, 1),
    ('marker = " x"', 3, 1),
    ('marker = "a\\nb"', 3, 1),
    ("[tool.afd-patchkit.more]", 2, 1),
]


@pytest.mark.parametrize(("line", "row", "column"), WRONG)
def test_wrong_settings_are_placed(tmp_path, line, row, column):
    write(tmp_path, {"pyproject.toml": f"# first\n{SECTION}{line}\n"})
    assert refused(tmp_path) == [("PK022", f"pyproject.toml:{row}:{column}")]


def test_all_wrong_settings_come_together(tmp_path):
    write(tmp_path, {"afd-patchkit.toml": 'track = 1\nmrker = "x"\nlock = "/x"\n'})
    assert [place for _, place in refused(tmp_path)] == [f"afd-patchkit.toml:{n}:1" for n in (1, 2, 3)]


def test_toml_that_is_none(tmp_path):
    write(tmp_path, {"pyproject.toml": SECTION + "track = tru\n"})
    ((code, place),) = refused(tmp_path)
    assert code == "PK022"
    assert place.startswith(f"{tmp_path / 'pyproject.toml'}:2:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".".join(["a"] * 100_000) + " = 1\n", "a key of more than 100 parts"),
        ("x = 1\n" + "\"a\" . 'b' ." * 60_000 + "c = 1\n", "a key of more than 100 parts"),
        (f"[{'.'.join(['a'] * 100_000)}]\n", "a key of more than 100 parts"),
        ("".join(f"k{n}.a = 1\n" for n in range(20_000)), "19980 more unknown settings"),
        (f"a = {'9' * 5000}\n", "not TOML: "),
        ("a = 2026-02-31\n", "not TOML: "),
        ("a = " + "[" * 100_000 + "]" * 100_000, "nested too deeply"),
    ],
)
def test_settings_that_a_parser_cannot_bear(tmp_path, text, message):
    write(tmp_path, {"afd-patchkit.toml": text})
    with pytest.raises(ManifestError) as caught:
        load_project(tmp_path)
    assert message in caught.value.findings[-1].message
    assert len(caught.value.findings) <= 21


def test_settings_that_are_absurdly_long(tmp_path, monkeypatch):
    write(tmp_path, {"afd-patchkit.toml": "# long\n" * 100})
    monkeypatch.setattr("afd_patchkit.project.LONGEST_INPUT", 99)
    assert refused(tmp_path) == [("PK024", str(tmp_path / "afd-patchkit.toml"))]


def test_settings_that_are_no_utf8(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes(b"# \xff\n")
    assert [code for code, _ in refused(tmp_path)] == ["PK022"]


def test_a_section_that_is_no_table(tmp_path):
    write(tmp_path, {"pyproject.toml": "[tool]\nafd-patchkit = 1\n"})
    assert [code for code, _ in refused(tmp_path)] == ["PK022"]


def test_settings_in_two_files(tmp_path):
    write(tmp_path, {"pyproject.toml": SECTION, "afd-patchkit.toml": ""})
    assert [code for code, _ in refused(tmp_path)] == ["PK022"]


TREE = {
    "pyproject.toml": SECTION,
    "manifests/pins.yaml": "",
    "manifests/b.yaml": "",
    "manifests/a/z.yml": "",
    "manifests/a/pins.yaml": "",
    "manifests/a/parts/p.py": "",
    "manifests/a/notes.txt": "",
    "manifests/.hidden.yaml": "",
    "manifests/.git/x.yaml": "",
    "manifests/a/__pycache__/p.py": "",
}


def test_files_in_the_order_of_their_paths(tmp_path):
    write(tmp_path, TREE)
    project = load_project(tmp_path)
    assert [project.shown(p) for p in project.manifest_files()] == [
        "manifests/a/pins.yaml",
        "manifests/a/z.yml",
        "manifests/b.yaml",
    ]
    assert [project.shown(p) for p in project.input_files()] == [
        "pyproject.toml",
        "manifests/a/parts/p.py",
        "manifests/a/pins.yaml",
        "manifests/a/z.yml",
        "manifests/b.yaml",
        "manifests/pins.yaml",
    ]


def test_no_manifest_folder_is_no_manifest(tmp_path):
    write(tmp_path, {"pyproject.toml": SECTION})
    assert load_project(tmp_path).manifest_files() == []


def test_links_out_of_the_project_are_refused(tmp_path):
    root = tmp_path / "root"
    write(tmp_path, {f"root/{name}": text for name, text in TREE.items()} | {"x.yaml": "", "d/y.yaml": ""})
    os.symlink(tmp_path / "x.yaml", root / "manifests" / "x.yaml")
    os.symlink(tmp_path / "d", root / "manifests" / "d")
    os.symlink(root / "manifests" / "loop.yaml", root / "manifests" / "loop.yaml")
    os.symlink(root / "manifests" / "b.yaml", root / "manifests" / "inside.yaml")
    project = load_project(root)
    for listed in (project.manifest_files, project.input_files):
        with pytest.raises(ManifestError) as caught:
            listed()
        found = [(f.code, str(f.manifest)) for f in caught.value.findings]
        assert ("PK023", "manifests/d") in found
        assert ("PK023", "manifests/x.yaml") in found
        assert ("PK023", "manifests/inside.yaml") not in found


@pytest.mark.parametrize("name", ["manifests", "generated"])
def test_folders_that_lead_out_are_refused(tmp_path, name):
    write(tmp_path, {"root/pyproject.toml": SECTION, "other/x": ""})
    os.symlink(tmp_path / "other", tmp_path / "root" / name)
    assert ("PK023", name) in refused(tmp_path / "root")


def test_knows_the_project_without_heavy_imports(tmp_path):
    write(tmp_path, TREE)
    code = (
        "import sys, pathlib\nfrom afd_patchkit.project import load_project\n"
        "load_project(pathlib.Path(sys.argv[1])).input_files()\n"
        "print(sorted({'pydantic', 'yaml', 'libcst', 'packaging', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
