"""What those who refer to a thing rely on, as data that the lock can hold: names, kinds and digests, no upstream text."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from afd_patchkit.digests import short
from afd_patchkit.references.calls import CallParameter, Shape, listed, meets, misfit, parameters
from afd_patchkit.references.class_body import abstract, slots
from afd_patchkit.references.classes import Classes
from afd_patchkit.references.infer import is_generator
from afd_patchkit.references.things import Class, Found, Function, FunctionNode, Module, Several, Value
from afd_patchkit.source.decorators import changing
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.signature import expression_text
from afd_patchkit.source.text import SourceFile
from afd_patchkit.source.tokens import significant, tokens_in

Data = Mapping[str, Any]

_CLASSES = frozenset(["class", "dataclass", "namedtuple", "enumeration"])
_WORDS = {"plain": "function", "static": "static method", "class": "class method", "property": "property"}

_LITERALS = {
    ast.List: "list",
    ast.Dict: "dict",
    ast.Set: "set",
    ast.Tuple: "tuple",
    ast.ListComp: "list",
    ast.DictComp: "dict",
}


@dataclass(frozen=True)
class Contract:
    """What a thing promises.

    Attributes:
        data: JSON data: `kind`, `takes` (parameters), `gives` (annotation), `decorators`, `bases`, `fields`, `slots`,
            `origin`, `body`, `made` (origin and body of a class's constructor); what is empty is left out.
        text: the same in words, for people.
    """

    data: Data
    text: str


def contract(thing: Found | Several, classes: Classes) -> Contract:
    """The contract of a thing."""
    if isinstance(thing, Several):
        parts = [contract(t, classes) for t in thing.things]
        return Contract(
            {"kind": "branches", "parts": [dict(p.data) for p in parts]}, " or ".join(p.text for p in parts)
        )
    if isinstance(thing, Module):
        return Contract({"kind": "module"}, f"module {thing.name}")
    if isinstance(thing, Class):
        return _class(thing, classes)
    if isinstance(thing, Function):
        return _function(thing)
    return _value(thing)


def _digest(text: str) -> str:
    return short(text, 8)


def nameless(file: SourceFile, node: FunctionNode | ast.ClassDef) -> str:
    """Digest of a definition, its own name left out: two that are equal differ in their names at most."""
    if isinstance(node, ast.ClassDef):  # large; layout may count
        return _digest(file.slice(file.node_span(node)).replace(node.name, "_", 1))
    words = [t.text for t in significant(tokens_in(file, file.node_span(node)))]
    words[words.index("def") + 1] = "_"
    return _digest(" ".join(words))


def _expression(file: SourceFile, node: ast.expr | None) -> str:
    """An annotation or default, the quotes of a quoted annotation left out."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return repr(node.value)  # however it is written
    return expression_text(file, node)


def _function(function: Function) -> Contract:
    node = function.node
    kind = _WORDS[function.how]
    if is_generator(node):
        kind = "generator" if function.how == "plain" else f"generator {kind}"
    if isinstance(node, ast.AsyncFunctionDef):
        kind = f"async {kind}"
    data: dict[str, Any] = {"kind": kind, "origin": function.reference, "body": nameless(function.file, node)}
    a = node.args
    defaults: dict[str, str] = {}
    positional = [*a.posonlyargs, *a.args]
    for argument, default in zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True):
        defaults[argument.arg] = _expression(function.file, default)
    for argument, keyword_default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        if keyword_default is not None:
            defaults[argument.arg] = _expression(function.file, keyword_default)
    takes = () if function.how == "property" else listed(function)
    if takes:
        data["takes"] = [_written(p, defaults.get(p.name)) for p in takes]
    gives = _expression(function.file, node.returns)
    if gives:
        data["gives"] = _digest(gives)
    marks = changing(node, "contract")
    if marks:
        data["decorators"] = [_digest(expression_text(function.file, d)) for d in marks]
    if function.how == "property":
        data["accessors"] = sorted(
            {dotted(d).rpartition(".")[2] for n in function.nodes for d in n.decorator_list} & {"setter", "deleter"}
        )
    arguments = ", ".join(_plain(p, defaults.get(p.name)) for p in takes)
    return Contract(
        data,
        f"{kind} {function.qualname}"
        + ("" if function.how == "property" else f"({arguments})")
        + (f" -> {gives}" if gives else ""),
    )


