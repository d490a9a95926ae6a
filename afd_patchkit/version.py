"""The version of the tool, and of what it writes."""

__version__ = "0.1.0"
