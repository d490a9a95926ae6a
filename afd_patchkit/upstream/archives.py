"""Zip and tar read defensively: members by name and limits, never extracted to disk, nothing executed.

The zip reader is our own so that it can work on ranges of a remote file, and so that what it accepts does not depend on
the Python version: no prepended data, no overlapping or duplicate members, stored or deflated, not encrypted.
"""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from afd_patchkit.upstream.failures import refused

if TYPE_CHECKING:
    import tarfile

Reader = Callable[[int, int], bytes]
"""`read(start, end)` gives exactly the bytes of that half-open range."""

MAX_MEMBERS = 250_000
MAX_DIRECTORY = 128 * 2**20
MAX_MEMBER = 64 * 2**20
MAX_PATH = 1024
TAIL = 65_557  # the longest end record: 22 bytes and a comment
SHORT_TAIL = 8_192  # holds the end record of any wheel without an absurd comment

_EOCD = struct.Struct("<4s4H2LH")
_EOCD64_LOCATOR = struct.Struct("<4sLQL")
_EOCD64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LOCAL_SLACK = 30 + 2 * 0xFFFF
_DEFLATE_LIMIT = 1_032  # deflate cannot expand more than this


@dataclass(frozen=True, slots=True)
class ZipMember:
    """One file of a zip; `start` to `end` holds at least its local header and its data."""

    name: str
    start: int
    end: int
    compressed: int
    size: int
    method: int
    crc: int


def safe_name(name: str, archive: str) -> str:
    """`name` without a trailing slash.

    Raises:
        UpstreamError: it is absolute, leaves the archive, or is no portable path (PK407).
    """
    if "\0" in name or len(name) > MAX_PATH:
        raise refused(archive, f"a member name of {len(name)} characters or with a NUL byte")
    plain = name[:-1] if name.endswith("/") else name
    if plain.startswith("/") or plain[1:2] == ":":
        raise refused(archive, f"absolute member path {name!r}", path=name)
    if "\\" in plain:
        raise refused(archive, f"backslash in the member path {name!r}", path=name)
    if any(part in {"", ".", ".."} for part in plain.split("/")):
        raise refused(archive, f"member path {name!r} is empty or leaves the archive", path=name)
    return plain


# ---- zip ------------------------------------------------------------------------------------------------------


def read_directory(read: Reader, size: int, archive: str) -> list[ZipMember]:
    """The files of a zip of `size` bytes, from its central directory (zip64 included).

    Raises:
        UpstreamError: no zip, damaged, or nothing an honest build makes (PK407).
    """
    count, offset, length = _locate(read, size, archive)
    members: list[ZipMember] = []
    seen: set[str] = set()
    for member, mode in _entries(read(offset, offset + length), count, offset, archive):
        name = safe_name(member.name, archive)
        if name in seen:
            raise refused(archive, f"two members are called {name!r}", path=name)
        seen.add(name)
        kind = stat.S_IFMT(mode)
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            raise refused(archive, f"member {name!r} is a link or a device", path=name)
        if not member.name.endswith("/") and kind != stat.S_IFDIR:
            members.append(member)
    members.sort(key=lambda m: m.start)
    return [
        _bounded(m, members[i + 1].start if i + 1 < len(members) else offset, archive) for i, m in enumerate(members)
    ]


def _locate(read: Reader, size: int, archive: str) -> tuple[int, int, int]:
    """Number of entries, offset and length of the central directory."""
    for length in (SHORT_TAIL, TAIL):
        first = max(0, size - length)
        tail = read(first, size)
        at = _end_record(tail)
        if at >= 0 or first == 0:
            break
    if at < 0:
        raise refused(archive, "not a zip file, or its end is damaged")
    _, disk, start_disk, here, count, length, offset, _ = _EOCD.unpack_from(tail, at)
    end = first + at
    if (disk, start_disk) not in {(0, 0), (0xFFFF, 0xFFFF)} or here != count:
        raise refused(archive, "a zip in several parts")
    locator_at = end - _EOCD64_LOCATOR.size
    if locator_at >= 0:
        signature, _, end64, disks = _EOCD64_LOCATOR.unpack(read(locator_at, end))
        if signature == b"PK\6\7":
            if disks > 1 or end64 + _EOCD64.size > locator_at:
                raise refused(archive, "damaged zip64 end record")
            fields = _EOCD64.unpack(read(end64, end64 + _EOCD64.size))
            if fields[0] != b"PK\6\6":
                raise refused(archive, "damaged zip64 end record")
            count, length, offset, end = fields[7], fields[8], fields[9], end64
    if offset + length != end:
        raise refused(archive, "its central directory is not where the end record says")
    if length > MAX_DIRECTORY or count > MAX_MEMBERS or count * _CENTRAL.size > length:
        raise refused(archive, f"its central directory is absurd: {count} members in {length} bytes")
    return count, offset, length


