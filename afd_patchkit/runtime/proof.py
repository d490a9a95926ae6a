"""Whether what lies in memory, or on the disk, is the pinned original, by the digest of its source; and whose it is if not."""

# Standard library only: generated packages carry this module, and do not need the engine.

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from afd_patchkit.runtime.loaded import function_of, is_class, is_lazy, namespace


class Pinned(NamedTuple):
    """What is known of an original at the pin.

    Attributes:
        module: where it is defined.
        path: its qualified name there, in parts.
        parts: of each of its functions (a property has several), or of the class, the number of lines and their digest.
        layers: how many decorators may have wrapped it.
        roots: top-level packages that the wrappers may come from: upstream's own, and those of its decorators.
        is_class: it is a class.
    """

    module: str
    path: tuple[str, ...]
    parts: tuple[tuple[int, str], ...]
    layers: int = 0
    roots: tuple[str, ...] = ()
    is_class: bool = False


def digest(lines: Sequence[str]) -> str:
    """The digest of whole lines of source, whatever their ends are."""
    import hashlib

    return hashlib.sha256("\n".join(line.rstrip("\r\n") for line in lines).encode("utf-8", "surrogatepass")).hexdigest()


def doubt(value: Any, pinned: Pinned) -> str | None:
    """Why a value is not proved to be the pinned original; None when it is."""
    if pinned.is_class:
        return _class_doubt(value, pinned)
    found = list(_components(value))
    if not found:
        return f"{described(value)} is in its place"
    for component in found:
        layers, leaf = _unwrapped(component, pinned)
        foreign = [layer for layer in layers if root_of(layer) not in pinned.roots]
        if foreign:
            return f"{described(foreign[0])} is in its place"
        if type(leaf) is not FunctionType:
            return f"{described(value)} is in its place, and shows no function whose source could be compared"
        if leaf.__globals__.get("__name__") != pinned.module:
            return f"{described(leaf)} is in its place"
        if not _lines(leaf.__code__, leaf.__globals__):
            return f"the source of {described(leaf)} is not there, so that nothing proves what it is"
        if not _is_pinned(leaf, pinned):
            return f"{described(leaf)} has another text than the pinned one"
        if len(layers) > pinned.layers:
            return f"{described(layers[0])} is around it"
    if len(found) != len(pinned.parts):
        return f"{described(value)} has {len(found)} accessors, the pinned one {len(pinned.parts)}"
    return None


def _class_doubt(value: Any, pinned: Pinned) -> str | None:
    if not is_class(value):
        return f"{described(value)} is in its place"
    items = type.__dict__["__dict__"].__get__(value)
    if items.get("__module__") != pinned.module or type.__dict__["__qualname__"].__get__(value) != ".".join(
        pinned.path
    ):
        return f"{described(value)} is in its place"
    import linecache

    names = namespace(sys.modules.get(pinned.module)) or {}
    lines = linecache.getlines(str(names.get("__file__")), names)
    return text_doubt("".join(lines), pinned)


def text_doubt(source: str, pinned: Pinned) -> str | None:
    """Why the source of a module does not hold the pinned original; None when it does."""
    import ast

    where = f"{pinned.module}:{'.'.join(pinned.path)}"
    try:
        nodes = list(_definitions(ast.parse(source), pinned.path))
    except (SyntaxError, ValueError):
        return f"{pinned.module} cannot be parsed"
    if not nodes:
        return f"{pinned.module} does not define {'.'.join(pinned.path)}"
    lines = source.split("\n")
    found = set()
    for node in nodes:
        first = first_line(node, lines)
        found.add((node.end_lineno - first + 1, digest(lines[first - 1 : node.end_lineno])))
    return None if found.issuperset(pinned.parts) else f"{where} has another text than the pinned one"


def first_line(node: Any, lines: Sequence[str]) -> int:
    """The line where a definition begins: that of the `@` of its first decorator, if it has one."""
    first: int = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    while node.decorator_list and not lines[first - 1].lstrip(" \t\f").startswith("@"):
        first -= 1
    return first


