"""What the texts of a manifest hold: as a table that the loader and the JSON Schema both read."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from afd_patchkit.fence import delta_of, opening
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.header import INSTALLS, RUNTIME
from afd_patchkit.manifest.values import TextScalar
from afd_patchkit.model import What
from afd_patchkit.project import reserved_on_windows

_NAME = r"[^\W\d]\w*"
_DOTTED = rf"{_NAME}(\.{_NAME})*"
_NUMBERED = re.compile(r" \([0-9]+/[0-9]+\)")
_DISTRIBUTION = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
_PIN = r"[A-Za-z0-9][A-Za-z0-9._-]*"

Check = Callable[[TextScalar, str], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class TextKind:
    """One kind of text.

    Attributes:
        hint: what to write, for the description in the JSON Schema.
        pattern: a regular expression of JSON Schema that every such text matches.
        python: what the text is, when it holds code: in a plain scalar it would lose quotes, `#` and `: `.
        check: what is wrong with it, given also what it names.
    """

    hint: str = ""
    pattern: str = r"\S"
    python: str = ""
    check: Check | None = None


def is_name(text: str) -> bool:
    """Whether Python takes `text` as a name."""
    return text.isidentifier() and not keyword.iskeyword(text)


def control_character(text: str) -> str | None:
    """The first character of `text` that may not stand in a comment of generated code."""
    return next((char for char in text if char not in "\n\t" and unicodedata.category(char)[0] == "C"), None)


ENTRY_NAME = "the name"
"""What `model.Entry.name` calls itself in messages."""


def class_help(name: str, member: str = "") -> str:
    """How an entry becomes the member of a class; `member` is what it says then."""
    said = f" and says `{member}`" if member else ""
    return f"A generated class is an item of its own, `- class: {{name: {name}, members: [...]}}`; this entry goes into its `members`{said}."


def _python_name(text: TextScalar, noun: str) -> Iterator[Finding]:
    if not is_name(text):
        why = "a keyword" if keyword.iskeyword(text) else "no Python name"
        help_ = "Use letters, digits and underscores."
        owner, dot, name = text.rpartition(".")
        if noun == ENTRY_NAME and dot and all(map(is_name, text.split("."))):
            why, help_ = "no name but a path", class_help(owner, f"name: {name}")
        yield finding("PK018", f"{noun} `{text}` is {why}", help=help_)


def _dotted_name(text: TextScalar, noun: str) -> Iterator[Finding]:
    if not all(map(is_name, text.split("."))):
        yield finding(
            "PK018", f"{noun} `{text}` cannot be imported", help="Use names with dots between them: google.cloud."
        )


def _delta_name(name: TextScalar, noun: str) -> Iterator[Finding]:
    wrong = None
    if name != name.strip():
        wrong = "begins or ends with a blank"
    elif "\n" in name or "\t" in name:
        wrong = "is not one line"
    elif "#" in name:
        wrong = "holds a `#`"
    elif delta_of(name) != name:
        wrong = "looks like the number of a fence, `(1/2)`"
    if wrong:
        help_ = f"The name stands in the fences of the generated code: `{opening('<name>')}`."
        yield finding("PK010", f"the delta name {str(name)!r} {wrong}", help=help_)


def _part(text: TextScalar, noun: str) -> Iterator[Finding]:
    parts = text.split("/")
    if "\\" in text or not text.endswith(".py") or any(p in ("", ".", "..") for p in parts):
        help_ = "Name a .py file below the manifest's folder, such as parts/handoff.py."
        yield finding("PK012", f"`part: {text}` is no such path", help=help_)


def module_problem(path: str) -> str | None:
    """Why `path` cannot be the path of a generated module; None when it can."""
    if "\\" in path or path.startswith("/") or re.match("[A-Za-z]:", path):
        return "is not a relative POSIX path"
    if not path.endswith(".py"):
        return "does not end with .py"
    for part in path.removesuffix(".py").split("/"):
        if part in ("", ".", ".."):
            return "has a part that is empty, `.` or `..`"
        if not part.isascii() or not is_name(part):
            return f"has the part `{part}`, which cannot be imported"
        if reserved_on_windows(part):
            return f"has the part `{part}`, which Windows reserves"
        if part in ("__init__", "__main__", "__pycache__"):
            return f"names `{part}`, which Python gives a meaning of its own"
    if path.removesuffix(".py").split("/")[0] in (INSTALLS, RUNTIME):
        return "takes the name of what installs the package"
    return None


def _module(text: TextScalar, noun: str) -> Iterator[Finding]:
    problem = module_problem(text)
    if problem:
        help_ = "Write a path below the generated package, such as acme_backport/runner.py."
        yield finding("PK014", f"`module: {text}` {problem}", help=help_)


def _pin_name(text: TextScalar, noun: str) -> Iterator[Finding]:
    if not re.fullmatch(_PIN, text):
        yield finding("PK018", f"`{text}` is no name for a pin", help="Use letters, digits, `.`, `_` and `-`.")


def _distribution(text: TextScalar, noun: str) -> Iterator[Finding]:
    if not re.fullmatch(_DISTRIBUTION, text):
        message = f"`{text}` is no name of a distribution"
        yield finding("PK016", message, help="Use the name on the package index.")


def _version(text: TextScalar, noun: str) -> Iterator[Finding]:
    if not text.scalar.style:
        message = "`version` must be quoted: YAML would read 0.10 as the number 0.1"
        yield finding("PK005", message, help=f'Write "{text}".')
        return
    try:
        version = str(Version(text))
    except InvalidVersion:
        help_ = "A pin is one exact version, without operators."
        yield finding("PK016", f"`{text}` is no version by PEP 440", help=help_)
        return
    if version != text:
        yield finding("PK016", f"version `{text}` is not in normal form", help=f'Write "{version}".')


_PATTERN = "as block scalar (|) or quoted; `...` matches anything"
_CODE = "as block scalar (|) or quoted"

HELD: Mapping[What, TextKind] = {
    "symbol": TextKind("package.module:Qual.name", rf"^{_DOTTED}:{_DOTTED}\n*$"),
    "symbol or module": TextKind("package.module:Qual.name, or package.module", rf"^{_DOTTED}(:{_DOTTED})?\n*$"),
    "name": TextKind(
        "expression; quote it unless it is a dotted name", python="an expression that is more than a dotted name"
    ),
    "base": TextKind(
        "package.module:Name, which is imported, or an expression; quote it unless it is a dotted name",
        python="an expression that is more than a dotted name",
    ),
    "imports": TextKind("absolute import statements"),
    "pattern": TextKind(f"pattern of statements, {_PATTERN}", python="a pattern"),
    "expression pattern": TextKind(f"pattern of an expression, {_PATTERN}", python="a pattern"),
    "any pattern": TextKind(f"pattern, {_PATTERN}", python="a pattern"),
    "statements": TextKind(f"Python statements, {_CODE}", python="code"),
    "with": TextKind(f"Python, {_CODE}; `__upstream__` stands for what is replaced", python="code"),
    "expression": TextKind(f"Python expression, {_CODE}", python="an expression"),
    "element": TextKind(f"Python expression, which may be starred, {_CODE}", python="an expression"),
    "targets": TextKind(f"assignment targets, {_CODE}", python="an assignment target"),
    "clause": TextKind("whole clause, head and suite, as block scalar (|)", python="code"),
    "head": TextKind(
        'head of a clause, quoted: "elif c", "else", "except E", "finally", "case p"', python="the head of a clause"
    ),
    "parameter": TextKind('a parameter as in a `def`, quoted: "rank: int = 0"', python="a parameter"),
    "member": TextKind("members of a class body, as block scalar (|)", python="code"),
    "prose": TextKind(),
    "python name": TextKind(pattern=rf"^{_NAME}$", check=_python_name),
    "dotted name": TextKind(pattern=rf"^{_NAME}(\.{_NAME})*$", check=_dotted_name),
    "delta name": TextKind(pattern=r"^[^\s#]([^\n\t#]*[^\s#])?$", check=_delta_name),
    "part": TextKind(pattern=r"^(?!.*(^|/)\.{0,2}/)[^\\]+\.py$", check=_part),
    "module": TextKind(pattern=r"^([A-Za-z_][A-Za-z0-9_]*/)*[A-Za-z_][A-Za-z0-9_]*\.py$", check=_module),
    "pin name": TextKind(pattern=rf"^{_PIN}$", check=_pin_name),
    "distribution": TextKind(pattern=rf"^{_DISTRIBUTION}$", check=_distribution),
    "version": TextKind("quoted", r"^[0-9]", check=_version),
}
