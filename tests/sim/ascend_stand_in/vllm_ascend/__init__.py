"""A stand-in for vllm-ascend: as much as the generated modules are built on, for machines without a source tree of it.

Written for the tests, with the names, signatures and fields of the original, which `tests.sim.ascend_abi` compares, and with its
hazards: parameters of graphs by number of tokens, dummy batches that are copies, rotary factors and masks in one buffer for all.
Attention treats every token as a request of its own. Names with an underscore are of the stand-in alone, but for those of
`ascend-abi.json`.
"""
