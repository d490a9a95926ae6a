"""Upstream files as the engine sees them: UTF-8, LF, no BOM, with byte offsets."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from afd_patchkit.digests import sha256
from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import Position, finding


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of bytes, `start <= end`."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def contains(self, other: Span) -> bool:
        """Whether `other` lies inside this span (equal spans do)."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        """Whether the spans share a byte."""
        return self.start < other.end and other.start < self.end

    def shift(self, by: int) -> Span:
        """The span moved by `by` bytes."""
        return Span(self.start + by, self.end + by)


class Text:
    """Normalised text with line and byte arithmetic; lines are 1-based, offsets are UTF-8 bytes from the start.

    Only LF ends a line here: form feeds and other separators that `str.splitlines` honours do not (as in Python's
    own tokenizer).
    """

    def __init__(self, data: bytes) -> None:
        self.data = data

    @cached_property
    def text(self) -> str:
        """The text as a string."""
        return self.data.decode("utf-8")

    @cached_property
    def starts(self) -> list[int]:
        """Byte offset of the start of each line; one more than lines when the text ends with a newline."""
        starts = [0]
        find = self.data.find
        at = find(b"\n")
        while at >= 0:
            starts.append(at + 1)
            at = find(b"\n", at + 1)
        return starts

    @property
    def line_count(self) -> int:
        """Number of lines (a final newline does not start another)."""
        starts = self.starts
        return len(starts) - (starts[-1] == len(self.data))

    def offset(self, line: int, column: int = 0) -> int:
        """Byte offset of a 1-based line and 0-based byte column, as `ast` gives them."""
        return self.starts[line - 1] + column

    def line_of(self, offset: int) -> int:
        """1-based number of the line that holds the byte at `offset`."""
        return bisect_right(self.starts, offset)

    def line_span(self, first: int, last: int) -> Span:
        """Bytes of lines `first` to `last` (inclusive), with the last line's newline if it has one."""
        end = self.starts[last] if last < len(self.starts) else len(self.data)
        return Span(self.starts[first - 1], end)

    def lines(self, first: int, last: int) -> list[str]:
        """Lines `first` to `last` (inclusive) without their newlines."""
        span = self.line_span(first, last)
        return self.data[span.start : span.end].decode("utf-8").removesuffix("\n").split("\n")

    def slice(self, span: Span) -> str:
        """The text of `span`."""
        return self.data[span.start : span.end].decode("utf-8")

    def node_span(self, node: ast.AST) -> Span:
        """The bytes of an `ast` node that has positions (without decorators for `def` and `class`)."""
        end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return Span(self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column))  # type: ignore[attr-defined]

    def column_of(self, offset: int) -> int:
        """1-based column, in characters, of the byte at `offset`."""
        start = self.starts[self.line_of(offset) - 1]
        return len(self.data[start:offset].decode("utf-8", "replace")) + 1


