"""A simulated device: the real vLLM model runners on CPU tensors, with streams, events, graphs and DP ranks.

What is simulated is *order*: which stream work was issued to, what an event orders before what, what a graph recorded. The
arithmetic is done at once, by torch on the CPU. From the bottom:

* `streams`, `tape`, `graphs`, `race`, `npu`: the device; they need nothing but torch.
* `device`: puts the device in the place of `torch.cuda` and `torch.accelerator`, for the whole process.
* `plugin`, `platform`, `communicator`, `attention`, `worker`: vLLM's view of it.
* `model`, `config`, `runner`, `scheduler`, `scenario`: a tiny model, and runs of it that two processes can compare.
* `ranks`, `zygote`, `environments`: functions in processes of their own, one per rank.
* `ascend`, `ascend_ops`: what a source tree of vllm-ascend needs to run on it.
"""
