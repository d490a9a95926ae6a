"""From a hand copy to a manifest: the deltas that make it of upstream's function, proved by generating them.

* `texts`: the hand copy's code as a delta has it.
* `anchors`: patterns that match one place of upstream's function and no other.
* `wraps`: what a replacement keeps of the text that it replaces.
* `derive`: two texts of a function become deltas.
* `yaml_text`: a manifest as text.
* `adopting`: files, proofs, and what is written.
"""
