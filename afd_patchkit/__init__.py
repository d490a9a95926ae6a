"""afd-patchkit: keep copied and adapted upstream code alive.

The public API is `afd_patchkit.api`; everything else may change between releases.
"""

from afd_patchkit.version import __version__

__all__ = ["__version__"]
