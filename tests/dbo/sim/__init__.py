"""A device that is none: lets vLLM's model runner V2 run on CPU tensors. `device.install` comes before vLLM is imported."""
