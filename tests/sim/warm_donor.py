"""After `warm`, in processes with vLLM 0.30.0."""

from __future__ import annotations

import contextlib
from typing import Any

import vllm
from vllm.v1.worker.gpu import ubatch_utils


def _no_control(*args: Any, **kwargs: Any) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


assert vllm.__version__.startswith("0.30."), vllm.__version__
ubatch_utils.create_sm_control_context = _no_control  # it is about the compute units of a GPU
