"""Build hook for hatchling: `[tool.hatch.build.hooks.afd-patchkit]`.

Generated modules embed upstream text, so version control ignores them, and so does hatchling. The hook puts them into wheel and
source distribution, file by file, and refuses to build where they are missing, stale or edited.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl


class GeneratedModules(BuildHookInterface):  # type: ignore[type-arg]
    """Option `project`: the folder of the project whose modules are shipped, from the root of the distribution on (`.`)."""

    PLUGIN_NAME = "afd-patchkit"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Extend `force_include`; an editable install needs nothing, it sees the folder itself.

        Args:
            version: what is built of the target: `standard` or `editable`.
            build_data: what the hook may change.

        Raises:
            ValueError: the modules are not what the lock says, or lie where a source distribution cannot carry them.
        """
        if version == "editable":
            return
        from afd_patchkit.building.files import NotReady, shipped, sources
        from afd_patchkit.findings.errors import PatchkitError
        from afd_patchkit.project import load_project

        root = Path(self.root).resolve()
        try:
            project = load_project(root / self.config.get("project", "."))
            if self.target_name != "sdist":
                files = {str(path): name for name, path in shipped(project).items()}
            elif project.root.resolve().is_relative_to(root):
                files = {str(path): path.resolve().relative_to(root).as_posix() for path in sources(project)}
            else:
                raise ValueError(
                    f"{project.root} is outside {root}: a source distribution cannot carry it; build a wheel"
                )
        except (NotReady, PatchkitError) as error:
            raise ValueError(str(error)) from None
        build_data["force_include"].update(files)


@hookimpl
def hatch_register_build_hook() -> type[GeneratedModules]:
    """Make the hook known by its name."""
    return GeneratedModules
