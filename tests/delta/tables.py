"""Tables of operations: files that show upstream, the deltas and the output, fences included.

A file holds cases, each of which begins with a line `======== NAME` and has sections that begin with `-------- WHAT`:
`upstream`, `deltas`, `output`, and where they are needed `symbol`, `notes` (codes of findings) and `donor MODULE`. A section with
`(literal)` behind its name has one Python literal a line, for white space that a reader or an editor would not keep.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

FOLDER = Path(__file__).parent / "operations"
_CASE, _SECTION = "======== ", "-------- "


@dataclass(frozen=True)
class Case:
    """One case of a table.

    Attributes:
        id: names the test.
        upstream: the module.
        deltas: the list under `deltas:` of a manifest.
        output: the whole output.
        symbol: qualified name of the entry's symbol.
        donors: modules of the pin `donor`, by dotted name.
        notes: codes of the findings that do not stop generation.
        table: the file.
    """

    id: str
    upstream: bytes
    deltas: str
    output: str
    symbol: str = "f"
    donors: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    table: str = ""


def tables() -> list[Case]:
    """The cases of all files."""
    return [case for path in sorted(FOLDER.glob("*.txt")) for case in read(path)]


def read(path: Path) -> list[Case]:
    """The cases of one file."""
    text = path.read_bytes().decode()
    head, *blocks = re.split(rf"^{_CASE}", text, flags=re.MULTILINE)
    assert not head, f"{path.name} begins with a case"
    return [_case(path.stem, block) for block in blocks]


def _case(table: str, block: str) -> Case:
    name, _, rest = block.partition("\n")
    sections: dict[str, str] = {}
    _, *parts = re.split(rf"^{_SECTION}", rest, flags=re.MULTILINE)
    for part in parts:
        title, _, body = part.partition("\n")
        title, literal, _ = title.partition(" (literal)")
        assert title not in sections, f"{table}: {name} has two sections {title}"
        sections[title] = "".join(ast.literal_eval(line) for line in body.splitlines()) if literal else body
    donors = {title.removeprefix("donor "): body for title, body in sections.items() if title.startswith("donor ")}
    return Case(
        name,
        sections["upstream"].encode(),
        sections["deltas"],
        sections["output"],
        sections.get("symbol", "f").strip(),
        donors,
        tuple(sections.get("notes", "").split()),
        table,
    )


def show(cases: Sequence[Case]) -> str:
    """The text of a file of cases."""
    return "".join(_shown(case) for case in cases)


def _shown(case: Case) -> str:
    out = f"{_CASE}{case.id}\n"
    if case.symbol != "f":
        out += _section("symbol", case.symbol + "\n")
    out += _section("upstream", case.upstream.decode())
    for module, text in case.donors.items():
        out += _section(f"donor {module}", text)
    out += _section("deltas", case.deltas)
    if case.notes:
        out += _section("notes", "\n".join(case.notes) + "\n")
    return out + _section("output", case.output)


def _section(title: str, text: str) -> str:
    plain = text.endswith("\n") and not re.search(r"[^\S\n ]| $|^(========|--------) ", text, re.MULTILINE)
    if plain:
        return f"{_SECTION}{title}\n{text}"
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    return f"{_SECTION}{title} (literal)\n" + "".join(f"{line!r}\n" for line in lines)


def rewrite(case: Case, output: str, notes: tuple[str, ...]) -> None:
    """Put what a case gives now into its file."""
    path = FOLDER / f"{case.table}.txt"
    cases = [replace(one, output=output, notes=notes) if one.id == case.id else one for one in read(path)]
    path.write_bytes(show(cases).encode())
