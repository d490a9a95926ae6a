"""Changes around a delta, made in a symbol of the pinned release itself: each has a status that it must have.

The releases of vLLM change what stands around a delta in few ways. Here the rest is tried: exits, conditions, suites, readers and writers
(`surrounding.py`), and everything that binds a name (`rebinding.py`); and what must not be said at all: pure layout, names that are another
function's.
"""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.oracles.meaning.engine import NEXT, SILENT, change_to
from tools.oracles.proof.engine import Engine
from tools.oracles.proof.rebinding import BINDINGS, ELSEWHERE
from tools.oracles.proof.surrounding import FUNCTION, LAYOUT, SURROUNDINGS, TRIES, Draw, NotHere, Text

KINDS = SURROUNDINGS | BINDINGS
QUIET = frozenset({LAYOUT, ELSEWHERE})
"""Kinds that nobody may be told of."""


@dataclass(frozen=True)
class Around:
    """One change around one delta.

    Attributes:
        number: which one; the rest follows from it and the seed.
        kind: what was changed.
        symbol: where.
        delta: the delta.
        status: what `upgrade` says of it.
    """

    number: int
    kind: str
    symbol: str
    delta: str
    status: str

    @property
    def wrong(self) -> bool:
        """Whether nobody is told of what matters, or somebody of what does not."""
        return (self.status in SILENT) != (self.kind in QUIET)


def arounds(engine: Engine, names: Sequence[str], count: int, seed: int, only: int | None = None) -> Iterator[Around]:
    """Changes around random deltas.

    Args:
        engine: carries deltas.
        names: symbols to draw from.
        count: how many.
        seed: another seed, others.
        only: the number of the only one wanted.
    """
    for number in range(count) if only is None else (only,):
        draw = random.Random(f"{seed}:around:{number}")
        kind = list(KINDS)[number % len(KINDS)]
        found = _around(engine, names, draw, number, kind)
        if found is not None:
            yield found


def _around(engine: Engine, names: Sequence[str], draw: Draw, number: int, kind: str) -> Around | None:
    for _ in range(TRIES):
        symbol = engine.symbol(draw.choice(names))
        if isinstance(symbol.node, ast.ClassDef):
            methods = [n.name for n in symbol.node.body if isinstance(n, FUNCTION) and not n.decorator_list]
            if not methods:
                continue
            symbol = engine.symbol(f"{symbol.reference}.{draw.choice(methods)}")
        try:
            text = Text(symbol)
            delta, new = KINDS[kind](draw, engine, text)
            ast.parse(new)
        except (NotHere, SyntaxError, IndexError):
            continue
        status = carried(engine, text, delta, new)
        if status is not None:
            return Around(number, kind, symbol.reference, delta, status)
    return None


def carried(engine: Engine, text: Text, delta: str, new: str) -> str | None:
    """The status of a delta where its function has another text; None when it cannot be generated at the pin.

    Args:
        engine: carries deltas.
        text: the function.
        delta: the delta.
        new: the function's other text.
    """
    file = text.symbol.file
    whole = file.text
    changed = whole.replace(text.source.rstrip("\n"), textwrap.indent(new, text.indent).rstrip("\n"), 1)
    if changed == whole:
        return None
    change_to({text.symbol.reference.partition(":")[0]: changed})
    result = engine.carry(text.symbol.reference, delta, NEXT).result
    if result is None:
        return None
    return (
        result.deltas[0].status
        if result.deltas and result.status in SILENT | {"review"} and result.deltas[0].status not in SILENT
        else result.status
    )


def table(found: Sequence[Around], seed: int) -> Iterator[str]:
    """How many of each kind had which status, and every fault."""
    statuses = sorted({a.status for a in found})
    yield f"{'around a delta':26}" + "".join(f" {s:>10}" for s in statuses)
    for kind in KINDS:
        own = [a.status for a in found if a.kind == kind]
        yield f"{kind:26}" + "".join(f" {own.count(s) or '-':>10}" for s in statuses)
    faults = [a for a in found if a.wrong]
    yield f"with the wrong status: {len(faults)} of {len(found)}"
    for fault in faults:
        yield f"{fault.symbol}: {fault.kind}: {fault.status}"
        yield f"again: tools/proof --seed {seed} --around {fault.number + 1} --only {fault.number}"
        yield fault.delta
