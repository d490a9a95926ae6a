"""Tests of the simulation itself, in the environment that `tools/vllm_env` makes."""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Iterator

import pytest

if importlib.util.find_spec("torch") is not None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _ranks() -> Iterator[None]:
    """Processes end with the session."""
    yield
    from tests.sim import ranks

    ranks.stop_all()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which upstream trees the run had."""
    from tests.sim.environments import ASCEND_VARIABLE, DONOR_VARIABLE

    for what, variable in (("vLLM 0.30.0", DONOR_VARIABLE), ("vllm-ascend", ASCEND_VARIABLE)):
        tree = os.environ.get(variable)
        instead = "its stand-in" if variable == ASCEND_VARIABLE else "not available"
        terminalreporter.write_line(
            f"simulation: {what} " + (f"from {tree}" if tree else f"{instead} ({variable} is not set)")
        )
