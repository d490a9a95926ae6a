"""Parameters of captured attention, by number of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch_npu


@dataclass
class GraphParams:
    """Lists with an entry for each captured operator."""

    attn_params: dict[int, list[tuple]]
    handles: dict[int, list[torch_npu._C._NPUTaskGroupHandle]]
    workspaces: dict[int, torch.Tensor]
    events: dict[int, list[torch.npu.ExternalEvent]]

    # In the original's order, which is the one to be called with.
    def __init__(self, events, workspaces, handles, attn_params):
        self.events, self.workspaces, self.handles, self.attn_params = events, workspaces, handles, attn_params


_graph_params: GraphParams | None = None


def set_graph_params(aclgraph_capture_sizes: list[int]):
    """Make them, once for a process."""
    global _graph_params  # noqa: PLW0603
    if _graph_params is not None:
        raise ValueError("there are parameters already")
    events, handles, params = ({size: [] for size in aclgraph_capture_sizes} for _ in range(3))
    _graph_params = GraphParams(events, dict.fromkeys(aclgraph_capture_sizes), handles, params)


def get_graph_params():
    """Those in force."""
    return _graph_params


def update_graph_params_workspaces(num_tokens: int, workspace: torch.Tensor):
    """Keep a workspace."""
    if _graph_params is not None:
        _graph_params.workspaces[num_tokens] = workspace


def weak_ref_workspaces(params):
    """Keep them no longer: they are the graphs'."""
    if params is not None:
        for size, workspace in params.workspaces.items():
            params.workspaces[size] = None if workspace is None else torch_npu._C._weak_ref_tensor(workspace)


def update_full_graph_params(
    attn_backend,
    update_stream,
    forward_context,
    num_tokens,
    vllm_config,
    speculative_config=None,
    draft_attn_metadatas=None,
):
    """Update the operators of a replay."""
    impl = attn_backend.get_impl_cls()
    impl.update_graph_params(
        update_stream, forward_context, num_tokens, vllm_config, speculative_config, draft_attn_metadatas
    )
