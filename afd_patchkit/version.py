"""The version of the tool, and of what it writes."""

__version__ = "0.1.0"

ENGINE = 22
"""Raised whenever the same input gives other output than before."""
