"""Wheels and sdists of a package index, read through the cache: by range where possible, whole where not."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import IO
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from afd_patchkit.digests import sha256_of_file, short
from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.report import Progress
from afd_patchkit.upstream import archives
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.cache import digest_of
from afd_patchkit.upstream.failures import Unavailable, corrupt, mismatch, offline, unreachable
from afd_patchkit.upstream.network import FetchError, IndexFile, Network, RangesRefused, Stats
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.sdist import read_sdist
from afd_patchkit.upstream.settings import redact
from afd_patchkit.upstream.verified import Request, SourceUpstream
from afd_patchkit.upstream.wheel import MemberIndex, read_wheel

SMALL = 512 * 1024
"""Wheels up to this size are downloaded whole: fewer requests, and the index digest covers everything."""

_GAP = 16 * 1024
_RANGE = 8 * 2**20
_THREADS = 6
_PROGRESS_FROM = 2**20


class ArtifactUpstream(SourceUpstream):
    """One artifact, identified by its sha256; `file` says where it lies when that is known already."""

    def __init__(self, request: Request, artifact: Artifact, origin: str, file: IndexFile | None = None) -> None:
        super().__init__(request, artifact, origin)
        assert artifact.sha256 is not None
        self._sha256: str = artifact.sha256
        self._file = file
        self._index: MemberIndex | None = None
        self._whole: dict[str, bytes] = {}

    @property
    def index(self) -> MemberIndex:
        """The member table, from the cache or the artifact.

        Raises:
            UpstreamError: it cannot be had.
        """
        if self._index is None:
            try:
                self.prepare()
            except Unavailable as error:
                raise self._lost(error) from error
        assert self._index is not None
        return self._index

    def members(self) -> Collection[str]:
        """Paths of the Python files."""
        return self.index.rows.keys()

    def licences(self) -> Collection[str]:
        """Names of the licence files."""
        return self.index.licences.keys()

    def prepare(self) -> None:
        """Load the member table.

        Raises:
            Unavailable: the artifact cannot be had.
            UpstreamError: it fails verification.
        """
        if self._index is None:
            index = self._kept()
            if index is None:
                if self.request.options.offline:
                    raise Unavailable("cache", f"the member table of {self.artifact.file} is not there")
                index = self._read_index()
            self._use(index)

    def _use(self, index: MemberIndex) -> None:
        """Take `index`, narrowed to the packages that the pin names, if it names any."""
        if self.request.pin.packages:
            tops = self.request.packages
            rows = {
                p: row for p, row in index.rows.items() if any(p == f"{t}.py" or p.startswith(f"{t}/") for t in tops)
            }
            index = replace(index, rows=rows)
        self._index = index

    @property
    def _key(self) -> tuple[str, ...]:
        """Where the member table is kept; that of an sdist depends on which packages are taken from it."""
        if self.artifact.file.endswith(".whl"):
            return "members", self._sha256
        return "members", self._sha256, " ".join(self.request.packages)

    def is_kept(self) -> bool:
        """Whether the cache has a member table for this artifact."""
        return self.request.options.store.has_document(*self._key)

    def _kept(self) -> MemberIndex | None:
        kept = self.request.options.store.document(*self._key)
        try:
            return _checked(MemberIndex(**kept), self.request) if kept is not None else None
        except TypeError:  # written by another version of the tool
            return None

    def load(self, paths: Collection[str]) -> Mapping[str, bytes]:
        """Verified members, from the cache or the artifact."""
        store, locked = self.request.options.store, self.request.locked
        found: dict[str, bytes] = {}
        missing: list[str] = []
        for path in paths:
            data = self._whole.get(path)
            if data is None:
                # What the lock names needs no member table: content is its own proof.
                digest = f"sha256:{locked[path]}" if path in locked else self.index.digest(path)
                data = store.blob(digest)
            if data is None:
                missing.append(path)
            else:
                found[path] = data
        if missing:
            for path in missing:
                if self.index.row(path) is None:
                    raise self._no_file(path)
            if self.request.options.offline:
                more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
                raise offline(f"{missing[0]}{more} of {self.request.label} is not in the cache", path=missing[0])
            try:
                found.update(self._fetch(missing))
            except Unavailable as error:
                raise self._lost(error, missing[0]) from error
        return found

    # ---- getting it ---------------------------------------------------------------------------------------------

    def _read_index(self) -> MemberIndex:
        file = self._located()
        if file.is_wheel and self._by_range(file):
            try:
                reader = _RangeReader(self.request.options.network, file, self.stats)
                index = _checked(read_wheel(reader.read, reader.size, file.filename, self.request), self.request)
            except RangesRefused as error:
                self._no_ranges(file, error)
                raise Unavailable("wheel", f"{redact(file.url)}: {error.reason}") from error
            except FetchError as error:
                raise Unavailable("wheel", error.reason) from error
            self.request.options.store.put_document(index.to_json(), *self._key)
            return index
        return self._read_whole(file, ())

    def _fetch(self, missing: Sequence[str]) -> Mapping[str, bytes]:
        index, store = self.index, self.request.options.store
        file = self._located()
        found: dict[str, bytes] = {}
        if file.is_wheel and self._by_range(file):
            try:
                for path, chunk in self._chunks(file, missing):
                    found[path] = index.verify(path, archives.extract(index.zip_member(path), chunk, file.filename))
                    store.put(index.digest(path), found[path])
            except RangesRefused as error:
                self._no_ranges(file, error)
            except FetchError as error:
                raise Unavailable("wheel", error.reason) from error
        rest = [path for path in missing if path not in found]
        if rest:
            self._read_whole(file, rest)
            for path in rest:
                found[path] = index.verify(path, self._whole[path])
        return found

    def _by_range(self, file: IndexFile) -> bool:
        small = file.size is not None and file.size <= SMALL
        return not small and self.request.options.network.no_ranges.isdisjoint({file.url, urlsplit(file.url).netloc})

    def _no_ranges(self, file: IndexFile, error: RangesRefused) -> None:
        self.request.options.network.no_ranges.add(urlsplit(file.url).netloc if error.everywhere else file.url)

    def _read_whole(self, file: IndexFile, wanted: Sequence[str]) -> MemberIndex:
        """Download, verify, and keep all Python files; only one process at a time does this for one artifact.

        Returns:
            The member table; the `wanted` files are in `_whole` afterwards.
        """
        store = self.request.options.store
        with store.lock(self._sha256):
            kept = self._kept()
            if kept is not None:
                # Another process may have done it while this one waited.
                found = {path: data for path in wanted if (data := store.blob(kept.digest(path))) is not None}
                if len(found) == len(wanted):
                    self._whole.update(found)
                    return kept
            with downloaded(self.request.options, file, self._sha256, self.stats) as archive:
                index, files = self._unpacked(file, archive)
            for path, data in files.items():
                store.put(index.digest(path), data)
            store.put_document(index.to_json(), *self._key)
            self._whole = files
            return index

    def _unpacked(self, file: IndexFile, archive: IO[bytes]) -> tuple[MemberIndex, dict[str, bytes]]:
        if file.is_wheel:
            return unpack_wheel(archive, file.filename, self.request)
        files, licences = read_sdist(archive, file.filename, self.request)
        tables = [{path: [digest_of("sha256", d), len(d)] for path, d in found.items()} for found in (files, licences)]
        pin = self.request.pin
        index = MemberIndex("sdist", file.filename, canonicalize_name(pin.distribution), pin.version, None, *tables)
        return index, {**files, **licences}

    def _chunks(self, file: IndexFile, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of each member; neighbours come in one request, several requests run side by side."""
        index, options = self.index, self.request.options
        groups: list[list[str]] = []
        start = end = 0
        for path in sorted(paths, key=lambda p: index.zip_member(p).start):
            member = index.zip_member(path)
            if groups and member.start <= end + _GAP and member.end - start <= _RANGE:
                groups[-1].append(path)
            else:
                groups.append([path])
                start = member.start
            end = member.end
        spans = [(index.zip_member(g[0]).start, index.zip_member(g[-1]).end) for g in groups]
        total = sum(end - start for start, end in spans)
        network, progress = options.network, options.progress if total >= _PROGRESS_FROM else None

        def fetch(span: tuple[int, int]) -> bytes:
            return _exact(network, file, span[0], span[1], self.stats)

        with _shown(progress, total):
            for group, span, data in zip(groups, spans, _parallel(fetch, spans), strict=True):
                if progress is not None:
                    progress.advance(len(data))
                for path in group:
                    member = index.zip_member(path)
                    yield path, data[member.start - span[0] : member.end - span[0]]

    def _located(self) -> IndexFile:
        """Where the artifact lies; asked of the index only when something must be fetched."""
        if self._file is None:
            self._file = next(iter(candidates(self.request)))
        return self._file

    def _lost(self, error: Unavailable, path: str | None = None) -> UpstreamError:
        if self.request.options.offline:
            return offline(f"{self.artifact.file} of {self.request.label} is not in the cache", path=path)
        return unreachable(
            f"{path or self.artifact.file} of {self.request.label} cannot be fetched",
            path=path,
            details=tuple(f"{source}: {reason}" for source, reason in error.attempts),
        )


