"""Markdown on a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afd_patchkit.reports.layout import Style

_WIDEST = 100
"""Long lines are hard to read, however wide the terminal is."""


def pretty_markdown(text: str, style: Style) -> str:
    """`text` laid out for a terminal of the style's width."""
    from rich.console import Console
    from rich.markdown import Heading, Markdown

    class LeftHeading(Heading):
        """Headings at the left margin, where the eye is."""

        def __rich_console__(self, console, options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
            self.text.justify = "left"
            yield self.text

    class Page(Markdown):
        elements = {**Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012 - rich's own way

    stream = io.StringIO()
    console = Console(
        file=stream,
        width=min(style.width or 80, _WIDEST),
        force_terminal=style.color,
        no_color=not style.color,
        color_system="standard" if style.color else None,
        legacy_windows=False,
    )
    console.print(Page(text, code_theme="ansi_dark", hyperlinks=False))
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))
