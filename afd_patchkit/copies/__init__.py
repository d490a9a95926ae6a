"""Hand copies of upstream functions: read in any tree, paired with upstream, compared with it. Nothing is executed.

* `reading`: the Python files of a tree, and the functions in them.
* `marks`: what people write around a copy: fences, and the comments above it.
* `meaning`: where a name leads, in a hand file as in upstream's.
* `canonical`: a function as a tree in which only what Python does is left.
* `difference`: what differs between two such trees, statement by statement.
* `installs`: the assignments that put a function in an upstream one's place.
* `pairing`: which upstream function a hand copy is a copy of.
* `judging`, `places`, `audit`: findings about one pair, about what is around it, and the whole run.
"""
