"""What a source tree of vllm-ascend needs to be imported and to run on the simulated device.

Stand-ins for `torch_npu`, `torch.npu` and a few more modules, each with the names that are really used and no others: what
is missing is an `AttributeError` here, not a mock that looks as if it worked.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any

import torch

from tests.sim import ascend_mla_ops, ascend_ops, device, npu, plugin, tape

REDIRECTED = (
    "CUDAGraph", "Event", "Stream", "current_device", "current_stream", "default_stream", "graph", "graph_pool_handle", "mem_get_info",
    "set_stream", "stream", "synchronize",
)  # fmt: skip
"""The names of `torch.cuda` that mean the NPU once vllm-ascend's model runner V2 is made; `torch.Event` is not among them."""

ACCELERATOR = {
    "empty_cache": "empty_cache", "get_memory_info": "mem_get_info", "memory_reserved": "memory_reserved", "memory_stats": "memory_stats",
    "reset_peak_memory_stats": "reset_peak_memory_stats",
}  # fmt: skip
"""The names of `torch.accelerator` in whose place vllm-ascend's patches put one of `torch.npu`."""

CORES = {"num_aicore": 8, "num_vectorcore": 8}


def module(name: str, **members: Any) -> types.ModuleType:
    """A module of this name with these members, importable from now on."""
    made = types.ModuleType(name)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    made.__path__ = []
    vars(made).update(members)
    sys.modules[name] = made
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, made)
    return made


def install() -> None:
    """Put the stand-ins in place; before vllm-ascend is imported."""
    device.install_npu()
    _torch_npu()
    _triton()
    _torchvision()
    torch.utils.rename_privateuse1_backend("npu")
    torch.Tensor.is_npu = property(lambda self: False)  # type: ignore[attr-defined]  # as torch_npu: the compiler looks for it
    torch._C._get_accelerator = lambda *args: torch.device("cpu")  # type: ignore[attr-defined]  # dist.barrier() asks
    torch.version.cann = None  # type: ignore[attr-defined]
    package = importlib.import_module("vllm_ascend")
    package._build_info = module("vllm_ascend._build_info", __device_type__="A2")  # type: ignore[attr-defined]


def _torch_npu() -> None:
    shared = (
        "Event", "Stream", "current_device", "current_stream", "default_stream", "empty_cache", "graph", "graph_pool_handle",
        "is_current_stream_capturing", "mem_get_info", "set_device", "set_stream", "stream", "synchronize",
    )  # fmt: skip
    names = module(
        "torch.npu",
        NPUGraph=device.NAMES["CUDAGraph"],
        ExternalEvent=npu.ExternalEvent,
        graph_task_group_begin=npu.graph_task_group_begin,
        graph_task_group_end=npu.graph_task_group_end,
        graph_task_update_begin=npu.graph_task_update_begin,
        graph_task_update_end=npu.graph_task_update_end,
        is_available=lambda: False,
        _is_in_bad_fork=lambda: False,
        manual_seed_all=lambda seed: None,  # torch.manual_seed calls it
        memory_reserved=lambda *args: 0,
        memory_stats=lambda *args: {},
        reset_peak_memory_stats=lambda *args: None,
        **{name: device.NAMES[name] for name in shared},
    )
    module(
        "torch_npu",
        npu=names,
        __version__="simulation",
        float4_e2m1fn_x2=torch.uint8,
        float8_e8m0fnu=torch.uint8,
        hifloat8=torch.uint8,
        **ascend_ops.OPERATORS,
        **ascend_mla_ops.OPERATORS,
    )
    module("torch_npu._C", _NPUTaskGroupHandle=tape.TaskGroup, _weak_ref_tensor=lambda tensor: tensor)
    module("torch_npu._C._distributed_c10d", ProcessGroupHCCL=_HcclGroup)
    module("torch_npu._inductor")
    module("torch_npu.op_plugin")
    module("torch_npu.op_plugin.atb")
    module("torch_npu.op_plugin.atb._atb_ops", _register_atb_extensions=lambda: None)
    module("torch_npu.profiler")


class _HcclGroup:
    """The options of a process group, which gloo does not read."""

    class Options:
        """An attribute is set on it."""

        hccl_config: dict[str, Any]


