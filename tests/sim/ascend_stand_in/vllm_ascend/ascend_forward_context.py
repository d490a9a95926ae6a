"""Access to what a forward context holds beyond vLLM's own fields."""

from __future__ import annotations

from typing import Any

from vllm.forward_context import get_forward_context


class _ExtraForwardContextProxy:
    """The additional part of the current forward context, by attribute."""

    names = frozenset({"capturing", "num_tokens", "max_tokens_across_dp", "mc2_mask", "is_draft_model"})

    def check_extra_attr(self, name: str):
        """Only what is known."""
        if name not in self.names:
            raise AttributeError(name)

    def __getattr__(self, name: str) -> Any:
        self.check_extra_attr(name)
        return self._ctx().additional_kwargs.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.check_extra_attr(name)
        self._ctx().additional_kwargs[name] = value

    @staticmethod
    def _ctx():
        return get_forward_context()


_EXTRA_CTX = _ExtraForwardContextProxy()
