"""The renderers by name; each is imported when it is used."""

from __future__ import annotations

from afd_patchkit.findings.report import Report
from afd_patchkit.reports.context import Context

FORMATS = ("text", "json", "markdown", "github", "sarif")


def render(report: Report, name: str, context: Context) -> str:
    """The report in the format `name`, one of `FORMATS`."""
    if name == "text":
        from afd_patchkit.reports.text import render_text as renderer
    elif name == "json":
        from afd_patchkit.reports.json_report import render_json as renderer
    elif name == "markdown":
        from afd_patchkit.reports.markdown import render_markdown as renderer
    elif name == "github":
        from afd_patchkit.reports.github import render_github as renderer
    elif name == "sarif":
        from afd_patchkit.reports.sarif import render_sarif as renderer
    else:
        raise ValueError(name)
    return renderer(report, context)
