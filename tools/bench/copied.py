"""The copy checker of Hugging Face transformers as a peer: every `# Copied from` block is found, extracted and compared.

A block `# Copied from a.b.C.m with X->Y` must equal `C.m` of module `a.b` once X is replaced by Y. What is timed is our own
work: reading from the verified sdist, parsing, locating both symbols, comparing line by line.
"""

from __future__ import annotations

import re
import time
from typing import Any

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.model import Pin
from afd_patchkit.source.locate import Symbol, definitions, find_symbol, first_line
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream

VERSION = "5.9.0"
_BLOCK = re.compile(rb"^[ \t]*# Copied from (transformers\.[\w.]+)(?: with (.*))?$", re.MULTILINE)


def fetch() -> Any:
    """Get the release that is measured."""
    return open_upstream("transformers", Pin(distribution="transformers", version=VERSION), SourceOptions())


def check_all(upstream: Any) -> dict[str, Any]:
    """Check every block of a release; counts and seconds."""
    files = dict(upstream.package_files())
    started = time.perf_counter()
    counts = {"blocks": 0, "equal": 0, "different": 0, "source not found": 0}
    for path, data in sorted(files.items()):
        if b"# Copied from" not in data:
            continue
        file = upstream.read(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        below = {line: d for d in definitions(file) for line in (d.node.lineno, first_line(d.node))}
        for block in _BLOCK.finditer(file.data):
            counts["blocks"] += 1
            line = file.line_of(block.start()) + 1
            while file.lines(line, line)[0].lstrip().startswith("#"):
                line += 1
            copy = below.get(line)
            source = _source(upstream, block[1].decode())
            if copy is None or source is None:
                counts["source not found"] += 1
                continue
            symbol = Symbol(file, copy.name, (copy.node,), copy.classes)
            same = _lines(symbol, []) == _lines(source, _replacements((block[2] or b"").decode()))
            counts["equal" if same else "different"] += 1
    return {**counts, "seconds": time.perf_counter() - started, "version": upstream.version}


def _source(upstream: Any, dotted: str) -> Symbol | None:
    parts = dotted.split(".")
    modules = upstream.modules()
    for cut in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:cut])
        if module in modules:
            try:
                return find_symbol(upstream.read(module), ".".join(parts[cut:]))
            except PatchkitError:
                return None
    return None


def _replacements(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in text.replace(" all-casing", "").split(","):
        old, arrow, new = part.strip().partition("->")
        if arrow:
            pairs.append((old.strip(), new.strip()))
    if "all-casing" in text:
        pairs += [(o.lower(), n.lower()) for o, n in pairs] + [(o.upper(), n.upper()) for o, n in pairs]
    return pairs


def _lines(symbol: Symbol, replacements: list[tuple[str, str]]) -> list[str]:
    """Lines of the definition without decorators, comments that mark copies and indentation."""
    node = symbol.nodes[-1]
    text = "\n".join(symbol.file.lines(node.lineno, node.end_lineno or node.lineno))
    for old, new in replacements:
        text = text.replace(old, new)
    lines = (line.strip() for line in text.split("\n"))
    body = [line for line in lines if line and not line.startswith("# Copied from")]
    head = re.sub(r"^(async def|def|class) \w+", r"\1 _", body[0])
    return [head, *body[1:]]
