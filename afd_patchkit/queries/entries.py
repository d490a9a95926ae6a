"""What the manifests say about one entry."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.model import ClassGroup, Delta, Entry, Manifest, Pins, Probe
    from afd_patchkit.reports.layout import Style


def entry_facts(session: Session, topic: str) -> dict[str, Any]:
    """The facts of the entry `module.py::name`, as plain data.

    The module may be shortened to its end, and the name of a class's member to the member, where that is enough.

    Raises:
        click.UsageError: there is no such entry, or several.
    """
    from afd_patchkit.manifest.load import load_manifests

    loaded = load_manifests(session.load_project())
    labels = entries_by_label(loaded.manifests)
    label = pick_entry(labels, topic)
    return _facts(label, *labels[label], loaded.pins)


def entries_by_label(manifests: Iterable[Manifest]) -> dict[str, tuple[Manifest, Entry, ClassGroup | None]]:
    """Every entry by its `module.py::name`."""
    from afd_patchkit.manifest.cross import entry_label

    return {
        entry_label(manifest, entry, group): (manifest, entry, group)
        for manifest in manifests
        for entry, group in manifest.all_entries()
    }


def pick_entry(labels: Collection[str], topic: str) -> str:
    """The one label that `topic` means: as findings print it, or its end where that is enough.

    Raises:
        click.UsageError: there is none, or there are several.
    """
    found = [topic] if topic in labels else [label for label in labels if _fits(label, topic)]
    if not found:
        names = {label: label for label in labels} | {label.rpartition("::")[2].rpartition(".")[2]: label for label in labels}
        near = dict.fromkeys(names[name] for name in get_close_matches(topic, names, n=3))
        hint = f" Near: {', '.join(near)}." if near else ""
        raise click.UsageError(f"There is no entry {topic!r}.{hint}")
    if len(found) > 1:
        raise click.UsageError(f"{topic!r} may be any of: {', '.join(found)}.")
    return found[0]


def _fits(label: str, topic: str) -> bool:
    module, _, name = label.partition("::")
    wanted_module, colons, wanted_name = topic.partition("::")
    if not colons:
        wanted_module, wanted_name = "", topic
    return (not wanted_module or f"/{module}".endswith(f"/{wanted_module}")) and (
        name == wanted_name or name.rpartition(".")[2] == wanted_name
    )


def _facts(label: str, manifest: Manifest, entry: Entry, group: ClassGroup | None, pins: Pins) -> dict[str, Any]:
    name = entry.pin or manifest.pin
    pin = pins.pins.get(name) if name else None
    where = entry.where
    return {
        "entry": label,
        "manifest": {"file": where.file, "line": where.line or None, "column": where.column or None},
        "kind": entry.kind,
        "symbol": entry.symbol and entry.symbol.text.strip(),
        "class": group and group.name,
        "pin": pin and {"name": name, "distribution": pin.distribution, "version": pin.version, "role": pin.role},
        "reason": entry.reason,
        "functionality": entry.functionality,
        "forwarded": entry.forwarded,
        "part": entry.part,
        "via": entry.via,
        "watch": [code.text.strip() for code in entry.watch],
        "depends_on": list(entry.depends_on),
        "late": entry.late if isinstance(entry.late, bool) else list(entry.late),
        "remove_when": [probe_text(probe) for probe in entry.remove_when or manifest.remove_when],
        "removal": entry.removal,
        "deltas": [_delta(delta) for delta in entry.deltas],
    }


def _delta(delta: Delta) -> dict[str, Any]:
    return {
        "name": delta.name,
        "operation": delta.operation,
        "line": delta.where.line or None,
        "reason": delta.reason,
        "frozen": delta.frozen,
        "deltas": [_delta(inner) for inner in delta.deltas],
    }


def probe_text(probe: Probe) -> str:
    """A probe in words: `acme.engine:Overlap is defined`."""
    if probe.defines is not None:
        return f"{probe.defines.text.strip()} is defined"
    if probe.missing is not None:
        return f"{probe.missing.text.strip()} is gone"
    for test, verb in ((probe.contains, "contains"), (probe.absent, "no longer contains")):
        if test is not None:
            return f"{test.in_.text.strip()} {verb} `{' '.join(test.pattern.text.split())}`"
    inner = [probe_text(part) for part in probe.any or probe.all or ()]
    text = (" or " if probe.any is not None else " and ").join(inner)
    return f"({text})" if len(inner) > 1 else text


def facts_text(facts: dict[str, Any], style: Style, *, markdown: bool) -> str:
    """The facts for people."""
    if markdown:
        return _markdown(facts)
    from afd_patchkit.reports.layout import printable, wrap

    lines = [style.paint(facts["entry"], "bold")]
    for name, value in _rows(facts):
        first = f"  {style.paint(f'{name:<13}', 'dim')} "
        lines.extend(wrap(printable(" ".join(value.split())), style, first=first, rest=" " * 16))
    if facts["deltas"]:
        lines.append(f"  {style.paint('deltas', 'dim')}")
        lines.extend(_delta_lines(facts["deltas"], style, 4))
    return "\n".join(lines) + "\n"


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    place, pin, late = facts["manifest"], facts["pin"], facts["late"]
    rows = [
        ("manifest", f"{place['file']}:{place['line']}:{place['column']}" if place["line"] else place["file"]),
        ("kind", facts["kind"]),
        ("symbol", facts["symbol"]),
        ("class", facts["class"]),
        ("part", facts["part"]),
        ("via", facts["via"]),
        ("pin", pin and f"{pin['name']}: {pin['distribution']} {pin['version']}, {pin['role']}"),
        ("reason", facts["reason"]),
        ("functionality", facts["functionality"]),
        ("forwarded", facts["forwarded"]),
        *(("watch", symbol) for symbol in facts["watch"]),
        ("depends on", ", ".join(facts["depends_on"])),
        ("late names", "all" if late is True else ", ".join(late or ())),
        *(("remove when", text) for text in facts["remove_when"]),
        ("removal", facts["removal"]),
    ]
    return [(name, value) for name, value in rows if value]


def _delta_lines(deltas: list[dict[str, Any]], style: Style, indent: int) -> list[str]:
    from afd_patchkit.reports.layout import printable, wrap

    lines = []
    for delta in deltas:
        where = f", line {delta['line']}" if delta["line"] else ""
        operation = style.paint(f"({delta['operation']}{where})", "dim")
        head = f"{printable(delta['name'])} {operation}"
        lines.extend(wrap(head, style, first=" " * indent + "- ", rest=" " * (indent + 2)))
        for name in ("reason", "frozen"):
            if delta[name]:
                text = f"{name}: {' '.join(delta[name].split())}"
                lines.extend(wrap(printable(text), style, first=" " * (indent + 2)))
        lines.extend(_delta_lines(delta["deltas"], style, indent + 2))
    return lines


def _markdown(facts: dict[str, Any]) -> str:
    from afd_patchkit.reports.markdown import code, escape

    literal = {"manifest", "symbol", "class", "part", "watch", "depends on", "late names"}
    lines = [f"## {code(facts['entry'])}", ""]
    lines += [f"- {name}: {code(value) if name in literal else escape(value)}" for name, value in _rows(facts)]

    def listed(deltas: list[dict[str, Any]], indent: str) -> None:
        for delta in deltas:
            because = f": {escape(delta['reason'])}" if delta["reason"] else ""
            lines.append(f"{indent}- {escape(delta['name'])} ({code(delta['operation'])}){because}")
            listed(delta["deltas"], indent + "  ")

    if facts["deltas"]:
        lines.append("- deltas:")
        listed(facts["deltas"], "  ")
    return "\n".join(lines) + "\n"
