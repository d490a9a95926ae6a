"""At vLLM 0.30.0 the backport retires: what is generated then for an NPU works there, and what vllm-ascend lacks is named."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import retired
from tests.sim.environments import STAND_IN, Environment, ascend
from tests.sim.oracle import donor_or_skip
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

STAYS = {"__init__.py", "ascend_params.py", "ascend_stages.py", "slicer.py"}


VARIABLE = "AFD_PATCHKIT_RETIRED"
"""Names the package that `afd-patchkit regen --vllm 0.30.0 --into DIR` generates, as `tools/test` does it."""


@pytest.fixture(scope="module")
def package() -> Path:
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} is not set; let it name what `afd-patchkit regen --vllm 0.30.0` generates")
    return Path(os.environ[VARIABLE])


def environment(package: Path, npu: Environment) -> Environment:
    """vLLM 0.30.0, vllm-ascend or its stand-in without patches, and what was generated."""
    packages = (*donor_or_skip().packages, *npu.packages, str(package))
    return dataclasses.replace(
        npu, name=f"{npu.name} on vLLM 0.30.0", preload=("tests.sim.warm_npu",), packages=packages
    )


def test_what_stays_is_written(package: Path) -> None:
    assert {path.name for path in (package / "vllm_v026_mrv2_dbo").glob("*.py")} == STAYS


@pytest.mark.parametrize("kind", ["stand-in", "vllm-ascend"])
def test_replays_of_native_stages_are_updated(package: Path, kind: str) -> None:
    npu = STAND_IN if kind == "stand-in" else ascend()
    if npu is None:
        pytest.skip("there is no tree of vllm-ascend; the stand-in is asked the same")
    (seen,) = run_ranks(retired.replayed, world=1, environment=environment(package, npu))
    assert seen["vllm"].startswith("0.30.0")
    assert seen["native"]
    assert seen["native stages"] == "torch.Event and torch.Stream are not redirected to an NPU: ask the platform"
    assert seen["first"] == [[3, 4], [5, 6]]
    assert seen["second"] == [[7, 8], [9, 10]]
    assert seen["other layers"] == ("GraphParamsError", 0)
    assert seen["no length"] == ("ValueError", 1)
    assert seen["threads"] == 1


def test_each_stage_has_rotary_factors_of_its_own(package: Path) -> None:
    (seen,) = run_ranks(retired.rotary, world=1, environment=environment(package, STAND_IN))
    assert seen == {"without": None, "restored": True, "cos": [0, 9, 2, 3], "sin": [0, 9, 2, 3]}


FUSED_MOE = "vllm_ascend/ops/fused_moe/fused_moe.py:32: cannot import name 'FusedMoE' from 'vllm.model_executor.layers.fused_moe.layer'"
LACKS = {
    "vllm_ascend.compilation.acl_graph": "imported",
    "vllm_ascend.worker.v2.utils": "imported",
    "vllm_ascend.worker.v2.aclgraph_utils": "imported",
    "vllm_ascend.ops.rotary_embedding": FUSED_MOE,
    "vllm_ascend.worker.v2.input_batch": FUSED_MOE,
    "vllm_ascend.attention.mla_v1": FUSED_MOE,
    "vllm_ascend.worker.v2.model_runner": (
        "vllm_ascend/worker/v2/model_runner.py:29: cannot import name 'async_copy_to_gpu' from 'vllm.v1.worker.gpu.buffer_utils'"
    ),
    "patches": (
        "vllm_ascend/patch/platform/kimi_k3_structural_tag.py:7: cannot import name '_get_function_parameters' from "
        "'vllm.tool_parsers.structural_tag_registry'"
    ),
}
"""What the pinned vllm-ascend says on vLLM 0.30.0; `docs/dbo.md` has it in words."""


def test_what_vllm_ascend_lacks(package: Path) -> None:
    npu = ascend()
    if npu is None:
        pytest.skip("there is no tree of vllm-ascend, and its stand-in lacks other things")
    (seen,) = run_ranks(retired.imports, world=1, environment=environment(package, npu))
    assert seen == LACKS
