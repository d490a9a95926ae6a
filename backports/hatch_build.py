"""Build hooks of `afd-backports`: the modules that the repository around this folder has generated, and the licences of their upstreams.

They are those that `afd_patchkit` has for any project. Its source lies beside this folder and needs no installation. A source
distribution is refused: that of `afd-patchkit` has manifests, lock and outlines.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent))
from afd_patchkit.building.files import NotReady, shipped  # noqa: E402
from afd_patchkit.building.hatch import GeneratedModules  # noqa: E402
from afd_patchkit.project import load_project  # noqa: E402

LICENCES = "licenses"


class Licences(MetadataHookInterface):
    """Names the licence files of the pins; metadata can only name files below their own folder, so that they are copied to here."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `license-files`. Where the modules are not ready, the other hook says so."""
        copies = ROOT / LICENCES
        shutil.rmtree(copies, ignore_errors=True)
        try:
            files = shipped(load_project(ROOT.parent))
        except NotReady:
            files = {}
        found = [(name.partition(f"/{LICENCES}/")[2], path) for name, path in files.items()]
        for name, path in found:
            if "/" in name:  # not the list of them
                (copies / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copies / name)
        names = [f"{LICENCES}/{name}" for name, _ in found if "/" in name]
        metadata["license-files"] = ["LICENSE", "NOTICE", *names]


def get_build_hook() -> type[GeneratedModules]:
    """The one of the engine."""
    return GeneratedModules
