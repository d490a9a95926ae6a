"""Real changes of upstream that a pattern alone does not notice: each must be shown to a person."""

from __future__ import annotations

from dataclasses import dataclass

from tools.oracles.proof.engine import Engine, remember


@dataclass(frozen=True)
class Known:
    """A real change that a pattern alone does not notice."""

    name: str
    symbol: str
    release: str
    yaml: str


KNOWN = (
    Known(
        "the assignment from get_computed_blocks is another one",
        "vllm.v1.core.sched.scheduler:Scheduler.schedule",
        "0.28.0",
        '- name: probe\n  after: |\n    ... = self.kv_cache_manager.get_computed_blocks(request)\n  insert: |\n    print("probe")\n',
    ),
    Known(
        "logits_idx is loaded from something else",
        "vllm.v1.worker.gpu.structured_outputs:_apply_grammar_bitmask_kernel",
        "0.28.0",
        '- name: probe\n  after: |\n    logits_idx = tl.load(...)\n  insert: |\n    print("probe")\n',
    ),
    Known(
        "the pause state that must hold around it is another one",
        "vllm.v1.core.sched.scheduler:Scheduler.schedule",
        "0.32.0",
        '- name: probe\n  after: |\n    ... = request_queue.peek_request()\n  insert: |\n    print("probe")\n',
    ),
    Known(
        "the test of the pause state is another one",
        "vllm.v1.core.sched.scheduler:Scheduler.schedule",
        "0.32.0",
        "- name: probe\n  expr: |\n    self._pause_state == PauseState.UNPAUSED\n  with: |\n    __upstream__ and bool(1)\n",
    ),
)
"""Anchors that match exactly once in both releases: two find another statement (design, section 10), one stands under another
condition than before, one finds the old condition at another place."""


def known_problem(known: Known) -> str:
    """Why a known case is not shown to a person; empty when it is."""
    remember()
    carried = Engine().carry(known.symbol, known.yaml, known.release)
    if carried.result is None:
        return f"it cannot be generated at the base: {', '.join(carried.why)}"
    status = carried.result.deltas[0].status
    return "" if status in ("review", "conflict") else f"status {status}"
