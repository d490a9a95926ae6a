"""The page docs/drift.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from afd_patchkit.upgrade.result import ORDER, UpgradeResult
from tools.environments import ROOT
from tools.oracles.drift.compare import SUCCESSOR, Drift
from tools.oracles.drift.facts import Facts, differences
from tools.oracles.releases import BASE

PAGE = ROOT / "docs" / "drift.md"
_SHORT = {
    "unchanged": "=",
    "unchanged (format only)": "layout",
    "unchanged (docstring only)": "docstring",
    "body changed": "body",
    "signature changed": "**signature**",
    "decorator changed": "**decorators**",
    "removed": "**removed**",
}
_INTRO = """\
# Forward drift

Written by `tools/drift --write`; do not edit. Everything here is what the tool says about vLLM {base} and the releases after it,
read from the package index.

## {count} functions that plugins copy, patch or depend on

The list is `tools/oracles/symbols.txt`. Each release is compared with {base} by the tool's own extraction (`source/locate.py`), signature
comparison (`source/signature.py`), tokens (`source/tokens.py`) and search for what is gone (`upgrade/moved.py`; a likely
successor counts from {likeness:.0%} likeness). A change of decorators counts before one of the signature, that before one of the body.
"""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _head(first: str, columns: Sequence[str]) -> Iterator[str]:
    yield _row([first, *columns])
    yield _row([":--", *("--:" if c[:1].isdigit() else ":--" for c in columns)])


def symbols_part(found: Mapping[tuple[str, str], Drift], facts: Facts) -> Iterator[str]:
    """Counts, disagreements with the facts, and one line per symbol."""
    releases = list(dict.fromkeys(version for _, version in found))
    counts = {v: Counter(d.status.partition(":")[0] for (_, w), d in found.items() if w == v) for v in releases}
    yield from _head("status", releases)
    order = [*_SHORT, "renamed", "moved", "moved+renamed", "not at the base"]
    for status in [s for s in order if any(c[s] for c in counts.values())]:
        yield _row([status, *(str(counts[v][status] or "") for v in releases)])
    yield ""
    wrong = differences(found, facts)
    if not wrong:
        yield f"All {len(found):,} statuses equal those of `tools/oracles/drift/facts.tsv`, the facts that were measured without this tool."
    else:
        yield f"{len(wrong)} of {len(found):,} statuses differ from `tools/oracles/drift/facts.tsv`:"
        yield ""
        yield from _head("symbol", ["release", "facts", "tool", "what the tool saw"])
        for item in wrong:
            yield _row(
                [f"`{item.symbol}`", item.version, item.fact, item.found.status, "; ".join(item.found.detail) or "text"]
            )
    yield ""
    yield "`=` unchanged; layout, docstring: only that changed; bold: callers or the copy's outside are concerned."
    yield ""
    yield from _head("symbol", releases)
    for symbol in dict.fromkeys(s for s, _ in found):
        cells = [found[symbol, v].status for v in releases]
        yield _row(
            [f"`{symbol.removeprefix('vllm.')}`", *(_SHORT.get(c) or f"**{c.partition(':')[0]}**" for c in cells)]
        )
    yield ""
    moved = {(s, d.status) for (s, _), d in found.items() if ":" in d.status}
    if moved:
        yield "New names and places:"
        yield ""
        for symbol, status in sorted(moved):
            word, _, name = status.partition(": ")
            yield f"* `{symbol}` {word.replace('+', ' and ')} to `{name}`"
        yield ""


def manifests_part(results: Sequence[UpgradeResult]) -> Iterator[str]:
    """Status of every entry of our manifests at every release."""
    yield "## Our manifests over the releases"
    yield ""
    yield f"`afd-patchkit upgrade {' '.join(f'--vllm {r.new}' for r in results)}` (writes nothing), one line per entry."
    yield "`clean` means re-applied by two methods that agree, with everything around each delta unchanged; `review` and"
    yield "`conflict` say what to read; `retire` means that the entry's removal condition holds and it can be deleted."
    yield ""
    versions = [r.new for r in results]
    yield from _head("entry", versions)
    refs = list(dict.fromkeys(e.ref for r in results for e in r.entries))
    by_ref = [{e.ref: e for e in r.entries} for r in results]
    for ref in refs:
        cells = []
        for entries in by_ref:
            entry = entries.get(ref)
            deltas = Counter(d.status for d in entry.deltas) if entry else Counter()
            note = (
                f" ({deltas[entry.status]} of {len(entry.deltas)})"
                if entry and entry.status in ("review", "conflict") and deltas[entry.status]
                else ""
            )
            cells.append(f"{entry.status}{note}" if entry else "(module unusable)")
        yield _row([f"`{ref}`", *cells])
    yield ""
    yield from _head("entries", versions)
    for status in reversed(ORDER):
        if any(r.count(status) for r in results):
            yield _row([status, *(str(r.count(status) or "") for r in results)])
    yield ""
    yield "Numbers in brackets: deltas with that status, of all deltas of the entry. The reasons are in `upgrade`'s report."


def page(found: Mapping[tuple[str, str], Drift], facts: Facts, results: Sequence[UpgradeResult]) -> str:
    """The text of docs/drift.md."""
    count = len({s for s, _ in found})
    lines = [
        _INTRO.format(base=BASE, count=count, likeness=SUCCESSOR),
        *symbols_part(found, facts),
        *manifests_part(results),
    ]
    return "\n".join(lines) + "\n"
