"""Make every free name of a rendered entry mean what it meant in the symbol's own upstream module."""

from __future__ import annotations

import ast

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.names.analysis import Analysis, mangle
from afd_patchkit.names.capture import captured_names
from afd_patchkit.names.meaning import MODULE_ATTRIBUTES, Meaning, Meanings
from afd_patchkit.names.members import (
    call_span,
    class_scope,
    first_argument,
    super_calls,
)
from afd_patchkit.names.model import ImportNeed, NameContext, NameEdit, NamePlan, Reason, apply_edits
from afd_patchkit.names.notes import entry_notes, rewritten_note
from afd_patchkit.names.private import inside_functions, mangled, mangled_differently
from afd_patchkit.names.relative import absolute_edits, relative_imports
from afd_patchkit.names.scope import Use
from afd_patchkit.names.scopes import use_span
from afd_patchkit.names.verify import problems
from afd_patchkit.source.text import SourceFile, Span, Text, parse_quietly

__all__ = [
    "ImportNeed",
    "NameContext",
    "NameEdit",
    "NamePlan",
    "apply_edits",
    "has_future_annotations",
    "resolve_names",
]


def resolve_names(rendered: Text, context: NameContext) -> NamePlan:
    """Decide what to import and what to change so that the rendered entry means what it meant upstream.

    Args:
        rendered: the entry's statements, at column 0, deltas applied.
        context: where it comes from and where it goes.

    Returns:
        Edits, imports and findings; a plan with an error among its findings (`refused`) must not be used.
    """
    try:
        nodes = parse_quietly(rendered.text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0) or 0
        report = finding(
            "PK316", f"the rendered text of {context.label} does not parse: {error}", details=(f"line {line}",)
        )
        return NamePlan(findings=(report.at(upstream=context.symbol.position),), label=context.label)
    return _Resolution(rendered, context, nodes).run()


def has_future_annotations(file: SourceFile) -> bool:
    """Whether the module starts with `from __future__ import annotations`."""
    known: bool | None = file.__dict__.get("_future_annotations")
    if known is None:
        known = file.__dict__["_future_annotations"] = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(alias.name == "annotations" for alias in node.names)
            for node in file.tree.body
        )
    return known


