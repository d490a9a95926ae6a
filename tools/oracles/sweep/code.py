"""Code objects: found by name, compared recursively."""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType

_FIELDS = (
    "co_name", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_varnames", "co_cellvars",
    "co_freevars", "co_names",
)  # fmt: skip


def find_code(code: CodeType, path: Sequence[str], first_line: int | None) -> CodeType | None:
    """The code object at a path of class names and a function name; any line when `first_line` is None."""
    for child in (c for c in code.co_consts if isinstance(c, CodeType)):
        if child.co_name.startswith("<generic parameters"):
            found = find_code(child, path, first_line)
        elif child.co_name != path[0]:
            continue
        elif len(path) > 1:
            found = find_code(child, path[1:], first_line)
        else:
            found = child if first_line in {None, child.co_firstlineno} else None
        if found:
            return found
    return None


def difference(ours: CodeType, theirs: CodeType, where: str = "") -> str | None:
    """The first way in which `ours` is not upstream's code object; None when they are the same function.

    Places (file, lines, columns, qualified names) do not count.
    """
    where = where or theirs.co_name
    for name in _FIELDS:
        if getattr(ours, name) != getattr(theirs, name):
            return f"{where}: {name} {getattr(ours, name)!r}, upstream has {getattr(theirs, name)!r}"
    if getattr(ours, "co_exceptiontable", b"") != getattr(theirs, "co_exceptiontable", b""):
        return f"{where}: exception tables differ"
    if "__qualname__" in theirs.co_names:  # a class body; its qualified name and (Python 3.13) line are constants
        return _instructions(ours, theirs, where)
    if ours.co_code != theirs.co_code:
        return f"{where}: instructions differ{_first_instruction(ours, theirs)}"
    return _constants(ours.co_consts, theirs.co_consts, where)


def _constants(ours: Sequence[object], theirs: Sequence[object], where: str) -> str | None:
    if len(ours) != len(theirs):
        return f"{where}: {len(ours)} constants, upstream has {len(theirs)}"
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, CodeType) and isinstance(other, CodeType):
            found = difference(one, other, f"{where}.{other.co_name}")
            if found:
                return found
        elif constant(one) != constant(other):
            return f"{where}: constant {one!r}, upstream has {other!r}"
    return None


def constant(value: object) -> object:
    """A constant in a form where equal means the same: 1, 1.0 and True differ, so do 0.0 and -0.0; nan equals nan."""
    if isinstance(value, tuple):
        return ("tuple", tuple(constant(v) for v in value))
    if isinstance(value, frozenset):
        return ("frozenset", frozenset(constant(v) for v in value))
    return (type(value).__name__, repr(value))


def _instructions(ours: CodeType, theirs: CodeType, where: str) -> str | None:
    left, right = list(dis.get_instructions(ours)), list(dis.get_instructions(theirs))
    if len(left) != len(right):
        return f"{where}: {len(left)} instructions, upstream has {len(right)}"
    for number, (one, other) in enumerate(zip(left, right, strict=True)):
        if one.opname != other.opname:
            return f"{where}: {one.opname}, upstream has {other.opname}"
        place = number + 1 < len(right) and right[number + 1].argval in {"__qualname__", "__firstlineno__"}
        if isinstance(one.argval, CodeType) and isinstance(other.argval, CodeType):
            found = difference(one.argval, other.argval, f"{where}.{other.argval.co_name}")
            if found:
                return found
        elif constant(one.argval) != constant(other.argval) and not place:
            return f"{where}: {one.opname} {one.argval!r}, upstream has {other.argval!r}"
    return None


def _first_instruction(ours: CodeType, theirs: CodeType) -> str:
    for one, other in zip(dis.get_instructions(ours), dis.get_instructions(theirs), strict=False):
        if (one.opname, one.argrepr) != (other.opname, other.argrepr):
            return f": {one.opname} {one.argrepr}, upstream has {other.opname} {other.argrepr}"
    return ""
