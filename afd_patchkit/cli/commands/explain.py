"""`afd-patchkit explain`."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.complete import complete_topics
from afd_patchkit.cli.session import pass_session, printing

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.findings.finding import Page

FORMATS = ("text", "json", "markdown")


@click.command("explain", short_help="Explain a finding code or an entry.")
@click.argument("topics", nargs=-1, metavar="[CODE|ENTRY]...", shell_complete=complete_topics)
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="How to print (default: text).")
@printing
@pass_session
def command(session: Session, topics: tuple[str, ...], format_: str) -> int:
    """Print what a finding code means and what to do about it, or what a manifest says about an entry.

    CODE is a code such as PK201; ENTRY is MODULE::NAME as findings print it. Without either: the list of all codes.
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
        _facts(item, session, format_) if isinstance(item, dict) else _page(item, session, format_)
        for item in explained
    ]
    session.write("\n".join(texts))
    return 0


def _explain(session: Session, topic: str) -> Page | dict[str, Any]:
    from afd_patchkit.findings.finding import codes, page

    if "::" in topic:
        from afd_patchkit.queries.entries import entry_facts

        return entry_facts(session, topic)
    try:
        return page(topic.upper())
    except KeyError:
        known = codes()
        near = get_close_matches(topic.upper(), known, n=3, cutoff=0.7)
        hint = f" Near: {', '.join(near)}." if near else ""
        raise click.UsageError(
            f"There is no code {topic!r}.{hint} `afd-patchkit explain` lists all codes; an entry is written MODULE::NAME."
        ) from None


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


def _facts(facts: dict[str, Any], session: Session, format_: str) -> str:
    from afd_patchkit.queries.entries import facts_text

    return facts_text(facts, session.style(), markdown=format_ == "markdown")
