"""Forward drift: what each release changed about a list of symbols, by the tool's own comparison; and about our manifests."""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from afd_patchkit.api import load_project
from afd_patchkit.assemble.record import symbol_record
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.model import Pin
from afd_patchkit.source.locate import Symbol, find_symbol, parse_reference
from afd_patchkit.source.signature import compare, signature
from afd_patchkit.source.text import Span
from afd_patchkit.source.tokens import significant, tokens_in
from afd_patchkit.upgrade.moved import Release, search
from afd_patchkit.upgrade.result import ORDER, UpgradeResult
from afd_patchkit.upgrade.upgrading import upgrade
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream
from tools import drift_upgrade

ROOT = Path(__file__).resolve().parent.parent
SYMBOLS = ROOT / "tools" / "drift_symbols.txt"
FACTS = ROOT / "tools" / "drift_facts.tsv"
PAGE = ROOT / "docs" / "drift.md"
BASE = "0.26.0"
RELEASES = ("0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0")
SUCCESSOR = 0.85
"""From this likeness on, the first of the likely successors counts as the symbol's new name or place."""


@dataclass(frozen=True)
class Drift:
    """What one release changed about one symbol.

    Attributes:
        status: `unchanged`, `unchanged (format only)`, `unchanged (docstring only)`, `body changed`, `signature changed`,
            `decorator changed`, `renamed: Q`, `moved: S`, `moved+renamed: S`, `removed`.
        detail: the differences of signature and decorators in words.
    """

    status: str
    detail: tuple[str, ...] = ()


# ---- one symbol ---------------------------------------------------------------------------------------------------


def compared(old: Symbol, new: Symbol) -> Drift:
    """What changed about a symbol that is still there.

    A change of decorators counts before one of the signature, that before one of the body.
    """
    if old.data == new.data:
        return Drift("unchanged")
    found = compare(signature(old.node, old.file), signature(new.node, new.file))
    words = tuple(d.message for d in found)
    if any(d.change.startswith("decorator") for d in found):
        return Drift("decorator changed", words)
    if found:
        return Drift("signature changed", words)
    if _words(old) == _words(new):
        return Drift("unchanged (format only)")
    if _words(old, docstrings=False) == _words(new, docstrings=False):
        return Drift("unchanged (docstring only)")
    return Drift("body changed")


def _words(symbol: Symbol, *, docstrings: bool = True) -> list[str]:
    """The symbol's tokens without layout, comments and trailing commas."""
    skipped = [] if docstrings else [span for node in symbol.nodes for span in _docstrings(symbol, node)]
    found = [
        t.text
        for span in symbol.spans
        for t in significant(tokens_in(symbol.file, span))
        if not any(s.contains(t.span) for s in skipped)
    ]
    return [t for n, t in enumerate(found) if t != "," or found[n + 1 : n + 2] not in ([")"], ["]"], ["}"])]


def _docstrings(symbol: Symbol, root: ast.AST) -> Iterator[Span]:
    for node in ast.walk(root):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and body:
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                yield symbol.file.node_span(first)


def gone(old: Symbol, release: Release) -> Drift:
    """Where a symbol went that is not where it was."""
    found = search(symbol_record(old), old, release)
    likely = [reference for reference, value in found.successors if value >= SUCCESSOR]
    reference = found.same.reference if found.same is not None else likely[0] if likely else None
    if reference is None:
        return Drift("removed", tuple(f"{ref} is {value:.0%} alike" for ref, value in found.successors[:1]))
    module, qualname = parse_reference(reference)
    if module == old.file.module:
        return Drift(f"renamed: {qualname}")
    return Drift(f"moved: {reference}" if qualname == old.qualname else f"moved+renamed: {reference}")


class Comparer:
    """Releases of vLLM, opened once."""

    def __init__(self, options: SourceOptions | None = None, distribution: str = "vllm", base: str = BASE) -> None:
        self.options, self.distribution, self.base = options or SourceOptions(), distribution, base
        self._releases: dict[str, Release] = {}

    def release(self, version: str) -> Release:
        """One release."""
        if version not in self._releases:
            pin = Pin(distribution=self.distribution, version=version)
            self._releases[version] = Release(open_upstream(self.distribution, pin, self.options))
        return self._releases[version]

    def symbol(self, reference: str, version: str) -> Symbol | None:
        """One symbol of one release; None when it is not there.

        Raises:
            UpstreamError: the release cannot be had.
        """
        module, qualname = parse_reference(reference)
        try:
            return find_symbol(self.release(version).upstream.read(module), qualname)
        except PatchkitError as error:
            if error.findings[0].code in ("PK205", "PK405"):
                return None
            raise

    def drift(self, reference: str, version: str) -> Drift:
        """What a release changed about a symbol of the base."""
        old = self.symbol(reference, self.base)
        if old is None:
            return Drift("not at the base")
        new = self.symbol(reference, version)
        return compared(old, new) if new is not None else gone(old, self.release(version))


