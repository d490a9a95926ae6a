"""Tests of the generated modules on the real vLLM 0.26.0, without an accelerator."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from pathlib import Path

import pytest

# Read by vLLM and Triton when they are imported, here and in the processes of the DP ranks.
os.environ.update(
    CUDA_VISIBLE_DEVICES="",
    TRITON_INTERPRET="1",
    VLLM_LOGGING_LEVEL="ERROR",
    VLLM_NO_USAGE_STATS="1",
)

if importlib.util.find_spec("afd_backports") is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "generated"))

if importlib.util.find_spec("vllm") is not None:
    with warnings.catch_warnings():  # their warnings are not ours
        warnings.simplefilter("ignore")
        import torch
        import vllm.v1.worker.gpu.model_runner  # noqa: F401

    torch.set_num_threads(1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the Ascend runner was tested on."""
    from tests.sim.environments import ASCEND_VARIABLE

    reports = [
        report for outcome in ("passed", "failed", "error") for report in terminalreporter.stats.get(outcome, ())
    ]
    if any("test_ascend_" in report.nodeid for report in reports):
        tree = os.environ.get(ASCEND_VARIABLE)
        what = f"vllm-ascend from {tree}" if tree else f"the stand-in for vllm-ascend ({ASCEND_VARIABLE} is not set)"
        terminalreporter.write_line(f"DBO: the Ascend runner ran on {what}")
