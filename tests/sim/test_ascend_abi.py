"""Reading signatures off a source text, and comparing them with what was recorded of vllm-ascend."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sim import ascend_abi

pytestmark = pytest.mark.vllm

MODULE = "acme.graph"
SOURCE = """
@dataclass
class Params(Base):
    events: dict[int, list]
    size: int = 0

    @classmethod
    def make(cls, size: int, *, deep: bool = True) -> "Params":
        return cls({}, size)

    async def wait(self): ...


def update(params, *args, **kwargs) -> None:
    pass
"""


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    file = tmp_path / "abi.json"
    file.write_text(json.dumps({"modules": {MODULE: ascend_abi.facts(SOURCE)}}), encoding="utf-8")
    monkeypatch.setattr(ascend_abi, "FILES", (file,))
    ascend_abi.recorded.cache_clear()
    yield
    ascend_abi.recorded.cache_clear()


def test_facts():
    found = ascend_abi.facts(SOURCE)
    params = found["Params"]
    assert (params["bases"], params["decorators"]) == (["Base"], ["dataclass"])
    assert params["fields"]["size"] == {"annotation": "int", "has_default": True}
    assert params["methods"]["make"]["signature"] == "(cls, size: int, *, deep: bool=True) -> 'Params'"
    assert params["methods"]["wait"]["async"]
    assert found["update"]["signature"] == "(params, *args, **kwargs) -> None"


def test_a_tree_agrees_in_everything(recorded, tmp_path):
    (tmp_path / "acme").mkdir()
    file = tmp_path / "acme/graph.py"
    file.write_text("# comment\n" + SOURCE)
    assert ascend_abi.tree_differences(tmp_path) == []
    file.write_text(SOURCE.replace("pass", "return None"))
    (difference,) = ascend_abi.tree_differences(tmp_path)
    assert difference.startswith("acme.graph.update.sha256 is ")
    file.write_text(SOURCE.replace("def update", "def updated"))
    assert ascend_abi.tree_differences(tmp_path) == ["acme.graph.update is missing"]


OTHER_DEFAULT = """\
acme.graph.Params.methods.make.signature is "(cls, size: int, *, deep: bool) -> 'Params'", \
recorded "(cls, size: int, *, deep: bool=True) -> 'Params'\""""
STAND_INS = {
    SOURCE.replace("pass", "return None"): [],
    SOURCE[: SOURCE.index("    async")]: [],
    SOURCE.replace("deep: bool = True", "deep: bool"): [OTHER_DEFAULT],
    SOURCE.replace("    size: int = 0\n", ""): ["acme.graph.Params.fields.size is missing"],
    SOURCE.replace("(Base)", ""): ["acme.graph.Params.bases is [], recorded ['Base']"],
    "def other(): ...": ["acme.graph.other is not in abi.json"],
    "def _helper(): ...": [],
}


@pytest.mark.parametrize("number", range(len(STAND_INS)))
def test_a_stand_in_agrees_in_what_it_has(recorded, number):
    source = list(STAND_INS)[number]
    assert ascend_abi.stand_in_differences(MODULE, source) == STAND_INS[source]


STAND_IN = Path(ascend_abi.__file__).with_name("ascend_stand_in")
MODULES = {
    ".".join(path.relative_to(STAND_IN).with_suffix("").parts): path
    for path in sorted(STAND_IN.rglob("*.py"))
    if not path.name.startswith("_")
}


@pytest.mark.parametrize("module", MODULES)
def test_the_stand_in_for_vllm_ascend_has_its_signatures(module):
    assert ascend_abi.stand_in_differences(module, MODULES[module].read_text(encoding="utf-8")) == []


def test_the_stand_in_has_what_the_generated_modules_import():
    generated = Path(ascend_abi.__file__).parents[2] / "manifests/vllm_v026_mrv2_dbo/parts"
    nodes = [
        node for path in generated.glob("ascend_*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]
    wanted = {
        node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vllm_ascend.")
    }
    packages = {module.rpartition(".")[0] for module in MODULES}
    assert wanted - packages <= set(MODULES)
    assert len(wanted) > 5


def test_what_was_recorded_is_there():
    assert "ModelAclGraphManager" in ascend_abi.recorded()["vllm_ascend.worker.v2.aclgraph_utils"]
