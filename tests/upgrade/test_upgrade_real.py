"""Real changes of vLLM, with deltas of our own: what must be seen is seen. Patterns name upstream statements, no more."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from afd_patchkit.api import RunOptions, load_project, regen
from afd_patchkit.upgrade.result import EntryResult
from afd_patchkit.upgrade.upgrading import upgrades
from afd_patchkit.upstream.options import SourceOptions

from .world import codes, notes

pytestmark = pytest.mark.upstream

START = """
- name: ours
  at: start
  insert: |
    print("ours")
"""

ENTRIES = {
    "kv": ("vllm.v1.engine.core:EngineCore._initialize_kv_caches", """
        - name: ours
          at: start
          insert: |
            if vllm_config.parallel_config.rank > 99:
                return None
        """),
    "warmup": ("vllm.v1.worker.gpu_model_runner:GPUModelRunner._warmup_and_capture", """
        - name: ours
          replace: |
            for _ in range(num_warmups): ...
          with: |
            self.our_warmup(desc, num_warmups)
        - name: our capture
          replace: |
            with profiler, torch.profiler.record_function(...): ...
          with: |
            self.our_capture(desc)
        """),
    "loop": ("vllm.v1.engine.core:EngineCoreProc.run_busy_loop", START),
    "dp_loop": ("vllm.v1.engine.core:DPEngineCoreProc.run_busy_loop", START),
    "launch": ("vllm.v1.engine.utils:launch_core_engines", """
        - name: ours
          call:
            match: |
              CoreEngineProcManager(...)
            set: {start_index: "1"}
        """),
    "cached": ("vllm.v1.core.sched.scheduler:Scheduler.schedule", """
        - name: ours
          after: |
            ... = self.kv_cache_manager.get_computed_blocks(request)
          insert: |
            print(request)
        """),
    "paused": ("vllm.v1.core.sched.scheduler:Scheduler.schedule", """
        - name: ours
          after: |
            request = request_queue.peek_request()
          insert: |
            print("ours")
        """),
    "bitmask": ("vllm.v1.worker.gpu.structured_outputs:_apply_grammar_bitmask_kernel", """
        - name: ours
          after: |
            logits_idx = tl.load(...)
          insert: |
            print(logits_idx)
        """),
    "moe": ("vllm.model_executor.layers.fused_moe.layer:FusedMoE", ""),
    "sm": ("vllm.v1.worker.gpu_ubatch_wrapper:UBatchWrapper._create_sm_control_context", ""),
    "partial": ("vllm.v1.worker.ubatch_utils:is_last_ubatch_empty", ""),
}  # fmt: skip

VERSIONS = ("0.27.1", "0.28.0", "0.30.0", "0.32.0")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], EntryResult]:
    root = tmp_path_factory.mktemp("real")
    files = {
        "pyproject.toml": '[tool.afd-patchkit]\npackage = "generated_vllm"\n',
        "manifests/pins.yaml": 'schema: 1\npins:\n  vllm: {distribution: vllm, version: "0.26.0"}\n',
    }
    for name, (symbol, deltas) in ENTRIES.items():
        body = textwrap.indent(textwrap.dedent(deltas).strip("\n"), "      ")
        files[f"manifests/set/{name}.yaml"] = (
            f"schema: 1\nmodule: set/{name}.py\nsummary: A real change.\npin: vllm\nentries:\n  - symbol: {symbol}\n"
            f"    reason: a test\n    share: {'true' if name in ('cached', 'paused') else 'false'}\n"
        ) + (f"    deltas:\n{body}\n" if body else "")
    for path, text in files.items():
        file: Path = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    project, options = load_project(root), SourceOptions()
    report = regen(project, RunOptions(sources=options))
    assert not [f for f in report.findings if f.severity.value == "error"], report.findings
    found = {}
    for result in upgrades(project, [{"vllm": v} for v in VERSIONS], options=options):
        assert result.base_available
        for entry in result.entries:
            found[Path(entry.ref.partition("::")[0]).stem, result.new] = entry
    return found


@pytest.mark.parametrize(
    ("name", "version", "status", "expected"),
    [
        ("kv", "0.27.1", "review", {"PK514"}),  # the warm-up call below our early return
        ("warmup", "0.27.1", "review", {"PK515"}),  # a synchronisation between the two
        (
            "loop",
            "0.27.1",
            "review",
            {"PK530"},
        ),  # a decorator; what changed inside the loop behind the delta is no matter
        ("dp_loop", "0.27.1", "review", {"PK530"}),
        ("launch", "0.27.1", "clean", set()),  # a parameter dropped, the body equal
        ("launch", "0.28.0", "review", {"PK532"}),  # one object instead of a tuple
        ("bitmask", "0.27.1", "unchanged", set()),
        ("moe", "0.27.1", "missing", {"PK538"}),
        ("sm", "0.28.0", "unchanged", set()),
        ("sm", "0.30.0", "missing", {"PK538"}),
        ("cached", "0.27.1", "conflict", {"PK521"}),  # matches twice there
        ("partial", "0.32.0", "unchanged", set()),
    ],
)
def test_real_change(
    results: dict[tuple[str, str], EntryResult], name: str, version: str, status: str, expected: set[str]
) -> None:
    entry = results[name, version]
    assert (entry.status, codes(entry)) == (status, expected)


def test_nothing_upstream_added_is_lost(results: dict[tuple[str, str], EntryResult]) -> None:
    kv, warmup = results["kv", "0.27.1"].ours_new, results["warmup", "0.27.1"].ours_new
    assert kv is not None
    assert "compile_or_warm_up_model()" in kv
    assert warmup is not None
    places = [warmup.index(t) for t in ("self.our_warmup(", "synchronize()", "self.our_capture(")]
    assert places == sorted(places)


def test_a_dropped_parameter_is_said(results: dict[tuple[str, str], EntryResult]) -> None:
    entry = results["launch", "0.27.1"]
    assert "PK651" in notes(entry)
    assert "parameter removed: num_api_servers" in entry.upstream_changed


def test_real_misanchorings_are_not_silent(results: dict[tuple[str, str], EntryResult]) -> None:
    for name in ("cached", "bitmask"):
        entry = results[name, "0.28.0"]
        assert (entry.status, [d.status for d in entry.deltas]) == ("review", ["review"])
    assert "PK520" in codes(results["bitmask", "0.28.0"])


def test_a_changed_guard_is_not_silent(results: dict[tuple[str, str], EntryResult]) -> None:
    entry = results["paused", "0.32.0"]
    (delta,) = entry.deltas
    assert delta.status in ("review", "conflict")
    assert "PK511" in codes(entry)
    told = [line for f in delta.reasons if f.code == "PK511" for line in f.details]
    assert any("UNPAUSED" in line for line in told)
    assert any("PAUSED_ALL" in line for line in told)


def test_likely_successors(results: dict[tuple[str, str], EntryResult]) -> None:
    moe, sm = results["moe", "0.27.1"].successors, results["sm", "0.30.0"].successors
    assert moe[0][0] == "vllm.model_executor.layers.fused_moe.layer:FusedMoEFactory"
    assert sm[0][0] == "vllm.v1.worker.ubatch_utils:create_sm_control_context"
