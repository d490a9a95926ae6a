"""Generated code does not ask at run time what upstream looks like: the pin, the lock and the drift check know."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from afd_backports.vllm_v026_mrv2_dbo import descriptor

pytestmark = pytest.mark.vllm

MODULES = sorted(Path(descriptor.__file__).parent.glob("*.py"))
PROBES = {"getattr", "hasattr", "getattr_static", "find_spec", "import_module", "__import__", "globals", "locals"}
HIDING = {"AttributeError", "TypeError", "NameError", "ImportError", "ModuleNotFoundError", "KeyError"}
UPSTREAMS = {"_slice_input_batch"}
"""Private names that are upstream's own; the generated modules use them as upstream's do."""


def names(node: ast.expr | None) -> set[str]:
    return (
        {
            n.id if isinstance(n, ast.Name) else n.attr
            for n in ast.walk(node)
            if isinstance(n, (ast.Name, ast.Attribute))
        }
        if node
        else set()
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_probing(path: Path) -> None:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (isinstance(node, ast.Name) and node.id in PROBES) or (
            isinstance(node, ast.Attribute) and node.attr in PROBES
        ):
            found.append(f"{node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.ExceptHandler) and names(node.type) & HIDING:
            found.append(f"{node.lineno}: except {ast.unparse(node.type)}")  # type: ignore[arg-type]
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("afd_backports."):
            found += [
                f"{node.lineno}: {alias.name}"
                for alias in node.names
                if alias.name.startswith("_") and alias.name not in UPSTREAMS
            ]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("_afd"):
            found.append(f"{node.lineno}: {node.value!r}")
    assert found == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_nothing_of_the_first_model_runner(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    assert imported & {"vllm.v1.worker.gpu_model_runner", "vllm_ascend.worker.model_runner_v1"} == set()


def test_all_modules_are_there() -> None:
    assert {path.stem for path in MODULES} >= {
        "attention",
        "descriptor",
        "dispatch",
        "host",
        "runner",
        "scopes",
        "slicer",
        "ubatch_runner",
        "ubatching",
    }
