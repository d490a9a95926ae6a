"""docs/mutations.md: written from the verdicts, and read for the tests that noticed a mutation before.

It has two parts, each written by a run of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tools.environments import ROOT
from tools.mutation.code import CodeMutation
from tools.mutation.deltas import Mutation
from tools.mutation.judge import Verdict

PAGE = ROOT / "docs" / "mutations.md"
REASONS = ROOT / "tools" / "mutation" / "reasons.tsv"
"""Why nobody notices a change of code: a name and a reason per line, with a tab between."""
_INTRO = """\
# Mutations

Written by `tools/mutate --write`; do not edit. Each delta of the patch set was left out of its manifest, one at a time, and the
code generated again. Either `regen` fails, because another delta or a name depends on it (PK311 is a warning: a name means
something else on the target than on the donor), or the tests that see the module run on the real vLLM {vllm}, until one fails
that passes with the delta. {ascend}

A delta that nobody misses is needless, or it is not tested.
"""
_CODE_TITLE = "# Changes of its own code"
_CODE_INTRO = """\
{title}

Written by `tools/mutate --code --write`; do not edit. Of the code that is no upstream text (parts, bodies of delegates) each
comparison, constant, condition, call, assignment and so on was changed or left out, one at a time, and the tests that reach the
line (or those of some files, with `--tests`) were run until one fails. {ascend} Those that nobody notices are below, with the reason.
Modules are judged one by one (`--module`), each as its `code` was then; of those with dashes in the table, no change was judged.
"""
_CODE_SECTION = "## Not noticed in "
_ROW = re.compile(r"\| `(?P<entry>[^`]+)` \| (?P<delta>.*) \| (?P<what>.*) \|")
_CODE_ROW = re.compile(
    r"\| (?P<module>\w+) \| (?P<changes>\d+) \| (?P<noticed>\d+) \| (?P<missed>\d+) \| `(?P<code>\w+)` \|"
)
_REFUSED = re.compile(r"`regen`: (PK.*)")
_TEST = re.compile(r"`(tests/[^`]+)`")


def read_reasons(path: Path = REASONS) -> dict[str, str]:
    """Of each change that nobody notices for a reason, its name to the reason."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {name: reason for name, _, reason in (line.partition("\t") for line in lines)}


def code_page(
    verdicts: Sequence[tuple[CodeMutation, Verdict]],
    reasons: Mapping[str, str],
    *,
    ascend: bool,
    all_of: Mapping[str, int],
    own: Mapping[str, str],
    old: str = "",
) -> str:
    """The text of the page's second part.

    Args:
        verdicts: on all changes of some modules.
        reasons: why nobody notices some of them.
        ascend: whether vllm-ascend was there.
        all_of: each module of the set and how many changes it has, in their order.
        own: each module's digest of its own code.
        old: the page as it was; what it says of other modules stays, while their code is the same.
    """
    judged = Counter(Path(m.module).stem for m, _ in verdicts)
    kept = read_code_page(old)
    rows: list[tuple[str, tuple[int, ...]]] = []
    sections: list[str] = []
    for module, count in all_of.items():
        section: list[str] = []
        if module in judged:
            noticed = sum(v.noticed for m, v in verdicts if Path(m.module).stem == module)
            rows.append((module, (count, noticed, count - noticed)))
            section = [*_survivors(module, verdicts, reasons)]
        elif module in kept and (kept[module].counts[0], kept[module].code) == (count, own[module]):
            rows.append((module, kept[module].counts))
            section = list(kept[module].section)
        else:
            rows.append((module, (count,)))
        sections += section
    lines = [
        _CODE_INTRO.format(title=_CODE_TITLE, ascend=_ascend(ascend)),
        "| module | changes | noticed | not noticed | code |",
        "|:--|--:|--:|--:|:--|",
    ]
    total = [sum(column) for column in zip(*((*counts, 0, 0)[:3] for _, counts in rows), strict=True)]
    for module, counts in [*rows, ("all", tuple(total))]:
        code = f"`{own[module]}`" if module in own else ""
        lines.append(f"| {module} | {' | '.join([*map(str, counts), '-', '-'][:3])} | {code} |")
    return "\n".join([*lines, *sections]) + "\n"


def _survivors(
    module: str, verdicts: Sequence[tuple[CodeMutation, Verdict]], reasons: Mapping[str, str]
) -> Iterator[str]:
    survivors = [(m, v) for m, v in verdicts if not v.noticed and Path(m.module).stem == module]
    if survivors:
        yield from ("", f"{_CODE_SECTION}{module}", "", "| in | without => with the change | why |", "|:--|:--|:--|")
    for mutation, verdict in survivors:
        why = reasons.get(mutation.name) or f"**{verdict.outcome}**: {verdict.said}"
        yield f"| `{mutation.scope}` | `{_cell(mutation.change)}` | {_cell(why)} |"


