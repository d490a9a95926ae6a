"""What goes into name resolution and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from afd_patchkit.findings.finding import Finding, Severity
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.text import Span, Text
from afd_patchkit.upstream.base import Upstream

if TYPE_CHECKING:
    from afd_patchkit.model import Code

Reason = Literal[
    "module global",
    "late binding",
    "super",
    "mangled",
    "class scope",
    "relative import",
    "rebind",
    "global statement",
    "module attribute",
    "type parameter",
]


@dataclass(frozen=True)
class NameContext:
    """Where an entry comes from and where it goes.

    Attributes:
        symbol: the upstream symbol.
        placement: `module` level of the generated module, or member of a generated `class`.
        generated_class: name of that class.
        generated_name: the entry's name in the generated module.
        generated_module: dotted name of the module being generated.
        kind: `copy`, `backport` or `delegate`.
        late: names to look up in upstream's module at call time; True for all.
        rebind: declared rebindings, name to expression.
        provided: names that the generated module binds by itself (manifest imports, sibling entries, parts), each with a
            description; the description of a manifest import is its statement.
        target: the upstream that the generated code runs on.
        source: the upstream that the symbol comes from: the donor of a backport, else the target.
        class_names: names that the generated class binds above this member.
    """

    symbol: Symbol
    placement: Literal["module", "class"]
    generated_class: str | None
    generated_name: str
    generated_module: str
    kind: Literal["copy", "backport", "delegate"]
    late: bool | frozenset[str]
    rebind: Mapping[str, Code]
    provided: Mapping[str, str]
    target: Upstream
    source: Upstream
    class_names: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """`generated.module:Class.name`, for messages."""
        inside = f"{self.generated_class}." if self.generated_class else ""
        return f"{self.generated_module}:{inside}{self.generated_name}"


@dataclass(frozen=True, slots=True)
class NameEdit:
    """One small change of the rendered text: the bytes of `span` become `text`."""

    span: Span
    text: str
    name: str
    reason: Reason


@dataclass(frozen=True, slots=True, order=True)
class ImportNeed:
    """One import of the generated module: `from module import attribute as alias`, or `import module as alias`.

    Attributes:
        module: absolute module.
        attribute: what is imported from it; None for `import module`.
        alias: the name bound, when it differs from what the statement binds by itself.
        guard: `type_checking` when only annotations need it.
        hidden: its package has something else under the module's name, so that an `import` with `as` would bind that.
    """

    module: str
    attribute: str | None = None
    alias: str | None = None
    guard: Literal["none", "type_checking"] = "none"
    hidden: bool = False

    @property
    def bound(self) -> str:
        """The name that the import binds."""
        return self.alias or self.attribute or self.module.partition(".")[0]

    @property
    def meaning(self) -> str:
        """What the bound name is, as a dotted path."""
        if self.attribute is not None:
            return f"{self.module}.{self.attribute}"
        return self.module if self.alias else self.module.partition(".")[0]

    def statement(self) -> str:
        """The statement that binds it."""
        if self.hidden:
            return f'{self.alias} = importlib.import_module("{self.module}")'
        renamed = f" as {self.alias}" if self.alias else ""
        if self.attribute is None:
            return f"import {self.module}{renamed}"
        return f"from {self.module} import {self.attribute}{renamed}"


@dataclass(frozen=True)
class NamePlan:
    """What makes the names of one entry right.

    Attributes:
        edits: disjoint, in order of position.
        imports: what the generated module must import.
        statements: whole statements to copy to the generated module's imports (guarded imports of a donor).
        rebindings: names that mean something else than upstream's object, and what they mean.
        future_annotations: upstream's module has `from __future__ import annotations`.
        annotated: the text holds annotations that this import changes.
        findings: errors, warnings and notes.
        label: the entry, for messages.
    """

    edits: tuple[NameEdit, ...] = ()
    imports: tuple[ImportNeed, ...] = ()
    statements: tuple[str, ...] = ()
    rebindings: Mapping[str, str] = field(default_factory=dict)
    future_annotations: bool = False
    annotated: bool = False
    findings: tuple[Finding, ...] = ()
    label: str = ""

    @property
    def refused(self) -> bool:
        """Whether an error says that the text cannot mean what it meant upstream."""
        return any(f.severity is Severity.ERROR for f in self.findings)


def apply_edits(text: Text, edits: tuple[NameEdit, ...]) -> Text:
    """The text with all edits applied."""
    pieces: list[bytes] = []
    at = 0
    for edit in edits:
        pieces += (text.data[at : edit.span.start], edit.text.encode("utf-8"))
        at = edit.span.end
    return Text(b"".join([*pieces, text.data[at:]]))
