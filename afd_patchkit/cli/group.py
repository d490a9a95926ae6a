"""The group of commands: each command's module is imported when the command is used."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from afd_patchkit.cli.guard import PipeClosed, guarded, open_streams
from afd_patchkit.cli.session import Session, common
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.version import __version__

# command -> module below afd_patchkit.cli.commands that holds it as `command`; in the order of the help page
COMMANDS = {
    "regen": "regen",
    "check": "check",
    "upgrade": "upgrade",
    "accept": "accept",
    "diff": "diff",
    "show": "show",
    "share": "share",
    "audit": "audit",
    "adopt": "adopt",
    "aliases": "aliases",
    "install": "install",
    "inventory": "inventory",
    "pins": "pins",
    "cache": "cache",
    "explain": "explain",
    "schema": "schema",
    "init": "init",
    "completion": "completion",
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for, and ends every error in one place."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"afd_patchkit.cli.commands.{COMMANDS[cmd_name]}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is answered with the names that are near."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            near = nearest(name, COMMANDS)[:2]
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"No such command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, remembering its name for reports."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise PipeClosed from error  # or click would exit 1, which means "findings"

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and exit with its code.

        Args:
            args: the arguments; None for those of this process.
            prog_name: name in messages; `afd-patchkit` by default.
            complete_var: environment variable that asks for shell completion, as click has it.
            standalone_mode: exit with the code; else return it.
            windows_expand_args: expand patterns where the shell does not.
            extra: passed on to click.
        """
        open_streams()
        gc.disable()  # parsed files are many objects without cycles; long loops collect when a part of them is done
        arguments = list(sys.argv[1:] if args is None else args)
        session = Session(arguments=arguments)

        def call() -> Any:
            more = {"obj": session, "windows_expand_args": windows_expand_args, **extra}
            return super(LazyGroup, self).main(
                args, prog_name or "afd-patchkit", complete_var, standalone_mode=False, **more
            )

        if not standalone_mode:
            return call()
        sys.exit(guarded(session, call))


@click.group(
    "afd-patchkit", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(
    __version__, message=f"%(prog)s %(version)s (Python {'.'.join(map(str, sys.version_info[:3]))} on {sys.platform})"
)
@common
def main() -> None:
    """Keep copied and adapted upstream code alive.

    Manifests name upstream functions and the changes made to them; `regen` writes the changed copies from the pinned
    upstream, `check` finds any drift, and `explain` says what a finding means.

    Exit codes: 0 nothing to do or done; 1 findings that need a person; 2 bad command line or manifest; 3 an upstream
    cannot be had or fails verification; 70 a bug in the tool.
    """
