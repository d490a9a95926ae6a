"""The engine's side of the sweep: one upstream function becomes the only entry of a manifest, and that a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from afd_patchkit.assemble.module import ModuleMaker
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.fence import MARKER
from afd_patchkit.findings.finding import Finding, Position
from afd_patchkit.model import ClassGroup, Code, Entry, GroupEntry, Manifest, Pin, Pins
from afd_patchkit.names.model import NameEdit, NamePlan
from afd_patchkit.upstream.base import Upstream
from tools.oracles.sweep.rewrite import Rebinding

PACKAGE = "afd_sweep"
GROUP = "Swept"
_HERE = Position("sweep.yaml", 1, 1)


@dataclass(frozen=True)
class Made:
    """One generated module.

    Attributes:
        text: its text.
        facts: the declared rebindings, for the oracle.
        declared: whether anything is declared, also without a change of the text (a function that calls itself).
        lines: first lines of the upstream definitions it claims to hold, decorators included.
        second: what the second proof says of it.
    """

    text: str
    facts: tuple[Rebinding, ...]
    declared: bool
    lines: tuple[int, ...]
    second: tuple[Finding, ...] = ()


class Engine:
    """Makes entries without deltas from one upstream."""

    def __init__(self, upstream: Upstream, pin: Pin) -> None:
        self.upstream, self.name = upstream, upstream.pin
        self.workspace = Workspace(Pins(schema=1, pins={self.name: pin}), lambda name, pin: upstream)

    def make(self, module: str, qualname: str, branch: int | None, *, group: bool) -> Made:
        """Generate one symbol, as a member of a class or as a function at module level.

        Args:
            module: the symbol's module.
            qualname: its name there.
            branch: which definition, when the name is bound several times; None for the only one.
            group: as a member of a class; else at module level.

        Raises:
            PatchkitError: the engine refuses it.
        """
        entry = Entry(symbol=Code(f"{module}:{qualname}", _HERE), reason="sweep", branch=branch, where=_HERE)
        item = GroupEntry.model_validate({"class": ClassGroup(name=GROUP, members=(entry,))}) if group else entry
        manifest = Manifest(
            schema=1, module="swept.py", summary="One function.", pin=self.name, entries=(item,), where=_HERE
        )
        maker = ModuleMaker(
            manifest, self.workspace, package=PACKAGE, marker=MARKER, folder=Path("manifests"), root=Path()
        )
        (attempt,), _ = maker.attempts()
        if attempt.error is not None:
            raise attempt.error
        made = maker.assembled([attempt], ())
        one = attempt.generated
        assert one is not None
        assert one.symbol is not None
        assert one.plan is not None
        nodes = [node for node in one.symbol.nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        lines = tuple(min([n.lineno, *(d.lineno for d in n.decorator_list)]) for n in nodes)
        static = [
            Rebinding("static", "staticmethod", "")
            for change in one.renamed
            if change.old.strip() == "@staticmethod" and not change.new
        ]
        facts = tuple(dict.fromkeys([*_facts(one.plan, nodes), *static]))
        second = tuple(maker.second_proof(made.text, [attempt]))
        return Made(made.text, facts, bool(facts or one.plan.rebindings), lines, second)


def _facts(plan: NamePlan, nodes: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> Iterator[Rebinding]:
    relative = [n for node in nodes for n in ast.walk(node) if isinstance(n, ast.ImportFrom) and n.level]
    relative.sort(key=lambda n: (n.lineno, n.col_offset))
    imports = [edit for edit in plan.edits if edit.reason == "relative import"]
    for statement, edit in zip(relative, imports, strict=True):
        yield Rebinding("import", "." * statement.level + (statement.module or ""), edit.text.strip())
    for edit in plan.edits:
        if edit.reason not in {"relative import", "global statement"}:
            yield _fact(edit)


def _fact(edit: NameEdit) -> Rebinding:
    if edit.reason == "super":
        if edit.name == "__class__":
            return Rebinding("class", "__class__", edit.text)
        call = ast.parse(edit.text, mode="eval").body
        assert isinstance(call, ast.Call)
        return Rebinding("super", "super", ast.unparse(call.args[0]))
    if edit.reason == "mangled":
        return Rebinding("mangled", edit.name, edit.text)
    if edit.reason == "class scope":
        return Rebinding("class-scope", edit.name, edit.text)
    if edit.name == "globals":
        return Rebinding("globals", "globals", edit.text)
    return Rebinding("name", edit.name, edit.text)
