"""Findings about references: what is not there, calls that do not fit, contracts that changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from afd_patchkit.fence import delta_of, parsed
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.report import ReferenceCounts
from afd_patchkit.manifest.nested import nested
from afd_patchkit.model import ClassGroup, Code, Entry, Manifest
from afd_patchkit.references.contract import fits
from afd_patchkit.references.things import Class, Function, Missing, Module, Outside, Several, Unknown, Value
from afd_patchkit.references.world import Excuse, Leaning, Recorded, World

FOUND = (Module, Class, Function, Value, Several)


@dataclass
class Judgement:
    """What is to be said of the references of one module.

    Attributes:
        findings: errors, by the entry that causes them; "" for the module's own imports.
        recorded: by entry, what the lock keeps.
        counts: how much could be told.
        excused: names that upstream lacks, and how other code of ours gives them.
    """

    findings: dict[str, list[Finding]] = field(default_factory=dict)
    recorded: dict[str, Recorded] = field(default_factory=dict)
    counts: ReferenceCounts = field(default_factory=ReferenceCounts)
    excused: dict[str, Excuse] = field(default_factory=dict)

    def say(self, ref: str, item: Finding) -> None:
        """Take a finding about `ref`, unless the same was taken before."""
        known = self.findings.setdefault(ref, [])
        if item not in known:
            known.append(item)


def judge(world: World, places: Places) -> Judgement:
    """Judge the references of one module of ours.

    Args:
        world: the module, all others and the trees.
        places: where its code stands in the manifest.
    """
    out = Judgement()
    for _, item in missing_imports(world, places):
        out.say("", item)
    for leaning in world.leanings():
        _judge_one(world, leaning, places, out)
    return out


def missing_imports(world: World, places: Places) -> Iterator[tuple[str, Finding]]:
    """Imports of the manifest and its parts that would fail, each with the name that it binds."""
    for name, attribute, bound, thing in world.imports():
        if isinstance(thing, Missing):
            statement = f"import {name}" if attribute is None else f"from {name} import {attribute}"
            yield bound, _missing_import(statement, thing, places.of_import(name, attribute), world)


def _judge_one(world: World, leaning: Leaning, places: Places, out: Judgement) -> None:
    reference = leaning.reference
    thing = reference.thing
    if isinstance(thing, Outside):
        out.counts.outside += 1
    elif isinstance(thing, Unknown):
        out.counts.unknown += 1
    elif isinstance(thing, Missing):
        excuse = world.excused(reference) if reference.use != "set" else None
        if excuse is None:
            out.say(leaning.piece.ref, _missing(leaning, thing, places))
        elif excuse != "upstream":
            out.excused[thing.name] = excuse
    elif isinstance(thing, FOUND):
        out.counts.resolved += reference.use != "copy"  # the call itself is another one
        if reference.shape is not None:
            known, why = fits(thing, reference.shape, world.classes)
            if known is False and not reference.doubtful:
                out.say(leaning.piece.ref, _misfit(leaning, why, places, world))
            out.counts.bound += known is True
        made = world.contract(thing) if leaning.ours and world.follows_upstream(thing) else None
        if made is not None:
            out.recorded.setdefault(leaning.piece.ref, Recorded()).add(reference, made)


# ---- wording ----------------------------------------------------------------------------------------------------


def _missing_import(statement: str, thing: Missing, at: Position | None, world: World) -> Finding:
    ours = world.trees.is_ours(thing.where)
    what = (
        f"has no module {thing.name}"
        if statement.startswith("import ") or "." in thing.name
        else f"has no `{thing.name}`"
    )
    return finding(
        "PK330",
        f"`{statement}`: {thing.where} {what}",
        manifest=at,
        details=tuple(f"near: {n}" for n in thing.near),
        help="Let a manifest generate it, or correct the import." if ours else "Correct the import.",
    )


def _missing(leaning: Leaning, thing: Missing, places: Places) -> Finding:
    written = _written(leaning.reference.node)
    delta, at = places.of(leaning)
    return finding(
        "PK330",
        f"`{written}`: {thing.where} has no `{thing.name}`",
        entry=leaning.piece.ref,
        delta=delta,
        manifest=at,
        details=tuple(f"near: {n}" for n in thing.near),
        help="Correct the name.",
    )


def _misfit(leaning: Leaning, why: str, places: Places, world: World) -> Finding:
    reference = leaning.reference
    delta, at = places.of(leaning)
    made = world.contract(reference.thing)
    thing = reference.thing
    reached = thing.reference if isinstance(thing, FOUND) else reference.key
    message = f"the call of `{_written(reference.node)}` does not fit: {why}"
    if not leaning.ours:
        message = f"upstream's text calls `{_written(reference.node)}`, which is {reached} of this project, and that does not fit: {why}"
    return finding(
        "PK331",
        message,
        entry=leaning.piece.ref,
        delta=delta,
        manifest=at,
        details=(f"{reached}: {made.text}",) if made is not None else (),
        help="Change the call to the signature."
        if leaning.ours
        else "Give the parameter a default, or change the call by a delta.",
    )


def _written(node: ast.AST) -> str:
    """An attribute chain as it is written; the start of anything else."""
    try:
        text = ast.unparse(node)
    except RecursionError:
        return "..."
    return text if len(text) < 60 else text[:57] + "..."


# ---- an upgrade -------------------------------------------------------------------------------------------------


def gone(world: World, leaning: Leaning, places: Places) -> Finding | None:
    """What keeps a reference from working on the new upstream: it is gone, or does not fit any more."""
    reference, thing = leaning.reference, leaning.reference.thing
    if isinstance(thing, Missing) and (reference.use == "set" or not world.excused(reference)):
        return _missing(leaning, thing, places)
    if isinstance(thing, FOUND) and reference.shape is not None:
        known, why = fits(thing, reference.shape, world.classes)
        if known is False and not reference.doubtful:
            return _misfit(leaning, why, places, world)
    if (isinstance(thing, (Function, Module)) and reference.use in {"base", "type"}) or (
        isinstance(thing, Value) and reference.use == "base" and _is_plain(thing)
    ):
        delta, at = places.of(leaning)
        return finding(
            "PK331",
            f"`{_written(reference.node)}` is used as a class, but {thing.reference} is none",
            entry=leaning.piece.ref,
            delta=delta,
            manifest=at,
            help="Name the class that replaced it.",
        )
    return None


def _is_plain(value: Value) -> bool:
    """Whether a value can be no class: it is written as a number, a text, a list."""
    return bool(value.values) and all(
        isinstance(v, (ast.Constant, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.JoinedStr)) for v, _ in value.values
    )


# ---- places -----------------------------------------------------------------------------------------------------


class Places:
    """Where the code of one manifest stands.

    Args:
        manifest: the manifest.
        parts: texts of its owned parts by the path that the user would type.
        marker: what the project's fences begin with.
    """

    def __init__(self, manifest: Manifest, parts: Mapping[str, str], marker: str) -> None:
        self.manifest, self.parts, self.marker = manifest, parts, marker
        self.entries: Mapping[str, Entry] = manifest.by_ref()
        self.groups = {manifest.ref(entry, group): group for entry, group in manifest.all_entries() if group}

    def of_entry(self, ref: str) -> Position | None:
        """Where an entry begins; None for one that is not of this manifest."""
        entry = self.entries.get(ref)
        return entry.where if entry is not None else None

    def of_import(self, module: str, attribute: str | None) -> Position | None:
        """The import of a manifest or a part that names a thing."""
        words = re.compile(rf"\b{re.escape(module)}\b.*" + (rf"\b{re.escape(attribute)}\b" if attribute else ""), re.S)
        for code in self.manifest.imports:
            if words.search(code.text):
                return code.position
        for path, text in self.parts.items():
            for number, line in enumerate(text.split("\n"), 1):
                if re.search(rf"\b(from|import)\s+{re.escape(module)}\b", line):
                    return Position(path, number, line.index(module) + 1)
        return self.manifest.where

    def of(self, leaning: Leaning) -> tuple[str | None, Position | None]:
        """The delta and the place of a reference."""
        written = _written(leaning.reference.node).partition("(")[0]
        return self.at(leaning.piece.ref, leaning.text.text.split("\n"), leaning.reference.line, written)

    def at(self, ref: str, lines: Sequence[str], number: int, written: str) -> tuple[str | None, Position | None]:
        """The delta and the place in the manifest of something in a generated module.

        Args:
            ref: the entry, `module.py::name`.
            lines: the lines of the module.
            number: the line that it stands in, counted from 1.
            written: how it is written there.
        """
        entry = self.entries.get(ref)
        if entry is None:
            return None, self.manifest.where
        line = lines[number - 1]
        if entry.kind == "owned":
            return None, self._in_part(line, entry.part or "") or entry.where
        if (group := self.groups.get(ref)) is not None and (said := _in_head(group, line, written)) is not None:
            return None, said
        fence = _fence(lines[:number], self.marker)
        deltas = [d for d in nested(entry.deltas) if fence is None or d.name == fence]
        for delta in deltas:
            for code in codes(delta):
                if (at := _search(code, written)) is not None:
                    return delta.name, at
        for code in (entry.body,) if entry.body is not None else ():
            if (at := _search(code, written)) is not None:
                return None, at
        for delta in nested(entry.deltas):
            if delta.name == fence:
                return delta.name, delta.where
        return None, entry.where

    def _in_part(self, line: str, part: str) -> Position | None:
        own = [(path, text) for path, text in self.parts.items() if f"/{path}".endswith(f"/{part}")]
        for path, text in own:
            for number, other in enumerate(text.split("\n"), 1):
                if other == line:
                    return Position(path, number, len(line) - len(line.lstrip()) + 1)
        return None


def _in_head(group: ClassGroup, line: str, written: str) -> Position | None:
    """The place of what a class group says itself: bases, decorators, fields; None for a line of a member."""
    codes: tuple[Code, ...] = ()
    if line.startswith(f"class {group.name}("):
        codes = group.bases
    elif line.startswith("@"):
        codes = group.decorators
    elif group.fields is not None and line.strip() in {row.strip() for row in group.fields.text.split("\n")}:
        codes = (group.fields,)
    return next((at for code in codes if (at := _search(code, written)) is not None), None)


def placed(found: Iterable[Finding], entry: Entry, ref: str) -> tuple[Finding, ...]:
    """Findings about an entry with their place: the first code of a delta that has the name which they are about, else the entry."""
    return tuple(item.at(entry=ref, **_in_deltas(item, entry)).at(manifest=entry.where) for item in found)


def _in_deltas(item: Finding, entry: Entry) -> dict[str, object]:
    for written in re.findall(r"`([^`\n]+)`", item.message) if item.manifest is None and item.exit_code else ():
        for delta in nested(entry.deltas):
            for code in codes(delta):
                if (at := _search(code, written)) is not None:
                    return {"delta": delta.name, "manifest": at}
            if written in (delta.rebind or ()):
                return {"delta": delta.name, "manifest": delta.where}
    return {}


def _fence(lines: Sequence[str], marker: str) -> str | None:
    """The delta whose fence is open at the end of some lines."""
    for line in reversed(lines):
        if found := parsed(line, marker):
            return delta_of(found[1]) if found[0] == "START" else None
    return None


def codes(value: object) -> Iterator[Code]:
    """Every piece of text with a place in a model."""
    if isinstance(value, Code):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from codes(inner)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from codes(inner)
    elif hasattr(value, "model_fields_set"):
        for name in type(value).model_fields:  # type: ignore[attr-defined]
            if name != "where":
                yield from codes(getattr(value, name))


def _search(code: Code, written: str) -> Position | None:
    found = re.search(rf"(?<![\w.]){re.escape(written)}(?!\w)", code.text)
    if found is None:
        return None
    before = code.text[: found.start()]
    return code.at(before.count("\n") + 1, found.start() - (before.rfind("\n") + 1) + 1)
