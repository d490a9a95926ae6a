"""Hundreds of steps of all kinds in one pair of processes, with failures in between at any of their points."""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from tests.dbo.eager import Session
from tests.dbo.matrix import GRAPHS, Problems, Subject, difference, fail
from tests.dbo.points import Point, failing, instrument, record
from tests.sim import streams
from tests.sim.ranks import Rank
from tests.sim.scheduler import Logits
from tests.sim.trace import TRACE

MODES = ("eager", "graphs")
SHAPES = {"three": (3, 3), "one": (1, 1), "uneven": (3, 2), "idle": (2, 0)}
"""Requests of each rank: split, a single batch for each, split and padded, one rank without any."""
STEPS = 5
"""Most steps of a request."""


class Player:
    """Plays steps of a shape on a subject, or on vLLM's own runner."""

    def __init__(self, rank: Rank, session: Session) -> None:
        self.rank, self.session = rank, session

    def add(self, shape: str) -> None:
        """Take the requests of this rank."""
        self.session.add(SHAPES[shape][self.rank.index])

    def step(self) -> Logits:
        """One step of all requests, or taking part in that of the other rank; the logits by request and position."""
        self.session.spy.seen.clear()
        self.session.scheduler.step_or_idle()
        TRACE.clear()
        return {(name.partition(":")[2], at): logits for (name, at), logits in self.session.spy.seen.items()}

    def drop(self) -> None:
        """Finish all requests, and let the runner hear of it by itself."""
        self.session.drop()
        self.session.scheduler.flush()
        self.session.scheduler.outputs.clear()
        self.session.spy.seen.clear()


def players(rank: Rank) -> tuple[dict[str, Subject], dict[str, Player]]:
    """A subject and its player for each mode."""
    subjects = {"eager": Subject(rank), "graphs": Subject(rank, GRAPHS)}
    return subjects, {mode: Player(rank, subject.session) for mode, subject in subjects.items()}


def points(rank: Rank) -> dict[str, list[Point]]:
    """The points of each kind of step."""
    instrument()
    _, mine = players(rank)
    found: dict[str, list[Point]] = {}
    for mode, player in mine.items():
        for shape in SHAPES:
            for _ in range(2):  # what happens once in a process has happened
                player.add(shape)
                for kind in ("prefill", "decode"):
                    found[f"{mode} {shape} {kind}"] = record(player.step)
                player.drop()
    return found


def expected(rank: Rank) -> dict[str, list[Logits]]:
    """The logits of each step of each shape, of vLLM's own runner."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    player, found = Player(rank, Session(rank, GPUModelRunner, None)), {}
    for shape in SHAPES:
        player.add(shape)
        found[shape] = [{key: value.clone() for key, value in player.step().items()} for _ in range(STEPS)]
        player.drop()
    return found


@dataclass(frozen=True)
class Sample:
    """What may not grow.

    Attributes:
        tensors: number of tensors.
        streams: number of streams of the simulated device.
        objects: number of objects that the collector knows.
        kilobytes: memory of the process.
    """

    tensors: int
    streams: int
    objects: int
    kilobytes: int

    @classmethod
    def take(cls) -> Sample:
        """Now."""
        gc.collect()
        objects = gc.get_objects()
        tensors = sum(issubclass(type(thing), torch.Tensor) for thing in objects)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return cls(tensors, len(streams._streams), len(objects), pages * 4)


@dataclass
class Soaked:
    """What came of it.

    Attributes:
        problems: by step.
        kinds: how often each kind of step was played well.
        faults: how many failed.
        samples: at the end of the first third, and of the last.
        replays: of the twin.
    """

    problems: Problems = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    faults: int = 0
    samples: list[Sample] = field(default_factory=list)
    replays: int = 0


def soak(rank: Rank, points: Mapping[str, Sequence[Point]], steps: int, seed: int) -> Soaked:
    """Play steps: each is followed by one that it is compared with; about every second one fails first."""
    instrument()
    choose, right = random.Random(seed), expected(rank)
    subjects, mine = players(rank)
    soaked = Soaked()
    while (played := soaked.kinds.total() + soaked.faults) < steps:
        if len(soaked.samples) == 0 and played > steps // 3:
            soaked.samples.append(Sample.take())
        mode, shape = choose.choice(MODES), choose.choice([*SHAPES, "three"])
        subject, player = subjects[mode], mine[mode]
        player.add(shape)
        for step in range(choose.randint(2, STEPS)):
            kind = f"{mode} {shape} {'decode' if step else 'prefill'}"
            found: list[str] = []
            fault = choose.choice(points[kind]) if choose.random() < 0.5 else None
            if fault is not None:
                found += [*fail(player.step, failing(fault)), *subject.left()]
                soaked.faults += 1
                if step == 0:  # they are given up, others take their place
                    player.drop()
                    player.add(shape)
            found += [*difference(player.step(), right[shape][step]), *subject.left()]
            soaked.kinds[kind] += 1
            if found:
                soaked.problems[f"step {played}, {kind}, after {fault}"] = found
        player.drop()
    soaked.samples.append(Sample.take())
    graphs: dict[Any, Any] = subjects["graphs"].runner.cudagraph_manager.graphs
    soaked.replays = sum(graph.replays for desc, graph in graphs.items() if vars(desc).get("num_ubatches", 1) == 2)
    return soaked