def _checked(index: MemberIndex, request: Request) -> MemberIndex:
    """`index`, if it is of the pinned release."""
    if index.distribution != canonicalize_name(request.pin.distribution):
        raise mismatch(f"{index.file} is of {index.distribution}, but {request.label} is pinned")
    from packaging.version import Version

    if Version(index.version) != request.version:
        raise mismatch(f"{index.file} is {index.distribution} {index.version}, but {request.label} is pinned")
    return index


class _RangeReader:
    """Random access to a remote file; keeps the tail, so that a small directory costs one request."""

    def __init__(self, network: Network, file: IndexFile, stats: Stats) -> None:
        self._network, self._file, self._stats = network, file, stats
        self.size = file.size or network.range(file.url, 0, 1, stats)[1]
        self._start, self._data = self.size, b""

    def read(self, start: int, end: int) -> bytes:
        """The bytes from one offset to another, neither more nor fewer."""
        if start >= end:
            return b""
        if start < self._start < end <= self._start + len(self._data):
            self._data = self._get(start, self._start) + self._data  # the part in front of what is there
            self._start = start
        elif not self._start <= start <= end <= self._start + len(self._data):
            self._start, self._data = start, self._get(start, end)
        return self._data[start - self._start : end - self._start]

    def _get(self, start: int, end: int) -> bytes:
        return _exact(self._network, self._file, start, end, self._stats)


