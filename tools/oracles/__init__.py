"""Judges of the engine that share nothing with it: a sweep over every function, random deltas, and known facts.

* `sweep/`: every function of a release through the engine, compared with upstream's own compiled code.
* `proof/`: random deltas over all releases, their places judged by an alignment of its own.
* `drift/`: what each release changed about a list of symbols, compared with facts that were measured without this tool.
"""
