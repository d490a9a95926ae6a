"""Behaviour 1 to 5: two DP ranks over gloo agree on graph mode, padding and ubatches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dbo.dispatches import Decision, Setting, Step, dispatch
from tests.sim.ranks import Team, run_ranks

pytestmark = pytest.mark.vllm

EAGER = Setting()
GRAPHS = Setting(sizes=(1, 2, 4, 8, 16))  # vLLM's own manager
TWINS = Setting(sizes=(1, 2, 4, 8, 16), twins=(4, 8, 16))


def decode(tokens: int, **kwargs: bool) -> Step:
    """A step in which every request decodes one token."""
    return Step(tokens, tokens, uniform=1, **kwargs)


def prefill(tokens: int, **kwargs: bool) -> Step:
    """A step of two requests of different lengths."""
    return Step(tokens, min(2, tokens), uniform=None, **kwargs)


@dataclass(frozen=True)
class Expected:
    mode: str
    ubatches: int
    tokens: tuple[int, int]  # of the descriptors of rank 0 and 1
    across: tuple[int, int] | None
    graph: str = ""  # which graph the descriptor finds


def eager_single(first: int, second: int) -> Expected:
    return Expected("NONE", 1, (first, second), (first, second))


def eager_split(padded: int) -> Expected:
    return Expected("NONE", 2, (padded, padded), (padded, padded))


def graph(padded: int, ubatches: int) -> Expected:
    return Expected("FULL", ubatches, (padded, padded), (padded, padded), "native" if ubatches == 1 else "twin")


CASES = {
    # 1: alike, whatever the ranks bring
    "even decode": (EAGER, decode(8), decode(8), eager_split(8)),
    "uneven decode pads to the largest": (EAGER, decode(5), decode(8), eager_split(8)),
    "uneven decode, ranks swapped": (EAGER, decode(8), decode(5), eager_split(8)),
    "odd number of tokens": (EAGER, decode(7), decode(7), eager_split(7)),
    "uneven prefill": (EAGER, prefill(9), prefill(13), eager_split(13)),
    "native graphs, no ubatches wanted": (GRAPHS, decode(3, allow=False), decode(6, allow=False), graph(8, 1)),
    # 2: every rank allows it
    "first rank refuses": (EAGER, decode(8, allow=False), decode(8), eager_single(8, 8)),
    "second rank refuses": (EAGER, decode(8), decode(8, allow=False), eager_single(8, 8)),
    "ubatches not configured": (Setting(dbo=False), decode(8), decode(8), eager_single(8, 8)),
    # 2: the threshold holds for the minimum of the real tokens; both sides of it
    "decode at the threshold": (EAGER, decode(4), decode(4), eager_split(4)),
    "decode below the threshold": (EAGER, decode(3), decode(3), eager_single(3, 3)),
    "one rank at, one below": (EAGER, decode(4), decode(3), eager_single(4, 3)),
    "one rank far above, one below": (EAGER, decode(3), decode(64), eager_single(3, 64)),
    "prefill at the threshold": (EAGER, prefill(8), prefill(8), eager_split(8)),
    "prefill below the threshold": (EAGER, prefill(7), prefill(8), eager_single(7, 8)),
    "decode and prefill: the prefill threshold": (EAGER, decode(7), prefill(8), eager_single(7, 8)),
    "decode and prefill above it": (EAGER, decode(8), prefill(12), eager_split(12)),
    # 2: both ubatches keep real work after padding (the second begins at padded // 2)
    "second ubatch keeps one token": (EAGER, decode(5), decode(9), eager_split(9)),
    "second ubatch would be empty": (EAGER, decode(4), decode(9), eager_single(4, 9)),
    "just empty": (EAGER, decode(4), decode(8), eager_single(4, 8)),
    "empty after padding to a twin": (
        Setting(sizes=(1, 2, 4, 8, 16, 32), twins=(32,)), decode(16), decode(17), graph(32, 1),
    ),
    "empty after padding to a twin, not before": (
        Setting(sizes=(1, 2, 4, 8, 16, 32), twins=(32,)), decode(15), decode(17), graph(32, 1),
    ),
    "kept after padding to a twin": (
        Setting(sizes=(1, 2, 4, 8, 16, 32), twins=(32,)), decode(17), decode(17), graph(32, 2),
    ),
    # 2: fewer tokens than ubatches
    "one token each": (Setting(decode=0, prefill=0), decode(1), decode(1), eager_single(1, 1)),
    "one token and many": (Setting(decode=0, prefill=0), decode(1), decode(2), eager_single(1, 2)),
    "two tokens each": (Setting(decode=0, prefill=0), decode(2), decode(2), eager_split(2)),
    "one idle rank": (Setting(decode=0, prefill=0), Step(0, 0), decode(8), eager_single(0, 8)),
    # 3: a rank without a graph, disagreeing uniform counts
    "one rank has to run eagerly": (TWINS, decode(8, eager=True), decode(8), eager_split(8)),
    "both ranks have to run eagerly": (TWINS, decode(8, eager=True), decode(8, eager=True), eager_split(8)),
    "one rank prefills": (TWINS, prefill(8), decode(8), eager_split(8)),
    "one rank is beyond the captured sizes": (TWINS, decode(16), decode(17), eager_split(17)),
    "uniform, but not decode": (
        Setting(decode=4, prefill=9), Step(8, 4, uniform=2), Step(8, 4, uniform=2), eager_single(8, 8),
    ),
    "different uniform counts": (
        Setting(decode=4, prefill=9), Step(8, 8, uniform=1), Step(8, 4, uniform=2), eager_single(8, 8),
    ),
    "different uniform counts, prefill threshold met": (TWINS, decode(8), Step(8, 4, uniform=2), eager_split(8)),
    "one rank decodes, one prefills: no decode graph": (
        Setting(sizes=(8,), mode="FULL_AND_PIECEWISE"), decode(8, allow=False), prefill(8, allow=False),
        Expected("PIECEWISE", 1, (8, 8), (8, 8), "native"),
    ),
    "both may use any graph, but are not uniform": (
        Setting(sizes=(8,), twins=(8,), mode="FULL"), decode(8), Step(8, 4, uniform=2), eager_split(8),
    ),
    "both may use any graph, and are uniform": (
        Setting(sizes=(8,), twins=(8,), mode="FULL"), decode(8), decode(8), graph(8, 2),
    ),
    # 4: nobody has work
    "all idle": (EAGER, Step(0, 0), Step(0, 0), Expected("NONE", 1, (0, 0), None)),
    "all idle with graphs": (TWINS, Step(0, 0), Step(0, 0), Expected("NONE", 1, (0, 0), None)),
    # 5: native graphs and eager ubatches
    "captured single batch": (TWINS, decode(2), decode(3), graph(4, 1)),
    "captured twin": (TWINS, decode(4), decode(4), graph(4, 2)),
    "captured twin with padding": (TWINS, decode(5), decode(7), graph(8, 2)),
    "no twin of this size": (Setting(sizes=(8, 16), twins=(4,)), decode(8), decode(8), eager_split(8)),
    "vLLM's own manager has no twins": (GRAPHS, decode(8), decode(8), eager_split(8)),
}  # fmt: skip


def check(decisions: list[Decision], expected: Expected) -> None:
    """All of what the ranks got, with the reduction that it took."""
    assert [d.collectives for d in decisions] == [("all_reduce",)] * 2
    assert [d.mode for d in decisions] == [expected.mode] * 2
    assert [d.ubatches for d in decisions] == [expected.ubatches] * 2
    assert tuple(d.tokens for d in decisions) == expected.tokens
    assert [d.across for d in decisions] == [expected.across] * 2
    assert {d.type_name for d in decisions} == {"AFDBatchExecutionDescriptor"}
    assert [d.native_graph for d in decisions] == [expected.graph == "native"] * 2
    assert [d.twin_graph for d in decisions] == [expected.graph == "twin"] * 2


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    """Two DP ranks, for all dispatches."""
    with Team() as team:
        yield team


@pytest.mark.parametrize("case", CASES)
def test_decision(team: Team, case: str) -> None:
    setting, first, second, expected = CASES[case]
    check(team.call(dispatch, setting, [first, second]), expected)


def test_requests_of_an_eager_split_are_the_ranks_own(team: Team) -> None:
    decisions = team.call(dispatch, EAGER, [Step(9, 2), Step(12, 3)])
    assert [(d.reqs, d.tokens) for d in decisions] == [(2, 12), (3, 12)]


def test_requests_of_a_graph_are_the_graphs(team: Team) -> None:
    decisions = team.call(dispatch, TWINS, [decode(5), decode(7)])
    assert [(d.reqs, d.uniform) for d in decisions] == [(8, 1), (8, 1)]


# ---- any steps of two ranks against a plain statement of the rules --------------------------------------------


def reference(setting: Setting, steps: tuple[Step, Step]) -> Expected:
    """The rules of the specification, as they are said there."""
    tokens = [step.tokens for step in steps]
    most, least = max(tokens), min(tokens)
    if most == 0:
        return Expected("NONE", 1, (0, 0), None)
    uniform = steps[0].uniform if steps[0].uniform == steps[1].uniform else None

    def captured(size: int, uniform: int | None) -> int | None:
        if uniform != 1 or size == 0:
            return None
        return min((s for s in setting.sizes if s >= size), default=None)

    all_graphs = all(not s.eager and captured(s.tokens, s.uniform) for s in steps)
    threshold = setting.decode if uniform == 1 else setting.prefill
    if setting.dbo and all(s.allow for s in steps) and least >= 2 and least >= threshold:
        padded, mode = most, "NONE"
        if all_graphs and setting.twins is not None and uniform == 1:
            twin = min((s for s in setting.twins if s >= most), default=None)
            if twin is not None:
                padded, mode = twin, "FULL"
        if padded // 2 < least:  # the second ubatch has a real token on every rank
            return Expected(mode, 2, (padded, padded), (padded, padded), "twin" if mode == "FULL" else "")
    if not all_graphs:
        return eager_single(*tokens)
    size = captured(most, uniform)
    return graph(size, 1) if size is not None else Expected("NONE", 1, (most, most), (most, most))


STEPS = st.one_of(
    st.builds(decode, st.integers(1, 20), allow=st.booleans(), eager=st.booleans()),
    st.builds(decode, st.integers(1, 20)),
    st.builds(prefill, st.integers(1, 20), allow=st.booleans(), eager=st.booleans()),
    st.builds(lambda n: Step(2 * n, n, uniform=2), st.integers(1, 10)),
    st.just(Step(0, 0)),
)
SIZES = st.sets(st.sampled_from([1, 2, 4, 8, 12, 16, 20]))
SETTINGS = st.builds(
    lambda decode, prefill, sizes, twins, dbo: Setting(
        decode, prefill, tuple(sorted(sizes)), None if twins is None else tuple(sorted(twins & sizes)), dbo
    ),
    st.integers(0, 10),
    st.integers(0, 16),
    SIZES,
    st.none() | SIZES,
    st.sampled_from([True, True, True, False]),
)


@settings(max_examples=300)
@given(setting=SETTINGS, first=STEPS, second=STEPS)
def test_any_steps(team: Team, setting: Setting, first: Step, second: Step) -> None:
    check(team.call(dispatch, setting, [first, second]), reference(setting, (first, second)))


# ---- DP size 1 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "step", "mode", "tokens", "native"),
    [
        (EAGER, decode(8), "NONE", 8, False),
        (TWINS, decode(7), "FULL", 8, True),
        (TWINS, decode(8, eager=True), "NONE", 8, False),
        (GRAPHS, prefill(16), "NONE", 16, False),
    ],
)
def test_one_rank_reduces_nothing_and_splits_nothing(
    setting: Setting, step: Step, mode: str, tokens: int, native: bool
) -> None:
    (decision,) = run_ranks(dispatch, setting, [step], world=1)
    assert decision.collectives == ()
    assert (decision.mode, decision.tokens, decision.ubatches, decision.across) == (mode, tokens, 1, None)
    assert decision.native_graph is native
    assert decision.type_name == "AFDBatchExecutionDescriptor"


def test_a_profile_run_needs_no_manager() -> None:
    from afd_backports.vllm_v026_mrv2_dbo.dispatch import dispatch_cg_and_sync_dp

    desc, across = dispatch_cg_and_sync_dp(None, 2, 5, None, 1, 0, need_eager=True)
    assert (desc.cg_mode.name, desc.num_tokens, desc.num_reqs, desc.num_ubatches) == ("NONE", 5, 2, 1)
    assert across is None
