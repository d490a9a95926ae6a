"""Adoption of a file: its hand copies become manifests, and what these generate is compared with the copies before anything is written."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from afd_patchkit.adopt.delegates import delegate_of, marked
from afd_patchkit.adopt.derive import Derived, derive
from afd_patchkit.adopt.documents import manifest_files, pins_text
from afd_patchkit.adopt.halves import split
from afd_patchkit.adopt.heads import head_deltas, own_decorators
from afd_patchkit.adopt.needs import code_in, needs_of, part_of
from afd_patchkit.adopt.reexport import reexported
from afd_patchkit.adopt.result import Adopted, Adoption, Where
from afd_patchkit.adopt.texts import CodeText
from afd_patchkit.assemble.entry import UNEXPLAINED
from afd_patchkit.copies.audit import AuditOptions, Read, read_copies
from afd_patchkit.copies.canonical import canonical, key, owner_of
from afd_patchkit.copies.checks import fused_with, say
from afd_patchkit.copies.difference import Contrast, compare
from afd_patchkit.copies.judging import Compared, judge
from afd_patchkit.copies.meaning import FileNames
from afd_patchkit.copies.pairing import CopyPair, Unpaired
from afd_patchkit.files import write_atomically
from afd_patchkit.findings.errors import ManifestError, PatchkitError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.model import Pin
from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.project import load_project
from afd_patchkit.queries.preview import preview
from afd_patchkit.source.deep import deep
from afd_patchkit.source.locate import find_symbol
from afd_patchkit.source.syntax import FUNCTION
from afd_patchkit.source.text import load_source


def adopt(
    path: Path,
    options: AuditOptions,
    *,
    function: str | None = None,
    symbol: str | None = None,
    folder: str = "adopted",
    package: str = "afd_backports",
) -> Adoption:
    """Derive the manifest of a file's hand copies, and prove it; nothing is written.

    Args:
        path: the file.
        options: what it is compared with.
        function: the qualified name of the one function that is meant; all by default.
        symbol: what that one is a copy of, `package.module:Qual.name`, when nothing says so.
        folder: the patch set's folder below the manifests.
        package: the import package of generated modules.

    Raises:
        UpstreamError: an upstream cannot be had.
        DeltaError: the file is nested too deeply (PK229).
    """
    where = Where.of(path, folder, package)
    with deep(str(path)):
        return adopt_read(read_copies([path], options), options.pins, where, function=function, symbol=symbol)


def adopt_read(
    read: Read, pins: Mapping[str, Pin], where: Where, *, function: str | None = None, symbol: str | None = None
) -> Adoption:
    """`adopt`, of a file that was read and paired.

    Args:
        read: one file.
        pins: the upstreams, by name.
        where: where its manifests would go.
        function: the qualified name of the one function that is meant; all by default.
        symbol: what that one is a copy of.
    """
    done = Adoption(where=where)
    done.findings += read.problems
    for pair in _chosen(read, done, function, symbol):
        started = time.process_time()
        items = _derived(pair, read)
        for item in items:
            item.seconds = (time.process_time() - started) / len(items)
        done.copies += items
    started = time.process_time()
    _documents(done, read, pins)
    for item in done.copies:
        item.seconds += (time.process_time() - started) / len(done.copies)
    _refusals(done)
    return done


def _chosen(read: Read, done: Adoption, function: str | None, symbol: str | None) -> list[CopyPair]:
    found: list[CopyPair] = []
    known = {f.qualname: f for file in read.files for f in file.functions}
    if function is not None and function not in known:
        for file in read.files:
            done.findings.append(
                finding(
                    "PK715",
                    f"{file.shown} has no function {function}",
                    generated=Position(file.shown),
                    help=f"It has {', '.join(sorted(known)[:8])}.",
                )
            )
        return []
    if function is not None and symbol is not None:
        upstream = read.finder.symbol(symbol.replace(":", "."))
        if isinstance(upstream, str):
            done.findings.append(say("PK715", upstream, known[function], help="Correct --symbol."))
            return []
        return [read.finder.made(known[function], upstream, "comment", None)]
    for pair in read.found:
        if function is not None and pair.hand.qualname != function:
            continue
        if isinstance(pair, Unpaired):
            done.findings.append(
                say(
                    pair.code,
                    f"{pair.hand.qualname}: {pair.why}",
                    pair.hand,
                    details=pair.candidates,
                    help="Say what it is a copy of: --symbol package.module:Qual.name.",
                )
            )
        else:
            found.append(pair)
    if function is not None and not found and not done.findings:
        done.findings.append(
            say(
                "PK715",
                f"nothing says what {function} is a copy of",
                known[function],
                help="Say it: --symbol package.module:Qual.name.",
            )
        )
    return found


# ---- one copy -------------------------------------------------------------------------------------------------------


def _derived(pair: CopyPair, read: Read) -> list[Adopted]:
    """What becomes of a copy; of one that two functions were fused into, of each half."""
    judged = judge(pair)
    for part in judged.unfenced:
        symbol = fused_with(part, pair, read.finder)
        if symbol is not None:
            halves = split(pair, part, symbol, read.finder)
            return [_one(half, judge(half), read, number) for number, half in enumerate(halves)]
    return [_one(pair, judged, read)]


def _one(pair: CopyPair, judged: Compared, read: Read, half: int = 0) -> Adopted:
    item = Adopted(pair, differs={k: v for k, v in judged.cosmetic.items() if v and k != "names"})
    names = FileNames(pair.hand.file.source, read.finder.meaning).within(pair.hand.functions)
    if pair.delegates:
        body = delegate_of(pair)
        if isinstance(body, str):
            item.why = body
            return item
        item.entry = {**_about(pair, half), "kind": "delegate", "via": body.via, "body": body.text}
        codes = [str(body.text)]
    else:
        done = _deltas(pair, judged, read, names)
        item.deltas, item.frozen = len(done.drafts), len(done.frozen)
        item.unexplained = sum(d.name.startswith(UNEXPLAINED) for d in done.drafts)
        if not done.equal:
            item.why = done.why
            return item
        item.entry = _about(pair, half)
        if done.late:
            item.entry["late"] = list(done.late)
        if done.drafts:
            item.entry["deltas"] = [d.data() for d in done.drafts]
        codes = list(code_in(item.entry.get("deltas", [])))
    upstream = FileNames(pair.symbol.file, read.finder.meaning)
    bound = {n: upstream.lead(n).dotted for n in module_bindings(pair.symbol.file)}
    item.needs = needs_of(codes, names, bound, pair.wanted.local | set(pair.locals.values()))
    if item.needs.missing:
        item.why = f"nothing in sight binds {', '.join(sorted(item.needs.missing))}"
        item.entry = None
    return item


def _name(pair: CopyPair, half: int) -> str:
    """The name of its entry; the second of two functions that were fused gets its class in front."""
    return (
        f"{pair.symbol.classes[-1].name}_{pair.hand.node.name}" if half and pair.symbol.classes else pair.hand.node.name
    )


def _about(pair: CopyPair, half: int) -> dict[str, Any]:
    claims = pair.hand.claims
    entry: dict[str, Any] = {"symbol": pair.symbol.reference}
    if _name(pair, half) != pair.symbol.name:
        entry["name"] = _name(pair, half)
    entry["reason"] = claims.text("reason") or f"adopted from {pair.hand.file.path.name}, which gives no reason."
    if claims.text("functionality"):
        entry["functionality"] = claims.text("functionality")
    if claims.text("removal"):
        entry["removal"] = claims.text("removal")
    return entry


def _deltas(pair: CopyPair, judged: Compared, read: Read, names: FileNames) -> Derived:
    fences = {id(p.change): p.fence for p in judged.parts if p.fence is not None}
    numbers: dict[str, int] = {}

    def name_of(change: Contrast) -> str:
        fence = fences.get(id(change)) or _fence_of(change, judged)
        if fence:
            return fence.name.replace("\n", " ") or "a change without a name"
        numbers["n"] = numbers.get("n", 0) + 1
        return f"{UNEXPLAINED} {numbers['n']}"

    head = []
    for name, keys in head_deltas(pair):
        if name == UNEXPLAINED:
            numbers["n"] = numbers.get("n", 0) + 1
        head.append((f"{UNEXPLAINED} {numbers['n']}" if name == UNEXPLAINED else name, keys))
    known = {n: names.lead(n) for n in pair.wanted.free}
    return derive(
        pair.symbol,
        pair.base,
        pair.wanted,
        pair.hand.file.source,
        read.finder.meaning,
        name_of=name_of,
        locals_=pair.locals,
        known=known,
        head=head,
    )


def _fence_of(change: Contrast, judged: Compared) -> Any:
    """The fence of a change that was compared anew: by its place."""
    for part in judged.parts:
        if part.change.sort == change.sort and part.change.lines == change.lines:
            return part.fence
    return None


# ---- manifests ------------------------------------------------------------------------------------------------------


def _documents(done: Adoption, read: Read, pins: Mapping[str, Pin]) -> None:
    """The files of all copies that can be told, and the proof of each."""
    ready = [c for c in done.copies if c.entry is not None]
    if not ready:
        return
    file = ready[0].pair.hand.file
    own = {n for c in ready for n in c.needs.own}
    leave = {c.pair.hand.node.name for c in done.copies if not c.pair.hand.classes}
    made = part_of(file, own - leave, leave) if own - leave else (CodeText(""), set())
    if isinstance(made, str):
        for item in ready:
            if item.needs.own:
                item.entry, item.why = None, made
        ready = [c for c in ready if c.entry is not None]
        made = (CodeText(""), set())
    proven = _together(ready, made, read, pins, done.where)
    if proven is None:  # one by one, so that one that cannot be does not hide the others
        for item in ready:
            alone = _together([item], made, read, pins, done.where)
            if alone is None:
                item.entry = None
        ready = [c for c in ready if c.entry is not None]
        proven = _together(ready, made, read, pins, done.where) if ready else None
    if proven is not None:
        done.files = proven


def _together(
    ready: Sequence[Adopted],
    own: tuple[CodeText, set[str]],
    read: Read,
    pins: Mapping[str, Pin],
    where: Where,
) -> dict[str, str] | None:
    files = manifest_files(ready, own, read, pins, where)
    with tempfile.TemporaryDirectory(prefix="afd-patchkit-") as name:
        root = Path(name)
        for path, text in files.items():
            target = root / "manifests" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        (root / "manifests/pins.yaml").write_text(pins_text(pins), encoding="utf-8")
        (root / "afd-patchkit.toml").write_text(f'package = "{where.package}"\n', encoding="utf-8")
        try:
            made = preview(load_project(root), options=read.sources)
        except PatchkitError as error:
            for item in ready:
                item.why, item.code = error.findings[0].message, error.findings[0].code
            return None
        text = made.modules.get(f"{where.folder}/{where.stem}.py", "")
    for item in ready:
        item.why, item.code = _differs(item, text, own[1], read, where), "PK718"
        item.proved = not item.why
    if any(c.why for c in ready):
        return None
    return files


# ---- the proof ------------------------------------------------------------------------------------------------------


def _differs(item: Adopted, text: str, helpers: set[str], read: Read, where: Where) -> str:
    """What the generated function has otherwise than the hand copy; empty when they are the same, name for name."""
    pair = item.pair
    source = load_source(text.encode(), pin="-", path=f"{where.module.replace('.', '/')}.py")
    name = ".".join([*(c.name for c in pair.hand.classes[-1:]), str((item.entry or {}).get("name", pair.symbol.name))])
    try:
        node = find_symbol(source, name).node
    except PatchkitError as error:
        return error.findings[0].message
    if not isinstance(node, FUNCTION):
        return "what is generated is no function"
    module = pair.hand.file.source.module
    same = {n: f"{module}.{n}" for n in helpers}
    owner = owner_of(pair.hand.file.source, pair.hand.classes)
    for cls in pair.hand.classes[-1:]:
        same[cls.name] = owner
    made = canonical(node, FileNames(source, read.finder.meaning), owner=owner, same_globals=same)
    wanted = pair.wanted
    if [d.key for d in own_decorators(made, pair)] != [d.key for d in own_decorators(wanted, pair)]:
        return "what is generated is decorated otherwise"
    if pair.delegates:
        generated = marked(made, pair)
        hand = marked(wanted, pair)
        return "" if key(generated) == key(hand) else "the generated delegate is not the copy"
    if key(made.node) == key(wanted.node):
        return ""
    left = compare(made, wanted)
    return f"what is generated differs from the copy in line {left[0].lines[0]}" if left else "the parameters differ"


def _refusals(done: Adoption) -> None:
    for item in done.copies:
        if item.entry is None or item.why:
            done.findings.append(
                say(
                    "PK718",
                    f"{item.pair.hand.qualname} cannot be adopted: {item.why}",
                    item.pair.hand,
                    upstream=item.pair.symbol.position,
                    help="Mend the copy, or write its entry by hand.",
                )
            )


def write_manifests(done: Adoption, manifests: Path) -> None:
    """Write the files below the folder of the manifests; nothing that is there is replaced.

    Raises:
        ManifestError: a file is there already (PK717).
    """
    there = [manifests / name for name in done.files if os.path.lexists(manifests / name)]
    if there:
        help_ = "Move it away, or name another folder with --set; nothing was written."
        raise ManifestError(finding("PK717", f"{there[0]} is there already", help=help_))
    for name, text in done.files.items():
        target = manifests / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, text)
        done.written.append(target)


def not_replaceable(done: Adoption) -> Finding | None:
    """Why the hand file cannot import what would be generated, if it cannot (PK718)."""
    proved = [c for c in done.copies if c.proved]
    for item in proved:
        why = ""
        if item.pair.hand.classes or item.pair.hand.functions:
            why = "it stands in a class or a function"
        elif sum(c.pair.hand is item.pair.hand for c in proved) > 1:
            why = "it became two entries"
        if why:
            message = f"{item.pair.hand.qualname} cannot be replaced: {why}, so the file cannot only pass it on"
            help_ = "Nothing was written. Leave --replace out, and use the generated function by hand."
            return say("PK718", message, item.pair.hand, help=help_)
    return None


def replace_file(done: Adoption, path: Path) -> None:
    """Let the hand file import what is generated now; `not_replaceable` says beforehand whether it can."""
    proved = [c for c in done.copies if c.proved]
    if proved:
        names = [c.pair.hand.node.name for c in proved]
        write_atomically(path, reexported(proved[0].pair.hand.file.source.text, names, done.where.module))
        done.written.append(path)
