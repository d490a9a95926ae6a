"""What the parts and deltas of this project's own patch set refer to, as snippets that can be run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.environments import ROOT
from tools.oracles.meaning.judge import Own, Runner, Snippet
from tools.oracles.meaning.sources import ROOT as PACKAGE
from tools.oracles.meaning.sources import Sources
from tools.oracles.meaning.standins import dotted_names, last_name
from tools.oracles.meaning.values import InconsistentError
from tools.oracles.meaning.world import World


def patch_set(sources: Sources, folder: Path = ROOT / "manifests") -> Own:
    """Every use of something that the set imports from vLLM, once, as far as it runs at the pin.

    Args:
        sources: the pinned release.
        folder: the manifests.
    """
    kept: dict[tuple[str, str], Snippet] = {}
    for path in sorted(folder.glob("*/*.yaml")):
        manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
        lines = [line for line in manifest.get("imports", ()) if isinstance(line, str)]
        for text in _texts(manifest.get("entries", ())):
            _collect("\n".join([*lines, text]), kept)
    for path in sorted(folder.glob("*/parts/*.py")):
        _collect(path.read_text(encoding="utf-8"), kept)
    found = []
    for snippet in kept.values():
        world = World(sources)
        try:
            Runner(world, Own((), "")).run(snippet)
        except (Exception, InconsistentError):  # what cannot be told without running vLLM itself
            continue
        found.append(snippet)
    return Own(tuple(found), "")


def named(folder: Path = ROOT / "manifests") -> set[str]:
    """Symbols that the manifests name themselves: copied, watched, asked for; what holds them, and what they hold, with them."""
    found: set[str] = set()
    for path in folder.glob("*/*.yaml"):
        for symbol in re.findall(r"\bvllm(?:\.\w+)+:[\w.]+", path.read_text(encoding="utf-8")):
            module, _, qualname = symbol.partition(":")
            parts = qualname.split(".")
            found |= {f"{module}:{'.'.join(parts[:n])}" for n in range(1, len(parts) + 1)}
    return found


def _texts(value: Any) -> Iterator[str]:
    """Pieces of a manifest that are Python."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _collect(text: str, kept: dict[tuple[str, str], Snippet]) -> None:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == PACKAGE:
            imported.update({a.asname or a.name: f"from {node.module} import {a.name}" for a in node.names})
    uses: list[tuple[str, str]] = []
    for name, line in imported.items():
        kept.setdefault((line, ""), Snippet("set", len(kept) + 1, "", "", (f"{line} as {name}",)))
    called: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called.add(id(node.func))
            uses += _call(node, imported)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            uses += _parameters(node, imported)
        elif isinstance(node, ast.ClassDef):
            uses += _members(node, imported)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and id(node) not in called
            and (names := dotted_names(node))
            and names[0] in imported
        ):
            uses.append((imported[names[0]], ".".join(names)))
    for line, expression in uses:
        _keep(line, expression, kept)


def _keep(line: str, expression: str, kept: dict[tuple[str, str], Snippet]) -> None:
    head = expression.partition("(")[2] if expression.startswith("__made__") else expression
    name = head.partition(")")[0] if expression.startswith("__made__") else head.partition(".")[0].partition("(")[0]
    number = len(kept) + 1
    text = f"probe_{number} = {expression}"
    if (line, expression) not in kept:
        kept[line, expression] = Snippet("set", number, text, text, (f"{line} as {name}",))


def _shape(call: ast.Call) -> str | None:
    """The arguments of a call as numbers; None when some of them cannot be counted."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    words = [str(101 + n) for n in range(len(call.args))]
    words += [f"{k.arg}={201 + n}" for n, k in enumerate(call.keywords)]
    return f"({', '.join(words)})"


def _call(node: ast.Call, imported: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    names, shape = dotted_names(node.func), _shape(node)
    if names and names[0] in imported:
        yield imported[names[0]], ".".join(names) + (shape or "")


def _parameters(function: Any, imported: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Uses of parameters that are annotated with something imported."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    known = {a.arg: last_name(a.annotation) for a in arguments if isinstance(a.annotation, ast.Name)}
    yield from _uses(function, {name: cls for name, cls in known.items() if cls in imported}, imported)


def _members(cls: ast.ClassDef, imported: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Uses of `self` in a class that derives from something imported, and nothing else."""
    if len(cls.bases) != 1 or not isinstance(cls.bases[0], ast.Name) or cls.bases[0].id not in imported:
        return
    yield from _uses(cls, {"self": cls.bases[0].id}, imported)


def _uses(node: ast.AST, known: Mapping[str, str], imported: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for item in ast.walk(node):
        target = item.func if isinstance(item, ast.Call) else item
        if (
            not isinstance(target, ast.Attribute)
            or not isinstance(target.value, ast.Name)
            or target.value.id not in known
        ):
            continue
        cls = known[target.value.id]
        shape = (_shape(item) or "") if isinstance(item, ast.Call) else ""
        if isinstance(target.ctx, ast.Load):
            yield imported[cls], f"__made__({cls}).{target.attr}{shape}"
