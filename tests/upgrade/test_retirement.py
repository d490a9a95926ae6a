"""Our own manifests at the releases after the pinned one: what is clean, what needs work, what retires, what stays."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from afd_patchkit.api import RunOptions, load_project, regen
from afd_patchkit.findings.report import Report
from afd_patchkit.project import Project
from afd_patchkit.upgrade.result import UpgradeResult
from afd_patchkit.upgrade.upgrading import upgrades
from tools.oracles.drift.guide import PAGE, inserted

pytestmark = pytest.mark.upstream

SET = "vllm_v026_mrv2_dbo"
WORK = {
    "0.27.1": {
        "review": {
            "attention.py::parts/attention.py", "graph_manager.py::UBatchGraphs.capture_twin_graphs",
            "graph_manager.py::parts/graph_manager.py", "scopes.py::parts/scopes.py",
            "validation.py::parts/validation.py",
        },
        "clean": {
            "attention.py::create_metadata_builders", "graph_manager.py::UBatchGraphs.capture",
            "runner.py::UBatchExecution.execute_model", "ubatch_runner.py::UBatchLifecycle.execute_model",
            "ubatch_runner.py::UBatchLifecycle.initialize_kv_cache", "validation.py::AFDValidation.__init__",
        },
    },
    "0.28.0": {
        "review": {
            "ascend_runner.py::parts/ascend_runner.py", "attention.py::parts/attention.py", "descriptor.py::parts/descriptor.py",
            "dispatch.py::dispatch_cg_and_sync_dp", "dispatch.py::sync_cudagraph_and_dp_padding",
            "graph_manager.py::UBatchGraphs.capture_twin_graphs",
            "graph_manager.py::parts/graph_manager.py", "runner.py::UBatchExecution.execute_model", "scopes.py::parts/scopes.py",
            "validation.py::parts/validation.py",
        },
        "clean": {
            "attention.py::create_metadata_builders", "graph_manager.py::UBatchGraphs.capture",
            "graph_manager.py::UBatchModelCudaGraphManager.__init__", "ubatch_runner.py::UBatchLifecycle.execute_model",
            "ubatch_runner.py::UBatchLifecycle.initialize_kv_cache", "ubatch_runner.py::UBatchLifecycle.shutdown",
            "validation.py::AFDValidation.__init__",
        },
    },
    "0.29.0": {
        "review": {
            "ascend_runner.py::parts/ascend_runner.py", "attention.py::parts/attention.py", "descriptor.py::parts/descriptor.py",
            "dispatch.py::dispatch_cg_and_sync_dp", "dispatch.py::sync_cudagraph_and_dp_padding",
            "graph_manager.py::parts/graph_manager.py",
            "runner.py::UBatchExecution.execute_model", "scopes.py::parts/scopes.py",
            "validation.py::parts/validation.py",
        },
        # upstream's capture takes a pcp_manager, which is handed on and which the twins of 0.26 cannot take
        "conflict": {"graph_manager.py::UBatchGraphs.capture", "graph_manager.py::UBatchGraphs.capture_twin_graphs"},
        "clean": {
            "attention.py::create_metadata_builders", "graph_manager.py::UBatchModelCudaGraphManager.__init__",
            "ubatch_runner.py::UBatchLifecycle.execute_model", "ubatch_runner.py::UBatchLifecycle.initialize_kv_cache",
            "ubatch_runner.py::UBatchLifecycle.shutdown", "validation.py::AFDValidation.__init__",
        },
    },
}  # fmt: skip
"""Entries that are not `unchanged`, by release and status; each was read in upstream's change."""
STAYS = {
    "ascend_params.py": "parts/ascend_params.py",
    "ascend_stages.py": "parts/ascend_stages.py",
    "slicer.py": "parts/slicer.py",
}


@pytest.fixture
def project(root: Path, tmp_path: Path) -> Project:
    shutil.copy(root / "pyproject.toml", tmp_path)
    shutil.copytree(root / "manifests", tmp_path / "manifests")
    shutil.copytree(root / "generated", tmp_path / "generated", ignore=shutil.ignore_patterns("afd_backports"))
    return load_project(tmp_path)


