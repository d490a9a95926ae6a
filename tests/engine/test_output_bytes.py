"""The same input gives the same bytes: hash seed, locale, time zone, worker count, checkout order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.sample import Sample

ROOT = Path(__file__).parents[2]
CODE = (
    "import sys\nfrom pathlib import Path\nfrom tests.engine.sample import Sample\n"
    "sample = Sample.__new__(Sample)\nsample.root = Path(sys.argv[1])\nsample.source = Path(sys.argv[2])\nsample.cache = sample.root.parent / 'cache'\n"
    "sys.exit(sample.regen(full=True, jobs=int(sys.argv[3])).exit_code)\n"
)


@pytest.mark.parametrize(
    ("settings", "jobs"),
    [
        ({"PYTHONHASHSEED": "1"}, 1),
        ({"PYTHONHASHSEED": "4711", "TZ": "Asia/Kathmandu"}, 1),
        ({"LC_ALL": "C", "PYTHONUTF8": "0"}, 1),
        ({"LC_ALL": "tr_TR.UTF-8"}, 2),
        ({"SOURCE_DATE_EPOCH": "0"}, 3),
    ],
)
def test_bytes_do_not_depend_on_the_surroundings(sample: Sample, settings: dict[str, str], jobs: int) -> None:
    for number in range(3):
        sample.manifest(f"""
            schema: 1
            module: acme_set/m{number}.py
            summary: "Zahl {number} \u00e4\u00f6\u00fc"
            pin: acme
            entries:
              - symbol: acme.tools:spare
                share: true
                reason: r
        """, f"m{number}")  # fmt: skip
    assert sample.regen().exit_code == 0
    expected = sample.state()
    for path in (sample.root / "generated").rglob("*.py"):
        path.unlink()
    sample.lock.unlink()
    arguments = [sys.executable, "-c", CODE, str(sample.root), str(sample.source), str(jobs)]
    subprocess.run(arguments, cwd=ROOT, env={**os.environ, **settings}, check=True, timeout=600)
    assert sample.state() == expected
