"""`afd-patchkit completion`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.complete import VARIABLE
from afd_patchkit.cli.session import pass_session, printing

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@printing
@pass_session
@click.pass_context
def command(ctx: click.Context, session: Session, shell: str) -> int:
    """Print the script that completes commands, options, modules and codes in SHELL.

    \b
    bash: afd-patchkit completion bash >> ~/.bashrc
    zsh:  afd-patchkit completion zsh >> ~/.zshrc
    fish: afd-patchkit completion fish > ~/.config/fish/completions/afd-patchkit.fish
    """  # noqa: D301 - \\b is click's
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = ctx.find_root()
    completer = kind(root.command, {}, "afd-patchkit", VARIABLE)
    # not `completer.source()`: for bash that runs the machine's bash to see its version, which the script does not need
    session.write(ShellComplete.source(completer) + "\n")
    return 0
