"""Imported once per kind of process: the simulated device, then vLLM on it, ready to make a runner."""

from __future__ import annotations

import warnings

import torch
import tqdm

from tests.sim import device

torch.set_num_threads(1)
device.install()
tqdm.tqdm.monitor_interval = 0  # its monitor is a thread

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import triton.experimental.gluon  # noqa: F401
    import vllm.engine.arg_utils
    import vllm.plugins
    import vllm.v1.core.kv_cache_utils
    import vllm.v1.worker.gpu.model_runner
    from vllm.platforms import current_platform

    from tests.sim import attention, communicator, config, runner, scenario  # noqa: F401

assert type(current_platform).__name__ == "SimPlatform", current_platform
vllm.plugins.load_general_plugins()
config.register_models()
