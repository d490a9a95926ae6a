"""Wheels and sdists made for the tests, sound or with one thing wrong."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import random
import tarfile
import zipfile
from collections.abc import Mapping

FILES: dict[str, str] = {
    "acme/__init__.py": "VERSION = 1\n",
    "acme/_version.py": "__version__ = version = '1.0'\n__commit_id__ = commit_id = 'gabc1234def'\n",
    "acme/engine.py": "class Engine:\n    def step(self):\n        return 1\n",
    "acme/deep/__init__.py": "",
    "acme/deep/runner.py": "def run(x):\r\n    return x\r\n",
}
PADDING = random.Random(0).randbytes(700_000)
"""Makes a wheel large enough to be read by range."""


def digest(data: bytes | str) -> str:
    """Hex sha256."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def record_row(path: str, data: bytes, algorithm: str = "sha256") -> str:
    """One line of a RECORD."""
    value = base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()
    return f"{path},{algorithm}={value},{len(data)}"


def make_wheel(
    files: Mapping[str, str | bytes] = FILES,
    *,
    name: str = "acme",
    version: str = "1.0",
    padding: bool = True,
    rows: Mapping[str, str | None] | None = None,
    compression: int = zipfile.ZIP_DEFLATED,
    algorithm: str = "sha256",
) -> bytes:
    """A wheel; `rows` replaces (or, with None, drops) rows of its RECORD."""
    info = f"{name}-{version}.dist-info"
    content = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    content[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    lines = {path: record_row(path, data, algorithm) for path, data in content.items()}
    for path, row in (rows or {}).items():
        lines.pop(path, None)
        if row is not None:
            lines[path] = row
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for number, (path, data) in enumerate(content.items()):
            archive.writestr(path, data)
            if padding and number == 1:  # between members, as compiled code is
                archive.writestr("acme/_core.so", PADDING, zipfile.ZIP_STORED)
        archive.writestr(f"{info}/RECORD", "\n".join([*lines.values(), f"{info}/RECORD,,"]) + "\n")
    return out.getvalue()


def make_sdist(
    files: Mapping[str, str | bytes] = FILES, *, name: str = "acme", version: str = "1.0", below: str = ""
) -> bytes:
    """An sdist with the package at the root, or `below="src/"`."""
    root = f"{name}-{version}"
    content = {f"{root}/PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()}
    content |= {f"{root}/{below}{p}": t.encode() if isinstance(t, str) else t for p, t in files.items()}
    content[f"{root}/tests/test_acme.py"] = b"def test_nothing():\n    pass\n"
    content[f"{root}/setup.py"] = b"raise SystemExit('never run me')\n"
    return make_tar(content)


def make_tar(content: Mapping[str, bytes | tarfile.TarInfo]) -> bytes:
    """A `.tar.gz`; members can be given as `TarInfo` for what is no file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, data in content.items():
            if isinstance(data, tarfile.TarInfo):
                archive.addfile(data)
            else:
                member = tarfile.TarInfo(path)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0)
