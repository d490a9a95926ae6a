"""Mutations of a patch set: each delta left out, each place of its own code changed, and the test that notices."""
