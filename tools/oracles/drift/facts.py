"""Statuses that were measured without this tool, and where it disagrees with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.oracles.drift.compare import Drift

FACTS = Path(__file__).with_name("facts.tsv")
Facts = Mapping[tuple[str, str], str]
"""Symbol and version to status."""


def read_facts(path: Path = FACTS) -> Facts:
    """Read the table of known statuses."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return {(f"{module}:{qualname}", version): status for module, qualname, version, status in rows}


def normal(status: str) -> str:
    """A status as it is compared: new names may be written with or without their module."""
    word, colon, name = status.partition(": ")
    return f"{word}: {name.rpartition(':')[2]}" if colon else status


@dataclass(frozen=True)
class Difference:
    """One status on which the tool and the facts disagree."""

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
