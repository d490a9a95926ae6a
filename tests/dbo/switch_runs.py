"""Switches of vllm-ascend that docs/dbo.md calls not touched, set and run on the source tree, in the processes of DP ranks."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any
from unittest import mock

from tests.dbo.graphs import DBO
from tests.dbo.scenarios import EVEN
from tests.sim.config import Graphs
from tests.sim.ranks import Rank
from tests.sim.scenario import Outcome, Scenario, play


@dataclass(frozen=True)
class Setting:
    """Some switches, with other values than they have by default.

    Attributes:
        additional: `additional_config`.
        environment: variables.
    """

    additional: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """How it went.

    Attributes:
        native: single batches of vllm-ascend's own runner, with the same switches.
        split: an eager split step, and captured ones.
        read: of each switch, what it is and what vllm-ascend has for it.
    """

    native: Outcome
    split: Outcome
    read: dict[str, tuple[Any, Any]]


MAP, LOG, DUMP = "experts.json", "log", "dump.json"
"""Files, in the folder of a rank."""

SETTINGS: dict[str, Setting] = {
    "sampling": Setting({"enable_reduce_sample": True, "refresh": True}),
    "placement of experts": Setting({
        "eplb_config": {
            "expert_map_path": MAP, "expert_heat_collection_interval": 300, "algorithm_execution_interval": 20,
            "num_redundant_experts": 2, "eplb_policy_type": 1, "eplb_heat_collection_stage": "decode",
        },
        "mix_placement": True,
    }),
    "communication of experts": Setting({
        "multistream_overlap_shared_expert": True, "enable_prefill_mc2": True, "enable_mc2_hierarchy_comm": True,
        "mega_moe_max_tokens": 4096, "ascend_fusion_config": {"fusion_ops_gmmswigluquant": False},
    }),
    "fused MC2": Setting({"enable_fused_mc2": 1}),
    "fused MC2, by variable": Setting(environment={"VLLM_ASCEND_ENABLE_FUSED_MC2": "1"}),
    "before attention": Setting({"enable_mlapo": False}),
    "before attention, by variable": Setting(environment={"VLLM_ASCEND_ENABLE_MLAPO": "0"}),
    "layout of weights": Setting({"weight_nz_mode": 2}),
    "layout of weights, by variable": Setting(environment={"VLLM_ASCEND_ENABLE_NZ": "2"}),
    "compilation": Setting({
        "ascend_compilation_config": {
            "enable_npugraph_ex": False, "fuse_norm_quant": False, "fuse_qknorm_rope": False, "fuse_muls_add": False,
        },
    }),
    "scheduling": Setting({
        "scheduler_config": {
            "enable_balance_scheduling": True,
            "short_request_first_config": {"enabled": True, "threshold": 4, "long_max_wait_ms": 5.0},
        },
    }),
    "batch jobs": Setting({
        "scheduler_config": {
            "batch_job_sched_config": {
                "enabled": True, "max_jobs": 2, "reserve_margin_blocks": 3, "reserve_max_blocks": 9,
                "low_available_tokens_threshold": 64, "short_decode_token_threshold": 16,
            },
        },
    }),
    "scheduling, by variable": Setting(environment={"VLLM_ASCEND_BALANCE_SCHEDULING": "1"}),
    "process": Setting({
        "enable_cpu_binding": False, "enable_sleep_mode_extra_cleanup": True, "ascend_log_path": LOG, "dump_config_path": DUMP,
        "msmonitor_use_daemon": 1,
    }),
    "process, by variable": Setting({"dump_config": {}}, {"MSMONITOR_USE_DAEMON": "1"}),
}  # fmt: skip
"""All that can be run; docs/dbo.md says of the others why they cannot."""

NOT_KEPT = {"refresh", "dump_config"}
"""Switches of which vllm-ascend has no attribute: it makes something else of them."""


def switches() -> set[str]:
    """Names of all that is set."""
    found: set[str] = set()

    def collect(tree: Mapping[str, Any]) -> None:
        for name, value in tree.items():
            found.add(name)
            if isinstance(value, Mapping):
                collect(value)

    for setting in SETTINGS.values():
        collect(setting.additional)
        found.update(setting.environment)
    return found


def run(rank: Rank) -> dict[str, Ran]:
    """Each setting."""
    from tests.dbo.ascend import dbo_runner
    from tests.sim.ascend import npu_runner
    from tests.sim.ascend_config import ENGINE, MLA

    os.chdir(rank.folder)  # there the files are
    Path(MAP).write_text(json.dumps({"moe_layer_count": 0, "layer_list": []}))
    seen = {}
    for name, setting in SETTINGS.items():
        engine = {**ENGINE, "additional_config": copy.deepcopy(dict(setting.additional))}
        split = Scenario(EVEN, steps=3, model=MLA, dbo=DBO, graphs=Graphs((2, 4), "FULL_DECODE_ONLY"), engine=engine)
        with mock.patch.dict(os.environ, setting.environment):
            native = play(rank, replace(split, dbo=None), npu_runner)
            seen[name] = Ran(native, play(rank, split, dbo_runner), dict(read(setting)))
    return seen


def read(setting: Setting) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Each switch as it is set, and as vllm-ascend has it."""
    from vllm_ascend import envs
    from vllm_ascend.ascend_config import get_ascend_config

    for path, value in leaves(setting.additional):
        if path not in NOT_KEPT:
            yield path, (value, attrgetter(path)(get_ascend_config()))
    for name, value in setting.environment.items():
        yield name, (int(value), int(getattr(envs, name)))


def leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by their dotted names."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield path + name, value
