"""Licence and notice files of a distribution: found in whatever it comes as, named alike, verified, kept."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.upstream.licences import in_tree, in_wheel, is_sound
from tests.invented import write_tree
from tests.upstream.conftest import Open, code
from tests.upstream.packages import FILES, make_sdist, make_tar, make_wheel, record_row
from tests.upstream.server import Index
from tests.upstream.test_git import Origin

INFO = "acme-1.0.dist-info"
TEXTS = {"LICENSE": "Free.\r\n", "NOTICE.md": "By Ada.\n", "LICENSES/MIT.txt": "MIT\n"}
OTHERS = {"README.md": "no\n", "license.py": "X = 1\n", "docs/LICENSE": "no\n", "licensed.txt": "no\n"}
WHEEL = FILES | {f"{INFO}/licenses/{name}": text for name, text in TEXTS.items()}
SDIST_FILE, WHEEL_FILE = "acme-1.0.tar.gz", "acme-1.0-py3-none-any.whl"


def content(texts: dict[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in texts.items()}


def sdist() -> bytes:
    files = {f"acme-1.0/{path}": text.encode() for path, text in {**FILES, **TEXTS, **OTHERS}.items()}
    return make_tar(files)


@pytest.mark.parametrize("padding", [True, False], ids=["by range", "whole"])
def test_a_wheel_and_the_cache(index: Index, open_acme: Open, padding: bool) -> None:
    index.add(WHEEL_FILE, make_wheel(WHEEL, padding=padding))
    upstream = open_acme()
    assert upstream.licence_files(sorted(upstream.licences())) == content(TEXTS)
    assert not any(name in upstream.members() for name in TEXTS)
    seen = len(index.seen)
    again = open_acme(locked_artifact=upstream.artifact, offline=True)
    assert again.licence_files(sorted(TEXTS)) == content(TEXTS)
    assert len(index.seen) == seen
    if padding:
        assert upstream.stats.bytes < len(make_wheel(WHEEL)) // 4


def test_a_wheel_of_old(index: Index, open_acme: Open) -> None:
    index.add(WHEEL_FILE, make_wheel(FILES | {f"{INFO}/LICENSE": "Free.\n", f"{INFO}/top_level.txt": "acme\n"}))
    upstream = open_acme()
    assert upstream.licence_files(upstream.licences()) == {"LICENSE": b"Free.\n"}


def test_an_sdist(index: Index, open_acme: Open) -> None:
    index.add(SDIST_FILE, sdist())
    upstream = open_acme()
    assert upstream.licence_files(upstream.licences()) == content(TEXTS)
    again = open_acme(locked_artifact=upstream.artifact, offline=True)
    assert again.licence_files(sorted(TEXTS)) == content(TEXTS)


def test_without_any(index: Index, open_acme: Open) -> None:
    index.add(SDIST_FILE, make_sdist())
    upstream = open_acme()
    assert upstream.licence_files(upstream.licences()) == {}
    with pytest.raises(UpstreamError) as error:
        upstream.licence_files(["LICENSE"])
    assert code(error) == "PK405"


@pytest.mark.parametrize("kind", ["tree", "wheel", "sdist", "unpacked wheel"])
def test_a_source_on_this_machine(open_acme: Open, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "source"
    if kind == "tree":
        write_tree(place, {**FILES, **TEXTS, **OTHERS})
    elif kind == "unpacked wheel":
        write_tree(place, {**WHEEL, "LICENSE": "of another\n", "other-1.0.dist-info/licenses/LICENSE": "no\n"})
    else:
        place = tmp_path / (WHEEL_FILE if kind == "wheel" else SDIST_FILE)
        place.write_bytes(make_wheel(WHEEL) if kind == "wheel" else sdist())
    upstream = open_acme(sources={"acme": place})
    assert upstream.licence_files(sorted(upstream.licences())) == content(TEXTS)
    assert set(upstream.members()) == set(FILES)


def test_a_link_out_of_a_tree(open_acme: Open, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "source", FILES)
    (tmp_path / "secret").write_text("secret")
    (tree / "LICENSE").symlink_to(tmp_path / "secret")
    with pytest.raises(UpstreamError) as error:
        open_acme(sources={"acme": tree}).licence_files(["LICENSE"])
    assert code(error) == "PK407"


def test_an_installed_distribution(open_acme: Open, tmp_path: Path) -> None:
    wheel = tmp_path / WHEEL_FILE
    wheel.write_bytes(make_wheel(WHEEL, padding=False))
    site = tmp_path / "site"
    shutil.unpack_archive(wheel, site, "zip")
    upstream = open_acme(search_path=(str(site),))
    assert upstream.origin == "installed"
    assert upstream.licence_files(sorted(upstream.licences())) == content(TEXTS)
    (site / INFO / "licenses/LICENSE").write_text("Not free.\n")
    with pytest.raises(UpstreamError) as error:
        open_acme(search_path=(str(site),)).licence_files(["LICENSE"])
    assert code(error) == "PK403"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_commit(open_acme: Open, tmp_path: Path) -> None:
    origin = Origin(tmp_path / "repository", below="python/")
    commit = origin.change({**TEXTS, "python/LICENSE": "Freer.\n", "other/LICENSE": "no\n"})
    subprocess.run(["git", "fetch", "-q", str(origin.work), "main:more"], cwd=origin.bare, check=True)
    pin = origin.pin(commit=commit, subdirectory="python")
    upstream = open_acme(git=pin)
    assert upstream.licence_files(sorted(upstream.licences())) == content(TEXTS | {"LICENSE": "Freer.\n"})
    assert set(upstream.members()) == set(FILES)
    assert open_acme(git=pin, offline=True).licence_files(["LICENSE"]) == {"LICENSE": b"Freer.\n"}


def test_a_licence_that_the_record_does_not_know(index: Index, open_acme: Open) -> None:
    name = f"{INFO}/licenses/LICENSE"
    index.add(WHEEL_FILE, make_wheel(WHEEL, rows={name: record_row(name, b"Other.\n")}))
    upstream = open_acme()
    with pytest.raises(UpstreamError) as error:
        upstream.licence_files(["LICENSE"])
    assert code(error) == "PK403"


ODD = ["CON", "a:b", "a\\b", "x\n", "a./b", " a", "a/../b", "/a", "a//b", "run.py", "x" * 300, "\udc80"]


@pytest.mark.parametrize("name", ODD)
def test_names_that_not_every_system_can_keep(name: str) -> None:
    assert not is_sound(name)
    if not name.endswith(".py"):
        with pytest.raises(UpstreamError) as error:
            in_wheel([f"{INFO}/licenses/{name}"], INFO, "w")
        assert code(error) == "PK407"


@pytest.mark.parametrize(
    "names", [["LICENSE", "license"], ["LICENSES/a", "licenses/A"], [f"LICENSE-{n}" for n in range(1001)]]
)
def test_names_that_are_one_on_some_systems_and_too_many(names: list[str]) -> None:
    with pytest.raises(UpstreamError) as error:
        in_tree(names, "tree")
    assert code(error) == "PK407"


def test_a_name_that_is_a_folder_of_another() -> None:
    with pytest.raises(UpstreamError) as error:
        in_wheel([f"{INFO}/licenses/{name}" for name in ("LICENSE/x", "license")], INFO, "w")
    assert code(error) == "PK407"
