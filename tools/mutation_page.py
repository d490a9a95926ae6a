"""docs/mutations.md: written from the verdicts, and read for the tests that noticed a mutation before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.environments import ROOT
from tools.mutation_deltas import Mutation
from tools.mutation_judge import Verdict

PAGE = ROOT / "docs" / "mutations.md"
_INTRO = """\
# Mutations

Written by `tools/mutate --write`; do not edit. Each delta of the patch set was left out of its manifest, one at a time, and the
code generated again. Either `regen` fails, because another delta or a name depends on it (PK311 is a warning: a name means
something else on the target than on the donor), or the tests that see the module run on the real vLLM {vllm}, until one fails
that passes with the delta. {ascend}

A delta that nobody misses is needless, or it is not tested.
"""
_ROW = re.compile(r"\| `(?P<entry>[^`]+)` \| (?P<delta>.*) \| (?P<what>.*) \|")
_TEST = re.compile(r"`(tests/[^`]+)`")


def page(verdicts: Sequence[tuple[Mutation, Verdict]], *, vllm: str, ascend: bool) -> str:
    """The text of the page."""
    with_ascend = "vllm-ascend was there at its pinned commit." if ascend else "vllm-ascend was not there."
    return "\n".join([_INTRO.format(vllm=vllm, ascend=with_ascend), *_summary(verdicts), *_modules(verdicts)]) + "\n"


def _summary(verdicts: Sequence[tuple[Mutation, Verdict]]) -> Iterator[str]:
    modules = list(dict.fromkeys(_stem(m) for m, _ in verdicts))
    counts = Counter((_stem(m), v.outcome) for m, v in verdicts)
    yield "| module | deltas | noticed by a test | refused by `regen` | not noticed |"
    yield "|:--|--:|--:|--:|--:|"
    rows = [(m, *(counts[m, o] for o in ("killed", "refused", "survived", "timeout"))) for m in modules]
    for module, killed, refused, *missed in [*rows, ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))]:
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


def read_page(text: str) -> dict[str, str]:
    """Of each delta on the page, its name to the test that noticed it; empty for those that no test has noticed."""
    found, module = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            module = line[3:]
        elif module and (row := _ROW.fullmatch(line)):
            test = _TEST.search(row["what"])
            name = f"{module}.py::{row['entry']}/{row['delta']}".replace("\\|", "|")
            found[name] = test[1].replace("\\|", "|") if test else ""
    return found