def _written(parameter: CallParameter, default: str | None) -> str:
    """`name kind`, and the digest of its default."""
    kind = (
        parameter.kind
        if parameter.required or parameter.kind in {"*", "**"}
        else f"{parameter.kind} ={_digest(default or '')}"
    )
    return f"{parameter.name} {kind}"


def _read(written: str) -> tuple[CallParameter, str]:
    name, kind, *rest = written.split(" ")
    default = rest[0] if rest else ""
    return CallParameter(name, kind, not default and kind not in {"*", "**"}), default


def _plain(parameter: CallParameter, default: str | None) -> str:
    mark = parameter.kind if parameter.kind in {"*", "**"} else ""
    return f"{mark}{parameter.name}" + (f"={default}" if default is not None and not parameter.required else "")


def _class(cls: Class, classes: Classes) -> Contract:
    view = classes.view(cls)
    kind = "enumeration" if view.enum else view.record or "class"
    bases = [dotted(b.value if isinstance(b, ast.Subscript) else b).rpartition(".")[2] or "?" for b in cls.node.bases]
    data: dict[str, Any] = {"kind": kind, "origin": cls.reference, "body": nameless(cls.file, cls.node)}
    if bases:
        data["bases"] = bases
    text = f"{kind} {cls.qualname}" + (f"({', '.join(bases)})" if bases else "")
    constructor = classes.constructor(cls)
    if isinstance(constructor, Function):
        made = _function(constructor)
        data["takes"] = list(made.data.get("takes", ()))
        data["made"] = [made.data["origin"], made.data["body"]]
        text += f", made by {made.text}"
    elif constructor is not None:
        written = []
        for item in constructor:
            value = item.node.value if item.node is not None else None
            takes = CallParameter(item.name, "keyword" if item.keyword_only else "any", item.required)
            written.append(_written(takes, _expression(item.file or cls.file, value)))
        data["takes"] = written
        text += f", made of ({', '.join(w.split(' ')[0] for w in written)})"
    if view.record is not None:
        data["fields"] = sorted(n for one in view.order for n in _annotated(one))
    if view.enum:
        sites = classes.facts(cls).sites
        data["members"] = sorted(n for n in sites if not n.startswith("_") and sites[n][-1].kind == "assign")
    slotted = slots(cls.node)
    if slotted is not None:
        data["slots"] = sorted(slotted)
    unfinished = abstract(classes.facts(cls))
    if unfinished:
        data["abstract"] = unfinished
    return Contract(data, text)


def _annotated(cls: Class) -> list[str]:
    return [s.target.id for s in cls.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]


def _value(value: Value) -> Contract:
    data: dict[str, Any] = {"kind": value.what}
    gives = _expression(value.file, value.annotation)
    literals = {_LITERALS.get(type(v)) or _constant(v) for v, _ in value.values}
    if gives:
        data["gives"] = _digest(gives)
    elif len(literals) == 1 and None not in literals and len(value.values) == len(value.nodes):
        gives = literals.pop() or ""
        data["holds"] = gives
    return Contract(data, f"{value.what} {value.qualname}" + (f": {gives}" if gives else ""))


def _constant(node: ast.expr) -> str | None:
    return type(node.value).__name__ if isinstance(node, ast.Constant) and node.value is not None else None


# ---- comparison -------------------------------------------------------------------------------------------------


