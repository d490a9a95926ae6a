"""Build command for setuptools: `[tool.setuptools.cmdclass]` with `build = "afd_patchkit.building.setuptools.build"`.

The generated modules enter wheel and source distribution, and a build without them fails.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, TypeVar

from setuptools import Command
from setuptools.command.build import build as plain_build
from setuptools.errors import BaseError

from afd_patchkit.building import files
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.project import Project, load_project

_STEP = "build_generated"
Files = TypeVar("Files")


class build(plain_build):  # type: ignore[misc]  # setuptools has no types
    """`build` with one more step."""

    sub_commands: ClassVar = [*plain_build.sub_commands, (_STEP, None)]

    def initialize_options(self) -> None:
        """Make the further step known to the distribution."""
        super().initialize_options()
        self.distribution.cmdclass.setdefault(_STEP, build_generated)


class build_generated(Command):  # type: ignore[misc]
    """Copies what `afd-patchkit regen` wrote into the build folder."""

    description = "ship what afd-patchkit has generated"
    user_options: ClassVar[list[tuple[str, str, str]]] = []

    def initialize_options(self) -> None:
        """Options that `build` and an editable install set."""
        self.build_lib: str | None = None
        self.editable_mode = False

    def finalize_options(self) -> None:
        """Take the build folder of `build`."""
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def run(self) -> None:
        """Copy; an editable install needs nothing, it sees the folder itself.

        Raises:
            BaseError: the modules are not what the lock says.
        """
        if self.editable_mode:
            return
        for name, path in _ready(files.shipped).items():
            target = Path(self.build_lib or "build", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        if not self.distribution.has_pure_modules():  # then nothing of the build folder would be taken
            project = _project()
            self.distribution.packages = [project.package]
            self.distribution.package_dir = {project.package: os.path.relpath(project.package_folder)}
            self.distribution.have_run["build_py"] = True  # done, by this step

    def get_source_files(self) -> list[str]:
        """What a source distribution must carry.

        Raises:
            BaseError: one is made, and the modules are not what the lock says.
        """
        if "sdist" not in self.distribution.commands:
            return []
        return [os.path.relpath(path) for path in _ready(files.sources)]

    def get_outputs(self) -> list[str]:
        """What is written into the build folder."""
        return list(self.get_output_mapping())

    def get_output_mapping(self) -> dict[str, str]:
        """What is written into the build folder: destination to source."""
        if self.editable_mode:
            return {}
        return {
            os.path.join(self.build_lib or "build", name): str(path) for name, path in _ready(files.shipped).items()
        }


def _project() -> Project:
    return load_project(Path.cwd())


def _ready(what: Callable[[Project], Files]) -> Files:
    try:
        return what(_project())
    except (files.NotReady, PatchkitError) as error:
        raise BaseError(str(error)) from None
