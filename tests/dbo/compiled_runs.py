"""Whole models in vLLM's compilation, in the processes of DP ranks: compiled, captured, replayed, interrupted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from tests.dbo.eager import Session, clean
from tests.dbo.points import OwnError
from tests.dbo.scenarios import EVEN, MANY
from tests.sim import compilation
from tests.sim.config import Dbo, Graphs
from tests.sim.ranks import Rank
from tests.sim.scenario import Outcome, RunnerClass, Scenario, play
from tests.sim.scheduler import Logits
from tests.sim.trace import Mark, hooked

GRAPHS = Graphs((2, 4), "FULL_DECODE_ONLY")
SCENARIOS = {"decode": Scenario(EVEN, steps=4, races=True), "requests come and go": Scenario(MANY)}


@dataclass(frozen=True)
class Compiled:
    """How it went.

    Attributes:
        outcome: tokens, logits, replays, races.
        mode: vLLM's name of what it did with the model.
        backend: who compiled it.
        graphs: how many graphs the compiler was given.
        handoffs: the handoffs that were in them.
    """

    outcome: Outcome
    mode: str
    backend: str
    graphs: int
    handoffs: int


@dataclass(frozen=True)
class Kind:
    """What is compiled, and how.

    Attributes:
        plain: the model's description, for a class that is not compiled and does not hand over as a plugin's does.
        compiled: the same for the class that is compiled.
        engine: engine arguments of all runs.
        compilation: further settings of a compiled run.
        additional: `additional_config` of a compiled run.
        native: the runner without anything generated.
        dbo: the generated one.
    """

    plain: Mapping[str, object]
    compiled: Mapping[str, object]
    engine: Mapping[str, Any]
    compilation: Mapping[str, Any]
    additional: Mapping[str, Any]
    native: RunnerClass
    dbo: RunnerClass

    def scenario(self, name: str, mode: str) -> Scenario:
        """A scenario, compiled and with graphs; `split`, with ubatches."""
        settings = {
            "mode": 3,
            "cudagraph_mode": GRAPHS.mode,
            "cudagraph_capture_sizes": list(GRAPHS.sizes),
            "splitting_ops": [],
        }
        engine = {**self.engine, "compilation_config": {**settings, **self.compilation}}
        if self.additional:
            engine["additional_config"] = dict(self.additional)
        dbo = Dbo() if mode == "split" else None
        return replace(SCENARIOS[name], model=self.compiled, engine=engine, graphs=GRAPHS, dbo=dbo)


def vllm_kind(backend: str) -> Kind:
    """vLLM's runner, with one of vLLM's backends."""
    from vllm import ModelRegistry
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    from tests.dbo.compiled_model import COMPILED, SimCompiledForCausalLM
    from tests.dbo.runners import DboRunner
    from tests.sim.config import MOE

    ModelRegistry.register_model("SimCompiledForCausalLM", SimCompiledForCausalLM)
    passes = ("fuse_norm_quant", "fuse_act_quant", "fuse_attn_quant", "fuse_allreduce_rms", "fuse_rope_kvcache_cat_mla")
    settings = {"backend": backend, "pass_config": dict.fromkeys(passes, False)}
    return Kind(MOE, COMPILED, {}, settings, {}, GPUModelRunner, DboRunner)


def ascend_kind(backend: str) -> Kind:
    """vllm-ascend's runner and its compiler: without `npugraph_ex`, and without the fusions that need its patterns."""
    from vllm import ModelRegistry

    from tests.dbo.ascend import dbo_runner
    from tests.dbo.compiled_ascend import COMPILED_MLA, SimCompiledMlaForCausalLM
    from tests.sim.ascend import npu_runner
    from tests.sim.ascend_config import ENGINE, MLA

    ModelRegistry.register_model("SimCompiledMlaForCausalLM", SimCompiledMlaForCausalLM)
    off = ("enable_npugraph_ex", "fuse_norm_quant", "fuse_qknorm_rope", "fuse_muls_add")
    switches = {"ascend_compilation_config": dict.fromkeys(off, False)}
    return Kind(MLA, COMPILED_MLA, ENGINE, {}, switches, npu_runner, dbo_runner)


