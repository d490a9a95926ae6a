"""Changes that may break who refers to a definition."""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tools.oracles.meaning.edits import (
    alias_of,
    alone,
    below_docstring,
    class_at,
    definition_at,
    fields_of,
    first_line,
    function_at,
    head_of,
    headed,
    left_without,
    members_of,
    on_parameters,
    operator,
    put_before,
    put_behind,
    reimported,
    replaced,
    swapped,
    taken_away,
)
from tools.oracles.meaning.sources import Listing, Sources
from tools.oracles.meaning.spots import FUNCTION, MOVED, Draw, Files, NotHere, Spot, one_of
from tools.oracles.meaning.standins import last_name

SOURCES: list[Sources] = []


def listing_of(spot: Spot, module: str) -> Listing:
    return SOURCES[-1].listing(module)


def chained(spot: Spot, files: Files, new: str | None) -> Files:
    """The imports that led to a definition lose its name, or get its new one: a release is consistent in itself."""
    for module, name, site in spot.chain:
        if module == spot.listing.module:
            continue
        node = site.node
        assert isinstance(node, ast.ImportFrom)
        aliases = [a for a in node.names if (a.asname or a.name) != name]
        if new is not None:
            aliases.append(ast.alias(new))
        listing = listing_of(spot, module)
        made = ast.unparse(ast.ImportFrom(node.module, aliases, node.level)) if aliases else "pass"
        if module in files:
            raise NotHere
        files[module] = replaced(
            listing, node.lineno, node.end_lineno or node.lineno, textwrap.indent(made, " " * node.col_offset)
        )
    return files


