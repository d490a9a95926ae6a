"""What every test run shares: no test outside `upstream` and `vllm` leaves this machine or touches the user's cache."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import sys
from pathlib import Path

import pytest

with contextlib.suppress(ImportError):  # the environment of the vLLM tests has no hypothesis
    from hypothesis import settings

    # Generating examples on a busy machine takes as long as it takes; the same examples on every run.
    settings.register_profile("patchkit", deadline=None, derandomize=True)
    settings.load_profile("patchkit")

# Tests write a module again within the second by which Python tells it from its cached bytecode.
sys.dont_write_bytecode = True

ROOT = Path(__file__).resolve().parent.parent
REAL = {"upstream", "vllm"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite`: the tables of operations say what comes out now; read the diff."""
    parser.addoption(
        "--rewrite", action="store_true", help="write what comes out now into the tables of tests/delta/operations"
    )


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


def _local(address: object) -> bool:
    if not isinstance(address, tuple):  # a Unix socket
        return True
    host = str(address[0])
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host in {"localhost", ""}


@pytest.fixture(autouse=True)
def _confined(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if any(request.node.get_closest_marker(name) for name in REAL):
        return
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("XDG_CACHE_HOME", str(base / "cache"))
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if not _local(address):
            raise OSError(f"a test without the marker `upstream` wants to connect to {address!r}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say on which other Pythons the output was compared; the ones that are not there are among the skips."""
    ran: dict[str, set[str]] = {}
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            file, _, rest = report.nodeid.partition("::")
            if file.endswith("test_determinism.py") and rest.endswith("]"):
                ran.setdefault(rest.rpartition("[")[2].removesuffix("]"), set()).add(outcome)
    words = {"passed": "the same bytes", "failed": "other bytes", "skipped": "not compared"}
    for minor, outcomes in sorted(ran.items()):
        terminalreporter.write_line(f"Python {minor}: {', '.join(words[o] for o in sorted(outcomes))}")
