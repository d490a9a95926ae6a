"""What `adopt` makes of every file of a tree: nothing is written, and the counts are those of docs/adopt.md."""

from __future__ import annotations

import argparse
import gc
import re
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from afd_patchkit.adopt.adopting import adopt_read
from afd_patchkit.adopt.result import Adopted, Where
from afd_patchkit.copies.audit import AuditOptions, Read, copies_in, finder_of, opened
from afd_patchkit.copies.pairing import CopyPair, Unpaired
from afd_patchkit.copies.reading import HandFile, read_files
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.model import Pin
from afd_patchkit.source.deep import deep
from afd_patchkit.upstream.options import SourceOptions
from tools.oracles.progress import progress

ROWS = {
    "found": "copies found",
    "PK670": "of another distribution (PK670)",
    "PK715": "upstream not found (PK715)",
    "PK716": "several candidates (PK716)",
    "paired": "paired",
    "proved": "adopted, round trip proved",
    "delegate": "of these as a delegate",
    "unexplained": "of these with a change that nothing explains (PK233)",
    "frozen": "of these with a delta that repeats upstream text (PK220)",
    "refused": "refused (PK718)",
    "crashed": "in a file at which the tool crashed",
}
KINDS = ("fenced", "without a fence")


@dataclass
class Counts:
    """What became of the copies of a tree.

    Attributes:
        copies: kind and row, to how many.
        reasons: code and reason of the refusals, names left out, to how many.
        seconds: processor time of each copy that was derived, refused ones too.
        files: how many files were read.
        unread: files that could not be read, and why.
        crashes: files at which the tool crashed, and how.
    """

    copies: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    files: int = 0
    unread: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)

    def add(self, file: HandFile, read: Read, pins: dict[str, Pin]) -> None:
        """Pair and adopt the copies of one file; a crash is counted and told, never raised.

        Args:
            file: the file.
            read: finder, upstreams and sources of the run; its files and copies do not count.
            pins: the upstreams, by name.
        """
        self.files += 1
        found: list[CopyPair | Unpaired] = []
        try:
            with deep(file.shown):
                installs, found = copies_in(file, read.finder)
                mine = Read((file,), tuple(installs), tuple(found), (), read.finder, read.upstreams, read.sources)
                copies = adopt_read(mine, pins, Where.of(file.path))
        except PatchkitError as error:
            self._told(found, [], error.findings[0].code, error.findings[0].message)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            self.crashes.append(f"{file.shown}: {type(error).__name__}: {error} ({last.name}, line {last.lineno})")
            self._told(found, [], "", "")
        else:
            self._told(found, copies.copies, "PK718", "nothing was derived")

    def _told(self, found: Sequence[CopyPair | Unpaired], copies: Sequence[Adopted], code: str, why: str) -> None:
        for pair in found:
            rows = ["found"]
            if isinstance(pair, Unpaired):
                rows.append(pair.code)
            else:
                rows += ["paired", *self._rows([c for c in copies if c.pair.hand is pair.hand], code, why, pair)]
            kind = KINDS[0] if pair.hand.fences else KINDS[1]
            self.copies.update((kind, row) for row in rows)

    def _rows(self, mine: Sequence[Adopted], code: str, why: str, pair: CopyPair) -> Iterator[str]:
        """The rows in which a paired copy counts; one that became two entries is adopted when both are."""
        if not code:
            yield "crashed"
            return
        if mine:
            self.seconds.append(sum(c.seconds for c in mine))
        if mine and all(c.proved for c in mine):
            yield "proved"
            if pair.delegates:
                yield "delegate"
            if any(c.unexplained for c in mine):
                yield "unexplained"
            if any(c.frozen for c in mine):
                yield "frozen"
            return
        yield "refused"
        code, why = next(((c.code, c.why) for c in mine if c.why), (code, why))
        self.reasons[code, nameless(why)] += 1
        print(f"{pair.hand.file.shown}:{pair.hand.node.lineno}: {pair.hand.qualname}: {code}: {why}", file=sys.stderr)


