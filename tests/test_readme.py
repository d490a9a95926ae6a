"""The manifests that README shows: they load, and what it says is from the patch set stands there."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tests.manifest.samples import HEAD, problems

ROOT = Path(__file__).parents[1]
WHOLE, EXCERPT = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_manifest_loads():
    assert problems(WHOLE) == []


def test_the_excerpt_loads_and_is_one():
    assert problems(HEAD + EXCERPT) == []
    (shown,) = yaml.safe_load(EXCERPT)["entries"]
    text = (ROOT / "manifests/vllm_v026_mrv2_dbo/graph_manager.yaml").read_text(encoding="utf-8")
    (real,) = [item for item in yaml.safe_load(text)["entries"] if item.get("class", {}).get("name") == "UBatchGraphs"]
    assert shown["class"]["bases"] == real["class"]["bases"]
    (member,) = shown["class"]["members"]
    (whole,) = [m for m in real["class"]["members"] if m.get("name") == member["name"]]
    assert {key: whole[key] for key in member if key != "deltas"} == {k: v for k, v in member.items() if k != "deltas"}
    assert all(delta in whole["deltas"] for delta in member["deltas"])
