"""`diff --base` of a commit that somebody made by hand: nothing is written outside the temporary folder."""

from __future__ import annotations

import hashlib
import subprocess
import zlib
from pathlib import Path

import pytest

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.queries import preview
from tests.engine.sample import Sample
from tests.invented import read_tree, write_tree

FILE, LINK, FOLDER, MODULE = "100644", "120000", "40000", "160000"
Tree = list[tuple[str, str, "bytes | Tree"]]
EVIL = b"evil\n"


def stored(repository: Path, kind: str, data: bytes) -> str:
    """Put an object into a repository, whatever it says; git itself would refuse some."""
    whole = f"{kind} {len(data)}".encode() + b"\0" + data
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    path = repository / ".git/objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(zlib.compress(whole))
    return name


def tree(repository: Path, rows: Tree) -> str:
    data = b""
    for mode, name, content in rows:
        inner = stored(repository, "blob", content) if isinstance(content, bytes) else tree(repository, content)
        data += f"{mode} {name}".encode("utf-8", "surrogateescape") + b"\0" + bytes.fromhex(inner)
    return stored(repository, "tree", data)


def commit(sample: Sample, rows: Tree) -> str:
    person = "t <t@example.invalid> 0 +0000"
    text = f"tree {tree(sample.root, rows)}\nauthor {person}\ncommitter {person}\n\nx\n"
    return stored(sample.root, "commit", text.encode())


SETTINGS = (FILE, "pyproject.toml", b'[tool.afd-patchkit]\npackage = "generated_acme"\n')


def manifests(*rows: tuple[str, str, bytes | Tree]) -> Tree:
    return [(FOLDER, "manifests", list(rows)), SETTINGS]


@pytest.mark.parametrize(
    "rows",
    [
        manifests((FOLDER, "..", [(FOLDER, "..", [(FILE, "canary.txt", EVIL)])])),
        manifests((FILE, "../../canary.txt", EVIL)),
        manifests((FILE, "/tmp/afd-patchkit-canary.txt", EVIL)),
        manifests((FOLDER, ".git", [(FOLDER, "hooks", [(FILE, "post-checkout", EVIL)])])),
        manifests((FOLDER, ".GIT", [(FILE, "config", EVIL)])),
        manifests((FILE, "..\\canary.txt", EVIL)),
        manifests((FILE, "C:canary.txt", EVIL)),
        manifests((FOLDER, ".", [(FILE, "x.yaml", EVIL)])),
        manifests((FOLDER, "", [(FILE, "x.yaml", EVIL)])),
        # a link, and below the same name what would go through it
        manifests((LINK, "a", b"../.."), (FOLDER, "a", [(FILE, "canary.txt", EVIL)])),
        manifests((FOLDER, "a", [(FILE, "canary.txt", EVIL)]), (LINK, "a", b"../..")),
        manifests((LINK, "x.yaml", b"../../canary.txt"), (FILE, "x.yaml", EVIL)),
        [(LINK, "manifests", b".."), (FOLDER, "manifests", [(FILE, "canary.txt", EVIL)]), SETTINGS],
        [(LINK, "manifests", b"/"), SETTINGS],
        [(LINK, "pyproject.toml", b"../canary.txt")],
        [(FOLDER, "manifests", [(FILE, "pins.yaml", EVIL)]), (LINK, "pyproject.toml", b"../canary.txt"), SETTINGS],
        manifests((LINK, "x.yaml", b"x.yaml")), manifests((LINK, "x.yaml", b"a\0b")), manifests((LINK, "x.yaml", b"")),
        manifests((MODULE, "x.yaml", EVIL)), manifests((FILE, "\udcff.yaml", EVIL)), manifests((FILE, "a\nb.yaml", EVIL)),
    ],
)  # fmt: skip
def test_nothing_is_written_outside(sample, monkeypatch, rows):
    beside = sample.root.parent
    write_tree(beside, {"canary.txt": b"mine", "tmp/canary.txt": b"mine"})
    monkeypatch.setattr(preview.tempfile, "tempdir", str(beside / "tmp"))
    subprocess.run(["git", "init", "-q", str(sample.root)], check=True)
    revision = commit(sample, rows)
    before = read_tree(beside)
    with pytest.raises(PatchkitError) as caught, preview.project_at(sample.project, revision) as there:
        preview.preview(there, options=sample.offline({"acme": sample.source}))
    assert caught.value.exit_code in (1, 2, 3)
    assert read_tree(beside) == before
    assert not Path("/tmp/afd-patchkit-canary.txt").exists()


def test_a_link_inside_the_project_is_kept(sample):
    subprocess.run(["git", "init", "-q", str(sample.root)], check=True)
    text = (sample.root / "manifests/acme_set/runner.yaml").read_bytes()
    pins = (FILE, "pins.yaml", (sample.root / "manifests/pins.yaml").read_bytes())
    revision = commit(
        sample, manifests((LINK, "a.yaml", b"real/b.txt"), pins, (FOLDER, "real", [(FILE, "b.txt", text)]))
    )
    with preview.project_at(sample.project, revision) as there:
        made = preview.preview(there, options=sample.offline({"acme": sample.source}))
    assert list(made.modules) == ["acme_set/runner.py"]
