"""The renderers of upgrades by name; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence

from afd_patchkit.fence import MARKER
from afd_patchkit.reports.context import Context
from afd_patchkit.reports.render import FORMATS as OF_REPORTS
from afd_patchkit.upgrade.result import UpgradeResult

FORMATS = (*OF_REPORTS, "html")
FILES = {"report.html": "html", "report.md": "markdown", "report.json": "json", "report.sarif": "sarif"}
"""What `--report DIR` writes: file name to format."""


def render_upgrade(results: Sequence[UpgradeResult], name: str, context: Context, *, marker: str = MARKER) -> str:
    """The upgrade in the format `name`.

    Args:
        results: one per target.
        name: the format, one of `FORMATS`.
        context: what renderers need: command, folder, colours, width.
        marker: what the project's fences begin with.
    """
    if name == "html":
        from afd_patchkit.reports.upgrade.html import render_upgrade_html

        return render_upgrade_html(results, context, marker=marker)
    if name == "text":
        from afd_patchkit.reports.upgrade.text import render_upgrade_text as renderer
    elif name == "json":
        from afd_patchkit.reports.upgrade.json_report import render_upgrade_json as renderer
    elif name == "markdown":
        from afd_patchkit.reports.upgrade.markdown import render_upgrade_markdown as renderer
    elif name == "github":
        from afd_patchkit.reports.upgrade.sarif import render_upgrade_github as renderer
    elif name == "sarif":
        from afd_patchkit.reports.upgrade.sarif import render_upgrade_sarif as renderer
    else:
        raise ValueError(name)
    return renderer(results, context)