@dataclass(frozen=True, eq=False)
class SourceFile(Text):
    """One verified file of one upstream distribution.

    Attributes:
        pin: name of the pin it was read from.
        path: POSIX path inside the distribution, for instance `vllm/forward_context.py`.
        module: dotted module name.
        raw_sha256: digest of the file's bytes as shipped (what `RECORD` names).
        sha256: digest of the normalised text (stable under line-ending settings).
        eol: `LF`, `CRLF`, `CR` or `mixed`, as shipped.
        encoding: as declared by the file (PEP 263), `utf-8` by default.
        data: normalised text: UTF-8, LF, no BOM.
    """

    pin: str
    path: str
    module: str
    raw_sha256: str
    sha256: str
    eol: str
    encoding: str
    data: bytes = field(repr=False)

    @property
    def is_package(self) -> bool:
        """Whether this is a package's `__init__.py`."""
        return self.path.endswith("__init__.py")

    @property
    def package(self) -> str:
        """The package that relative imports of this module start from."""
        return self.module if self.is_package else self.module.rpartition(".")[0]

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file; positions are those of the normalised text.

        Raises:
            UpstreamError: this Python cannot parse the file, or it is absurdly long (PK404).
        """
        if too_long(self.data):
            raise UpstreamError(
                finding(
                    "PK404",
                    f"{self.path} of pin {self.pin} is not parsed: it has more than {LONGEST:,} words",
                    upstream=Position(self.path),
                    help="No file that people write comes near; name a symbol of another one.",
                )
            )
        try:
            return parse_quietly(self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            deep = isinstance(error, (RecursionError, MemoryError))
            why = "it is nested too deeply for this Python" if deep else getattr(error, "msg", None) or error
            line = getattr(error, "lineno", 0) or 0
            column = getattr(error, "offset", 0) or 0
            raise UpstreamError(
                finding(
                    "PK404",
                    f"{self.path} of pin {self.pin} does not parse: {why}",
                    upstream=Position(self.path, line, column),
                    details=() if deep else (_second_opinion(self.text),),
                    help="Run afd-patchkit on a Python whose grammar covers this file.",
                )
            ) from error

    def position(self, offset: int) -> Position:
        """The place of a byte, for findings."""
        return Position(self.path, self.line_of(offset), self.column_of(offset))


LONGEST = 200_000
"""Words of the longest file that is parsed: each becomes about 2 kB of tree, and four times as much with libcst."""
_WORD = re.compile(rb"\w+|[\[({]")


def too_long(data: bytes) -> bool:
    """Whether there are more names, numbers, words of texts and brackets than are parsed."""
    return len(data) > LONGEST and sum(1 for _ in _WORD.finditer(data)) > LONGEST


def parse_quietly(text: str | bytes) -> ast.Module:
    """`ast.parse` without Python's warnings about the text (invalid escapes and the like are not the user's to mend)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


_ASK = """
import sys, libcst
try:
    libcst.parse_module(sys.stdin.buffer.read().decode("utf-8"))
except libcst.ParserSyntaxError as error:
    print(f"cannot parse it either: {error.message} at line {error.raw_line}")
except Exception as error:
    print(f"fails on it: {type(error).__name__}")
else:
    print("can parse it: its syntax is newer than this Python")
"""
_PATIENCE = 20.0


def _second_opinion(text: str) -> str:
    """Whether libcst, whose grammar does not depend on the interpreter, can parse `text`.

    It is asked in a process of its own: text that is nested deeply enough ends the process that parses it.
    """
    import subprocess
    import sys
    from importlib.metadata import version

    command = [sys.executable, "-I", "-c", _ASK]
    try:
        done = subprocess.run(
            command, input=text.encode("utf-8", "replace"), capture_output=True, timeout=_PATIENCE, check=False
        )
        said = done.stdout.decode("utf-8", "replace").strip() or "fails on it: it is nested too deeply"
    except subprocess.TimeoutExpired:
        said = f"did not answer within {_PATIENCE:g} s"
    except OSError as error:
        said = f"could not be asked: {error.strerror}"
    return f"libcst {version('libcst')} {said}"


def load_source(raw: bytes, *, pin: str, path: str) -> SourceFile:
    """Decode (PEP 263), drop the BOM, normalise line ends to LF.

    Raises:
        UpstreamError: the bytes are not text in the declared encoding, or hold NUL (PK404).
    """
    eol = _eol(raw)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        if encoding == "utf-8-sig" or raw.startswith(codecs.BOM_UTF8):
            text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8")
            encoding = "utf-8-sig"
        else:
            text = raw.decode(encoding)
        plain = raw
        if eol != "LF" or encoding != "utf-8":  # nearly all files are normal already
            plain = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8")
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise UpstreamError(
            finding(
                "PK404",
                f"{path} of pin {pin} cannot be decoded: {error}",
                upstream=Position(path),
                help="Python could not import this file either; name another symbol or report it upstream.",
            )
        ) from error
    if "\0" in text:
        raise UpstreamError(finding("PK404", f"{path} of pin {pin} holds a NUL byte", upstream=Position(path)))
    raw_digest = sha256(raw)
    digest = raw_digest if plain is raw else sha256(plain)
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return SourceFile(pin, path, module, raw_digest, digest, eol, encoding, plain)


def _eol(raw: bytes) -> str:
    if b"\r" not in raw:
        return "LF"
    crlf = raw.count(b"\r\n")
    kinds = {"CRLF": crlf, "LF": raw.count(b"\n") - crlf, "CR": raw.count(b"\r") - crlf}
    seen = [kind for kind, count in kinds.items() if count]
    return seen[0] if len(seen) == 1 else ("mixed" if seen else "LF")