def _awaits(node: Any) -> bool:
    return any(isinstance(n, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for n in ast.walk(node)) or isinstance(
        node, ast.AsyncFunctionDef
    )


def _decorated(spot: Spot, decorator: str, arguments: str | None = None) -> Files:
    node = function_at(spot)
    if spot.owner is None or node.decorator_list or node.name.startswith("__"):
        raise NotHere
    head = head_of(node, node.args) if arguments is None else f"def {node.name}({arguments}):"
    body = first_line(node.body[0])
    if body <= node.lineno:
        raise NotHere
    text = textwrap.indent(f"{decorator}\n{head}", " " * node.col_offset)
    return {spot.listing.module: replaced(spot.listing, node.lineno, body - 1, text)}


def _class_head(spot: Spot, node: ast.ClassDef) -> str:
    return "\n".join(spot.listing.text.split("\n")[node.lineno - 1 : first_line(node.body[0]) - 1])


def _class_headed(spot: Spot, node: ast.ClassDef, head: str) -> Files:
    body = first_line(node.body[0])
    if body <= node.lineno:
        raise NotHere
    return {spot.listing.module: replaced(spot.listing, node.lineno, body - 1, " " * node.col_offset + head)}


def _stores(spot: Spot) -> list[ast.AST]:
    """The places that give an attribute its value."""
    if not spot.attribute:
        raise NotHere
    found: list[ast.AST] = []
    for node in spot.node.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == spot.attribute:
            found.append(node.target)
        if isinstance(node, ast.Assign):
            found += [t for t in node.targets if isinstance(t, ast.Name) and t.id == spot.attribute]
    for node in ast.walk(spot.node):
        if (
            isinstance(node, ast.Attribute)
            and node.attr == spot.attribute
            and isinstance(node.value, ast.Name)
            and node.value.id in {"self", "cls"}
        ):
            found.append(node)
    return found


@operator("remove")
def _remove(_: Draw, spot: Spot) -> Files:
    if isinstance(spot.node, (ast.Assign, ast.AnnAssign)):
        alone(spot.listing, spot.node)
        return chained(spot, {spot.listing.module: left_without(spot.listing, spot.node)}, None)
    node = definition_at(spot)
    return chained(spot, {spot.listing.module: left_without(spot.listing, node)}, None)


@operator("rename")
def _rename(_: Draw, spot: Spot) -> Files:
    new = spot.name + "_renamed"
    if isinstance(spot.node, (ast.Assign, ast.AnnAssign)):
        target = spot.node.targets[0] if isinstance(spot.node, ast.Assign) else spot.node.target
        if not isinstance(target, ast.Name):
            raise NotHere
        start, end = spot.listing.span(target)
        return chained(spot, {spot.listing.module: spot.listing.text[:start] + new + spot.listing.text[end:]}, new)
    node = definition_at(spot)
    lines = spot.listing.text.split("\n")
    lines[node.lineno - 1] = lines[node.lineno - 1].replace(f" {node.name}", f" {new}", 1)
    return chained(spot, {spot.listing.module: "\n".join(lines)}, new)


@operator("move away")
def _move_away(_: Draw, spot: Spot) -> Files:
    node, text = taken_away(spot)
    return chained(spot, {spot.listing.module: left_without(spot.listing, node), MOVED: text}, None)


@operator("class for function")
def _class_for_function(_: Draw, spot: Spot) -> Files:
    node = function_at(spot)
    if spot.owner is not None or node.args.posonlyargs:
        raise NotHere
    made = copy.deepcopy(node.args)
    made.args.insert(0, ast.arg("self"))
    text = f"class {node.name}:\n    def __init__({ast.unparse(made)}):\n        pass"
    return {spot.listing.module: replaced(spot.listing, first_line(node), node.end_lineno, text)}


@operator("function for class")
def _function_for_class(_: Draw, spot: Spot) -> Files:
    node = class_at(spot)
    text = f"def {node.name}(*args, **kwargs):\n    return None"
    return {
        spot.listing.module: replaced(
            spot.listing, first_line(node), node.end_lineno or 0, textwrap.indent(text, " " * node.col_offset)
        )
    }


@on_parameters("parameters in another order")
def _reorder(draw: Draw, a: ast.arguments, bound: int) -> None:
    required = len(a.args) - len(a.defaults)
    pairs = [i for i in range(bound, len(a.args) - 1) if (i < required) == (i + 1 < required)]
    if not pairs or a.posonlyargs:
        raise NotHere
    i = draw.choice(pairs)
    a.args[i], a.args[i + 1] = a.args[i + 1], a.args[i]
    if i >= required:
        a.defaults[i - required], a.defaults[i - required + 1] = a.defaults[i - required + 1], a.defaults[i - required]


@on_parameters("new required parameter")
def _required(draw: Draw, a: ast.arguments, bound: int) -> None:
    if draw.random() < 0.5:
        a.kwonlyargs.append(ast.arg("probe_new"))
        a.kw_defaults.append(None)
    else:
        a.args.insert(len(a.args) - min(len(a.defaults), len(a.args)), ast.arg("probe_new"))
        if len(a.args) - 1 - len(a.defaults) < bound:
            raise NotHere


@on_parameters("parameter gone")
def _gone(draw: Draw, a: ast.arguments, bound: int) -> None:
    count = len(a.args) - bound
    if count + len(a.kwonlyargs) <= 0 or a.posonlyargs:
        raise NotHere
    i = draw.randrange(count + len(a.kwonlyargs))
    if i < count:
        at = i + bound
        required = len(a.args) - len(a.defaults)
        if at >= required:
            del a.defaults[at - required]
        del a.args[at]
    else:
        del a.kwonlyargs[i - count], a.kw_defaults[i - count]


@on_parameters("parameter renamed")
def _renamed(draw: Draw, a: ast.arguments, bound: int) -> None:
    found = [*a.args[0 if a.posonlyargs else bound :], *a.kwonlyargs]
    one_of(draw, found).arg += "_renamed"


@on_parameters("another default")
def _default(draw: Draw, a: ast.arguments, bound: int) -> None:
    places: list[tuple[list[Any], int]] = [(a.defaults, i) for i in range(len(a.defaults))]
    places += [(a.kw_defaults, i) for i, d in enumerate(a.kw_defaults) if d is not None]
    values, i = one_of(draw, places)
    values[i] = ast.Constant("probe" if ast.unparse(values[i]) != "'probe'" else None)


@on_parameters("default gone")
def _no_default(draw: Draw, a: ast.arguments, bound: int) -> None:
    named = [i for i, d in enumerate(a.kw_defaults) if d is not None]
    if a.defaults and (not named or draw.random() < 0.7):
        del a.defaults[0]
    elif named:
        a.kw_defaults[draw.choice(named)] = None
    else:
        raise NotHere


@on_parameters("keyword-only")
def _keyword_only(draw: Draw, a: ast.arguments, bound: int) -> None:
    if a.vararg or len(a.args) <= bound or a.posonlyargs:
        raise NotHere
    at = draw.randrange(bound, len(a.args))
    required = len(a.args) - len(a.defaults)
    defaults = [a.defaults[i - required] if i >= required else None for i in range(at, len(a.args))]
    a.kwonlyargs[:0], a.kw_defaults[:0] = a.args[at:], defaults
    del a.args[at:], a.defaults[max(at - required, 0) :]


@on_parameters("positional-only")
def _positional_only(draw: Draw, a: ast.arguments, bound: int) -> None:
    if a.posonlyargs or len(a.args) <= bound:
        raise NotHere
    at = draw.randrange(bound + 1, len(a.args) + 1)
    a.posonlyargs, a.args = a.args[:at], a.args[at:]


@operator("sync or async")
def _async(_: Draw, spot: Spot) -> Files:
    node = function_at(spot)
    words = {last_name(d) for d in node.decorator_list}
    if words & {"property", "cached_property", "setter"} or _awaits(node) or node.name == "__init__":
        raise NotHere
    return {spot.listing.module: headed(spot.listing, node, node.args, "async def")}


@operator("a property now")
def _property(_: Draw, spot: Spot) -> Files:
    return _decorated(spot, "@property", "self")


@operator("a static method now")
def _static(_: Draw, spot: Spot) -> Files:
    return _decorated(spot, "@staticmethod")


@operator("a class method now")
def _class_method(_: Draw, spot: Spot) -> Files:
    return _decorated(spot, "@classmethod")


@operator("a method now")
def _undecorated(_: Draw, spot: Spot) -> Files:
    node = function_at(spot)
    words = [last_name(d) for d in node.decorator_list]
    if spot.owner is None or words not in (["property"], ["staticmethod"], ["classmethod"]):
        raise NotHere
    if sum(isinstance(n, FUNCTION) and n.name == node.name for n in spot.owner.body) > 1:
        raise NotHere
    return {spot.listing.module: replaced(spot.listing, first_line(node), node.lineno - 1, None)}


@operator("a generator now")
def _generator(_: Draw, spot: Spot) -> Files:
    node = function_at(spot)
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)) or isinstance(node, ast.AsyncFunctionDef):
        raise NotHere
    if node.name == "__init__":
        raise NotHere
    return {spot.listing.module: below_docstring(spot, "yield None")}


