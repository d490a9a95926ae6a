"""What `pins.yaml` can say."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from packaging.utils import canonicalize_name
from pydantic import Field

from afd_patchkit.model.scalars import Commit, Holds, Model, Prose


class Git(Model):
    """A git repository at one commit."""

    url: Prose = Field(description="what `git clone` takes")
    commit: Commit = Field(description="40 hex digits")
    subdirectory: Prose | None = Field(default=None, description="where the project is in the repository")


class Pin(Model):
    """One upstream distribution at one exact identity."""

    distribution: Annotated[str, Holds("distribution")] = Field(description="name on the package index")
    version: Annotated[str, Holds("version")] = Field(description="exact version, a quoted string")
    role: Literal["target", "donor"] = Field(
        default="target", description="target: the ABI to run on; donor: a release to take features from"
    )
    commit: Commit | None = Field(default=None, description="upstream's commit, 40 hex digits; evidence, not identity")
    git: Git | None = Field(default=None, description="the repository and commit it is read at; no index is asked")
    packages: tuple[Annotated[str, Holds("dotted name", "the package")], ...] = Field(
        default=(), description="import packages it provides, `google.cloud` as it is; from the name when empty"
    )

    @property
    def import_packages(self) -> tuple[str, ...]:
        """The import packages that the distribution provides: as declared, else its name as an identifier."""
        return self.packages or (canonicalize_name(self.distribution).replace("-", "_"),)

    def provides(self, module: str) -> bool:
        """Whether a module is one of the distribution's: it is an import package, or lies in one (`google.cloud`)."""
        return any(module == package or module.startswith(f"{package}.") for package in self.import_packages)

    @property
    def source_commit(self) -> str | None:
        """The commit that it is read at, when it is read from a repository."""
        return self.git.commit if self.git is not None else None

    @property
    def revision(self) -> str | None:
        """The commit of upstream's that it is, as far as `pins.yaml` says."""
        return self.commit or self.source_commit

    @property
    def identity(self) -> str:
        """What an upgrade moves: the commit that it is read at, else the version."""
        return self.source_commit or self.version

    def moved(self, to: str) -> Pin:
        """The pin at another identity: a commit of its repository, or a version from the index."""
        if to in (self.identity, self.version):
            return self
        if self.git is not None and re.fullmatch("[0-9a-f]{40}", to):
            return self.model_copy(update={"git": self.git.model_copy(update={"commit": to}), "commit": None})
        return self.model_copy(update={"version": to, "commit": None, "git": None})


class Pins(Model):
    """`pins.yaml`."""

    schema_: Literal[1] = Field(alias="schema", description="version of the format")
    pins: dict[Annotated[str, Holds("pin name")], Pin] = Field(description="name of the pin: its identity")
