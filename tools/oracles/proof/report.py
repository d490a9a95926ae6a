"""What a run of the proof found, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tools.oracles.proof.case import SILENT, STATUSES, Case
from tools.oracles.proof.draw import OPERATIONS, elided
from tools.oracles.releases import BASE, RELEASES


def _table(title: str, groups: Sequence[tuple[str, Sequence[Case]]]) -> Iterator[str]:
    yield f"{title:10} {'deltas':>6}" + "".join(f" {s:>9}" for s in STATUSES) + f" {'B abstains':>11}"
    for name, cases in groups:
        counts = Counter(c.status for c in cases)
        shares = "".join(f" {counts[s] / len(cases):9.1%}" for s in STATUSES)
        merged = [c for c in cases if c.status not in ("unchanged", "conflict", "missing")]
        abstained = f"{sum(c.abstained for c in merged) / len(merged):11.1%}" if merged else f"{'-':>11}"
        yield f"{name:10} {len(cases):6}{shares} {abstained}"


def report(cases: Sequence[Case], seed: int) -> Iterator[str]:
    """Shares by release and operation, and every misplacement."""
    judged = [c for c in cases if c.sample is not None]
    without = len(cases) - len(judged)
    yield f"{len(judged):,} deltas over {len({c.run.symbol for c in judged})} symbols" + (
        f"; {without} without a delta" if without else ""
    )
    yield ""
    yield from _table("release", [(r, own) for r in RELEASES if (own := [c for c in judged if c.run.release == r])])
    yield ""
    operations = [(o, own) for o in OPERATIONS if (own := [c for c in judged if c.sample and c.sample.operation == o])]
    yield from _table("operation", [*operations, ("all", judged)] if judged else [])
    yield ""
    silent = [c for c in judged if c.status in SILENT and c.verdict is not None]
    verdicts = Counter(str(c.verdict) for c in silent)
    yield f"placed without a word: {len(silent):,}; the judge says {', '.join(f'{v} {n:,}' for v, n in verdicts.most_common())}"
    seen = Counter(str(c.verdict) for c in judged if c.status == "review" and c.verdict)
    yield f"placed and shown (review): {sum(seen.values()):,}; the judge says {', '.join(f'{v} {n:,}' for v, n in seen.most_common())}"
    faults = [c for c in judged if c.misplaced]
    yield f"silently misplaced: {len(faults)}"
    for case in faults:
        assert case.sample is not None
        yield ""
        yield f"{case.symbol} {BASE} -> {case.run.release}: {case.status} (entry {case.entry_status}), judge: {case.verdict}"
        yield f"again: tools/proof --seed {seed} --count {case.run.number + 1} --only {case.run.number}"
        yield elided(case.sample.yaml).rstrip()
        yield case.detail
