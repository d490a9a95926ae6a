"""What keys and types cannot say: names, paths, placeholders. Run on each model as soon as it is built."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from afd_patchkit import model
from afd_patchkit.findings.finding import Position
from afd_patchkit.manifest import rules, syntax
from afd_patchkit.manifest.build import Builder
from afd_patchkit.manifest.nodes import Mapping, Node, Sequence
from afd_patchkit.model import Code, Delta

UPSTREAM = "__upstream__"
_DUNDER = re.compile(r"\b__[A-Za-z0-9_]+?__\b")
_NUMBERED = re.compile(r" \([0-9]+/[0-9]+\)")
_PIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_WITH = {
    "replace": "statements",
    "expr": "expression",
    "clause": "clause",
    "parameter": "parameter",
    "decorator": "expression",
    "member": "member",
    "field": "member",
}
"""What `with` holds, by operation."""


def on_code(builder: Builder, code: Code, what: str) -> None:
    """Report Python that does not parse."""
    for problem in syntax.problems(code, what):
        builder.report(problem.code, problem.message, problem.manifest or code.position, problem.help, problem.details)


def check(builder: Builder, made: model.Model, node: Mapping) -> None:
    """Check the values of one model."""
    own = _CHECKS.get(type(made))
    if own is not None:
        own(builder, made, node)


def _at(node: Mapping, key: str) -> Position:
    value = node.get(key)
    return value.position if value is not None else node.position


def is_name(text: str) -> bool:
    """Whether Python takes `text` as a name."""
    return text.isidentifier() and not keyword.iskeyword(text)


def _name(builder: Builder, text: str | None, what: str, where: Position) -> None:
    if text is not None and not is_name(text):
        why = "a keyword" if keyword.iskeyword(text) else "no Python name"
        builder.report("PK018", f"{what} `{text}` is {why}", where, "Use letters, digits and underscores.")


def _names(builder: Builder, made: Any, node: Mapping, keys: tuple[str, ...], what: str) -> None:
    for key in keys:
        _name(builder, getattr(made, key), what, _at(node, key))


# ---- deltas -----------------------------------------------------------------------------------------------------------


def _delta(builder: Builder, delta: Delta, node: Mapping) -> None:
    _delta_name(builder, delta.name, _at(node, "name"))
    operations = [op for op in model.OPERATIONS if getattr(delta, op) is not None]
    if len(operations) != 1:
        return  # reported by the key rules
    operation = operations[0]
    if isinstance(delta.with_, Code):
        on_code(builder, delta.with_, _WITH.get(operation, "statements"))
    for body, key in ((delta.with_, "with"), (delta.insert, "insert")):
        if isinstance(body, model.TakeBody) and operation not in ("insert", "replace"):
            builder.report("PK011", f"`take` gives statements, which `{operation}` cannot use", _at(node, key))
    _placeholders(builder, delta, node, operation)
    rebind = node.get("rebind")
    if delta.rebind and isinstance(rebind, Mapping):
        for name in delta.rebind:
            _name(builder, name, "the rebound name", rebind.keys.get(name, node.position))


def _delta_name(builder: Builder, name: str, where: Position) -> None:
    wrong = None
    if name != name.strip():
        wrong = "begins or ends with a blank"
    elif "\n" in name or "\t" in name:
        wrong = "is not one line"
    elif "#" in name:
        wrong = "holds a `#`"
    elif _NUMBERED.search(name):
        wrong = "looks like the number of a fence, `(1/2)`"
    if wrong:
        help_ = "The name stands in the fences of the generated code: `# ### PATCH START: <name>`."
        builder.report("PK010", f"the delta name {name!r} {wrong}", where, help_)


def _placeholders(builder: Builder, delta: Delta, node: Mapping, operation: str) -> None:
    code = delta.with_ if isinstance(delta.with_, Code) else delta.insert if isinstance(delta.insert, Code) else None
    used = set(_DUNDER.findall(code.text)) if code else set()
    replaces = operation in ("replace", "expr", "clause", "member", "field")
    if UPSTREAM in used and not replaces and code:
        message = f"`{UPSTREAM}` stands for replaced text, and `{operation}` replaces none"
        builder.report("PK011", message, _place_of(code, UPSTREAM))
    given = node.get("parts")
    parts = given.keys if isinstance(given, Mapping) and operation == "replace" else {}
    for name, where in parts.items():
        _name(builder, name, "the part", where)
        if name == "upstream":
            builder.report("PK018", "a part cannot be called `upstream`: that is the whole", where)
        elif code and f"__{name}__" not in used:
            builder.report("PK011", f"part `{name}` is not used", where, f"Write `__{name}__` in `with`, or drop it.")
    known = [UPSTREAM, *(f"__{name}__" for name in parts)]
    for name in sorted(used.difference(known)):
        near = get_close_matches(name, known, n=1, cutoff=0.75)
        if near and replaces and code:
            builder.report(
                "PK011", f"`{name}` is no placeholder here", _place_of(code, name), f"Did you mean `{near[0]}`?"
            )
    if delta.deltas and delta.with_ is not None and not used.intersection(known):
        message = "`deltas` change what `with` keeps of upstream, and it keeps nothing"
        builder.report("PK011", message, _at(node, "deltas"), f"Write `{UPSTREAM}` in `with`, or drop `deltas`.")


def _place_of(code: Code, word: str) -> Position:
    before = code.text[: code.text.index(word)]
    return code.at(before.count("\n") + 1, len(before) - before.rfind("\n"))


def _call(builder: Builder, change: model.CallChange, node: Mapping) -> None:
    given = node.get("set")
    for key in (*change.set, *change.drop):
        where = given.keys.get(str(key)) if isinstance(given, Mapping) else None
        if isinstance(key, int) and key < 0:
            builder.report("PK004", "positions count from 0", where or _at(node, "drop"))
        elif isinstance(key, str):
            _name(builder, key, "the argument", where or _at(node, "drop"))
    for key in change.drop:
        if key in change.set:
            builder.report("PK011", f"argument `{key}` is both set and dropped", _at(node, "drop"))


def _parameter(builder: Builder, change: model.ParameterChange, node: Mapping) -> None:
    _names(builder, change, node, ("replace", "remove", "before", "after"), "the parameter")


def _member(builder: Builder, change: model.MemberChange, node: Mapping) -> None:
    _names(builder, change, node, ("replace", "remove", "before", "after"), "the member")


def _take(builder: Builder, take: model.Take, node: Mapping) -> None:
    rename = node.get("rename")
    for name in take.rename:
        where = rename.keys.get(name) if isinstance(rename, Mapping) else None
        _name(builder, name, "the renamed name", where or node.position)


# ---- entries ----------------------------------------------------------------------------------------------------------


def nested(deltas: tuple[Delta, ...]) -> Iterator[Delta]:
    """All deltas of an entry: also those inside wrapping ones and inside taken text."""
    for delta in deltas:
        yield delta
        yield from nested(delta.deltas)
        for body in (delta.with_, delta.insert):
            if isinstance(body, model.TakeBody):
                yield from nested(body.take.deltas)


def _entry(builder: Builder, entry: model.Entry, node: Mapping) -> None:
    _name(builder, entry.name, "the name", _at(node, "name"))
    for name in entry.late if isinstance(entry.late, tuple) else ():
        _name(builder, name, "the late name", _at(node, "late"))
    seen: dict[str, Position] = {}
    for delta in nested(entry.deltas):
        if delta.name in seen:
            help_ = f"The other one is at {seen[delta.name]}; their fences could not be told apart."
            builder.report("PK010", f"two deltas of the entry are called {delta.name!r}", delta.where, help_)
        seen.setdefault(delta.name, delta.where)
        operation = next((op for op in model.OPERATIONS if getattr(delta, op) is not None), None)
        if entry.kind == "delegate" and operation and operation not in rules.DELEGATE_OPERATIONS:
            help_ = f"It has a body of its own; its deltas do only {', '.join(sorted(rules.DELEGATE_OPERATIONS))}."
            builder.report("PK013", f"`{operation}` cannot change a delegate", delta.where, help_)
    if (
        entry.kind == "backport"
        and not _items(node, "remove_when")
        and not _items(builder.document.root, "remove_when")
    ):
        help_ = (
            "Say by a probe when the target has it, such as `defines: acme.engine:Overlap`; prose may stand beside it."
        )
        builder.report("PK013", "a backport needs `remove_when`", entry.where, help_)
    if entry.part is not None:
        parts = entry.part.split("/")
        if "\\" in entry.part or not entry.part.endswith(".py") or any(p in ("", ".", "..") for p in parts):
            help_ = "Name a .py file below the manifest's folder, such as parts/handoff.py."
            builder.report("PK012", f"`part: {entry.part}` is no such path", _at(node, "part"), help_)


def _items(node: Node | None, key: str) -> bool:
    """Whether the list `key` of a mapping has items, be they right or wrong."""
    value = node.get(key) if isinstance(node, Mapping) else None
    return isinstance(value, Sequence) and bool(value.items)


def _class(builder: Builder, group: model.ClassGroup, node: Mapping) -> None:
    _name(builder, group.name, "the class name", _at(node, "name"))
    doubles(builder, ((entry.generated_name, entry.where) for entry in group.members), f"class {group.name}")


def doubles(builder: Builder, names: Iterator[tuple[str | None, Position]], where: str) -> None:
    """Report names that are given twice in `where`."""
    seen: dict[str, Position] = {}
    for name, position in names:
        if name is not None and name in seen:
            help_ = f"The other one is at {seen[name]}. Give one of them another `name`."
            builder.report("PK015", f"{where} holds `{name}` twice", position, help_)
        if name is not None:
            seen.setdefault(name, position)


def _manifest(builder: Builder, manifest: model.Manifest, node: Mapping) -> None:
    problem = module_problem(manifest.module)
    if problem:
        help_ = "Write a path below the generated package, such as acme_backport/runner.py."
        builder.report("PK014", f"`module: {manifest.module}` {problem}", _at(node, "module"), help_)
    for entry, group in manifest.all_entries():
        if entry.via == "super" and group is None:
            help_ = "Put the entry into a `class:` group, or use `via: original`."
            builder.report("PK013", "`via: super` needs a class", entry.where, help_)
        if entry.kind == "owned" and group is not None:
            help_ = "Write the whole class in the part, or the method as a function that a delegate calls."
            builder.report("PK013", "an owned file cannot be the member of a class", entry.where, help_)
    if not builder.broken:
        _dependencies(builder, manifest)


def _dependencies(builder: Builder, manifest: model.Manifest) -> None:
    known = set()
    for entry, group in manifest.all_entries():
        name = entry.generated_name or entry.part or ""
        known |= {f"{group.name}.{name}", group.name} if group else {name}
    for entry, _ in manifest.all_entries():
        for name in entry.depends_on:
            if "::" not in name and name not in known:
                near = get_close_matches(name, known, n=1)
                help_ = f"Did you mean `{near[0]}`?" if near else "Entries of other modules are `module.py::name`."
                builder.report("PK019", f"`depends_on`: the manifest has no entry `{name}`", entry.where, help_)


def module_problem(path: str) -> str | None:
    """Why `path` cannot be the path of a generated module; None when it can."""
    if "\\" in path or path.startswith("/") or re.match("[A-Za-z]:", path):
        return "is not a relative POSIX path"
    if not path.endswith(".py"):
        return "does not end with .py"
    for part in path.removesuffix(".py").split("/"):
        if part in ("", ".", ".."):
            return "has a part that is empty, `.` or `..`"
        if not part.isascii() or not is_name(part):
            return f"has the part `{part}`, which cannot be imported"
        if part in ("__init__", "__main__", "__pycache__"):
            return f"names `{part}`, which Python gives a meaning of its own"
    return None


# ---- pins -------------------------------------------------------------------------------------------------------------


def _pin(builder: Builder, pin: model.Pin, node: Mapping) -> None:
    if not _DISTRIBUTION.fullmatch(pin.distribution):
        message = f"`{pin.distribution}` is no name of a distribution"
        builder.report("PK016", message, _at(node, "distribution"), "Use the name on the package index.")
    try:
        version = str(Version(pin.version))
    except InvalidVersion:
        message = f"`{pin.version}` is no version by PEP 440"
        builder.report("PK016", message, _at(node, "version"), "A pin is one exact version, without operators.")
    else:
        if version != pin.version:
            builder.report(
                "PK016", f"version `{pin.version}` is not in normal form", _at(node, "version"), f'Write "{version}".'
            )
    for name in pin.packages:
        _name(builder, name, "the package", _at(node, "packages"))


def _pins(builder: Builder, pins: model.Pins, node: Mapping) -> None:
    table = node.get("pins")
    where = table.keys if isinstance(table, Mapping) else {}
    for name in pins.pins:
        if not _PIN_NAME.fullmatch(name):
            help_ = "Use letters, digits, `.`, `_` and `-`."
            builder.report("PK018", f"`{name}` is no name for a pin", where.get(name, node.position), help_)
    targets = Counter(canonicalize_name(pin.distribution) for pin in pins.pins.values() if pin.role == "target")
    seen = set()
    for name, pin in pins.pins.items():
        distribution = canonicalize_name(pin.distribution)
        if pin.role == "target" and targets[distribution] > 1:
            if distribution in seen:
                help_ = "The generated code runs on one of them; give the other `role: donor`."
                builder.report(
                    "PK016", f"a second target pin of {pin.distribution}", where.get(name, node.position), help_
                )
            seen.add(distribution)


_CHECKS: dict[type[model.Model], Callable[[Builder, Any, Mapping], None]] = {
    Delta: _delta,
    model.CallChange: _call,
    model.ParameterChange: _parameter,
    model.MemberChange: _member,
    model.Take: _take,
    model.Entry: _entry,
    model.ClassGroup: _class,
    model.Manifest: _manifest,
    model.Pin: _pin,
    model.Pins: _pins,
}
