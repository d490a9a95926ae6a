"""The generated folder is the old one or the new one, whatever happens in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.run import exchange
from tests.engine.sample import Sample, codes

ROOT = Path(__file__).parents[2]


def tree(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files."""
    out = tmp_path / "generated"
    exchange.replace_files(out, {"a/one.py": b"1", "two.lock": b"2"}, [])
    return out


def test_write_replace_remove(folder: Path) -> None:
    (folder / "mine.txt").write_text("stays")
    exchange.replace_files(folder, {"two.lock": b"22", "b/c/three.py": b"3"}, ["a/one.py"])
    assert tree(folder) == {"two.lock": "22", "b/c/three.py": "3", "mine.txt": "stays"}
    assert not (folder / "a").exists()
    assert sorted(p.name for p in folder.parent.iterdir()) == ["generated"]


def test_a_reader_of_the_old_file_keeps_it(folder: Path) -> None:
    with open(folder / "two.lock") as reader:
        exchange.replace_files(folder, {"two.lock": b"new"}, [])
        assert reader.read() == "2"


@pytest.mark.parametrize("failing", ["_write", "_sync", "_exchange", "_link"])
def test_full_disk_leaves_the_old_state(folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    before = tree(folder)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", str(folder / "x"))

    monkeypatch.setattr(exchange, failing, fail)
    with pytest.raises(PatchkitError) as caught:
        exchange.replace_files(folder, {"two.lock": b"new"}, ["a/one.py"])
    assert [f.code for f in caught.value.findings] == ["PK111"]
    assert "No space left" in str(caught.value)
    assert tree(folder) == before
    assert sorted(p.name for p in folder.parent.iterdir()) == ["generated"]


def test_without_exchange_a_kill_between_the_renames_is_recovered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(folder)
    monkeypatch.setattr(exchange, "_swapped", lambda *_: False)
    os.replace(folder, exchange.retired(folder))  # what a kill between the two renames leaves
    exchange.staging(folder).mkdir()
    exchange.recover(folder)
    assert tree(folder) == before
    exchange.replace_files(folder, {"two.lock": b"new"}, [])
    assert tree(folder) == {**before, "two.lock": "new"}
    assert sorted(p.name for p in folder.parent.iterdir()) == ["generated"]


WRITER = """
import sys
from pathlib import Path
from afd_patchkit.run import exchange

folder = Path(sys.argv[1])
number = 0
while True:
    number += 1
    data = str(number).encode()
    exchange.replace_files(folder, {f"p/f{i}.py": data for i in range(20)} | {"lock": data}, [])
    if number == 1:
        print("go", flush=True)
"""


@pytest.mark.slow
def test_kill_9_at_any_moment_leaves_one_state(tmp_path: Path) -> None:
    folder = tmp_path / "generated"
    seen = set()
    for attempt in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + 600
        while (folder / "lock").read_text() == "1" and time.monotonic() < deadline:
            time.sleep(0.01)  # the second write: from now on every moment is one between two states
        time.sleep(0.013 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        state = set(tree(folder).values())
        assert len(state) == 1, "modules and lock of different runs"
        seen |= state
    assert "1" not in seen, "a run was killed before its second write"
    assert seen


def test_two_runs_at_once_both_succeed(sample: Sample) -> None:
    sample.write("manifests/acme_set/extra.yaml", """
        schema: 1
        module: acme_set/extra.py
        summary: More.
        pin: acme
        entries:
          - {symbol: acme.tools:spare, reason: r}
    """)  # fmt: skip
    code = (
        "import sys\nfrom pathlib import Path\nfrom tests.engine.sample import Sample\n"
        "sample = Sample.__new__(Sample)\nsample.root = Path(sys.argv[1])\nsample.source = Path(sys.argv[2])\nsample.cache = sample.root.parent / 'cache'\n"
        "sys.exit(sample.regen(full=True).exit_code)\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code, str(sample.root), str(sample.source)], cwd=ROOT) for _ in range(3)
    ]
    assert [run.wait(timeout=600) for run in runs] == [0, 0, 0]
    assert sample.check(full=True).exit_code == 0
    assert not [p.name for p in sample.root.iterdir() if p.name.startswith(".generated")]


def test_unwritable_folder(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    sample.regen()
    before = sample.state()

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "generated")

    monkeypatch.setattr(exchange.shutil, "copytree", fail)
    sample.edit("manifests/acme_set/runner.yaml", "needed beside", "wanted beside")
    report = sample.regen()
    assert "PK111" in codes(report)
    assert report.exit_code == 1
    assert sample.state() == before
