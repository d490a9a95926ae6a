"""Kinds of processes that ranks run in: what is on their path, what they have imported before the first test."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DONOR_VARIABLE = "AFD_PATCHKIT_DONOR_TREE"
"""Names a folder with the Python files of vLLM 0.30.0, as `tools/pin_tree vllm-donor` makes it."""

ASCEND_VARIABLE = "AFD_VLLM_ASCEND_SOURCE"
"""Names a source tree of vllm-ascend at the pinned commit."""

BASE = {
    # One thread per process: there are as many processes as cores, and a process with threads should not be forked.
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
    # vLLM without an accelerator, and without a word to anybody.
    "CUDA_VISIBLE_DEVICES": "",
    "GLOO_SOCKET_IFNAME": "lo",
    "HF_HUB_OFFLINE": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TRITON_INTERPRET": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_USE_V2_MODEL_RUNNER": "1",
}


@dataclass(frozen=True)
class Environment:
    """A kind of process.

    Attributes:
        name: for messages.
        preload: modules that are imported once; the processes of ranks are forked after that.
        path: folders that come first on the path.
        variables: environment variables, over `BASE`.
    """

    name: str
    preload: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


BARE = Environment("Python alone")
VLLM = Environment("vLLM 0.26.0", ("tests.sim.warm",))


def donor() -> Environment | None:
    """vLLM 0.30.0, whose Python files take precedence over the installed 0.26.0; None when there is no tree."""
    tree = os.environ.get(DONOR_VARIABLE)
    return Environment("vLLM 0.30.0", ("tests.sim.warm", "tests.sim.warm_donor"), (tree,)) if tree else None


def ascend() -> Environment | None:
    """vllm-ascend on vLLM 0.26.0; None when there is no tree."""
    tree = os.environ.get(ASCEND_VARIABLE)
    if not tree:
        return None
    if not (Path(tree) / "vllm_ascend").is_dir():
        raise FileNotFoundError(f"{ASCEND_VARIABLE}={tree} is no source tree of vllm-ascend")
    return Environment("vllm-ascend", ("tests.sim.warm_ascend",), (tree,), (("VLLM_PLUGINS", "none"),))
