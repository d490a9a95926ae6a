"""Imported once in processes with the stand-in for vllm-ascend: the simulated NPU, vLLM, the stand-in and its patches."""

from __future__ import annotations

import importlib
import warnings

from tests.sim import plugin, warm_npu

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    importlib.import_module("vllm_ascend._patches")
    plugin.adapt()

warm_npu.finish()
