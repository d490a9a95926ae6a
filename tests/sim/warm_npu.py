"""Imported in processes with vllm-ascend or its stand-in, before its patches: the simulated NPU and what runs on it."""

from __future__ import annotations

import warnings

import torch
import tqdm

from tests.sim import ascend

torch.set_num_threads(1)
tqdm.tqdm.monitor_interval = 0

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ascend.install()
    ascend.set_platform()


def finish() -> None:
    """What is imported after the patches; models are registered."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from vllm import ModelRegistry

        from tests.sim import ascend_model, attention, communicator, config, runner, scenario  # noqa: F401

    config.register_models()
    ModelRegistry.register_model("SimMlaForCausalLM", ascend_model.SimMlaForCausalLM)
