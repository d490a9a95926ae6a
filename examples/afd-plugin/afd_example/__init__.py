"""A small AFD plugin of vLLM: attention here, experts behind a connector, dual batch overlap between them."""

from __future__ import annotations

ARCHITECTURE = "AfdTinyForCausalLM"


def register() -> None:
    """Entry point `vllm.general_plugins`: vLLM calls it in each of its processes, before it validates a configuration there."""
    from afd_backports.vllm_v026_mrv2_dbo.validation import relax_for_process
    from vllm import ModelRegistry
    from vllm.platforms import current_platform

    from afd_example.settings import parse

    relax_for_process(parse, current_platform.device_type)  # "npu", but for the simulation
    if ARCHITECTURE not in ModelRegistry.get_supported_archs():
        ModelRegistry.register_model(ARCHITECTURE, f"afd_example.model:{ARCHITECTURE}")