# ---- facts --------------------------------------------------------------------------------------------------------

Facts = Mapping[tuple[str, str], str]
"""Symbol and version to status."""


def read_facts(path: Path = FACTS) -> Facts:
    """The table of known statuses."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return {(f"{module}:{qualname}", version): status for module, qualname, version, status in rows}


def read_symbols(path: Path = SYMBOLS) -> list[str]:
    """The list of symbols."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def normal(status: str) -> str:
    """A status as it is compared: new names may be written with or without their module."""
    word, colon, name = status.partition(": ")
    return f"{word}: {name.rpartition(':')[2]}" if colon else status


@dataclass(frozen=True)
class Difference:
    """Tool and facts disagree."""

    symbol: str
    version: str
    fact: str
    found: Drift


def differences(found: Mapping[tuple[str, str], Drift], facts: Facts) -> list[Difference]:
    """Where the tool's comparison and the facts disagree."""
    return [
        Difference(symbol, version, facts.get((symbol, version), "(no fact)"), drift)
        for (symbol, version), drift in found.items()
        if normal(facts.get((symbol, version), "")) != normal(drift.status)
    ]


def survey(comparer: Comparer, symbols: Sequence[str], releases: Sequence[str] = RELEASES) -> dict[tuple[str, str], Drift]:
    """Every symbol at every release."""
    from tools.sweep_run import progress

    found = {}
    with progress(len(symbols) * len(releases), "comparing") as done:
        for version in releases:
            for symbol in symbols:
                found[symbol, version] = comparer.drift(symbol, version)
                done()
    return found


# ---- the page -----------------------------------------------------------------------------------------------------

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

The list is `tools/drift_symbols.txt`. Each release is compared with {base} by the tool's own extraction (`source/locate.py`), signature
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
        yield f"All {len(found):,} statuses equal those of `tools/drift_facts.tsv`, the facts that were measured without this tool."
    else:
        yield f"{len(wrong)} of {len(found):,} statuses differ from `tools/drift_facts.tsv`:"
        yield ""
        yield from _head("symbol", ["release", "facts", "tool", "what the tool saw"])
        for item in wrong:
            yield _row([f"`{item.symbol}`", item.version, item.fact, item.found.status, "; ".join(item.found.detail) or "text"])
    yield ""
    yield "`=` unchanged; layout, docstring: only that changed; bold: callers or the copy's outside are concerned."
    yield ""
    yield from _head("symbol", releases)
    for symbol in dict.fromkeys(s for s, _ in found):
        cells = [found[symbol, v].status for v in releases]
        yield _row([f"`{symbol.removeprefix('vllm.')}`", *(_SHORT.get(c) or f"**{c.partition(':')[0]}**" for c in cells)])
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
            note = f" ({deltas[entry.status]} of {len(entry.deltas)})" if entry and entry.status in ("review", "conflict") and deltas[entry.status] else ""
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
    lines = [_INTRO.format(base=BASE, count=count, likeness=SUCCESSOR), *symbols_part(found, facts), *manifests_part(results)]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print what differs from the facts, and write the page."""
    parser = argparse.ArgumentParser(prog="tools/drift", description=__doc__)
    parser.add_argument("symbols", nargs="?", type=Path, default=SYMBOLS, help="list of `module:qualname`, one a line")
    parser.add_argument("--facts", type=Path, default=FACTS, help="known statuses to compare with")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}, and what becomes of our manifests there and in {drift_upgrade.PAGE.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    comparer = Comparer()
    try:
        found = survey(comparer, read_symbols(options.symbols))
    except PatchkitError as error:
        for said in error.findings:
            print(f"{said.code}: {said.message}", *said.details, sep="\n  ", file=sys.stderr)
        return error.exit_code
    facts = read_facts(options.facts)
    wrong = differences(found, facts)
    for item in wrong:
        print(f"{item.symbol} at {item.version}: facts say {item.fact}, the tool says {item.found.status}", *item.found.detail, sep="\n  ")
    print(f"{len(found):,} comparisons, {len(wrong)} differences")
    if options.write:
        project = load_project(ROOT)
        results = [upgrade(project, pin_overrides={"vllm": version}) for version in RELEASES]
        failed = [f for r in results for f in r.findings if f.exit_code in (2, 3)]
        for said in failed:
            print(f"{said.code}: {said.message}", file=sys.stderr)
        if failed:
            return max(f.exit_code for f in failed)
        PAGE.write_text(page(found, facts, results), encoding="utf-8")
        drift_upgrade.write(results)
        print(f"{PAGE.relative_to(ROOT)} and {drift_upgrade.PAGE.relative_to(ROOT)} written")
    return int(bool(wrong))
