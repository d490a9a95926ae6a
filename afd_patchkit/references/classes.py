"""What classes have: order of bases, members, attributes that methods set, what calling the class takes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from afd_patchkit.findings.nearest import nearest
from afd_patchkit.references.class_body import Facts, Field, facts_of, field_of, flag, how_decorated, slots, values_of
from afd_patchkit.references.things import (
    UNKNOWN,
    Class,
    Function,
    FunctionNode,
    Missing,
    Outside,
    Several,
    Thing,
    Value,
)
from afd_patchkit.references.trees import Trees, joined
from afd_patchkit.source.decorators import decorator_names, leaves
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.stdlib import BUILTINS, STDLIB
from afd_patchkit.source.syntax import line_of

PLAIN_BASES = frozenset(
    [
        "object",
        "typing.Generic",
        "typing_extensions.Generic",
        "typing.Protocol",
        "typing_extensions.Protocol",
        "abc.ABC",
    ]
)
"""Bases outside the trees that give instances no attributes of their own."""
ENUMS = frozenset(["enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag", "enum.ReprEnum"])
OBJECT = frozenset(
    [
        "__class__",
        "__doc__",
        "__dict__",
        "__module__",
        "__init__",
        "__new__",
        "__eq__",
        "__ne__",
        "__hash__",
        "__repr__",
        "__str__",
        "__format__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__reduce__",
        "__reduce_ex__",
        "__sizeof__",
        "__dir__",
        "__init_subclass__",
        "__subclasshook__",
        "__weakref__",
        "__annotations__",
        "__slots__",
        "__name__",
        "__qualname__",
        "__mro__",
        "__bases__",
        "__subclasses__",
        "__call__",
        "__subclasscheck__",
        "__instancecheck__",
        "mro",
        "__dataclass_fields__",
        "__match_args__",
        "__abstractmethods__",
        "__orig_bases__",
        "__parameters__",
        "__class_getitem__",
        "__static_attributes__",
        "__firstlineno__",
        "__getstate__",
        "__type_params__",
    ]
)
_ENUM_GIVES = frozenset(
    ["name", "value", "_name_", "_value_", "_value2member_map_", "__members__", "_missing_", "_generate_next_value_"]
)


@dataclass
class View:
    """One class with its bases.

    Attributes:
        cls: the class.
        order: it and its bases, in the order in which members are looked up.
        plain: the same without the classes that a class of ours is put before only when it is used.
        meant: those classes.
        open: a base, a decorator or a metaclass may give more than can be seen.
        enum: it is an enumeration.
        record: its constructor is made from its fields.
        outside: bases that no pin provides.
        structural: its objects may be of other classes (protocols, typed dictionaries).
        decorated: class decorators that may change anything.
        metaclass: what calling the class does cannot be told.
    """

    cls: Class
    order: tuple[Class, ...]
    open: bool
    plain: tuple[Class, ...] = ()
    meant: tuple[Class, ...] = ()
    enum: bool = False
    record: Literal["dataclass", "namedtuple"] | None = None
    outside: tuple[str, ...] = ()
    structural: bool = False
    decorated: tuple[str, ...] = ()
    metaclass: bool = False


class Classes:
    """Answers questions about the classes of some trees.

    Args:
        trees: where to look.
        meant_for: of a class of ours, gives the classes that its members were copied from: it is put before them only when it
            is used.
    """

    def __init__(self, trees: Trees, meant_for: Callable[[Class], Sequence[Class]] | None = None) -> None:
        self.trees = trees
        self.meant_for = meant_for or (lambda cls: ())
        self._views: dict[Class, View] = {}

    # ---- order of bases -------------------------------------------------------------------------------------

    def view(self, cls: Class) -> View:
        """The class with its bases; computed once."""
        found = self._views.get(cls)
        if found is None:
            self._views[cls] = View(cls, (cls,), True)  # a circle of bases
            found = self._views[cls] = self._view(cls)
        return found

    def _view(self, cls: Class) -> View:
        view = View(cls, (cls,), False)
        orders: list[Sequence[Class]] = []
        meant: list[Class] = []
        virtual = 0
        for expression in cls.node.bases:
            base = self._base(cls, expression)
            if isinstance(base, Class):
                inner = self.view(base)
                orders.append(inner.plain)
                meant += inner.meant
                view.open |= inner.open
                view.enum |= inner.enum
                view.record = view.record or inner.record
                view.metaclass |= inner.metaclass
                view.outside += inner.outside
            elif isinstance(base, Outside) and base.name in PLAIN_BASES:
                view.structural |= base.name.endswith("Protocol")
            elif isinstance(base, Outside) and base.name in ENUMS:
                view.enum = True
            elif isinstance(base, Outside) and base.name in {"typing.NamedTuple", "typing_extensions.NamedTuple"}:
                view.record, view.open = "namedtuple", True
            else:
                view.open = True
                view.outside += (base.name,) if isinstance(base, Outside) else ("?",)
        meant = [*meant, *(c for c in self.meant_for(cls) if c not in meant)] if self.trees.is_ours(cls.module) else []
        view.meant = tuple(meant)
        if meant and not view.outside:
            # what it is put before comes last, the most derived first
            views = [self.view(c) for c in meant]
            extra = [v.order for v in views if not any(v.cls in other.order[1:] for other in views)]
            orders += extra
            virtual = len(extra)
            view.open |= any(v.open for v in views)
        if self.trees.is_ours(cls.module) and not orders:
            view.open = True  # it may be a mixin
        view.plain = (cls, *_merged(orders[: len(orders) - virtual]))
        view.order = (cls, *_merged(orders))
        for keyword in cls.node.keywords:
            name = self._outside_name(cls, keyword.value)
            if keyword.arg == "metaclass" and name not in {"abc.ABCMeta", "enum.EnumMeta", "enum.EnumType", "type"}:
                view.open = view.metaclass = True
        for decorator in cls.node.decorator_list:
            kind = self._class_decorator(cls, decorator)
            if kind == "dataclass":
                view.record = "dataclass"
            elif kind == "unknown":
                view.open = True
                view.decorated += (dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) or "?",)
        return view

    def _base(self, cls: Class, expression: ast.expr) -> Thing:
        plain = expression.value if isinstance(expression, ast.Subscript) else expression
        chain = dotted(plain)
        if not chain:
            return UNKNOWN
        thing = self.resolve(cls, chain)
        if isinstance(thing, Several):
            return next((t for t in thing.things if isinstance(t, Class)), UNKNOWN)
        return thing

    def resolve(self, cls: Class, chain: str) -> Thing:
        """What a dotted name means where the class stands."""
        return self.at_top(cls.module, chain)

    def at_top(self, module: str, chain: str) -> Thing:
        """What a dotted name means at the top level of a module; builtins are outside."""
        thing = self.trees.chain(module, chain)
        if isinstance(thing, Missing) and thing.where == module and "." not in chain:
            return Outside(chain)
        return thing

    def _outside_name(self, cls: Class, expression: ast.expr) -> str:
        thing = self.resolve(cls, dotted(expression) or "?")
        return thing.name if isinstance(thing, Outside) else ""

    def _class_decorator(self, cls: Class, decorator: ast.expr) -> Literal["dataclass", "harmless", "unknown"]:
        plain = decorator.func if isinstance(decorator, ast.Call) else decorator
        thing = self.resolve(cls, dotted(plain) or "?")
        if isinstance(thing, Outside):
            if thing.name in {"dataclasses.dataclass", "pydantic.dataclasses.dataclass", "dataclass"}:
                return "dataclass"
            return "harmless" if leaves(thing.name, "members") else "unknown"
        if isinstance(thing, Function):
            names = {name.rpartition(".")[2] for node in thing.nodes for _, name in decorator_names(node)}
            if "dataclass_transform" in names:
                return "dataclass"
        return "unknown"

    # ---- members --------------------------------------------------------------------------------------------

    def facts(self, cls: Class) -> Facts:
        """What the class statement itself gives; kept with the file."""
        kept: dict[int, Facts] = cls.file.__dict__.setdefault("_class_facts", {})
        found = kept.get(id(cls.node))
        if found is None:
            found = kept[id(cls.node)] = facts_of(cls)
        return found

    def slotted(self, cls: Class) -> bool:
        """Whether instances have only the attributes that `__slots__` names."""
        view = self.view(cls)
        return not view.open and all(slots(one.node) is not None for one in view.order)

    def names(self, cls: Class) -> set[str]:
        """Every name that the class or a base that can be read has."""
        found: set[str] = set()
        for one in self.view(cls).order:
            facts = self.facts(one)
            found |= facts.sites.keys() | facts.attributes.keys()
        return found

    def member(self, cls: Class, name: str, *, instance: bool, after: Class | None = None) -> Thing:
        """What `object.name` gives for the class or one of its instances.

        Args:
            cls: the class.
            name: the attribute, mangled as Python looks it up.
            instance: whether the object is an instance (else the class itself).
            after: look only behind this class, as `super()` does.
        """
        view = self.view(cls)
        order = list(view.order)
        if after is not None:
            order = order[order.index(after) + 1 :] if after in order else []
        opened = view.open
        of_object = instance and after is None  # `super()` reads classes only
        declared: Thing | None = None
        for one in order:
            found = self._own_member(one, name, view, instance=instance, of_object=of_object)
            if not of_object and isinstance(found, Value) and all(map(_declares, found.nodes)):
                declared = declared or found
            elif found is not None:
                return found
            opened = opened or self.facts(one).open
        if declared is not None:
            return declared
        if opened or name in OBJECT or (view.enum and name in _ENUM_GIVES) or (after is not None and not order):
            return UNKNOWN
        if view.enum and name.startswith("_"):
            return UNKNOWN
        return Missing(cls.reference, name, nearest(name, self.names(cls)))

    def _own_member(self, cls: Class, name: str, view: View, *, instance: bool, of_object: bool) -> Thing | None:
        """What one class gives: to instances, or to itself; what only objects have is left out unless `of_object`."""
        facts = self.facts(cls)
        sites = [s for s in facts.sites.get(name, ()) if s.guard != "type_checking"]
        if not sites:
            given = facts.attributes.get(name)
            if given is not None and not of_object:
                given = [(node, method) for node, method in given if method is None or _has_class(method)] or None
            if given is None:
                return None
            return self._value(cls, name, given, view if given and given[0][1] is None and view.record else None)
        functions = [s.node for s in sites if isinstance(s.node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        if functions and len(functions) == len(sites):
            if len(sites) > 1 and len({s.guard for s in sites}) > 1:
                return joined([self._method(cls, name, (f,), instance=instance) for f in functions])
            return self._method(cls, name, tuple(functions), instance=instance)
        last = sites[-1].node
        if isinstance(last, ast.ClassDef):
            return Class(cls.module, f"{cls.qualname}.{name}", cls.file, last)
        if isinstance(last, ast.Assign) and (chain := dotted(last.value)):
            alias = self._aliased(cls, last, chain, view, instance=instance, of_object=of_object)
            if alias is not None:
                return alias
        return self._value(cls, name, [*((s.node, None) for s in sites), *facts.attributes.get(name, ())], view)

    def _aliased(
        self, cls: Class, node: ast.Assign, chain: str, view: View, *, instance: bool, of_object: bool
    ) -> Thing | None:
        """`name = other` in a class body: what stands above it there, else what the module has.

        Args:
            cls: the class.
            node: the statement.
            chain: the other name.
            view: the class that is asked, with its bases.
            instance: whether it is read from an instance.
            of_object: whether what only objects have counts.
        """
        known = self.facts(cls).sites.get(chain)
        if known and line_of(known[-1].node) < node.lineno:
            return self._own_member(cls, chain, view, instance=instance, of_object=of_object)
        thing = self.resolve(cls, chain)
        if isinstance(thing, Function) and thing.owner is None:
            return replace(thing, bound=instance)
        return thing if isinstance(thing, (Function, Class)) else None

    def _method(self, cls: Class, name: str, nodes: tuple[FunctionNode, ...], *, instance: bool) -> Function:
        how = how_decorated(nodes[0])
        bound = how == "class" or (how == "plain" and instance)
        return Function(cls.module, f"{cls.qualname}.{name}", cls.file, nodes, cls, how, bound)

    def _value(
        self, cls: Class, name: str, nodes: Sequence[tuple[ast.AST, FunctionNode | None]], view: View | None
    ) -> Value:
        annotation = next((n.annotation for n, _ in nodes if isinstance(n, ast.AnnAssign)), None)
        values = tuple((v, method) for n, method in nodes for v in values_of(n))
        what: Literal["constant", "attribute", "field", "member"] = "constant"
        if view is None:
            what = "attribute"
        elif view.enum and annotation is None:
            what = "member"
        elif view.record is not None and annotation is not None:
            what = "field"
        statements = tuple(n for n, _ in nodes)
        return Value(cls.module, f"{cls.qualname}.{name}", cls.file, statements, cls, annotation, values, what)

    # ---- fields and constructors ----------------------------------------------------------------------------

    def fields(self, cls: Class) -> list[Field] | None:
        """The fields that the constructor of a dataclass or named tuple takes, in its order; None when it cannot be told."""
        view = self.view(cls)
        if view.record is None or any(name != "?" and not _without_fields(name) for name in view.outside):
            return None
        found: dict[str, Field] = {}
        for one in reversed(view.order):
            decorator = self._record_decorator(one)
            if decorator is None and view.record == "dataclass":
                continue
            keyword_only = flag(decorator, "kw_only", False)
            for statement in one.node.body:
                if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                    continue
                kind = dotted(
                    statement.annotation.value
                    if isinstance(statement.annotation, ast.Subscript)
                    else statement.annotation
                )
                last = kind.rpartition(".")[2]
                if last == "KW_ONLY":
                    keyword_only = True
                elif last != "ClassVar" and (made := field_of(statement, keyword_only, one.file)) is not None:
                    found[statement.target.id] = made
                elif last != "ClassVar":
                    found.pop(statement.target.id, None)
        listed = list(found.values())
        return [f for f in listed if not f.keyword_only] + [f for f in listed if f.keyword_only]

    def _record_decorator(self, cls: Class) -> ast.expr | None:
        return next((d for d in cls.node.decorator_list if self._class_decorator(cls, d) == "dataclass"), None)

    def constructor(self, cls: Class) -> Function | list[Field] | None:
        """What calling the class takes: `__init__` (or `__new__`), or fields; None when it cannot be told.

        A class without either takes nothing: an empty list.
        """
        view = self.view(cls)
        if view.enum or view.metaclass or view.decorated:
            return None
        own: Function | None = None
        for one in view.order:
            sites = self.facts(one).sites
            decorator = self._record_decorator(one)
            if view.record == "namedtuple" or (
                decorator is not None and "__init__" not in sites and flag(decorator, "init", True)
            ):
                return self.fields(cls)
            for name in ("__init__", "__new__"):
                if name in sites:
                    made = self.member(one, name, instance=False)
                    if not isinstance(made, Function):
                        return None
                    own = replace(made, bound=True)
                    both = {"__init__", "__new__"} <= sites.keys()
                    return None if both else own
        return None if view.outside or view.open else []


def _has_class(method: FunctionNode) -> bool:
    """Whether the first parameter of a method is the class."""
    return method.name in {"__init_subclass__", "__class_getitem__"} or how_decorated(method) == "class"


def _without_fields(name: str) -> bool:
    """Whether a base outside the trees gives a dataclass no fields: none of the standard library is a dataclass."""
    top, dot, _ = name.partition(".")
    return name in PLAIN_BASES or (top in STDLIB if dot else name in BUILTINS)


def _declares(node: ast.AST) -> bool:
    """Whether a statement only says what an attribute is, and gives it no value."""
    return isinstance(node, ast.AnnAssign) and node.value is None


def _merged(orders: Sequence[Sequence[Class]]) -> list[Class]:
    """Python's order of bases (C3) of those that can be read; depth first where that has no answer."""
    lists = [list(order) for order in orders] + [[order[0] for order in orders]]
    out: list[Class] = []
    while any(lists):
        lists = [entries for entries in lists if entries]
        head = next((entries[0] for entries in lists if not any(entries[0] in other[1:] for other in lists)), None)
        if head is None:
            rest = [cls for entries in lists for cls in entries]
            return [*out, *(c for c in dict.fromkeys(rest) if c not in out)]
        out.append(head)
        lists = [[c for c in entries if c != head] for entries in lists]
    return out
