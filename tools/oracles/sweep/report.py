"""What a sweep found, as text, and whether it is good enough."""

from __future__ import annotations

from collections import Counter

from afd_patchkit.findings.finding import page
from tools.oracles.sweep.file import Outcome

LIMIT = 0.02
"""Share of functions that may be refused."""
SHOWN = 20


def report(outcome: Outcome, seconds: float, *, verbose: bool) -> int:
    """Print the counts; 0 when nothing is wrong and few are refused."""
    total = sum(outcome.counts.values())
    refused = {code: n for code, n in outcome.counts.items() if code.startswith("PK")}
    rows = [
        ("verbatim", outcome.counts["verbatim"], ""),
        ("verbatim with declared rebindings", outcome.counts["rebound"], ""),
        ("refused", sum(refused.values()), ""),
        *((f"  {code}", n, page(code).title) for code, n in sorted(refused.items(), key=lambda item: -item[1])),
        ("wrong", outcome.counts["wrong"], ""),
        ("crashed", outcome.counts["crashed"], ""),
        ("of these unread by libcst", outcome.once, ""),
    ]
    print(f"{'functions':<34} {total:>7,}")
    for label, number, note in rows:
        print(f"{label:<34} {number:>7,} {number / max(total, 1):>8.2%}  {note}".rstrip())
    print(f"{seconds:.0f} s, {total / max(seconds, 0.001):,.0f} functions per second")
    shown: Counter[str] = Counter()
    for code, where, message in sorted(outcome.refusals):
        shown[code] += 1
        if verbose or shown[code] <= 3:
            print(f"refused {code} {where}: {message}")
    for fault in sorted(outcome.faults)[: None if verbose else SHOWN]:
        print(fault)
    if len(outcome.faults) > SHOWN and not verbose:
        print(f"and {len(outcome.faults) - SHOWN} more (--verbose)")
    many = sum(refused.values()) > LIMIT * total
    if many:
        print(f"more than {LIMIT:.0%} refused")
    return 1 if outcome.faults or many or not total else 0
