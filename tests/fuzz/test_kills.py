"""A few of the kills of `tools/kills`, and that it notices what is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.environments import ROOT
from tools.oracles.kills.run import state, visible


@pytest.mark.slow
def test_commands_that_are_killed_now_and_then():
    done = subprocess.run(
        [sys.executable, "tools/kills", "--every", "40"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in done.stdout


def test_what_is_compared(tmp_path: Path):
    for name in (
        "generated/a.py",
        "generated/.upgrade.json",
        ".generated.new/a.py",
        "generated/patchkit.lock",
        "manifests/x.lock",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    found = state(tmp_path)
    assert set(found) == {"generated/a.py", "generated/.upgrade.json", ".generated.new/a.py", "generated/patchkit.lock"}
    assert set(visible(found)) == {"generated/a.py", "generated/patchkit.lock"}
