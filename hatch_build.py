"""Build hook: puts the generated modules into the wheel.

They embed upstream text, so git ignores them: `afd-patchkit regen` writes them to `generated/`, and a wheel built after that
carries them as the top-level package `afd_backports`. A wheel built before that is the engine alone, which is what
`pip install .` in a fresh clone needs. `tools/build` runs both steps and verifies the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = "generated"
PACKAGE = "afd_backports"
SHIPPED = {".py", ".pyi", ".typed"}


class GeneratedModules(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `generated/afd_backports` to a wheel, file by file."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Extend `force_include`; an editable install needs nothing, it sees the folder itself."""
        if version == "editable":
            return
        package = Path(self.root, ROOT, PACKAGE)
        files = sorted(path for path in package.rglob("*") if path.suffix in SHIPPED and path.is_file())
        if not files:
            self.app.display_warning(
                f"{ROOT}/{PACKAGE} is not there: this wheel holds the engine only. "
                "Run `afd-patchkit regen` before the build (or tools/build) to ship the generated modules."
            )
            return
        bare = sorted({f.parent.relative_to(self.root).as_posix() for f in files if not (f.parent / "__init__.py").is_file()})
        if bare:
            raise ValueError(f"no __init__.py in {', '.join(bare)}: run `afd-patchkit regen` again")
        for path in files:
            build_data["force_include"][str(path)] = path.relative_to(Path(self.root, ROOT)).as_posix()
