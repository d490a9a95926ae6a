"""What several files of the repository say of the same thing, they say alike; and the paths that documents name are there."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.operations import OPERATIONS
from afd_patchkit.project import load_project
from afd_patchkit.queries import inventory
from afd_patchkit.run.lock import current_inputs
from afd_patchkit.version import __version__
from tools import environments

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCUMENTS = (
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs/releases.md",
    "docs/architecture.md",
    "docs/ci.md",
    "docs/manifests.md",
)
_PATH = re.compile(r"`((?:[\w.*-]+/)+(?!\d+`)[\w.*-]*)`")
"""A path in backticks (a number at its end makes it the name of a format)."""
_ROOTS = ("", "afd_patchkit")


def text(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8")


def toml(root: Path, name: str) -> dict[str, Any]:
    return tomllib.loads(text(root, name))


def test_documents_name_the_version_that_is_to_be_released(root):
    named = {}
    for path in [*(root / "docs").glob("*.md"), *(root / "afd_patchkit/manifest/ci").iterdir(), *root.glob("*.md")]:
        for found in re.findall(
            r"(?:rev: v|afd-patchkit@v|afd-patchkit==|`v)(\d+\.\d+\.\d+)", path.read_text(encoding="utf-8")
        ):
            named.setdefault(found, []).append(path.relative_to(root).as_posix())
    assert named.keys() == {__version__}, named
    assert re.search(
        rf"^## {re.escape(__version__)} \((unreleased|\d{{4}}-\d\d-\d\d)\)$", text(root, "CHANGELOG.md"), re.MULTILINE
    )


def test_the_supported_pythons_are_the_same_everywhere(root):
    workflow = yaml.safe_load(text(root, ".github/workflows/ci.yml"))
    assert workflow["jobs"]["fast"]["strategy"]["matrix"]["python"] == list(environments.VERSIONS)
    for name in ("pyproject.toml", "backports/pyproject.toml"):
        project = toml(root, name)["project"]
        prefix = "Programming Language :: Python :: "
        classified = [c.removeprefix(prefix) for c in project["classifiers"] if re.match(rf"{prefix}\d+\.\d+$", c)]
        assert classified == list(environments.VERSIONS)
        assert project["requires-python"] == f">={environments.VERSIONS[0]}"
    settings = toml(root, "pyproject.toml")["tool"]
    assert settings["mypy"]["python_version"] == environments.VERSIONS[0]
    assert settings["ruff"]["target-version"] == "py" + environments.VERSIONS[0].replace(".", "")


def test_a_commit_is_linted_by_the_same_ruff_as_the_checks(root):
    config = yaml.safe_load(text(root, ".pre-commit-config.yaml"))
    hooks = {hook["id"]: hook for repo in config["repos"] for hook in repo["hooks"]}
    development = toml(root, "pyproject.toml")["project"]["optional-dependencies"]["dev"]
    (ruff,) = [requirement for requirement in development if requirement.startswith("ruff")]
    assert {d for name, hook in hooks.items() if name.startswith("ruff") for d in hook["additional_dependencies"]} == {
        ruff
    }


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_path_that_a_document_names_is_there(root, document):
    for name in _PATH.findall(text(root, document).replace("nnn.md", "*.md")):
        places = [root / folder / name for folder in _ROOTS]
        assert any(list(place.parent.glob(place.name or "*")) for place in places), f"{document} names {name}"


def test_every_link_between_documents_leads_somewhere(root):
    for path in [
        *root.glob("*.md"),
        *(root / "docs").glob("*.md"),
        *root.glob("examples/*/*.md"),
        root / "backports/README.md",
    ]:
        for target in re.findall(r"\]\(<?([^)#:>]+)(?:#[^)]*)?>?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.relative_to(root)} links to {target}"


def test_the_inventory_is_proven_by_its_own_digests(root):
    """Without its seal `check` would load every manifest to compare it, which is most of the time that a check takes."""
    project = load_project(root)
    page = inventory.sealed(inventory.render(project, load_manifests(project)), current_inputs(project))
    assert inventory.path_of(project).read_text(encoding="utf-8") == page, "run `afd-patchkit inventory`"


def test_the_numbers_that_say_what_changed_stand_where_the_policy_says(root):
    rows = re.findall(r"^\| `([A-Z]+)`[^|]* \| ([^|]+) \|", text(root, "docs/releases.md"), re.MULTILINE)
    places = [(name, file) for name, files in rows for file in re.findall(r"`([^`]+)`", files)]
    assert {name for name, _ in places} == {"ENGINE", "SCHEMA", "FORMAT"}
    for name, file in places:
        assert re.search(rf"^{name} = ", text(root, file), re.MULTILINE), f"{file} has no {name}"


_CODE = re.compile(r"PK\d+x*")


def decides_by_code(source: str) -> list[int]:
    """Lines where a text that is, or begins, a finding's code is compared, matched, looked for, or a key."""

    def named(*nodes: ast.AST | None) -> bool:
        below = [inner for node in nodes if node is not None for inner in ast.walk(node)]
        return any(isinstance(n, ast.Constant) and _CODE.fullmatch(str(n.value)) for n in below)

    lines = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            wrong = named(node.left, *node.comparators)
        elif isinstance(node, ast.MatchValue):
            wrong = named(node.value)
        elif isinstance(node, ast.Dict):
            wrong = named(*node.keys)
        elif isinstance(node, ast.Set):
            wrong = named(*node.elts)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            wrong = node.func.attr in ("startswith", "endswith") and named(*node.args)
        else:
            continue
        if wrong:
            lines.add(node.lineno)
    return sorted(lines)


