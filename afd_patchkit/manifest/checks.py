"""What keys and types cannot say: what the values of one model say of each other."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from packaging.utils import canonicalize_name

from afd_patchkit import model
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.nearest import did_you_mean, nearest
from afd_patchkit.manifest import syntax
from afd_patchkit.manifest.nested import nested
from afd_patchkit.manifest.nodes import Mapping, Node, Sequence
from afd_patchkit.manifest.values import Table
from afd_patchkit.model import Code, Delta
from afd_patchkit.operations import OPERATIONS

UPSTREAM = "__upstream__"
_DUNDER = re.compile(r"\b__[A-Za-z0-9_]+?__\b")


def problems(made: model.Model, table: Table, root: Node | None, *, broken: bool) -> Iterator[Finding]:
    """What is wrong with one model.

    Args:
        made: the model; what was refused is missing from it.
        table: what it was made of.
        root: the document that it stands in.
        broken: whether something is missing from the document.
    """
    own = _CHECKS.get(type(made))
    if own is not None:
        yield from own(made, table)
    if isinstance(made, model.Entry) and made.kind == "backport" and not _items(table.node) and not _items(root):
        help_ = (
            "Say by a probe when the target has it, such as `defines: acme.engine:Overlap`; prose may stand beside it."
        )
        yield finding("PK013", "a backport needs `remove_when`", manifest=made.where, help=help_)
    said = [*table.written, *(root.keys if isinstance(root, Mapping) else ())]
    if isinstance(made, model.Entry) and "reason" not in said:
        help_ = "It says: why the copy is needed; the manifest can say it for all entries."
        yield finding("PK009", "entry needs `reason`", manifest=made.where, help=help_)
    if isinstance(made, model.Manifest) and not broken:
        yield from _dependencies(made)
        yield from _installs(made)


# ---- deltas -----------------------------------------------------------------------------------------------------------


def _delta(delta: Delta, table: Table) -> Iterator[Finding]:
    if sum(getattr(delta, op) is not None for op in OPERATIONS) != 1:
        return  # reported by the key rules
    if isinstance(delta.with_, Code):
        yield from syntax.problems(delta.with_, delta.does.new)
    for body, key in ((delta.with_, "with"), (delta.insert, "insert")):
        if isinstance(body, model.TakeBody) and not delta.does.takes:
            message = f"`take` gives statements, which `{delta.operation}` cannot use"
            yield finding("PK011", message, manifest=table.at(key))
    yield from _placeholders(delta, table)


def _placeholders(delta: Delta, table: Table) -> Iterator[Finding]:
    code = delta.with_ if isinstance(delta.with_, Code) else delta.insert if isinstance(delta.insert, Code) else None
    used = set(_DUNDER.findall(code.text)) if code else set()
    if UPSTREAM in used and not delta.does.keeps and code:
        message = f"`{UPSTREAM}` stands for replaced text, and `{delta.operation}` replaces none"
        yield finding("PK011", message, manifest=_place_of(code, UPSTREAM))
    given = table.node.get("parts")
    parts = given.keys if isinstance(given, Mapping) and "parts" in delta.does.keys.companions else {}
    for name, where in parts.items():
        if name == "upstream":
            yield finding("PK018", "a part cannot be called `upstream`: that is the whole", manifest=where)
        elif code and f"__{name}__" not in used:
            help_ = f"Write `__{name}__` in `with`, or drop it."
            yield finding("PK011", f"part `{name}` is not used", manifest=where, help=help_)
    known = [UPSTREAM, *(f"__{name}__" for name in parts)]
    for name in sorted(used.difference(known)):
        near = nearest(name, known, likeness=0.75)
        if near and delta.does.keeps and code:
            help_ = f"Did you mean `{near[0]}`?"
            yield finding("PK011", f"`{name}` is no placeholder here", manifest=_place_of(code, name), help=help_)
    if delta.deltas and delta.with_ is not None and not used.intersection(known):
        message = "`deltas` change what `with` keeps of upstream, and it keeps nothing"
        help_ = f"Write `{UPSTREAM}` in `with`, or drop `deltas`."
        yield finding("PK011", message, manifest=table.at("deltas"), help=help_)


def _place_of(code: Code, word: str) -> Position:
    before = code.text[: code.text.index(word)]
    return code.at(before.count("\n") + 1, len(before) - before.rfind("\n"))


def _call(change: model.CallChange, table: Table) -> Iterator[Finding]:
    for key in change.drop:
        if key in change.set:
            yield finding("PK011", f"argument `{key}` is both set and dropped", manifest=table.at("drop"))
    for old, new in change.rename.items():
        for key, what in ((old, "set"), (new, "set"), (old, "dropped")):
            if key in (change.drop if what == "dropped" else change.set):
                message = f"argument `{key}` is both renamed and {what}"
                yield finding("PK011", message, manifest=table.at("rename"), help="Say what it becomes in one way.")


# ---- entries ----------------------------------------------------------------------------------------------------------


def _entry(entry: model.Entry, table: Table) -> Iterator[Finding]:
    seen: dict[str, Position] = {}
    for delta in nested(entry.deltas):
        if delta.name in seen:
            help_ = f"The other one is at {seen[delta.name]}; their fences could not be told apart."
            message = f"two deltas of the entry are called {delta.name!r}"
            yield finding("PK010", message, manifest=delta.where, help=help_)
        seen.setdefault(delta.name, delta.where)
        operation = next((op for op in OPERATIONS if getattr(delta, op) is not None), None)
        if entry.kind == "delegate" and operation and not OPERATIONS[operation].header:
            known = sorted(name for name, does in OPERATIONS.items() if does.header)
            help_ = f"It has a body of its own; its deltas do only {', '.join(known)}."
            yield finding("PK013", f"`{operation}` cannot change a delegate", manifest=delta.where, help=help_)


def _items(node: Node | None) -> bool:
    """Whether `remove_when` of a mapping has items, be they right or wrong."""
    value = node.get("remove_when") if isinstance(node, Mapping) else None
    return isinstance(value, Sequence) and bool(value.items)


def _class(group: model.ClassGroup, table: Table) -> Iterator[Finding]:
    seen: dict[str, Position] = {}
    if group.fields is not None and list(syntax.problems(group.fields, "member")):
        return  # said where it was read
    for node in ast.parse(group.fields.text).body if group.fields is not None else ():
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        assert group.fields is not None
        if not targets or not all(isinstance(target, ast.Name) for target in targets):
            help_ = "Write `name: type = value` or `name = value`; methods are members, or stand in a part."
            at = group.fields.at(node.lineno, node.col_offset + 1)
            yield finding("PK020", "not an assignment to a name", manifest=at, help=help_)
            return
    if group.fields is not None:
        seen = dict.fromkeys(group.field_names, group.fields.position)
    for entry in group.members:
        name = entry.generated_name
        if name is not None and name in seen:
            help_ = f"The other one is at {seen[name]}. Give one of them another `name`."
            yield finding("PK015", f"class {group.name} holds `{name}` twice", manifest=entry.where, help=help_)
        if name is not None:
            seen.setdefault(name, entry.where)


def _manifest(manifest: model.Manifest, table: Table) -> Iterator[Finding]:
    for entry, group in manifest.all_entries():
        if entry.via == "super" and group is None:
            help_ = "Put the entry into a `class:` group, or use `via: original`."
            yield finding("PK013", "`via: super` needs a class", manifest=entry.where, help=help_)
        if entry.kind == "owned" and group is not None:
            help_ = "Write the whole class in the part, or the method as a function that a delegate calls."
            yield finding("PK013", "an owned file cannot be the member of a class", manifest=entry.where, help=help_)


def _installs(manifest: model.Manifest) -> Iterator[Finding]:
    for install in manifest.installs:
        symbol = install.symbol.text.strip()
        if install.with_ is None and len(found := manifest.standing_for(symbol)) != 1:
            what = "no entry" if not found else "several entries"
            help_ = "Say by `with` what replaces it: a name of the generated module, or Class.member."
            help_ += f" These are {', '.join(found)}." if found else ""
            yield finding("PK032", f"`installs`: {what} of {symbol}", manifest=install.symbol.position, help=help_)
        if not isinstance(install.aliases, tuple):
            continue
        if "." in symbol.rpartition(":")[2] and install.aliases:
            help_ = "Leave `aliases` out, or say `[]`: of a member it is the class that other modules hold."
            yield finding("PK032", f"`aliases` of a member: {symbol}", manifest=install.where, help=help_)
        for module in sorted({*install.aliases} & {*install.native}):
            yield finding("PK032", f"{module} stands in `aliases` and in `native`", manifest=install.where)


def _dependencies(manifest: model.Manifest) -> Iterator[Finding]:
    known = set()
    for entry, group in ((each, group) for one, group in manifest.all_entries() for each in one.each()):
        name = entry.generated_name or entry.part or ""
        known |= {f"{group.name}.{name}", group.name} if group else {name}
    for entry, _ in manifest.all_entries():
        for name in entry.depends_on:
            if "::" not in name and name not in known:
                help_ = did_you_mean(name, known, "Entries of other modules are `module.py::name`.")
                message = f"`depends_on`: the manifest has no entry `{name}`"
                yield finding("PK019", message, manifest=entry.where, help=help_)


# ---- pins -------------------------------------------------------------------------------------------------------------


def _pins(pins: model.Pins, table: Table) -> Iterator[Finding]:
    nodes = table.node.get("pins")
    where = nodes.keys if isinstance(nodes, Mapping) else {}
    targets = Counter(canonicalize_name(pin.distribution) for pin in pins.pins.values() if pin.role == "target")
    seen = set()
    for name, pin in pins.pins.items():
        distribution = canonicalize_name(pin.distribution)
        if pin.role == "target" and targets[distribution] > 1:
            if distribution in seen:
                help_ = "The generated code runs on one of them; give the other `role: donor`."
                yield finding(
                    "PK016", f"a second target pin of {pin.distribution}", manifest=where.get(name), help=help_
                )
            seen.add(distribution)


_CHECKS: dict[type[model.Model], Callable[[Any, Table], Iterator[Finding]]] = {
    Delta: _delta,
    model.CallChange: _call,
    model.Entry: _entry,
    model.ClassGroup: _class,
    model.Manifest: _manifest,
    model.Pins: _pins,
}