def _definitions(node: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """The definitions of a qualified name, in any branch."""
    import ast

    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if child.name != path[0]:
                continue
            if len(path) == 1:
                yield child
            elif isinstance(child, ast.ClassDef):
                yield from _definitions(child, path[1:])
        elif isinstance(child, (ast.stmt, ast.ExceptHandler)) or type(child).__name__ == "match_case":
            yield from _definitions(child, path)


# ---- what lies in memory --------------------------------------------------------------------------------------------


def _components(value: Any) -> Iterator[Any]:
    """The callables that an attribute is made of."""
    if issubclass(type(value), property):
        yield from (part for part in (value.fget, value.fset, value.fdel) if part is not None)
    elif type(value) is cached_property:
        yield value.func
    elif callable(function_of(value)):
        yield function_of(value)


def _unwrapped(value: Any, pinned: Pinned) -> tuple[list[Any], Any]:
    """The wrappers around the innermost function, outermost first, and that function."""
    layers: list[Any] = []
    while len(layers) < 50:
        value = function_of(value)
        inner = namespace(value) or {}
        following = inner.get("__wrapped__")
        if type(value) is FunctionType:
            if following is None and not _is_pinned(value, pinned):
                following = _enclosed(value, pinned)  # a wrapper that does not say what it wraps
        elif following is None:
            following = next((inner[key] for key in ("func", "fn", "_fn") if callable(inner.get(key))), None)
        if following is None:
            break
        layers.append(value)
        value = following
    return layers, value


def _enclosed(function: FunctionType, pinned: Pinned) -> Any:
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # empty
            continue
        if type(content) is FunctionType and _is_pinned(content, pinned):
            return content
    return None


def _is_pinned(function: FunctionType, pinned: Pinned) -> bool:
    lines = _lines(function.__code__, function.__globals__)[function.__code__.co_firstlineno - 1 :]
    return any(_ends(lines, count) and digest(lines[:count]) == wanted for count, wanted in pinned.parts)


def _ends(lines: Sequence[str], count: int) -> bool:
    """Whether a definition of so many lines ends there: what follows is not indented below its first line."""
    following = (line for line in lines[count:] if line.strip() and not line.lstrip().startswith("#"))
    return _indent(next(following, "")) <= _indent(lines[0]) if lines else False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _lines(code: CodeType, names: dict[str, Any]) -> list[str]:
    import linecache

    linecache.checkcache(code.co_filename)
    return linecache.getlines(code.co_filename, names)


def _home(value: Any) -> str:
    """The module that a callable comes from."""
    if type(value) is FunctionType:
        return str(value.__globals__.get("__name__"))
    if is_class(value):
        return str(type.__dict__["__dict__"].__get__(value).get("__module__"))
    return type(value).__module__


def root_of(value: Any) -> str:
    """The top-level package that a value comes from."""
    return _home(function_of(value)).partition(".")[0]


def described(value: Any) -> str:
    """A callable, for a message: module and qualified name, and where it stands."""
    value = function_of(value)
    if issubclass(type(value), property):
        value = value.fget
    elif type(value) is cached_property:
        value = value.func
    if type(value) is FunctionType:
        code = value.__code__
        return f"{_home(value)}.{value.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    if is_class(value):
        return f"{_home(value)}.{type.__dict__['__qualname__'].__get__(value)}"
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"


# ---- what lies on the disk ------------------------------------------------------------------------------------------


def source_of(module: str) -> str | None:
    """The source of a module that may not be loaded, found without running anything; None where there is none to read."""
    path: Any = None
    spec: Any = None
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        known = namespace(sys.modules.get(name))
        if count < len(parts) and known is not None and "__path__" in known and not is_lazy(sys.modules[name]):
            path = known["__path__"]
            continue
        spec = None
        for finder in list(sys.meta_path):
            if "PATCHKIT" in type(finder).__dict__:  # it asks all others itself
                continue
            spec = finder.find_spec(name, path, None)
            if spec is not None:
                break
        if spec is None:
            return None
        path = spec.submodule_search_locations
    try:
        text = spec.loader.get_source(module)
    except (ImportError, OSError, AttributeError):
        return None
    return text if text is None else text.replace("\r\n", "\n").replace("\r", "\n")