def changes(old: Data, new: Data, uses: Sequence[str]) -> list[str]:
    """What changed of a contract that somebody relies on who uses the thing so.

    Args:
        old: the contract before.
        new: the contract now.
        uses: `call SHAPE`, `read`, `base`, `type`, `set`, `import`, `copy` or `all`.
    """
    if old == new:
        return []
    if set(uses) == {"type"} and {old["kind"], new["kind"]} <= _CLASSES:
        return _elsewhere(old, new)
    if _called_kind(old) != _called_kind(new):
        return [f"{old['kind']} became {new['kind']}"]
    if old["kind"] == "branches":
        return ["what its branches define"]
    found = _elsewhere(old, new)
    if (old.get("gives") and new.get("gives") and old["gives"] != new["gives"]) or (
        old.get("holds") and new.get("holds") and old["holds"] != new["holds"]
    ):
        found.append("its annotation" if "takes" not in new else "its return annotation")
    if _marks(old) != _marks(new):
        found.append("its decorators")
    for use in uses:
        word, _, rest = use.partition(" ")
        if word == "call" and new["kind"] in _CLASSES and "takes" in old and "takes" not in new:
            found.append("what its constructor takes cannot be told any more")
        elif word == "call":
            found += _called(old.get("takes", ()), new.get("takes", ()), Shape.parse(rest))
            found += _made(old, new)
        elif word == "copy":
            found += _left_behind(old, new)
        elif word == "read":
            found += (
                _passed_on(old.get("takes", ()), new.get("takes", ()))
                if "fields" not in new and "bases" not in new
                else []
            )
        elif word == "set" and old.get("accessors") != new.get("accessors"):
            found.append("its accessors")
        if word in {"base", "all"}:
            found += [f"its {key}" for key in ("bases", "slots", "abstract") if old.get(key) != new.get(key)]
        if word in {"base", "all"} and (old.get("takes"), old.get("fields")) != (new.get("takes"), new.get("fields")):
            found += [_fields(old, new)] if "fields" in new else _passed_on(old.get("takes", ()), new.get("takes", ()))
        if word == "all" and (gone := [m for m in old.get("members", ()) if m not in new.get("members", ())]):
            found.append(f"member {', '.join(gone)} gone")
        if word == "set" and old.get("slots") != new.get("slots"):
            found.append("its slots")
    return list(dict.fromkeys(found))


def _called_kind(contract: Data) -> str:
    """The kind; of methods whether an object or its class is bound first does not count: what arguments reach says it."""
    kind = str(contract["kind"])
    for word in ("static method", "class method"):
        kind = kind.replace(f"generator {word}", "generator").replace(word, "function")
    return kind


def _marks(contract: Data) -> list[str]:
    """Digests of decorators, those aside that the kind tells."""
    told = {_digest("staticmethod"), _digest("classmethod")}
    return [mark for mark in contract.get("decorators", ()) if mark not in told]


def _elsewhere(old: Data, new: Data) -> list[str]:
    """Another definition than before; one that only moved is the same."""
    if old.get("origin") == new.get("origin") or old.get("body") == new.get("body"):
        return []
    return [f"it comes from {new.get('origin')}, was {old.get('origin')}"]


def _made(old: Data, new: Data) -> list[str]:
    """Another constructor than before, or none any more; where the old one is not known, one that took nothing."""
    (before, was), (now, text) = old.get("made", ("", "")), new.get("made", ("", ""))
    if before == now or was == text or not {old["kind"], new["kind"]} <= _CLASSES or (not before and old.get("takes")):
        return []
    return [f"it is made by {now or 'no constructor'}, was {before or 'none'}"]


def _fields(old: Data, new: Data) -> str:
    before, now = old.get("fields", []), new.get("fields", [])
    words = [f"new field {n}" for n in now if n not in before] + [f"field {n} gone" for n in before if n not in now]
    return ", ".join(words) or "what its constructor takes"


def _left_behind(old: Data, new: Data) -> list[str]:
    """The fields that a copy made field by field does not take along."""
    if "fields" not in old or "fields" not in new:
        return []
    known = {p.name for p in _split(old.get("takes", ()))[0]}
    return [f"new field {p.name}" for p in _split(new.get("takes", ()))[0] if p.name not in known]


