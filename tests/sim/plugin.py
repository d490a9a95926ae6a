"""The plugin through which vLLM finds the simulated device: two entry points, written where they are wanted."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

ENTRY_POINTS = """\
[vllm.platform_plugins]
sim = tests.sim.plugin:platform
[vllm.general_plugins]
sim = tests.sim.plugin:adapt
"""


def write(folder: Path) -> None:
    """Make `folder`, once it is on PYTHONPATH, a place where a distribution with the plugin lies."""
    info = folder / "afd_sim-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: afd-sim\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")


def platform() -> str:
    """Entry point `vllm.platform_plugins`: the class of the platform."""
    from tests.sim import device

    device.install()
    return "tests.sim.platform.SimPlatform"


def adapt() -> None:
    """Entry point `vllm.general_plugins`: the few names of vLLM for which a platform has no say.

    Modules that have not been imported yet take the new value from where it is defined.
    """
    import torch
    from vllm.triton_utils import tl
    from vllm.utils import torch_utils
    from vllm.v1.sample.ops import topk_topp_sampler
    from vllm.v1.worker.gpu.sample import gumbel

    def same_memory(cpu_tensor: torch.Tensor) -> torch.Tensor:
        return cpu_tensor

    torch_utils.get_accelerator_view_from_cpu_tensor = same_memory
    if "vllm.v1.worker.gpu.buffer_utils" in sys.modules:
        sys.modules["vllm.v1.worker.gpu.buffer_utils"].get_accelerator_view_from_cpu_tensor = same_memory  # type: ignore[attr-defined]
    topk_topp_sampler.HAS_TRITON = False  # its kernel is too much for Triton's interpreter; there is one in torch
    gumbel.tldevice = SimpleNamespace(log1p=lambda x: tl.log(x + 1.0))  # functions of libdevice return None there
