"""Names of a backport: taken from a donor, to be resolved on the target."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.names.analysis import Analysis
from afd_patchkit.names.bindings import Binding, absolute_module, module_bindings
from afd_patchkit.names.follow import (
    Destination,
    binds,
    class_members,
    differences,
    find_class,
    find_definition,
    names_of,
    resolve_dotted,
)
from afd_patchkit.names.model import ImportNeed, NameContext
from afd_patchkit.names.relative import absolute_edits
from afd_patchkit.source.locate import dotted, first_line
from afd_patchkit.source.syntax import TRY, blocks
from afd_patchkit.source.text import SourceFile, Text


@dataclass(frozen=True, slots=True)
class Dependency:
    """A name that exists on donor and target: what to compare.

    Attributes:
        name: the name in the entry.
        module: where it is imported from.
        attribute: what is imported; None for the module itself.
    """

    name: str
    module: str
    attribute: str | None


class Donor:
    """Looks a backport's names up on its target."""

    def __init__(self, context: NameContext) -> None:
        self.context = context
        self.source, self.target = context.source, context.target
        self.position = context.symbol.position

    def findings(
        self, nodes: Sequence[ast.stmt], meant: Mapping[str, Dependency | None], roots: Collection[int]
    ) -> Iterator[Finding]:
        """Everything that the target has otherwise than the donor, of what a backport uses.

        Args:
            nodes: its statements.
            meant: what to compare for each of its free names.
            roots: ids of the nodes that are its free names.
        """
        chains = _chains(nodes, roots)
        for name, dependency in meant.items():
            if dependency is not None:
                yield from self.compared(dependency)
                yield from self.module_attributes(dependency, chains.get(name, ()))
        yield from self.import_findings(nodes)
        yield from self.attribute_findings(nodes, {*self.context.provided, *self.context.rebind})

    # ---- imports ----------------------------------------------------------------------------------------------

    def owned(self, module: str) -> bool:
        """Whether the module is one that donor or target provide as Python (others are not ours to judge)."""
        return module in self.source.modules() or module in self.target.modules()

    def importable(self, need: ImportNeed) -> bool:
        """Whether an import works on the target, as far as its upstream can tell."""
        return not self.owned(need.module) or binds(self.target, need.module, need.attribute)

    def dependency(self, name: str, need: ImportNeed) -> Dependency | None:
        """What to compare for a name that both sides have."""
        if not self.owned(need.module):
            return None
        if need.attribute is None and need.alias is None:
            return Dependency(name, need.module.partition(".")[0], None)
        return Dependency(name, need.module, need.attribute)

    def missing(self, name: str, binding: Binding, home: str | None) -> Finding:
        """The finding that the target lacks what the donor has."""
        symbol = self.context.symbol
        if binding.module is not None and binding.kind in {"import", "from", "star"}:
            there = f"{binding.module}:{binding.attribute}" if binding.attribute else binding.module
            return self._missing(f"`{name}`", there, binding.module, binding.attribute or "")
        return self._missing(f"`{name}`", f"{symbol.file.module}:{name}", symbol.file.module, name)

    def _missing(self, what: str, there: str, module: str, attribute: str) -> Finding:
        near: list[str] = []
        if module in self.target.modules():
            near = [f"{module}:{n}" for n in nearest(attribute, names_of(self.target, module))]
        else:
            near = list(nearest(module, self.target.modules()))
            if attribute:
                near = [f"{m}:{attribute}" if attribute in names_of(self.target, m) else m for m in near]
        where = "" if module in self.target.modules() else f" (it has no module {module})"
        return finding(
            "PK318",
            f"{what} is {there} at the donor {self.source.pin} {self.source.version}; "
            f"the target {self.target.pin} {self.target.version} lacks it{where}",
            upstream=self.position,
            details=tuple(f"near on the target: {n}" for n in near),
            help=f"Add an entry for {there} to this manifest, import a stand-in, or declare `rebind` or a delta.",
        )

    def missing_class(self, qualname: str) -> Finding | None:
        """The finding that the target lacks the class that the symbol is a member of."""
        module = self.context.symbol.file.module
        if find_class(self.target, module, qualname) is not None:
            return None
        return self._missing(
            f"`{qualname}` (for super(), class-scope names or private names)", f"{module}:{qualname}", module, qualname
        )

    def import_findings(self, nodes: Iterable[ast.stmt]) -> Iterator[Finding]:
        """Imports inside bodies that fail on the target."""
        for node in _walk(nodes):
            if isinstance(node, ast.ImportFrom):
                module = absolute_module(self.context.symbol.file, node.module, node.level)
                if module is None:
                    continue
                for alias in node.names:
                    if alias.name != "*" and not self.importable(ImportNeed(module, alias.name)):
                        yield self._missing(
                            f"`{alias.name}` (imported in the body)", f"{module}:{alias.name}", module, alias.name
                        )
                    elif alias.name != "*":
                        yield from self.compared(Dependency(alias.asname or alias.name, module, alias.name))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if not self.importable(ImportNeed(alias.name)):
                        yield self._missing(f"`{alias.name}` (imported in the body)", alias.name, alias.name, "")

    # ---- guarded statements -----------------------------------------------------------------------------------

    def guarded_statement(self, name: str, top: ast.stmt) -> tuple[str, set[str], list[Finding]] | None:
        """Text of a guarded import statement with absolute imports, the names it needs, and what to report.

        None when it is more than imports and plain assignments, or needs a module that the target lacks without catching
        the failure.
        """
        if not all(_harmless(node) for node in _statements([top])):
            return None
        file = self.context.symbol.file
        findings: list[Finding] = []
        for node, caught in _imports([top], False):
            for module, attribute in _import_parts(file, node):
                if module is None:
                    return None
                need = ImportNeed(module, attribute)
                if self.importable(need):
                    continue
                if not caught:
                    return None
                findings.append(self._falls_back(name, need))
        span = file.line_span(first_line(top), top.end_lineno or top.lineno)
        text = Text(file.data[span.start : span.end])
        edits, _ = absolute_edits(ast.parse(text.data).body, text, file, None)
        data = text.data
        for edit in reversed(edits):
            data = data[: edit.span.start] + edit.text.encode("utf-8") + data[edit.span.end :]
        analysis = Analysis([top])
        free = {use.name for use in analysis.uses if use.ctx == "load"} - analysis.outer.bound
        return data.decode("utf-8").rstrip("\n"), free, findings

    def _falls_back(self, name: str, need: ImportNeed) -> Finding:
        return finding(
            "PK317",
            f"`{name}`: the guarded `{need.statement()}` of the donor {self.source.version} fails on the target "
            f"{self.target.version}, so its fallback is taken",
            upstream=self.position,
            help="Accept it if the fallback is meant; else add an entry or a `rebind`.",
        )

    # ---- comparison -------------------------------------------------------------------------------------------

    def compared(self, dependency: Dependency) -> Iterator[Finding]:
        """A finding when donor and target define a name differently."""
        there = find_definition(self.source, dependency.module, dependency.attribute)
        here = find_definition(self.target, dependency.module, dependency.attribute)
        if there is None or here is None or there.node is None or here.node is None:
            return
        yield from self._compare(dependency.name, there, here)

    def _compare(self, name: str, there: Destination, here: Destination) -> Iterator[Finding]:
        assert there.node is not None
        assert here.node is not None
        what = differences(there.node, here.node)
        if what:
            yield finding(
                "PK311",
                f"dependency `{name}` differs between the donor {self.source.version} and the target "
                f"{self.target.version}: {'; '.join(what)}",
                upstream=self.position,
                details=(f"donor: {there.reference}", f"target: {here.reference}"),
                help="Compare the two; accept the finding if the difference does not matter here, else add an entry for it.",
            )

    def module_attributes(self, dependency: Dependency, chains: Iterable[tuple[str, ...]]) -> Iterator[Finding]:
        """Attributes read from an upstream module: missing ones and ones that differ."""
        start = find_definition(self.target, dependency.module, dependency.attribute)
        if start is None or start.node is not None:
            return
        seen: set[tuple[str, str]] = set()
        for chain in sorted(chains):
            module = start.module
            for part in chain:
                if (module, part) in seen:
                    break
                if f"{module}.{part}" in self.target.modules() and part not in module_bindings(
                    self.target.read(module)
                ):
                    module = f"{module}.{part}"
                    continue
                seen.add((module, part))
                if binds(self.target, module, part):
                    yield from self.compared(Dependency(f"{dependency.name}.{part}", module, part))
                elif binds(self.source, module, part):
                    yield self._missing(f"`{'.'.join((dependency.name, *chain))}`", f"{module}:{part}", module, part)
                break

    # ---- attributes of parameters -----------------------------------------------------------------------------

    def attribute_findings(self, nodes: Iterable[ast.stmt], skip: Iterable[str]) -> Iterator[Finding]:
        """Attributes that the text reads from parameters of upstream classes and that the target's class lacks."""
        skipped = set(skip)
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from self._function_attributes(node, skipped)

    def _function_attributes(self, node: ast.FunctionDef | ast.AsyncFunctionDef, skip: set[str]) -> Iterator[Finding]:
        parameters: dict[str, tuple[Destination, Destination]] = {}
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for arg in arguments:
            for name in _annotation_names(arg.annotation):
                pair = self._class_pair(name) if name.partition(".")[0] not in skip else None
                if pair is not None:
                    parameters[arg.arg] = pair
        symbol = self.context.symbol
        if symbol.classes and arguments and not any(dotted(d) == "staticmethod" for d in node.decorator_list):
            qualname = ".".join(c.name for c in symbol.classes)
            there = find_class(self.source, symbol.file.module, qualname)
            here = find_class(self.target, symbol.file.module, qualname)
            if there is not None and here is not None:
                parameters[arguments[0].arg] = (there, here)
        if parameters:
            yield from self._reads(node, parameters)

    def _class_pair(self, name: str) -> tuple[Destination, Destination] | None:
        """The class that a dotted name is on the donor, and what the same path is on the target."""
        there = resolve_dotted(self.source, self.context.symbol.file, name)
        if there is None or not isinstance(there.node, ast.ClassDef):
            return None
        binding = module_bindings(self.context.symbol.file).get(name.partition(".")[0])
        here: Destination | None = None
        if binding is not None and binding.kind == "from" and binding.module is not None and "." not in name:
            here = find_definition(self.target, binding.module, binding.attribute)
        here = here or find_class(self.target, there.module, there.name)
        return (there, here) if here is not None and isinstance(here.node, ast.ClassDef) else None

    def _reads(self, node: ast.AST, parameters: Mapping[str, tuple[Destination, Destination]]) -> Iterator[Finding]:
        reads: dict[tuple[str, str], ast.Attribute] = {}
        stored: set[tuple[str, str]] = set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id in parameters:
                key = (inner.value.id, inner.attr)
                if isinstance(inner.ctx, ast.Load):
                    reads.setdefault(key, inner)
                else:
                    stored.add(key)
        for (parameter, attribute), read in sorted(
            reads.items(), key=lambda item: (item[1].lineno, item[1].col_offset)
        ):
            there, here = parameters[parameter]
            theirs, ours = class_members(self.source, there), class_members(self.target, here)
            if attribute not in theirs.names or (parameter, attribute) in stored:
                continue
            if attribute not in ours.names:
                near = nearest(attribute, ours.names)
                yield finding(
                    "PK312",
                    f"`{parameter}.{attribute}` is read, but {here.reference} of the target {self.target.version} has no "
                    f"`{attribute}` (the donor {self.source.version} has)",
                    upstream=self.position,
                    details=(f"line {read.lineno} of the rendered entry", *(f"near: {n}" for n in near)),
                    help="Change it by a delta, or give the parameter a class that has it.",
                )
                continue
            one, other = theirs.names[attribute], ours.names[attribute]
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and other is not None:
                yield from self._compare(
                    f"{parameter}.{attribute}",
                    Destination(there.module, f"{there.name}.{attribute}", there.file, one),
                    Destination(here.module, f"{here.name}.{attribute}", here.file, other),
                )


