"""Explicit sources and installed distributions."""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.resolve import pin_report
from tests.upstream.conftest import Open, code, everything
from tests.upstream.packages import FILES, digest, make_sdist, make_wheel
from tests.upstream.server import Index

needs_pip = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not in this environment")
MODULES = {"acme", "acme._version", "acme.engine", "acme.deep", "acme.deep.runner"}


def write(root: Path, files: dict[str, str] = FILES, below: str = "") -> Path:
    for path, text in files.items():
        place = root / below / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
    return root


# ---- explicit sources -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "src"])
@pytest.mark.parametrize("offline", [False, True])
def test_tree(index: Index, open_acme: Open, tmp_path: Path, below: str, offline: bool) -> None:
    tree = write(tmp_path / "tree", below=below)
    write(tree, {"tests/test_x.py": "", "setup.py": "raise SystemExit\n", "docs/acme/no.py": ""})
    upstream = open_acme(sources={"acme": tree}, offline=offline)
    assert set(upstream.modules()) == MODULES
    source = upstream.read("acme.deep.runner")
    assert (source.path, source.raw_sha256) == ("acme/deep/runner.py", digest(FILES["acme/deep/runner.py"]))
    assert (upstream.origin, upstream.artifact) == ("path", Artifact("path", tree.as_posix()))
    assert not index.seen
    assert pin_report(upstream).bytes == 0


def test_package_folder_itself(open_acme: Open, tmp_path: Path) -> None:
    tree = write(tmp_path / "tree")
    assert set(open_acme(sources={"acme": tree / "acme"}).modules()) == MODULES


def test_single_module_and_named_packages(open_acme: Open, tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"acme.py": "A = 1\n"})
    assert set(open_acme(sources={"acme": tree}).modules()) == {"acme"}
    tree = write(
        tmp_path / "other", {"src/one/two/__init__.py": "", "src/one/two/x.py": "X = 1\n", "three/__init__.py": ""}
    )
    upstream = open_acme(sources={"acme": tree}, packages=("one.two", "three"))
    assert set(upstream.modules()) == {"one.two", "one.two.x", "three"}
    assert upstream.read("one.two.x").text == "X = 1\n"


def test_tree_without_the_package(open_acme: Open, tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"other/__init__.py": ""})
    with pytest.raises(UpstreamError, match="no package acme") as error:
        open_acme(sources={"acme": tree})
    assert code(error) == "PK402"
    assert "other" in everything(error)