def _exact(network: Network, file: IndexFile, start: int, end: int, stats: Stats) -> bytes:
    data, total = network.range(file.url, start, end, stats)
    if file.size is not None and total != file.size:
        raise corrupt(
            f"{file.filename} is not the file the index describes",
            details=(f"index: {file.size} bytes", f"found: {total} bytes", f"from:  {redact(file.url)}"),
        )
    return data


def file_reader(file: IO[bytes]) -> archives.Reader:
    """Random access to a local file."""

    def read(start: int, end: int) -> bytes:
        file.seek(start)
        return file.read(end - start)

    return read


def unpack_wheel(archive: IO[bytes], name: str, request: Request) -> tuple[MemberIndex, dict[str, bytes]]:
    """All Python and licence files of a wheel at hand.

    Raises:
        UpstreamError: it is no sound wheel, or of another release.
    """
    read = file_reader(archive)
    index = read_wheel(read, archive.seek(0, os.SEEK_END), name, request)
    files = {}
    for path in (*index.rows, *index.licences):
        member = index.zip_member(path)
        files[path] = index.verify(path, archives.extract(member, read(member.start, member.end), name))
    return index, files


@contextmanager
def downloaded(options: SourceOptions, file: IndexFile, sha256: str, stats: Stats) -> Iterator[IO[bytes]]:
    """The whole artifact as an open file, verified.

    Args:
        options: where upstreams may come from.
        file: the artifact, as the index has it.
        sha256: the digest that it must have, hex.
        stats: counts the traffic.

    Raises:
        Unavailable: it cannot be had.
        UpstreamError: its sha256 is not the index's (PK403).
    """
    kind = "wheel" if file.is_wheel else "sdist"
    with options.store.scratch() as folder, open(folder / "artifact", "w+b") as archive:
        try:
            options.network.download(file.url, archive, stats, size=file.size, progress=options.progress)
        except FetchError as error:
            raise Unavailable(kind, error.reason) from error
        except OSError as error:
            raise Unavailable(kind, f"cannot be stored in {folder}: {error.strerror or error}") from error
        archive.seek(0)
        found = sha256_of_file(archive)
        if found != sha256:
            raise corrupt(
                f"{file.filename} is not the file the index describes",
                details=(
                    f"index: sha256 {sha256}",
                    f"found: sha256 {found}",
                    f"from:  {redact(file.url)}",
                ),
            )
        archive.seek(0)
        yield archive


