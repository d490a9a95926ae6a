"""A git repository at one commit: cloned without file contents, read through `git cat-file`, cached by object id."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from afd_patchkit.digests import short
from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.report import tell
from afd_patchkit.git import GitError, complaint, run_git
from afd_patchkit.upstream.archives import safe_name
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.cache import matches
from afd_patchkit.upstream.failures import Unavailable, corrupt, mismatch, offline, unreachable
from afd_patchkit.upstream.licences import in_tree, is_licence
from afd_patchkit.upstream.sdist import package_table
from afd_patchkit.upstream.settings import redact
from afd_patchkit.upstream.verified import Request, SourceUpstream

_PATIENCE = 1800.0
_REGULAR = {b"100644", b"100755", b"100664"}


class GitUpstream(SourceUpstream):
    """One commit; its tree of names is fetched at once, contents when they are read."""

    def __init__(self, request: Request, origin: str = "git") -> None:
        git = request.pin.git
        assert git is not None
        super().__init__(request, Artifact("git", git.commit), origin)
        self._git = git
        self._repository: Repository | None = None
        self._table: Mapping[str, str] | None = None
        self._licences: tuple[str, ...] = ()

    @property
    def _key(self) -> tuple[str, ...]:
        return "commits", self._git.commit, f"{self._git.subdirectory or ''} {' '.join(self.request.packages)}"

    def members(self) -> Collection[str]:
        """Paths of the Python files."""
        return self._ids().keys() - set(self._licences) if self._licences else self._ids().keys()

    def licences(self) -> Collection[str]:
        """Names of the licence files: those of the subdirectory, and those of the repository that it has not."""
        self._ids()
        return self._licences

    def prepare(self) -> None:
        """Load the table of object ids.

        Raises:
            Unavailable: the commit cannot be had.
        """
        if self._table is not None:
            return
        store = self.request.options.store
        kept = store.document(*self._key)
        if kept is not None and all(isinstance(oid, str) for oid in kept.values()):
            self._use(kept)
            return
        if self.request.options.offline:
            raise Unavailable("git", f"commit {self._git.commit} is not in the cache")
        repository = self._opened()
        with store.lock(repository.lock_name):
            repository.fetch_commit(self._git.commit)
        prefix = f"{self._git.subdirectory.strip('/')}/" if self._git.subdirectory else ""
        label = f"commit {self._git.commit[:12]}"
        whole = repository.tree(self._git.commit, prefix)
        ids = {path.removeprefix(prefix): oid for path, oid in whole.items() if path.startswith(prefix)}
        places = package_table(ids, self.request, label)
        table = {path: f"git:{ids[place]}" for path, place in places.items()}
        of_repository = {path: f"git:{whole[path]}" for path in in_tree(whole, label)}
        table |= of_repository | {path: f"git:{ids[path]}" for path in in_tree(ids, label)}
        self._use(table)
        self.stats.add(bytes=repository.received, requests=repository.fetches)
        repository.received = repository.fetches = 0
        store.put_document(table, *self._key)

    def _use(self, table: Mapping[str, str]) -> None:
        self._table = table
        self._licences = tuple(path for path in table if not path.endswith(".py"))

    def load(self, paths: Collection[str]) -> Mapping[str, bytes]:
        """Verified contents, from the cache or the repository."""
        ids, store = self._ids(), self.request.options.store
        found: dict[str, bytes] = {}
        missing: list[str] = []
        for path in paths:
            if path not in ids:
                raise self._no_file(path)
            data = store.blob(ids[path])
            if data is None:
                missing.append(path)
            else:
                found[path] = data
        if missing:
            if self.request.options.offline:
                raise offline(f"{missing[0]} of {self.request.label} is not in the cache", path=missing[0])
            try:
                found.update(self._fetch(missing, ids))
            except Unavailable as error:
                raise self._lost(error) from error
        return found

    def _fetch(self, missing: Collection[str], ids: Mapping[str, str]) -> dict[str, bytes]:
        store, repository = self.request.options.store, self._opened()
        with store.lock(repository.lock_name):
            repository.fetch_commit(self._git.commit)
            contents = repository.blobs([ids[path].removeprefix("git:") for path in missing])
        self.stats.add(bytes=repository.received, requests=repository.fetches)
        repository.received = repository.fetches = 0
        found = {}
        for path, data in zip(missing, contents, strict=True):
            if not matches(ids[path], data):
                raise corrupt(f"{path} at commit {self._git.commit} is not the object that git names", path=path)
            store.put(ids[path], data)
            found[path] = data
        return found

    def _ids(self) -> Mapping[str, str]:
        if self._table is None:
            try:
                self.prepare()
            except Unavailable as error:
                raise self._lost(error) from error
        assert self._table is not None
        return self._table

    def _opened(self) -> Repository:
        if self._repository is None:
            self._repository = Repository(self.request, self._git.url)
        return self._repository

    def _lost(self, error: Unavailable) -> UpstreamError:
        reasons = tuple(f"{source}: {reason}" for source, reason in error.attempts)
        return unreachable(f"commit {self._git.commit} of {self.request.label} cannot be read", details=reasons)


def open_git(request: Request) -> SourceUpstream:
    """The pinned commit.

    Raises:
        Unavailable: the pin has no git source, or the commit cannot be had.
        UpstreamError: the lock names another commit (PK402).
    """
    if request.pin.git is None:
        raise Unavailable("git", "the pin has no `git` in pins.yaml")
    locked = request.artifact
    if locked is not None and locked.sha256 is not None:
        raise Unavailable("git", f"the lock names {locked.file}, not a commit")
    if locked is not None and locked.source == "git" and locked.file != request.pin.git.commit:
        raise mismatch(f"the lock has commit {locked.file}, but {request.label} is pinned at {request.pin.git.commit}")
    upstream = GitUpstream(request)
    upstream.prepare()
    if not upstream.stats.requests:
        upstream.origin = "cache"
    return upstream


class Repository:
    """A bare repository in the cache (or in a temporary folder) that fetches contents on demand."""

    def __init__(self, request: Request, url: str) -> None:
        if not _SOUND_URL.match(url):
            raise Unavailable("git", f"{_plain(url)} is no address of a git repository")
        self._url, self._timeout, self._waits = url, request.options.patience, request.options.waits
        self.lock_name = f"git {url}"
        self.fetches = self.received = 0
        store = request.options.store
        name = short(url, 32)
        folder = store.root / "git-repositories" / f"{name}.git" if store.root is not None and store.writable else None
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            folder = None
        if folder is None or not os.access(folder, os.W_OK):
            temporary = tempfile.TemporaryDirectory(prefix="afd-patchkit-git-")
            weakref.finalize(self, temporary.cleanup)
            folder = Path(temporary.name)
        self.folder = folder

    def fetch_commit(self, commit: str) -> None:
        """Have the commit and its trees.

        Raises:
            Unavailable: it cannot be had.
        """
        for stale in self.folder.glob("*.lock"):  # of a killed run: ours is the only one that writes here
            stale.unlink(missing_ok=True)
        if not (self.folder / "HEAD").exists():
            self._run("init", "--quiet", "--bare", "--template=", ".")
        if self._has(commit):
            return
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none")
        try:
            self._fetch(*options, "--depth=1", "origin", commit)
        except Unavailable as error:
            # Some servers give out only what a branch or tag names.
            try:
                refs = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
                self._fetch(*options, "origin", *refs)
            except Unavailable:
                raise error from None
        if not self._has(commit):
            raise Unavailable("git", f"{_plain(self._url)} has no commit {commit}")

    def tree(self, commit: str, prefix: str) -> dict[str, str]:
        """Path to object id of the regular Python files below `prefix`, and of licence files there and at the top.

        Links and submodules are left out.
        """
        out = self._run("ls-tree", "-r", "-z", "--full-tree", commit)
        ids = {}
        for line in out.split(b"\0"):
            head, _, raw = line.partition(b"\t")
            if head.split(b" ")[0] not in _REGULAR:
                continue
            path = raw.decode("utf-8", "surrogateescape")
            below = path.removeprefix(prefix) if path.startswith(prefix) else None
            if is_licence(path) or (below is not None and (below.endswith(".py") or is_licence(below))):
                ids[safe_name(path, f"commit {commit[:12]}")] = head.split(b" ")[2].decode()
        return ids

    def blobs(self, oids: Iterable[str]) -> list[bytes]:
        """Contents of these objects, fetched together where they are missing."""
        wanted = list(oids)
        present = self._run("cat-file", "--batch-check", stdin="\n".join(wanted), lazy=False).decode().splitlines()
        missing = sorted({line.split()[0] for line in present if line.endswith(" missing")})
        if missing:
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none")
            self._fetch(*options, "origin", "--stdin", stdin="\n".join(missing), negotiate=False)
        out = self._run("cat-file", "--batch", stdin="\n".join(wanted))
        contents = []
        at = 0
        for oid in wanted:
            end = out.find(b"\n", at)
            fields = out[at:end].split()
            if end < 0 or len(fields) != 3 or fields[1] != b"blob":
                raise Unavailable("git", f"object {oid} cannot be read: {out[at:end].decode('utf-8', 'replace')}")
            size = int(fields[2])
            contents.append(out[end + 1 : end + 1 + size])
            at = end + 2 + size
        return contents

    def _has(self, commit: str) -> bool:
        try:
            return self._run("cat-file", "-t", commit, lazy=False).strip() == b"commit"
        except Unavailable:
            return False

    def _fetch(self, *arguments: str, stdin: str = "", negotiate: bool = True) -> None:
        before = self._size()
        self.fetches += 1
        config = () if negotiate else ("-c", "fetch.negotiationAlgorithm=noop")
        try:
            self._run(*config, "fetch", *arguments, stdin=stdin)
        finally:
            self.received += max(0, self._size() - before)

    def _size(self) -> int:
        """Bytes in packs; their growth is what a fetch received (git does not tell)."""
        try:
            return sum(entry.stat().st_size for entry in os.scandir(self.folder / "objects" / "pack"))
        except OSError:
            return 0

    def _run(self, *arguments: str, stdin: str = "", lazy: bool = True) -> bytes:
        try:
            done = run_git(
                arguments,
                self.folder,
                stdin=stdin.encode(),
                kept=_is_kept,
                more=self._environment(lazy),
                timeout=_PATIENCE,
                waits=lambda on: tell(self._waits, f"git {_verb(arguments)} of {_plain(self._url)}", on),
            )
        except GitError as error:
            raise Unavailable("git", str(error)) from None
        if done.returncode:
            lines = [_URL_USER.sub(r"\1", line.replace(self._url, _plain(self._url))) for line in complaint(done)]
            raise Unavailable("git", f"git {_verb(arguments)} failed: {' / '.join(lines[-3:]) or done.returncode}")
        return done.stdout

    def _environment(self, lazy: bool) -> dict[str, str]:
        """What keeps git from running hooks and from asking questions."""
        config = {
            "protocol.version": "2",  # any object may be asked for by its id
            "core.hooksPath": os.devnull,
            "core.fsmonitor": "false",
            "core.askPass": "",
            "credential.interactive": "false",
            "fetch.recurseSubmodules": "false",
            "gc.auto": "0",
            "maintenance.auto": "false",
            "fetch.writeCommitGraph": "false",
            "http.lowSpeedLimit": "1000",
            "http.lowSpeedTime": str(max(1, int(self._timeout))),
        }
        if lazy:
            # The address may hold credentials: neither in the cache nor on a command line.
            config |= {
                "remote.origin.url": self._url,
                "remote.origin.promisor": "true",
                "remote.origin.partialclonefilter": "blob:none",
            }
        env = {
            "GIT_DIR": str(self.folder),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CONFIG_COUNT": str(len(config)),
            "GCM_INTERACTIVE": "never",
            "GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
        }
        if not lazy:
            env["GIT_NO_LAZY_FETCH"] = "1"
        for number, (key, value) in enumerate(config.items()):
            env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = key, value
        return env


_KEPT = {"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_ASKPASS"}
_KEPT_TOO = ("GIT_SSL", "GIT_TRACE", "GIT_HTTP", "GIT_PROXY")
_SOUND_URL = re.compile(r"(?!-)(?:(?:https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+|(?:[A-Za-z]:)?/[^\0\n]*)\Z")
_URL_USER = re.compile(r"(\w+://)[^/@\s]+@")


def _verb(arguments: Iterable[str]) -> str:
    return next(word for word in arguments if word.isalpha() or word in {"ls-tree", "cat-file"})


def _plain(url: str) -> str:
    return redact(url) if "://" in url else url


def _is_kept(name: str) -> bool:
    """Whether git may see a variable of the user's: how to reach a server, not where a repository is."""
    return name in _KEPT or name.startswith(_KEPT_TOO)
