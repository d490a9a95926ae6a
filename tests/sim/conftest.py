"""Tests of the simulation itself, in the environment that `tools/vllm_env` makes."""

from __future__ import annotations

import importlib.util
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
