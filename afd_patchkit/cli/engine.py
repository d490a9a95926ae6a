"""What `regen`, `check` and `share` have in common: their options, and the call of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from afd_patchkit.cli.complete import complete_modules, complete_pins
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import Session, store
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.upstream.settings import LONGEST_TIMEOUT

if TYPE_CHECKING:
    from afd_patchkit.cli.progress import Bars
    from afd_patchkit.findings.report import Report
    from afd_patchkit.model import Pin
    from afd_patchkit.upstream.options import SourceOptions

_Command = TypeVar("_Command", bound=Callable[..., Any])


def assignments(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> list[tuple[str, str]]:
    """Split each `NAME=VALUE` at its first `=`; neither side may be empty."""
    pairs = []
    for text in values:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and name and value):
            raise click.BadParameter(f"{text!r} is not of the form {parameter.metavar}.", ctx, parameter)
        pairs.append((name, value))
    return pairs


def _seconds(ctx: click.Context, parameter: click.Parameter, value: float | None) -> None:
    if value is not None and isnan(value):
        raise click.BadParameter("nan is no number of seconds.", ctx, parameter)
    store(ctx, parameter, value)


SOURCE_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--source",
        "sources",
        metavar="NAME=PATH",
        callback=assignments,
        multiple=True,
        help="Read the pin NAME from the folder, wheel or sdist PATH. Repeatable.",
    ),
    click.option("--offline", is_flag=True, help="Use the cache and installed distributions only."),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, max=LONGEST_TIMEOUT, min_open=True),
        metavar="SECONDS",
        expose_value=False,
        callback=_seconds,
        help="How long a package index may leave us without an answer (default: the environment's setting, or 30).",
    ),
)


def source_options(function: _Command) -> _Command:
    """The options that say where upstreams are read from."""
    return _with(SOURCE_OPTIONS, function)


def pin_options(vllm: str, vllm_ascend: str, pins: str, *, multiple: bool = False) -> Callable[[_Command], _Command]:
    """The options that name versions: `--vllm`, `--vllm-ascend` and `--pin`, with these help texts.

    Args:
        vllm: help of `--vllm`.
        vllm_ascend: help of `--vllm-ascend`.
        pins: help of `--pin`, which can always be repeated.
        multiple: the other two can be repeated too.
    """
    options = (
        click.option("--vllm", metavar="V", multiple=multiple, help=vllm),
        click.option("--vllm-ascend", metavar="REF", multiple=multiple, help=vllm_ascend),
        click.option(
            "--pin",
            "pins",
            metavar="NAME=V",
            callback=assignments,
            multiple=True,
            shell_complete=complete_pins,
            help=pins,
        ),
    )
    return lambda function: _with(options, function)


def _with(options: Sequence[Callable[[Any], Any]], function: _Command) -> _Command:
    for option in reversed(options):
        function = option(function)
    return function


def engine_options(function: _Command) -> _Command:
    """The options that say from what, and how, modules are generated."""
    options = (
        click.argument("modules", nargs=-1, metavar="[MODULE]...", shell_complete=complete_modules),
        pin_options(
            vllm="Use this version of vllm instead of the pinned one (short for --pin vllm=V).",
            vllm_ascend="Use this version or commit of vllm-ascend (short for --pin vllm-ascend=REF).",
            pins="Use version or commit V for the pin, or the target pin of the distribution, NAME. Repeatable.",
        ),
        *SOURCE_OPTIONS,
        click.option(
            "--full", is_flag=True, help="Regenerate everything, and prove each entry a second time, with libcst."
        ),
        click.option(
            "--into",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Generate into DIR, not into the project's folder (default with another version: a folder beside it).",
        ),
        click.option(
            "--jobs", type=click.IntRange(min=1), metavar="N", help="Worker processes (default: as many as pay off)."
        ),
    )
    return _with(options, function)


def overrides(vllm: str | None, vllm_ascend: str | None, pins: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Pin or distribution name to version, from the three options that say so.

    Raises:
        click.UsageError: one name is given two versions.
    """
    named = [(name, value) for name, value in (("vllm", vllm), ("vllm-ascend", vllm_ascend)) if value is not None]
    return _unique([*named, *pins], "version")


