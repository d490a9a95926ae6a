"""Entries over functions of the real vLLM 0.26.0, with all that hold them by name: installed, verified, given back."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from afd_patchkit.api import RunOptions, load_project, regen
from afd_patchkit.upstream.options import SourceOptions
from tests.runtime.world import write

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[2]

COPIES = {
    "context": "vllm.forward_context:set_forward_context",
    "start": "vllm.v1.engine.core:EngineCoreProc.run_engine_core",
    "launch": "vllm.v1.engine.utils:launch_core_engines",
    "caches": "vllm.v1.engine.core:EngineCore._initialize_kv_caches",
    "execute": "vllm.v1.worker.gpu_model_runner:GPUModelRunner.execute_model",
    "requests": "vllm.v1.engine.core_client:DPAsyncMPClient.add_request_async",
    "padding": "vllm.v1.worker.gpu_model_runner:GPUModelRunner._warmup_and_capture",
}
"""Decorated by vLLM, torch and contextlib, static methods, coroutines; held by other modules or not."""
DELEGATES = {
    "options": "vllm.engine.arg_utils:EngineArgs.create_engine_config",
    "config": "vllm.config.vllm:VllmConfig.__post_init__",
    "created": "vllm.forward_context:create_forward_context",
}

HEAD = "schema: 1\nmodule: real/{name}.py\nsummary: A test.\npin: vllm\nreason: a test\nentries:\n  - symbol: {symbol}\n    name: {name}\n"
BODY = "    kind: delegate\n    via: original\n    body: |\n      return __original__(...)\n"
INSTALLS = "installs:\n  - symbol: {symbol}\n"
SCOPE = "    mode: scope\n    aliases: []\n    native: [vllm.v1.worker.gpu_ubatch_wrapper]\n"

SCRIPT = """
import importlib, json, sys, types, warnings
warnings.simplefilter("ignore")
early, late = json.loads(sys.argv[1])
import real_backports

def held(name):
    module, _, path = name.partition(":")
    value = vars(sys.modules[module])
    for part in path.split("."):
        value = (value if isinstance(value, dict) else vars(value))[part]
    return value

said = {}
for name in early:
    importlib.import_module(name)
report = real_backports.install()
said["first"] = {row.target: row.state for row in report.rows}
for name in late:
    importlib.import_module(name)
report = real_backports.verify()
said["then"] = {row.target: row.state for row in report.rows}
said["ok"] = report.ok
said["places"] = {row.target: sorted(row.places) for row in report.rows}
said["left"] = [row.left for row in report.rows if row.left]
said["kinds"] = [type(held(row.target)).__name__ for row in report.rows]
with real_backports.scope():
    said["scope"] = [held("vllm.forward_context:create_forward_context").__module__,
                     held("vllm.v1.worker.gpu_ubatch_wrapper:create_forward_context").__module__]
real_backports.uninstall()
said["after"] = {row.target: [row.state, row.why] for row in real_backports.verify().rows}
ours = [f"{m}.{k}" for m, x in list(sys.modules.items()) if m.startswith("vllm") for k, v in list(object.__getattribute__(x, "__dict__").items())
        if type(v) is types.FunctionType and v.__module__.startswith("real_backports")]
said["ours"] = ours
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("real")
    version = importlib.metadata.version("vllm")
    files = {
        "pyproject.toml": '[tool.afd-patchkit]\npackage = "real_backports"\n',
        "manifests/pins.yaml": f'schema: 1\npins:\n  vllm: {{distribution: vllm, version: "{version}", role: target}}\n',
    }
    for name, symbol in {**COPIES, **DELEGATES}.items():
        body = BODY if name in DELEGATES else ""
        scope = SCOPE if name == "created" else ""
        files[f"manifests/real/{name}.yaml"] = (HEAD + body + INSTALLS + scope).format(name=name, symbol=symbol)
    write(root, files)
    (root / "run.py").write_text(SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", "https://index.invalid/simple")  # not asked: the distribution is installed
        report = regen(load_project(root), RunOptions(sources=SourceOptions(offline=True, cache_dir=root / "cache")))
    assert [f"{f.code}: {f.message}" for f in report.findings if f.exit_code] == []
    return root


def sites(project):
    lock = json.loads((project / "generated/patchkit.lock").read_text())
    records = [record for module in lock["modules"].values() for record in module["installs"]]
    return {record["symbol"]: [f"{module}.{name}" for module, name in record["sites"]] for record in records}


def run(project, early, late=()):
    variables = {
        "PYTHONPATH": f"{project / 'generated'}{os.pathsep}{ROOT}",
        "CUDA_VISIBLE_DEVICES": "",
        "TRITON_INTERPRET": "1",
    }
    done = subprocess.run(
        [sys.executable, "run.py", json.dumps([early, late])],
        cwd=project, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().split("\n")[-1])


def test_who_holds_them_is_in_the_lock(project):
    found = sites(project)
    assert len(found["vllm.forward_context:set_forward_context"]) == 16
    assert set(found["vllm.v1.engine.utils:launch_core_engines"]) == {
        "vllm.entrypoints.cli.serve.launch_core_engines",
        "vllm.v1.engine.core_client.launch_core_engines",
    }


HOLDERS = [
    "vllm.v1.worker.gpu_model_runner",
    "vllm.v1.worker.gpu.model_runner",
    "vllm.v1.engine.core_client",
    "vllm.v1.spec_decode.medusa",
    "vllm.v1.worker.gpu_ubatch_wrapper",
    "vllm.v1.engine.core",
    "vllm.engine.arg_utils",
]


@pytest.mark.parametrize("order", ["before", "after", "between"])
def test_installed_in_the_real_vllm(project, order):
    cut = {"before": len(HOLDERS), "after": 0, "between": 3}[order]
    said = run(project, HOLDERS[:cut], HOLDERS[cut:])
    scoped = "vllm.forward_context:create_forward_context"
    if order == "after":
        assert set(said["first"].values()) <= {"waiting", "bound", "off"}
        assert "waiting" in said["first"].values()
    assert {state for target, state in said["then"].items() if target != scoped} == {"bound"}
    assert said["ok"]
    assert said["left"] == []
    found = sites(project)
    for target, places in said["places"].items():
        if target != scoped:
            loaded = {name for name in found[target] if name.rpartition(".")[0] in HOLDERS}
            assert loaded <= set(places), target
    assert sorted(set(said["kinds"])) == ["function", "staticmethod"]
    assert said["scope"] == ["real_backports.real.created", "vllm.forward_context"]
    assert set(map(tuple, said["after"].values())) == {("off", "")}
    assert said["ours"] == []
