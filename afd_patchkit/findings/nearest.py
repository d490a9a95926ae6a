"""Names that a wrong one may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.6) -> tuple[str, ...]:
    """Up to three known names that are like `name`, from 0 to 1 at least by `likeness`, the likest first."""
    from difflib import get_close_matches  # only what is wrong needs it

    return tuple(get_close_matches(name, sorted(known), n=3, cutoff=likeness))


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The help for a wrong name: the known one that is like it, or else what to do."""
    near = nearest(name, known)
    return f"Did you mean `{near[0]}`?" if near else otherwise
