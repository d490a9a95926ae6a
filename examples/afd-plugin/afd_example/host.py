"""What the generated modules ask of the plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from afd_backports.vllm_v026_mrv2_dbo.ascend_runner import AscendMetadata
from afd_backports.vllm_v026_mrv2_dbo.host import Stage

from afd_example.connector import CAMP2pAFDConnector


class PluginMetadata(AscendMetadata):
    """`MetadataProvider`: what a stage needs on Ascend, and what this plugin's model wants to find in its forward context."""

    def additional_kwargs(self, stage: Stage) -> Mapping[str, Any]:
        """The stage that runs, which the model proxy sends with."""
        return {"afd_stage": stage.index, "afd_num_stages": stage.num_stages}


class PluginHost:
    """`AFDHost`."""

    def __init__(self, vllm_config: Any, control: CAMP2pAFDConnector) -> None:
        self.metadata = PluginMetadata(vllm_config)
        self.control = control
