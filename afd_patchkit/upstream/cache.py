"""The content-addressed cache: best effort when writing, strict when reading.

Everything read back is verified (content by its digest, documents by a checksum), so a torn or damaged entry is dropped
and fetched again; that is why nothing needs an fsync. Writes are atomic renames, so that parallel runs can share it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from afd_patchkit.digests import sha256, short
from afd_patchkit.files import replace_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = "v1"
_STALE = 24 * 3600.0
_WAIT = 900.0


def digest_of(algorithm: str, data: bytes) -> str:
    """`algorithm:hex` of `data`; `git` is the id that git gives a blob of this content."""
    if algorithm == "git":
        return "git:" + hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    return f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"


def matches(digest: str, data: bytes) -> bool:
    """Whether `data` has the digest `algorithm:hex`."""
    return digest_of(digest.partition(":")[0], data) == digest


class Store:
    """One cache folder; `root=None` makes a store that keeps nothing."""

    def __init__(self, root: Path | None) -> None:
        self.root = root / FORMAT if root is not None else None
        self._writable = root is not None
        self._folder: int | None = None
        self._hold()

    # ---- content ------------------------------------------------------------------------------------------------

    def blob(self, digest: str) -> bytes | None:
        """Verified content with this digest, or None; a damaged entry is dropped."""
        if self.root is None:
            return None
        path = self._blob_path(digest)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return None
        if matches(digest, data):
            return data
        self._drop(path)
        return None

    def has_blob(self, digest: str) -> bool:
        """Whether there is something under `digest` (it may turn out to be damaged)."""
        return self.root is not None and os.path.exists(self._blob_path(digest))

    def put(self, digest: str, data: bytes) -> None:
        """Keep verified `data`; does nothing when the cache cannot be written."""
        if self.root is not None:
            self._write(self._blob_path(digest), data)

    def _blob_path(self, digest: str) -> str:
        algorithm, _, value = digest.partition(":")
        return f"{self.root}/blobs/{algorithm}/{value[:2]}/{value[2:]}"

    # ---- documents ----------------------------------------------------------------------------------------------

    def document(self, *key: str) -> dict[str, Any] | None:
        """The document kept under `key`, or None; a damaged one is dropped."""
        if self.root is None:
            return None
        path = self._document_path(key)
        try:
            with open(path, "rb") as file:
                head, _, body = file.read().partition(b"\n")
        except OSError:
            return None
        if head.decode("ascii", "replace") == sha256(body):
            with contextlib.suppress(ValueError, RecursionError):
                value = json.loads(body)
                if isinstance(value, dict):
                    return value
        self._drop(path)
        return None

    def has_document(self, *key: str) -> bool:
        """Whether there is something under `key` (it may turn out to be damaged)."""
        return self.root is not None and os.path.exists(self._document_path(key))

    def put_document(self, value: dict[str, Any], *key: str) -> None:
        """Keep `value` (plain JSON data) under `key`."""
        if self.root is not None:
            body = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
            self._write(self._document_path(key), sha256(body).encode() + b"\n" + body)

    def _document_path(self, key: tuple[str, ...]) -> str:
        # Parts are digests, normalised names and versions; hash anything that might not be a plain file name.
        parts = [p if p.replace("-", "").replace("_", "").isalnum() else sha256(p.encode()) for p in key]
        return f"{self.root}/{'/'.join(parts)}.json"

    # ---- files and locks ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A temporary folder, in the cache if it can be written (same file system, room for large files)."""
        import tempfile

        parent: str | None = None
        if self.root is not None and self._writable:
            parent = f"{self.root}/tmp"
            try:
                os.makedirs(parent, exist_ok=True)
                self._sweep(parent)
                if not os.access(parent, os.W_OK):
                    parent = None
            except OSError:
                parent = None
        with tempfile.TemporaryDirectory(prefix="afd-patchkit-", dir=parent) as folder:
            yield Path(folder)

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Keep other processes from doing the same long work; without a writable cache there is nothing to share."""
        if self.root is None or not self._writable:
            yield
            return
        from filelock import FileLock

        folder = self.root / "locks"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            guard = FileLock(str(folder / f"{short(name, 32)}.lock"))
            guard.acquire(timeout=_WAIT)  # then go on: it only saves work
        except (OSError, NotImplementedError):
            yield
            return
        try:
            yield
        finally:
            guard.release()

    def _hold(self) -> None:
        """Tell `alone` that this process is using the cache, as long as the store lives; waits while something is removed."""
        if fcntl is None or self.root is None:
            return
        try:
            folder = os.open(self.root, os.O_RDONLY)
        except OSError:  # there is nothing yet that could be removed
            return
        try:
            fcntl.flock(folder, fcntl.LOCK_SH)
        except OSError:  # a file system on which folders cannot be locked
            os.close(folder)
            return
        weakref.finalize(self, os.close, folder)
        self._folder = folder

    @contextlib.contextmanager
    def alone(self) -> Iterator[bool]:
        """Keep all other commands from the cache; False when one is using it."""
        if self._folder is None:
            yield self._nothing_locked()
            return
        assert fcntl is not None
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.flock(self._folder, fcntl.LOCK_SH)

    def _nothing_locked(self) -> bool:
        """Where folders cannot be locked: whether no long work is going on that `lock` guards."""
        from filelock import FileLock, Timeout

        for path in (self.root / "locks").glob("*.lock") if self.root is not None else ():
            try:
                with FileLock(str(path), timeout=0):
                    pass
            except Timeout:
                return False
        return True

    @property
    def writable(self) -> bool:
        """Whether writes have worked so far."""
        return self._writable

    def _write(self, path: str, data: bytes) -> None:
        if not self._writable:
            return
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if self._folder is None:
                self._hold()
            replace_file(Path(path), data, private=True, durable=False)
        except OSError:
            # A read-only or full cache costs speed, never the run. (Losing a race for the same content is no failure.)
            self._writable = os.path.exists(path)

    @staticmethod
    def _drop(path: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(path)

    @staticmethod
    def _sweep(parent: str) -> None:
        """Remove what killed runs left behind."""
        import shutil

        now = time.time()
        for entry in os.scandir(parent):
            with contextlib.suppress(OSError):
                if now - entry.stat(follow_symlinks=False).st_mtime > _STALE:
                    shutil.rmtree(entry.path, ignore_errors=True)
