"""The engine depends on what it imports, and on nothing else."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def imported(folder: Path) -> set[str]:
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {name.partition(".")[0] for name in names}
    return found - set(sys.stdlib_module_names) - {"afd_patchkit", "__future__"}


def test_dependencies_are_what_is_imported(root: Path) -> None:
    table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {canonicalize_name(Requirement(text).name) for text in table["dependencies"]}
    given = packages_distributions()
    used = {
        canonicalize_name(name) for module in imported(root / "afd_patchkit") for name in given.get(module, [module])
    }
    hooks = imported(root / "afd_patchkit/building")  # a hook runs where its backend is
    assert used - declared - hooks <= {"pydantic-core", "tomli"}  # pydantic pins its core; tomli is of Python 3.10
    assert hooks == {"hatchling", "setuptools"}
    assert declared - used <= {"tomli"}
