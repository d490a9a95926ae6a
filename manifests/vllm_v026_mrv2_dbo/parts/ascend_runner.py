"""vllm-ascend's model runner with ubatches, as an attention side with AFD runs it."""

from contextlib import AbstractContextManager
from functools import partial
from typing import cast

import torch
from afd_backports.vllm_v026_mrv2_dbo import scopes
from afd_backports.vllm_v026_mrv2_dbo.ascend_graphs import AFDModelAclGraphManagerV2
from afd_backports.vllm_v026_mrv2_dbo.ascend_stages import rotary_factors_from
from afd_backports.vllm_v026_mrv2_dbo.attention import NUM_UBATCHES
from afd_backports.vllm_v026_mrv2_dbo.host import AFDHost, PlainHost, PlainMetadata
from afd_backports.vllm_v026_mrv2_dbo.runner import UBatchExecution
from afd_backports.vllm_v026_mrv2_dbo.slicer import slice_ascend_fields
from afd_backports.vllm_v026_mrv2_dbo.ubatch_runner import UBatchLifecycle
from afd_backports.vllm_v026_mrv2_dbo.validation import AFDValidation
from vllm.config import VllmConfig
from vllm.v1.worker.gpu.input_batch import InputBatch
from vllm.v1.worker.ubatch_utils import UBatchSlice
from vllm.v1.worker.workspace import init_workspace_manager, reset_workspace_manager
from vllm_ascend.worker.v2 import model_runner
from vllm_ascend.worker.v2.aclgraph_utils import ModelAclGraphManager
from vllm_ascend.worker.v2.attn_utils import build_attn_state
from vllm_ascend.worker.v2.input_batch import AscendInputBatch
from vllm_ascend.worker.v2.model_runner import NPUModelRunner


class AscendMetadata(PlainMetadata):
    """What each stage needs on Ascend; a plugin's metadata provider is a subclass of it."""

    def __init__(self, vllm_config: VllmConfig) -> None:
        self._attn_state = partial(build_attn_state, vllm_config)

    def complete(
        self, input_batch: InputBatch, ubatch: InputBatch, ubatch_slice: UBatchSlice, for_capture: bool
    ) -> AscendInputBatch:
        """The ubatch with its own lengths on the host and its own attention state."""
        whole, part = cast(AscendInputBatch, input_batch), cast(AscendInputBatch, ubatch)
        return slice_ascend_fields(whole, part, ubatch_slice, None if for_capture else self._attn_state)

    def building(self, ubatch_slice: UBatchSlice) -> AbstractContextManager[None]:
        """Let the metadata of a stage have rotary factors of its own."""
        return rotary_factors_from(ubatch_slice.token_slice.start)


class AscendHost(PlainHost):
    """The host of a runner without FFN ranks, on Ascend."""

    def __init__(self, vllm_config: VllmConfig) -> None:
        super().__init__()
        self.metadata = AscendMetadata(vllm_config)


class AFDNPUAttentionModelRunnerV2(  # type: ignore[misc]  # state of a step, named with a type only here
    AFDValidation, UBatchLifecycle, UBatchExecution, NPUModelRunner
):
    """vllm-ascend's model runner V2 with dual batch overlap, for the attention side of AFD.

    A plugin's runner is a subclass: it says what the configuration's AFD part is (`afd_settings`), for which models there
    is a proxy (`afd_models`), and gives its own objects to the stages (`make_afd_host`). Without ubatches in the configuration
    all is native.
    """

    def __init__(self, vllm_config: VllmConfig, device: torch.device) -> None:
        super().__init__(vllm_config, device)
        if vllm_config.parallel_config.use_ubatching:
            reset_workspace_manager()  # vllm-ascend's worker has made one for a single stage
            init_workspace_manager(device, NUM_UBATCHES)

    def make_afd_host(self) -> AFDHost:
        """The plugin's objects. A plugin that has its own derives its metadata provider from `AscendMetadata`."""
        return AscendHost(self.vllm_config)

    def graph_manager_scope(self) -> AbstractContextManager[None]:
        """The block in which vllm-ascend makes a graph manager that can hold twins."""
        return scopes.graph_manager_factory(model_runner, ModelAclGraphManager, AFDModelAclGraphManagerV2)
