"""Build hook of `afd-backports`: the wheel carries exactly the generated modules that the lock names.

The modules embed upstream text, so git ignores them: `afd-patchkit regen` writes them to `../generated/`. A wheel of missing,
stale or hand-edited modules is refused, and there is no source distribution: the source is manifests, lock and outlines, which
`afd-patchkit`'s has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "afd_backports"
GENERATED = "../generated"
HELP = "run `afd-patchkit regen` in the repository's root, then build again"


def problems(generated: Path) -> Iterator[str]:
    """What keeps the modules below `generated` from being shipped.

    Args:
        generated: the folder that holds `patchkit.lock` and the package.

    Yields:
        One sentence for each file that is missing, differs from the lock, or is not in it.
    """
    package, lock = generated / PACKAGE, generated / "patchkit.lock"
    if not lock.is_file():
        yield f"{lock} is not there"
        return
    content: dict[str, Any] = json.loads(lock.read_text(encoding="utf-8"))
    for pin, version in sorted(content.get("overrides", {}).items()):
        yield f"they were generated for {pin} {version}, which is not the pinned version"
    modules = {
        name: module for name, module in content["modules"].items() if "sha256" in module
    }  # the others are retired
    for name, module in sorted(modules.items()):
        path = package / name
        if not path.is_file():
            yield f"{PACKAGE}/{name} is not there"
        elif hashlib.sha256(path.read_bytes()).hexdigest() != module["sha256"]:
            yield f"{PACKAGE}/{name} is not what the lock says"
    parents = {parent.as_posix() for name in modules for parent in Path(name).parents}
    inits = {f"{parent}/__init__.py".removeprefix("./") for parent in parents}
    yield from (f"{PACKAGE}/{name} is not there" for name in sorted(inits) if not (package / name).is_file())
    for name in sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py")):
        if name not in modules and name not in inits:
            yield f"{PACKAGE}/{name} is not in the lock"


class GeneratedModules(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the generated package and its `py.typed` to the wheel, file by file."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Extend `force_include`; an editable install needs nothing, it sees the folder itself.

        Raises:
            ValueError: a source distribution is asked for, or the modules are not what the lock says.
        """
        if self.target_name == "sdist":
            raise ValueError("afd-backports has wheels only; its source distribution is that of afd-patchkit")
        if version == "editable":
            return
        generated = Path(self.root, GENERATED).resolve()
        if found := list(problems(generated)):
            raise ValueError("\n  ".join(["the generated modules cannot be shipped:", *found, HELP]))
        for path in sorted((generated / PACKAGE).rglob("*.py")):
            build_data["force_include"][str(path)] = path.relative_to(generated).as_posix()
        build_data["force_include"][str(Path(self.root, "py.typed"))] = f"{PACKAGE}/py.typed"