@operator("another return annotation")
def _gives(_: Draw, spot: Spot) -> Files:
    node = function_at(spot)
    if node.returns is None or node.name == "__init__":
        raise NotHere
    return {spot.listing.module: headed(spot.listing, node, node.args, gives="'dict[str, frozenset[bytes]]'")}


@operator("base gone")
def _no_base(draw: Draw, spot: Spot) -> Files:
    node = class_at(spot)
    head = _class_head(spot, node)
    if not node.bases or head.count(":") != 1:
        raise NotHere
    bases = list(node.bases)
    del bases[draw.randrange(len(bases))]
    words = [*(ast.unparse(b) for b in bases), *(ast.unparse(k) for k in node.keywords)]
    return _class_headed(spot, node, f"class {node.name}({', '.join(words)}):" if words else f"class {node.name}:")


@operator("new required field")
def _field_required(_: Draw, spot: Spot) -> Files:
    node = class_at(spot)
    required = [f for f in fields_of(node) if f.value is None]
    if required:
        return {spot.listing.module: put_behind(spot.listing, required[-1], "probe_new: int")}
    optional = fields_of(node)
    if not optional:
        raise NotHere
    return {spot.listing.module: put_before(spot.listing, optional[0], "probe_new: int")}


def _without_one(draw: Draw, spot: Spot, found: Sequence[ast.stmt]) -> Files:
    node = one_of(draw, found)
    alone(spot.listing, node)
    return {spot.listing.module: left_without(spot.listing, node)}


