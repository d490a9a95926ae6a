"""Signatures, fields and digests of what is used of vllm-ascend, read off a source text and compared with what was recorded.

`ascend-abi.json` was made from the pinned commit; `ascend-abi-more.json` likewise, with what the stand-in has beyond it. A source
tree has to agree with them in everything, a stand-in in its signatures.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILES = tuple(Path(__file__).with_name(name) for name in ("ascend-abi.json", "ascend-abi-more.json"))


@cache
def recorded() -> Mapping[str, Mapping[str, Any]]:
    """What the files say: per module, per name."""
    modules: dict[str, dict[str, Any]] = {}
    for file in FILES:
        for module, names in json.loads(file.read_text(encoding="utf-8"))["modules"].items():
            modules.setdefault(module, {}).update(names)
    return modules


def facts(source: str) -> dict[str, Any]:
    """The classes and functions of a module, in the form of the file."""
    nodes = ast.parse(source).body
    return {node.name: _facts(node, source) for node in nodes if isinstance(node, (ast.ClassDef, *_FUNCTIONS))}


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _facts(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, source: str) -> dict[str, Any]:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    if not isinstance(node, ast.ClassDef):
        return {"kind": "function", **_function(node, source)}
    fields = {
        item.target.id: {"annotation": ast.unparse(item.annotation), "has_default": item.value is not None}
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    return {
        "kind": "class",
        "bases": [ast.unparse(base) for base in node.bases],
        "decorators": decorators,
        "fields": fields,
        "methods": {item.name: _function(item, source) for item in node.body if isinstance(item, _FUNCTIONS)},
    }


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, source: str) -> dict[str, Any]:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    text = ast.get_source_segment(source, node) or ""
    return {
        "async": isinstance(node, ast.AsyncFunctionDef),
        "decorators": [ast.unparse(decorator) for decorator in node.decorator_list],
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "signature": f"({ast.unparse(node.args)}){returns}",
    }


def tree_differences(tree: Path) -> list[str]:
    """Where a source tree is not the pinned one."""
    return [
        difference
        for module, names in recorded().items()
        for difference in _compare(
            module, names, facts((tree / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
        )
    ]


def stand_in_differences(module: str, source: str) -> list[str]:
    """Where the classes and functions of a stand-in for `module` have other signatures, bases or fields than recorded.

    A stand-in need not have all names; one that it has and the original has not is a difference.
    """
    own = facts(source)
    known = recorded()[module]
    extra = [
        f"{module}.{name} is not in {FILES[0].name}" for name in own if name not in known and not name.startswith("_")
    ]
    return extra + list(_compare(module, {name: known[name] for name in own if name in known}, own, partly=True))


def _compare(place: str, known: Mapping[str, Any], found: Mapping[str, Any], *, partly: bool = False) -> Iterator[str]:
    for name, value in known.items():
        where = f"{place}.{name}"
        if partly and (name == "sha256" or (name not in found and ".methods" in place)):
            continue
        if name not in found:
            yield f"{where} is missing"
        elif isinstance(value, dict):
            yield from _compare(where, value, found[name], partly=partly)
        elif found[name] != value:
            yield f"{where} is {found[name]!r}, recorded {value!r}"
