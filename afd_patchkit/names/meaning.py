"""What a name of an upstream module means, and how the generated module gets at it."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from afd_patchkit.findings.finding import Finding, Severity, finding
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.names.analysis import Analysis, mangle
from afd_patchkit.names.backport import Dependency, Donor
from afd_patchkit.names.bindings import Binding, module_bindings
from afd_patchkit.names.elsewhere import set_elsewhere
from afd_patchkit.names.model import ImportNeed, NameContext, Reason
from afd_patchkit.names.provided import same_import, same_object
from afd_patchkit.names.stars import lookup
from afd_patchkit.names.ways import by_value, is_hidden, module_alias
from afd_patchkit.source.stdlib import BUILTINS
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Upstream

Origin = Literal["upstream", "provided", "rebind", "own", "builtin", "module attribute", "unknown"]

MODULE_ATTRIBUTES = frozenset(
    {
        "__name__",
        "__file__",
        "__doc__",
        "__spec__",
        "__package__",
        "__loader__",
        "__path__",
        "__cached__",
        "__builtins__",
    }
    | {"__annotations__", "__dict__"}
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """How one name is to be written and what the module must import for it.

    Attributes:
        origin: where the name comes from.
        text: what to write instead of the name; None when it stays.
        reason: why, when `text` is given.
        imports: what the module must import.
        statements: statements to copy into the module.
        types_only: upstream binds it for type checkers only.
        rebinding: what it means now, when that is not upstream's object.
        dependency: what to compare between donor and target.
        findings: what to report when the name is used.
    """

    origin: Origin
    text: str | None = None
    reason: Reason = "module global"
    imports: tuple[ImportNeed, ...] = ()
    statements: tuple[str, ...] = ()
    types_only: bool = False
    rebinding: str | None = None
    dependency: Dependency | None = None
    findings: tuple[Finding, ...] = ()


class Meanings:
    """The meaning of every name of one entry.

    Args:
        context: the entry.
        analysis: scopes of the rendered text.
        upstream_free: names that are free in upstream's own text of the symbol.
    """

    def __init__(self, context: NameContext, analysis: Analysis, upstream_free: Collection[str]) -> None:
        self.context = context
        self.upstream_free = upstream_free
        self.bound = {name for scope in analysis.outer.walk() if scope is not analysis.outer for name in scope.bound}
        self.used = {use.name for use in analysis.uses} | self.bound
        self.own = set(analysis.outer.bound) | {context.generated_name} if context.placement == "module" else set()
        self.donor = Donor(context) if context.kind == "backport" else None
        self.home: str | None = context.symbol.file.module
        self.home_file: SourceFile | None = context.symbol.file
        if self.donor is not None:
            self.home = self.home if self.home in context.target.modules() else None
            self.home_file = context.target.read(self.home) if self.home is not None else None
        self._cache: dict[tuple[str, bool, bool], Meaning] = {}
        self._alias: ImportNeed | None = None

    # ---- the upstream module ------------------------------------------------------------------------------------

    @property
    def alias(self) -> ImportNeed:
        """The import that gives the upstream module itself, under a name that nothing in the entry uses."""
        if self._alias is None:
            assert self.home is not None
            name = module_alias(self.home, self.context.target)
            taken = self.used | set(self.context.provided) | self.own | BUILTINS | self.context.class_names
            while name in taken:
                name += "_"
            self._alias = ImportNeed(self.home, alias=name, hidden=is_hidden(self.home, self.context.target))
        return self._alias

    def attribute(self, name: str, reason: Reason = "module global") -> Meaning:
        """`<module alias>.name`."""
        return Meaning("upstream", f"{self.alias.bound}.{name}", reason, (self.alias,))

    def upstream_binds(self, name: str) -> bool:
        """Whether upstream's module binds the name (in the source: the donor for a backport)."""
        found = lookup(self.context.symbol.file, name, self.context.source)
        return found.binding is not None

    # ---- names ----------------------------------------------------------------------------------------------

    def of(self, name: str, *, attribute: bool = False, late: bool = False) -> Meaning:
        """What `name` means at the level of the module.

        Args:
            name: the name, mangled as Python looks it up.
            attribute: the name is written, or hidden here, so it must be reached through its module.
            late: the manifest wants it looked up at call time.
        """
        key = (name, attribute, late)
        meaning = self._cache.get(key)
        if meaning is None:
            meaning = self._cache[key] = self._of(name, attribute, late)
        return meaning

    def _of(self, name: str, attribute: bool, late: bool) -> Meaning:
        context = self.context
        if name in context.rebind:
            return self._rebound(name)
        if name in self.own:
            if not context.symbol.classes and not attribute:
                return self._itself(name)
            attribute = True
        if name in context.provided and not (attribute and name in self.own):
            return self._provided(name)
        if self.donor is not None:
            found = self._backport(name, attribute, late)
        else:
            assert self.home is not None
            found = self._bound(context.symbol.file, self.home, context.target, name, attribute, late)
        return found or self._unbound(name)

    def _itself(self, name: str) -> Meaning:
        symbol = self.context.symbol
        if name != symbol.name and name in self.upstream_free and (self.upstream_binds(name) or name in BUILTINS):
            return self._shadowed(name, "the entry itself")
        if name != symbol.name or name not in self.upstream_free:
            return Meaning("own")
        note = finding(
            "PK634",
            f"`{name}` inside the copy of {symbol.reference} means the copy, not upstream's `{name}`",
            upstream=symbol.position,
            help=f"Give the entry another `name`, or declare `rebind: {{{name}: ...}}`, if upstream's is meant.",
        )
        return Meaning("own", rebinding="the generated copy itself", findings=(note,))

    def _provided(self, name: str) -> Meaning:
        described = self.context.provided[name]
        if name not in self.upstream_free:
            return Meaning("provided")
        binding = lookup(self.context.symbol.file, name, self.context.source).binding
        if self.context.kind == "backport":
            if binding is not None and same_import(name, described, binding):
                return self._backport(name, attribute=False, late=False) or Meaning("provided")
            return Meaning("provided", rebinding=described)
        if binding is None and name not in BUILTINS:
            return Meaning("provided")
        if binding is not None and same_object(self.context, name, described, binding):
            return Meaning("provided")
        return self._shadowed(name, described)

    def _shadowed(self, name: str, described: str) -> Meaning:
        symbol = self.context.symbol
        report = finding(
            "PK302",
            f"`{name}` is upstream's in {symbol.reference}, but the generated module binds it to {described}",
            upstream=symbol.position,
            help=f"If {described} is meant, say so: `rebind: {{{name}: {name}}}`; else rename it in the generated module.",
        )
        return Meaning("provided", findings=(report,))

    # ---- upstream's binding ---------------------------------------------------------------------------------

    def _bound(
        self, file: SourceFile, module: str, upstream: Upstream, name: str, attribute: bool, late: bool
    ) -> Meaning | None:
        found = lookup(file, name, upstream)
        binding = found.binding
        if binding is None:
            if not found.unread or name in BUILTINS:
                return None
            report = finding(
                "PK313",
                f"`{name}` in {module} can only come from `from {found.unread[0]} import *`, which cannot be read",
                upstream=self.context.symbol.position,
                help="It is taken from the upstream module; declare `rebind` or a manifest import to say it yourself.",
                # upstream's own text proves that the name is there
                severity=Severity.NOTE if name in self.upstream_free else None,
            )
            meaning = self.attribute(name) if attribute else Meaning("upstream", imports=(ImportNeed(module, name),))
            return replace(meaning, findings=(report,))
        types_only = binding.guard == "type_checking"
        if types_only and name in BUILTINS:
            # at run time the builtin is what upstream gets
            return Meaning("builtin")
        mutable = binding.mutable or (not types_only and name in set_elsewhere(upstream).get(module, ()))
        if attribute or mutable or not (binding.always or types_only):
            return replace(self.attribute(name), types_only=types_only)
        if late and not types_only:
            return self.attribute(name, "late binding")
        if found.unread and binding.kind in {"import", "from"}:
            return Meaning("upstream", imports=(ImportNeed(module, name),))
        return Meaning("upstream", imports=by_value(binding, module), types_only=types_only)

    def _backport(self, name: str, attribute: bool, late: bool) -> Meaning | None:
        assert self.donor is not None
        file = self.context.symbol.file
        donor = lookup(file, name, self.context.source).binding
        if donor is None:
            return None
        here: Meaning | None = None
        if self.home is not None and self.home_file is not None:
            here = self._bound(self.home_file, self.home, self.context.target, name, attribute, late)
        by_module = attribute or late or donor.mutable
        if donor.kind in {"import", "from", "star"} and not by_module and donor.always:
            imports = by_value(donor, file.module)
            if all(self.donor.importable(need) for need in imports):
                types_only = donor.guard == "type_checking"
                dependency = self.donor.dependency(name, imports[-1])
                return Meaning("upstream", imports=imports, types_only=types_only, dependency=dependency)
        if here is not None:
            return replace(here, dependency=self.donor.dependency(name, ImportNeed(file.module, name)))
        if not by_module and donor.guard in {"try", "conditional"}:
            copied = self._copied_statement(name, donor)
            if copied is not None:
                return copied
        if not by_module and donor.kind == "assign":
            logger = self._logger(name, donor)
            if logger is not None:
                return logger
        return Meaning("unknown", findings=(self.donor.missing(name, donor, self.home),))

    def _logger(self, name: str, donor: Binding) -> Meaning | None:
        """`logger = init_logger(__name__)` of a module that the target lacks: the same logger, by the donor's name."""
        node = donor.sites[-1].node
        value = getattr(node, "value", None)
        if not (
            isinstance(node, (ast.Assign, ast.AnnAssign))
            and isinstance(value, ast.Call)
            and not value.keywords
            and len(value.args) == 1
            and isinstance(value.args[0], ast.Name)
            and value.args[0].id == "__name__"
        ):
            return None
        file = self.context.symbol.file
        function = file.slice(file.node_span(value.func))
        root = function.partition(".")[0]
        if not root.isidentifier():
            return None
        maker = self.of(root)
        if maker.text is not None or maker.origin != "upstream" or maker.types_only:
            return None
        statement = f'{name} = {function}("{file.module}")'
        return Meaning(
            "upstream",
            imports=maker.imports,
            statements=(statement,),
            rebinding=statement.partition(" = ")[2],
            findings=maker.findings,
        )

    def _copied_statement(self, name: str, donor: Binding) -> Meaning | None:
        """The donor's guarded statement, when everything it needs can be had."""
        assert self.donor is not None
        top = donor.sites[-1].top
        if any(site.top is not top for site in donor.sites):
            return None
        copied = self.donor.guarded_statement(name, top)
        if copied is None:
            return None
        text, free, findings = copied
        imports: list[ImportNeed] = []
        for other in sorted(free):
            meaning = self.of(other)
            if meaning.text is not None or meaning.types_only or meaning.origin in {"unknown", "module attribute"}:
                return None
            imports += meaning.imports
        return Meaning("upstream", imports=tuple(imports), statements=(text,), findings=tuple(findings))

    # ---- names that upstream does not bind ------------------------------------------------------------------

    def _unbound(self, name: str) -> Meaning:
        if name in MODULE_ATTRIBUTES:
            if self.home is not None:
                return replace(self.attribute(name, "module attribute"), origin="module attribute")
            if name == "__name__":
                text = f'"{self.context.symbol.file.module}"'
                return Meaning("module attribute", text, "module attribute")
        elif name in BUILTINS:
            return Meaning("builtin")
        symbol = self.context.symbol
        names = {*module_bindings(symbol.file), *self.bound, *self.context.provided} - {name}
        near = nearest(name, names) or nearest(name, BUILTINS, likeness=0.8)[:1]
        report = finding(
            "PK301",
            f"nothing binds `{name}`: neither {symbol.file.module}, nor the manifest, nor Python's builtins",
            upstream=symbol.position,
            details=tuple(f"near: {other}" for other in near),
            help="Correct the name in the delta, add it to the manifest's `imports`, or declare a `rebind`.",
        )
        return Meaning("unknown", findings=(report,))

    # ---- declared rebindings --------------------------------------------------------------------------------

    def _rebound(self, name: str) -> Meaning:
        expression = self.context.rebind[name].text.strip()
        meant = f"`{expression}`"
        try:
            tree = ast.parse(expression, mode="eval").body
        except SyntaxError:
            report = finding(
                "PK316", f"`rebind` of `{name}`: {meant} is not an expression", help="Write one expression."
            )
            return Meaning("rebind", findings=(report.at(manifest=self.context.rebind[name].position),))
        imports: list[ImportNeed] = []
        statements: list[str] = []
        findings: list[Finding] = []
        edits: list[tuple[int, int, str]] = []
        data = expression.encode("utf-8")
        for use in Analysis([ast.Expr(tree)]).free():
            if use.name in self.context.provided or use.name in self.own or not isinstance(use.node, ast.Name):
                continue
            meaning = self._inner(use.name)
            imports += meaning.imports
            statements += meaning.statements
            findings += [f.at(manifest=self.context.rebind[name].position) for f in meaning.findings]
            if meaning.text is not None and use.node.lineno == 1:
                edits.append((use.node.col_offset, use.node.end_col_offset or 0, meaning.text))
        for start, end, text in sorted(edits, reverse=True):
            data = data[:start] + text.encode("utf-8") + data[end:]
        text = data.decode("utf-8")
        if not isinstance(tree, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            text = f"({text})"
        keep = text == name
        return Meaning(
            "rebind",
            None if keep else text,
            "rebind",
            tuple(imports),
            tuple(statements),
            rebinding=self.context.provided.get(name, text) if keep else text,
            findings=tuple(findings),
        )

    def _inner(self, name: str) -> Meaning:
        """A name of a rebinding's expression; there a rebound name has its plain meaning."""
        if self.donor is not None:
            found = self._backport(name, False, False)
        else:
            assert self.home is not None
            found = self._bound(self.context.symbol.file, self.home, self.context.target, name, False, False)
        return found or self._unbound(name)

    # ---- upstream's class -----------------------------------------------------------------------------------

    def upstream_class(self) -> Meaning:
        """An expression for the class that the symbol is defined in; names in `text`."""
        context = self.context
        classes = context.symbol.classes
        base = classes[0].name
        path = [base]
        for outer, inner in pairwise(classes):
            path.append(mangle(inner.name, outer.name))
        if self.donor is not None:
            missing = self.donor.missing_class(".".join(c.name for c in classes))
            if missing is not None:
                return Meaning("unknown", ".".join(path), "super", findings=(missing,))
        hidden = (
            base in self.bound
            or base in context.provided
            or base in context.rebind
            or base in self.own
            or base in context.class_names
            or base == context.generated_class
        )
        assert self.home is not None
        assert self.home_file is not None
        meaning = None
        if not hidden:
            meaning = self._bound(self.home_file, self.home, context.target, base, False, False)
        if meaning is None:
            meaning = self.attribute(base)
        return Meaning("upstream", ".".join([meaning.text or base, *path[1:]]), "super", meaning.imports)
