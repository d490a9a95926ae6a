"""What well-known decorators leave alone: one table for those who judge calls, results and contracts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from afd_patchkit.source.locate import FunctionNode, dotted

Aspect = Literal["parameters", "result", "contract", "members"]
"""What a call must give, what the annotation says it gets, what users may rely on; of a class, its members and constructor."""

_TYPING = ("typing", "typing_extensions")
_ROWS: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[Aspect, ...]], ...] = (
    ((), ("staticmethod", "classmethod", "property"), ("parameters", "result")),
    (("functools",), ("cached_property",), ("result",)),
    (("functools",), ("cache", "lru_cache"), ("parameters", "result", "contract")),
    (("functools",), ("singledispatch",), ("parameters",)),
    (("contextlib",), ("contextmanager", "asynccontextmanager"), ("parameters",)),
    (("abc",), ("abstractmethod",), ("parameters", "result", "contract")),
    (_TYPING, ("override", "overload"), ("parameters", "result", "contract")),
    (_TYPING, ("final",), ("parameters", "result", "contract", "members")),
    ((*_TYPING, "warnings"), ("deprecated",), ("parameters", "result", "contract", "members")),
    (_TYPING, ("no_type_check",), ("parameters", "contract", "members")),
    (_TYPING, ("runtime_checkable",), ("contract", "members")),
    (("functools",), ("total_ordering",), ("members",)),
    (("enum",), ("unique",), ("members",)),
    (("torch",), ("no_grad", "inference_mode"), ("parameters", "result", "contract")),
)
"""Modules that have the decorators, the decorators, and what they leave alone."""
_KNOWN = {name: (modules, aspects) for modules, names, aspects in _ROWS for name in names}


def decorator_names(node: FunctionNode | ast.ClassDef) -> Iterator[tuple[ast.expr, str]]:
    """The decorators of a definition, each with its dotted name, called or not; an empty name for any other expression."""
    for decorator in node.decorator_list:
        yield decorator, dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)


def leaves(name: str, aspect: Aspect) -> bool:
    """Whether a decorator, by its dotted name, is known to leave something of the function alone."""
    module, _, last = name.rpartition(".")
    modules, aspects = _KNOWN.get(last, ((), ()))
    return aspect in aspects and (not module or module in modules)


def changing(node: FunctionNode | ast.ClassDef, aspect: Aspect) -> list[ast.expr]:
    """The decorators that may change something of a definition."""
    return [decorator for decorator, name in decorator_names(node) if not leaves(name, aspect)]
