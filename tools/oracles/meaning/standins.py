"""Stand-ins of definitions, as syntax: headers and class bodies as they are, recorders for bodies."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import enum
import types
import typing
from collections.abc import Iterator
from typing import Any

from tools.oracles.meaning.sources import Listing
from tools.oracles.meaning.values import Default, Info, Outside

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_FLAGS = {"init", "kw_only", "frozen", "slots", "eq", "order", "unsafe_hash"}


class Builder:
    """Makes stand-ins of definitions.

    Attributes:
        infos: what each of them is, by the number that it tells.
    """

    def __init__(self) -> None:
        self.infos: list[Info] = []

    def function(self, listing: Listing, node: Any, qualname: str, owner: Any) -> ast.stmt:
        """A `def` statement with a recorder for a body.

        Args:
            listing: the module.
            node: the function.
            qualname: its path in the module.
            owner: the class statement around it; None without one.
        """
        kind = "async" if isinstance(node, ast.AsyncFunctionDef) else "generator" if _yields(node) else "function"
        info = Info(listing, qualname, node, kind, ast.unparse(unquoted(node.returns)) if node.returns else "", owner)
        words = [last_name(d) for d in node.decorator_list]
        if any(w in {"property", "cached_property"} for w in words):
            info.kind = "property" if kind == "function" else f"{kind} property"
        arguments = ast.parse(f"def f({ast.unparse(_bare(node.args))}): pass").body[0].args  # type: ignore[attr-defined]
        arguments.defaults = [call_of("__default__", ast.unparse(d)) for d in node.args.defaults]
        arguments.kw_defaults = [d and call_of("__default__", ast.unparse(d)) for d in node.args.kw_defaults]
        decorators: list[ast.expr] = []
        for decorator in node.decorator_list:
            word = last_name(decorator)
            if owner is not None and word in {"property", "staticmethod", "classmethod"}:
                decorators.append(ast.Name(word, ast.Load()))
            elif owner is not None and word == "cached_property":
                decorators.append(ast.Name("__property__", ast.Load()))
            elif owner is not None and word in {"setter", "deleter", "getter"}:
                decorators.append(ast.Attribute(ast.Name(node.name, ast.Load()), word, ast.Load()))
            elif "dataclass_transform" in word:
                decorators.append(ast.Name("__record__", ast.Load()))
        call = ast.parse("__called__(0, locals())", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args[0] = ast.Constant(self._token(info))
        body: list[ast.stmt] = [ast.Return(call)]
        if node.name == "__init__":
            body = [ast.Expr(call)]
        elif node.name == "__new__":
            body = ast.parse("return object.__new__(cls)").body
            arguments.args[:1] = [ast.arg("cls")]
        made = ast.FunctionDef(node.name, arguments, body, decorators, None)
        if hasattr(node, "type_params"):
            made.type_params = []  # type: ignore[attr-defined]
        return made

    def _token(self, info: Info) -> int:
        self.infos.append(info)
        return len(self.infos) - 1

    def class_(self, listing: Listing, node: ast.ClassDef, qualname: str, space: dict[str, Any]) -> ast.stmt:
        """A class statement whose methods are recorders.

        Args:
            listing: the module.
            node: the class.
            qualname: its path in the module.
            space: what the module has bound.
        """
        info = Info(listing, qualname, node, "class")
        bases = [b.value if isinstance(b, ast.Subscript) else b for b in node.bases]
        kept = []
        is_enum = False
        for base in bases:
            value = eval(compile(ast.Expression(base), "<release>", "eval"), space)
            word = value._name.rpartition(".")[2] if isinstance(value, Outside) else getattr(value, "__name__", "")
            info.structural |= word in {"Protocol", "TypedDict"}
            if word in {"Generic", "Protocol", "ABC", "TypedDict"}:
                continue
            is_enum |= isinstance(value, type) and issubclass(value, enum.Enum)
            kept.append(base)
        made_record = next((d for d in node.decorator_list if self._is_record(d, space)), None)
        body: list[ast.stmt] = []
        self._members(
            listing, node, node.body, qualname, body, info, space, is_enum=is_enum, record=made_record is not None
        )
        decorators: list[ast.expr] = [call_of("__attached__", self._token(info))]
        if made_record is not None:
            flags = (
                [k for k in made_record.keywords if isinstance(k.value, ast.Constant)]
                if isinstance(made_record, ast.Call)
                else []
            )
            made = ast.Call(ast.Name("__record__", ast.Load()), [], [k for k in flags if k.arg in _FLAGS])
            decorators.append(made)
        found = ast.ClassDef(node.name, kept, [], body or [ast.Pass()], decorators)
        if hasattr(node, "type_params"):
            found.type_params = []  # type: ignore[attr-defined]
        return found

    def _is_record(self, decorator: ast.expr, space: dict[str, Any]) -> bool:
        plain = decorator.func if isinstance(decorator, ast.Call) else decorator
        if not dotted_names(plain):
            return False
        value = eval(compile(ast.Expression(plain), "<release>", "eval"), space)
        name = value._name if isinstance(value, Outside) else ""
        return (
            value is dataclasses.dataclass
            or name.endswith("dataclasses.dataclass")
            or value is record
            or getattr(value, "__is_record__", False)
        )

    def _members(
        self, listing: Listing, cls: ast.ClassDef, statements: list[ast.stmt], qualname: str, out: list[ast.stmt], info: Info,
        space: dict[str, Any],
        *, is_enum: bool, record: bool,
    ) -> None:  # fmt: skip
        for node in statements:
            if isinstance(node, FUNCTION):
                if any(last_name(d) == "overload" for d in node.decorator_list):
                    continue
                out.append(self.function(listing, node, f"{qualname}.{node.name}", cls))
                for name, given in _set_by(node):
                    info.sets.setdefault(_mangled(name, cls.name), []).append(given)
            elif isinstance(node, ast.ClassDef):
                out.append(self.class_(listing, node, f"{qualname}.{node.name}", space))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
                if record:
                    info.sets.setdefault(_mangled(name, cls.name), []).insert(0, (node.annotation, None))
                elif node.value is None:
                    info.sets.setdefault(_mangled(name, cls.name), []).insert(0, (node.annotation, None))
                    continue
                value = node.value
                if (
                    value is not None
                    and record
                    and isinstance(value, ast.Call)
                    and last_name(value) in {"field", "Field"}
                ):
                    value = _field_call(value)
                elif value is not None:
                    value = call_of("__default__", ast.unparse(value)) if record else _held_call(qualname, name, node)
                out.append(
                    ast.AnnAssign(
                        ast.Name(name, ast.Store()),
                        call_of("__annotation__", ast.unparse(unquoted(node.annotation))),
                        value,
                        1,
                    )
                )
            elif isinstance(node, ast.Assign):
                self._assigned(node, qualname, out, is_enum=is_enum)
            elif isinstance(node, ast.If) and not ast.unparse(node.test).endswith("TYPE_CHECKING"):
                self._members(
                    listing, cls, [*node.body, *node.orelse], qualname, out, info, space, is_enum=is_enum, record=record
                )

    @staticmethod
    def _assigned(node: ast.Assign, qualname: str, out: list[ast.stmt], *, is_enum: bool) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                continue
            known = {s.name for s in out if isinstance(s, ast.FunctionDef)}
            literal = isinstance(node.value, ast.Constant) or (
                isinstance(node.value, ast.Call) and last_name(node.value) == "auto"
            )
            if (
                target.id == "__slots__"
                or (is_enum and literal)
                or (isinstance(node.value, ast.Name) and node.value.id in known)
            ):
                value: ast.expr = node.value
            elif is_enum:
                value = call_of("__default__", ast.unparse(node.value))
            else:
                value = _held_call(qualname, target.id, node)
            out.append(ast.Assign([ast.Name(target.id, ast.Store())], value))


# ---- what stand-ins call ------------------------------------------------------------------------------------------


def record(cls: Any = None, **flags: Any) -> Any:
    """`dataclass`, or a function of the release that makes such."""
    if isinstance(cls, types.FunctionType):
        cls.__is_record__ = True  # type: ignore[attr-defined]
        return cls
    return dataclasses.dataclass(**flags) if cls is None else dataclasses.dataclass(cls)


def annotation_of(text: str) -> Any:
    head = text.partition("[")[0].rpartition(".")[2]
    return {"ClassVar": typing.ClassVar, "InitVar": dataclasses.InitVar, "KW_ONLY": dataclasses.KW_ONLY}.get(
        head, Default(text)
    )


def field_of(**given: Any) -> Any:
    return dataclasses.field(**given)


# ---- pieces of syntax ---------------------------------------------------------------------------------------------


def _field_call(call: ast.Call) -> ast.expr:
    keywords = []
    for k in call.keywords:
        if k.arg == "default":
            keywords.append(ast.keyword("default", call_of("__default__", ast.unparse(k.value))))
        elif k.arg == "default_factory":
            factory = ast.Lambda(
                ast.arguments([], [], None, [], [], None, []), call_of("__default__", ast.unparse(k.value))
            )
            keywords.append(ast.keyword("default_factory", factory))
        elif k.arg in {"init", "kw_only"} and isinstance(k.value, ast.Constant):
            keywords.append(k)
    if call.args:
        keywords.append(ast.keyword("default", call_of("__default__", ast.unparse(call.args[0]))))
    return ast.Call(ast.Name("__field__", ast.Load()), [], keywords)


def _held_call(qualname: str, name: str, node: ast.Assign | ast.AnnAssign) -> ast.expr:
    annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
    value = ast.unparse(node.value) if node.value is not None else ""
    made = call_of("__held__", qualname)
    assert isinstance(made, ast.Call)
    made.args += [ast.Constant(name), ast.Constant(value), ast.Constant(annotation)]
    return made


def call_of(name: str, value: Any) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(value)], [])


def _bare(arguments: ast.arguments) -> ast.arguments:
    """Parameters without annotations, each default `0`."""

    def plain(a: ast.arg | None) -> ast.arg | None:
        return a and ast.arg(a.arg)

    zero = ast.Constant(0)
    return ast.arguments(
        [ast.arg(a.arg) for a in arguments.posonlyargs], [ast.arg(a.arg) for a in arguments.args], plain(arguments.vararg),
        [ast.arg(a.arg) for a in arguments.kwonlyargs], [d and zero for d in arguments.kw_defaults], plain(arguments.kwarg),
        [zero for _ in arguments.defaults],
    )  # fmt: skip


def unquoted(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        with contextlib.suppress(SyntaxError):
            return ast.parse(node.value, mode="eval").body
    return node


def dotted_names(node: ast.expr | None) -> list[str]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [*reversed([*names, node.id])] if isinstance(node, ast.Name) else []


def last_name(node: ast.expr) -> str:
    plain = node.func if isinstance(node, ast.Call) else node
    plain = plain.value if isinstance(plain, ast.Subscript) else plain
    return plain.attr if isinstance(plain, ast.Attribute) else plain.id if isinstance(plain, ast.Name) else "?"


def _yields(node: Any) -> bool:
    stack = list(node.body)
    while stack:
        item = stack.pop()
        if isinstance(item, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(item, (*FUNCTION, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(item)
    return False


def _mangled(name: str, cls: str) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{cls.lstrip('_')}{name}" if private else name


def _set_by(node: Any) -> Iterator[tuple[str, tuple[ast.expr | None, ast.expr | None]]]:
    """Attributes of the first parameter that a method sets."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    if not arguments or any(last_name(d) == "staticmethod" for d in node.decorator_list):
        return
    for item in ast.walk(node):
        targets = (
            item.targets
            if isinstance(item, ast.Assign)
            else [item.target]
            if isinstance(item, (ast.AnnAssign, ast.For))
            else []
        )
        for target in targets:
            for one in ast.walk(target):
                if (
                    isinstance(one, ast.Attribute)
                    and isinstance(one.ctx, ast.Store)
                    and isinstance(one.value, ast.Name)
                    and one.value.id == arguments[0].arg
                ):
                    annotation = item.annotation if isinstance(item, ast.AnnAssign) else None
                    yield (
                        one.attr,
                        (
                            annotation,
                            item.value if one is target and isinstance(item, (ast.Assign, ast.AnnAssign)) else None,
                        ),
                    )
