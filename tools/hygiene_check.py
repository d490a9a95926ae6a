"""Is there upstream text in this repository? Compares all tracked files with the pinned upstreams, five lines at a time.

A *code line* is a line without comment and white space that is not empty. Five consecutive code lines of a tracked file that
stand like that in a pinned upstream are a copy, whatever lies between them in comments and blank lines. Five lines that
anybody would write the same way are not: a window counts only if its lines, imports and the parameters of `__exit__` aside,
hold at least `WORDS` words of which `DISTINCT` are different, keywords not counted (so closing brackets, `else:`, `return`,
import lists do not make a copy). In a million lines of other projects this finds a handful of equal windows.

The index of an upstream (one hash per window) is kept in the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import keyword
import re
import subprocess
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools import environments

if TYPE_CHECKING:
    from afd_patchkit.upstream.resolve import SourceUpstream

LINES = 5
WORDS = 6
DISTINCT = 4
VERSION = 2
"""Of the rules above: part of the name of a stored index."""

_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\w+")
_ANYBODYS = re.compile(
    r"(?:from\s+[\w.]+\s+)?import\b"
    r"|(?:exc|exc_type|exc_val|exc_value|exc_tb|exc_traceback|tb|traceback)\b[^()=]*,$"
)
_KEYWORDS = frozenset([*keyword.kwlist, "self", "cls", "super"])


@dataclass(frozen=True)
class Line:
    """One code line: its number, its text without white space, and its words (none for what anybody writes)."""

    number: int
    text: str
    words: tuple[str, ...]


def code_lines(text: str) -> list[Line]:
    """The code lines of a file of any kind."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        code = without_comment(line)
        packed = _SPACE.sub("", code).replace("'", '"')
        if packed:
            words = () if _ANYBODYS.match(code.strip()) else tuple(w for w in _WORD.findall(code) if w not in _KEYWORDS)
            found.append(Line(number, packed, words))
    return found


def without_comment(line: str) -> str:
    """The line up to a `#` that stands in no quotes (quotes are taken to begin and end in the line)."""
    if "#" not in line:
        return line
    quote = ""
    skip = False
    for at, character in enumerate(line):
        if skip:
            skip = False
        elif quote:
            skip = character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#":
            return line[:at]
    return line


