"""What well-known decorators leave alone."""

from __future__ import annotations

import ast

import pytest

from afd_patchkit.source.decorators import changing, decorator_names, leaves
from afd_patchkit.source.locate import is_overload


@pytest.mark.parametrize(
    ("name", "parameters", "result", "contract"),
    [
        ("staticmethod", True, True, False),
        ("functools.cached_property", False, True, False),
        ("lru_cache", True, True, True),
        ("functools.lru_cache", True, True, True),
        ("memory.cache", False, False, False),
        ("contextlib.contextmanager", True, False, False),
        ("typing_extensions.override", True, True, True),
        ("warnings.deprecated", True, True, True),
        ("torch.inference_mode", True, True, True),
        ("runtime_checkable", False, False, True),
        ("torch.compile", False, False, False),
        ("", False, False, False),
    ],
)
def test_a_decorator_is_known_by_its_module(name, parameters, result, contract):
    found = (leaves(name, "parameters"), leaves(name, "result"), leaves(name, "contract"))
    assert found == (parameters, result, contract)


def function(decorators: str) -> ast.FunctionDef:
    node = ast.parse(f"{decorators}\ndef f(): pass\n").body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def test_called_decorators_and_expressions():
    node = function("@functools.lru_cache(maxsize=None)\n@table['x']\n@staticmethod")
    assert [name for _, name in decorator_names(node)] == ["functools.lru_cache", "", "staticmethod"]
    assert [ast.unparse(d) for d in changing(node, "parameters")] == ["table['x']"]


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        ("overload", True),
        ("typing.overload", True),
        ("t.overload", True),
        ("overload(np.sum)", False),
        ("final", False),
    ],
)
def test_overloads_are_known_whatever_typing_is_called(decorator, expected):
    assert is_overload(function(f"@{decorator}")) is expected