def candidates(request: Request) -> list[IndexFile]:
    """The artifacts of the pinned release, best first; only the locked one when the lock names it.

    Raises:
        Unavailable: no index has the release, or none can be asked.
        UpstreamError: the index offers other bytes under the locked name (PK402).
    """
    from afd_patchkit.upstream.simple import of_release, project_files, versions

    options, distribution = request.options, request.pin.distribution
    if options.index.disabled:
        raise Unavailable("index", options.index.disabled)
    attempts: list[tuple[str, str]] = []
    for index in options.index.urls:
        try:
            files = project_files(options.network, index, distribution, request.stats)
            release = of_release(files, distribution, request.version)
            if release:
                remember(request, index, release)
                return _locked_only(request, release)
            known = ", ".join(str(v) for v in versions(files, distribution)[:5])
            attempts.append(
                ("index", f"{redact(index)} has no {distribution} {request.version}; newest: {known or 'none'}")
            )
        except FetchError as error:
            attempts.append(("index", f"no such project: {error.reason}" if error.status == 404 else error.reason))
            if error.status != 404 and request.artifact is None:
                break  # without a locked digest the next index might have something else under this name
        except Unavailable as error:
            attempts.extend(error.attempts)
    raise Unavailable.several(attempts or [("index", "none is configured")])


def remember(request: Request, index: str, release: list[IndexFile]) -> None:
    """Keep what the index said, for `--offline`."""
    value = {"files": [file.to_json() for file in release]}
    request.options.store.put_document(value, *_release_key(request, index))


def remembered(request: Request) -> list[IndexFile]:
    """What an index said about the release in an earlier run; for `--offline` only."""
    for index in request.options.index.urls:
        kept = request.options.store.document(*_release_key(request, index))
        if kept is not None:
            try:
                return _locked_only(request, [IndexFile(**file) for file in kept["files"]])
            except (KeyError, TypeError):
                continue
    return []


def _release_key(request: Request, index: str) -> tuple[str, ...]:
    where = short(redact(index).rstrip("/"), 16)
    return "releases", where, canonicalize_name(request.pin.distribution), str(request.version)


def _locked_only(request: Request, release: list[IndexFile]) -> list[IndexFile]:
    locked = request.artifact
    if locked is None or locked.sha256 is None:
        return release
    for file in release:
        if file.filename == locked.file:
            if file.sha256 is not None and file.sha256 != locked.sha256:
                raise mismatch(
                    f"the index offers {file.filename} with other content than the locked one ({request.label})",
                    details=(f"locked: sha256 {locked.sha256}", f"index:  sha256 {file.sha256}"),
                )
            return [file]
    same = [file for file in release if file.sha256 == locked.sha256]
    if not same:
        offered = ", ".join(file.filename for file in release)
        raise Unavailable("index", f"the locked {locked.file} is not offered any more; there are {offered}")
    return same


@contextmanager
def _shown(progress: Progress | None, total: int) -> Iterator[None]:
    if progress is None:
        yield
        return
    progress.start(total)
    try:
        yield
    finally:
        progress.done()


def _parallel(fetch: object, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Results in order; the first failure stops what has not begun."""
    assert callable(fetch)
    if len(spans) == 1:
        yield fetch(spans[0])
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="fetch") as pool:
        futures = [pool.submit(fetch, span) for span in spans]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()