@dataclass(frozen=True)
class Judged:
    """What the page says of the changes of a module.

    Attributes:
        counts: changes, those that are noticed, and those that are not.
        code: digest of the module's own code then.
        section: the lines about the latter.
    """

    counts: tuple[int, int, int]
    code: str
    section: tuple[str, ...]


def read_code_page(text: str) -> dict[str, Judged]:
    """Of each module whose changes were judged, what the page says of them."""
    lines = text.partition(_CODE_TITLE)[2].splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(_CODE_SECTION)] + [len(lines)]
    sections = {lines[a].removeprefix(_CODE_SECTION): ["", *lines[a:b]] for a, b in pairwise(starts)}
    found = {}
    for line in lines[: starts[0]]:
        if row := _CODE_ROW.fullmatch(line):
            changes, noticed, missed = (int(row[name]) for name in ("changes", "noticed", "missed"))
            section = "\n".join(sections.get(row["module"], [])).rstrip("\n")
            lines_of = tuple(section.split("\n")) if section else ()
            found[row["module"]] = Judged((changes, noticed, missed), row["code"], lines_of)
    return found


def with_part(old: str, part: str) -> str:
    """The page with one of its parts replaced."""
    first, title, second = old.partition(_CODE_TITLE)
    if part.startswith(_CODE_TITLE):
        return f"{first.rstrip()}\n\n{part}".lstrip()
    return f"{part.rstrip()}\n" + (f"\n{title}{second}" if title else "")


def _ascend(there: bool) -> str:
    return "vllm-ascend was there at its pinned commit." if there else "vllm-ascend was not there."


def page(verdicts: Sequence[tuple[Mutation, Verdict]], *, vllm: str, ascend: bool) -> str:
    """The text of the page."""
    return (
        "\n".join([_INTRO.format(vllm=vllm, ascend=_ascend(ascend)), *_summary(verdicts), *_modules(verdicts)]) + "\n"
    )


def _summary(verdicts: Sequence[tuple[Mutation, Verdict]]) -> Iterator[str]:
    modules = list(dict.fromkeys(_stem(m) for m, _ in verdicts))
    counts = Counter((_stem(m), v.outcome) for m, v in verdicts)
    yield "| module | deltas | noticed by a test | refused by `regen` | not noticed |"
    yield "|:--|--:|--:|--:|--:|"
    rows = [(m, *(counts[m, o] for o in ("killed", "refused", "survived", "timeout"))) for m in modules]
    for module, killed, refused, *missed in [
        *rows,
        ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])),
    ]:
        yield f"| {module} | {killed + refused + sum(missed)} | {killed} | {refused} | {sum(missed)} |"
    yield ""


def _modules(verdicts: Sequence[tuple[Mutation, Verdict]]) -> Iterator[str]:
    for module in dict.fromkeys(_stem(m) for m, _ in verdicts):
        yield from (f"## {module}", "", "| entry | without the delta | noticed by |", "|:--|:--|:--|")
        for mutation, verdict in verdicts:
            if _stem(mutation) == module:
                yield f"| `{_entry(mutation)}` | {_cell(mutation.delta)} | {_noticed(verdict)} |"
        yield ""


def _stem(mutation: Mutation) -> str:
    return Path(mutation.module).stem


def _entry(mutation: Mutation) -> str:
    return mutation.entry.partition("::")[2]


def _noticed(verdict: Verdict) -> str:
    if verdict.outcome == "killed":
        return f"`{_cell(verdict.by)}`"
    if verdict.outcome == "refused":
        return f"`regen`: {verdict.by}"
    return f"**{verdict.outcome}**" + (f": {_cell(verdict.said)}" if verdict.said else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def read_page(text: str) -> dict[str, Verdict]:
    """Of each delta on the page, its name to the verdict, as far as the page says it; it has no place for a test's message."""
    found, module = {}, ""
    for line in text.partition(_CODE_TITLE)[0].splitlines():
        if line.startswith("## "):
            module = line[3:]
        elif module and (row := _ROW.fullmatch(line)):
            name = f"{module}.py::{row['entry']}/{row['delta']}".replace("\\|", "|")
            what = row["what"].replace("\\|", "|")
            if test := _TEST.search(what):
                found[name] = Verdict("killed", test[1])
            elif codes := _REFUSED.fullmatch(what):
                found[name] = Verdict("refused", codes[1])
            else:
                found[name] = Verdict("survived")
    return found
