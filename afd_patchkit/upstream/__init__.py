"""Upstream distributions: where a pin's files come from, and how they are verified."""