@pytest.mark.parametrize(
    ("version", "fits"), [("1.0", True), ("1.0+local.build", True), ("1.1", False), ("1.0rc1", False)]
)
def test_unpacked_sdist_says_its_version(open_acme: Open, tmp_path: Path, version: str, fits: bool) -> None:
    tree = write(tmp_path / "tree")
    (tree / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: Acme\nVersion: {version}\n\nVersion: 9\n")
    if fits:
        assert set(open_acme(sources={"acme": tree}).modules()) == MODULES
    else:
        with pytest.raises(UpstreamError, match="is pinned") as error:
            open_acme(sources={"acme": tree})
        assert code(error) == "PK402"


def test_tree_differs_from_the_lock(open_acme: Open, tmp_path: Path) -> None:
    tree = write(tmp_path / "tree")
    locked = {path: digest(text) for path, text in FILES.items()}
    upstream = open_acme(sources={"acme": tree}, locked=locked)
    (tree / "acme/engine.py").write_text("edited = True\n")
    assert upstream.read("acme").text == FILES["acme/__init__.py"]
    with pytest.raises(UpstreamError, match="not the locked file") as error:
        upstream.read("acme.engine")
    assert code(error) == "PK402"
    assert upstream.read_bytes("acme/deep/runner.py") == FILES["acme/deep/runner.py"].encode()


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_links_in_a_tree(open_acme: Open, tmp_path: Path) -> None:
    tree = write(tmp_path / "tree")
    (tmp_path / "secret.py").write_text("S = 1\n")
    (tree / "acme/out.py").symlink_to(tmp_path / "secret.py")
    (tree / "acme/inside.py").symlink_to("engine.py")
    (tree / "acme/dangling.py").symlink_to("nothing.py")
    (tree / "acme/folder").symlink_to(tmp_path)
    upstream = open_acme(sources={"acme": tree})
    assert "acme.folder.secret" not in upstream.modules()
    assert upstream.read("acme.inside").text == FILES["acme/engine.py"]
    with pytest.raises(UpstreamError, match="link out of the tree") as error:
        upstream.read("acme.out")
    assert code(error) == "PK407"
    with pytest.raises(UpstreamError, match="cannot be read") as error:
        upstream.read("acme.dangling")
    assert code(error) == "PK409"


@pytest.mark.parametrize(
    ("filename", "data"),
    [
        ("acme-1.0-py3-none-any.whl", make_wheel()),
        ("acme-1.0.tar.gz", make_sdist()),
        ("renamed.tar.gz", make_sdist(below="src/")),
    ],
)
def test_archive(index: Index, open_acme: Open, tmp_path: Path, filename: str, data: bytes) -> None:
    path = tmp_path / filename
    path.write_bytes(data)
    upstream = open_acme(sources={"acme": path})
    assert set(upstream.modules()) == MODULES
    assert upstream.read("acme.engine").raw_sha256 == digest(FILES["acme/engine.py"])
    kind = "wheel" if filename.endswith("whl") else "sdist"
    assert (upstream.origin, upstream.artifact) == ("path", Artifact(kind, filename, digest(data)))
    assert not index.seen
    with pytest.raises(UpstreamError, match="locked artifact") as error:
        open_acme(sources={"acme": path}, locked_artifact=Artifact(kind, filename, "0" * 64))
    assert code(error) == "PK402"
    with pytest.raises(UpstreamError, match="is pinned") as error:
        open_acme(sources={"acme": path}, version="1.1")
    assert code(error) == "PK402"


@pytest.mark.parametrize("name", ["missing", "acme.txt", "empty.whl", "empty.tar.gz", "empty.zip"])
def test_useless_sources_are_not_replaced(index: Index, open_acme: Open, tmp_path: Path, name: str) -> None:
    index.add("acme-1.0-py3-none-any.whl", make_wheel())
    if name != "missing":
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(UpstreamError) as error:
        open_acme(sources={"acme": tmp_path / name})
    assert code(error) == ("PK407" if name.startswith("empty") else "PK409")
    assert not index.seen


# ---- installed distributions ----------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Callable[..., Path]:
    """Install a pure wheel into a folder: its members as they are."""

    def install(data: bytes, *, pip: bool = False) -> Path:
        target = tmp_path / "site"
        if not pip:
            zipfile.ZipFile(io.BytesIO(data)).extractall(target)
            return target
        wheel = tmp_path / "acme-1.0-py3-none-any.whl"
        wheel.write_bytes(data)
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-index",
            "--no-deps",
            "--target",
            str(target),
            str(wheel),
        ]
        subprocess.run([*command, "--disable-pip-version-check"], check=True, capture_output=True, timeout=600)
        return target

    return install


@pytest.mark.parametrize("pip", [False, pytest.param(True, marks=needs_pip)])
def test_installed(index: Index, open_acme: Open, site: Callable[..., Path], pip: bool) -> None:
    files = {**FILES, "acme/boom.py": "raise SystemExit('imported')\n"}
    target = site(make_wheel(files, padding=False), pip=pip)
    upstream = open_acme(search_path=(str(target),))
    assert upstream.origin == "installed"
    assert upstream.artifact == Artifact("installed", "acme-1.0")
    assert set(upstream.modules()) == MODULES | {"acme.boom"}
    assert upstream.read("acme.boom").raw_sha256 == digest(files["acme/boom.py"])
    assert "acme" not in sys.modules
    assert not index.seen


