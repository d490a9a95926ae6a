"""Imported once in processes with vllm-ascend: the simulated NPU, vLLM, vllm-ascend and its patches."""

from __future__ import annotations

import warnings

from tests.sim import ascend, warm_npu

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ascend.patch()

warm_npu.finish()