KINDS: dict[str, Callable[[str], Kind]] = {"vllm": vllm_kind, "ascend": ascend_kind}


def play_plain(rank: Rank, runner: str) -> dict[str, dict[str, Outcome]]:
    """The scenarios in single batches of the native runner: another class of model, and the one that is compiled elsewhere."""
    kind = KINDS[runner]("eager")
    models = {"plain": kind.plain, "not compiled": kind.compiled}
    return {
        what: {
            name: play(rank, replace(scenario, model=model, engine=kind.engine, races=False), kind.native)
            for name, scenario in SCENARIOS.items()
        }
        for what, model in models.items()
    }


def play_compiled(
    rank: Rank, runner: str, backend: str, modes: tuple[str, ...], aot: bool
) -> dict[tuple[str, str], Compiled]:
    """Each scenario in a compiled model.

    Args:
        rank: it.
        runner: `vllm` or `ascend`.
        backend: who compiles.
        modes: `single`, natively; `split`, with the generated runner.
        aot: whether vLLM compiles ahead of time.
    """
    from vllm.compilation.backends import VllmBackend

    compilation.install(rank.folder / "compiled", aot=aot)
    kind, given = KINDS[runner](backend), list[torch.fx.GraphModule]()
    compiler = VllmBackend.__call__

    def noted(self: Any, graph: torch.fx.GraphModule, examples: Any) -> Any:
        given.append(graph)
        return compiler(self, graph, examples)

    VllmBackend.__call__ = noted
    seen = {}
    for name in SCENARIOS:
        for mode in modes:
            runners: list[Any] = []

            def make(config: Any, device: torch.device, mode: str = mode, runners: list[Any] = runners) -> Any:
                runners.append((kind.dbo if mode == "split" else kind.native)(config, device))
                return runners[-1]

            given.clear()
            outcome = play(rank, kind.scenario(name, mode), make)
            handoffs = sum("afd_hand_over" in str(node.target) for graph in given for node in graph.graph.nodes)
            settings = runners[0].vllm_config.compilation_config
            seen[name, mode] = Compiled(outcome, settings.mode.name, settings.backend, len(given), handoffs)
    return seen


def disturb(rank: Rank, runner: str, backend: str) -> dict[str, Any]:
    """A stage of a compiled model fails, in a step, and while a graph is captured; afterwards steps are as ever."""
    compilation.install(rank.folder / "compiled")
    kind = KINDS[runner](backend)
    scenario = kind.scenario("decode", "split")
    session = Session(rank, kind.dbo, Dbo(), capture=False, model=kind.compiled, graphs=GRAPHS, **scenario.engine)  # type: ignore[arg-type]
    seen: dict[str, Any] = {"errors": []}

    def fails_at(point: Mark, again: Callable[[], object]) -> None:
        def hook(mark: Mark) -> None:
            if mark == point:
                raise OwnError(str(point))

        with hooked(hook):
            try:
                again()
            except OwnError as error:
                seen["errors"].append(str(error))
        clean()

    points = [Mark(stage, layer, step) for stage in (0, 1) for layer in (0, 1) for step in ("dispatch", "combine")]
    for point in points:
        session.add()
        session.steps(2)
        fails_at(point, session.scheduler.step)
        session.drop()
    fails_at(Mark(1, 1, "dispatch"), session.runner.capture_model)
    seen["wanted"] = [str(point) for point in (*points, Mark(1, 1, "dispatch"))]
    session.add()
    seen["logits"] = _plainly_named(session.steps(3))
    session.drop()
    session.runner.shutdown()
    return seen


def undisturbed(rank: Rank, runner: str) -> Logits:
    """The logits of the third step in single batches, not compiled."""
    kind = KINDS[runner]("eager")
    session = Session(rank, kind.native, None, model=kind.plain, **kind.engine)  # type: ignore[arg-type]
    session.add()
    return _plainly_named(session.steps(3))


def _plainly_named(logits: Logits) -> Logits:
    return {(name.partition(":")[2], at): value for (name, at), value in logits.items()}
