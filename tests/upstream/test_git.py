"""The git resolver on local repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.model import Git
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.failures import Unavailable
from afd_patchkit.upstream.git import Repository
from afd_patchkit.upstream.resolve import evidence, pin_report
from tests.upstream.conftest import Open, code, everything
from tests.upstream.packages import FILES, digest, make_wheel
from tests.upstream.server import Index

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


class Origin:
    """A bare repository with three commits; `commit` is the second, which no branch or tag names directly."""

    def __init__(self, folder: Path, below: str = "") -> None:
        self.work, self.bare = folder / "work", folder / "origin.git"
        self.work.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.change({f"{below}{path}": text for path, text in FILES.items()})
        self.commit = self.change({f"{below}acme/engine.py": "class Engine:\n    second = True\n", "setup.py": "x\n"})
        self.change({f"{below}acme/engine.py": "class Engine:\n    third = True\n"})
        self.git("clone", "-q", "--bare", ".", str(self.bare))
        self.git("config", "uploadpack.allowFilter", "true", folder=self.bare)

    def git(self, *arguments: str, folder: Path | None = None) -> str:
        who = ("-c", "user.name=Jane", "-c", "user.email=jane@example.org", "-c", "commit.gpgsign=false")
        env = {"PATH": os.environ["PATH"], "HOME": str(self.work), "GIT_CONFIG_NOSYSTEM": "1"}
        run = subprocess.run(
            ["git", *who, *arguments], cwd=folder or self.work, env=env, check=True, capture_output=True, text=True
        )
        return run.stdout.strip()

    def change(self, files: dict[str, str]) -> str:
        for path, text in files.items():
            place = self.work / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")
        return self.git("rev-parse", "HEAD")

    def pin(self, **fields: str) -> Git:
        return Git(**{"url": f"file://{self.bare}", "commit": self.commit, **fields})


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path / "repository")


SECOND = "class Engine:\n    second = True\n"


def objects(cache: Path) -> list[str]:
    (folder,) = (cache / "v1" / "git-repositories").iterdir()
    out = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch-check"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "GIT_NO_LAZY_FETCH": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [line.split()[1] for line in out.splitlines()]


@pytest.mark.parametrize("form", ["file://{}", "{}"])
def test_commit(index: Index, open_acme: Open, origin: Origin, form: str) -> None:
    upstream = open_acme(git=origin.pin(url=form.format(origin.bare)))
    assert upstream.artifact == Artifact("git", origin.commit)
    assert set(upstream.modules()) == {"acme", "acme._version", "acme.engine", "acme.deep", "acme.deep.runner"}
    assert upstream.read("acme.engine").text == SECOND
    assert upstream.read("acme.deep.runner").raw_sha256 == digest(FILES["acme/deep/runner.py"])
    assert evidence(upstream) == {"commit": origin.commit}
    report = pin_report(upstream)
    assert (report.source, report.file, report.files) == ("git", origin.commit, 2)
    assert report.bytes > 0


def test_contents_come_when_they_are_read(open_acme: Open, origin: Origin, tmp_path: Path) -> None:
    upstream = open_acme(git=origin.pin())
    assert "blob" not in objects(tmp_path / "cache")
    upstream.read_many(["acme.engine", "acme.deep.runner"])
    assert objects(tmp_path / "cache").count("blob") == 2
    assert upstream.stats.requests == 2  # the commit with its trees, both contents
    assert dict(upstream.package_files())["acme/__init__.py"] == FILES["acme/__init__.py"].encode()


def test_offline_after_one_run(open_acme: Open, origin: Origin, tmp_path: Path) -> None:
    open_acme(git=origin.pin()).read("acme.engine")
    shutil.rmtree(origin.bare)
    for locked_artifact in (None, Artifact("git", origin.commit)):
        upstream = open_acme(git=origin.pin(), offline=True, locked_artifact=locked_artifact)
        assert upstream.read("acme.engine").text == SECOND
        assert pin_report(upstream).source == "cache"
        with pytest.raises(UpstreamError, match="not in the cache") as error:
            upstream.read("acme")
        assert code(error) == "PK406"
    online = open_acme(git=origin.pin(), locked_artifact=Artifact("git", origin.commit))
    assert online.read("acme.engine").text == SECOND
    assert online.stats.requests == 0


def test_locked_commit_asks_no_index(index: Index, open_acme: Open, origin: Origin) -> None:
    index.add("acme-1.0-py3-none-any.whl", make_wheel())
    locked = {"acme/engine.py": digest(SECOND)}
    upstream = open_acme(git=origin.pin(), locked=locked, locked_artifact=Artifact("git", origin.commit))
    assert upstream.read("acme.engine").text == SECOND
    assert not index.seen
    with pytest.raises(UpstreamError, match="the lock has commit") as error:
        open_acme(git=origin.pin(), locked_artifact=Artifact("git", "1" * 40))
    assert code(error) == "PK402"
    wrong = open_acme(
        git=origin.pin(), locked={"acme/engine.py": "0" * 64}, locked_artifact=Artifact("git", origin.commit)
    )
    with pytest.raises(UpstreamError, match="not the locked file"):
        wrong.read("acme.engine")


@pytest.mark.parametrize("offline", [False, True])
def test_what_an_index_has_under_that_name_is_another_project(
    index: Index, open_acme: Open, origin: Origin, offline: bool
) -> None:
    index.add("acme-1.0-py3-none-any.whl", make_wheel({**FILES, "acme/engine.py": "foreign = True\n"}))
    assert open_acme().read("acme.engine").text == "foreign = True\n"  # kept in the cache now
    seen = len(index.seen)
    open_acme(git=origin.pin()).read("acme.engine")
    assert open_acme(git=origin.pin(), offline=offline).read("acme.engine").text == SECOND
    other = open_acme(git=origin.pin(commit=origin.git("rev-parse", "HEAD")))
    assert other.read("acme.engine").text == "class Engine:\n    third = True\n"
    with pytest.raises(UpstreamError, match="PK401"):
        open_acme(git=origin.pin(commit="1" * 40), offline=offline)
    assert len(index.seen) == seen


def test_locked_wheel_is_not_replaced_by_a_commit(open_acme: Open, origin: Origin) -> None:
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(git=origin.pin(), locked_artifact=Artifact("wheel", "acme-1.0-py3-none-any.whl", "0" * 64))
    assert "not a commit" in everything(error)


def test_subdirectory(open_acme: Open, tmp_path: Path) -> None:
    origin = Origin(tmp_path / "mono", below="python/acme-kit/src/")
    upstream = open_acme(git=origin.pin(subdirectory="python/acme-kit"))
    assert upstream.read("acme.engine").path == "acme/engine.py"
    assert upstream.read("acme.engine").text == SECOND


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_links_and_submodules_are_left_out(open_acme: Open, origin: Origin) -> None:
    (origin.work / "acme/link.py").symlink_to("/etc/passwd")
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},acme/sub.py")
    origin.git("add", "acme/link.py")
    origin.git("commit", "-q", "-m", "links")
    origin.git("push", "-q", str(origin.bare), "main")
    commit = origin.git("rev-parse", "HEAD")
    modules = open_acme(git=origin.pin(commit=commit)).modules()
    assert "acme.engine" in modules
    assert not {"acme.link", "acme.sub"} & set(modules)


def test_server_that_gives_out_only_refs(open_acme: Open, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = Repository._fetch

    def only_refs(self: Repository, *arguments: str, **options: Any) -> None:
        if origin.commit in arguments:
            raise Unavailable("git", "Server does not allow request for unadvertised object")
        fetch(self, *arguments, **options)

    monkeypatch.setattr(Repository, "_fetch", only_refs)
    assert open_acme(git=origin.pin()).read("acme.engine").text == SECOND
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(git=origin.pin(commit="1" * 40))
    assert "has no commit 1111" in everything(error)


def test_server_that_cannot_leave_out_contents(open_acme: Open, origin: Origin, tmp_path: Path) -> None:
    origin.git("config", "uploadpack.allowFilter", "false", folder=origin.bare)
    assert open_acme(git=origin.pin()).read("acme.engine").text == SECOND
    assert objects(tmp_path / "cache").count("blob") > 1


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"commit": "1" * 40}, "git"),
        ({"url": "file:///nothing/here.git"}, "git fetch failed"),
        ({"url": "--upload-pack=touch /x"}, "no address"),
        ({"url": "ext::sh -c true"}, "no address"),
        ({"url": "../relative"}, "no address"),
    ],
)
def test_what_cannot_be_had(open_acme: Open, origin: Origin, fields: dict[str, str], word: str) -> None:
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(git=origin.pin(**fields))
    assert word in everything(error)
    assert "index" not in everything(error)
    assert "--source acme=PATH" in everything(error)


def test_no_git_command(open_acme: Open, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(git=origin.pin())
    assert "there is no git command" in everything(error)


def test_credentials_are_neither_shown_nor_stored(index: Index, open_acme: Open, tmp_path: Path) -> None:
    url = index.url.replace("http://", "http://jane:s3cret@") + "/acme.git"
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(git=Git(url=url, commit="1" * 40))
    assert "s3cret" not in everything(error)
    kept = [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert kept
    assert not [data for data in kept if b"s3cret" in data]


def test_hooks_and_surroundings_do_not_matter(
    open_acme: Open, origin: Origin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As when called from a commit hook of another repository, with hooks and templates configured."""
    hooks, ran = tmp_path / "hooks", tmp_path / "ran"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f"[core]\n\thooksPath = {hooks}\n[init]\n\ttemplateDir = {hooks}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(origin.work / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other-index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(origin.work))
    before = sorted(path for path in origin.work.rglob("*"))
    assert open_acme(git=origin.pin()).read("acme.engine").text == SECOND
    assert not ran.exists()
    assert sorted(path for path in origin.work.rglob("*")) == before


def test_stale_lock_of_a_killed_run(open_acme: Open, origin: Origin, tmp_path: Path) -> None:
    open_acme(git=origin.pin())
    (folder,) = (tmp_path / "cache/v1/git-repositories").iterdir()
    for name in ("shallow.lock", "config.lock"):
        (folder / name).write_text("")
    third = origin.git("rev-parse", "HEAD")
    assert "third" in open_acme(git=origin.pin(commit=third)).read("acme.engine").text


def test_unwritable_cache(open_acme: Open, origin: Origin, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    upstream = open_acme(git=origin.pin())
    assert upstream.read("acme.engine").text == SECOND