def _end_record(tail: bytes) -> int:
    """Offset of the end record in `tail`, or -1; its comment must reach to the very end."""
    at = len(tail)
    while (at := tail.rfind(b"PK\5\6", 0, at)) >= 0:
        if at + _EOCD.size <= len(tail) and at + _EOCD.size + _EOCD.unpack_from(tail, at)[7] == len(tail):
            return at
    return -1


def _entries(data: bytes, count: int, limit: int, archive: str) -> Iterator[tuple[ZipMember, int]]:
    """Central directory entries, each with its Unix mode; `limit` is where the directory starts."""
    at = 0
    for _ in range(count):
        if at + _CENTRAL.size > len(data):
            raise refused(archive, "its central directory is cut off")
        (
            signature,
            made_by,
            _,
            flags,
            method,
            _,
            _,
            crc,
            compressed,
            size,
            name_len,
            extra_len,
            comment_len,
            _,
            _,
            attrs,
            start,
        ) = _CENTRAL.unpack_from(data, at)
        at += _CENTRAL.size
        if signature != b"PK\1\2" or at + name_len + extra_len + comment_len > len(data):
            raise refused(archive, "its central directory is damaged")
        try:
            name = data[at : at + name_len].decode("utf-8" if flags & 0x800 else "cp437")
        except UnicodeDecodeError:
            raise refused(archive, "a member name that is not UTF-8") from None
        size, compressed, start = _zip64(
            data[at + name_len : at + name_len + extra_len], size, compressed, start, archive
        )
        at += name_len + extra_len + comment_len
        if flags & 0x2041:
            raise refused(archive, f"member {name!r} is encrypted", path=name)
        if start + _LOCAL.size + compressed > limit:
            raise refused(archive, f"member {name!r} lies outside the archive", path=name)
        mode = attrs >> 16 if made_by >> 8 == 3 else 0
        yield ZipMember(name, start, start, compressed, size, method, crc), mode
    if at != len(data):
        raise refused(archive, "its central directory holds more than its members")


def _zip64(extra: bytes, size: int, compressed: int, start: int, archive: str) -> tuple[int, int, int]:
    """Fill in the values that a zip64 extra field carries."""
    wanted = [value == 0xFFFFFFFF for value in (size, compressed, start)]
    if not any(wanted):
        return size, compressed, start
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        at += 4
        if kind == 1:
            if length < 8 * sum(wanted) or at + length > len(extra):
                break
            values = iter(struct.unpack_from(f"<{sum(wanted)}Q", extra, at))
            size, compressed, start = (
                next(values) if want else old for want, old in zip(wanted, (size, compressed, start), strict=True)
            )
            return size, compressed, start
        at += length
    raise refused(archive, "a member's zip64 field is missing or damaged")


def _bounded(member: ZipMember, next_start: int, archive: str) -> ZipMember:
    least = member.start + _LOCAL.size + member.compressed
    if least > next_start:
        raise refused(archive, f"member {member.name!r} overlaps the next one", path=member.name)
    end = min(next_start, least + _LOCAL_SLACK)
    return replace(member, end=end)


def extract(member: ZipMember, chunk: bytes, archive: str) -> bytes:
    """The content of `member`, given the bytes from its `start` to its `end`.

    Raises:
        UpstreamError: it is not what the central directory declares (PK407).
    """
    name = member.name
    if member.size > MAX_MEMBER or member.size > member.compressed * _DEFLATE_LIMIT + 64:
        raise refused(archive, f"member {name!r} declares {member.size} bytes from {member.compressed}", path=name)
    if len(chunk) < _LOCAL.size:
        raise refused(archive, f"member {name!r} is cut off", path=name)
    signature, _, flags, method, *_, name_len, extra_len = _LOCAL.unpack_from(chunk)
    start = _LOCAL.size + name_len + extra_len
    local = chunk[_LOCAL.size : _LOCAL.size + name_len]
    if signature != b"PK\3\4" or method != member.method or flags & 0x2041:
        raise refused(archive, f"the local header of {name!r} contradicts the central directory", path=name)
    if local.decode("utf-8" if flags & 0x800 else "cp437", "replace") != name:
        raise refused(archive, f"the local header of {name!r} names another file", path=name)
    data = chunk[start : start + member.compressed]
    if len(data) != member.compressed:
        raise refused(archive, f"member {name!r} is cut off", path=name)
    if method == 8:
        data = _inflate(data, member, archive)
    elif method != 0:
        raise refused(archive, f"member {name!r} uses the unsupported compression method {method}", path=name)
    if len(data) != member.size:
        raise refused(archive, f"member {name!r} declares {member.size} bytes but holds {len(data)}", path=name)
    if zlib.crc32(data) != member.crc:
        raise refused(archive, f"member {name!r} fails its checksum (CRC)", path=name)
    return data


