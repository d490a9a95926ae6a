"""`examples/afd-plugin`, installed as its users install it, on vllm-ascend (or its stand-in)."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import plugin_runs
from tests.dbo.plugin_runs import DBO, Log, Steps
from tests.sim.config import Graphs
from tests.sim.environments import Environment, ascend_or_stand_in
from tests.sim.prompts import PLAIN, UNEVEN
from tests.sim.ranks import ROOT, Zygote, run_ranks
from tests.sim.scenario import Outcome, Scenario, assert_equal

pytestmark = pytest.mark.vllm

GRAPHS = Graphs((1, 2, 4, 8), "FULL_DECODE_ONLY")
SCENARIOS = {
    "single": PLAIN,
    "single, graphs": replace(PLAIN, graphs=GRAPHS),
    "split": replace(PLAIN, dbo=DBO),
    "split, graphs": replace(PLAIN, dbo=DBO, graphs=GRAPHS),
    "uneven": Scenario(UNEVEN, steps=9, dbo=DBO, graphs=GRAPHS),
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """Processes in which pip has installed the plugin, beside vllm-ascend; no other plugin is loaded."""
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"  # building writes there
    subprocess.run(["cp", "-r", str(ROOT / "examples/afd-plugin"), str(source)], check=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(source)], check=True)
    base = ascend_or_stand_in()
    packages = (*base.packages, *(str(path) for path in sorted((folder / "site").iterdir())))
    variables = (*(item for item in base.variables if item[0] != "VLLM_PLUGINS"), ("VLLM_PLUGINS", "afd_example"))
    environment = replace(base, name=f"{base.name} with the plugin", packages=packages, variables=variables)
    yield environment
    if (zygote := Zygote._started.pop(environment, None)) is not None:
        zygote.stop()


@pytest.fixture(scope="module")
def runs(installed: Environment) -> list[dict[str, Any]]:
    """Two attention ranks, then the FFN ranks that work for them."""
    return run_ranks(plugin_runs.play_plugin, SCENARIOS, world=4, environment=installed, timeout=300)


@pytest.fixture(scope="module")
def logs(runs: list[dict[str, Any]]) -> dict[str, list[Log]]:
    return {name: [logs[name] for logs in runs[:2]] for name in SCENARIOS}


@pytest.fixture(scope="module")
def steps(runs: list[dict[str, Any]]) -> dict[str, list[Steps]]:
    return {name: [steps[name] for steps in runs[2:]] for name in SCENARIOS}


@pytest.fixture(scope="module")
def whole(installed: Environment) -> dict[str, list[Outcome]]:
    scenarios = {name: SCENARIOS[name] for name in ("single", "uneven")}
    ranks = run_ranks(plugin_runs.play_whole, scenarios, environment=installed)
    return {name: [outcomes[name] for outcomes in ranks] for name in scenarios}


def test_the_entry_point_relaxes_validation_and_registers_the_proxy(installed: Environment) -> None:
    for seen in run_ranks(plugin_runs.processes, environment=installed):
        assert (seen["ubatches"], seen["registered"], seen["relaxed"]) == (2, True, True)
        assert seen["without AFD"] != 2
        assert "rolle" in seen["wrong"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_outputs_are_those_of_the_whole_model(
    logs: dict[str, list[Log]], whole: dict[str, list[Outcome]], name: str
) -> None:
    assert_equal([log.outcome for log in logs[name]], whole["uneven" if name == "uneven" else "single"])


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_step_is_announced_once_and_all_of_it_comes(
    logs: dict[str, list[Log]], steps: dict[str, list[Steps]], name: str
) -> None:
    graphs, split = SCENARIOS[name].graphs is not None, SCENARIOS[name].dbo is not None
    for log, done in zip(logs[name], steps[name], strict=True):
        assert not log.raised
        announced = Counter((kind, stages) for kind, stages, _ in done)
        replays = log.outcome.replays
        for stages in (1, 2):
            assert announced["replay", stages] == sum(n for (_, ubatches), n in replays.items() if ubatches == stages)
            captured = sum(ubatches == stages for _, ubatches in replays)
            assert announced["warm-up", stages] == announced["capture", stages] == captured
            assert bool(captured) == (graphs and (split or stages == 1))
        assert any(stages == 2 for _, stages in announced) == split
        # An FFN rank does at each step what the attention rank does.
        wanted = {"eager": "eager", "warm-up": "eager", "capture": "capture", "replay": "replay"}
        assert {(kind, what) for kind, _, what in done} <= set(wanted.items())
    # The ranks do alike.
    assert steps[name][0] == steps[name][1]


def test_single_and_split_graphs_are_replayed(steps: dict[str, list[Steps]]) -> None:
    kinds = {stages for name in ("split, graphs", "uneven") for kind, stages, _ in steps[name][0] if kind == "replay"}
    assert kinds == {1, 2}


def test_a_step_that_fails_is_given_up_on_both_sides(installed: Environment) -> None:
    *attention, one, other = run_ranks(plugin_runs.disturbed, world=4, environment=installed)
    for seen in attention:
        assert seen == {"errors": [f"at exchange {number}" for number in range(1, 5)], "logits": True}
    assert one == other == [("eager", 2, "eager"), *[("eager", 2, "given up"), ("eager", 2, "eager")] * 4]


def test_an_ffn_rank_that_fails_says_so_to_its_engine_and_to_its_attention_rank(installed: Environment) -> None:
    *attention, one, other = run_ranks(plugin_runs.ffn_fails, world=4, environment=installed)
    assert one == other == {"error": "experts"}
    assert attention == [{"error": f"FFN rank {rank} has given up step 2"} for rank in range(2)]


def test_what_is_not_announced_is_an_error(installed: Environment) -> None:
    _, said = run_ranks(plugin_runs.not_announced, environment=installed)
    assert said == [
        "layer 0 of stage 0 comes, and nothing is announced",
        "STEP [113, 0, 0, 0] comes, where step 1, layer 0, stage 0, 3 tokens are announced",
        "DATA [1, 0, 1, 3] comes, where step 1, layer 0, stage 0, 3 tokens are announced",
        "DATA [1, 0, 0, 4] comes, where step 1, layer 0, stage 0, 3 tokens are announced",
        "nothing",
    ]


def test_it_is_written_from_the_documentation(root: Path) -> None:
    """Every name of the generated modules that the plugin uses stands in docs/dbo.md."""
    text = (root / "docs/dbo.md").read_text(encoding="utf-8")
    used = set()
    for file in (root / "examples/afd-plugin/afd_example").glob("*.py"):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.strip().startswith("from afd_backports."):
                used |= {name.strip() for name in line.partition(" import ")[2].split(",")}
    assert len(used) > 8
    assert {name for name in used if name not in text} == set()