class _Resolution:
    """The resolution of the names of one entry."""

    def __init__(self, rendered: Text, context: NameContext, nodes: list[ast.stmt]) -> None:
        self.text, self.context, self.nodes = rendered, context, nodes
        symbol = context.symbol
        self.copied = context.kind != "delegate"
        private = symbol.classes[-1].name if symbol.classes and self.copied else None
        self.analysis = Analysis(nodes, private)
        self.free = self.analysis.free()
        self.unchanged = _dedented(symbol.data, symbol.indent) == rendered.data
        self.upstream = self.analysis if self.unchanged else Analysis(symbol.nodes, private)
        upstream_uses = self.free if self.unchanged else self.upstream.free()
        if not self.copied:
            upstream_uses = [use for use in upstream_uses if use.where != "body"]
        self.meanings = Meanings(context, self.analysis, {use.name for use in upstream_uses})
        self.future = has_future_annotations(symbol.file)
        self.is_method = bool(symbol.classes) and not any(isinstance(node, ast.ClassDef) for node in nodes)
        self.written = {use.name for use in self.free if use.ctx != "load" and use.kind != "global"}
        self.supers = super_calls(nodes) if self.is_method and self.copied and b"super" in rendered.data else {}

        self.edits: dict[Span, NameEdit] = {}
        self.edited: set[int] = set()
        self.fstring_edited = False
        self.imports: set[ImportNeed] = set()
        self.statements: list[str] = []
        self.rebindings: dict[str, str] = {}
        self.findings: dict[Finding, None] = {}
        self.late_seen: set[str] = set()
        self.origins: dict[str, str] = {}

    def run(self) -> NamePlan:
        if self.context.symbol.in_function:
            self._report("PK306", "is defined inside a function, so nothing outside can name its class or scope")
            return self._plan()
        if not self.unchanged and self.copied:
            for report in captured_names(self.upstream, self.analysis, self.context):
                self.findings[report] = None
        for use in self.free:
            if use.kind != "global":
                self._use(use)
        self._global_statements()
        self._relative_imports()
        self._private_names()
        self._backport()
        self._unused_declarations()
        self._notes()
        if not self._plan().refused:
            self._verify()
        return self._plan()

    def _plan(self) -> NamePlan:
        return NamePlan(
            tuple(sorted(self.edits.values(), key=lambda e: e.span)),
            tuple(sorted(self.imports, key=_import_order)),
            tuple(dict.fromkeys(self.statements)),
            dict(sorted(self.rebindings.items())),
            self.future,
            self.analysis.annotated,
            tuple(self.findings),
            self.context.label,
        )

    # ---- recording ----------------------------------------------------------------------------------------

    def _report(self, code: str, message: str, use: Use | None = None, help: str | None = None) -> None:
        symbol = self.context.symbol
        details = (self._place(use),) if use is not None else ()
        self.findings[
            finding(code, f"{symbol.reference}: {message}", upstream=symbol.position, details=details, help=help)
        ] = None

    def _place(self, use: Use) -> str:
        line = use.line()
        return f"line {line} of the rendered entry: {self.text.lines(line, line)[0].strip()}"

    def _edit(self, span: Span | None, text: str, name: str, reason: Reason, use: Use | None = None) -> bool:
        if span is None or span in self.edits or any(span.overlaps(other) for other in self._near(span)):
            self._report("PK316", f"the place of `{name}` cannot be told, so it cannot be changed to `{text}`", use)
            return False
        self.edits[span] = NameEdit(span, text, name, reason)
        if use is not None:
            self.edited.add(id(use.node))
            self.fstring_edited = self.fstring_edited or use.fstring is not None
        return True

    def _near(self, span: Span) -> list[Span]:
        return [other for other in self.edits if other.start < span.end and span.start < other.end]

    def _take(self, meaning: Meaning, name: str) -> None:
        self.imports.update(meaning.imports)
        self.statements += meaning.statements
        for report in meaning.findings:
            self.findings[report] = None
        if meaning.rebinding is not None:
            self.rebindings[name] = meaning.rebinding

    # ---- one use ------------------------------------------------------------------------------------------

    def _use(self, use: Use) -> None:
        name = use.name
        if self._special(use) or self._class_scope(use) or self._type_parameter(use):
            return
        here = use.where != "body" and not use.in_nested
        hidden = here and (name in self.context.class_names or (name in self.meanings.own and not use.own))
        late = self._is_late(name) and use.deferred and use.evaluated and use.where == "body"
        meaning = self.meanings.of(name, attribute=name in self.written or hidden, late=late)
        if meaning.origin == "unknown" and not use.evaluated:
            return
        if late and meaning.text is not None and meaning.origin == "upstream":
            self.late_seen.add(name)
        self.origins[name] = meaning.origin
        self._take(meaning, name)
        if meaning.types_only and use.evaluated and not (use.where == "annotation" and self.future):
            self._report(
                "PK304",
                f"`{name}` is used at run time, but upstream imports it under TYPE_CHECKING only",
                use,
                "Upstream would raise NameError here too; change the use by a delta, or declare `rebind`.",
            )
        if meaning.text is not None and self._can_write(use, meaning):
            span = use_span(use, self.text)
            if use.quoted is not None and (span is None or not _quotable(meaning.text)):
                return
            self._edit(span, self._in_fstring(use, meaning.text), name, meaning.reason, use)

    def _can_write(self, use: Use, meaning: Meaning) -> bool:
        if use.ctx == "load":
            return True
        text = meaning.text or ""
        if use.kind == "name" and all(part.isidentifier() for part in text.split(".")):
            return True
        self._report(
            "PK305",
            f"`{use.name}` is a global of the upstream module and is bound here by {_HOW.get(use.kind, use.kind)}, "
            f"which cannot bind `{text}`",
            use,
            "Replace the statement by a delta that assigns the value.",
        )
        return False

    def _in_fstring(self, use: Use, text: str) -> str:
        if use.fstring is None or '"' not in text:
            return text
        return text.replace('"', "'") if self.text.slice(self.text.node_span(use.fstring)).endswith('"') else text

    def _is_late(self, name: str) -> bool:
        late = self.context.late
        return late if isinstance(late, bool) else name in late

    def _special(self, use: Use) -> bool:
        """Write out `super()`, `__class__` and `globals()`; whether the use is one of them."""
        name = use.name
        if name == "super" and self.is_method and self.copied and use.class_node is None and self._is_builtin(name):
            self._super(use)
            return True
        if name == "__class__" and self.is_method and self.copied and use.scope is not self.analysis.outer:
            if use.ctx != "load":
                self._report("PK306", "`__class__` is written", use)
            else:
                self._class_text(use, "", "super")
            return True
        if name == "globals" and self._is_builtin(name) and self.meanings.home is not None:
            call = self._call_of(use)
            if call is not None and not call.args and not call.keywords:
                meaning = self.meanings.attribute("__dict__", "module attribute")
                self._take(meaning, name)
                self._edit(call_span(call, use, self.text), meaning.text or "", "globals", "module attribute", use)
                return True
        return False

    def _is_builtin(self, name: str) -> bool:
        return self.meanings.of(name).origin == "builtin"

    def _call_of(self, use: Use) -> ast.Call | None:
        for statement in self.nodes:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and node.func is use.node:
                    return node
        return None

    def _super(self, use: Use) -> None:
        call = self.supers.get(id(use.node))
        if call is None:
            explicit = self._call_of(use)
            if explicit is None or not explicit.args:
                self._report("PK306", "uses `super` otherwise than as a call, which works inside its class only", use)
            return
        first = first_argument(use, self.analysis)
        if first is None:
            self._report(
                "PK306",
                "`super()` stands where the function has no first argument (or a comprehension hides it)",
                use,
                "Write `super(Class, instance)` by a delta.",
            )
            return
        meaning = self.meanings.upstream_class()
        self._take(meaning, use.name)
        self._edit(call_span(call, use, self.text), f"super({meaning.text}, {first})", "super", "super", use)

    def _class_text(self, use: Use, suffix: str, reason: Reason) -> None:
        meaning = self.meanings.upstream_class()
        self._take(meaning, use.name)
        self._edit(use_span(use, self.text), f"{meaning.text}{suffix}", use.name, reason, use)

    def _class_scope(self, use: Use) -> bool:
        """Names that the header of a member reads from the class around it."""
        name = use.name
        if not self.context.symbol.classes or use.where == "body" or use.in_nested or use.ctx != "load":
            return False
        if use.quoted is not None or name in self.context.rebind:
            return False
        if name in {"__qualname__", "__module__"}:
            self._class_text(use, f".{name}", "class scope")
            return True
        found, problem = class_scope(self.context, name)
        if problem is not None:
            self.findings[problem] = None
        elif found:
            self._class_text(use, f".{name}", "class scope")
        return found

    def _type_parameter(self, use: Use) -> bool:
        """`T` of `class C[T]` around a member is `C.__type_params__[0]`."""
        classes = self.context.symbol.classes
        if not self.copied and use.where == "body":
            return False
        for depth in range(len(classes) - 1, -1, -1):
            names = [p.name for p in getattr(classes[depth], "type_params", ())]
            if use.name in names:
                meaning = self.meanings.upstream_class()
                self._take(meaning, use.name)
                path = (meaning.text or "").rsplit(".", len(classes) - 1 - depth)[0]
                text = f"{path}.__type_params__[{names.index(use.name)}]"
                self._edit(use_span(use, self.text), text, use.name, "type parameter", use)
                return True
        return False

    # ---- whole statements ---------------------------------------------------------------------------------

    def _global_statements(self) -> None:
        nodes = {id(use.node): use for use in self.free if use.kind == "global"}
        for use in nodes.values():
            node = use.node
            assert isinstance(node, ast.Global)
            kept: list[str] = []
            for name in node.names:
                looked_up = mangle(name, use.scope.private)
                meaning = self.meanings.of(looked_up, attribute=looked_up in self.written)
                if meaning.text is None:
                    kept.append(looked_up)
            if len(kept) < len(node.names):
                text = f"global {', '.join(kept)}" if kept else "pass"
                self._edit(use_span(use, self.text), text, ", ".join(node.names), "global statement", use)

    def _relative_imports(self) -> None:
        if not any(relative_imports([node]) for node in self.nodes):
            return
        symbol = self.context.symbol
        known = {(n.level, n.module) for n in relative_imports(symbol.nodes)} if self.copied else set()
        edits, refused = absolute_edits(self.nodes, self.text, symbol.file, known)
        for edit in edits:
            self._edit(edit.span, edit.text, edit.name, edit.reason)
        for node in refused:
            written = f"from {'.' * node.level}{node.module or ''} import {', '.join(a.name for a in node.names)}"
            self.findings[
                finding(
                    "PK314",
                    f"{symbol.reference}: `{written}` is relative, and not an import of upstream's own text that could be "
                    "made absolute",
                    upstream=symbol.position,
                    details=(f"line {node.lineno} of the rendered entry",),
                    help="Write the module's full name.",
                )
            ] = None

    def _private_names(self) -> None:
        if b"__" not in self.text.data or not mangled_differently(self.context):
            return
        ours = set() if self.copied else inside_functions(self.nodes)
        changes, refused = mangled(self.nodes, self.text, self.context, self.edited | ours)
        for span, new, name in changes:
            self._edit(span, new, name, "mangled")
        if refused is not None:
            self._report("PK307", refused[0], help=refused[1])

    # ---- checks -------------------------------------------------------------------------------------------

    def _backport(self) -> None:
        donor = self.meanings.donor
        if donor is None:
            return
        names = {use.name for use in self.free if use.where != "annotation" and use.kind != "global"}
        meant = {name: self.meanings.of(name, attribute=name in self.written).dependency for name in sorted(names)}
        for report in donor.findings(self.nodes, meant, {id(use.node) for use in self.free}):
            self.findings[report] = None

    def _unused_declarations(self) -> None:
        free = {use.name for use in self.free}
        for name in self.context.rebind:
            if name not in free:
                self._report("PK315", f"`rebind` names `{name}`, which is not free in the entry", help="Remove it.")
        if not isinstance(self.context.late, bool):
            for name in sorted(self.context.late - self.late_seen):
                self._report(
                    "PK315",
                    f"`late` names `{name}`, which no body of the entry reads from the upstream module",
                    help="Remove it.",
                )

    def _notes(self) -> None:
        symbol = self.context.symbol
        attributes = sorted(
            name for name, origin in self.origins.items() if origin == "module attribute" and name in MODULE_ATTRIBUTES
        )
        for report in entry_notes(self.nodes, self.free, symbol, attributes, self._is_builtin):
            self.findings[report] = None
        for report in rewritten_note(self.edits.values(), symbol):
            self.findings[report] = None

    def _verify(self) -> None:
        """The changed text still parses, its strings are the same, and every name in it is accounted for."""
        if not self.edits:
            return
        accounted = {*self.context.provided, *self.meanings.own}
        accounted |= {name for name, origin in self.origins.items() if origin in {"builtin", "own", "unknown"}}
        private = self.context.generated_class if self.context.placement == "class" else None
        strings = self.nodes if self.fstring_edited else ()
        for message, use in problems(self.text, self._plan(), accounted, private, strings):
            self._report("PK316", message, use)


_HOW = {
    "walrus": "`:=`",
    "def": "a definition",
    "alias": "an import",
    "except": "`except ... as`",
    "capture": "a pattern",
    "rest": "a pattern",
}


def _dedented(data: bytes, indent: str) -> bytes:
    if not indent:
        return data
    prefix = indent.encode("utf-8")
    return b"".join(line.removeprefix(prefix) for line in data.splitlines(keepends=True))


def _quotable(text: str) -> bool:
    return not any(c in text for c in "'\"\\\n")


def _import_order(need: ImportNeed) -> tuple[str, str, str, str]:
    return need.module, need.attribute or "", need.alias or "", need.guard
