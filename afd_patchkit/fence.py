"""Comments that mark lines: the two fences around what a delta touched, and how other tools' look.

Ours are `# ### PATCH START: NAME` and `# ### PATCH END: NAME`.
The marker (`### PATCH`) is a setting of the project. A delta with several fences numbers them: `NAME (1/2)`.
"""

from __future__ import annotations

import re
from typing import Literal

MARKER = "### PATCH"
"""What stands in front of `START` and `END` where the project does not say it."""

_BOUNDARY = re.compile(
    r"#\W*(?:\S+ )?(?:START|BEGIN|END)\b|#\s*#?(?:end)?region\b|#\s*(?:fmt|isort):\s*(?:on|off)\b"
    r"|#\s*(?:yapf|pylint|ruff)\b.*\b(?:en|dis)able\b|#.*\[(?:start|end)\b"
)
_NUMBER = re.compile(r" \([0-9]+/[0-9]+\)$")


def opening(name: str, marker: str = MARKER) -> str:
    """The comment above what the delta `name` touched."""
    return f"# {marker} START: {name}"


def closing(name: str, marker: str = MARKER) -> str:
    """The comment below what the delta `name` touched."""
    return f"# {marker} END: {name}"


def parsed(line: str, marker: str = MARKER) -> tuple[Literal["START", "END"], str] | None:
    """Which end of which fence a line is; None for any other line."""
    text = line.strip()
    if text.startswith(opening("", marker)):
        return "START", text.removeprefix(opening("", marker))
    if text.startswith(closing("", marker)):
        return "END", text.removeprefix(closing("", marker))
    return None


def looks_like(comment: str, marker: str = MARKER) -> bool:
    """Whether a reader would take a comment for a fence."""
    return re.match(rf"#\s*{re.escape(marker)} (START|END)\b", comment) is not None


def bounds_lines(comment: str) -> bool:
    """Whether a comment opens or closes a stretch of lines, as fences of any tool and editors' regions do.

    It belongs to no statement.
    """
    return _BOUNDARY.match(comment) is not None


def numbered(name: str, number: int, total: int) -> str:
    """The name in fence `number` of `total` fences of one delta."""
    return f"{name} ({number}/{total})" if total > 1 else name


def delta_of(name: str) -> str:
    """The delta that a fence of this name belongs to."""
    return _NUMBER.sub("", name)
