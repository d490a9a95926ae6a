"""The public face of the package: every name of it is there, and importing it stays cheap."""

from __future__ import annotations

import subprocess
import sys

from afd_patchkit import api


def test_every_public_name_is_there() -> None:
    assert [name for name in api.__all__ if not hasattr(api, name)] == []
    assert list(api.__all__) == sorted(api.__all__)


def test_what_commands_need_is_imported_when_it_is_used() -> None:
    code = (
        "import sys, afd_patchkit.api; print([n for n in ('yaml', 'pydantic', 'libcst', 'httpx') if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
