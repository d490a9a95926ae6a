"""docs/dbo.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/dbo.md").read_text(encoding="utf-8")


def settings(rank: Any) -> list[str]:
    """Every setting that validation looks at."""
    from afd_backports.vllm_v026_mrv2_dbo.validation import RULES

    return [rule.setting for rule in RULES]


def test_the_boundary_is_that_of_the_validation() -> None:
    (known,) = run_ranks(settings, world=1)
    rows = re.search(r"\| setting \| accepted \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    assert rows is not None
    told = {name for row in rows[1].splitlines() for name in re.findall("`([^`]+)`", row.split("|")[1])}
    assert told == set(known)


def test_every_module_is_told() -> None:
    rows = re.search(r"\| module \| what \| from \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    assert rows is not None
    told = {name for row in rows[1].splitlines() for name in re.findall("`([a-z_]+)`", row.split("|")[1])}
    assert told == {path.stem for path in (ROOT / "manifests/vllm_v026_mrv2_dbo").glob("*.yaml")}


def test_how_long_a_stage_is_waited_for() -> None:
    from afd_backports.vllm_v026_mrv2_dbo import ubatch_runner

    assert f"`ubatch_runner.PATIENCE` ({ubatch_runner.PATIENCE:g} s)" in PAGE