def test_installed_and_edited(open_acme: Open, site: Callable[..., Path]) -> None:
    target = site(make_wheel(padding=False))
    (target / "acme/engine.py").write_text("edited = True\n")
    (target / "acme/deep/runner.py").unlink()
    upstream = open_acme(search_path=(str(target),))
    assert upstream.read("acme").text == FILES["acme/__init__.py"]
    for module, word in (("acme.engine", "not the file that was installed"), ("acme.deep.runner", "cannot be read")):
        with pytest.raises(UpstreamError, match=word) as error:
            upstream.read(module)
        assert code(error) == "PK403"


@pytest.mark.parametrize(
    ("installed", "pinned", "used"),
    [
        ("1.0", "1.0", True),
        ("1.0", "1", True),
        ("1.0+empty", "1.0", False),
        ("1.0+empty", "1.0+empty", True),
        ("1.0", "1.0+empty", False),
        ("1.0.post1", "1.0", False),
        ("1.0rc1", "1.0", False),
        ("1.0.dev5+gabc", "1.0", False),
        ("1!1.0", "1.0", False),
    ],
)
def test_exactly_the_pinned_version(
    index: Index, open_acme: Open, site: Callable[..., Path], installed: str, pinned: str, used: bool
) -> None:
    target = site(make_wheel(version=installed, padding=False))
    if used:
        assert open_acme(search_path=(str(target),), version=pinned, offline=True).origin == "installed"
    else:
        with pytest.raises(UpstreamError, match="PK401") as error:
            open_acme(search_path=(str(target),), version=pinned, offline=True)
        assert f"version {installed} is installed" in everything(error)


def test_installed_stands_for_the_locked_artifact_only_when_digests_agree(
    index: Index, open_acme: Open, site: Callable[..., Path]
) -> None:
    data = make_wheel(padding=False)
    target = site(data)
    index.add("acme-1.0-py3-none-any.whl", data)
    artifact = Artifact("wheel", "acme-1.0-py3-none-any.whl", digest(data))
    good = {"acme/engine.py": digest(FILES["acme/engine.py"])}
    search = (str(target),)
    upstream = open_acme(search_path=search, locked=good, locked_artifact=artifact)
    assert (upstream.origin, upstream.artifact) == ("installed", artifact)
    assert not index.seen
    for locked in ({}, {**good, "acme/deep/runner.py": "0" * 64}, {"acme/gone.py": "0" * 64}):
        assert open_acme(search_path=search, locked=locked, locked_artifact=artifact).origin in {"wheel", "cache"}


def test_editable_install_is_not_used(open_acme: Open, site: Callable[..., Path]) -> None:
    target = site(make_wheel({"__editable___acme.py": "", "acme.pth": "/somewhere\n"}, padding=False))
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(search_path=(str(target),), offline=True)
    assert "editable" in everything(error)


def test_installed_without_record_or_metadata(open_acme: Open, site: Callable[..., Path]) -> None:
    target = site(make_wheel(padding=False))
    info = target / "acme-1.0.dist-info"
    (info / "RECORD").unlink()
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(search_path=(str(target),), offline=True)
    assert "no RECORD" in everything(error)
    (info / "METADATA").unlink()
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(search_path=(str(target),), offline=True)
    assert "not installed" in everything(error)


def test_record_that_points_outside_is_ignored(open_acme: Open, site: Callable[..., Path]) -> None:
    target = site(make_wheel(padding=False))
    (target.parent / "evil.py").write_text("E = 1\n")
    record = target / "acme-1.0.dist-info" / "RECORD"
    row = "../evil.py,sha256=AAAA,1\n/etc/evil.py,sha256=AAAA,1\nacme/../../evil.py,sha256=AAAA,1\n"
    record.write_text(record.read_text() + row)
    assert set(open_acme(search_path=(str(target),)).modules()) == MODULES
