"""One finding type for everything there is to report; the renderers live beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib import resources
from typing import Any, Literal


class Severity(str, Enum):
    """How loud a finding is; `note` never changes the exit code."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text file.

    Attributes:
        file: path as the user would type it (manifests, generated files) or the path inside the distribution (upstream).
        line: 1-based; 0 when the whole file is meant.
        column: 1-based, in characters; 0 when the whole line is meant.
    """

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        text = self.file
        if self.line:
            text += f":{self.line}"
            if self.column:
                text += f":{self.column}"
        return text


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to report.

    Attributes:
        code: stable code; `afd-patchkit explain CODE` prints its page.
        message: one sentence, without the position.
        severity: from the code's page unless given.
        entry: `module.py::name` of the manifest entry, if one is concerned.
        delta: the delta's name, if one is concerned.
        manifest: where in a manifest (or settings) file.
        upstream: where in the upstream distribution.
        generated: where in a generated file, outline or lock.
        help: what to do about it.
        details: further lines, such as the candidates of a pattern.
    """

    code: str
    message: str
    severity: Severity
    entry: str | None = None
    delta: str | None = None
    manifest: Position | None = None
    upstream: Position | None = None
    generated: Position | None = None
    help: str | None = None
    details: tuple[str, ...] = ()

    @property
    def family(self) -> Family:
        """What the finding is about, as its page says."""
        return page(self.code).family

    @property
    def group(self) -> Group | None:
        """What the engine has to know of the finding, as its page says; None where nothing depends on it."""
        return page(self.code).group

    def on_upgrade(self) -> Finding:
        """What it is called, and how loud it is, when an upgrade brings it."""
        later = page(self.code).on_upgrade
        return replace(self, code=later, severity=page(later).severity) if later else self

    def at(self, **fields: object) -> Finding:
        """A copy with the given fields filled in where this finding leaves them empty."""
        missing = {k: v for k, v in fields.items() if v is not None and getattr(self, k) is None}
        return replace(self, **missing) if missing else self  # type: ignore[arg-type]

    @property
    def exit_code(self) -> int:
        """The exit code this finding alone would cause."""
        return 0 if self.severity is Severity.NOTE else page(self.code).exit_code


Family = Literal["manifest", "lock", "delta", "name", "upstream", "upgrade", "note", "copy"]
_FAMILIES: tuple[Family, ...] = ("manifest", "lock", "delta", "name", "upstream", "upgrade", "note", "copy")
"""By the first digit of the code."""
Group = Literal["anchor", "edited", "gone", "neighbour", "outdated", "there", "unavailable"]
"""Findings that the engine acts on alike; their pages say `group`.

An `anchor` is not found where it was, a generated file was `edited`, a symbol or module is `gone`, a `neighbour` of a delta
changed, what is generated is `outdated`, what a delta adds is `there` already, an upstream is `unavailable`.
"""


@dataclass(frozen=True, slots=True)
class Page:
    """The documentation page of one finding code.

    Attributes:
        code: the code.
        title: one line.
        severity: of its findings, unless they say otherwise.
        exit_code: that one of its findings causes.
        body: Markdown.
        group: findings that the engine treats alike with it.
        on_upgrade: the code of the same thing where an upgrade brings it.
    """

    code: str
    title: str
    severity: Severity
    exit_code: int
    body: str
    group: Group | None = None
    on_upgrade: str | None = None

    @property
    def family(self) -> Family:
        """What findings of this code are about."""
        return _FAMILIES[int(self.code[2])]


def codes() -> list[str]:
    """All finding codes, sorted."""
    folder = resources.files("afd_patchkit.findings").joinpath("pages")
    return sorted(f.name.removesuffix(".md") for f in folder.iterdir() if f.name.endswith(".md"))


@cache
def page(code: str) -> Page:
    """The page of `code`.

    Raises:
        KeyError: there is no such code.
    """
    file = resources.files("afd_patchkit.findings") / "pages" / f"{code}.md"
    if not code.isalnum() or not file.is_file():
        raise KeyError(code)
    _, head, body = file.read_text(encoding="utf-8").split("---\n", 2)
    fields: dict[str, Any] = dict(line.split(": ", 1) for line in head.splitlines() if line)
    return Page(
        code,
        fields["title"],
        Severity(fields["severity"]),
        int(fields["exit"]),
        body.strip() + "\n",
        fields.get("group"),
        fields.get("upgrade"),
    )


def finding(
    code: str,
    message: str,
    *,
    severity: Severity | None = None,
    entry: str | None = None,
    delta: str | None = None,
    manifest: Position | None = None,
    upstream: Position | None = None,
    generated: Position | None = None,
    help: str | None = None,
    details: tuple[str, ...] = (),
) -> Finding:
    """A finding whose severity comes from its code's page unless given.

    Args:
        code: its code, which has a page.
        message: what is wrong, in one line.
        severity: another one than the page says.
        entry: the entry that it is about, `module.py::name`.
        delta: name of the delta that it is about.
        manifest: where in the manifests.
        upstream: where in an upstream file.
        generated: where in a generated file.
        help: what to do.
        details: further lines.
    """
    return Finding(
        code, message, severity or page(code).severity, entry, delta, manifest, upstream, generated, help, details
    )
