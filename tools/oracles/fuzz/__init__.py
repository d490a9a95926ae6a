"""Hostile input of every kind, run through the real commands: what crashes, hangs or takes too much memory is a fault."""
