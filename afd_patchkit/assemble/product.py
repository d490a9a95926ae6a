"""What one entry contributes to its module, as plain data: it can be kept between runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from afd_patchkit.assemble.entry import GeneratedEntry
from afd_patchkit.assemble.outline import verbatim_lines
from afd_patchkit.assemble.record import entry_record
from afd_patchkit.delta.buffer import Buffer, Run
from afd_patchkit.findings.finding import Finding, Position, Severity
from afd_patchkit.manifest.nested import nested
from afd_patchkit.names.model import ImportNeed, NamePlan
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.text import SourceFile, Span

ReadFile = Callable[[str, str], SourceFile]
"""Gives the file of a pin and a dotted module name."""


@dataclass(frozen=True)
class Product:
    """One entry as its module needs it.

    Attributes:
        ref: `module.py::name`.
        symbol: upstream's `package.module:Qual.name`; empty for owned code.
        files: the upstream files whose text it holds, that of its symbol first.
        spans: the bytes of the symbol in its file.
        watched: the files of symbols that owned code mirrors.
        header: comment lines above it.
        body: its text, indented for its place.
        plan: the imports that its names need; its edits have been made.
        record: its part of the lock.
        deltas: how many it has, those inside others too.
        upstream_lines: non-blank lines of the symbol.
        verbatim_lines: those that stand whole in `body`.
        findings: what does not stop generation.
        asks: pins all of whose files were searched for globals that they set.
    """

    ref: str
    symbol: str
    files: tuple[SourceFile, ...]
    spans: tuple[Span, ...]
    watched: tuple[SourceFile, ...]
    header: tuple[str, ...]
    body: Buffer
    plan: NamePlan | None
    record: Mapping[str, Any]
    deltas: int = 0
    upstream_lines: int = 0
    verbatim_lines: int = 0
    findings: tuple[Finding, ...] = ()
    asks: tuple[str, ...] = ()

    @property
    def upstream_text(self) -> str | None:
        """Upstream's text of the symbol; None for owned code."""
        if not self.files:
            return None
        return "".join(self.files[0].slice(span) for span in self.spans).removesuffix("\n") + "\n"


def product_of(generated: GeneratedEntry) -> Product:
    """What a generated entry contributes."""
    symbol, applied, plan = generated.symbol, generated.applied, generated.plan
    files = [symbol.file] if symbol is not None else []
    if applied is not None:
        files += [file for file, _ in applied.taken.values()]
    copied = symbol is not None and generated.entry.kind in ("copy", "backport")
    return Product(
        ref=generated.ref,
        symbol=symbol.reference if symbol is not None else "",
        files=tuple(dict.fromkeys(files)),
        spans=symbol.spans if symbol is not None else (),
        watched=tuple(dict.fromkeys(w.symbol.file for w in generated.watched)),
        header=generated.header,
        body=generated.body,
        plan=replace(plan, edits=()) if plan is not None else None,
        record=entry_record(generated),
        deltas=sum(1 for _ in nested(generated.entry.deltas)),
        upstream_lines=_code_lines(symbol) if copied and symbol else 0,
        verbatim_lines=verbatim_lines(generated.body, symbol.file) if copied and symbol else 0,
        findings=generated.findings,
        asks=generated.asks,
    )


def _code_lines(symbol: Symbol) -> int:
    return sum(1 for first, last in symbol.line_ranges for line in symbol.file.lines(first, last) if line.strip())


# ---- kept between runs ------------------------------------------------------------------------------------------


def to_json(product: Product) -> dict[str, Any]:
    """The product as JSON data: upstream text is named by file and bytes, findings are without their place in the manifest."""
    plan = product.plan
    return {
        "ref": product.ref,
        "symbol": product.symbol,
        "files": [_named(file) for file in product.files],
        "spans": [[span.start, span.end] for span in product.spans],
        "watched": [_named(file) for file in product.watched],
        "header": list(product.header),
        "body": [_run_to_json(run, product.files) for run in product.body.runs],
        "plan": None
        if plan is None
        else {
            "imports": [[need.module, need.attribute, need.alias, need.guard, need.hidden] for need in plan.imports],
            "statements": list(plan.statements),
            "rebindings": dict(plan.rebindings),
            "future_annotations": plan.future_annotations,
            "annotated": plan.annotated,
            "label": plan.label,
        },
        "record": dict(product.record),
        "deltas": product.deltas,
        "upstream_lines": product.upstream_lines,
        "verbatim_lines": product.verbatim_lines,
        "findings": [asdict(replace(found, manifest=None)) for found in product.findings],
        "asks": list(product.asks),
    }


def from_json(kept: Mapping[str, Any], where: Position, read: ReadFile) -> Product | None:
    """The product that `to_json` wrote; None when an upstream file is another one now.

    Args:
        kept: the JSON data.
        where: the entry's place in its manifest, for findings.
        read: gives upstream files.
    """
    files = _read(kept["files"], read)
    watched = _read(kept["watched"], read)
    if files is None or watched is None:
        return None
    plan = kept["plan"]
    return Product(
        ref=kept["ref"],
        symbol=kept["symbol"],
        files=files,
        spans=tuple(Span(*pair) for pair in kept["spans"]),
        watched=watched,
        header=tuple(kept["header"]),
        body=Buffer(_run_from_json(run, files) for run in kept["body"]),
        plan=None
        if plan is None
        else NamePlan(
            imports=tuple(ImportNeed(*need) for need in plan["imports"]),
            statements=tuple(plan["statements"]),
            rebindings=plan["rebindings"],
            future_annotations=plan["future_annotations"],
            annotated=plan["annotated"],
            label=plan["label"],
        ),
        record=kept["record"],
        deltas=kept["deltas"],
        upstream_lines=kept["upstream_lines"],
        verbatim_lines=kept["verbatim_lines"],
        findings=tuple(_finding(found, where) for found in kept["findings"]),
        asks=tuple(kept["asks"]),
    )


def _finding(kept: Mapping[str, Any], where: Position) -> Finding:
    upstream = Position(**kept["upstream"]) if kept["upstream"] else None
    changes = {"severity": Severity(kept["severity"]), "details": tuple(kept["details"])}
    return Finding(**{**kept, **changes, "upstream": upstream, "manifest": where})


def _named(file: SourceFile) -> list[str]:
    return [file.pin, file.module, file.sha256]


def _read(named: list[list[str]], read: ReadFile) -> tuple[SourceFile, ...] | None:
    files = tuple(read(pin, module) for pin, module, _ in named)
    same = all(file.sha256 == digest for file, (_, _, digest) in zip(files, named, strict=True))
    return files if same else None


def _run_to_json(run: Run, files: tuple[SourceFile, ...]) -> list[Any]:
    if run.file is None:
        return [run.text, run.label, list(run.edits)]
    return [files.index(run.file), run.start, len(run.text.encode()), run.label, list(run.edits)]


def _run_from_json(kept: list[Any], files: tuple[SourceFile, ...]) -> Run:
    if isinstance(kept[0], str):
        text, label, edits = kept
        return Run(text, None, 0, tuple(edits), label)
    number, start, length, label, edits = kept
    file = files[number]
    return Run(file.slice(Span(start, start + length)), file, start, tuple(edits), label)
