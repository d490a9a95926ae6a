"""The content-addressed store on its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afd_patchkit.upstream.cache import Store, digest_of, matches


@given(st.binary(), st.binary(), st.sampled_from(["sha256", "sha512", "git"]))
def test_digests(one: bytes, other: bytes, algorithm: str) -> None:
    assert matches(digest_of(algorithm, one), one)
    assert matches(digest_of(algorithm, one), other) == (one == other)


def test_git_object_id() -> None:
    assert digest_of("git", b"hello\n") == "git:ce013625030ba8dba906f756967f9e9ca394464a"


def test_blobs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digest = digest_of("sha256", b"content")
    assert store.blob(digest) is None
    store.put(digest, b"content")
    assert store.blob(digest) == Store(tmp_path).blob(digest) == b"content"


@pytest.mark.parametrize("damage", [b"", b"conten", b"content!", b"Content"])
def test_damaged_blob_is_dropped(tmp_path: Path, damage: bytes) -> None:
    store, digest = Store(tmp_path), digest_of("sha256", b"content")
    store.put(digest, b"content")
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    file.write_bytes(damage)
    assert store.blob(digest) is None
    assert not file.exists()
    store.put(digest, b"content")
    assert store.blob(digest) == b"content"


@settings(max_examples=30)
@given(st.text(max_size=20), st.text(max_size=20))
def test_documents_do_not_leave_the_folder(tmp_path_factory: pytest.TempPathFactory, key: str, other: str) -> None:
    root = tmp_path_factory.mktemp("store") / "in" / "side"
    store = Store(root)
    store.put_document({"n": 1}, "kind", key)
    store.put_document({"n": 2}, "kind", "x" + other, "y")
    assert store.document("kind", key) == {"n": 1}
    assert [path.name for path in root.parent.parent.iterdir()] == ["in"]


def test_documents(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.document("releases", "1.0+local") is None
    store.put_document({"a": [1, "x"]}, "releases", "1.0+local")
    assert store.has_document("releases", "1.0+local")
    assert store.document("releases", "1.0+local") == {"a": [1, "x"]}
    assert store.document("releases", "1.0") is None


def test_store_that_keeps_nothing() -> None:
    store = Store(None)
    store.put(digest_of("sha256", b"x"), b"x")
    store.put_document({}, "x")
    assert store.blob(digest_of("sha256", b"x")) is None
    assert store.document("x") is None
    assert not store.has_document("x")
    with store.lock("x"), store.scratch() as folder:
        assert folder.is_dir()
    assert not folder.exists()


def test_scratch_sweeps_what_killed_runs_left(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old, new = tmp_path / "v1/tmp/afd-patchkit-old", tmp_path / "v1/tmp/afd-patchkit-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (1, 1))
    with store.scratch() as folder:
        assert folder.parent == tmp_path / "v1/tmp"
    assert (old.exists(), new.exists()) == (False, True)


def test_warm_read_imports_no_http_client(tmp_path: Path, root: Path) -> None:
    """The warm path must not pay for what only a download needs."""
    program = """
import sys
from pathlib import Path
from afd_patchkit.model import Pin
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.cache import Store, digest_of
from afd_patchkit.upstream.resolve import SourceOptions, open_upstream
cache = Path(sys.argv[1])
store, digest = Store(cache), digest_of("sha256", b"X = 1\\n")
store.put(digest, b"X = 1\\n")
rows = {"acme/x.py": [digest, 6]}
store.put_document({"kind": "wheel", "file": "a.whl", "distribution": "acme", "version": "1.0", "record": None, "rows": rows, "licences": {}},
                   "members", "0" * 64)
locks = {"locked": {"acme/x.py": digest.partition(":")[2]}, "locked_artifact": Artifact("wheel", "a.whl", "0" * 64)}
upstream = open_upstream("acme", Pin(distribution="acme", version="1.0"), SourceOptions(cache_dir=cache), **locks)
print(upstream.read("acme.x").text.strip(), list(upstream.modules()))
print(sorted({"httpx", "ssl", "http.client", "tarfile", "importlib.metadata", "filelock", "libcst"} & set(sys.modules)))
"""
    run = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{program}", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    first, second = run.stdout.splitlines()
    assert first == "X = 1 ['acme.x']"
    assert "httpx" not in second
    assert "libcst" not in second
    assert "tarfile" not in second
