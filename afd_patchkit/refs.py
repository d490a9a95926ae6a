"""How an entry is named: `module.py::name`, and every shorter way to say it."""

from __future__ import annotations


def names_of(ref: str, delta: str = "") -> tuple[str, ...]:
    """Everything that may be written for an entry (`module.py::name`) or one of its deltas, shortest first."""
    module, _, short = ref.partition("::")
    last = short.rpartition("/")[2] if "/" in short else short.rpartition(".")[2]
    parts = module.split("/")
    modules = ["/".join(parts[n:]) for n in range(len(parts) - 1, -1, -1)]
    places = [place for m in modules for place in (m, m.removesuffix(".py"))]
    names = [last, short, *(f"{place}::{name}" for place in places for name in (short, last))]
    if delta:
        names = [delta, *(f"{name}/{delta}" for name in names)]
    return tuple(dict.fromkeys(names))
