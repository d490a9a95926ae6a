"""`upgrade` against merging the same functions with `git merge-file` and GNU `patch`, in the same run; and its cost by entries."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from afd_patchkit.api import load_project, regen
from afd_patchkit.rebase.api import upgrade
from afd_patchkit.rebase.model import EntryResult, UpgradeResult
from afd_patchkit.upstream.settings import SourceOptions
from tools.bench.synthetic import PER_FILE, make_project

ROOT = Path(__file__).resolve().parents[2]
RELEASE = "0.28.0"
_CHANGES = (
    ("        value = scale(item, {n})\n", "        value = scale(item, {n})\n        logger.debug('scaled %s', value)\n"),
    ("    out = []\n", "    batch = list(batch)\n    out = []\n"),
    ("", ""),
)
"""What the invented release does, function by function: a line beside a delta, a line elsewhere, nothing."""


def run(runs: int) -> None:
    """All three measurements."""
    whole_project(runs)
    by_entries()


# ---- our own project ----------------------------------------------------------------------------------------------


def whole_project(runs: int) -> None:
    """The whole project to one new release, warm: the command, and the peers on the functions that changed."""
    command = [sys.executable, "-m", "afd_patchkit", "--project", str(ROOT), "upgrade", "--vllm", RELEASE]
    _command(command)
    ours = statistics.median(_timed(lambda: _command(command)) for _ in range(runs))
    result = upgrade(load_project(ROOT), pin_overrides={"vllm": RELEASE})
    changed = triples(result.entries)
    print(f"warm upgrade --vllm {RELEASE}, {len(result.entries)} entries: {ours:.2f} s (median of {runs})")
    peers(changed, "the functions that changed", ours)


def _command(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


# ---- the peers ----------------------------------------------------------------------------------------------------

Triple = tuple[str, str, str]
"""Base, ours and theirs."""


def triples(entries: Sequence[EntryResult]) -> list[Triple]:
    """Old upstream, generated and new upstream text of each entry that changed."""
    return [
        (e.base, e.ours_old, e.new) for e in entries if e.base and e.ours_old and e.new and e.base != e.new and e.kind != "owned"
    ]


def peers(changed: Sequence[Triple], what: str, ours: float, entries: int = 1) -> None:
    """Time both peers on the triples and print their ratios to `ours` (seconds, for as many `entries`)."""
    if not changed:
        print(f"  nothing changed in {what}")
        return
    with tempfile.TemporaryDirectory() as folder:
        prepared = [_prepare(Path(folder), number, triple) for number, triple in enumerate(changed)]
        for name, peer in (("git merge-file", _merge_file), ("patch", _patch)):
            applied = sum(peer(path) for path in prepared)
            took = _timed(lambda peer=peer: [peer(path) for path in prepared])  # type: ignore[misc]
            per_entry = took / len(prepared)
            ratio = ours / entries / per_entry if entries > 1 else ours / took
            print(
                f"  {name} on {what} ({len(prepared)}): {per_entry * 1000:.1f} ms each, without a conflict {applied}; "
                f"ours / {name}: {ratio:.1f}"
            )


def _prepare(folder: Path, number: int, triple: Triple) -> Path:
    """The files of one function, and the difference from base to ours as `patch` takes it."""
    path = folder / str(number)
    path.mkdir()
    for name, text in zip(("base", "ours", "theirs"), triple, strict=True):
        (path / name).write_text(text, encoding="utf-8")
    diff = subprocess.run(["diff", "-u", "base", "ours"], cwd=path, capture_output=True, check=False)
    (path / "delta.diff").write_bytes(diff.stdout)
    return path


def _merge_file(path: Path) -> bool:
    command = ["git", "merge-file", "-p", "ours", "base", "theirs"]
    return subprocess.run(command, cwd=path, capture_output=True, check=False).returncode == 0


def _patch(path: Path) -> bool:
    command = ["patch", "--quiet", "--force", "--output=patched", "--reject-file=-", "theirs", "delta.diff"]
    return subprocess.run(command, cwd=path, capture_output=True, check=False).returncode == 0


# ---- cost by number of entries ------------------------------------------------------------------------------------


def invented(source: Path, target: Path, count: int) -> None:
    """A new release of the synthetic upstream: a third of the functions changes beside a delta, a third elsewhere."""
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.stem.startswith("part_"):
            first = int(path.stem.removeprefix("part_")) * PER_FILE
            head, *functions = text.split("\ndef ")
            for index in range(len(functions)):
                old, new = (part.format(n=first + index) for part in _CHANGES[(first + index) % len(_CHANGES)])
                functions[index] = functions[index].replace(old, new, 1) if old else functions[index]
            text = "\ndef ".join([head, *functions])
        there = target / path.relative_to(source)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(text, encoding="utf-8")


def upgraded(folder: Path, count: int) -> tuple[UpgradeResult, float]:
    """A synthetic project of `count` entries, upgraded in this process; with the seconds it took."""
    root, source = make_project(folder, count)
    target = folder / "new"
    invented(source, target, count)
    project = load_project(root)
    options = SourceOptions(sources={"acme": source}, offline=True, cache_dir=folder / "cache")
    report = regen(project, options=options, jobs=1)
    assert report.exit_code == 0, report.findings[:3]
    both = SourceOptions(sources={"acme@1.0": source, "acme@1.1": target}, offline=True, cache_dir=folder / "cache")
    started = time.perf_counter()
    result = upgrade(project, pin_overrides={"acme": "1.1"}, options=both)
    return result, time.perf_counter() - started


def by_entries() -> None:
    """Wall time per entry on synthetic projects, against the peers on the same functions."""
    print("entries  upgrade    per entry  unchanged  clean  review")
    for count in (100, 300, 1_000, 3_000):
        with tempfile.TemporaryDirectory() as folder:
            result, took = upgraded(Path(folder), count)
            assert len(result.entries) == count, result.findings[:3]
            counts = [result.count(s) for s in ("unchanged", "clean", "review")]
            print(f"{count:7,}  {took:7.2f} s  {took / count * 1000:6.2f} ms  {counts[0]:9,}  {counts[1]:5,}  {counts[2]:6,}", flush=True)
            if count == 300:
                peers(triples(result.entries), "the changed ones of these", took, count)