def members(old: Data, new: Data) -> list[str]:
    """What changed for code that names every member of an enumeration."""
    before, now = old.get("members", ()), new.get("members", ())
    return [f"new member {name}" for name in now if name not in before] if before and now else []


def _called(old: Sequence[str], new: Sequence[str], shape: Shape) -> list[str]:
    """What changed for a call that still binds."""
    before, after = dict(zip(*_split(old), strict=True)), dict(zip(*_split(new), strict=True))
    found: list[str] = []
    there, here = meets(shape, list(before)), meets(shape, list(after))
    for argument, name in there.items():
        if name != "**?" and here.get(argument, name) != name:
            where = f"argument {int(argument) + 1}" if argument.isdigit() else f"argument {argument}"
            found.append(f"{where} reaches {here[argument]}, was {name}")
    given = set(there.values())
    olds = {p.name: d for p, d in before.items()}
    for parameter, default in after.items():
        if (
            parameter.name not in given
            and parameter.name in olds
            and default
            and olds[parameter.name]
            and default != olds[parameter.name]
        ):
            found.append(f"the default of {parameter.name}")
    if shape.star or shape.double_star:
        found += _passed_on(old, new)
    why = misfit(shape, list(after))
    if why and not misfit(
        shape, list(before)
    ):  # where it is no error: nobody knows what decorators, or a subclass, make of it
        found.append(f"the call does not fit: {why}")
    return found


def _passed_on(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """What changed for somebody whose arguments are not known."""
    before, now = [_read(w)[0] for w in old], [_read(w)[0] for w in new]
    names = {p.name for p in now}
    found = [f"parameter {p.name} gone" for p in before if p.name not in names]
    known = {p.name for p in before}
    found += [f"new required parameter {p.name}" for p in now if p.name not in known and p.required]
    kept = [p for p in now if p.name in known]
    if [p.name for p in before if p.name in names and p.kind in {"position", "any"}] != [
        p.name for p in kept if p.kind in {"position", "any"}
    ]:
        found.append("the order of its parameters")
    kinds = {p.name: (p.kind, p.required) for p in before}
    found += [f"the kind of {p.name}" for p in kept if kinds[p.name][0] != p.kind and p.kind != "any"]
    found += [f"{p.name} is required now" for p in kept if p.required and not kinds[p.name][1]]
    return found


def _split(written: Sequence[str]) -> tuple[list[CallParameter], list[str]]:
    pairs = [_read(w) for w in written]
    return [p for p, _ in pairs], [d for _, d in pairs]


def fits(thing: Found | Several, shape: Shape, classes: Classes) -> tuple[bool | None, str]:
    """Whether a call binds: None when that cannot be told; and why not."""
    if isinstance(thing, Several):
        answers = [fits(t, shape, classes) for t in thing.things]
        if all(known is False for known, _ in answers):
            return answers[0]
        return (None if any(known is None for known, _ in answers) else True), ""
    if isinstance(thing, Module):
        return False, "it is a module"
    if isinstance(thing, Value) or (isinstance(thing, Function) and thing.how == "property"):
        return None, ""
    if isinstance(thing, Function) and thing.bound and not _takes_receiver(thing.node):
        return False, "it has no parameter for the object that it is called on"
    takes = parameters(thing) if isinstance(thing, Function) else _constructor(thing, classes)
    owner = thing.owner if isinstance(thing, Function) else thing
    if takes is None or (owner is not None and classes.view(owner).structural):
        return None, ""
    problem = misfit(shape, takes)
    return problem is None, problem or ""


def _takes_receiver(node: FunctionNode) -> bool:
    return bool(node.args.posonlyargs or node.args.args or node.args.vararg)


def _constructor(cls: Class, classes: Classes) -> tuple[CallParameter, ...] | None:
    made = classes.constructor(cls)
    return None if made is None else parameters(made)
