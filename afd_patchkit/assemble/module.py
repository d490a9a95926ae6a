"""Generate one module: its live entries, imports, header; prove that it compiles and that every name resolves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from afd_patchkit.assemble.bodies import bodies
from afd_patchkit.assemble.claimed import claims_of, disagreed
from afd_patchkit.assemble.comments import entry_header, file_header
from afd_patchkit.assemble.delegate import delegate_text
from afd_patchkit.assemble.entry import (
    GeneratedEntry,
    NameChange,
    Setting,
    Watched,
    edit_names,
    generate_copy,
    put_in_place,
    rename,
    resolve,
    rewritten,
    signature_note,
    symbol_of,
)
from afd_patchkit.assemble.gate import prove_module
from afd_patchkit.assemble.imports import Part, manifest_imports, read_part
from afd_patchkit.assemble.memo import Inputs, Memo
from afd_patchkit.assemble.outline import outline
from afd_patchkit.assemble.own import own_text
from afd_patchkit.assemble.probes import first_that_holds, gone
from afd_patchkit.assemble.product import Product, product_of
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.files import read_regular
from afd_patchkit.findings.errors import DeltaError, ManifestError, PatchkitError
from afd_patchkit.findings.finding import Finding, Severity, finding
from afd_patchkit.model import ClassGroup, Entry, Manifest, Probe
from afd_patchkit.names import elsewhere
from afd_patchkit.names.completions import completions
from afd_patchkit.names.imports import merge_imports, merge_statements, render_imports
from afd_patchkit.names.model import ImportNeed, NamePlan
from afd_patchkit.references.judge import Places, placed
from afd_patchkit.references.texts import OwnText
from afd_patchkit.source.deep import deep
from afd_patchkit.source.locate import Symbol, find_symbol, parse_reference
from afd_patchkit.source.text import Text


@dataclass(frozen=True)
class Retired:
    """An entry that is not generated because its removal condition holds."""

    entry: Entry
    ref: str
    name: str
    probe: Probe


@dataclass(frozen=True)
class Attempt:
    """One live entry: what was generated, now (`generated`) or by an earlier run (`kept`), or why it could not be."""

    entry: Entry
    group: ClassGroup | None
    ref: str
    generated: GeneratedEntry | None = None
    error: PatchkitError | None = None
    kept: Product | None = None

    @cached_property
    def product(self) -> Product | None:
        """What it contributes to its module; None when it could not be generated."""
        return product_of(self.generated) if self.generated is not None else self.kept


@dataclass(frozen=True)
class GeneratedModule:
    """One module, in memory.

    Attributes:
        manifest: what it was generated from.
        buffer: its text with origins; empty when wholly retired.
        products: what it holds, in order.
        retired: what it does not hold any more.
        parts: owned files that went into it.
        findings: what does not stop generation.
        own: the text as references need it.
    """

    manifest: Manifest
    buffer: Buffer
    products: tuple[Product, ...]
    retired: tuple[Retired, ...]
    parts: tuple[Part, ...]
    findings: tuple[Finding, ...]
    text: str = field(default="")
    outline: str = field(default="")
    own: OwnText | None = None

    @property
    def wholly_retired(self) -> bool:
        """Whether nothing is left to generate."""
        return not self.products


def module_name(package: str, module: str) -> str:
    """Dotted name of a generated module."""
    return f"{package}.{module.removesuffix('.py').replace('/', '.')}"


class ModuleMaker:
    """Generates one module of a project.

    Args:
        manifest: what to generate.
        workspace: the upstreams.
        package: generated import package.
        marker: comment prefix of fences.
        folder: the manifest's folder, for parts.
        root: the project's folder.
    """

    def __init__(
        self, manifest: Manifest, workspace: Workspace, *, package: str, marker: str, folder: Path, root: Path
    ) -> None:
        self.manifest, self.workspace = manifest, workspace
        self.package, self.marker, self.folder, self.root = package, marker, folder, root
        self.dotted = module_name(package, manifest.module)
        self.problems: list[Finding] = []
        self.some_retired = False
        self.doubtful: dict[str, tuple[Finding, ...]] = {}
        self.parts: dict[str, Part] = {}

    def make(self, memo: Memo | None = None, *, prove: bool = False) -> GeneratedModule:
        """Generate the module.

        Args:
            memo: entries that need not be generated again.
            prove: also prove what was generated now in a second way; with nothing kept in `memo`, that is every entry.

        Raises:
            PatchkitError: with the findings of all its entries.
        """
        attempts, retired = self.attempts(memo)
        errors = [a.error for a in attempts if a.error is not None]
        problems = [f for error in errors for f in error.findings] + self.needs_retired(attempts, retired)
        if problems:
            worst = max(errors, key=lambda e: e.exit_code, default=DeltaError(*problems))
            raise type(worst)(*problems)
        made = self.assembled(attempts, retired)
        if not prove:
            return made
        findings = self.second_proof(made.text, attempts)
        if any(found.severity is Severity.ERROR for found in findings):
            raise DeltaError(*findings)
        return replace(made, findings=(*made.findings, *findings))

    def second_proof(self, text: str, attempts: Sequence[Attempt]) -> list[Finding]:
        """What the second proof does not accept in `text`, the module of these entries (PK114), or cannot read (PK664)."""
        from afd_patchkit.assemble.proof.prove import prove  # libcst takes as long to import as everything else

        generated = [
            (a.generated, a.group.name if a.group else None, a.product.record)
            for a in attempts
            if a.generated is not None and a.product is not None
        ]
        places = {a.ref: a.entry.where for a in attempts}
        return [
            disagreed(found, module=self.manifest.module, manifest=places.get(found.ref, self.manifest.where))
            for found in prove(text, list(claims_of(generated, list(self.parts.values()))), self.marker)
        ]

    def attempts(self, memo: Memo | None = None) -> tuple[list[Attempt], list[Retired]]:
        """Generate each live entry on its own; the second result is what the target makes superfluous.

        Args:
            memo: entries that need not be generated again.

        Raises:
            PatchkitError: the module as a whole is unusable (imports, parts).
        """
        live, retired = self._split()
        self.some_retired = bool(retired)
        self.imports = manifest_imports(self.manifest.imports)
        self._read_parts(entry for entry, _ in live)
        provided = self._provided(live)
        found: list[Attempt] = []
        for entry, group in live:
            ref = self.manifest.ref(entry, group)
            try:
                with deep(ref, entry=ref, manifest=entry.where):
                    found.append(self._attempt(entry, group, provided, memo))
            except PatchkitError as error:
                said = type(error)(*placed(error.findings, entry, ref))
                found.append(Attempt(entry, group, ref, error=said))
        return found, retired

    # ---- entries ----------------------------------------------------------------------------------------------

    def _split(self) -> tuple[list[tuple[Entry, ClassGroup | None]], list[Retired]]:
        live: list[tuple[Entry, ClassGroup | None]] = []
        retired: list[Retired] = []
        targets = self.workspace.targets()
        for entry, group in self.manifest.all_entries():
            probe = first_that_holds(self.conditions(entry), targets)
            if probe is None:
                live.append((entry, group))
                ref = self.manifest.ref(entry, group)
                self.doubtful[ref] = tuple(f.at(entry=ref) for f in gone(self.conditions(entry), targets))
            else:
                ref = self.manifest.ref(entry, group)
                retired.append(Retired(entry, ref, ref.partition("::")[2], probe))
        return live, retired

    def conditions(self, entry: Entry) -> tuple[Probe, ...]:
        """The removal conditions that count for `entry`."""
        return entry.remove_when or self.manifest.remove_when

    def needs_retired(self, attempts: Sequence[Attempt], retired: Sequence[Retired]) -> list[Finding]:
        """Findings for live entries that depend on a retired one."""
        gone = {r.name for r in retired} | {r.ref for r in retired}
        return [
            finding(
                "PK230",
                f"{a.ref} depends on {name}, which is retired on this target",
                entry=a.ref,
                manifest=a.entry.where,
                help="Give both the same removal condition, or make this entry stand without the other.",
            )
            for a in attempts
            for name in a.entry.depends_on
            if name in gone
        ]

    def _read_parts(self, entries: Iterator[Entry]) -> None:
        for entry in entries:
            if entry.part is None or entry.part in self.parts:
                continue
            path = self.folder / entry.part
            shown = path.relative_to(self.root).as_posix()
            try:
                data = read_regular(path)
                text = data.decode("utf-8").replace("\r\n", "\n")
            except (OSError, UnicodeDecodeError) as error:
                raise ManifestError(
                    finding("PK024", f"the part {shown} cannot be read: {error}", manifest=entry.where)
                ) from error
            self.parts[entry.part] = read_part(text, shown, self.dotted)

    def _provided(self, live: Sequence[tuple[Entry, ClassGroup | None]]) -> dict[str, str]:
        names: dict[str, str] = {need.bound: need.statement() for need in self.imports}
        for entry, group in live:
            if group is not None:
                names[group.name] = f"class {group.name} of this module"
            elif entry.part is None and entry.generated_name:
                names[entry.generated_name] = f"entry {entry.generated_name} of this module"
        for part in self.parts.values():
            names |= dict.fromkeys(part.names, f"defined in {part.path}")
            names |= {need.bound: need.statement() for need in part.needs if need.guard == "none"}
        return names

    def _attempt(
        self, entry: Entry, group: ClassGroup | None, provided: Mapping[str, str], memo: Memo | None
    ) -> Attempt:
        ref = self.manifest.ref(entry, group)
        if memo is None:
            return Attempt(entry, group, ref, self._asking(entry, group, provided))
        inputs = self._inputs(entry, group, provided)
        kept = memo.find(inputs)
        if kept is not None:
            return Attempt(entry, group, ref, kept=kept)
        attempt = Attempt(entry, group, ref, self._asking(entry, group, provided))
        assert attempt.product is not None
        memo.keep(inputs, attempt.product)
        return attempt

    def _inputs(self, entry: Entry, group: ClassGroup | None, provided: Mapping[str, str]) -> Inputs:
        return Inputs(
            entry=entry,
            pin=None if entry.kind == "owned" else entry.pin or self.manifest.pin,
            ref=self.manifest.ref(entry, group),
            module=self.dotted,
            marker=self.marker,
            group=group.name if group else None,
            above=_names_above(entry, group),
            provided=provided,
            removal=self.conditions(entry),
            part=self._part_of(entry),
        )

    def _asking(self, entry: Entry, group: ClassGroup | None, provided: Mapping[str, str]) -> GeneratedEntry:
        with elsewhere.asked() as pins:
            made = self._entry(entry, group, provided)
        return replace(made, asks=tuple(sorted(pins)))

    def _entry(self, entry: Entry, group: ClassGroup | None, provided: Mapping[str, str]) -> GeneratedEntry:
        ref = self.manifest.ref(entry, group)
        if entry.kind == "owned":
            return self._owned(entry, ref)
        pin = entry.pin or self.manifest.pin
        assert pin is not None
        assert entry.symbol is not None
        source, target = self.workspace.upstream(pin), self.workspace.target_of(pin)
        symbol = symbol_of(entry, source)
        setting = Setting(
            entry=ref,
            module=self.dotted,
            group=group.name if group else None,
            above=_names_above(entry, group),
            provided=provided,
            marker=self.marker,
            pin_text=self.workspace.describe(pin),
            pins={name: self.workspace.describe(name) for name in self.workspace.pins.pins},
            read=self.workspace.read,
            removal=self.conditions(entry),
            package=self.package,
        )
        if entry.kind == "delegate":
            made = self._delegate(entry, symbol, setting, group, pin)
        else:
            made = generate_copy(entry, symbol, source, target, setting)
        return replace(made, watched=tuple(self._watched(entry)))

    def _delegate(
        self, entry: Entry, symbol: Symbol, setting: Setting, group: ClassGroup | None, pin: str
    ) -> GeneratedEntry:
        target = self.workspace.target_of(pin)
        made = delegate_text(entry, symbol, group.name if group else None, setting, target)
        name = entry.name or symbol.name
        body = made.buffer
        renamed: list[NameChange] = []
        if name != symbol.name:
            body, renamed = rename(body, symbol.name, name, symbol.file)
        provided = {**setting.provided, **dict.fromkeys(made.bound, "how the original is reached")}
        inner = replace(setting, provided=provided)
        plan = resolve(entry, symbol, body, made.applied.rebind, self.workspace.upstream(pin), target, inner, name)
        plan = replace(plan, imports=(*plan.imports, *made.imports), statements=(*plan.statements, *made.statements))
        before = Text(body.text.encode())
        body, changes = edit_names(body, plan, symbol.file)
        note = signature_note(symbol, body, plan.rebindings)
        if made.after:
            body += Buffer.emitted(made.after, (), "owned")
        body = put_in_place(body, "    " if group else "", symbol)
        header = entry_header(
            entry,
            source=f"{symbol.file.path}, {symbol.qualname}; {setting.pin_text}",
            signature=note,
            rebindings=plan.rebindings,
            rewritten=rewritten(plan, before),
            renamed=(symbol.name, name) if name != symbol.name else None,
            removal=setting.removal,
        )
        findings = placed((*made.findings, *plan.findings), entry, setting.entry)
        return GeneratedEntry(
            entry,
            setting.entry,
            name,
            symbol,
            made.applied,
            plan,
            tuple(header),
            body,
            (*renamed, *changes),
            made.own,
            note,
            findings,
        )

    def _owned(self, entry: Entry, ref: str) -> GeneratedEntry:
        assert entry.part is not None
        part = self.parts[entry.part]
        if entry.name is not None and entry.name not in part.names:
            raise ManifestError(
                finding(
                    "PK019",
                    f"{part.path} does not define {entry.name}",
                    manifest=entry.where,
                    help=f"It defines: {', '.join(sorted(part.names)) or 'nothing'}.",
                )
            )
        watched = tuple(self._watched(entry))
        header = entry_header(
            entry, source=None, signature=None, rebindings={}, renamed=None, removal=self.conditions(entry)
        )
        text = self._part_of(entry)
        body = Buffer.emitted(text, (), "owned") if text else Buffer()
        return GeneratedEntry(
            entry, ref, entry.name or entry.part, None, None, None, tuple(header), body, watched=watched
        )

    def _part_of(self, entry: Entry) -> str | None:
        """The owned text that stands in place of this entry: the first entry of a part stands for all of it."""
        if entry.part is None:
            return None
        first = next(e for e, _ in self.manifest.all_entries() if e.part == entry.part)
        return self.parts[entry.part].body if first is entry else ""

    def _watched(self, entry: Entry) -> Iterator[Watched]:
        """The symbols an entry mirrors: on the target, or on the donor when the target lacks them."""
        for code in entry.watch:
            module, qualname = parse_reference(code.text, code.position)
            upstream = next((u for u in self.workspace.providers(module) if module in u.modules()), None)
            if upstream is None:
                raise DeltaError(
                    finding("PK205", f"no pin has a module {module}", manifest=code.position, help="Correct `watch`.")
                )
            symbol = find_symbol(upstream.read(module), qualname)
            yield Watched(symbol, completions(symbol, upstream))

    # ---- the module -------------------------------------------------------------------------------------------

    def assembled(self, attempts: Sequence[Attempt], retired: Sequence[Retired]) -> GeneratedModule:
        """The module of entries that were all generated.

        Raises:
            PatchkitError: it does not compile, or a name does not resolve.
        """
        live = [(a.product, a.group) for a in attempts if a.product is not None]
        products = tuple(product for product, _ in live)
        files = {(file.pin, file.path): file for p in products for file in p.files}  # pins may have a file of one path
        findings = [f for p in products for f in (*p.findings, *self.doubtful.get(p.ref, ()))]
        if not products:
            return GeneratedModule(self.manifest, Buffer(), (), tuple(retired), (), tuple(findings))
        block, more = self._import_block(products)
        findings += more
        header = file_header(
            manifest=self.manifest.path,
            summary=self.manifest.summary,
            module=self.manifest.module,
            pins=[self.workspace.describe(pin) for pin in sorted({pin for pin, _ in files})],
            files=files.values(),
        )
        top = header + Buffer.emitted(f"\n{block.strip()}\n" if block.strip() else "", (), "owned")
        buffer = top + Buffer(run for _, run in bodies(live))
        own = self._own_text(top.text, live)
        parts = {part.path: "\n" * (part.first_line - 1) + part.body for part in self.parts.values()}
        prove_module(self.manifest, own, Places(self.manifest, parts, self.marker))
        return GeneratedModule(
            self.manifest,
            buffer,
            products,
            tuple(retired),
            tuple(self.parts.values()),
            tuple(findings),
            buffer.text,
            outline(buffer),
            own,
        )

    def draft(self, attempts: Sequence[Attempt]) -> OwnText:
        """The module as far as it could be generated, unproved: what its own code refers to."""
        live = [(a.product, a.group) for a in attempts if a.product is not None]
        block, _ = self._import_block([product for product, _ in live])
        return self._own_text(block, live)

    def _own_text(self, top: str, live: Sequence[tuple[Product, ClassGroup | None]]) -> OwnText:
        made = [product for product, _ in live]
        needs = [*self._imports_of(made), *(n for part in self.parts.values() for n in part.needs if n.guard == "none")]
        imports = tuple(dict.fromkeys((n.module, n.attribute, n.bound) for n in needs))
        return own_text(self.dotted, top, list(bodies(live)), {p.ref: g.name if g else "" for p, g in live}, imports)

    def _imports_of(self, products: Sequence[Product]) -> Sequence[ImportNeed]:
        """The manifest's imports; where entries retired, only those that the others name: a target may lack the rest."""
        if not self.some_retired:
            return self.imports
        words = {word for product in products for word in re.findall(r"\w+", product.body.text)}
        return [need for need in self.imports if need.bound in words]

    def _import_block(self, products: Sequence[Product]) -> tuple[str, list[Finding]]:
        extra = [*self._imports_of(products), *(need for part in self.parts.values() for need in part.needs)]
        plans = [p.plan for p in products if p.plan is not None]
        own = NamePlan(
            imports=tuple(extra),
            future_annotations=any(part.future_annotations for part in self.parts.values()),
            annotated=any(part.annotated for part in self.parts.values()),
            label=f"{self.manifest.module} (manifest imports and parts)",
        )
        plans.append(own)
        needs, findings = merge_imports(plans)
        block = render_imports(needs, merge_statements(plans), first_party=[self.package])
        return block, [f.at(manifest=self.manifest.where) for f in findings]


def _names_above(entry: Entry, group: ClassGroup | None) -> frozenset[str]:
    """Names that the generated class binds before this member."""
    members = group.members if group is not None else ()
    before = members[: next((i for i, member in enumerate(members) if member is entry), 0)]
    own = group.field_names if group is not None else ()
    return frozenset([*own, *(member.generated_name for member in before if member.generated_name)])
