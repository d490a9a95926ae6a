"""Upstream's callers of a method that an entry overrides with another signature."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.references.calls import Shape, misfit, parameters
from afd_patchkit.references.judge import Places
from afd_patchkit.references.things import Class, Function
from afd_patchkit.references.world import World
from afd_patchkit.source.text import SourceFile


def unfit_callers(world: World, places: Places) -> Iterator[Finding]:
    """Warnings about overrides that upstream's own calls do not fit: those in the files of the class and its bases.

    Args:
        world: the module, all others and the trees.
        places: where its code stands in the manifest.
    """
    for piece in world.text.pieces:
        if not piece.group or not piece.symbol:
            continue
        cls = world.trees.name(world.text.module, piece.group)
        name = piece.ref.rpartition(".")[2]
        if not isinstance(cls, Class):
            continue
        bases = [c for c in world.classes.view(cls).plain[1:] if not world.trees.is_ours(c.module)]
        ours = world.classes.member(cls, name, instance=True)
        theirs = next(
            (m for c in bases if isinstance(m := world.classes.member(c, name, instance=True), Function)), None
        )
        if not isinstance(ours, Function) or theirs is None or ours.owner != cls:
            continue
        takes, took = parameters(replace(ours, bound=True)), parameters(replace(theirs, bound=True))
        if takes is None or took is None:
            continue
        files = dict.fromkeys(c.file for c in bases)
        callers = [
            f"{file.path}:{call.lineno}: {why}"
            for file in files
            for call in _calls(file, name)
            if (why := misfit(Shape.of(call), takes)) and not misfit(Shape.of(call), took)
        ]
        if callers:
            yield finding(
                "PK332",
                f"{piece.ref.partition('::')[2]} overrides {theirs.reference}, and upstream's own calls do not fit it",
                entry=piece.ref,
                manifest=places.of_entry(piece.ref),
                details=tuple(callers[:8]),
                help="Give the added parameter a default, or override the callers, too.",
            )


def _calls(file: SourceFile, name: str) -> Iterator[ast.Call]:
    """Calls of `x.name` in a file."""
    if name.encode() not in file.data:
        return
    try:
        tree = file.tree
    except PatchkitError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node