def windows(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Hash and number of the first line of each window that counts."""
    for at in range(len(lines) - LINES + 1):
        window = lines[at : at + LINES]
        words = [word for line in window for word in line.words]
        if len(words) >= WORDS and len(set(words)) >= DISTINCT:
            data = "\n".join(line.text for line in window).encode()
            yield int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big"), at


@dataclass(frozen=True)
class Index:
    """The windows of one upstream: sorted hashes, and where each stands."""

    name: str
    files: tuple[str, ...]
    hashes: array[int]
    places: array[int]
    """Per hash: file number times 2**32, plus line."""

    @classmethod
    def of(cls, name: str, sources: Iterable[tuple[str, str]]) -> Index:
        """Make the index of files, given as (path, text) pairs."""
        files: list[str] = []
        first: dict[int, int] = {}
        for path, text in sources:
            lines = code_lines(text)
            for digest, at in windows(lines):
                first.setdefault(digest, (len(files) << 32) + lines[at].number)
            files.append(path)
        order = sorted(first)
        return cls(name, tuple(files), array("Q", order), array("Q", (first[d] for d in order)))

    def save(self, path: Path) -> None:
        """Write the index; readers see the old file or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        head = "\n".join([self.name, *self.files]).encode()
        temporary = path.with_name(path.name + ".part")
        with temporary.open("wb") as file:
            array("Q", [len(head), len(self.hashes)]).tofile(file)
            file.write(head)
            self.hashes.tofile(file)
            self.places.tofile(file)
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> Index | None:
        """A stored index; None when there is none or it is damaged."""
        sizes, hashes, places = array("Q"), array("Q"), array("Q")
        try:
            with path.open("rb") as file:
                sizes.fromfile(file, 2)
                name, *files = file.read(sizes[0]).decode().split("\n")
                hashes.fromfile(file, sizes[1])
                places.fromfile(file, sizes[1])
        except (OSError, EOFError, ValueError, MemoryError, OverflowError):
            return None
        return cls(name, tuple(files), hashes, places)

    def find(self, digest: int) -> tuple[str, int] | None:
        """Path and line of a window's first line in the upstream."""
        at = bisect_left(self.hashes, digest)
        if at < len(self.hashes) and self.hashes[at] == digest:
            return self.files[self.places[at] >> 32], self.places[at] & 0xFFFFFFFF
        return None


@dataclass(frozen=True)
class Problem:
    """Something that may not stand in a tracked file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def copies(path: str, text: str, index: Index) -> Iterator[Problem]:
    """The runs of code lines of one file that an upstream has too; overlapping windows are one run."""
    lines = code_lines(text)
    start = end = -1
    place = ("", 0)

    def problem() -> Problem:
        message = f"{end - start} code lines as in {index.name}, {place[0]}:{place[1]}"
        return Problem(path, lines[start].number, f"{message} (to line {lines[end - 1].number})")

    for digest, at in windows(lines):
        found = index.find(digest)
        if not found:
            continue
        if start >= 0 and at > end - 1:
            yield problem()
            start = -1
        if start < 0:
            start, place = at, found
        end = at + LINES
    if start >= 0:
        yield problem()


def _host(*parts: str) -> str:
    return re.escape(".".join(parts))


FORBIDDEN: tuple[tuple[str, str], ...] = (
    # written in pieces, so that this file does not hold what it looks for
    (
        "a package index's host: take it from the user's settings",
        rf"\b(?:{_host('pypi', 'org')}|{_host('pythonhosted', 'org')})\b",
    ),
    (
        "a path of one machine",
        r"/(?:" + "|".join(["wo" + "rk", "tm" + "p/(?:up|envs|brief)", "ro" + r"ot/\.py" + "env"]) + r")\b",
    ),
    ("a conflict marker", r"^(?:<{7}|>{7}) "),
)


def words(path: str, text: str) -> Iterator[Problem]:
    """Lines that hold what no tracked file may hold."""
    for what, pattern in FORBIDDEN:
        for match in re.finditer(pattern, text, re.MULTILINE | re.IGNORECASE):
            yield Problem(path, text.count("\n", 0, match.start()) + 1, f"{match.group().strip()!r} is {what}")


def tracked(root: Path) -> list[str]:
    """Paths that git tracks (submodules and deleted files aside)."""
    run = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True)
    return [p for p in run.stdout.decode().split("\0") if p and (root / p).is_file() and not (root / p).is_symlink()]


def read(path: Path) -> str | None:
    """The text of a file; None for a binary one."""
    data = path.read_bytes()
    if b"\0" in data:
        return None
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def check(root: Path, indexes: Sequence[Index]) -> list[Problem]:
    """All problems of all tracked files, in order."""
    problems: list[Problem] = []
    for path in tracked(root):
        text = read(root / path)
        if text is None:
            continue
        problems += words(path, text)
        for index in indexes:
            problems += copies(path, text, index)
    return sorted(problems, key=lambda p: (p.path, p.line))


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/hygiene`: 0 nothing found, 1 something found, 3 an upstream from the package index cannot be had."""
    import argparse

    from tools import pinned

    parser = argparse.ArgumentParser(prog="tools/hygiene", description="Search tracked files for upstream text.")
    parser.add_argument(
        "--source", action="append", default=[], metavar="PIN=PATH", help="take a pin's sources from here"
    )
    parser.add_argument("--offline", action="store_true", help="use the cache and installed distributions only")
    options = parser.parse_args(arguments)
    settings = pinned.options(options.source, offline=options.offline)
    indexes, missing = [], []
    for name, pin in pinned.pins().items():
        label = f"{pin.distribution} {pin.version}"
        if pin.git and name not in settings.sources:
            print(
                f"hygiene: not compared with {label}, which is on no package index (--source {name}=PATH compares it)"
            )
            continue
        upstream = pinned.opened(name, pin, settings)
        if upstream is None:
            missing.append(label)
        else:
            indexes.append(_index_of(label, upstream, settings.store.root))
    root = environments.ROOT
    problems = check(root, indexes)
    for problem in problems:
        print(problem)
    against = ", ".join(f"{index.name} ({len(index.files)} files)" for index in indexes)
    print(f"hygiene: {len(tracked(root))} tracked files compared with {against or 'nothing'}; {len(problems)} problems")
    return 1 if problems else 3 if missing else 0


def _index_of(label: str, upstream: SourceUpstream, cache: Path | None) -> Index:
    identity = upstream.artifact.sha256
    path = cache / "hygiene" / f"{identity}-{VERSION}.index" if cache and identity else None
    index = Index.load(path) if path else None
    if index is None:
        sources = ((p, data.decode("utf-8", "replace").replace("\r\n", "\n")) for p, data in upstream.package_files())
        index = Index.of(label, sources)
        if path:
            with contextlib.suppress(OSError):
                index.save(path)
    return index
