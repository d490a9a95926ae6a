"""`cache`: what it says, what it removes, and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from afd_patchkit.digests import sha256
from afd_patchkit.upstream.cache import Store, digest_of

ARTIFACT = "ab" * 32
COMMIT = "cd" * 20
PINNED = (b"pinned = 1\n", b"read = 2\n", b"locked = 3\n", b"by_commit = 4\n")
OTHER = (b"other = 1\n", b"other = 2\n")


def blob(store: Store, data: bytes, algorithm: str = "sha256") -> str:
    digest = digest_of(algorithm, data)
    store.put(digest, data)
    return digest


@pytest.fixture
def cache(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with what a lock needs and with what it does not, all of it forty days old; the project is the folder."""
    monkeypatch.setenv("AFD_PATCHKIT_CACHE", str(tmp_path / "cache"))
    store = Store(tmp_path / "cache")
    first, second, third = (blob(store, data) for data in PINNED[:3])
    store.put_document(
        {"file": "acme.whl", "rows": {"acme/a.py": [first, 1], "acme/b.py": [second, 1]}}, "members", ARTIFACT
    )
    store.put_document({"acme/d.py": blob(store, PINNED[3], "git")}, "commits", COMMIT, "acme")
    store.put_document({"files": [{"name": "acme.whl", "sha256": ARTIFACT}]}, "releases", "acme", "1.0")
    for number, data in enumerate(OTHER):
        store.put_document({"rows": {"x.py": [blob(store, data), 1]}}, "members", f"{number}" * 64)
    store.put_document({"entry": first}, "entries", "0" * 64)
    (tmp_path / "cache/v1/git-repositories/a.git/objects").mkdir(parents=True)
    (tmp_path / "cache/v1/git-repositories/a.git/objects/x").write_bytes(b"x" * 1000)
    (tmp_path / "cache/v1/locks").mkdir()
    (tmp_path / "cache/v1/locks/a.lock").touch()
    aged(tmp_path / "cache", 40)
    pins = {
        "acme": {"artifact": {"file": "acme.whl", "sha256": ARTIFACT, "source": "wheel"}, "files": {}},
        "locked": {"artifact": {"file": "gone.whl", "sha256": "ef" * 32}, "files": {"c.py": {"raw": third.partition(":")[2]}}},
        "git": {"artifact": {"file": COMMIT, "sha256": None}, "git": COMMIT, "files": {}},
    }  # fmt: skip
    (folder / "afd-patchkit.toml").write_text("")
    monkeypatch.setattr("afd_patchkit.queries.pins.load", lambda path, shown: {"pins": pins})
    return tmp_path / "cache/v1"


def aged(root: Path, days: float) -> None:
    then = time.time() - days * 24 * 3600
    for path in root.rglob("*"):
        os.utime(path, (then, then))


def left(cache: Path) -> set[bytes]:
    return {path.read_bytes() for path in (cache / "blobs").rglob("*") if path.is_file()}


def test_size(run, cache):
    data = json.loads(run("cache", "--format", "json").stdout)
    assert data["folder"] == str(cache)
    assert {kind: found["files"] for kind, found in data["kinds"].items()} == {
        "blobs": 6, "members": 3, "commits": 1, "releases": 1, "entries": 1, "git-repositories": 1, "locks": 1,
    }  # fmt: skip
    assert data["total"]["bytes"] == sum(p.stat().st_size for p in cache.rglob("*") if p.is_file())
    assert data["pinned"]["files"] == 4 + 3
    text = run("cache").stdout
    assert text.splitlines()[0] == str(cache)
    assert "blobs" in text
    assert "needed by the pins of this project: 7 files" in text
    assert "locks" in run("cache", "size").stdout


def test_an_empty_cache(run, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("AFD_PATCHKIT_CACHE", str(tmp_path / "none"))
    assert "it is empty" in run("cache").stdout
    assert run("cache", "prune").stdout == "removed 0 files (0 B); 0 files (0 B) left\n"
    assert not (tmp_path / "none").exists()


def test_prune_leaves_what_the_pins_need(run, cache):
    before = sorted(cache.rglob("*"))
    dry = run("cache", "prune", "--dry-run")
    assert (dry.exit_code, sorted(cache.rglob("*"))) == (0, before)
    assert dry.stdout.startswith("would remove 7 files (")
    done = run("cache", "prune")
    assert done.exit_code == 0
    assert done.stdout.startswith("removed 7 files (")
    assert left(cache) == set(PINNED)
    assert sorted(p.name for p in (cache / "members").iterdir()) == [f"{ARTIFACT}.json"]
    assert (cache / "releases").is_dir()
    assert (cache / "commits" / COMMIT).is_dir()
    assert not (cache / "git-repositories").exists()
    assert not (cache / "locks").exists()


def test_prune_leaves_what_is_young(run, cache):
    young = next(p for p in (cache / "blobs").rglob("*") if p.is_file() and p.read_bytes() == OTHER[0])
    os.utime(young)
    run("cache", "prune")
    assert left(cache) == {*PINNED, OTHER[0]}
    run("cache", "prune", "--older-than", "0")
    assert left(cache) == set(PINNED)


def test_prune_all(run, cache):
    assert run("cache", "prune", "--all").exit_code == 0
    assert list(cache.iterdir()) == []


def test_outside_a_project_nothing_is_pinned(run, cache, folder):
    (folder / "afd-patchkit.toml").unlink()
    assert run("cache").stdout.endswith("needed by the pins of this project: 0 files (0 B)\n")
    run("cache", "prune")
    assert left(cache) == set()


def test_a_lock_that_cannot_be_read_removes_nothing(run, cache, folder, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AFD_PATCHKIT_CACHE", str(cache.parent))
    (folder / "generated").mkdir()
    (folder / "generated/patchkit.lock").write_text("{")
    result = run("cache", "prune")
    assert result.exit_code != 0
    assert "PK" in result.stdout
    assert left(cache) == {*PINNED, *OTHER}


USER = """
import sys
from pathlib import Path
from afd_patchkit.upstream.cache import Store
store = Store(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""


def test_nothing_is_removed_while_another_command_runs(run, cache):
    command = [sys.executable, "-c", USER, str(cache.parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        refused = run("cache", "prune", "--all")
        assert (refused.exit_code, left(cache)) == (1, {*PINNED, *OTHER})
        assert "PK112: another command is using the cache" in refused.stdout
        assert run("cache").exit_code == 0
        other.communicate("")
    assert run("cache", "prune", "--all").exit_code == 0
    assert left(cache) == set()


def test_where_folders_cannot_be_locked_the_locks_of_long_work_count(tmp_path, monkeypatch):
    monkeypatch.setattr("afd_patchkit.upstream.cache.fcntl", None)
    store = Store(tmp_path)
    blob(store, b"x")
    with Store(tmp_path).lock("a download"), store.alone() as alone:
        assert not alone
    with store.alone() as alone:
        assert alone


@pytest.mark.parametrize(
    "arguments",
    [
        ["--all"],
        ["size", "--dry-run"],
        ["prune", "--all", "--older-than", "3"],
        ["prune", "--older-than", "-1"],
        ["purge"],
    ],
)
def test_bad_command_lines(run, cache, arguments):
    assert run("cache", *arguments).exit_code == 2
    assert left(cache) == {*PINNED, *OTHER}


def test_sha256_is_what_blobs_are_named_by():
    assert digest_of("sha256", b"x") == f"sha256:{sha256(b'x')}"
