"""Attention ranks and FFN ranks of which one fails, dies, says nothing or says something else; and steps that are given up."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from tests.dbo.eager import Session, clean
from tests.dbo.ffn_roles import GPU, Setup, attention_runner, ends, make_ffn, remote_model
from tests.dbo.graphs import DBO, GRAPHS
from tests.dbo.points import OwnError
from tests.sim.ranks import Rank
from tests.sim.scheduler import Logits
from tests.sim.trace import Mark, hooked

PATIENT = 5.0
"""Seconds that the ends wait for each other when one of them says nothing."""

SILENT = {"says nothing", "sends nothing"}

FAILING = 3
"""The step that is disturbed: one of two stages, after a prefill and a decode step."""


def session(place: Rank, end: Any, setup: Setup = GPU, **more: Any) -> Session:
    """A runner of an attention rank."""
    remote = remote_model(setup)
    return Session(place, attention_runner(end, setup), DBO, model=remote["model"], **remote.get("engine", {}), **more)


@contextlib.contextmanager
def failing_at(number: int, how: Callable[[], object]) -> Iterator[None]:
    """Something happens before a certain mark of the block."""
    seen: list[Mark] = []

    def hook(mark: Mark) -> None:
        seen.append(mark)
        if len(seen) == number:
            how()

    with hooked(hook):
        yield


def fail() -> None:
    """An error of ours."""
    raise OwnError("in the middle of a step")


def die() -> None:
    """The process is gone at once."""
    os._exit(3)


# ---- what happens to all ranks when one of them is disturbed --------------------------------------------------


class Disturbed:
    """Runs a rank of either role to its end, which is an error, and writes down what it was."""

    def __init__(self, rank: Rank, fault: str, victim: int, folder: str, setup: Setup) -> None:
        self.rank, self.fault, self.victim, self.setup = rank, fault, victim, setup
        self.seen: dict[str, Any] = {}
        self.file = Path(folder) / f"{fault} {victim} {rank.index}"
        patience = {"timeout": PATIENT} if fault in SILENT else {}
        self.role, self.place, self.end = ends(rank, capture_moves_data=setup.capture_moves_data, **patience)

    def run(self) -> None:
        """As the role has it."""
        work = {"attention": self.attention, "ffn": self.ffn}[self.role]
        error = "nothing"
        try:
            work()
        except Exception as caught:
            error = f"{type(caught).__name__}: {caught}"
            raise
        finally:
            self.file.write_text(json.dumps({"error": error, **self.seen}))

    def attention(self) -> None:
        """Three steps, of which the last is disturbed; or a capture that is."""
        graphs = GRAPHS if self.fault in {"forgets", "captures wrongly"} else None
        here = session(self.place, self.end, self.setup, graphs=graphs, capture=self.fault == "forgets")
        try:
            if self.fault == "captures wrongly":
                here.runner.capture_model()
            else:
                here.add()
                here.steps(FAILING - 1)
                with self.disturbance(here):
                    here.steps(1)
        finally:
            clean()
            self.seen["raised"] = self.end.raised
            manager = here.runner.cudagraph_manager
            self.seen["twins"] = sum(vars(desc).get("num_ubatches") == 2 for desc in manager.graphs)
        self.end.end()

    def disturbance(self, here: Session) -> Any:
        """What is wrong with an attention rank in its last step."""
        if self.rank.index != self.victim:
            return contextlib.nullcontext()
        native_send, native_transfer = self.end.send, self.end.send_attn_output
        if self.fault == "raises":
            return failing_at(4, fail)
        if self.fault == "dies":
            return failing_at(4, die)
        if self.fault == "sends nothing":

            def wait(*transfer: Any) -> None:
                self.end.recv_nothing()

            return mock.patch.object(self.end, "send_attn_output", wait)
        if self.fault == "announces another kind":

            def warm_up(metadata: Any) -> None:
                self.end.is_warmup = True
                native_send(metadata)
                self.end.is_warmup = False

            return mock.patch.object(self.end, "send", warm_up)
        if self.fault == "announces other tokens":
            return mock.patch.object(self.end, "send", lambda metadata: native_send({0: metadata[0]}))
        if self.fault == "sends other tokens":
            return mock.patch.object(self.end, "send_attn_output", lambda x, context: native_transfer(x[:-1], context))
        return contextlib.nullcontext()

    def ffn(self) -> None:
        """All steps; the same one is disturbed."""
        runner, number = make_ffn(self.place, self.end, self.setup), 0
        native_forward = runner.forward

        def before(payload: Any) -> None:
            nonlocal number
            number += 1
            if self.rank.index == self.victim and self.fault == "forgets" and payload.kind == "replay":
                runner.steps.release()

        def forward(payload: Any) -> Any:
            if self.rank.index == self.victim:
                if self.fault == "captures wrongly" and payload.kind == "capture" and len(payload.tokens) == 2:
                    raise OwnError("in a capture")
                if number == FAILING and self.fault in {"raises", "dies"}:
                    with failing_at(7, fail if self.fault == "raises" else die):
                        return native_forward(payload)
                if number == FAILING and self.fault == "says nothing":
                    return None
            return native_forward(payload)

        runner.steps._forward = forward
        runner.serve(before)


def disturb(rank: Rank, fault: str, victim: int, folder: str, setup: Setup = GPU) -> None:
    """Run a rank while one of them is disturbed."""
    Disturbed(rank, fault, victim, folder, setup).run()


# ---- steps that the attention side gives up -------------------------------------------------------------------


def last(logits: Logits) -> Logits:
    """Logits by the number of a request."""
    return {(name.partition(":")[2], position): value for (name, position), value in logits.items()}


def twin(here: Session, tokens: int) -> Any:
    """The descriptor of a captured split batch."""
    graphs = here.runner.cudagraph_manager.graphs
    return next(desc for desc in graphs if vars(desc).get("num_ubatches") == 2 and desc.num_tokens == tokens)


class BrokenGraph:
    """A graph whose replay fails, before anything is done or after all of it."""

    def __init__(self, end: Any, native: Any = None) -> None:
        self.end, self.native = end, native
        self.flag = False

    def replay(self) -> None:
        """Fail."""
        self.flag = self.end.is_graph_replaying
        if self.native is not None:
            self.native.replay()
        raise OwnError("in a replay")


def give_up(rank: Rank, marks: list[int], setup: Setup = GPU) -> Any:
    """Prefills that fail at each of the marks, on both attention ranks; then decode steps whose replays fail."""
    role, place, end = ends(rank, capture_moves_data=setup.capture_moves_data)
    if role == "ffn":
        return make_ffn(place, end, setup).serve()
    here, seen = session(place, end, setup, graphs=GRAPHS), []
    for number in marks:
        here.add()
        outcome: dict[str, Any] = {}
        with failing_at(number, fail):
            try:
                here.steps(1)
            except OwnError:
                outcome["failed"] = True
        clean()
        here.drop()
        here.add()
        outcome |= {"logits": last(here.steps(3)), "raised": end.raised}
        here.drop()
        seen.append(outcome)
    for after in (False, True):
        graphs, desc = here.runner.cudagraph_manager.graphs, twin(here, 4)
        here.add()
        here.steps(2)
        graph = graphs[desc]
        broken = graphs[desc] = BrokenGraph(end, graph if after else None)
        outcome = {}
        try:
            here.steps(1)
        except OwnError:
            outcome["failed"] = broken.flag
        outcome |= {"raised after": end.raised, "lost": desc not in graphs}
        if not outcome["lost"]:
            graphs[desc] = graph
        clean()
        seen.append({**outcome, "logits": last(here.steps(1)), "raised": end.raised})
        here.drop()
        if outcome["lost"] and not after:
            here.runner.shutdown()
            here = session(place, end, setup, graphs=GRAPHS)
    end.end()
    return seen


def capture_again(rank: Rank, mark: int, setup: Setup = GPU) -> Any:
    """A capture that fails on both attention ranks; they go on; others take their place and capture all."""
    role, place, end = ends(rank, capture_moves_data=setup.capture_moves_data)
    if role == "ffn":
        return make_ffn(place, end, setup).serve()
    seen: dict[str, Any] = {}
    first = session(place, end, setup, graphs=GRAPHS, capture=False)
    with failing_at(mark, fail):
        try:
            first.runner.capture_model()
        except OwnError:
            seen["failed"] = True
    clean()
    seen["twins"] = [desc for desc in first.runner.cudagraph_manager.graphs if vars(desc).get("num_ubatches") == 2]
    first.add()
    seen["gone on"] = last(first.steps(3))
    first.drop()
    first.runner.shutdown()
    second = session(place, end, setup, graphs=GRAPHS)
    second.add()
    seen["second"] = last(second.steps(3))
    seen["replays"] = second.runner.cudagraph_manager.graphs[twin(second, 4)].replays
    end.end()
    return seen
