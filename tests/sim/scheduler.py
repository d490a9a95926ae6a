"""As much of a scheduler as one runner needs, and a look at its logits."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Tokens = dict[str, list[int]]
Logits = dict[tuple[str, int], torch.Tensor]


@dataclass
class Request:
    """One request on its way.

    Attributes:
        prompt: number of prompt tokens.
        tokens: all tokens so far.
        most: tokens to generate.
        computed: how many of them are in the KV cache.
        blocks: its KV cache blocks.
        sampling: further sampling parameters.
        known: whether the runner has heard of it.
    """

    prompt: int
    tokens: list[int]
    most: int
    computed: int = 0
    blocks: list[int] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    known: bool = False

    @property
    def output(self) -> list[int]:
        """The generated tokens."""
        return self.tokens[self.prompt :]

    @property
    def done(self) -> bool:
        """Whether it has all its tokens."""
        return len(self.output) >= self.most


class MiniScheduler:
    """Schedules every unfinished request in every step; blocks of finished requests are used again.

    Attributes:
        requests: those that run.
        outputs: tokens of all requests, finished ones too.
    """

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.requests: dict[str, Request] = {}
        self.outputs: Tokens = {}
        self._free = deque(range(1, runner.cache_config.num_gpu_blocks))  # block 0 is the null block
        self._finished: set[str] = set()

    def add(self, name: str, prompt: Sequence[int], tokens: int = 1000, **sampling: Any) -> None:
        """Take a request, for the next step."""
        self.requests[name] = Request(len(prompt), list(prompt), tokens, sampling=sampling)
        self.outputs[name] = []

    def finish(self, name: str) -> None:
        """Drop a request; the runner hears of it in the next step."""
        self._free += self.requests.pop(name).blocks
        self._finished.add(name)

    def schedule(self, budget: int = 64, chunk: int | None = None) -> Any:
        """The `SchedulerOutput` of the next step.

        Args:
            budget: most tokens of the step.
            chunk: most tokens per request.
        """
        from vllm.v1.core.sched.output import SchedulerOutput

        out = SchedulerOutput.make_empty()
        out.num_common_prefix_blocks = [0]
        out.finished_req_ids, self._finished = self._finished, set()
        for name, request in self.requests.items():
            count = min(len(request.tokens) - request.computed, budget, chunk or budget)
            if count > 0:
                budget -= count
                self._put(out, name, request, count)
        out.total_num_scheduled_tokens = sum(out.num_scheduled_tokens.values())
        return out

    def _put(self, out: Any, name: str, request: Request, count: int) -> None:
        from vllm import SamplingParams
        from vllm.v1.core.sched.output import NewRequestData

        size = self.runner.cache_config.block_size
        missing = -(-(request.computed + count) // size) - len(request.blocks)
        blocks = [self._free.popleft() for _ in range(missing)]
        request.blocks += blocks
        out.num_scheduled_tokens[name] = count
        if request.known:
            cached = out.scheduled_cached_reqs
            cached.req_ids.append(name)
            cached.num_computed_tokens.append(request.computed)
            cached.num_output_tokens.append(len(request.output))
            cached.new_block_ids.append((blocks,) if blocks else None)
            return
        request.known = True
        sampling = {"temperature": 0.0, "max_tokens": request.most, **request.sampling}
        out.scheduled_new_reqs.append(
            NewRequestData(
                req_id=name, prompt_token_ids=request.tokens[: request.prompt], mm_features=[], pooling_params=None,
                sampling_params=SamplingParams(**sampling), block_ids=(blocks,), num_computed_tokens=0, lora_request=None,
                prefill_token_ids=request.tokens,
            )
        )  # fmt: skip

    def step(self, budget: int = 64, chunk: int | None = None) -> Tokens:
        """Run one step; the tokens that came out. Requests that have all theirs are finished."""
        out = self.schedule(budget, chunk)
        result = self.runner.execute_model(out)
        if out.total_num_scheduled_tokens == 0:
            return {}
        assert result is None, result
        sampled = self.runner.sample_tokens(None).get_output()
        new = dict(zip(sampled.req_ids, sampled.sampled_token_ids, strict=True))
        for name, tokens in new.items():
            request = self.requests[name]
            request.computed += out.num_scheduled_tokens[name]
            request.tokens += tokens
            self.outputs[name] = request.output
            if request.done:
                self.finish(name)
        return new

    def step_or_idle(self, budget: int = 64, chunk: int | None = None) -> Tokens:
        """`step`; without any request, the dummy run with which an idle DP rank takes part in the step of the others."""
        if self.requests:
            return self.step(budget, chunk)
        self.flush()
        self.runner._dummy_run(1, uniform_decode=True)
        return {}

    def flush(self) -> None:
        """Tell the runner which requests are finished."""
        if self._finished:
            self.step()


def generate(runner: Any, prompts: Mapping[str, Sequence[int]], steps: int = 8, chunk: int | None = None) -> Tokens:
    """Run all prompts together for some steps; the tokens of each."""
    scheduler = MiniScheduler(runner)
    for name, prompt in prompts.items():
        scheduler.add(name, prompt)
    for _ in range(steps):
        scheduler.step(chunk=chunk)
    for name in list(scheduler.requests):
        scheduler.finish(name)
    scheduler.flush()
    return scheduler.outputs


class LogitSpy:
    """Keeps the logits behind every sampled token.

    Attributes:
        seen: logits by request and position.
    """

    def __init__(self, runner: Any) -> None:
        self.seen: Logits = {}
        self._runner = runner
        self._sample = runner.sample
        runner.sample = self._watched

    def _watched(self, hidden_states: torch.Tensor, batch: Any, grammar: Any) -> Any:
        logits = self._runner.model.compute_logits(hidden_states[batch.logits_indices])
        for i, name in enumerate(batch.req_ids):
            position = int(batch.num_computed_tokens_np[i] + batch.num_scheduled_tokens[i])
            self.seen[name, position] = logits[i].clone()
        return self._sample(hidden_states, batch, grammar)


def difference(one: Logits, other: Logits) -> float:
    """The largest difference of two runs' logits.

    Raises:
        AssertionError: they sampled at different places.
    """
    assert one.keys() == other.keys(), sorted(one.keys() ^ other.keys())
    return max((float((one[place] - other[place]).abs().max()) for place in one), default=0.0)
