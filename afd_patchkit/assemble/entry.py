"""Generate one entry: extract, apply deltas, resolve names, check, describe."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from afd_patchkit.assemble.comments import entry_header
from afd_patchkit.assemble.originals import meaning, named
from afd_patchkit.assemble.unreachable import unreachable
from afd_patchkit.assemble.verify import check_entry
from afd_patchkit.delta.apply import Applied, Reader, apply_deltas
from afd_patchkit.delta.buffer import Buffer, Run, upstream_line
from afd_patchkit.delta.place import indent_of
from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.model import Code, Entry, Probe
from afd_patchkit.names.completions import Completion, completions, incomplete
from afd_patchkit.names.follow import find_definition
from afd_patchkit.names.model import NameContext, NamePlan
from afd_patchkit.names.resolve import resolve_names
from afd_patchkit.references.judge import placed
from afd_patchkit.source.locate import Symbol, find_symbol, parse_reference, which_accessor
from afd_patchkit.source.signature import compare, signature
from afd_patchkit.source.text import SourceFile, Span, Text
from afd_patchkit.upstream.base import Upstream

UNEXPLAINED = "UNEXPLAINED"
"""How the name of a delta begins that was found in a hand copy, outside of every fence."""


@dataclass(frozen=True)
class Setting:
    """Where an entry goes.

    Attributes:
        entry: `module.py::name`, for findings.
        module: dotted name of the generated module.
        group: name of the generated class it is a member of, if any.
        above: names that this class binds above it.
        provided: names the generated module binds by itself, and what they are.
        marker: comment prefix of fences.
        pins: how each pin is named in comments.
        read: gives other pins' files for `take:`.
        pin_text: how the source pin is named in comments.
        removal: the conditions that count for this entry.
        package: the import package of all generated modules.
    """

    entry: str
    module: str
    group: str | None
    above: frozenset[str]
    provided: Mapping[str, str]
    marker: str
    pin_text: str
    pins: Mapping[str, str] = field(default_factory=dict)
    read: Reader | None = None
    removal: tuple[Probe, ...] = ()
    package: str = ""


@dataclass(frozen=True, slots=True)
class Own:
    """Upstream bytes that a delegate has text of its own for; the text stands at upstream's indentation."""

    span: Span
    text: str


@dataclass(frozen=True)
class GeneratedEntry:
    """One entry, ready to be put into its module.

    Attributes:
        entry: the manifest's entry.
        ref: `module.py::name`.
        name: its name in the generated module.
        symbol: the pristine symbol; None for owned code.
        applied: deltas as applied; None for owned code.
        plan: what its names needed.
        renamed: what declared name edits replaced, in upstream's text and in that of deltas.
        own: what a delegate has of its own.
        header: comment lines above it.
        body: its text without the header, indented for its place.
        findings: what does not stop generation.
        completions: what completes its symbol elsewhere.
        asks: pins all of whose files were searched for globals that they set.
    """

    entry: Entry
    ref: str
    name: str
    symbol: Symbol | None
    applied: Applied | None
    plan: NamePlan | None
    header: tuple[str, ...]
    body: Buffer
    renamed: tuple[NameChange, ...] = ()
    own: tuple[Own, ...] = ()
    signature_note: str | None = None
    findings: tuple[Finding, ...] = ()
    watched: tuple[Watched, ...] = ()
    completions: tuple[Completion, ...] = ()
    asks: tuple[str, ...] = ()

    @property
    def name_spans(self) -> tuple[Span, ...]:
        """Upstream bytes that declared name edits replaced."""
        return spans_of(self.renamed)


@dataclass(frozen=True, slots=True)
class Watched:
    """A definition that an entry mirrors, and what completes it elsewhere."""

    symbol: Symbol
    completions: tuple[Completion, ...]


@dataclass(frozen=True, slots=True)
class NameChange:
    """One declared name edit: `old` became `new`; `spans` are upstream's bytes of `old`, none in the text of a delta."""

    old: str
    new: str
    spans: tuple[Span, ...]


def spans_of(changes: Sequence[NameChange]) -> tuple[Span, ...]:
    """Upstream bytes that were changed."""
    return tuple(span for change in changes for span in change.spans)


def symbol_of(entry: Entry, upstream: Upstream) -> Symbol:
    """The definition that an entry is about, of a property with the accessor that it names.

    Raises:
        DeltaError: there is none (PK205), several (PK206), or a delegate does not say which accessor it stands before (PK226).
        UpstreamError: its module cannot be read.
    """
    assert entry.symbol is not None
    module, qualname = parse_reference(entry.symbol.text, entry.symbol.position)
    if entry.alias is not None:
        symbol = _imported(entry.alias, upstream)
    else:
        symbol = find_symbol(upstream.read(module), qualname, branch=entry.branch)
    known = symbol.accessors
    if entry.accessor is not None and entry.accessor not in (known or ("getter",)):
        raise DeltaError(which_accessor(symbol, f"has no {entry.accessor}").at(manifest=entry.where))
    if entry.kind == "delegate" and len(known) > 1:
        if entry.accessor is None:
            raise DeltaError(which_accessor(symbol, "has several accessors").at(manifest=entry.where))
        chosen = known[entry.accessor]
        return replace(symbol, nodes=(chosen,), beside=tuple(n for n in symbol.nodes if n is not chosen))
    return replace(symbol, accessor=entry.accessor) if known and entry.accessor is not None else symbol


