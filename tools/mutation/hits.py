"""Reports which lines of a generated module are reached, from all processes of a test: `tools.mutation.lines` puts it in there.

They meet `tools.mutation.phases`, which knows what runs at the moment, in a folder that the environment names.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

VARIABLE = "AFD_MUTATION_HITS"
PHASE, HITS = "phase", "hits"
SIZE = 8


def prepare(folder: Path) -> None:
    """Make what the processes of a run share."""
    (folder / PHASE).write_bytes(bytes(SIZE))
    (folder / HITS).write_bytes(b"")


class Hit:
    """Reports the lines of a module: each once per phase and process."""

    def __init__(self, module: str) -> None:
        folder = Path(os.environ[VARIABLE])
        with (folder / PHASE).open("rb") as file:
            self._phase = mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ)
        self._out = os.open(folder / HITS, os.O_WRONLY | os.O_APPEND)
        self._module, self._seen = module, set[tuple[int, int]]()

    def _reached(self, line: int) -> None:
        phase = int.from_bytes(self._phase[:SIZE], "little")
        if (phase, line) not in self._seen:
            self._seen.add((phase, line))
            os.write(self._out, f"{phase} {line} {self._module}\n".encode())

    line = property(fset=_reached)
    """Set before each statement: an assignment is no call, so whoever counts calls counts as without it."""
