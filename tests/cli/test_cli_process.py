"""Real processes: what is imported, what goes to which stream, pipes, signals, encodings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import afd_patchkit

ROOT = str(Path(afd_patchkit.__file__).parents[1])
STUBS = """
import sys, time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from afd_patchkit.findings.report import ModuleCounts, ModuleReport, PinReport, Report

def stub(name, **names):
    module = ModuleType(name)
    module.__dict__.update(names)
    sys.modules[name] = module

def engine(result):
    from afd_patchkit.run.options import RunOptions
    from afd_patchkit.upstream.options import SourceOptions
    run = lambda project, options: result(options) if callable(result) else result
    stub("afd_patchkit.api", RunOptions=RunOptions, SourceOptions=SourceOptions, regen=run, check=run)
    import afd_patchkit.project
    afd_patchkit.project.load_project = lambda start=None: SimpleNamespace(root=Path())

def run(*arguments):
    from afd_patchkit.cli import main
    main(arguments)
"""
SLOW = [
    "pydantic",
    "yaml",
    "libcst",
    "rich",
    "httpx",
    "pygments",
    "rapidfuzz",
    "platformdirs",
    "packaging",
    "jsonschema",
]
UP_TO_DATE = "Report(modules=tuple(ModuleReport(f'acme/m{n}.py', 'unchanged', ModuleCounts(1, 1, 9, 9, 9, 1)) for n in range(3)), seconds=0.01, shortcut=True)"


def python(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    source = STUBS + textwrap.dedent(code)
    environ = {**os.environ, "PYTHONPATH": ROOT, "NO_COLOR": "1", **options.pop("env", {})}
    settings = {"env": environ, "capture_output": True, "text": True, "encoding": "utf-8", "timeout": 600, **options}
    return subprocess.run([sys.executable, "-X", "utf8=0", "-c", source], check=False, **settings)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("format_", ["text", "json", "github"])
def test_a_quick_check_imports_nothing_slow(format_):
    result = python(f"""
        engine({UP_TO_DATE})
        before = set(sys.modules)
        try:
            run("check", "--format", "{format_}")
        except SystemExit as end:
            assert end.code == 0, end.code
        slow = [name for name in {SLOW} if name in set(sys.modules) - before]
        print("slow:", slow)
        print("cli:", sorted(n for n in sys.modules if n.startswith("afd_patchkit.cli.")))
    """)
    assert result.stderr == ""
    assert "slow: []" in result.stdout
    assert "afd_patchkit.cli.commands.regen" not in result.stdout.rpartition("cli:")[2]


def test_a_real_check_imports_nothing_slow(tmp_path, monkeypatch):
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = f"""
            from afd_patchkit.cli import main
            try:
                main({list(arguments)!r})
            finally:
                print("slow:", [name for name in {SLOW} if name in sys.modules], file=sys.stderr)
        """
        return python(code, cwd=tmp_path)

    assert call("init").returncode == 0
    made = call("regen", "--offline")
    assert made.returncode == 0, made.stdout + made.stderr
    checked = call("check")
    assert (checked.returncode, checked.stderr) == (0, "slow: []\n")
    assert checked.stdout.startswith("1 module up to date")


def test_module_runs_as_a_program():
    result = subprocess.run(
        [sys.executable, "-m", "afd_patchkit", "--version"], capture_output=True, text=True, check=False, timeout=600
    )
    assert result.stdout.startswith("afd-patchkit 0.")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_closed_pipe_is_quiet():
    code = STUBS + textwrap.dedent("""
        engine(Report(modules=tuple(ModuleReport(f"acme/m{n}.py", "written") for n in range(20_000))))
        run("regen")
    """)
    # unbuffered, Python itself drops what a closing pipe cuts off
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"module")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(600) == 141


def test_control_c_exits_130_and_says_so():
    code = STUBS + textwrap.dedent("""
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it

        def slow(options):
            print("ready", file=sys.stderr, flush=True)
            time.sleep(1000)
        engine(slow)
        run("regen")
    """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read().strip() == b"Interrupted."
        assert process.wait(600) == 130


@pytest.mark.parametrize("format_", ["text", "markdown", "json", "github", "sarif"])
def test_a_terminal_without_unicode_gets_escapes(format_):
    result = python(
        f"""
        engine(Report(modules=(ModuleReport("acme/ünï\\udc80.py", "written"),)))
        run("regen", "--format", "{format_}")
        """,
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.isascii()


def test_findings_go_to_standard_output_and_logs_to_standard_error(tmp_path):
    result = python(f"""
        engine({UP_TO_DATE})
        run("check", "--format", "json", "--output", {str(tmp_path / "r.json")!r})
    """)
    assert result.stdout == ""
    assert result.stderr == f"written: {tmp_path / 'r.json'}\n"
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["modules"] == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_standard_output_on_a_full_disk():
    with open("/dev/full", "w") as full:
        result = python(
            f"engine({UP_TO_DATE}); run('check')", capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert result.returncode == 2
    assert result.stderr == "afd-patchkit: error: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell closes the streams")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["check", "explain PK101", "schema", "--help", "nonsense"])
def test_streams_that_the_caller_has_closed(tmp_path, command, closed):
    line = f'exec "{sys.executable}" -m afd_patchkit {command} {closed}'
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if command in ("check", "nonsense") else 0)
    assert "Traceback" not in done.stdout + done.stderr
