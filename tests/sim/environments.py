"""Kinds of processes that ranks run in: what is on their path, what they have imported before the first test."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DONOR_VARIABLE = "AFD_PATCHKIT_DONOR_TREE"
"""Names a folder with the Python files of vLLM 0.30.0, as `tools/pin_tree vllm-donor` makes it."""

ASCEND_VARIABLE = "AFD_VLLM_ASCEND_SOURCE"
"""Names a source tree of vllm-ascend at the pinned commit."""

PLUGIN_VARIABLE = "AFD_PLUGIN_SOURCE"
"""Names a source tree of the AFD plugin (afd-plugin at 2e4378f2d4)."""

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
        packages: folders of packages, and modules, that come before all others; what lies beside them does not.
        variables: environment variables, over `BASE`.
    """

    name: str
    preload: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


BARE = Environment("Python alone")
VLLM = Environment("vLLM 0.26.0", ("tests.sim.warm",))


STAND_IN = Environment(
    "stand-in for vllm-ascend",
    ("tests.sim.warm_stand_in",),
    (str(Path(__file__).with_name("ascend_stand_in") / "vllm_ascend"),),
    (("VLLM_PLUGINS", "none"),),
)
"""As much of vllm-ascend as the generated modules are built on, written for these tests."""


def donor() -> Environment | None:
    """vLLM 0.30.0, whose Python files take precedence over the installed 0.26.0; None when there is no tree."""
    package = _package(DONOR_VARIABLE, "vllm")
    return Environment("vLLM 0.30.0", ("tests.sim.warm", "tests.sim.warm_donor"), (package,)) if package else None


def ascend() -> Environment | None:
    """vllm-ascend on vLLM 0.26.0; None when there is no tree."""
    package = _package(ASCEND_VARIABLE, "vllm_ascend")
    if package is None:
        return None
    return Environment("vllm-ascend", ("tests.sim.warm_ascend",), (package,), (("VLLM_PLUGINS", "none"),))


def ascend_or_stand_in() -> Environment:
    """vllm-ascend; its stand-in when there is no tree."""
    return ascend() or STAND_IN


def usual() -> list[Environment]:
    """What most tests of generated modules run in."""
    return [VLLM, ascend_or_stand_in()]


def _package(variable: str, name: str) -> str | None:
    tree = os.environ.get(variable)
    if not tree:
        return None
    package = Path(tree).resolve() / name
    if not (package / "__init__.py").is_file():
        raise FileNotFoundError(f"{variable}={tree} has no package {name}")
    return str(package)
