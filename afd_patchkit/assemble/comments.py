"""The comments of a generated module: computed from what was done, so they cannot lie."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from afd_patchkit import header
from afd_patchkit.delta.buffer import Buffer, Run
from afd_patchkit.model import Entry, Probe
from afd_patchkit.source.notices import is_cookie, notices
from afd_patchkit.source.text import SourceFile, Span

WIDTH = 100
_TAG = re.compile(r"#\s*SPDX-")
_SHOWN = re.compile(r"SPDX-|copyright", re.IGNORECASE)


def wrap(label: str, text: str) -> list[str]:
    """`# Label: text`, continued behind `#   ` where it is long."""
    return textwrap.wrap(
        f"{label}: {' '.join(text.split())}",
        WIDTH,
        initial_indent="# ",
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def kept_notices(files: Iterable[SourceFile]) -> Buffer:
    """What the used files say of licence, authors and origin, as comments: tags line by line, then paragraphs, each once.

    Lines of upstream are upstream's in the buffer, so that outlines fold them; those that say a licence or a copyright are shown.
    """
    tags: dict[str, Buffer] = {}
    rest: dict[str, Buffer] = {}
    for file in sorted(files, key=lambda f: f.path):
        for paragraph in notices(file):
            lines = [(file.slice(span), _comment(file, span)) for span in paragraph]
            tags |= {text: line for text, line in lines if _TAG.match(text) and text not in tags}
            more = [(text, line) for text, line in lines if not _TAG.match(text)]
            if any(text.strip("# ") for text, _ in more):
                rest.setdefault(
                    "\n".join(text for text, _ in more), Buffer(run for _, line in more for run in line.runs)
                )
    blank = Buffer.emitted("#\n", (), "owned")
    parts = [Buffer(run for line in tags.values() for run in line.runs), *rest.values()]
    found = Buffer(run for part in parts if part.runs for run in (*part.runs, *blank.runs))
    # a line of another place must not become a declaration of the encoding
    return blank + blank + found if any(map(is_cookie, found.text.split("\n")[:2])) else found


def _comment(file: SourceFile, span: Span) -> Buffer:
    """One line as a comment."""
    text = file.slice(span)
    if text.startswith("#") and _SHOWN.search(text):
        return Buffer.emitted(f"{text}\n", (), "owned")
    if text.startswith("#"):
        kept = Buffer.verbatim(file, span)
        return kept + Buffer.emitted("\n", (), "owned")
    return Buffer([Run("# ", None, 0, (), "comment"), Run(text, file, span.start), Run("\n", None, 0, (), "comment")])


def file_header(
    *, manifest: str, summary: str, module: str, pins: Sequence[str], files: Iterable[SourceFile]
) -> Buffer:
    """The text above a module's imports.

    Args:
        manifest: path of the manifest, as it is shown.
        summary: what the module is; becomes its docstring.
        module: path below the generated package.
        pins: one line for each pin that text comes from.
        files: the upstream files whose notices must stand above.
    """
    lines = [header.line(manifest)]
    lines += [f"# Pin: {pin}" for pin in pins]
    lines.append(f"# Regenerate: afd-patchkit regen {module}")
    doc = " ".join(summary.split())
    escaped = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if escaped.endswith('"'):
        escaped = escaped[:-1] + '\\"'
    text = "\n".join([*lines, "", f'"""{escaped}"""']) + "\n"
    return kept_notices(files) + Buffer.emitted(text, (), "owned")


def entry_header(
    entry: Entry,
    *,
    source: str | None,
    signature: str | None,
    rebindings: Mapping[str, str],
    renamed: tuple[str, str] | None,
    removal: Sequence[Probe],
    rewritten: Mapping[str, str] | None = None,
    taken: Sequence[str] = (),
) -> list[str]:
    """The comment lines above one entry.

    Args:
        entry: the entry.
        source: file, qualified name and pin of the upstream text; None for owned code.
        signature: how the signature compares with upstream's; None where there is none.
        rebindings: names that mean something else here than upstream, with what they mean.
        renamed: upstream's name and the generated one, where they differ.
        removal: the entry's probes.
        rewritten: what had to be written out (`super()`, private names), with what stands for it.
        taken: where text of other symbols was taken from.
    """
    lines: list[str] = []
    if source:
        lines += wrap("Upstream source", source)
    for text in dict.fromkeys(taken):
        lines += wrap("Upstream text taken", text)
    lines += wrap("Patch reason", entry.reason)
    if entry.functionality:
        lines += wrap("Patch functionality", entry.functionality)
    if entry.kind == "delegate":
        lines += wrap("Expansion exception", f"own body around the {entry.via} implementation; {entry.reason}")
    if signature:
        lines += wrap("Signature", signature)
    if renamed:
        lines += wrap("Name", f"{renamed[1]}; upstream: {renamed[0]}")
    if rebindings:
        lines += wrap(
            "Rebinding", "; ".join(f"{name} -> {_meaning(text)}" for name, text in sorted(rebindings.items()))
        )
    if rewritten:
        lines += wrap("Written out", "; ".join(f"{old} -> {new}" for old, new in sorted(rewritten.items())))
    if entry.forwarded:
        lines += wrap("Forwarded", entry.forwarded)
    if entry.watch:
        lines += wrap("Watches", ", ".join(code.text for code in entry.watch))
    prose = describe_probes(removal)
    if entry.removal:
        prose = f"{prose}; {entry.removal}" if prose else entry.removal
    lines += wrap("Removal", prose or "when a person decides; no condition is known")
    return lines


def _meaning(text: str) -> str:
    """A dotted path in place of an import statement."""
    found = re.fullmatch(r"from (\S+) import (\S+)( as \S+)?", text)
    return f"{found[1]}.{found[2]}" if found else text


def describe_probes(probes: Sequence[Probe]) -> str:
    """Removal conditions in words."""
    return ", or ".join(_probe(probe) for probe in probes)


def _probe(probe: Probe) -> str:
    if probe.defines is not None:
        return f"the target defines {probe.defines.text.strip()}"
    if probe.missing is not None:
        return f"the target lacks {probe.missing.text.strip()}"
    if probe.contains is not None:
        return f"{probe.contains.in_.text.strip()} contains `{_one_line(probe.contains.pattern.text)}`"
    if probe.absent is not None:
        return f"{probe.absent.in_.text.strip()} no longer contains `{_one_line(probe.absent.pattern.text)}`"
    if probe.any is not None:
        return "(" + " or ".join(_probe(p) for p in probe.any) + ")"
    return "(" + " and ".join(_probe(p) for p in probe.all or ()) + ")"


def _one_line(text: str) -> str:
    return " ".join(text.split())