def nameless(why: str) -> str:
    """A reason without the names, lines and code in it, so that equal ones count together."""
    text = re.sub(r" in lines? [\d-]+$", "", why)
    return re.sub(r"`[^`]*`|'[^']*'|\b\d+\b|\S*\w[./:_]\w\S*|(?<=binds ).*", "…", text).replace("|", r"\|")


def count(paths: Sequence[Path], pins: dict[str, Pin], sources: SourceOptions, base: Path) -> Counts:
    """Adopt every file of some files and folders, and count; nothing is written.

    Args:
        paths: files and folders.
        pins: the upstreams, by name.
        sources: where they come from.
        base: the folder that files are named relative to.

    Raises:
        UpstreamError: an upstream cannot be had.
    """
    options = AuditOptions(pins=pins, sources=sources, base=base)
    upstreams = opened(pins, sources)
    files, problems = read_files(paths, options.base)
    read = Read((), (), (), (), finder_of(pins, upstreams), upstreams, sources)
    done = Counts(unread=[f"{f.code}: {f.message}" for f in problems])
    with progress(len(files), "adopting") as step:
        for file in files:
            done.add(file, read, pins)
            gc.collect(0)
            step()
    return done


def table(done: Counts) -> str:
    """The counts in Markdown: what became of the copies, then why some were refused."""
    lines = [f"| | {' | '.join(KINDS)} | all |", "|---|---:|---:|---:|"]
    for row, words in ROWS.items():
        numbers = [done.copies[kind, row] for kind in KINDS]
        lines.append(f"| {words} | {' | '.join(map(str, [*numbers, sum(numbers)]))} |")
    if done.reasons:
        lines += ["", "| refused because | by | copies |", "|---|---|---:|"]
        lines += [f"| {why} | {code} | {number} |" for (code, why), number in done.reasons.most_common()]
    return "\n".join(lines)


def times(done: Counts) -> str:
    """The processor time of a copy."""
    if not done.seconds:
        return "No copy was derived."
    median, longest = statistics.median(done.seconds), max(done.seconds)
    return f"Processor time of one copy: {median:.2f} s in the median, {longest:.1f} s at most."


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/adopt_counts`; 1 when a file crashed or could not be read."""
    parser = argparse.ArgumentParser(
        prog="tools/adopt_counts",
        description="Adopt every hand copy of a tree in memory, and print what became of them; each refusal goes to stderr.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file or folder")
    parser.add_argument("--pin", action="append", required=True, metavar="NAME=V", help="the upstream; may be repeated")
    parser.add_argument("--source", action="append", default=[], metavar="NAME=PATH", help="a tree, sdist or wheel")
    parser.add_argument("--offline", action="store_true", help="use the cache only")
    options = parser.parse_args(arguments)
    if not all("=" in text for text in [*options.pin, *options.source]):
        parser.error("write --pin NAME=VERSION and --source NAME=PATH")
    pins = {n: Pin(distribution=n, version=v) for n, _, v in (text.partition("=") for text in options.pin)}
    places = {n: Path(p) for n, _, p in (text.partition("=") for text in options.source)}
    started, processor = time.monotonic(), time.process_time()
    try:
        done = count(options.paths, pins, SourceOptions(sources=places, offline=options.offline), Path())
    except PatchkitError as error:
        print(*(f"{f.code}: {f.message}" for f in error.findings), sep="\n", file=sys.stderr)
        return error.exit_code
    print(f"{table(done)}\n\n{times(done)}")
    for what, which in (("could not be read", done.unread), ("crashed", done.crashes)):
        print(f"Files that {what}: {len(which)}.", *which, sep="\n  ")
    spent = (
        f"{time.process_time() - processor:.0f} s of processor time, {time.monotonic() - started:.0f} s of wall time"
    )
    print(f"{done.files} files, {spent}.")
    return 1 if done.unread or done.crashes else 0
