"""`init`: what it writes loads, is valid for editors, and is never written over something."""

from __future__ import annotations

import json
import os
from importlib import metadata

import jsonschema
import pytest
import yaml

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.manifest.scaffold import scaffold
from afd_patchkit.project import load_project
from afd_patchkit.version import __version__


def everything(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_it_writes_loads(tmp_path):
    folder = tmp_path / "new" / "project"
    written = scaffold(folder)
    assert sorted(written) == sorted(p for p in folder.rglob("*") if p.is_file())
    loaded = load_manifests(load_project(folder))
    (manifest,) = loaded.manifests
    assert loaded.pins.pins["packaging"].version == metadata.version("packaging")
    assert [d.operation for d in manifest.entries[0].deltas] == ["expr"]


def test_editors_find_the_schema_and_agree(tmp_path):
    scaffold(tmp_path)
    files = [tmp_path / "manifests" / "pins.yaml", tmp_path / "manifests" / "starter" / "version.yaml"]
    for file in files:
        text = file.read_text(encoding="utf-8")
        schema = file.parent / text.split("\n")[0].removeprefix("# yaml-language-server: $schema=")
        jsonschema.validate(yaml.safe_load(text), json.loads(schema.read_text(encoding="utf-8")))


def test_generated_code_is_ignored(tmp_path):
    scaffold(tmp_path)
    project = load_project(tmp_path)
    assert f"/generated/{project.package}/" in (tmp_path / ".gitignore").read_text().split("\n")


def test_beside_a_pyproject_of_something_else(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (tmp_path / ".gitignore").write_text("mine\n")
    scaffold(tmp_path)
    assert load_project(tmp_path).settings.name == "afd-patchkit.toml"
    assert (tmp_path / "pyproject.toml").read_text() == '[project]\nname = "x"\n'
    rules = ["# built by `afd-patchkit regen`; lock and outlines are committed", "/generated/patched/", "/generated-*/"]
    assert (tmp_path / ".gitignore").read_text().splitlines() == ["mine", *rules]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("manifests/pins.yaml", "mine\n"),
        ("manifests/starter/version.yaml", ""),
        ("afd-patchkit.toml", ""),
        ("pyproject.toml", "[tool.afd-patchkit]\n"),
    ],
)
def test_never_overwrites(tmp_path, name, text):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    before = everything(tmp_path)
    with pytest.raises(ManifestError) as caught:
        scaffold(tmp_path)
    assert [(f.code, str(f.manifest)) for f in caught.value.findings] == [("PK025", (tmp_path / name).as_posix())]
    assert everything(tmp_path) == before


def test_does_not_write_through_a_dangling_link(tmp_path):
    (tmp_path / "manifests").mkdir()
    os.symlink(tmp_path / "elsewhere", tmp_path / "manifests" / "pins.yaml")
    with pytest.raises(ManifestError):
        scaffold(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_in_a_project_only_what_is_the_tool_s_is_brought_up_to_date(tmp_path):
    scaffold(tmp_path)
    good = everything(tmp_path)
    assert scaffold(tmp_path) == []
    schema, ignored = tmp_path / "manifests/pins.schema.json", tmp_path / ".gitignore"
    old = json.loads(schema.read_text()) | {"title": "old"}
    schema.write_text(json.dumps(old))
    ignored.write_text("mine")
    (tmp_path / "manifests/manifest.schema.json").write_text('{"mine": true}')
    (tmp_path / "manifests/starter/version.yaml").unlink()
    assert set(scaffold(tmp_path)) == {schema, ignored}
    assert schema.read_bytes() == good["manifests/pins.schema.json"]
    assert ignored.read_text().splitlines()[0] == "mine"
    assert (tmp_path / "manifests/manifest.schema.json").read_text() == '{"mine": true}'
    assert not (tmp_path / "manifests/starter/version.yaml").exists()


@pytest.mark.parametrize("name", ["manifests/pins.schema.json", ".gitignore"])
def test_a_project_s_links_are_not_written_through(tmp_path, name):
    scaffold(tmp_path / "project")
    path = tmp_path / "project" / name
    canary = tmp_path / "canary"
    canary.write_text(
        json.dumps(json.loads(path.read_text()) | {"title": "old"}) if name.endswith("json") else "mine\n"
    )
    path.unlink()
    path.symlink_to(canary)
    before = canary.read_bytes()
    assert scaffold(tmp_path / "project") == []
    assert canary.read_bytes() == before


@pytest.mark.parametrize("there", [False, True])
def test_workflows_name_this_version_and_the_project_s_pin(tmp_path, there):
    if there:
        scaffold(tmp_path)
        (tmp_path / ".pre-commit-config.yaml").write_text("mine\n")
    scaffold(tmp_path, ci=True)
    check = yaml.safe_load((tmp_path / ".github/workflows/afd-patchkit.yml").read_text())
    assert any(
        step.get("run", "").endswith(f'"afd-patchkit=={__version__}"') for step in check["jobs"]["check"]["steps"]
    )
    drift = yaml.safe_load((tmp_path / ".github/workflows/afd-patchkit-drift.yml").read_text())
    assert drift["jobs"]["drift"]["env"]["PIN"] == "packaging"
    config = (tmp_path / ".pre-commit-config.yaml").read_text()
    assert (config == "mine\n") if there else (f"afd-patchkit=={__version__}" in config)


def test_a_failure_leaves_nothing_behind(tmp_path):
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "starter").write_text("a file where a folder must be")
    before = everything(tmp_path)
    with pytest.raises(OSError):
        scaffold(tmp_path)
    assert everything(tmp_path) == before
