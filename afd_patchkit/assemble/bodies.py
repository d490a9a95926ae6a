"""How the entries of a module stand below each other: heads of classes, what is said above each entry, its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from afd_patchkit.assemble.product import Product
from afd_patchkit.delta.buffer import Run
from afd_patchkit.model import ClassGroup


def bodies(products: Sequence[tuple[Product, ClassGroup | None]]) -> Iterator[tuple[Product, Run]]:
    """The runs of all entries, each with its product."""
    group: ClassGroup | None = None
    for product, owner in products:
        if owner is not None and owner is not group:
            yield product, Run("\n\n" + _class_header(owner), None, 0, (), "owned")
        elif owner is None:
            yield product, Run("\n\n", None, 0, (), "owned")
        else:
            yield product, Run("\n", None, 0, (), "owned")
        indent = "    " if owner is not None else ""
        yield product, Run("".join(f"{indent}{line}\n" for line in product.header), None, 0, (), "owned")
        for run in product.body.runs:
            yield product, run
        group = owner


def _class_header(group: ClassGroup) -> str:
    bases = ", ".join(base.text.strip() for base in group.bases)
    lines = [f"@{decorator.text.strip().removeprefix('@')}\n" for decorator in group.decorators]
    lines.append(f"class {group.name}({bases}):\n" if bases else f"class {group.name}:\n")
    if group.doc:
        doc = group.doc.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        body = "\n".join(("    " + line).rstrip() for line in doc.split("\n")).strip()
        end = "\n    " if "\n" in body else ""
        lines.append(f'    """{body}{end}"""\n\n')
    if group.fields is not None:
        lines += [("    " + line).rstrip() + "\n" for line in group.fields.text.strip("\n").split("\n")] + ["\n"]
    return "".join(lines)
