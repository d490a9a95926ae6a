"""`docs/inventory.md`: every patch with its upstream symbol, deltas, reason, guard, removal condition and place."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from afd_patchkit.digests import short
from afd_patchkit.files import read_regular, replace_file
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.project import Project

if TYPE_CHECKING:
    from afd_patchkit.manifest.load import Loaded
    from afd_patchkit.model import ClassGroup, Delta, Entry, Install, Manifest, Pin, Pins

FILE = "docs/inventory.md"
_MARK = "<!-- Written by `afd-patchkit inventory` from the manifests; do not edit. -->"
_SEAL = re.compile(r"<!-- inputs ([0-9a-f]{16}) text ([0-9a-f]{16}) -->\n\Z")


def path_of(project: Project) -> Path:
    """Where the inventory is; it is checked where it is there."""
    return project.root / FILE


def check_place(project: Project) -> None:
    """Refuse to write where the inventory is not the tool's.

    Raises:
        PatchkitError: a link leads there, or a file that the tool did not write is there (PK115).
    """
    path = path_of(project)
    link = project.linked(path)
    if link is not None:
        what = f"{project.shown(link)} is a symbolic link"
    elif path.exists() and not (path.is_file() and _MARK.encode() in path.read_bytes()):
        what = f"{FILE} was not written by the tool, and would be overwritten"
    else:
        return
    raise PatchkitError(
        finding(
            "PK115",
            what,
            generated=Position(project.shown(link or path)),
            help="Nothing was written. Move it away, or say where the inventory goes with --output.",
        )
    )


def stale(project: Project, inputs: Mapping[str, str]) -> list[Finding]:
    """The finding for an inventory that is not what the manifests say; none where there is no inventory.

    Cheap as long as no manifest has changed since it was written: then its own digests prove it.

    Args:
        project: the project.
        inputs: digests of the input files, as `current_inputs` gives them.
    """
    try:
        body, proven = _read(project, inputs)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [_finding(project, f"the inventory cannot be read: {error.strerror}", 0)]
    wanted = body if proven else _rendered(project)
    if wanted is None or body == wanted:
        return []
    pairs = zip(body.split("\n"), wanted.split("\n"), strict=False)
    line = next((n for n, (found, expected) in enumerate(pairs, 1) if found != expected), 0)
    return [_finding(project, "the inventory is not what the manifests say", line)]


def renew(project: Project, inputs: Mapping[str, str]) -> None:
    """Seal the inventory for manifests that have changed in what it does not show, so that `check` stays cheap.

    Another page is left as it is, for `check` to tell; so is one that cannot be read or written.

    Args:
        project: the project.
        inputs: digests of the input files, as `current_inputs` gives them.
    """
    path = path_of(project)
    with contextlib.suppress(OSError):
        body, proven = _read(project, inputs)
        if not proven and project.linked(path) is None and body == _rendered(project):
            replace_file(path, sealed(body, inputs).encode("utf-8", "backslashreplace"))


def _read(project: Project, inputs: Mapping[str, str]) -> tuple[str, bool]:
    """The inventory that is there, and whether its seal proves it."""
    text = read_regular(path_of(project)).decode("utf-8", "replace").replace("\r\n", "\n")
    body, seal = _parted(text)
    return body, seal == (_digest(inputs), _sha(body))


def _rendered(project: Project) -> str | None:
    """What the inventory should be; None where the manifests are broken, which is told already."""
    from afd_patchkit.manifest.load import load_manifests

    try:
        return render(project, load_manifests(project))
    except PatchkitError:
        return None


def sealed(body: str, inputs: Mapping[str, str]) -> str:
    """The inventory with the line that proves it."""
    return f"{body}<!-- inputs {_digest(inputs)} text {_sha(body)} -->\n"


def _parted(text: str) -> tuple[str, tuple[str, str] | None]:
    match = _SEAL.search(text)
    return (text[: match.start()], (match[1], match[2])) if match else (text, None)


def _sha(text: str) -> str:
    return short(text, 16)


def _digest(inputs: Mapping[str, str]) -> str:
    from afd_patchkit.version import __version__

    return _sha("\n".join([__version__, *(f"{name} {inputs[name]}" for name in sorted(inputs))]))


def _finding(project: Project, message: str, line: int) -> Finding:
    return finding(
        "PK113",
        message,
        generated=Position(project.shown(path_of(project)), line),
        help="Run `afd-patchkit inventory` and commit the file; delete it if the project does without.",
    )


# ---- the text -----------------------------------------------------------------------------------------------------


def render(project: Project, loaded: Loaded, path: Path | None = None) -> str:
    """The inventory, without the line that proves it."""
    from afd_patchkit.reports.layout import plural
    from afd_patchkit.reports.markdown import code

    folder = (path or path_of(project)).parent
    entries = [(manifest, entry, group) for manifest in loaded.manifests for entry, group in manifest.all_entries()]
    deltas = sum(_count(entry.deltas) for _, entry, _ in entries)
    amount = f"{plural(len(entries), 'entry', 'entries')} with {plural(deltas, 'delta')} in {plural(len(loaded.manifests), 'module')}"
    lines = [
        "# Inventory of patches",
        "",
        _MARK,
        "",
        f"{amount}. What is patched, why, on what it depends, and when it can go.",
        "",
        "| pin | distribution | identity | role |",
        "|---|---|---|---|",
        *(
            f"| {code(name)} | {code(pin.distribution)} | {_identity(pin)} | {pin.role} |"
            for name, pin in loaded.pins.pins.items()
        ),
        "",
        "| installed where | upstream symbol | kind | deltas |",
        "|---|---|---|---:|",
    ]
    for manifest, entry, group in entries:
        symbol = code(entry.symbol.text.strip()) if entry.symbol else "-"
        lines.append(
            f"| {code(_installed(project, manifest, entry, group))} | {symbol} | {entry.kind} | {_count(entry.deltas)} |"
        )
    for manifest in loaded.manifests:
        lines += ["", *_module(project, manifest, loaded.pins, folder)]
    return "\n".join(lines) + "\n\n"


def _module(project: Project, manifest: Manifest, pins: Pins, folder: Path) -> Iterator[str]:
    from afd_patchkit.reports.markdown import code, escape

    yield f"## {code(manifest.module)}"
    yield ""
    place = Path(os.path.relpath(project.root / manifest.path, folder)).as_posix()
    yield f"{escape(manifest.summary)} Manifest: [{escape(manifest.path)}](<{place}>)."
    for entry, group in manifest.all_entries():
        yield ""
        yield from _entry(project, manifest, entry, group, pins)
    if manifest.installs:
        yield ""
        yield "### What it replaces where it is installed"
        yield ""
        for install in manifest.installs:
            yield f"- {_replaced(project, manifest, install)}"


def _replaced(project: Project, manifest: Manifest, install: Install) -> str:
    """One install in words; which names upstream gives the object, the lock has."""
    from afd_patchkit.reports.markdown import code

    symbol = install.symbol.text.strip()
    name = install.with_ or next(iter(manifest.standing_for(symbol)), "?")
    text = f"{code(symbol)} by {code(f'{_dotted(project, manifest)}:{name}')}, {install.mode}"
    if isinstance(install.aliases, tuple):
        text += f"; also in {', '.join(map(code, install.aliases)) or 'no other module'}"
    elif install.mode != "subclass":
        text += "; with all other names of it" if install.aliases else ""
    return text + (f"; not in {', '.join(map(code, install.native))}" if install.native else "")


def _entry(project: Project, manifest: Manifest, entry: Entry, group: ClassGroup | None, pins: Pins) -> Iterator[str]:
    from afd_patchkit.assemble.comments import describe_probes
    from afd_patchkit.reports.markdown import code, escape

    name = entry.generated_name or entry.part or "?"
    yield f"### {code(f'{group.name}.{name}' if group else name)}"
    yield ""
    if entry.symbol is not None:
        yield f"- Upstream symbol: {code(entry.symbol.text.strip())} ({entry.kind})"
    else:
        yield f"- Upstream symbol: none, our own code in {code(entry.part or '?')}"
    for watched in entry.watch:
        yield f"- Mirrors: {code(watched.text.strip())}"
    yield f"- Reason: {escape(entry.reason)}"
    if entry.functionality:
        yield f"- Does: {escape(entry.functionality)}"
    if entry.forwarded:
        yield f"- Forwarded: {escape(entry.forwarded)}"
    yield f"- Guard: {_guard(entry.pin or manifest.pin, pins)}"
    conditions = [escape(describe_probes([probe])) for probe in entry.remove_when or manifest.remove_when]
    conditions += [escape(entry.removal)] if entry.removal else []
    yield f"- Removal: {'; or '.join(conditions) or 'no condition'}"
    yield f"- Installed where: {code(_installed(project, manifest, entry, group))}"
    if entry.deltas:
        yield "- Deltas:"
        yield from _deltas(entry.deltas, "  ")
    elif entry.kind in {"copy", "backport"}:
        yield "- Deltas: none, upstream verbatim"


def _deltas(deltas: Sequence[Delta], indent: str) -> Iterator[str]:
    from afd_patchkit.manifest.nested import inside
    from afd_patchkit.reports.markdown import code, escape

    for delta in deltas:
        reason = f": {escape(delta.reason)}" if delta.reason else ""
        yield f"{indent}- {escape(delta.name)} ({code(delta.operation)}){reason}"
        yield from _deltas(inside(delta), indent + "  ")


def _count(deltas: Sequence[Delta]) -> int:
    from afd_patchkit.manifest.nested import nested

    return sum(1 for _ in nested(deltas))


def _installed(project: Project, manifest: Manifest, entry: Entry, group: ClassGroup | None) -> str:
    """`package.module:Qual.name` of what is generated."""
    name = entry.generated_name
    inner = f"{group.name}.{name}" if group and name else name or (group.name if group else "")
    return _dotted(project, manifest) + (f":{inner}" if inner else "")


def _dotted(project: Project, manifest: Manifest) -> str:
    module = manifest.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"{project.package}.{module}"


def _identity(pin: Pin) -> str:
    from afd_patchkit.reports.markdown import code

    commit = pin.revision
    return code(pin.version) + (f" (commit {code(commit[:10])})" if commit else "")


def _guard(name: str | None, pins: Pins) -> str:
    """On which release the patch may run, and from which its text is."""
    from afd_patchkit.reports.markdown import code

    pin = pins.pins.get(name) if name else None
    if pin is None:
        return "none: it depends on no upstream"
    if pin.role == "target":
        return f"{code(pin.distribution)} {_identity(pin)} only; the lock holds the digests"
    targets = [p for p in pins.pins.values() if p.role == "target" and p.distribution == pin.distribution]
    on = f"{code(targets[0].distribution)} {_identity(targets[0])} only" if targets else "no target pin"
    return f"{on}; text of {_identity(pin)}; the lock holds the digests"