def _unique(pairs: Sequence[tuple[str, str]], what: str) -> dict[str, str]:
    result: dict[str, str] = {}
    for name, value in pairs:
        if result.setdefault(name, value) != value:
            raise click.UsageError(f"{name} is given two {what}s: {result[name]} and {value}.")
    return result


def source_paths(sources: Sequence[tuple[str, str]]) -> dict[str, Path]:
    """Pin to path, from `--source`.

    Raises:
        click.UsageError: a path does not exist, or one pin is given two.
    """
    paths = {name: Path(path) for name, path in _unique(sources, "path").items()}
    for name, path in paths.items():
        if not path.exists():
            raise click.UsageError(f"--source {name}: there is no {path}.")
    return paths


def upstreams(
    session: Session, bars: Bars | None, *, offline: bool, sources: Mapping[str, Path] | None = None
) -> SourceOptions:
    """Where upstreams come from, as the options have it.

    Args:
        session: the command line that is running.
        bars: shows what is downloaded, and what is waited for.
        offline: use cache and installed distributions only.
        sources: explicit sources, by pin.
    """
    from afd_patchkit.upstream.options import SourceOptions

    return SourceOptions(
        sources=sources or {},
        offline=offline,
        timeout=session.timeout,
        progress=bars.downloads if bars else None,
        waits=bars,
    )


def given_pin_option(function: _Command) -> _Command:
    """Give a command that needs no project the option `--pin`: an upstream, by its distribution."""
    option = click.option(
        "--pin",
        "pins",
        metavar="NAME=V",
        callback=assignments,
        multiple=True,
        help="The upstream, at version V; NAME is its distribution. Repeatable. With a project, its target pins by default.",
    )
    return option(function)


def given_pins(session: Session, pins: Sequence[tuple[str, str]], sources: Mapping[str, Path]) -> dict[str, Pin]:
    """The upstreams of a command that needs no project: as given, else the target pins of the project around.

    Args:
        session: the command line that is running.
        pins: distribution and version of each that was given.
        sources: paths that were given; one without a pin is its own.

    Raises:
        click.UsageError: none is given, and there is no project.
    """
    from afd_patchkit.model import Pin

    if pins:
        return {name: Pin(distribution=name, version=version) for name, version in _unique(pins, "version").items()}
    if sources:
        return {name: Pin(distribution=name, version="0") for name in sources}
    try:
        project = session.load_project()
    except PatchkitError:
        raise click.UsageError("say what to compare with: --pin NAME=VERSION, or --source NAME=PATH.") from None
    from afd_patchkit.manifest.load import load_manifests

    return {name: pin for name, pin in load_manifests(project).pins.pins.items() if pin.role == "target"}


def run_engine(
    session: Session,
    *,
    check: bool,
    modules: Sequence[str],
    vllm: str | None,
    vllm_ascend: str | None,
    pins: Sequence[tuple[str, str]],
    sources: Sequence[tuple[str, str]],
    offline: bool,
    full: bool,
    jobs: int | None,
    into: Path | None = None,
) -> Report:
    """Load the project and regenerate or check it, with a progress bar where a person waits.

    Args:
        session: the command line that is running.
        check: write nothing, compare.
        modules: only these; all when empty.
        vllm: version of the target pin of vllm, if it was given.
        vllm_ascend: version or commit of that of vllm-ascend, if it was given.
        pins: what `--pin` gave: name and version or commit.
        sources: what `--source` gave: pin name and path.
        offline: use cache and installed distributions only.
        full: regenerate also what digests prove unchanged.
        jobs: worker processes; None chooses.
        into: the folder to generate into, if it is not the project's.
    """
    from afd_patchkit.api import RunOptions, regen
    from afd_patchkit.api import check as compare

    versions = overrides(vllm, vllm_ascend, pins)
    paths = source_paths(sources)
    project = session.load_project()
    with progress_for(session) as bars:
        options = RunOptions(
            overrides=versions,
            modules=modules,
            sources=upstreams(session, bars, offline=offline, sources=paths),
            full=full,
            jobs=jobs,
            into=into,
            progress=bars.work if bars else None,
        )
        return (compare if check else regen)(project, options)
