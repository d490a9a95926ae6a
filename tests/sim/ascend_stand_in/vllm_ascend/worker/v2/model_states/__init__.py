"""Stand-in, see `vllm_ascend`."""
