"""What a run found, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tools.oracles.meaning.case import SET, Case

_COLUMNS = ("caught", "soft", "missed", "quiet", "false alarm", "open", "discarded")
_SHOWN = 400


def report(cases: Sequence[Case], seed: int) -> Iterator[str]:
    """Counts by change, by place and by kind of reference, and every miss and false alarm with the command that shows it again."""
    judged = [c for c in cases if c.change is not None]
    pins = [c for c in cases if c.change is None]
    yield f"{len(judged):,} changes in {len({c.project for c in judged}):,} projects"
    yield ""
    yield from _table("change", [(c.change.name if c.change else "", c) for c in judged])
    yield ""
    yield from _table("own code in", [(c.place, c) for c in judged])
    yield ""
    yield from _table("refers by", [(c.kind, c) for c in judged if c.verdict not in ("same", None)])
    yield ""
    harmful = [c for c in judged if c.verdict in ("different", "broken")]
    same = [c for c in judged if c.verdict == "same"]
    meant = [c for c in same if c.change is not None and c.change.compatible]
    yield f"the code breaks or does something else: {len(harmful):,}; missed {sum(c.outcome == 'missed' for c in harmful)}"
    yield f"it does the same: {len(same):,} ({len(meant):,} by changes meant to be compatible); false alarms {sum(c.wrong for c in same)}"
    yield f"errors at the pin, where it works: {sum(c.wrong for c in pins)} of {len(pins):,} projects"
    for case in [c for c in cases if c.wrong]:
        yield ""
        yield from shown(case, seed)


def shown(case: Case, seed: int) -> Iterator[str]:
    """One case in full."""
    what = f"{case.change.name}, {case.change.target}" if case.change is not None else "at the pin"
    yield f"{case.outcome}: {what}; judge: {case.verdict or 'nothing'} {case.why}".rstrip()
    yield f"again: tools/meaning --seed {seed} --only {'set' if case.project == SET else case.project}:{case.number}"
    yield from (f"  {line[:_SHOWN]}" for line in case.ours.split("\n"))
    yield from (f"  said: {words}" for words in case.carried.words[:6])


def _table(title: str, named: Sequence[tuple[str, Case]]) -> Iterator[str]:
    counts: dict[str, Counter[str]] = {}
    for name, case in named:
        counts.setdefault(name, Counter())[case.outcome] += 1
    width = max([len(title), *map(len, counts)], default=0)
    yield f"{title:{width}}" + "".join(f" {c:>11}" for c in _COLUMNS)
    for name in sorted(counts):
        yield f"{name:{width}}" + "".join(f" {counts[name][c] or '-':>11}" for c in _COLUMNS)