def test_nothing_is_decided_by_the_code_of_a_finding(root):
    """A page says its family, group and what an upgrade calls it; what only one finding says is a field or an exception's type."""
    found = {
        path.relative_to(root).as_posix(): lines
        for path in sorted((root / "afd_patchkit").rglob("*.py"))
        if "findings" not in path.relative_to(root).parts
        and (lines := decides_by_code(path.read_text(encoding="utf-8")))
    }
    assert not found, f"a code decides what is done: {found}"


def test_a_decision_by_code_is_noticed():
    source = """
first = finding("PK201", "said", help="PK202")
code = "PK203" if first else "PK204"
if first.code == "PK205" or "PK206" != first.code: pass
if first.code in ("PK207", "PK208"): pass
KNOWN = frozenset({"PK209"})
SHORT = {"PK210"}
LATER = {"PK211": "PK212"}
if first.code.startswith("PK2"): pass
match first.code:
    case "PK213": pass
    case "PK214" | "PK215": pass
found = [f for f in findings if f.code not in KNOWN]
"""
    assert decides_by_code(source) == [4, 5, 6, 7, 8, 9, 11, 12]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_documented_and_has_examples(root, operation):
    row = rf"^\| (?:`[^`]*`, )*`{operation}[:`]"
    assert re.search(row, text(root, "docs/manifests.md"), re.MULTILINE), "docs/manifests.md has no row for it"
    tables = [
        path.read_text(encoding="utf-8") for path in (root / "tests/delta").rglob("*") if path.suffix in (".txt", ".py")
    ]
    assert any(re.search(rf"\b{operation}: ", table) for table in tables), "no table of tests/delta has an example"


def _functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Public functions and methods with their qualified names, in public classes too."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            yield prefix + node.name, node


def unexplained(source: str) -> dict[str, set[str]]:
    """Public functions with four or more parameters whose docstring leaves some unexplained; commands explain options in their help."""
    found = {}
    for name, node in _functions(ast.parse(source).body):
        given = node.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        parameters = {a.arg for a in arguments if a is not None and a.arg not in ("self", "cls")}
        if len(parameters) < 4 or any(
            re.search(r"\b(command|overload)\b", ast.unparse(d)) for d in node.decorator_list
        ):
            continue
        section = re.search(r"^Args:\n((?: .*\n|\n)+)", f"{ast.get_docstring(node)}\n", re.MULTILINE)
        explained = set(re.findall(r"^ {4}(\w+): \S", section[1], re.MULTILINE)) if section else set()
        if parameters != explained:
            found[name] = parameters ^ explained
    return found


def test_functions_of_many_parameters_explain_them(root):
    files = [
        path for folder in ("afd_patchkit", "tools", "backports") for path in sorted((root / folder).rglob("*.py"))
    ]
    wrong = {
        path.relative_to(root).as_posix(): found
        for path in files
        if (found := unexplained(path.read_text(encoding="utf-8")))
    }
    assert not wrong, f"explain each parameter under `Args:`, and no other: {wrong}"


def test_an_unexplained_parameter_is_noticed():
    source = '''
class Mill:
    def grind(self, corn, stones, wind, *, fine=False):
        """Grind.

        Args:
            corn: kilograms.
            stones: upper and lower.
            fine: twice.

        Returns:
            wind: no parameter stands here.
        """

    def clean(self, corn, stones, wind): ...

    @group.command()
    def sell(self, a, b, c, d): ...

    def _count(self, a, b, c, d): ...
'''
    assert unexplained(source) == {"Mill.grind": {"wind"}}
