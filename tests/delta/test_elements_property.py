"""Displays and calls of the standard library, each changed in every way: what comes out is what the tree says, and can be undone."""

from __future__ import annotations

import ast
import copy
import sysconfig
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from afd_patchkit.assemble.verify import check_entry
from afd_patchkit.delta.apply import apply_deltas
from afd_patchkit.findings.errors import DeltaError, ManifestError
from afd_patchkit.findings.finding import Position
from afd_patchkit.model import CallChange, Code, Delta, ElementsChange
from afd_patchkit.patterns.select import compile_pattern, find_all, symbol_windows
from afd_patchkit.source.locate import Symbol, definitions, find_symbol
from afd_patchkit.source.text import load_source
from tests.delta.deltas import ENTRY, MARKER, disagreements, undo

MODULES = ("textwrap", "statistics")
_MOST = 12
"""Changes of each kind in one function."""


def code(text: str) -> Code:
    return Code(text, Position("m.yaml", 1, 1))


def symbols(module: str) -> Iterator[Symbol]:
    data = (Path(sysconfig.get_path("stdlib")) / f"{module}.py").read_bytes()
    file = load_source(data, pin="acme", path=f"{module}.py")
    for found in definitions(file):
        if isinstance(found.node, ast.FunctionDef) and not found.conditions:
            try:
                yield find_symbol(file, ".".join([*(c.name for c in found.classes), found.name]))
            except DeltaError:
                continue


def places(symbol: Symbol, kinds: type | tuple[type, ...]) -> Iterator[tuple[int, Code, int]]:
    """Number in the walk of the tree, pattern, and which match of it, of every node of some kinds."""
    for number, node in enumerate(ast.walk(symbol.node)):
        if not isinstance(node, kinds):
            continue
        try:
            pattern = compile_pattern(code(ast.unparse(node)), "expression")
        except ManifestError:
            continue
        which = [
            n for n, m in enumerate(find_all(pattern, symbol_windows(symbol), symbol.file), 1) if m.nodes[0] is node
        ]
        if which:
            yield number, pattern.code, which[0]


def generated(symbol: Symbol, delta: Delta, *, proved: bool = False) -> ast.AST:
    applied = apply_deltas(symbol, [delta], entry=ENTRY, marker=MARKER)
    check_entry(symbol, applied.edits, (), applied.buffer, MARKER)
    assert undo(applied, "") == symbol.data
    assert not (proved and disagreements(applied))
    return ast.parse(applied.buffer.text).body[0]


def expected(symbol: Symbol, number: int) -> tuple[ast.AST, ast.AST]:
    """A copy of the tree, and the copy of one of its nodes."""
    tree = copy.deepcopy(symbol.node)
    return tree, list(ast.walk(tree))[number]


def same(one: ast.AST, other: ast.AST) -> bool:
    return ast.unparse(one) == ast.unparse(other)


def elements(pattern: Code, nth: int, change: dict[str, object], with_: str | None = None) -> Delta:
    fields = {"name": "d", "nth": nth, "elements": ElementsChange.model_validate({"of": pattern, **change})}
    return Delta.model_validate({**fields, **({"with": code(with_)} if with_ else {})})


@pytest.mark.parametrize("module", MODULES)
def test_displays(module: str) -> None:
    seen = 0
    for symbol in symbols(module):
        for number, pattern, nth in islice(places(symbol, (ast.Tuple, ast.List, ast.Set)), _MOST):
            tree, node = expected(symbol, number)
            if isinstance(node, (ast.Tuple, ast.List)) and not isinstance(node.ctx, ast.Load):
                continue
            node.elts.append(ast.Name("probe"))
            assert same(generated(symbol, elements(pattern, nth, {"add": code("probe")}), proved=True), tree)
            seen += 1
            first = ast.unparse(node.elts[0])
            others = [ast.unparse(e) for e in node.elts[1:-1]]
            if len(node.elts) < 2 or first in others or isinstance(node.elts[0], ast.Starred):
                continue
            tree, node = expected(symbol, number)
            node.elts.insert(0, ast.Name("probe"))
            assert same(generated(symbol, elements(pattern, nth, {"add": code("probe"), "before": code(first)})), tree)
            tree, node = expected(symbol, number)
            node.elts[0] = ast.Name("probe")
            assert same(generated(symbol, elements(pattern, nth, {"replace": code(first)}, "probe")), tree)
            if isinstance(node, ast.Set) and len(node.elts) == 1:
                continue
            tree, node = expected(symbol, number)
            del node.elts[0]
            assert same(generated(symbol, elements(pattern, nth, {"remove": code(first)})), tree)
    assert seen


@pytest.mark.parametrize("module", MODULES)
def test_calls(module: str) -> None:
    seen = 0
    for symbol in symbols(module):
        for number, pattern, nth in islice(places(symbol, ast.Call), _MOST):
            tree, node = expected(symbol, number)
            node.args.append(ast.Name("probe"))
            change = {"match": pattern, "append": (code("probe"),)}
            delta = Delta.model_validate({"name": "d", "nth": nth, "call": CallChange.model_validate(change)})
            assert same(generated(symbol, delta), tree)
            seen += 1
            named = next((k for k in node.keywords if k.arg), None)
            if named is not None:
                tree, node = expected(symbol, number)
                next(k for k in node.keywords if k.arg == named.arg).arg = "probe"
                change = {"match": pattern, "rename": {named.arg: "probe"}}
                delta = Delta.model_validate({"name": "d", "nth": nth, "call": CallChange.model_validate(change)})
                assert same(generated(symbol, delta), tree)
    assert seen > 10
