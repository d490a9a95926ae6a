"""Whether a call fits what it calls."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from afd_patchkit.references.class_body import Field
from afd_patchkit.references.things import Function
from afd_patchkit.source.decorators import changing
from afd_patchkit.source.forward import mangled


@dataclass(frozen=True)
class Shape:
    """How a call gives its arguments.

    Attributes:
        positional: how many stand before any `*`.
        keywords: their names.
        star: there is a `*argument`.
        double_star: there is a `**argument`.
    """

    positional: int
    keywords: tuple[str, ...] = ()
    star: bool = False
    double_star: bool = False

    @classmethod
    def of(cls, call: ast.Call) -> Shape:
        """The shape of a call."""
        first = next((i for i, a in enumerate(call.args) if isinstance(a, ast.Starred)), len(call.args))
        names = tuple(k.arg for k in call.keywords if k.arg is not None)
        return cls(first, names, first < len(call.args), len(names) < len(call.keywords))

    def __str__(self) -> str:
        return (
            f"{self.positional}{'*' if self.star else ''},{','.join(self.keywords)}{'**' if self.double_star else ''}"
        )

    @classmethod
    def parse(cls, text: str) -> Shape:
        """The shape that `str` wrote."""
        head, _, rest = text.partition(",")
        names = rest.removesuffix("**")
        return cls(
            int(head.rstrip("*")), tuple(names.split(",")) if names else (), head.endswith("*"), rest.endswith("**")
        )


@dataclass(frozen=True)
class CallParameter:
    """One parameter of something that can be called.

    Attributes:
        name: its name; of a positional-only one, too.
        kind: `position`, `any`, `keyword`, `*` or `**`.
        required: a call has to give it.
    """

    name: str
    kind: str
    required: bool


def copies(call: ast.Call, fields: Sequence[Field]) -> bool:
    """Whether a call makes one record of another field by field: two arguments at least read of one object what they are for."""
    names = [f.name for f in fields if not f.keyword_only]
    given = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
    read = Counter(
        ast.dump(value.value) for name, value in given if isinstance(value, ast.Attribute) and value.attr == name
    )
    return max(read.values(), default=0) > 1


def parameters(of: Function | Sequence[Field]) -> tuple[CallParameter, ...] | None:
    """What a function or a constructor takes, a bound first parameter aside; None when decorators may change it."""
    if not isinstance(of, Function):
        return tuple(CallParameter(f.name, "keyword" if f.keyword_only else "any", f.required) for f in of)
    return None if changing(of.node, "parameters") else listed(of)


def listed(of: Function) -> tuple[CallParameter, ...]:
    """What the `def` statement lists, a bound first parameter aside."""
    a, private = of.node.args, of.owner.name if of.owner is not None else None
    positional = [(p.arg, "position") for p in a.posonlyargs] + [(mangled(p.arg, private), "any") for p in a.args]
    optional = len(positional) - len(a.defaults)
    found = [CallParameter(name, kind, i < optional) for i, (name, kind) in enumerate(positional)]
    if of.bound and found:
        found = found[1:]
    if a.vararg:
        found.append(CallParameter(a.vararg.arg, "*", False))
    found += [
        CallParameter(mangled(p.arg, private), "keyword", d is None)
        for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)
    ]
    if a.kwarg:
        found.append(CallParameter(a.kwarg.arg, "**", False))
    return tuple(found)


def misfit(shape: Shape, takes: Sequence[CallParameter]) -> str | None:
    """Why a call cannot bind, or None; behind `*` and `**` of the call only what surely fails counts."""
    positional = [p for p in takes if p.kind in {"position", "any"}]
    names = {p.name for p in takes if p.kind in {"any", "keyword"}}
    takes_more = any(p.kind == "*" for p in takes)
    takes_all = any(p.kind == "**" for p in takes)
    unknown = [k for k in shape.keywords if k not in names]
    if unknown and not takes_all:
        return f"it has no parameter {', '.join(unknown)}"
    if shape.positional > len(positional) and not takes_more:
        count = "one positional argument" if shape.positional == 1 else f"{shape.positional} positional arguments"
        return f"{count}, it takes {len(positional) or 'none'}"
    given = {p.name for p in positional[: shape.positional] if p.kind == "any"}
    twice = [k for k in shape.keywords if k in given]
    if twice:
        return f"{', '.join(twice)} is given twice"
    rest = [] if shape.star else positional[shape.positional :]
    missing = [p.name for p in rest if p.required and p.name not in shape.keywords]
    missing += [p.name for p in takes if p.kind == "keyword" and p.required and p.name not in shape.keywords]
    if shape.double_star:
        missing = [n for n in missing if any(p.name == n and p.kind == "position" for p in takes)]
    return f"nothing for {', '.join(missing)}" if missing else None


def meets(shape: Shape, takes: Sequence[CallParameter]) -> dict[str, str]:
    """Which parameter each argument reaches: position or keyword to name; what `*` and `**` give is left out."""
    positional = [p for p in takes if p.kind in {"position", "any"}]
    more = next((p.name for p in takes if p.kind == "*"), "?")
    found = {str(i): positional[i].name if i < len(positional) else f"*{more}" for i in range(shape.positional)}
    names = {p.name for p in takes if p.kind in {"any", "keyword"}}
    kwargs = next((p.name for p in takes if p.kind == "**"), "?")
    return {**found, **{k: k if k in names else f"**{kwargs}" for k in shape.keywords}}
