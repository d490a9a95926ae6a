"""afd-patchkit: keep copied and adapted upstream code alive."""

__version__ = "0.1.0"
