"""The command line: parsing and printing only."""

from afd_patchkit.cli.group import main

__all__ = ["main"]
