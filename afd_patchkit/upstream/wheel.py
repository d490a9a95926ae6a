"""What a wheel says about its own files: `RECORD`, and where each file lies in the zip."""

from __future__ import annotations

import base64
import binascii
import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from afd_patchkit.digests import sha256
from afd_patchkit.upstream import archives
from afd_patchkit.upstream.archives import Reader, ZipMember
from afd_patchkit.upstream.cache import digest_of, matches
from afd_patchkit.upstream.failures import corrupt, mismatch, refused
from afd_patchkit.upstream.licences import in_wheel
from afd_patchkit.upstream.verified import Request

_STRONG = {"sha256", "sha384", "sha512"}


@dataclass(frozen=True)
class MemberIndex:
    """The Python files of one artifact; kept in the cache under the artifact's sha256.

    Attributes:
        kind: `wheel` or `sdist`.
        file: the artifact's file name.
        distribution: its normalised name.
        version: as its file name or metadata says.
        record: digest of a wheel's `RECORD`.
        rows: path to `[digest, size]`, for wheels followed by the place in the zip, and by the member's name where it
            is not the path. Plain lists, because thousands of them are read from JSON on every run.
        licences: the same for licence files, by name.
    """

    kind: str
    file: str
    distribution: str
    version: str
    record: str | None
    rows: Mapping[str, list[Any]]
    licences: Mapping[str, list[Any]]

    def row(self, path: str) -> list[Any] | None:
        """What is known of a file, or of a licence file by name."""
        return self.rows.get(path) or self.licences.get(path)

    def digest(self, path: str) -> str:
        """The digest that a file must have."""
        return str((self.row(path) or self.rows[path])[0])

    def to_json(self) -> dict[str, Any]:
        """As plain data, for the cache."""
        return dict(vars(self))

    def zip_member(self, path: str) -> ZipMember:
        """Where a file lies in the wheel."""
        _, size, start, end, compressed, method, crc, *name = self.row(path) or self.rows[path]
        return ZipMember(name[0] if name else path, start, end, compressed, size, method, crc)

    def verify(self, path: str, data: bytes) -> bytes:
        """`data`, if it is what `RECORD` says.

        Raises:
            UpstreamError: it is not (PK403).
        """
        digest = self.digest(path)
        if not matches(digest, data):
            found = digest_of(digest.partition(":")[0], data)
            raise corrupt(
                f"{path} in {self.file} is not the file its RECORD describes",
                path=path,
                details=(f"RECORD: {digest}", f"found:  {found}"),
            )
        return data


def read_wheel(read: Reader, size: int, archive: str, request: Request) -> MemberIndex:
    """The index of a wheel, given access to its bytes.

    Args:
        read: gives the bytes from one offset to another.
        size: size of the wheel in bytes.
        archive: its name, for findings.
        request: the pin that is opened.

    Raises:
        UpstreamError: it is no sound wheel (PK403, PK407) or not of the pinned release (PK402).
    """
    members = archives.read_directory(read, size, archive)
    records = [m for m in members if m.name.endswith(".dist-info/RECORD") and m.name.count("/") == 1]
    if len(records) != 1:
        raise refused(archive, f"a wheel has one .dist-info/RECORD, this has {len(records)}")
    info = records[0].name.partition("/")[0].removesuffix(".dist-info")
    name, _, version = info.rpartition("-")
    check_identity(request, archive, name, version)
    raw = archives.extract(records[0], read(records[0].start, records[0].end), archive)
    digests = parse_record(raw, archive)
    data_folder = f"{info}.data/"
    rows: dict[str, list[Any]] = {}

    def row(member: ZipMember, path: str) -> list[Any]:
        digest = digests.get(member.name)
        if digest is None:
            raise corrupt(f"{member.name} in {archive} has no usable digest in RECORD", path=member.name)
        found = [digest, member.size, member.start, member.end, member.compressed, member.method, member.crc]
        return found if path == member.name else [*found, member.name]

    for member in members:
        path = member.name
        for scheme in ("purelib/", "platlib/"):
            path = path.removeprefix(data_folder + scheme)
        if not path.endswith(".py") or path.startswith(data_folder):
            continue
        if path in rows:
            raise refused(archive, f"two members install {path!r}", path=path)
        rows[path] = row(member, path)
    by_name = {member.name: member for member in members}
    found = in_wheel(by_name, f"{info}.dist-info", archive)
    kept = {licence: row(by_name[path], licence) for licence, path in found.items()}
    record = "sha256:" + sha256(raw)
    return MemberIndex("wheel", archive, canonicalize_name(name), version, record, rows, kept)


def parse_record(raw: bytes, archive: str) -> dict[str, str]:
    """Path to `algorithm:hex` for all rows of a `RECORD` with a digest that can be trusted.

    Raises:
        UpstreamError: it is not a RECORD, or contradicts itself (PK403).
    """
    digests: dict[str, str] = {}
    try:
        rows = list(csv.reader(io.StringIO(raw.decode("utf-8"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise corrupt(f"RECORD of {archive} cannot be read: {error}") from None
    for row in rows:
        if len(row) < 2 or not row[1]:
            continue
        path, (algorithm, _, value) = row[0], row[1].partition("=")
        if algorithm not in _STRONG:
            continue
        try:
            digest = f"{algorithm}:{base64.urlsafe_b64decode(value + '=' * (-len(value) % 4)).hex()}"
        except (binascii.Error, ValueError):
            raise corrupt(f"RECORD of {archive} holds a broken digest for {path}", path=path) from None
        if digests.setdefault(path, digest) != digest:
            raise corrupt(f"RECORD of {archive} gives two digests for {path}", path=path)
    return digests


def check_identity(request: Request, archive: str, name: str, version: str, *, public: bool = False) -> None:
    """Refuse an artifact of another distribution or release; `public` lets local versions pass.

    Args:
        request: the pin that is opened.
        archive: name of the artifact, for findings.
        name: the distribution that it says it is.
        version: the version that it says it is.
        public: local parts of versions (`+cpu`) do not count.

    Raises:
        UpstreamError: it is another one (PK402).
    """
    from packaging.version import InvalidVersion, Version

    try:
        found = Version(version)
    except InvalidVersion:
        raise mismatch(f"{archive} has the impossible version {version!r}; {request.label} is pinned") from None
    same = found == request.version or (public and Version(found.public) == Version(request.version.public))
    if canonicalize_name(name) != canonicalize_name(request.pin.distribution) or not same:
        raise mismatch(f"{archive} is {name} {version}, but {request.label} is pinned")
