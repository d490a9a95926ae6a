"""What persons have accepted: a committed file of its own, bound to the digests that each finding was made for."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from afd_patchkit.files import read_regular
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.project import Project
from afd_patchkit.refs import names_of
from afd_patchkit.upgrade.checks import is_serious
from afd_patchkit.upgrade.result import DeltaResult, EntryResult, UpgradeResult

SCHEMA = 1


@dataclass(frozen=True, slots=True, order=True)
class Acceptance:
    """One finding that a person has reviewed.

    Attributes:
        entry: `module.py::name`.
        delta: the delta, or an empty text for the entry as a whole.
        code: the finding's code.
        pin: the pin that was to move.
        base: digest of upstream's text before.
        new: digest of upstream's text after.
        target: the version it was reviewed for.
        why: the person's reason.
        anchor: the proposed pattern that was accepted, if any.
        who: who accepted it, if said.
        date: when, if said.
    """

    entry: str
    delta: str
    code: str
    pin: str
    base: str
    new: str
    target: str
    why: str
    anchor: str = ""
    who: str = ""
    date: str = ""
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    @property
    def subject(self) -> str:
        """`ENTRY/DELTA`, for messages."""
        return f"{self.entry}/{self.delta}" if self.delta else self.entry


class _File(BaseModel):
    """The file: its rows leave out what is empty."""

    model_config = ConfigDict(extra="forbid", strict=True)
    schema_: Literal[1] = Field(alias="schema")
    accepted: tuple[
        Annotated[Acceptance, BeforeValidator(lambda row: {"delta": "", **row} if isinstance(row, dict) else row)], ...
    ]


def path_of(project: Project) -> Path:
    """Where acceptances are kept: beside the manifests, but no input of generation."""
    return project.manifests / "accepted.json"


def load(project: Project) -> tuple[Acceptance, ...]:
    """The acceptances of a project.

    Raises:
        ManifestError: the file is not one of ours (PK097).
    """
    path = path_of(project)
    try:
        return _File.model_validate_json(read_regular(path)).accepted
    except FileNotFoundError:
        return ()
    except OSError as error:
        wrong, place = [error.strerror or str(error)], None
    except ValidationError as error:
        wrong = [f"{_key(e['loc'])}{e['msg'][:1].lower()}{e['msg'][1:]}" for e in error.errors(include_url=False)]
        place = re.search(r"at line (\d+) column (\d+)$", wrong[0])
    raise ManifestError(
        finding(
            "PK097",
            f"the acceptances cannot be read: {wrong[0]}",
            manifest=Position(project.shown(path), *(map(int, place.groups()) if place else ())),
            details=tuple(wrong[1:]),
            help="Restore the file from version control; `afd-patchkit accept` writes it.",
        )
    )


def _key(loc: tuple[str | int, ...]) -> str:
    return f"`{'.'.join(map(str, loc))}`: " if loc else ""


def dumps(items: Sequence[Acceptance]) -> bytes:
    """The file's bytes; one field a line, so that a pull request shows what was accepted and why."""
    rows = [{key: value for key, value in asdict(item).items() if value} for item in sorted(set(items))]
    return (json.dumps({"schema": SCHEMA, "accepted": rows}, indent=1, ensure_ascii=False) + "\n").encode()


# ---- using them -------------------------------------------------------------------------------------------------------


def apply(result: UpgradeResult, items: Sequence[Acceptance], shown: str) -> UpgradeResult:
    """`result` with what was accepted marked; acceptances that nothing uses any more are findings.

    Args:
        result: of one upgrade.
        items: all acceptances of the project.
        shown: the file's path, for findings.
    """
    mine = [a for a in items if a.pin == result.pin]
    used: set[Acceptance] = set()
    entries = tuple(_entry(e, mine, used) for e in result.entries)
    doubtful = {e.ref for e in entries if e.superfluous and e.blocks}
    result = replace(
        result,
        deletions=tuple(line for line in result.deletions if line.partition(": ")[2] not in doubtful),
        retired_modules=tuple(
            module for module in result.retired_modules if not any(ref.startswith(f"{module}::") for ref in doubtful)
        ),
    )
    stale = [_unused(a, why, shown) for a in items if a not in used and (why := _why_unused(a, result))]
    return replace(result, entries=entries, findings=(*result.findings, *stale))


def _entry(entry: EntryResult, items: Sequence[Acceptance], used: set[Acceptance]) -> EntryResult:
    own = [a for a in items if (a.entry, a.base, a.new) == (entry.ref, entry.base_digest, entry.new_digest)]
    deltas = tuple(_delta(d, [a for a in own if a.delta == d.name], used) for d in entry.deltas)
    reasons = [f for f in entry.reasons if is_serious(f)]
    told = [_covers(f, [a for a in own if not a.delta], used) for f in reasons]
    needed = [d for d in deltas if any(is_serious(f) for f in d.reasons)]
    possible = bool(reasons or needed) and entry.status not in ("missing", "retire", "clean", "unchanged")
    return replace(entry, deltas=deltas, accepted=possible and all(told) and all(d.accepted for d in needed))


def _delta(delta: DeltaResult, items: Sequence[Acceptance], used: set[Acceptance]) -> DeltaResult:
    reasons = [f for f in delta.reasons if is_serious(f)]
    if delta.status == "conflict":
        wanted = delta.proposal.new if delta.proposal is not None else None
        items = [a for a in items if wanted and a.anchor == wanted]
    told = [_covers(f, items, used) for f in reasons]
    return replace(delta, accepted=bool(reasons) and all(told))


