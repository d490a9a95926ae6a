"""Change single scalars of a YAML file; every other byte stays as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Position, finding


@dataclass(frozen=True)
class ScalarEdit:
    """One scalar gets another text.

    Attributes:
        position: where the scalar's text starts (as the manifest loader gives it).
        old: its text now.
        new: its text afterwards.
    """

    position: Position
    old: str
    new: str


def edit_scalars(data: bytes, edits: Sequence[ScalarEdit], shown: str) -> bytes:
    """The file with the scalars changed.

    Raises:
        PatchkitError: a scalar is not where it was (PK549).
    """
    text = data.decode("utf-8")
    eol = "\r\n" if "\r\n" in text else "\n"
    plain = text.replace("\r\n", "\n")
    found = []
    for edit in edits:
        node = _find(plain, edit, shown)
        found.append((node.start_mark.index, node.end_mark.index, node, edit))
    for start, end, node, edit in sorted(found, key=lambda item: -item[0]):
        plain = plain[:start] + _written(plain, node, edit.new) + plain[_stop(plain, node, end) :]
    return plain.replace("\n", eol).encode()


def _find(text: str, edit: ScalarEdit, shown: str) -> yaml.ScalarNode:
    nodes = [n for n in _scalars(yaml.compose(text, Loader=yaml.SafeLoader)) if n.value == edit.old]
    line = edit.position.line - 1
    for node in nodes:
        block = node.style in ("|", ">")
        if node.start_mark.line == line - block or node.start_mark.line == line:
            columns = abs(node.start_mark.column + 1 - edit.position.column)
            if block or columns <= 2:
                return node
    raise PatchkitError(
        finding(
            "PK549",
            f"the text to change is not at {edit.position} any more",
            manifest=Position(shown, edit.position.line),
            help="Was the file edited meanwhile? Run the upgrade again.",
        )
    )


def _scalars(node: yaml.Node | None) -> list[yaml.ScalarNode]:
    found: list[yaml.ScalarNode] = []
    stack = [node] if node is not None else []
    while stack:
        current = stack.pop()
        if isinstance(current, yaml.ScalarNode):
            found.append(current)
        elif isinstance(current, yaml.SequenceNode):
            stack += current.value
        elif isinstance(current, yaml.MappingNode):
            stack += [part for pair in current.value for part in pair]
    return found


def _stop(text: str, node: yaml.ScalarNode, end: int) -> int:
    """End of what is replaced: a block scalar's end mark may lie behind blank and comment lines that follow it."""
    if node.style not in ("|", ">"):
        return end
    start = text.index("\n", node.start_mark.index) + 1
    lines = text[start:end].splitlines(keepends=True)
    indent = _indent(lines)
    stop, at = start, start
    for line in lines:
        at += len(line)
        if line.strip() and len(line) - len(line.lstrip(" ")) >= indent:
            stop = at
        elif line.strip():
            break
    return stop


def _indent(lines: Sequence[str]) -> int:
    return next((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), 0)


def _written(text: str, node: yaml.ScalarNode, new: str) -> str:
    """The scalar as YAML, in the style that it has."""
    if node.style in ("|", ">"):
        stop = text.index("\n", node.start_mark.index) + 1
        head = text[node.start_mark.index : stop]
        head = re.sub(r"^[|>]", "|", head)
        indent = " " * _indent(text[stop : node.end_mark.index].splitlines())
        body = "".join(f"{indent}{line}\n" if line else "\n" for line in new.rstrip("\n").split("\n"))
        return head + body
    one = new.strip("\n")
    if "\n" in one or node.style == '"':
        return '"' + one.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if node.style == "'":
        return "'" + one.replace("'", "''") + "'"
    return one


def remove_key(data: bytes, path: Sequence[str], shown: str) -> bytes:
    """The file without one key of a mapping; with the whole line when it stands alone on it.

    Raises:
        PatchkitError: it cannot be done without touching more (PK549).
    """
    text = data.decode("utf-8")
    node = yaml.compose(text.replace("\r\n", "\n"), Loader=yaml.SafeLoader)
    pair = None
    for name in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        pair = next((p for p in pairs if p[0].value == name), None)
        if pair is None:
            return data
        node = pair[1]
    assert pair is not None
    lines = text.splitlines(keepends=True)
    first, last = pair[0].start_mark.line, pair[1].end_mark.line
    line = lines[first]
    if first == last and not line[: pair[0].start_mark.column].strip() and not _rest(line[pair[1].end_mark.column :]):
        return "".join(lines[:first] + lines[first + 1 :]).encode()
    if first == last:
        start, end = pair[0].start_mark.column, pair[1].end_mark.column
        before, after = line[:start], line[end:]
        if before.rstrip().endswith(","):
            changed = before.rstrip().removesuffix(",") + after
        else:
            changed = before + re.sub(r"^\s*,\s*", "", after)
        return "".join([*lines[:first], changed, *lines[first + 1 :]]).encode()
    raise PatchkitError(
        finding("PK549", f"`{'.'.join(path)}` cannot be removed from {shown}", manifest=Position(shown, first + 1))
    )


def _rest(text: str) -> str:
    """What stands behind a value on its line, comments left out."""
    return text.partition("#")[0].strip()


def find_scalar(data: bytes, path: Sequence[str]) -> ScalarEdit | None:
    """The scalar at a path of keys, as an edit without change."""
    node = yaml.compose(data.decode("utf-8").replace("\r\n", "\n"), Loader=yaml.SafeLoader)
    for name in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for key, value in pairs if key.value == name), None)
        if node is None:
            return None
    if not isinstance(node, yaml.ScalarNode):
        return None
    place = Position("", node.start_mark.line + 1, node.start_mark.column + 1)
    return ScalarEdit(place, node.value, node.value)