@pytest.fixture(scope="module")
def results(root: Path) -> dict[str, UpgradeResult]:
    return {r.new: r for r in upgrades(load_project(root), [{"vllm": version} for version in (*WORK, "0.30.0")])}


def state(project: Project) -> dict[str, bytes]:
    folder = project.generated
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def notes(report: Report, code: str) -> list[str]:
    return [f.message for f in report.findings if f.code == code]


@pytest.mark.parametrize("version", WORK)
def test_what_is_clean_and_what_needs_work(results: dict[str, UpgradeResult], version: str) -> None:
    found: dict[str, set[str]] = {}
    for entry in results[version].entries:
        if entry.status != "unchanged":
            found.setdefault(entry.status, set()).add(entry.ref.removeprefix(f"{SET}/"))
    assert found == WORK[version]


@pytest.mark.parametrize("version", WORK)
def test_nothing_is_written_while_something_needs_work(project: Project, version: str) -> None:
    regen(project)
    before = state(project)
    report = regen(project, RunOptions(overrides={"vllm": version}))
    assert report.exit_code == 1
    unsettled = {f.entry for f in report.findings if f.code == "PK501"}
    assert unsettled == {f"{SET}/{ref}" for status, refs in WORK[version].items() if status != "clean" for ref in refs}
    (counts,) = notes(report, "PK660")
    assert all(f"{len(refs)} {status}" in counts for status, refs in WORK[version].items())
    assert state(project) == before


def test_the_release_with_native_ubatches_gets_nothing_of_the_backport(project: Project) -> None:
    regen(project)
    report = regen(project, RunOptions(overrides={"vllm": "0.30.0"}))
    assert report.exit_code == 0, report.findings
    package = project.beside({"vllm": "0.30.0"}) / project.package
    assert {p.name for p in (package / SET).glob("*.py")} == {*STAYS, "__init__.py"}
    for name, part in STAYS.items():
        # Our own parts, and no text of upstream's.
        def defined(path: Path) -> set[str]:
            return {n.name for n in ast.parse(path.read_text()).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}

        assert defined(package / SET / name) == defined(project.manifests / SET / part)
        imported = {
            n.module for n in ast.walk(ast.parse((package / SET / name).read_text())) if isinstance(n, ast.ImportFrom)
        }
        assert not [module for module in imported if (module or "").startswith(project.package)]
    (condition,) = notes(report, "PK661")
    assert condition.endswith(
        "the target defines vllm.v1.worker.gpu.cudagraph_utils:BatchExecutionDescriptor.num_ubatches"
    )
    stays = [f for f in report.findings if f.code == "PK662"]
    assert {f.entry for f in stays} == {f"{SET}/{name}::{part}" for name, part in STAYS.items()}
    assert all("no removal condition" in f.message and "Ascend" in f.message.replace("ascend", "Ascend") for f in stays)
    # What an NPU needs again on the native classes.
    assert {f.entry.partition("::")[0] for f in report.findings if f.code == "PK663" and f.entry and "vllm-ascend" in f.message} == {
        f"{SET}/ascend_device.py", f"{SET}/ascend_graphs.py", f"{SET}/ascend_runner.py"
    }  # fmt: skip
    retired = {m.module for m in report.modules if m.status == "retired"}
    assert retired == {m.module for m in report.modules} - {f"{SET}/{name}" for name in STAYS}


def test_the_upgrade_lists_what_to_delete(results: dict[str, UpgradeResult]) -> None:
    result = results["0.30.0"]
    assert {e.ref for e in result.entries if e.status != "retire"} == {
        f"{SET}/{n}::{part}" for n, part in STAYS.items()
    }
    assert len(result.deletions) == result.count("retire") == len(result.entries) - len(STAYS)
    assert {line.partition("::")[0].removeprefix(f"{SET}/") for line in result.stays} == set(STAYS)


def test_the_page_says_what_the_tool_says(results: dict[str, UpgradeResult]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    made = inserted(text, list(results.values()))
    assert set(made.splitlines()) <= set(text.splitlines()), "run tools/drift --write"
