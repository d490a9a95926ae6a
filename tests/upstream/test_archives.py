"""Archives: what is read equals what the standard library reads; what no honest build makes is refused."""

from __future__ import annotations

import contextlib
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.upstream import archives
from tests.upstream.conftest import code
from tests.upstream.packages import make_tar


def reader(data: bytes) -> archives.Reader:
    return lambda start, end: data[start:end]


def unzip(data: bytes) -> dict[str, bytes]:
    members = archives.read_directory(reader(data), len(data), "x.whl")
    return {m.name: archives.extract(m, data[m.start : m.end], "x.whl") for m in members}


def make_zip(members: dict[str, bytes], **options: object) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", **options) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, options.get("compression"))
    return out.getvalue()


names = st.lists(st.sampled_from(["a", "bé", "c.py", "d_1"]), min_size=1, max_size=3).map("/".join)


@given(
    members=st.dictionaries(names, st.binary(max_size=300), max_size=6),
    method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
    comment=st.binary(max_size=40),
)
def test_reads_what_zipfile_writes(members: dict[str, bytes], method: int, comment: bytes) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.comment = comment.replace(b"PK", b"pk")
        for name, data in members.items():
            archive.writestr(name, data)
    assert unzip(out.getvalue()) == members


def test_zip64() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("big.py", "w", force_zip64=True) as file:
        file.write(b"x = 1\n")
    data = bytearray(out.getvalue())
    # Let the directory carry zip64 values too, as for archives beyond 4 GiB.
    at = data.index(b"PK\1\2")
    central = bytearray(data[at : data.index(b"PK\5\6")])
    name_len, extra_len = struct.unpack_from("<HH", central, 28)
    assert extra_len == 0
    extra = struct.pack("<HHQQQ", 1, 24, 6, 6, 0)
    struct.pack_into("<LL", central, 20, 0xFFFFFFFF, 0xFFFFFFFF)
    struct.pack_into("<L", central, 42, 0xFFFFFFFF)
    struct.pack_into("<H", central, 30, len(extra))
    central[46 + name_len : 46 + name_len] = extra
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(central), at)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at + len(central), 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    assert unzip(bytes(data[:at] + central + end64 + locator + end)) == {"big.py": b"x = 1\n"}
    broken = end64.replace(b"PK\6\6", b"PK\6\5")
    with pytest.raises(UpstreamError, match="zip64"):
        unzip(bytes(data[:at] + central + broken + locator + end))


def test_end_record_in_a_comment_is_not_believed() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.comment = b"PK\5\6" + bytes(18) + b"tail"
        archive.writestr("a.py", b"1\n")
    assert unzip(out.getvalue()) == {"a.py": b"1\n"}


def test_long_comment() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.comment = b"c" * 60_000
        archive.writestr("a.py", b"1\n")
    assert unzip(out.getvalue()) == {"a.py": b"1\n"}


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("/etc/passwd", "absolute"),
        ("C:/x.py", "absolute"),
        ("a/../../x.py", "leaves"),
        ("../x.py", "leaves"),
        ("./x.py", "leaves"),
        ("a//x.py", "empty"),
        ("a\\x.py", "backslash"),
        ("a/" + "x" * 2000, "2002 characters"),
    ],
)
def test_evil_names(name: str, word: str) -> None:
    with pytest.raises(UpstreamError, match=word) as zipped:
        unzip(make_zip({name: b"x"}))
    assert code(zipped) == "PK407"
    data = make_tar({name: b"x"})
    with pytest.raises(UpstreamError, match=word) as tarred:
        list(archives.read_tar_gz(io.BytesIO(data), len(data), "x.tar.gz", lambda _: True))
    assert code(tarred) == "PK407"


def twice() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.py", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.py", b"2")
    return out.getvalue()


def symlink() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("a.py")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        archive.writestr(info, b"/etc/passwd")
    return out.getvalue()


def patched(offset: int, form: str, *values: int, local: bool = False, central: bool = True) -> Callable[[], bytes]:
    """A one-member zip with fields of its headers overwritten (`offset` counts in the central one)."""

    def make() -> bytes:
        data = bytearray(make_zip({"a.py": b"x = 1\n" * 50}, compression=zipfile.ZIP_DEFLATED))
        if central:
            struct.pack_into(form, data, data.index(b"PK\1\2") + offset, *values)
        if local:
            struct.pack_into(form, data, offset - 2, *values)
        return bytes(data)

    return make


def bomb() -> bytes:
    """Declares little, holds much."""
    data = bytearray(make_zip({"a.py": bytes(5_000_000)}, compression=zipfile.ZIP_DEFLATED))
    struct.pack_into("<L", data, data.index(b"PK\1\2") + 24, 1000)
    return bytes(data)


def overlapping() -> bytes:
    data = bytearray(make_zip({"a.py": b"1" * 40, "b.py": b"2" * 40}))
    second = data.index(b"PK\1\2", data.index(b"PK\1\2") + 4)
    struct.pack_into("<L", data, second + 42, 10)
    return bytes(data)