def _imported(alias: Code, upstream: Upstream) -> Symbol:
    """The definition of a name that a module imports."""
    module, qualname = parse_reference(alias.text, alias.position)
    file = upstream.read(module)
    name, _, rest = qualname.partition(".")
    found = find_definition(upstream, module, name)
    if found is not None and found.file is not None and found.name and found.module != module:
        return find_symbol(found.file, f"{found.name}.{rest}" if rest else found.name)
    defines = found is not None and found.module == module
    raise DeltaError(
        finding(
            "PK205",
            f"{module} defines {name}, it does not import it"
            if defines
            else f"{module} imports no {name} of its own project",
            manifest=alias.position,
            upstream=Position(file.path),
            help="Name it in `symbol`." if defines else "Correct `alias`, or name the definition in `symbol`.",
        )
    )


def generate_copy(entry: Entry, symbol: Symbol, source: Upstream, target: Upstream, setting: Setting) -> GeneratedEntry:
    """Generate a `copy` or `backport`.

    Args:
        entry: the entry.
        symbol: the upstream definition, of the entry's own pin.
        source: the upstream that `symbol` comes from: for a backport the donor.
        target: the upstream that the code must run on.
        setting: the module around the entry.

    Raises:
        DeltaError: deltas do not apply.
        SelfCheckError: a bug of the tool.
    """
    applied = apply_deltas(symbol, entry.deltas, entry=setting.entry, marker=setting.marker, read=setting.read)
    if dead := tuple(unreachable(applied.buffer, applied.edits, setting.entry)):
        raise DeltaError(*dead)
    name = entry.name or symbol.name
    body, renamed = (
        rename(applied.buffer, symbol.name, name, symbol.file) if name != symbol.name else (applied.buffer, [])
    )
    plan = resolve(entry, symbol, body, applied.rebind, source, target, setting, name)
    before = Text(body.text.encode())
    body, changes = edit_names(body, plan, symbol.file)
    changes += renamed
    if setting.group is None:
        body, dropped = without_static(body, symbol)
        changes += dropped
    note = signature_note(symbol, body, plan.rebindings)
    body = put_in_place(body, "    " if setting.group else "", symbol)
    check_entry(symbol, applied.edits, spans_of(changes), body, setting.marker)
    if setting.group is None and entry.kind == "copy":
        more, needs = named(symbol, name, target)
        body += Buffer.emitted(more, (), "owned") if more else Buffer()
        plan = replace(plan, imports=(*plan.imports, *needs))
    header = entry_header(
        entry,
        source=f"{symbol.file.path}, {symbol.qualname}; {setting.pin_text}",
        taken=[
            f"{file.path}, {key[1].partition(':')[2]}; {setting.pins[key[0]]}"
            for key, (file, _) in applied.taken.items()
        ],
        signature=note,
        rebindings=plan.rebindings,
        rewritten=rewritten(plan, before) | {c.old.strip(): "nothing" for c in changes if not c.new},
        renamed=(symbol.name, name) if name != symbol.name else None,
        removal=setting.removal,
    )
    found = completions(symbol, source)
    lacks = incomplete(symbol, found, explained=entry.elsewhere is not None)
    said = (*applied.findings, *unexplained(entry, setting.entry), *plan.findings, *lacks)
    findings = placed(said, entry, setting.entry)
    return GeneratedEntry(
        entry,
        setting.entry,
        name,
        symbol,
        applied,
        plan,
        tuple(header),
        body,
        tuple(changes),
        (),
        note,
        findings,
        completions=found,
    )


def unexplained(entry: Entry, ref: str) -> list[Finding]:
    """Deltas that were found in a hand copy, and that no person has given a name yet (PK233)."""
    return [
        finding(
            "PK233",
            f"nobody has explained delta {delta.name!r}",
            entry=ref,
            delta=delta.name,
            manifest=delta.where,
            help="Give it a name that says what it is for, or delete it.",
        )
        for delta in entry.deltas
        if delta.name.startswith(UNEXPLAINED)
    ]


def rewritten(plan: NamePlan, before: Text) -> dict[str, str]:
    """What the declared name edits made of which text; rebindings are named on their own."""
    found = {before.slice(edit.span): edit.text for edit in plan.edits if edit.reason != "rebind"}
    return {" ".join(old.split()): " ".join(new.split()) for old, new in found.items()}


