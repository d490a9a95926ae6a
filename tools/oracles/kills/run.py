"""The run: each command is killed at each of its points, and run again; and the command."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.oracles.fuzz import child, project
from tools.oracles.fuzz.draw import MOVED, OFFLINE, Case
from tools.oracles.fuzz.run import Field
from tools.oracles.progress import progress

_EVENTS = frozenset(
    {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.link", "os.symlink", "os.truncate", "os.utime", "os.scandir", "os.listdir", "shutil.rmtree"}
)  # fmt: skip
_HAND = "generated/by_hand.txt"
"""A file that somebody wrote, where the tool has no business."""


@dataclass(frozen=True)
class Scene:
    """A command, and the project that it runs in.

    Attributes:
        name: what it is called.
        arguments: the command.
        files: what the sound project has besides, or instead.
    """

    name: str
    arguments: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)


def scenes() -> list[Scene]:
    """Everything that writes more than one file, and what a person accepts."""
    manifest = project.yaml_of({**project.RUNNER, "summary": "Another step loop.", "module": "acme_set/other.py"})
    clean = {"two/acme/engine.py": project.ENGINE.replace("        out += value", "        out += value + 0").encode()}
    review = {"two/acme/tools.py": project.TOOLS.replace("(out, limit)\n\n", "(limit, out)\n\n").encode()}
    return [
        Scene("regen", ("regen", *OFFLINE), {"manifests/acme_set/runner.yaml": manifest}),
        Scene("first", ("regen", *OFFLINE), {"generated": b""}),
        Scene("upgrade", ("upgrade", "--write", *MOVED), clean),
        Scene("accept", ("accept", "--why", "x", "runner.py::own", *MOVED), review),
    ]


def state(root: Path) -> dict[str, bytes]:
    """Every file below the project, but for what a lock leaves."""
    return {
        p.relative_to(root).as_posix(): p.read_bytes()
        for p in root.rglob("*")
        if (p.is_file() and p.suffix != ".lock") or p.name == "patchkit.lock"
    }


def killing(root: Path, at: int, log: int | None = None) -> Callable[[], None]:
    """What makes this process die at its point number `at`, and write one byte to `log` at each."""
    count = 0
    below = str(root.parent)

    def point() -> None:
        nonlocal count
        count += 1
        if log is not None:
            os.write(log, b".")
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in _EVENTS and any(
            isinstance(a, str | os.PathLike) and os.path.abspath(a).startswith(below) for a in arguments[:2]
        ):
            point()

    def install() -> None:
        fsync = os.fsync

        def synced(descriptor: int) -> None:
            point()
            fsync(descriptor)
            point()

        os.fsync = synced  # type: ignore[assignment]
        sys.addaudithook(hook)

    return install


def points(field: Field, scene: Scene) -> tuple[int, dict[str, bytes], dict[str, bytes]]:
    """How many there are, and the state before and after."""
    put(field, scene)
    old = state(field.folder)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    done = child.run(scene.arguments, field.folder, killing(field.folder, 0, writing))
    os.close(writing)
    count = 0
    while piece := os.read(reading, 65536):
        count += len(piece)
    os.close(reading)
    if done.code:
        raise RuntimeError(f"{scene.name} ends with {done.code}: {done.output}")
    return count, old, state(field.folder)


def put(field: Field, scene: Scene) -> None:
    """Make the project of a scene."""
    gone = {name: "gone" for name in field.sound if "generated" in scene.files and name.startswith("generated/")}
    files = {name: data for name, data in scene.files.items() if name != "generated"}
    field.put(Case(scene.name, scene.arguments, {**files, _HAND: b"mine"}, gone))


def tried(field: Field, scene: Scene, at: int, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[str]:
    """What is wrong after a kill at one point.

    Args:
        field: where it is tried.
        scene: the command.
        at: number of the point.
        old: the state before.
        new: the state that a whole run leaves.
    """
    put(field, scene)
    killed = child.run(scene.arguments, field.folder, killing(field.folder, at))
    if killed.code != -signal.SIGKILL:
        yield f"was not killed: {killed.code}"
        return
    left = state(field.folder)
    torn = visible(left) not in (visible(old), visible(new))
    if left.get(_HAND) != b"mine":
        yield "a file written by hand is gone"
    lock = json.loads(left.get("generated/patchkit.lock", b"{}"))
    moved = lock.get("pins", {}).get("acme", {}).get("version") == "2.0"
    mended = child.run(("regen", *(MOVED[2:] if moved else OFFLINE)), field.folder)
    if mended.code and not torn:
        yield f"the next regen ends with {mended.code}: {mended.output[-500:]}"
    again = child.run(scene.arguments, field.folder)
    if again.code:
        yield f"the same command again ends with {again.code}: {again.output[-500:]}"
    end = state(field.folder)
    if end != new:
        names = sorted(name for name in end.keys() | new.keys() if end.get(name) != new.get(name))
        yield f"ends in another state ({'torn' if torn else 'whole'} after the kill): {', '.join(names[:5])}"


def visible(found: Mapping[str, bytes]) -> dict[str, bytes]:
    """Without what is hidden: journals, temporary files and folders beside the generated one."""
    return {name: data for name, data in found.items() if not any(part.startswith(".") for part in name.split("/"))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 when something was lost."""
    parser = argparse.ArgumentParser(
        prog="tools/kills",
        description="regen, accept and upgrade --write, killed before each file operation on the project: whatever is left, the next run "
        "ends where a whole one ends, and nothing else is there.",
    )
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth point (default 1)")
    parser.add_argument("--scene", action="append", help="only this one; repeatable")
    options = parser.parse_args(arguments)
    begin, faults, total = time.monotonic(), 0, 0
    field = Field()
    try:
        for scene in scenes():
            if options.scene and scene.name not in options.scene:
                continue
            count, old, new = points(field, scene)
            chosen = range(1, count + 1, options.every)
            with progress(len(chosen), scene.name) as done:
                for at in chosen:
                    total += 1
                    done()
                    for fault in tried(field, scene, at, old, new):
                        faults += 1
                        print(f"{scene.name}, point {at} of {count}: {fault}", file=sys.stderr, flush=True)
            print(f"{scene.name}: {len(chosen)} of {count} points", flush=True)
    finally:
        field.close()
    print(f"{total} kills, {faults} faults, {time.monotonic() - begin:.0f} s")
    return int(faults > 0)