def renamed_inside() -> bytes:
    return make_zip({"a.py": b"x"}).replace(b"a.py", b"b.py", 1)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: b"", "not a zip"),
        (lambda: b"PK\5\6" + bytes(10), "not a zip"),
        (lambda: b"junk" + make_zip({"a.py": b"x"}), "not where the end record says"),
        (lambda: make_zip({"a.py": b"x"})[:-4], "not a zip"),
        (twice, "two members"),
        (symlink, "link or a device"),
        (bomb, "holds more than the 1000 bytes"),
        (overlapping, "overlaps"),
        (renamed_inside, "names another file"),
        (patched(8, "<H", 1), "encrypted"),
        (patched(8, "<H", 1, local=True, central=False), "contradicts"),
        (patched(10, "<H", 12, local=True), "unsupported compression method 12"),
        (patched(10, "<H", 0), "contradicts"),
        (patched(16, "<L", 7), "checksum"),
        (patched(24, "<L", 299), "holds more"),
        (patched(24, "<L", 301), "declares 301 bytes but holds 300"),
        (patched(24, "<L", 4_000_000_000), "declares 4000000000"),
        (patched(20, "<L", 3_000_000), "outside the archive"),
        (patched(42, "<L", 3_000_000), "outside the archive"),
        (patched(28, "<H", 4000), "central directory"),
    ],
)
def test_evil_zips(make: Callable[[], bytes], word: str) -> None:
    with pytest.raises(UpstreamError, match=word) as error:
        unzip(make())
    assert code(error) == "PK407"


def test_too_many_members() -> None:
    data = bytearray(make_zip({"a.py": b"x"}))
    struct.pack_into("<HH", data, data.index(b"PK\5\6") + 8, 60_000, 60_000)
    with pytest.raises(UpstreamError, match="absurd"):
        unzip(bytes(data))


@given(st.binary(min_size=1, max_size=8), st.integers(min_value=0))
def test_damaged_zip_never_crashes(noise: bytes, place: int) -> None:
    data = bytearray(make_zip({"a.py": b"x = 1\n" * 9, "b/c.py": b"y"}, compression=zipfile.ZIP_DEFLATED))
    at = place % len(data)
    data[at : at + len(noise)] = noise
    found: dict[str, bytes] = {}
    with contextlib.suppress(UpstreamError):  # any other exception would be a crash
        found = unzip(bytes(data))
    assert set(found.values()) <= {b"x = 1\n" * 9, b"y"}  # CRC holds whatever else was changed


def untar(data: bytes, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, bytes]:
    return dict(archives.read_tar_gz(io.BytesIO(data), len(data), "x.tar.gz", wanted))


def special(kind: bytes, name: str = "r/a.py", target: str = "") -> dict[str, tarfile.TarInfo]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return {name: member}


def test_tar_reads_wanted_files_only() -> None:
    data = make_tar({"r/a.py": b"1\n", "r/b.txt": b"2\n", "r/c/d.py": b"3\n"})
    assert untar(data, lambda name: name.endswith(".py")) == {"r/a.py": b"1\n", "r/c/d.py": b"3\n"}


@pytest.mark.parametrize("target", ["b.py", "../b.py", "c/../b.py"])
def test_link_inside_is_passed_over(target: str) -> None:
    link = special(tarfile.SYMTYPE, "r/c/a.py", target)
    assert untar(make_tar({**link, "r/b.py": b"1\n"})) == {"r/b.py": b"1\n"}


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (special(tarfile.SYMTYPE, target="/etc/passwd"), "link out"),
        (special(tarfile.SYMTYPE, target="../../etc/passwd"), "link out"),
        (special(tarfile.SYMTYPE, target="../other/x"), "link out"),
        (special(tarfile.LNKTYPE, target="../x"), "link out"),
        (special(tarfile.CHRTYPE), "device"),
        (special(tarfile.BLKTYPE), "device"),
        (special(tarfile.FIFOTYPE), "device"),
    ],
)
def test_evil_tar_members(content: dict[str, tarfile.TarInfo], word: str) -> None:
    with pytest.raises(UpstreamError, match=word) as error:
        untar(make_tar(content))
    assert code(error) == "PK407"


def test_tar_duplicates() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for data in (b"1", b"2"):
            member = tarfile.TarInfo("r/a.py")
            member.size = 1
            archive.addfile(member, io.BytesIO(data))
    with pytest.raises(UpstreamError, match="two members"):
        untar(out.getvalue())


def test_tar_bomb() -> None:
    data = make_tar({"r/a.py": bytes(110 * 2**20)})
    assert len(data) < 300_000
    with pytest.raises(UpstreamError, match=r"absurd size|declares"):
        untar(data)


def test_tar_bomb_outside_of_what_is_wanted() -> None:
    data = make_tar({"r/a.bin": bytes(110 * 2**20)})
    with pytest.raises(UpstreamError, match="compression bomb"):
        untar(data, lambda name: name.endswith(".py"))


@pytest.mark.parametrize("keep", [0.2, 0.7, 0.98])
def test_cut_off_tar(keep: float) -> None:
    content = {f"r/m{n}.py": zlib.crc32(bytes([n])).to_bytes(4, "big") * 500 for n in range(40)}
    data = make_tar(content)
    with pytest.raises(UpstreamError) as error:
        untar(data[: int(len(data) * keep)])
    assert code(error) == "PK407"


def test_no_tar() -> None:
    with pytest.raises(UpstreamError) as error:
        untar(b"not gzip at all")
    assert code(error) == "PK407"


def test_several_gzip_members() -> None:
    import gzip

    whole = gzip.decompress(make_tar({"r/a.py": b"1\n" * 900, "r/b.py": b"2\n"}))
    parts = b"".join(gzip.compress(whole[at : at + 700]) for at in range(0, len(whole), 700))
    assert untar(parts) == {"r/a.py": b"1\n" * 900, "r/b.py": b"2\n"}
