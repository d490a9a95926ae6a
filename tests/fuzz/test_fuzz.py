"""The fuzzer itself: its cases are the same each time, and it notices what is a fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter

import pytest

import afd_patchkit.cli
from tools.environments import ROOT
from tools.oracles.fuzz import child, project
from tools.oracles.fuzz.draw import KINDS, draw
from tools.oracles.fuzz.run import Field

LOCK = {"modules": {}, "pins": {}}
SOUND = {"generated/patchkit.lock": json.dumps(LOCK).encode()}


def test_cases_are_the_same_each_time():
    for number in range(40):
        one, other = draw(number, 1, SOUND), draw(number, 1, SOUND)
        assert (one.kind, one.arguments, one.files, one.links, one.replies) == (other.kind, other.arguments, other.files, other.links, other.replies)  # fmt: skip
    assert draw(3, 1, SOUND).replies != draw(3, 2, SOUND).replies


def test_each_kind_is_drawn_as_often():
    counts = Counter(draw(number, 2, SOUND).kind for number in range(5 * len(KINDS)))
    assert set(counts) == set(KINDS)
    assert set(counts.values()) == {5}


@pytest.fixture
def field(monkeypatch):
    monkeypatch.setattr(child, "warm", lambda: None)
    monkeypatch.setattr(Field, "_sound", lambda _: {"pyproject.toml": b""})
    with monkeypatch.context() as context:
        for name in (
            "HOME",
            "XDG_STATE_HOME",
            "XDG_CACHE_HOME",
            "AFD_PATCHKIT_CACHE",
            "PIP_CONFIG_FILE",
            "PIP_INDEX_URL",
            "NETRC",
            "NO_PROXY",
        ):
            context.setenv(name, "")
        made = Field()
        yield made
        made.close()


def stray() -> None:
    from pathlib import Path

    Path("../canary").write_text("overwritten")


def memory() -> None:
    _ = bytes(2 * child.MEMORY)


def busy() -> None:
    while True:
        pass


def idle() -> None:
    time.sleep(10_000)


def wrong() -> None:
    raise SystemExit(70)


def traceback() -> None:
    os.write(1, b"Traceback (most recent call last):\n")


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (memory, "exit code 70"),
        (busy, "ended by signal"),
        (idle, "did not end, and did nothing"),
        (wrong, "exit code 70"),
        (traceback, "a traceback"),
        (stray, "wrote outside the project"),
        (lambda: None, ""),
    ],
)
def test_what_is_a_fault(field, monkeypatch, command, fault):
    monkeypatch.setattr(afd_patchkit.cli, "main", command)
    monkeypatch.setattr(child, "CPU", 1)
    monkeypatch.setattr(child, "PATIENCE", 0.1)
    tried = field.run(0, draw(0, 3, SOUND))
    assert tried.fault.startswith(fault)
    assert bool(tried.fault) == bool(fault)


def test_the_archives_are_sound():
    import io
    import tarfile
    import zipfile

    with zipfile.ZipFile(io.BytesIO(project.wheel())) as wheel:
        assert "acme/engine.py" in wheel.namelist()
    with tarfile.open(fileobj=io.BytesIO(project.sdist())) as sdist:
        assert "acme-1.0/acme/engine.py" in sdist.getnames()


@pytest.mark.slow
def test_a_few_cases_of_each_kind():
    done = subprocess.run(
        [sys.executable, "tools/fuzz", "--count", "20", "--start", "40"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "faults: 0" in done.stdout
