"""Tests of the generated modules on the real vLLM 0.26.0, without an accelerator."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from pathlib import Path

# Read by vLLM and Triton when they are imported, here and in the processes of the DP ranks.
os.environ.update(
    CUDA_VISIBLE_DEVICES="",
    TORCHDYNAMO_DISABLE="1",
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