def _covers(item: Finding, items: Sequence[Acceptance], used: set[Acceptance]) -> bool:
    found = [a for a in items if a.code == item.code]
    used.update(found)
    return bool(found)


def _why_unused(item: Acceptance, result: UpgradeResult) -> str | None:
    entry = next((e for e in result.entries if e.ref == item.entry), None)
    if entry is None:
        return None if any(f.exit_code for f in result.findings) else "there is no such entry"
    if item.delta and item.delta not in {d.name for d in entry.deltas}:
        return "the entry has no such delta" if entry.status != "retire" else "the entry is retired"
    if item.pin != result.pin or entry.status == "retire":
        return None
    if item.base != entry.base_digest:
        return "the pin has moved since"
    if item.target == result.new:
        return "that finding is not made any more" if item.new == entry.new_digest else "upstream's text is another one"
    return None


def _unused(item: Acceptance, why: str, shown: str) -> Finding:
    return finding(
        "PK545",
        f"the acceptance of {item.code} for {item.subject} is of no use any more: {why}",
        entry=item.entry,
        delta=item.delta or None,
        manifest=Position(shown),
        details=(f"it said: {item.why}",),
        help="Delete it from the file.",
    )


# ---- making them ------------------------------------------------------------------------------------------------------


def resolve(result: UpgradeResult, ref: str) -> tuple[EntryResult, str]:
    """The entry and the delta (or an empty text) that `ENTRY[/DELTA]` names; any part of a name that is unique will do.

    Raises:
        ManifestError: there is none, or several (PK093); the nearest names are proposed.
    """
    found = _named(result, ref)
    if len(found) == 1:
        return found[0]
    if found:
        names, help_ = [_label(e, d) for e, d in found], "Write more of the name."
    else:
        known = {
            name: _label(e, d)
            for e in result.entries
            for d in ("", *(d.name for d in e.deltas))
            for name in names_of(e.ref, d)
        }
        near = dict.fromkeys(known[name] for name in nearest(ref, known))
        names = list(near) or [e.ref for e in result.entries if e.blocks]
        help_ = (
            f"Did you mean {shlex.quote(next(iter(near)))}?"
            if near
            else "Write `module.py::name`, or `module.py::name/delta name`."
        )
    raise ManifestError(
        finding(
            "PK093",
            f"{ref} names {'several entries' if found else 'no entry and no delta of one'}",
            details=tuple(names[:20]),
            help=help_,
        )
    )


def _named(result: UpgradeResult, ref: str) -> list[tuple[EntryResult, str]]:
    """What a text names: an entry in full before all else, then what it is a part of the name of."""
    whole = [(e, "") for e in result.entries if e.ref == ref]
    if whole:
        return whole
    pairs = [(e, d) for e in result.entries for d in ("", *(d.name for d in e.deltas))]
    return [(e, d) for e, d in pairs if ref in names_of(e.ref, d)]


def _label(entry: EntryResult, delta: str) -> str:
    return f"{entry.ref}/{delta}" if delta else entry.ref


def command(result: UpgradeResult, entry: EntryResult, delta: str = "") -> str | None:
    """The command that accepts what is open about an entry, or about one of its deltas; None when nothing can be accepted."""
    if entry.status == "conflict" and not any(d.proposal for d in entry.deltas):
        return None  # it must be mended
    try:
        made(result, entry, delta, "why", "", "")
    except ManifestError:
        return None
    name = next(n for n in names_of(entry.ref, delta) if len(_named(result, n)) == 1)
    words = ["--pin", f"{result.pin}={result.new}", *result.given, name]
    return f'afd-patchkit accept {shlex.join(words)} --why "..."'


def made(result: UpgradeResult, entry: EntryResult, delta: str, why: str, who: str, date: str) -> list[Acceptance]:
    """The acceptances that cover everything open about an entry, or about one of its deltas.

    Args:
        result: what the upgrade said.
        entry: the entry that was reviewed.
        delta: name of the delta that was reviewed; empty for everything about the entry.
        why: the reviewer's reason.
        who: the reviewer; may be empty.
        date: the day; may be empty.

    Raises:
        ManifestError: there is nothing to accept, or it cannot be accepted (PK094).
    """
    subjects: list[tuple[str, Sequence[Finding], str]] = []
    for item in entry.deltas:
        if delta in ("", item.name) and item.status in ("review", "absorbed", "conflict"):
            anchor = item.proposal.new if item.status == "conflict" and item.proposal is not None else ""
            if item.status == "conflict" and not anchor:
                raise _cannot(entry, item.name, "it does not apply, and there is no proposal to accept: mend it")
            subjects.append((item.name, item.reasons, anchor))
    if not delta:
        if entry.status == "missing" or any(f.exit_code and f.family != "upgrade" for f in entry.reasons):
            raise _cannot(entry, "", "it cannot be generated as it is: mend it")
        subjects.append(("", entry.reasons, ""))
    items = [
        Acceptance(
            entry.ref, name, code, result.pin, entry.base_digest, entry.new_digest, result.new, why, anchor, who, date
        )
        for name, reasons, anchor in subjects
        for code in dict.fromkeys(f.code for f in reasons if is_serious(f))
    ]
    if not items:
        raise _cannot(entry, delta, "nothing about it is open")
    return items


def _cannot(entry: EntryResult, delta: str, why: str) -> ManifestError:
    name = f"{entry.ref}/{delta}" if delta else entry.ref
    return ManifestError(
        finding(
            "PK094",
            f"{name} cannot be accepted: {why}",
            entry=entry.ref,
            delta=delta or None,
            help=entry.must_do or None,
        )
    )
