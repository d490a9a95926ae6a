"""What the common options say, and the one place that prints reports."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from afd_patchkit.files import write_atomically
from afd_patchkit.reports.render import FORMATS

if TYPE_CHECKING:
    from afd_patchkit.findings.report import Report
    from afd_patchkit.project import Project
    from afd_patchkit.reports.context import Context
    from afd_patchkit.reports.layout import Style

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass
class Session:
    """One run of the command line.

    Attributes:
        arguments: the arguments, for bug reports.
        format: one of the command's formats; `html` where there is a page.
        output: the file that takes the report; None is standard output.
        to_stdout: standard output was asked for by `--output -`.
        verbosity: number of `-v` less number of `-q`.
        color: what `--color/--no-color` said; None is "as the terminal has it".
        project: where to look for the project; None is the current folder.
        timeout: seconds that a package index has for an answer; None is what the environment says.
        command: the command that runs.
        root: the root of the project once it is loaded: findings name files relative to it.
    """

    arguments: list[str] = field(default_factory=list)
    format: str = "text"
    output: Path | None = None
    to_stdout: bool = False
    verbosity: int = 0
    color: bool | None = None
    project: Path | None = None
    timeout: float | None = None
    command: str = ""
    root: Path | None = None

    def load_project(self) -> Project:
        """Load the project that the command works on."""
        from afd_patchkit.project import load_project

        project = load_project(self.project)
        self.root = project.root
        return project

    def wants_color(self, stream: IO[Any], environ: dict[str, str] | None = None) -> bool:
        """Whether to colour what goes to `stream`: the option, then NO_COLOR, FORCE_COLOR and what the stream is."""
        env = os.environ if environ is None else environ
        if self.color is not None:
            return self.color
        if env.get("NO_COLOR"):
            return False
        if env.get("FORCE_COLOR", "0") not in {"", "0"}:
            return True
        return env.get("TERM") != "dumb" and is_terminal(stream)

    def style(self) -> Style:
        """Colour and width of what `write` will take."""
        from afd_patchkit.reports.layout import Style

        if self.output is not None:
            return Style(color=bool(self.color))
        width = max(40, shutil.get_terminal_size().columns) if is_terminal(sys.stdout) else None
        return Style(self.wants_color(sys.stdout), width)

    def context(self, exit_code: int | None = None) -> Context:
        """What the renderers need to know besides the report."""
        from afd_patchkit.reports.context import Context

        return Context(self.command, Path(), self.style(), self.verbosity, exit_code)

    def report(
        self, report: Report, exit_code: int | None = None, *, text: Callable[[Context], str] | None = None
    ) -> int:
        """Print the report in the wanted format; the exit code is the report's unless given.

        Args:
            report: what to print.
            exit_code: instead of the report's own.
            text: what stands in front of the findings, as text, instead of the tables of modules and pins.
        """
        from dataclasses import replace

        from afd_patchkit.reports.context import rebase
        from afd_patchkit.reports.render import render

        if report.findings:
            root = self.root or self.project or Path()
            report = replace(report, findings=rebase(report.findings, root, Path()))
        context = self.context(exit_code)
        if self.format == "html":
            from afd_patchkit.reports.upgrade.html import render_findings_html

            self.write(render_findings_html(report, context))
        elif text is None or self.format != "text" or self.verbosity < 0:
            self.write(render(report, self.format, context))
        else:
            rest = render(replace(report, modules=(), pins=()), "text", context) if report.findings else ""
            self.write("\n".join(part for part in (text(context), rest) if part))
        return report.exit_code if exit_code is None else exit_code

    def write(self, text: str) -> None:
        """Print `text`, or put it into the output file in one step."""
        if self.output is not None:
            write_atomically(self.output, text)
            self.log(f"written: {self.output}")
        elif text:
            click.echo(encodable(text, sys.stdout), nl=False, color=self.wants_color(sys.stdout))

    def log(self, text: str, *, level: int = 0) -> None:
        """Say something about the run itself on standard error, from verbosity `level` on."""
        if self.verbosity >= level:
            click.echo(encodable(text, sys.stderr), err=True, color=self.wants_color(sys.stderr))


def is_terminal(stream: IO[Any]) -> bool:
    """Whether a person reads `stream`."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # closed, or replaced by something lesser
        return False


def encodable(text: str, stream: IO[str]) -> str:
    """`text` with what the stream's encoding lacks written as escapes: printing never fails."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


# ---- options ----------------------------------------------------------------------------------------------------


def store(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep what an option says in the session."""
    session = ctx.ensure_object(Session)
    if parameter.name in {"verbose", "quiet"}:
        session.verbosity += value if parameter.name == "verbose" else -value
    elif value is not None:
        assert parameter.name is not None
        setattr(session, parameter.name, value)


def _output(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    ctx.ensure_object(Session).to_stdout |= value == Path("-")
    store(ctx, parameter, None if value == Path("-") else value)


def common(function: _Command) -> _Command:
    """The options that every command takes; they may stand in front of the command too."""
    options = (
        click.option(
            "--project",
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            metavar="DIR",
            expose_value=False,
            callback=store,
            help="Work on the project in (or around) DIR instead of the current folder.",
        ),
        click.option("-v", "--verbose", count=True, expose_value=False, callback=store, help="Say more."),
        click.option(
            "-q",
            "--quiet",
            count=True,
            expose_value=False,
            callback=store,
            help="Say only what is wrong, one line each.",
        ),
        click.option(
            "--color/--no-color",
            default=None,
            expose_value=False,
            callback=store,
            help="Colour, or none; by default as the terminal, NO_COLOR and FORCE_COLOR have it.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _output_option(function: _Command) -> _Command:
    return click.option(
        "--output",
        "-o",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        metavar="FILE",
        expose_value=False,
        callback=_output,
        help="Write to FILE (in one step) instead of standard output.",
    )(function)


def printing(function: _Command) -> _Command:
    """The options of a command that prints something: the common ones and `--output`."""
    return _output_option(common(function))


def reporting(function: _Command) -> _Command:
    """The options of a command that reports: the common ones, `--output` and `--format`."""
    return reporting_as(*FORMATS)(function)


def reporting_as(*formats: str) -> Callable[[_Command], _Command]:
    """The same for a command with formats of its own."""
    option = click.option(
        "--format",
        type=click.Choice(formats),
        expose_value=False,
        callback=store,
        help="How to report (default: text).",
    )
    return lambda function: option(printing(function))


def pass_session(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give the command the session as its first argument, with the command's name filled in."""

    @click.pass_context
    def wrapper(ctx: click.Context, /, *args: Any, **kwargs: Any) -> Any:
        session = ctx.ensure_object(Session)
        session.command = ctx.info_name or ""
        return function(session, *args, **kwargs)

    wrapper.__doc__ = function.__doc__
    wrapper.__name__ = function.__name__
    return wrapper
