"""The AFD part of a configuration: `additional_config["afd"]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """`AFDSettings` of the generated modules.

    Attributes:
        role: `attention` or `ffn`.
        connector: name of the connector class.
        num_attention_ranks: number of attention ranks.
        rendezvous: a folder in which attention ranks and FFN ranks find each other; a new one for each run.
        async_dp: whether the connector works asynchronously; `async` in the configuration.
        compute_gate_on_attention: whether the attention side computes the gate of the experts.
    """

    role: str
    connector: str
    num_attention_ranks: int
    rendezvous: str
    async_dp: bool = False
    compute_gate_on_attention: bool = False


def parse(vllm_config: Any) -> Settings | None:
    """The AFD part; None when there is none. `SettingsParser` of the generated modules.

    Raises:
        ValueError: there is one, and it is wrong.
    """
    more = vllm_config.additional_config
    if not isinstance(more, dict) or "afd" not in more:
        return None
    given = dict(more["afd"])
    given["async_dp"] = given.pop("async", False)
    try:
        return Settings(**given)
    except TypeError as error:
        raise ValueError(f'additional_config["afd"] is {more["afd"]!r}: {error}') from error