def _inflate(data: bytes, member: ZipMember, archive: str) -> bytes:
    engine = zlib.decompressobj(-15)
    try:
        # One byte more than declared is enough to see a lie; a bomb never unfolds.
        out = engine.decompress(data, member.size + 1)
    except zlib.error as error:
        raise refused(archive, f"member {member.name!r} is damaged: {error}", path=member.name) from None
    if len(out) > member.size:
        raise refused(
            archive, f"member {member.name!r} holds more than the {member.size} bytes it declares", path=member.name
        )
    if not engine.eof:
        # An empty result can leave the end-of-stream marker unread.
        try:
            more = engine.decompress(engine.unconsumed_tail, 1)
        except zlib.error as error:
            raise refused(archive, f"member {member.name!r} is damaged: {error}", path=member.name) from None
        if more or not engine.eof:
            raise refused(archive, f"member {member.name!r} is damaged: its data does not end", path=member.name)
    return out


# ---- tar ------------------------------------------------------------------------------------------------------


class _Limited:
    """A gzip stream that refuses to unfold without end."""

    def __init__(self, file: IO[bytes], compressed: int, archive: str) -> None:
        self._file, self._archive = file, archive
        self._engine = zlib.decompressobj(31)
        self._left = 64 * 2**20 + 200 * compressed
        self._pending = b""

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer at the end."""
        out = bytearray()
        while len(out) < size:
            data = self._pending
            if self._engine.eof:
                data = self._engine.unused_data or self._file.read(65_536)
                if not data.strip(b"\0"):
                    break
                self._engine = zlib.decompressobj(31)  # the next gzip member
            elif not data:
                data = self._file.read(65_536)
            try:
                piece = self._engine.decompress(data, size - len(out))
            except zlib.error as error:
                raise refused(self._archive, f"damaged: {error}") from None
            self._pending = self._engine.unconsumed_tail
            if not data and not piece and not self._engine.eof:
                raise refused(self._archive, "the compressed stream is cut off")
            self._left -= len(piece)
            if self._left < 0:
                raise refused(self._archive, "it unfolds to an absurd size (compression bomb)")
            out += piece
        return bytes(out)


def read_tar_gz(
    file: IO[bytes], compressed: int, archive: str, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, bytes]]:
    """The regular files of a `.tar.gz` whose path is `wanted`, in archive order.

    Links that stay inside are passed over (nothing is ever followed or written); links that leave, devices and the like
    end the reading.

    Args:
        file: the archive.
        compressed: its size in bytes.
        archive: its name, for findings.
        wanted: whether a path is to be read.

    Raises:
        UpstreamError: damaged, or nothing an honest build makes (PK407).
    """
    import tarfile

    seen: set[str] = set()
    try:
        with tarfile.open(fileobj=_Limited(file, compressed, archive), mode="r|", errorlevel=2) as tar:  # type: ignore[call-overload]
            for member in tar:
                name = safe_name(member.name, archive)
                if len(seen) >= MAX_MEMBERS:
                    raise refused(archive, f"more than {MAX_MEMBERS} members")
                if member.isdir():
                    continue
                if name in seen:
                    raise refused(archive, f"two members are called {name!r}", path=name)
                seen.add(name)
                if member.issym() or member.islnk():
                    _check_link(member, name, archive)
                elif not member.isreg() or member.issparse():
                    raise refused(archive, f"member {name!r} is a device or of an unknown kind", path=name)
                elif wanted(name):
                    if member.size > MAX_MEMBER:
                        raise refused(archive, f"member {name!r} declares {member.size} bytes", path=name)
                    stream = tar.extractfile(member)
                    data = stream.read() if stream is not None else b""
                    if len(data) != member.size:
                        raise refused(archive, f"member {name!r} is cut off", path=name)
                    yield name, data
    except (tarfile.TarError, struct.error, EOFError, ValueError, OverflowError) as error:
        raise refused(archive, f"damaged: {error}") from None


def _check_link(member: tarfile.TarInfo, name: str, archive: str) -> None:
    target = member.linkname
    base = name.split("/")[:-1] if member.issym() else []
    depth = len(base)
    if target.startswith("/") or "\\" in target or target[1:2] == ":":
        depth = -1
    for part in target.split("/"):
        up = part == ".."
        depth += -1 if up else part not in {"", "."}
        if depth < (1 if up else 0):
            raise refused(archive, f"member {name!r} is a link out of the archive", path=name)
