"""Copied text that goes on calling upstream's function where another entry of the project replaces it."""

from __future__ import annotations

from collections.abc import Iterator

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.references.judge import Places
from afd_patchkit.references.things import Class, Function, Value
from afd_patchkit.references.world import World


def uses_of_patched(world: World, places: Places) -> Iterator[Finding]:
    """Warnings about names of upstream's that an entry takes by value, and that another entry stands for.

    Args:
        world: the module, all others and the trees.
        places: where its code stands in the manifest.
    """
    for piece in world.text.pieces:
        for module, name, bound in piece.imports:
            if bound in piece.rebound:
                continue
            thing = world.trees.name(module, name)
            if not isinstance(thing, (Function, Class, Value)) or thing.reference == piece.symbol:
                continue
            other = world.catalogue.patched.get(thing.reference)
            if other is None or other == piece.ref:
                continue
            yield finding(
                "PK335",
                f"`{bound}` is {thing.reference} as it was when the module was imported, and {other} replaces it",
                entry=piece.ref,
                manifest=places.of_entry(piece.ref),
                help=f"Look it up at each call: `late: [{bound}]`; or say what is meant by `rebind: {{{bound}: ...}}`: "
                f"the entry, which `imports` has to bring, or upstream's own (`{bound}`).",
            )