def resolve(
    entry: Entry,
    symbol: Symbol,
    body: Buffer,
    rebind: Mapping[str, Code],
    source: Upstream,
    target: Upstream,
    setting: Setting,
    name: str,
) -> NamePlan:
    """What the names of `body` need.

    Args:
        entry: the entry.
        symbol: the upstream definition.
        body: its text with the deltas applied.
        rebind: names that deltas give another meaning, with the expression.
        source: the upstream that `symbol` comes from.
        target: the upstream that the code must run on.
        setting: the module around the entry.
        name: the entry's name in the generated module.
    """
    context = NameContext(
        symbol=symbol,
        placement="class" if setting.group else "module",
        generated_class=setting.group,
        generated_name=name,
        generated_module=setting.module,
        kind=entry.kind,  # type: ignore[arg-type]
        late=frozenset(entry.late) if isinstance(entry.late, tuple) else entry.late,
        rebind=rebind,
        provided=setting.provided,
        target=target,
        source=source,
        class_names=setting.above,
    )
    return resolve_names(Text(body.text.encode()), context)


def edit_names(body: Buffer, plan: NamePlan, file: SourceFile) -> tuple[Buffer, list[NameChange]]:
    """Apply the name edits; the second result is what they replaced."""
    data = body.text.encode()
    changes = []
    for edit in plan.edits:
        start = len(data[: edit.span.start].decode())
        end = start + len(data[edit.span.start : edit.span.end].decode())
        changes.append((start, end, edit.text, edit.reason))
    return _changed(body, changes, file)


def _changed(
    body: Buffer, changes: Sequence[tuple[int, int, str, str]], file: SourceFile
) -> tuple[Buffer, list[NameChange]]:
    """Replace character ranges; the second result is what they held."""
    if not changes:
        return body, []
    text = body.text
    spans: list[list[Span]] = [[] for _ in changes]
    for at, run in body.positioned():
        if run.file is not file:
            continue
        for number, (start, end, _, _) in enumerate(changes):
            first, last = max(start, at), min(end, at + len(run.text))
            if first < last:
                part = run.part(first - at, last - at)
                spans[number].append(Span(part.start, part.start + len(part.text.encode())))
    found = [NameChange(text[s:e], new, tuple(held)) for (s, e, new, _), held in zip(changes, spans, strict=True)]
    return body.replace(changes), found


def rename(body: Buffer, old: str, new: str, file: SourceFile) -> tuple[Buffer, list[NameChange]]:
    """Give the definition another name (its own accessors' decorators too); with what changed.

    Args:
        body: the definition's text.
        old: its upstream name.
        new: its name in the generated module.
        file: the upstream file that the bytes are of.
    """
    text = body.text
    tree = ast.parse(text)
    plain = Text(text.encode())
    changes: list[tuple[int, int, str, str]] = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            start = len(plain.data[: plain.node_span(node).start].decode())
            found = re.compile(rf"\b(?:def|class)\s+({re.escape(old)})\b").search(text, start)
            assert found is not None
            changes.append((found.start(1), found.end(1), new, "rename"))
            for decorator in node.decorator_list:
                value = decorator.func if isinstance(decorator, ast.Call) else decorator
                if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == old:
                    at = len(plain.data[: plain.node_span(value.value).start].decode())
                    changes.append((at, at + len(old), new, "rename"))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id == old:
                    at = len(plain.data[: plain.node_span(target).start].decode())
                    changes.append((at, at + len(old), new, "rename"))
    return _changed(body, changes, file)


def without_static(body: Buffer, symbol: Symbol) -> tuple[Buffer, list[NameChange]]:
    """A static method as the plain function that it is outside of its class; with what changed.

    Args:
        body: the definition's text, dedented.
        symbol: upstream's definition.
    """
    if not symbol.classes or b"staticmethod" not in symbol.data:
        return body, []
    plain = Text(body.text.encode())
    changes = []
    for node in ast.parse(body.text).body:
        for decorator in getattr(node, "decorator_list", ()):
            line = plain.line_span(decorator.lineno, decorator.end_lineno or decorator.lineno)
            if plain.slice(line).strip() == "@staticmethod" and meaning(symbol.file, decorator) == "staticmethod":
                start, end = (len(plain.data[:at].decode()) for at in (line.start, line.end))
                changes.append((start, end, "", "static"))
    return _changed(body, changes, symbol.file)


def put_in_place(body: Buffer, indent: str, symbol: Symbol) -> Buffer:
    """Indent the (dedented) entry for its place; continuation lines left of the symbol's own indentation stay."""
    if not indent:
        return body
    lines = body.split_lines()
    moved = body.reindent("", indent).split_lines()
    out: list[Run] = []
    for old, new in zip(lines, moved, strict=True):
        origin = upstream_line(old)
        stays = (
            origin
            and origin[0] is symbol.file
            and not indent_of(symbol.file.lines(origin[1], origin[1])[0]).startswith(symbol.indent)
        )
        out += old if stays else new
    return Buffer(out)


def signature_note(symbol: Symbol, body: Buffer, rebindings: Mapping[str, str]) -> str | None:
    """The `# Signature:` text: equal but for declared rebindings, or the exact differences."""
    if not isinstance(symbol.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    text = body.text
    plain = Text(text.encode())
    statements = ast.parse(text).body
    # what is added stands below, so that the statements of a group keep their numbers
    node = statements[symbol.nodes.index(symbol.node)]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    differences = compare(signature(symbol.node, symbol.file), signature(node, plain), old_names=rebindings)
    if not differences:
        return "matches upstream; no added parameters."
    return "differs from upstream: " + "; ".join(d.message for d in differences) + "."
