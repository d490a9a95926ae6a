#!/usr/bin/env python3
"""Benchmarks: each compares with a peer in the same run and prints a ratio. Timings are never asserted.

    python tools/bench/run.py [check] [regen] [scale] [upgrade] [--runs N]

Run it with an interpreter that has the project installed (`tools/test` makes one).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def _environment() -> dict[str, str]:
    """As where a package is installed: its modules are compiled once, not in every run."""
    return {**{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}, "PYTHONPATH": str(ROOT)}


def seconds(command: Sequence[str]) -> float:
    """How long one command takes, in seconds."""
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=_environment())
    return time.perf_counter() - started


def cpu_seconds(command: Sequence[str]) -> float:
    """The processor time of one command, in seconds: what a busy machine does not change."""
    before = os.times()
    seconds(command)
    after = os.times()
    return (after.children_user + after.children_system) - (before.children_user + before.children_system)


def paired(name: str, ours: Sequence[str], peer: Sequence[str], runs: int) -> None:
    """Time two commands in turn and print medians and the median of the pairwise ratios.

    Args:
        name: what is measured.
        ours: our command.
        peer: the command that it is compared with.
        runs: number of pairs.
    """
    for command in (ours, peer):
        seconds(command)
    pairs = [(seconds(ours), seconds(peer)) for _ in range(runs)]
    mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{name}: {mine * 1000:.0f} ms, peer {other * 1000:.0f} ms, ratio {ratio:.2f} (median of {runs} pairs)")


def check(runs: int) -> None:
    """A warm `check` against importing click, yaml and pydantic."""
    paired(
        "warm check / import click, yaml, pydantic",
        [sys.executable, "-m", "afd_patchkit", "check"],
        [sys.executable, "-c", "import click, yaml, pydantic"],
        runs,
    )


_PEER = """
import sys
import libcst
for path in sys.argv[1:]:
    libcst.parse_module(open(path, "rb").read())
"""


def regen(runs: int) -> None:
    """A warm `regen` against importing libcst and parsing the same functions with it.

    Three cases: nothing changed; the code of one delta changed (the peer parses the functions of its manifest); everything, with
    `--full`.
    """
    from afd_patchkit.api import load_project
    from afd_patchkit.manifest.load import load_manifests

    project = load_project(ROOT)
    loaded = load_manifests(project)
    touched = max(loaded.manifests, key=lambda m: sum(entry.symbol is not None for entry, _ in m.all_entries()))
    command = [sys.executable, "-m", "afd_patchkit", "regen"]
    path = ROOT / touched.path
    original = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        everything = _symbols(loaded, loaded.manifests, Path(folder, "all"))
        some = _symbols(loaded, [touched], Path(folder, "some"))
        seconds(command)
        paired(
            f"warm regen, nothing changed / import libcst and parse {len(some)} functions",
            command,
            [sys.executable, "-c", _PEER, *some],
            runs,
        )
        try:
            flip = ["-c", _FLIP.format(path=str(path), command=[*command])]
            paired(
                f"warm regen, one delta of {touched.module} changed / import libcst and parse its {len(some)} functions",
                [sys.executable, *flip],
                [sys.executable, "-c", _PEER, *some],
                runs,
            )
        finally:
            path.write_bytes(original)
            seconds(command)
        paired(
            f"warm regen --full / import libcst and parse all {len(everything)} functions",
            [*command, "--full"],
            [sys.executable, "-c", _PEER, *everything],
            runs,
        )


# changes the code of a manifest's first delta that has some, then becomes the command
_FLIP = """
import os
text = open({path!r}).read()
mark = "with: |\\n"
at = text.index("\\n", text.index(mark, text.index("deltas:")) + len(mark))
flipped = text[:at].endswith("  # flipped")
text = text[:at].removesuffix("  # flipped") + ("" if flipped else "  # flipped") + text[at:]
open({path!r}, "w").write(text)
os.execv({command!r}[0], {command!r})
"""


def _symbols(loaded: Any, manifests: Sequence[Any], folder: Path) -> list[str]:
    """The upstream functions of some manifests, each dedented in a file of its own."""
    from afd_patchkit.source.locate import find_symbol, parse_reference
    from afd_patchkit.upstream.options import SourceOptions
    from afd_patchkit.upstream.resolve import open_upstream

    options = SourceOptions()
    folder.mkdir()
    opened: dict[str, Any] = {}
    paths: list[str] = []
    for manifest in manifests:
        for entry, _ in manifest.all_entries():
            pin = entry.pin or manifest.pin
            if entry.symbol is None or pin is None:
                continue
            if pin not in opened:
                opened[pin] = open_upstream(pin, loaded.pins.pins[pin], options)
            module, qualname = parse_reference(entry.symbol.text)
            symbol = find_symbol(opened[pin].read(module), qualname)
            path = folder / f"{len(paths)}.py"
            lines = symbol.data.decode().splitlines()
            path.write_text("\n".join(line.removeprefix(symbol.indent) for line in lines) + "\n")
            paths.append(str(path))
    return paths


def scale(_: int) -> None:
    """CPU time by number of entries: a first `regen` and `regen --full` in this process, a warm `check` as a command."""
    from afd_patchkit.api import RunOptions, SourceOptions, load_project, regen
    from tools.bench.synthetic import make_project

    print("entries  first regen  per entry  regen --full  per entry  warm check")
    for count in (100, 300, 1_000, 3_000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            root, source = make_project(Path(folder), count)
            project = load_project(root)
            options = SourceOptions(sources={"acme": source}, offline=True, cache_dir=Path(folder, "cache"))
            took = []
            for full in (False, True):
                started = time.process_time()
                report = regen(project, RunOptions(sources=options, full=full, jobs=1))
                took.append(time.process_time() - started)
                assert report.exit_code == 0, report.findings[:3]
            command = [sys.executable, "-m", "afd_patchkit", "--project", str(root), "check"]
            warm = min(cpu_seconds(command) for _ in range(3))
            first, full_ = (f"{cost:9.2f} s  {cost / count * 1000:6.2f} ms" for cost in took)
            print(f"{count:7,}  {first}  {full_}  {warm * 1000:7.0f} ms", flush=True)


def upgrade(runs: int) -> None:
    """An upgrade against `git merge-file` and `patch` on the same functions; its cost by number of entries."""
    from tools.bench import upgrade as bench

    bench.run(runs)


BENCHES: dict[str, Callable[[int], None]] = {
    "check": check,
    "regen": regen,
    "scale": scale,
    "upgrade": upgrade,
}


def main() -> None:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    for name in arguments.names or BENCHES:
        BENCHES[name](arguments.runs)


if __name__ == "__main__":
    main()
