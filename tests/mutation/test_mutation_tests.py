"""What a test file sees, found by reading imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutation.tests import Sight

FILES = {
    "tests/conftest.py": "import os\n",
    "tests/dbo/conftest.py": "",
    "tests/dbo/helper.py": "def f():\n    from afd_backports.set import runner\n",
    "tests/dbo/test_runner.py": "from tests.dbo import helper\n",
    "tests/dbo/test_near.py": "from afd_backports.set.runner import Runner\n",
    "tests/dbo/test_leaf.py": "from afd_backports.set.leaf import Leaf\nDATA = 'facts.json'\n",
    "tests/dbo/test_by_name.py": "PRELOAD = ('tests.sim.warm',)\n",
    "tests/dbo/test_all.py": "from afd_backports.set import leaf\nfiles = folder.glob('*.py')\n",
    "tests/dbo/facts.json": "{}",
    "tests/sim/warm.py": "from ..dbo import helper\n",
    "tests/sim/test_other.py": "import json\n",
}
GENERATED = {
    "afd_backports/__init__.py": "",
    "afd_backports/set/__init__.py": "",
    "afd_backports/set/runner.py": "from afd_backports.set.leaf import Leaf\nclass Runner(Leaf):\n    pass\n",
    "afd_backports/set/leaf.py": "class Leaf:\n    pass\n",
    "afd_backports/set/alone.py": "x = 1\n",
}
RUNNER, LEAF, ALONE = (f"afd_backports/set/{name}.py" for name in ("runner", "leaf", "alone"))


@pytest.fixture
def sight(tmp_path: Path) -> Sight:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Sight(tmp_path, GENERATED, ["tests/dbo", "tests/sim"])


@pytest.mark.parametrize(
    ("module", "files"),
    [
        (RUNNER, ["test_runner", "test_all", "test_near", "test_by_name"]),  # its namesake, then by distance
        (LEAF, ["test_leaf", "test_all", "test_near", "test_runner", "test_by_name"]),
        (ALONE, ["test_all"]),  # it looks into the folder
    ],
)
def test_who_sees_a_module(sight, module, files):
    assert sight.about(module) == [f"tests/dbo/{name}.py" for name in files]


def test_what_a_file_sees(sight):
    assert sight.seen("tests/sim/test_other.py") == {"tests/sim/test_other.py": 0, "tests/conftest.py": 1}
    leaf = sight.seen("tests/dbo/test_leaf.py")
    assert {"tests/dbo/facts.json", "tests/dbo/conftest.py", LEAF} <= leaf.keys()
    assert RUNNER not in leaf


def test_the_digest_is_that_of_what_is_seen(sight, tmp_path):
    file = "tests/dbo/test_leaf.py"
    before = sight.digest(file, GENERATED)
    assert sight.digest(file, {**GENERATED, RUNNER: "x = 2\n", LEAF: "# PATCH\n" + GENERATED[LEAF]}) == before
    assert sight.digest(file, {**GENERATED, LEAF: "class Leaf:\n    x = 1\n"}) != before
    assert sight.digest(file, GENERATED, ["0.27.0"]) != before
    (tmp_path / "tests/dbo/facts.json").write_text("[]")
    assert sight.digest(file, GENERATED) != before
