"""The Python files of a pinned upstream, laid out as a folder to be put on a path; kept below the user's cache folder.

Every file is verified against the digests of its release when it is written, and against a list of these when the folder is
found again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from afd_patchkit.upstream.resolve import SourceUpstream
from tools import environments, pinned

LISTING = "digests.json"


def intact(folder: Path) -> bool:
    """Whether `folder` holds all files of its listing, as they were written."""
    try:
        listing = json.loads((folder / LISTING).read_text(encoding="utf-8"))
        return all(_digest((folder / path).read_bytes()) == digest for path, digest in listing.items())
    except (OSError, ValueError, AttributeError):
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def lay_out(upstream: SourceUpstream, folder: Path) -> None:
    """Write all Python files of a release; the folder appears when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".part-") as name:
        part = Path(name) / folder.name
        listing = {}
        for path, data in upstream.package_files():
            listing[path] = _digest(data)
            (part / path).parent.mkdir(parents=True, exist_ok=True)
            (part / path).write_bytes(data)
        (part / LISTING).write_text(json.dumps(listing), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)  # damaged, and ours
        part.rename(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/pin_tree`: 0 the folder is there, 2 no such pin, 3 its source cannot be had."""
    parser = argparse.ArgumentParser(
        prog="tools/pin_tree",
        description="Lay out the Python files of a pinned upstream; the last line of the output is the folder.",
    )
    parser.add_argument("pin", help="a name in manifests/pins.yaml")
    parser.add_argument(
        "--source", action="append", default=[], metavar="PIN=PATH", help="take a pin's sources from here"
    )
    parser.add_argument("--offline", action="store_true", help="use the cache and installed distributions only")
    options = parser.parse_args(arguments)
    pins = pinned.pins()
    if options.pin not in pins:
        print(f"tools/pin_tree: there is no pin {options.pin}; there are {', '.join(pins)}", file=sys.stderr)
        return 2
    upstream = pinned.opened(options.pin, pins[options.pin], pinned.options(options.source, offline=options.offline))
    if upstream is None:
        return 3
    identity = upstream.artifact.sha256 or _digest(upstream.artifact.file.encode())
    folder = environments.cache_folder() / "trees" / f"{options.pin}-{upstream.version}-{identity[:16]}"
    if not intact(folder):
        lay_out(upstream, folder)
    print(folder)
    return 0
