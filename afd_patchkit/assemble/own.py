"""Which bytes of a generated module are ours, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from afd_patchkit.assemble.product import Product
from afd_patchkit.delta.buffer import Run
from afd_patchkit.references.texts import OwnText, Piece, joined_ranges

_OURS = frozenset({"delta", "owned", "rebind", "indent"})
"""Labels of emitted text that we wrote; the others say how upstream's own names are reached."""


def own_text(
    module: str,
    top: str,
    bodies: Sequence[tuple[Product, Run]],
    groups: Mapping[str, str],
    imports: tuple[tuple[str, str | None, str], ...],
) -> OwnText:
    """A module as references need it.

    Args:
        module: its dotted name.
        top: the text above the first entry.
        bodies: the runs of the entries, each with its entry.
        groups: by entry, the generated class that it is a member of; empty without one.
        imports: what manifest and parts import.
    """
    pieces: list[Piece] = []
    ours: list[tuple[int, int]] = []
    at = len(top.encode())
    texts = [top]
    for product, run in bodies:
        if not pieces or pieces[-1].ref != product.ref:
            rebindings = product.plan.rebindings if product.plan is not None else {}
            rebound = frozenset([*rebindings, *rebindings.values()])
            pieces.append(
                Piece(
                    product.ref,
                    product.record["kind"],
                    product.symbol,
                    groups[product.ref],
                    at,
                    rebound,
                    tuple(_by_name(product)),
                )
            )
        end = at + len(run.text.encode())
        if run.text and _leans(product, run):
            ours.append((at, end))
        texts.append(run.text)
        at = end
    return OwnText(module, "".join(texts), tuple(pieces), joined_ranges(ours), imports)


def _by_name(product: Product) -> Iterator[tuple[str, str, str]]:
    """What an entry imports of upstream's modules by name, to be used at run time."""
    for need in product.plan.imports if product.plan is not None else ():
        if need.attribute is not None and need.guard == "none":
            yield need.module, need.attribute, need.bound


def _leans(product: Product, run: Run) -> bool:
    """Whether the text of a run stands where its upstream does not vouch for it: ours, of a donor, or taken from another pin."""
    if run.file is None:
        return run.label in _OURS
    return product.record["kind"] == "backport" or run.file is not product.files[0]
