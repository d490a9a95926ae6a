"""Forward drift: what each release changed about a list of symbols, by the tool's own comparison; and about our manifests."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from afd_patchkit.api import load_project
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.upgrade.upgrading import upgrade
from tools.environments import ROOT
from tools.oracles.drift import guide
from tools.oracles.drift.compare import Comparer, Drift
from tools.oracles.drift.facts import FACTS, differences, read_facts
from tools.oracles.drift.page import PAGE, page
from tools.oracles.progress import progress
from tools.oracles.releases import RELEASES, SYMBOLS, read_symbols


def survey(
    comparer: Comparer, symbols: Sequence[str], releases: Sequence[str] = RELEASES
) -> dict[tuple[str, str], Drift]:
    """Compare every symbol at every release with the base."""
    found = {}
    with progress(len(symbols) * len(releases), "comparing") as done:
        for version in releases:
            for symbol in symbols:
                found[symbol, version] = comparer.drift(symbol, version)
                done()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print what differs from the facts, and write the page."""
    parser = argparse.ArgumentParser(prog="tools/drift", description=__doc__)
    parser.add_argument("symbols", nargs="?", type=Path, default=SYMBOLS, help="list of `module:qualname`, one a line")
    parser.add_argument("--facts", type=Path, default=FACTS, help="known statuses to compare with")
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"write {PAGE.relative_to(ROOT)}, and what becomes of our manifests there and in {guide.PAGE.relative_to(ROOT)}",
    )
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
        print(
            f"{item.symbol} at {item.version}: facts say {item.fact}, the tool says {item.found.status}",
            *item.found.detail,
            sep="\n  ",
        )
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
        guide.write(results)
        print(f"{PAGE.relative_to(ROOT)} and {guide.PAGE.relative_to(ROOT)} written")
    return int(bool(wrong))