@operator("field gone")
def _field_gone(draw: Draw, spot: Spot) -> Files:
    return _without_one(draw, spot, fields_of(class_at(spot)))


@operator("field renamed")
def _field_renamed(draw: Draw, spot: Spot) -> Files:
    found = fields_of(class_at(spot))
    _, end = spot.listing.span(one_of(draw, found).target)
    return {spot.listing.module: f"{spot.listing.text[:end]}_renamed{spot.listing.text[end:]}"}


@operator("fields in another order")
def _field_order(draw: Draw, spot: Spot) -> Files:
    found = fields_of(class_at(spot))
    pairs = [(a, b) for a, b in pairwise(found) if (a.value is None) == (b.value is None)]
    one, other = one_of(draw, pairs)
    return {spot.listing.module: swapped(spot.listing, one, other)}


@operator("field with another default")
def _field_default(draw: Draw, spot: Spot) -> Files:
    found = [f for f in fields_of(class_at(spot)) if isinstance(f.value, ast.Constant)]
    start, end = spot.listing.span(one_of(draw, found).value)  # type: ignore[arg-type]
    return {spot.listing.module: f"{spot.listing.text[:start]}'probe'{spot.listing.text[end:]}"}


@operator("member gone")
def _member_gone(draw: Draw, spot: Spot) -> Files:
    return _without_one(draw, spot, members_of(class_at(spot)))


@operator("attribute renamed")
def _attribute_renamed(_: Draw, spot: Spot) -> Files:
    ends = sorted({spot.listing.span(n)[1] for n in _stores(spot)}, reverse=True)
    if not ends:
        raise NotHere
    text = spot.listing.text
    for end in ends:
        text = f"{text[:end]}_renamed{text[end:]}"
    return {spot.listing.module: text}


@operator("attribute of another type")
def _attribute_type(_: Draw, spot: Spot) -> Files:
    if not spot.attribute:
        raise NotHere
    for node in ast.walk(spot.node):
        target = getattr(node, "target", None)
        if isinstance(node, ast.AnnAssign) and (
            (isinstance(target, ast.Attribute) and target.attr == spot.attribute)
            or (isinstance(target, ast.Name) and target.id == spot.attribute)
        ):
            start, end = spot.listing.span(node.annotation)
            return {
                spot.listing.module: f"{spot.listing.text[:start]}'dict[str, frozenset[bytes]]'{spot.listing.text[end:]}"
            }
    raise NotHere


@operator("no import any more")
def _unimported(_: Draw, spot: Spot) -> Files:
    node, alias = alias_of(spot)
    return {spot.listing.module: reimported(spot, node, alias, "")}


@operator("imported from elsewhere")
def _from_elsewhere(_: Draw, spot: Spot) -> Files:
    node, alias = alias_of(spot)
    text = f"def {alias.name}(*args, **kwargs):\n    return 'probe'\n"
    line = f"from {MOVED} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
    return {spot.listing.module: reimported(spot, node, alias, line), MOVED: text}


@operator("imported from outside")
def _from_outside(_: Draw, spot: Spot) -> Files:
    node, alias = alias_of(spot)
    line = f"from somewhere_else import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
    return {spot.listing.module: reimported(spot, node, alias, line)}
