"""Plans of symbols as JSON, for an interpreter that has only the standard library: `python portable.py ROOT < request`.

The request is `{"files": {path: text}, "symbols": [[reference, generated class or null], ...]}`.
"""

from __future__ import annotations

import json
import sys
import textwrap

sys.path.insert(0, sys.argv[1])

from afd_patchkit.names.imports import merge_imports, render_imports
from afd_patchkit.names.resolve import NameContext, apply_edits, resolve_names
from afd_patchkit.source.locate import find_symbol
from afd_patchkit.source.text import Text
from afd_patchkit.upstream.base import MemoryUpstream


def plan(upstream: MemoryUpstream, reference: str, generated_class: str | None) -> dict[str, object]:
    module, _, qualname = reference.partition(":")
    symbol = find_symbol(upstream.read(module), qualname)
    rendered = Text(textwrap.dedent(symbol.data.decode()).encode())
    placement = "class" if generated_class else "module"
    context = NameContext(
        symbol, placement, generated_class, symbol.name, "gen", "copy", False, {}, {}, upstream, upstream
    )
    found = resolve_names(rendered, context)
    return {
        "symbol": reference,
        "text": apply_edits(rendered, found.edits).text,
        "edits": [[e.span.start, e.span.end, e.text, e.reason] for e in found.edits],
        "imports": render_imports(merge_imports([found])[0]),
        "findings": [[f.code, f.message] for f in found.findings],
    }


if __name__ == "__main__":
    request = json.load(sys.stdin)
    source = MemoryUpstream(request["files"])
    json.dump([plan(source, *symbol) for symbol in request["symbols"]], sys.stdout)