def _walk(nodes: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)


def _statements(nodes: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in _walk(nodes):
        if isinstance(node, ast.stmt):
            yield node


def _harmless(node: ast.stmt) -> bool:
    """Statements that may be copied to the head of a module: imports, flags, fallbacks."""
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Pass, ast.If, *TRY)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _imports(nodes: Iterable[ast.stmt], caught: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The import statements below `nodes`, each with whether a handler catches its failure."""
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, caught
        elif isinstance(node, (ast.If, *TRY)):
            catches = isinstance(node, TRY) and any(_catches(h) for h in node.handlers)
            for block in blocks(node):
                yield from _imports(block.body, caught or (catches and block.name == "body"))


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(dotted(k) in {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"} for k in kinds)


def _import_parts(file: SourceFile, node: ast.Import | ast.ImportFrom) -> list[tuple[str | None, str | None]]:
    """Module and attribute of everything that an import statement imports."""
    if isinstance(node, ast.Import):
        return [(alias.name, None) for alias in node.names]
    module = absolute_module(file, node.module, node.level)
    return [(module, alias.name if alias.name != "*" else None) for alias in node.names]


def _annotation_names(node: ast.expr | None) -> list[str]:
    """The classes an annotation names: `X`, `a.X`, `X | None`, `Optional[X]`, and the same in quotes; one class only."""
    if node is None:
        return []
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _annotation_names(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        found = [*_annotation_names(node.left), *_annotation_names(node.right)]
    elif isinstance(node, ast.Subscript) and dotted(node.value).rpartition(".")[2] == "Optional":
        found = _annotation_names(node.slice)
    else:
        found = [name] if (name := dotted(node)) else []
    return found if len(found) == 1 else []


def _chains(nodes: Iterable[ast.stmt], roots: Collection[int]) -> dict[str, set[tuple[str, ...]]]:
    """Attribute chains on free names: `a.b.c` gives `(b, c)` for `a`."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for statement in nodes:
        for node in ast.walk(statement):
            parts: list[str] = []
            inner: ast.AST = node
            while isinstance(inner, ast.Attribute):
                parts.append(inner.attr)
                inner = inner.value
            if parts and isinstance(inner, ast.Name) and id(inner) in roots:
                found.setdefault(inner.id, set()).add(tuple(reversed(parts)))
    return found
