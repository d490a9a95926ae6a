"""vLLM's compilation on the simulated device: what its wheel without an extension lacks, and code that the tape would not see."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.custom_graph_pass import CustomGraphPass

from tests.sim import tape


class NoPasses(CustomGraphPass):
    """In the place of vLLM's pass manager, whose passes ask for operators of its compiled extension."""

    def configure(self, config: Any) -> None:
        """Nothing to configure."""

    def add(self, one: Any) -> None:
        """There is none to add, unless a test brings one."""
        raise NotImplementedError(one)

    def __call__(self, graph: torch.fx.Graph) -> None:
        """Leave the graph as it is."""

    def uuid(self) -> str:
        """Part of the key of a cache."""
        return "none"


def install(folder: Path, aot: bool = False) -> None:
    """Let this process compile models: what is written goes into `folder`, and a kernel that Inductor compiles is one on the tape.

    Inductor's kernels are called with addresses, past the operators; so they are opaque, as those of Triton.

    Args:
        folder: for what is compiled.
        aot: whether vLLM compiles ahead of time, keeps that, and loads it again, as it does by default.
    """
    os.environ.update(
        VLLM_CACHE_ROOT=str(folder), VLLM_USE_AOT_COMPILE=str(int(aot)), VLLM_DISABLE_COMPILE_CACHE=str(int(not aot))
    )
    torch._inductor.config.compile_threads = 1  # type: ignore[attr-defined]  # its workers are processes that stay
    compile_kernel = AsyncCompile.cpp_pybinding

    def noting(self: Any, argument_types: list[str], source: str) -> Callable[..., Any]:
        compiled = compile_kernel(self, argument_types, source)

        def launch(*args: Any) -> Any:
            return tape.kernel("inductor", lambda: compiled(*args), tape.tensors(args))

        return launch

    AsyncCompile.cpp_pybinding = noting  # type: ignore[method-assign]
