"""docs/dbo.md goes through every switch of the pinned vllm-ascend; what it calls refused, the validation refuses by name."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import switch_runs
from tests.dbo.scenarios import replays
from tests.sim.environments import ASCEND_VARIABLE, ascend
from tests.sim.ranks import run_ranks
from tests.sim.scenario import assert_equal

pytestmark = pytest.mark.vllm

PAGE = (Path(__file__).parents[2] / "docs/dbo.md").read_text(encoding="utf-8")
VERDICTS = {"refused", "not touched"}


def rows() -> list[tuple[set[str], str, set[str]]]:
    """Switches, verdict, and what the last column ends with."""
    table = re.search(r"\| switch \| \| why, and where \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    assert table is not None
    found = []
    for row in table[1].splitlines():
        _, switches, verdict, why, _ = row.split("|")
        found.append((names(switches), verdict.strip(), names(why.rpartition(": ")[2])))
    return found


def names(text: str) -> set[str]:
    """What stands between backticks."""
    return set(re.findall("`([^`]+)`", text))


def settings(rank: Any) -> tuple[list[str], list[str]]:
    """Every setting that validation looks at, and those of vllm-ascend."""
    from afd_backports.vllm_v026_mrv2_dbo.validation import ASCEND_RULES, RULES

    return [rule.setting for rule in RULES], [rule.setting for rule in ASCEND_RULES]


def test_what_is_refused_has_a_rule_and_each_rule_a_row() -> None:
    ((rules, of_ascend),) = run_ranks(settings, world=1)
    named: set[str] = set()
    for switches, verdict, reason in rows():
        assert verdict in VERDICTS
        if verdict == "refused":
            assert reason, switches
            assert reason <= set(rules), switches
            named |= reason
    assert set(of_ascend) <= named


def test_no_switch_is_told_twice() -> None:
    told = [switch for switches, _, _ in rows() for switch in switches]
    assert len(told) == len(set(told))


# ---- what is not touched is set, and run ----------------------------------------------------------------------


def not_run() -> set[str]:
    """Switches of which the page says why they are not run."""
    table = re.search(r"\| not run \| why \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    assert table is not None
    return {name for row in table[1].splitlines() for name in names(row.split("|")[1])}


def test_what_is_not_touched_is_run_or_the_page_says_why_not() -> None:
    untouched = {name for switches, verdict, _ in rows() if verdict == "not touched" for name in switches}
    assert not_run() <= untouched
    assert untouched - not_run() == switch_runs.switches() - {"eplb_config", "enabled"}  # of other rows


def test_with_a_switch_that_is_not_touched_split_steps_are_as_native_ones() -> None:
    where = ascend()
    if where is None:
        pytest.skip(f"{ASCEND_VARIABLE} names no source tree of vllm-ascend; its stand-in has no switches")
    ranks = run_ranks(switch_runs.run, environment=where, timeout=400)
    for name in switch_runs.SETTINGS:
        runs = [ran[name] for ran in ranks]
        assert_equal([run.split for run in runs], [run.native for run in runs])
        for run in runs:
            assert (replays(run.native), replays(run.split)) == ({(4, 1): 2}, {(4, 2): 2})
            assert (run.native.ubatches, run.split.ubatches) == ({0}, {0, 1})
            assert {switch: has for switch, (value, has) in run.read.items() if has != value} == {}


# ---- the pinned tree, read and not run ------------------------------------------------------------------------

SOURCES = {"additional_config"}
CONFIG = "ascend_config.py"
HOLDERS = SOURCES | {"config", "source", "finegrained_tp_config", "xlite_graph_config", "kwargs"}
"""Names under which `ascend_config.py` holds parts of `additional_config`."""


def text_of(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def read(tree: ast.AST, holders: set[str], whole: bool) -> Iterator[str]:
    """Keys that a module reads from `additional_config`; of the module of all switches, also those of its parts."""
    for node in ast.walk(tree):
        key: str | None = None
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            holder, _, method = called.rpartition(".")
            if method == "get" and holder.rpartition(".")[2] in holders:
                key = text_of(node.args[0])
            elif method == "_get_config_value":
                key = next(filter(None, map(text_of, node.args)), None)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).rpartition(".")[2] in SOURCES:
            key = text_of(node.slice)
        elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]).rpartition(".")[2] in SOURCES:
            key = text_of(node.left)
        elif whole and isinstance(node, ast.ClassDef):
            yield from of_class(node)
        if key is not None:
            yield key


def of_class(node: ast.ClassDef) -> Iterator[str]:
    """Arguments that are a switch by default, and keys of a table of defaults."""
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            defaults = zip(reversed(member.args.args), reversed(member.args.defaults), strict=False)
            yield from (argument.arg for argument, default in defaults if ast.unparse(default) in {"True", "False"})
        if isinstance(member, (ast.Assign, ast.AnnAssign)) and isinstance(member.value, ast.Dict):
            target = member.target if isinstance(member, ast.AnnAssign) else member.targets[0]
            if ast.unparse(target) == "_defaults":
                yield from filter(None, map(text_of, member.value.keys))


def variables(tree: ast.Module) -> Iterator[str]:
    """Names of the environment variables in `envs.py`."""
    for node in tree.body:
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(value, ast.Dict):
            yield from filter(None, map(text_of, value.keys))


def test_every_switch_of_the_pinned_tree_is_told() -> None:
    tree = os.environ.get(ASCEND_VARIABLE)
    if tree is None:
        pytest.skip(f"{ASCEND_VARIABLE} is not set")
    package = Path(tree) / "vllm_ascend"
    found: dict[str, str] = {}
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        whole = path == package / CONFIG
        if "additional_config" in text:
            found |= dict.fromkeys(read(ast.parse(text), HOLDERS if whole else SOURCES, whole), path.name)
    found |= dict.fromkeys(variables(ast.parse((package / "envs.py").read_text(encoding="utf-8"))), "envs.py")
    assert len(found) > 60
    told = {switch for switches, _, _ in rows() for switch in switches}
    assert {name: where for name, where in found.items() if name not in told} == {}
    assert told <= set(found)
