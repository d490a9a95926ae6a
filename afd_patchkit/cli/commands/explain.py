"""`afd-patchkit explain`."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.complete import complete_topics
from afd_patchkit.cli.session import pass_session, printing
from afd_patchkit.findings.nearest import nearest

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.findings.finding import Page
    from afd_patchkit.reports.layout import Style

_CODE = re.compile(r"(?i)pk[0-9]*")
FORMATS = ("text", "json", "markdown")


@click.command("explain", short_help="Explain a finding code or an entry.")
@click.argument("topics", nargs=-1, metavar="[CODE|ENTRY]...", shell_complete=complete_topics)
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="How to print (default: text).")
@printing
@pass_session
def command(session: Session, topics: tuple[str, ...], format_: str) -> int:
    """Print what a finding code means and what to do about it, or what a manifest says about an entry.

    CODE is a code such as PK201; ENTRY is MODULE::NAME as findings print it, or any part of it that is unique: `step`,
    `Runner.step`, `runner.py::Runner.step`. Without either: the list of all codes.
    """
    if not topics:
        session.write(_list(format_, session))
        return 0
    explained = [_explain(session, topic) for topic in topics]
    if format_ == "json":
        data = [item if isinstance(item, dict) else page_data(item) for item in explained]
        session.write(json.dumps(data[0] if len(data) == 1 else data, indent=2) + "\n")
        return 0
    texts = [
        facts_text(item, session.style(), markdown=format_ == "markdown")
        if isinstance(item, dict)
        else _page(item, session, format_)
        for item in explained
    ]
    session.write("\n".join(texts))
    return 0


def _explain(session: Session, topic: str) -> Page | dict[str, Any]:
    from afd_patchkit.findings.errors import PatchkitError
    from afd_patchkit.findings.finding import codes, page

    with suppress(KeyError):
        return page(topic.upper())
    near = nearest(topic.upper(), codes(), likeness=0.7)
    hint = f" Near: {', '.join(near)}." if near else ""
    unknown = click.UsageError(f"There is no code {topic!r}.{hint} `afd-patchkit explain` lists all codes.")
    if _CODE.fullmatch(topic):
        raise unknown
    from afd_patchkit.api import entry_facts

    try:
        project = session.load_project()
    except PatchkitError:
        if near and "::" not in topic:
            raise unknown from None
        raise
    return entry_facts(project, topic)


def page_data(entry: Page) -> dict[str, Any]:
    """A page as plain data."""
    return {
        "code": entry.code,
        "title": entry.title,
        "severity": entry.severity.value,
        "exit_code": entry.exit_code,
        "body": entry.body,
    }


def _list(format_: str, session: Session) -> str:
    from afd_patchkit.findings.finding import codes, page
    from afd_patchkit.reports.text import SEVERITY_COLORS

    pages = [page(code) for code in codes()]
    if format_ == "json":
        return json.dumps([page_data(p) for p in pages], indent=2) + "\n"
    if format_ == "markdown":
        from afd_patchkit.reports.markdown import escape

        return "".join(f"- **{p.code}** ({p.severity.value}) {escape(p.title)}\n" for p in pages)
    from afd_patchkit.reports.layout import table

    style = session.style()
    rows = [
        (p.code, style.paint(p.severity.value, *SEVERITY_COLORS[p.severity]), str(p.exit_code), p.title) for p in pages
    ]
    return "\n".join(table(("code", "severity", "exit", "title"), rows, style)) + "\n"


def _page(entry: Page, session: Session, format_: str) -> str:
    head = f"{entry.severity.value}, exit code {entry.exit_code}"
    text = f"# {entry.code}: {entry.title}\n\n*{head}*\n\n{entry.body}"
    style = session.style()
    if format_ == "markdown" or style.width is None:
        return text
    from afd_patchkit.cli.pretty import pretty_markdown

    return pretty_markdown(text, style)


def facts_text(facts: dict[str, Any], style: Style, *, markdown: bool) -> str:
    """The facts of an entry as text."""
    if markdown:
        return _markdown(facts)
    from afd_patchkit.reports.layout import printable, wrap

    lines = [style.paint(facts["entry"], "bold")]
    for name, value in _rows(facts):
        first = f"  {style.paint(f'{name:<13}', 'dim')} "
        lines.extend(wrap(printable(" ".join(value.split())), style, first=first, rest=" " * 16))
    if facts["deltas"]:
        lines.append(f"  {style.paint('deltas', 'dim')}")
        lines.extend(_delta_lines(facts["deltas"], style, 4))
    return "\n".join(lines) + "\n"


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    place, pin, late = facts["manifest"], facts["pin"], facts["late"]
    rows = [
        ("manifest", f"{place['file']}:{place['line']}:{place['column']}" if place["line"] else place["file"]),
        ("kind", facts["kind"]),
        ("symbol", facts["symbol"]),
        ("class", facts["class"]),
        ("part", facts["part"]),
        ("via", facts["via"]),
        ("pin", pin and f"{pin['name']}: {pin['distribution']} {pin['version']}, {pin['role']}"),
        ("reason", facts["reason"]),
        ("functionality", facts["functionality"]),
        ("forwarded", facts["forwarded"]),
        *(("watch", symbol) for symbol in facts["watch"]),
        ("depends on", ", ".join(facts["depends_on"])),
        ("late names", "all" if late is True else ", ".join(late or ())),
        *(("remove when", text) for text in facts["remove_when"]),
        ("removal", facts["removal"]),
    ]
    return [(name, value) for name, value in rows if value]


def _delta_lines(deltas: list[dict[str, Any]], style: Style, indent: int) -> list[str]:
    from afd_patchkit.reports.layout import printable, wrap

    lines = []
    for delta in deltas:
        where = f", line {delta['line']}" if delta["line"] else ""
        operation = style.paint(f"({delta['operation']}{where})", "dim")
        head = f"{printable(delta['name'])} {operation}"
        lines.extend(wrap(head, style, first=" " * indent + "- ", rest=" " * (indent + 2)))
        for name in ("reason", "frozen"):
            if delta[name]:
                text = f"{name}: {' '.join(delta[name].split())}"
                lines.extend(wrap(printable(text), style, first=" " * (indent + 2)))
        lines.extend(_delta_lines(delta["deltas"], style, indent + 2))
    return lines


def _markdown(facts: dict[str, Any]) -> str:
    from afd_patchkit.reports.markdown import code, escape

    literal = {"manifest", "symbol", "class", "part", "watch", "depends on", "late names"}
    lines = [f"## {code(facts['entry'])}", ""]
    lines += [f"- {name}: {code(value) if name in literal else escape(value)}" for name, value in _rows(facts)]

    def listed(deltas: list[dict[str, Any]], indent: str) -> None:
        for delta in deltas:
            because = f": {escape(delta['reason'])}" if delta["reason"] else ""
            lines.append(f"{indent}- {escape(delta['name'])} ({code(delta['operation'])}){because}")
            listed(delta["deltas"], indent + "  ")

    if facts["deltas"]:
        lines.append("- deltas:")
        listed(facts["deltas"], "  ")
    return "\n".join(lines) + "\n"
