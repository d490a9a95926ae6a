"""Small invented packages on disk, and generated modules made from their symbols: written, imported and run."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from afd_patchkit.findings.finding import Position
from afd_patchkit.model import Code
from afd_patchkit.names.imports import merge_imports, merge_statements, render_imports
from afd_patchkit.names.resolve import NameContext, NamePlan, apply_edits, resolve_names
from afd_patchkit.source.locate import Symbol, find_symbol
from afd_patchkit.source.text import Text
from afd_patchkit.upstream.base import MemoryUpstream
from tests.invented import forget, text_of, write_tree


def dedent(files: Mapping[str, str]) -> dict[str, str]:
    return {path: text_of(text) for path, text in files.items()}


def code(text: str) -> Code:
    return Code(text, Position("m.yaml", 1, 1))


class World:
    """The target `acme` (on disk, importable) and perhaps a donor that only the engine sees."""

    def __init__(self, root: Path, files: Mapping[str, str], donor: Mapping[str, str] | None = None) -> None:
        self.root = root
        files = {"acme/__init__.py": "", **dedent(files)}
        self.target = MemoryUpstream(files, pin="acme", version="1.0")
        self.donor = (
            MemoryUpstream({"acme/__init__.py": "", **dedent(donor)}, pin="new", version="2.0") if donor else None
        )
        write_tree(root, files)
        self.count = 0

    def module(self, name: str) -> ModuleType:
        return importlib.import_module(name)

    def symbol(self, reference: str, kind: str = "copy") -> Symbol:
        module, _, qualname = reference.partition(":")
        source = self.donor if kind == "backport" and self.donor else self.target
        return find_symbol(source.read(module), qualname)

    def render(self, symbol: Symbol, change: Mapping[str, str]) -> str:
        text = textwrap.dedent(symbol.data.decode())
        for old, new in change.items():
            assert old in text
            text = text.replace(old, new)
        return text

    def plan(self, reference: str, *, change: Mapping[str, str] | None = None, **given: object) -> NamePlan:
        return self.plan_text(reference, change or {}, given)[1]

    def plan_text(self, reference: str, change: Mapping[str, str], given: dict[str, object]) -> tuple[Text, NamePlan]:
        kind = str(given.get("kind", "copy"))
        symbol = self.symbol(reference, kind)
        rendered = Text(self.render(symbol, change).encode())
        context = NameContext(
            symbol,
            given.get("placement", "class" if given.get("generated_class") else "module"),  # type: ignore[arg-type]
            given.get("generated_class"),  # type: ignore[arg-type]
            str(given.get("name", symbol.name)),
            "gen.mod",
            kind,  # type: ignore[arg-type]
            given.get("late", False),  # type: ignore[arg-type]
            {name: code(text) for name, text in given.get("rebind", {}).items()},  # type: ignore[attr-defined]
            given.get("provided", {}),  # type: ignore[arg-type]
            self.target,
            self.donor if kind == "backport" and self.donor else self.target,
            given.get("class_names", frozenset()),  # type: ignore[arg-type]
        )
        plan = resolve_names(rendered, context)
        return apply_edits(rendered, plan.edits), plan

    def source(
        self,
        reference: str,
        *,
        change: Mapping[str, str] | None = None,
        before: str = "",
        bases: str = "",
        **given: object,
    ) -> str:
        """Text of a generated module with one entry; `before` stands for what the manifest provides."""
        text, plan = self.plan_text(reference, change or {}, given)
        assert not plan.refused, plan.findings
        needs, findings = merge_imports([plan])
        assert findings == []
        body = text.text
        if given.get("generated_class"):
            body = f"class {given['generated_class']}({bases}):\n" + textwrap.indent(body, "    ")
        return render_imports(needs, merge_statements([plan])) + before + "\n" + body

    def generate(self, reference: str, **given: object) -> ModuleType:
        """The generated module of one entry, imported."""
        self.count += 1
        name = f"generated_{self.count}"
        (self.root / f"{name}.py").write_text(self.source(reference, **given))  # type: ignore[arg-type]
        importlib.invalidate_caches()
        return importlib.import_module(name)


@contextmanager
def importable(root: Path) -> Iterator[None]:
    """`root` is on the path; what was imported from it is forgotten afterwards."""
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))
        forget()
        importlib.invalidate_caches()


def codes(plan: NamePlan) -> list[str]:
    """Codes of the findings, notes aside."""
    return sorted({f.code for f in plan.findings if not f.code.startswith("PK6")})


def notes(plan: NamePlan) -> list[str]:
    return sorted({f.code for f in plan.findings if f.code.startswith("PK6")})