class _Driver:
    """As much of a Triton driver as vllm-ascend asks."""

    class utils:
        """Facts about the device."""

        @staticmethod
        def get_device_properties(device: int) -> dict[str, int]:
            """Number of cores."""
            return CORES

    @staticmethod
    def get_current_target() -> types.SimpleNamespace:
        """No GPU."""
        return types.SimpleNamespace(backend="cpu", arch=None, warp_size=1)


def _not_launched(*args: Any, **kwargs: Any) -> Any:
    """Part of kernels that are imported and not launched here."""
    raise NotImplementedError


def _triton() -> None:
    import triton.language.extra
    import triton.runtime

    module("triton.language.extra.cann")
    names = ("extract_slice", "get_element", "insert_slice")
    module("triton.language.extra.cann.extension", **dict.fromkeys(names, _not_launched))
    triton.runtime.driver.set_active(_Driver())


def _torchvision() -> None:
    """Some models import it without asking whether it is there, and vllm-ascend imports these models to patch them."""
    if importlib.util.find_spec("torchvision") is not None:
        return
    from transformers.utils import import_utils

    assert not import_utils.is_torchvision_available()  # it remembers
    module("torchvision")
    module("torchvision.transforms")
    module("torchvision.transforms.v2")
    module("torchvision.transforms.v2.functional")


def set_platform() -> None:
    """Let vLLM run on vllm-ascend's platform, as far as that does not ask a device."""
    import vllm.platforms
    from vllm_ascend.platform import NPUPlatform

    from tests.sim.platform import SimMembers

    class SimNPUPlatform(SimMembers, NPUPlatform):  # type: ignore[misc]
        """Decides as vllm-ascend does; streams, memory and collectives are simulated."""

        device_module = torch.npu  # type: ignore[attr-defined]

    vllm.platforms._current_platform = SimNPUPlatform()  # type: ignore[assignment]


def patch() -> None:
    """Let vllm-ascend patch vLLM, as its plugin and its worker do."""
    importlib.import_module("vllm_ascend.ops")  # first, for there is an import cycle
    from vllm_ascend.ops.triton.triton_utils import init_device_properties_triton
    from vllm_ascend.utils import adapt_patch

    adapt_patch(is_global_patch=True)
    adapt_patch()
    init_device_properties_triton()
    importlib.import_module("vllm.v1.worker.gpu.spec_decode.speculator")  # again a cycle
    plugin.adapt()
    _open_mla()


class _Float32(types.ModuleType):
    """`torch`, in which bfloat16 is float32."""

    bfloat16 = torch.float32

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def _open_mla() -> None:
    """Let latent attention run here.

    It rounds prefills to bfloat16 for its operators. Here they take float32: whether a number is rounded up or down hangs
    on its last bit, and so on how a batch is split.
    """
    from vllm_ascend.attention import mla_v1

    mla_v1.torch = _Float32("torch")
    torch.Tensor.npu = lambda self: self  # type: ignore[attr-defined]
    gather = "maybe_all_gather_and_maybe_unpad"  # does nothing without sequence parallelism
    library = torch.library.Library("vllm", "FRAGMENT")
    library.impl(gather, tape.PYTHON_OPERATORS[f"vllm::{gather}"], "CPU")
    _libraries.append(library)


_libraries: list[torch.library.Library] = []
"""What is registered goes away with its library."""


def npu_runner(config: Any, device: torch.device, runner_class: type | None = None) -> Any:
    """vllm-ascend's model runner V2; what it keeps in modules, parameters of graphs for one, is of this runner.

    Args:
        config: the configuration.
        device: the device.
        runner_class: a subclass of it.
    """
    from vllm_ascend.worker.v2.model_runner import NPUModelRunner

    reset_modules()
    return (runner_class or NPUModelRunner)(config, device)


def reset_modules() -> None:
    """Forget what vllm-ascend keeps in modules for one runner."""
    from vllm_ascend.compilation import acl_graph
    from vllm_ascend.ops import rotary_embedding

    acl_graph._graph_params = None
    rotary_embedding._cos_mla = rotary_embedding._sin_mla = rotary_embedding._cos = rotary_embedding._sin = None
