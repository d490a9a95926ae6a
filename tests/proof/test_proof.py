"""The proof as a whole: drawing, carrying, judging; on invented releases, and a sample on the real ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from afd_patchkit.operations import OPERATIONS as TABLE
from tools.oracles.proof.case import Case, Prover, Run
from tools.oracles.proof.draw import HEADERS, OPERATIONS, elided, sample
from tools.oracles.proof.engine import forget, remember
from tools.oracles.proof.judge import SAME
from tools.oracles.proof.known import KNOWN, known_problem
from tools.oracles.proof.report import report
from tools.oracles.proof.run import draw_runs, prove_all
from tools.oracles.releases import RELEASES, read_symbols

from .releases import OLD, engine

BAKE = "acme.oven:Oven.bake"


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    """What worker processes do for life is done for one test here."""
    remember()
    yield
    forget()


def test_deltas_are_drawn_the_same_again_and_each_applies_once(tmp_path):
    made = engine(tmp_path)
    symbol = made.symbol(BAKE)
    drawn = [sample(random.Random(f"1:{n}"), made, symbol) for n in range(40)]
    assert drawn == [sample(random.Random(f"1:{n}"), made, symbol) for n in range(40)]
    found = [d for d in drawn if d is not None]
    assert len(found) > 35
    assert {d.operation for d in found} <= set(OPERATIONS) - {"member", "field"}
    assert any("..." in d.yaml for d in found)
    lines = symbol.data.decode().split("\n")
    for item in found:
        assert bool(item.anchors) == (item.operation not in HEADERS)
        for anchor in item.anchors:
            assert lines[anchor.line - 1].strip()


DRAWN = OLD.replace('    """Bakes."""\n', '    """Bakes."""\n\n    size: int = 1\n').replace(
    "self.keep(rest)", "self.keep(wrap(rest, size=(index, loaf)))"
)


def test_every_operation_of_the_engine_is_drawn(tmp_path):
    assert set(OPERATIONS.values()) == set(TABLE)
    made = engine(tmp_path, old=DRAWN)
    seen = set()
    for reference, count in ((BAKE, 400), (BAKE.rpartition(".")[0], 40)):
        symbol = made.symbol(reference)
        seen |= {s.operation for n in range(count) if (s := sample(random.Random(f"o:{n}"), made, symbol)) is not None}
    assert seen == set(OPERATIONS)


@pytest.mark.slow
def test_every_delta_on_the_invented_release_is_placed_or_shown(tmp_path):
    prover = Prover(engine(tmp_path), seed=5)
    cases = [prover.prove(Run(n, BAKE, "2.0")) for n in range(40)]
    judged = [c for c in cases if c.sample is not None]
    assert len(judged) > 35
    assert not [c for c in judged if c.misplaced]
    silent = [c for c in judged if c.status in ("clean", "unchanged")]
    assert len(silent) > 6
    assert all(c.verdict in SAME for c in silent)
    assert {c.status for c in judged} >= {"clean", "review"}


TWICE = OLD.replace("        return done\n", "        self.keep(done)\n        return done\n").replace(
    "            self.keep(rest)\n", "            self.hold(rest)\n"
)
"""The anchor `self.keep(...)` matches once in both, and another statement in the second."""


def test_an_anchor_that_finds_another_statement_is_seen_and_would_be_a_fault_if_nobody_were_told(tmp_path):
    prover = Prover(engine(tmp_path, new=TWICE), seed=1)
    symbol = prover.engine.symbol(BAKE)
    made = next(
        s
        for n in range(3000)
        if (s := sample(random.Random(f"k{n}"), prover.engine, symbol)) is not None
        and s.operation == "after"
        and "self.keep(...)" in s.yaml
    )
    case = prover.carried(Run(0, BAKE, "2.0"), symbol, made)
    assert case is not None
    assert case.status == "review"
    assert case.verdict not in SAME
    assert not case.misplaced
    silent = replace(case, status="clean")
    assert silent.misplaced
    text = "\n".join(report([silent], 1))
    assert "silently misplaced: 1" in text
    assert "--only 0" in text
    assert "stands at line" in text


def test_runs_follow_from_the_seed():
    names = read_symbols()
    assert len(names) == 108
    assert draw_runs(50, 3, names) == draw_runs(50, 3, names)
    assert draw_runs(50, 3, names) == draw_runs(80, 3, names)[:50]
    assert draw_runs(50, 3, names) != draw_runs(50, 4, names)
    assert {r.release for r in draw_runs(200, 3, names)} == set(RELEASES)


def test_long_upstream_text_is_elided():
    yaml = "- name: probe\n  replace: |\n    " + "value = something" * 9 + '\n  with: |\n    print("probe")\n'
    assert max(map(len, elided(yaml).split("\n"))) < 80
    assert "probe" in elided(yaml)


def test_a_case_without_a_place_is_no_fault():
    case = Case(Run(0, "m:f", "2.0"), "m:f", None, status="missing")
    assert not case.misplaced


@pytest.mark.upstream
def test_a_hundred_deltas_on_real_releases_none_silently_misplaced():
    cases = prove_all(draw_runs(100, 26, read_symbols()), seed=26, jobs=2)
    judged = [c for c in cases if c.sample is not None]
    assert len(judged) >= 95
    assert [(c.symbol, c.run, c.verdict, c.detail) for c in judged if c.misplaced] == []
    assert sum(c.verdict in SAME for c in judged if c.status in ("clean", "unchanged")) >= 40


@pytest.mark.upstream
@pytest.mark.parametrize("known", KNOWN, ids=lambda k: k.name)
def test_real_mis_anchorings_and_changed_headers_are_shown(known):
    assert known_problem(known) == ""
