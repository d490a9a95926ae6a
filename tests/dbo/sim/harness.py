"""One DP rank with vLLM's real runner: configuration, groups, a small scheduler, and the logits of every sampled token."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

BLOCK = 16
CONFIG = {
    "architectures": ["SimMoEForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64,
    "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu", "torch_dtype": "float32",
    "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 1,
}  # fmt: skip


def use_platform() -> None:
    """Make the simulated device vLLM's platform; before anything else of vLLM is imported."""
    import vllm.platforms

    from tests.dbo.sim.platform import SimPlatform

    vllm.platforms._current_platform = SimPlatform()


def make_config(folder: Path, rank: int, size: int) -> Any:
    """The configuration of one rank; ubatches are switched on afterwards, for vLLM 0.26 refuses them on this platform."""
    from vllm import ModelRegistry
    from vllm.engine.arg_utils import EngineArgs

    from tests.dbo.sim.model import ARCHITECTURE, SimMoE

    if ARCHITECTURE not in ModelRegistry.get_supported_archs():
        ModelRegistry.register_model(ARCHITECTURE, SimMoE)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    config = EngineArgs(
        model=str(folder), load_format="dummy", skip_tokenizer_init=True, dtype="float32", max_model_len=128,
        max_num_seqs=8, max_num_batched_tokens=64, block_size=BLOCK, enforce_eager=True, enable_prefix_caching=False, seed=0,
    ).create_engine_config()  # fmt: skip
    parallel = config.parallel_config
    parallel.data_parallel_size, parallel.data_parallel_rank = size, rank
    parallel.data_parallel_rank_local = parallel.data_parallel_index = rank
    parallel.is_moe_model = True
    return config


def make_runner(config: Any, kind: type) -> Any:
    """A runner with its model and its KV cache."""
    from vllm.config import set_current_vllm_config
    from vllm.v1.core.kv_cache_utils import get_kv_cache_configs
    from vllm.v1.worker.workspace import init_workspace_manager

    from tests.dbo.sim.model import set_weights

    with set_current_vllm_config(config):
        init_workspace_manager(torch.device("cpu"), 1)
        config.compilation_config.static_forward_context.clear()
        runner = kind(config, torch.device("cpu"))
        runner.load_model()
        set_weights(runner.model)
        spec = runner.get_kv_cache_spec()
        size = sum(layer.page_size_bytes for layer in spec.values()) * 64
        cache = get_kv_cache_configs(config, [spec], [size])[0]
        config.cache_config.num_gpu_blocks = cache.num_blocks
        runner.initialize_kv_cache(cache)
    return runner


@dataclass
class Request:
    """What the scheduler knows of a request."""

    tokens: list[int]
    prompt: int
    computed: int = 0
    blocks: list[int] = field(default_factory=list)


class Scheduler:
    """Schedules all that is left of every request, and keeps the logits by request and position."""

    def __init__(self, runner: Any, prompts: dict[str, list[int]], budget: int = 64) -> None:
        self.runner, self.budget = runner, budget
        self.requests = {name: Request(list(prompt), len(prompt)) for name, prompt in prompts.items()}
        self.new = set(prompts)
        self.free = 1
        self.finished: set[str] = set()
        self.logits: dict[tuple[str, int], list[float]] = {}
        native = runner.sample

        def sample(hidden: Any, batch: Any, grammar: Any) -> Any:
            logits = runner.model.compute_logits(hidden[batch.logits_indices])
            for i, name in enumerate(batch.req_ids):
                position = int(batch.num_computed_tokens_np[i] + batch.num_scheduled_tokens[i])
                self.logits[name, position] = logits[i].tolist()
            return native(hidden, batch, grammar)

        runner.sample = sample

    def schedule(self) -> Any:
        """The next step's work."""
        from vllm import SamplingParams
        from vllm.v1.core.sched.output import NewRequestData, SchedulerOutput

        output, budget = SchedulerOutput.make_empty(), self.budget
        output.num_common_prefix_blocks = [0]
        output.finished_req_ids, self.finished = self.finished, set()
        for name, request in self.requests.items():
            count = min(len(request.tokens) - request.computed, budget)
            if count <= 0:
                continue
            budget -= count
            need = -(-(request.computed + count) // BLOCK) - len(request.blocks)
            blocks = list(range(self.free, self.free + need))
            self.free += need
            request.blocks += blocks
            if name in self.new:
                self.new.remove(name)
                output.scheduled_new_reqs.append(
                    NewRequestData(
                        req_id=name, prompt_token_ids=request.tokens, mm_features=[], pooling_params=None,
                        block_ids=(blocks,), sampling_params=SamplingParams(temperature=0.0, max_tokens=64),
                        num_computed_tokens=0, lora_request=None, prefill_token_ids=request.tokens,
                    )
                )  # fmt: skip
            else:
                cached = output.scheduled_cached_reqs
                cached.req_ids.append(name)
                cached.num_computed_tokens.append(request.computed)
                cached.num_output_tokens.append(len(request.tokens) - request.prompt)
                cached.new_block_ids.append((blocks,) if blocks else None)
            output.num_scheduled_tokens[name] = count
        output.total_num_scheduled_tokens = sum(output.num_scheduled_tokens.values())
        return output

    def step(self) -> None:
        """Run one step."""
        work = self.schedule()
        assert self.runner.execute_model(work) is None
        output = self.runner.sample_tokens(None).get_output()
        for name, tokens in zip(output.req_ids, output.sampled_token_ids, strict=True):
            request = self.requests[name]
            request.computed += work.num_scheduled_tokens[name]
            request.tokens += tokens

    def finish(self) -> dict[str, list[int]]:
        """What was sampled; the requests are removed."""
        sampled = {name: request.tokens[request.prompt :] for name, request in self.requests.items()}
        self.finished = set(self.requests)
        self.requests.clear()
        self.runner.execute_model(self.schedule())
        return sampled
