"""The oracle: vLLM 0.30.0, which has dual batch overlap of its own, plays the same scenarios in its own processes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.sim.environments import DONOR_VARIABLE, Environment, donor
from tests.sim.ranks import run_ranks
from tests.sim.scenario import Outcome, Scenario, play_all


def donor_or_skip() -> Environment:
    """Processes with vLLM 0.30.0; without its tree the test is skipped, and says why."""
    environment = donor()
    if environment is None:
        pytest.skip(f"{DONOR_VARIABLE} is not set; let it name the folder that `tools/pin_tree vllm-donor` prints")
    return environment


def ask(scenarios: Mapping[str, Scenario]) -> dict[str, list[Outcome]]:
    """What vLLM 0.30.0 makes of the scenarios: per scenario, the outcome of each rank."""
    (size,) = {len(scenario.prompts) for scenario in scenarios.values()}
    ranks = run_ranks(play_all, scenarios, world=size, environment=donor_or_skip())
    return {name: [outcomes[name] for outcomes in ranks] for name in scenarios}
