"""Where a piece of Python stands in a symbol: patterns, clauses, and what to say when nothing fits."""
