"""The assignments by which hand files put their functions in the place of upstream's."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.copies.meaning import FileNames, Leads
from afd_patchkit.copies.reading import HandFile
from afd_patchkit.source.locate import FunctionNode
from afd_patchkit.source.syntax import FUNCTION, blocks

_WRAPPERS = frozenset({"staticmethod", "classmethod", "property"})


@dataclass(frozen=True, eq=False)
class HandInstall:
    """One assignment of something of ours to an attribute of an upstream module or class.

    Attributes:
        file: where it stands.
        node: the statement.
        target: what is replaced, `package.module.Class.method`; the definition where the name is only passed on.
        holder: the module or class whose attribute is set, as the statement names it.
        attribute: the attribute.
        name: the function or class of ours, by its name in the file; empty when it is another expression.
        descriptor: `staticmethod`, `classmethod` or `property` when it is wrapped so; empty otherwise.
        functions: the functions around the statement.
        foreign: the package that it belongs to when no pin has it; empty otherwise.
    """

    file: HandFile
    node: ast.stmt
    target: str
    holder: str
    attribute: str
    name: str
    descriptor: str
    functions: tuple[FunctionNode, ...]
    foreign: str = ""


def installs_of(file: HandFile, meaning: Leads) -> list[HandInstall]:
    """Every such assignment of a file, in order; those to what no pin has are `foreign`."""
    return list(_installs(file, file.source.tree.body, (), FileNames(file.source, meaning)))


def _installs(
    file: HandFile, body: Sequence[ast.stmt], functions: tuple[FunctionNode, ...], names: FileNames
) -> Iterator[HandInstall]:
    for node in body:
        for target, attribute, value in _sets(node):
            found = _install(file, node, (target, attribute, value), functions, names)
            if found is not None:
                yield found
        if isinstance(node, FUNCTION):
            yield from _installs(file, node.body, (*functions, node), names.within([node]))
        else:
            for block in blocks(node):
                yield from _installs(file, block.body, functions, names)


def _sets(node: ast.stmt) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    """Object, attribute and value of each attribute that a statement sets."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                yield target.value, target.attr, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Attribute):
        yield node.target.value, node.target.attr, node.value
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3:
            name = call.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield call.args[0], name.value, call.args[2]


def _install(
    file: HandFile,
    node: ast.stmt,
    what: tuple[ast.expr, str, ast.expr],
    functions: tuple[FunctionNode, ...],
    names: FileNames,
) -> HandInstall | None:
    target, attribute, value = what
    holder = names.of(target)
    if holder is None:
        return None
    package = holder.dotted.partition(".")[0]
    foreign = "" if _upstream(holder.dotted, names.meaning) else package
    if foreign and (not holder.module or package == file.source.module.partition(".")[0]):
        return None
    if isinstance(target, ast.Name) and any(_is_parameter(target.id, f) for f in functions[-1:]):
        return None
    descriptor = ""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _WRAPPERS and value.args:
        descriptor, value = value.func.id, value.args[0]
    led = names.meaning.follow(holder.dotted, attribute) if holder.module else None
    dotted = led.dotted if led is not None else f"{holder.dotted}.{attribute}"
    name = value.id if isinstance(value, ast.Name) else ""
    return HandInstall(file, node, dotted, holder.dotted, attribute, name, descriptor, functions, foreign)


def _upstream(dotted: str, meaning: Leads) -> bool:
    parts = dotted.split(".")
    return any(meaning.provider(".".join(parts[:count])) is not None for count in range(len(parts), 0, -1))


def _is_parameter(name: str, function: FunctionNode) -> bool:
    listed = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return name in {a.arg for a in listed}
