"""`upgrade` against merging the same functions with `git merge-file` and GNU `patch`, in the same run; and its cost by entries."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from afd_patchkit.api import RunOptions, load_project, regen
from afd_patchkit.upgrade.result import EntryResult, UpgradeResult
from afd_patchkit.upgrade.upgrading import upgrade
from afd_patchkit.upstream.options import SourceOptions
from tools.bench.synthetic import PER_FILE, make_project
from tools.oracles.proof.judge import dedent

ROOT = Path(__file__).resolve().parents[2]
RELEASE = "0.28.0"
_CHANGES = (
    (
        "        value = scale(item, {n})\n",
        "        value = scale(item, {n})\n        logger.debug('scaled %s', value)\n",
    ),
    ("    out = []\n", "    batch = list(batch)\n    out = []\n"),
    ("", ""),
)
"""What the invented release does, function by function: a line beside a delta, a line elsewhere, nothing."""


def run(runs: int) -> None:
    """Make all three measurements and print them."""
    whole_project(runs)
    by_entries()


# ---- our own project ----------------------------------------------------------------------------------------------


def whole_project(runs: int) -> None:
    """The whole project to one new release, warm: the command, and the peers on the functions that changed."""
    command = [sys.executable, "-m", "afd_patchkit", "--project", str(ROOT), "upgrade", "--vllm", RELEASE]
    _command(command)
    times = [timed(lambda: _command(command)) for _ in range(runs)]
    ours = Took(statistics.median(t.wall for t in times), statistics.median(t.cpu for t in times))
    result = upgrade(load_project(ROOT), pin_overrides={"vllm": RELEASE})
    changed = triples(result.entries)
    print(
        f"warm upgrade --vllm {RELEASE}, {len(result.entries)} entries: {ours.wall:.2f} s, processor {ours.cpu:.2f} s (median of {runs})"
    )
    peers(changed, "the functions that changed", ours)


def _command(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")


@dataclass(frozen=True)
class Took:
    """Seconds that some work took: wall time, and processor time with that of finished child processes."""

    wall: float
    cpu: float


def timed(work: Callable[[], object]) -> Took:
    """Do it and say how long it took."""
    started, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    return Took(time.perf_counter() - started, sum(after[:4]) - sum(before[:4]))


# ---- the peers ----------------------------------------------------------------------------------------------------

Triple = tuple[str, str, str]
"""Base, ours and theirs."""


def triples(entries: Sequence[EntryResult]) -> list[Triple]:
    """Old upstream, generated and new upstream text of each copy that changed, all without indentation."""
    return [
        (dedent(e.base), dedent(e.ours_old), dedent(e.new))
        for e in entries
        if e.base and e.ours_old and e.new and e.base != e.new and e.kind in ("copy", "backport")
    ]


def peers(changed: Sequence[Triple], what: str, ours: Took) -> None:
    """Time both peers on the triples, one process for each, and print how `ours` compares (processor time, too)."""
    if not changed:
        print(f"  nothing changed in {what}")
        return
    with tempfile.TemporaryDirectory() as folder:
        prepared = [_prepare(Path(folder), number, triple) for number, triple in enumerate(changed)]
        for name, peer in (("git merge-file", _merge_file), ("patch", _patch)):
            applied: list[bool] = []
            took = timed(lambda peer=peer, applied=applied: applied.extend(peer(path) for path in prepared))  # type: ignore[misc]
            print(
                f"  {name} on {what}: {took.wall / len(prepared) * 1000:.1f} ms each, {sum(applied)} of {len(applied)} without a conflict; "
                f"ours / {name}: {ours.wall / took.wall:.1f} (processor {ours.cpu / max(took.cpu, 0.01):.1f})"
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


def upgraded(folder: Path, count: int) -> tuple[UpgradeResult, Took]:
    """A synthetic project of `count` entries, upgraded in this process; with what it took."""
    root, source = make_project(folder, count)
    target = folder / "new"
    invented(source, target, count)
    project = load_project(root)
    options = SourceOptions(sources={"acme": source}, offline=True, cache_dir=folder / "cache")
    report = regen(project, RunOptions(sources=options, jobs=1))
    assert report.exit_code == 0, report.findings[:3]
    both = SourceOptions(sources={"acme@1.0": source, "acme@1.1": target}, offline=True, cache_dir=folder / "cache")
    results: list[UpgradeResult] = []
    took = timed(lambda: results.append(upgrade(project, pin_overrides={"acme": "1.1"}, options=both)))
    return results[0], took


def by_entries() -> None:
    """Time per entry on synthetic projects, against the peers on the same functions."""
    print("entries  upgrade    per entry  processor  unchanged  clean  review")
    for count in (100, 300, 1_000, 3_000):
        with tempfile.TemporaryDirectory() as folder:
            result, took = upgraded(Path(folder), count)
            assert len(result.entries) == count, result.findings[:3]
            counts = [result.count(s) for s in ("unchanged", "clean", "review")]
            each = [seconds / count * 1000 for seconds in (took.wall, took.cpu)]
            print(
                f"{count:7,}  {took.wall:7.2f} s  {each[0]:6.2f} ms  {each[1]:6.2f} ms  {counts[0]:9,}  {counts[1]:5,}  {counts[2]:6,}",
                flush=True,
            )
            if count == 300:
                peers(triples(result.entries), "the changed ones of these", took)
