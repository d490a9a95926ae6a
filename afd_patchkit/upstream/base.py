"""What the engine needs of an upstream, and the in-memory one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from afd_patchkit.digests import sha256
from afd_patchkit.findings.errors import EXIT_FINDINGS, UpstreamError
from afd_patchkit.findings.finding import Position, finding
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.source.text import SourceFile, load_source


@dataclass(frozen=True, slots=True)
class Artifact:
    """What one pin was read from; the identity that the lock records.

    Attributes:
        source: what kind of thing it is: `wheel`, `sdist`, `git`, `installed`, `path` (a tree). It stays the same when
            a later run reads the artifact from the cache; where the bytes of one run came from is the upstream's `origin`.
        file: artifact file name (or the path or commit read).
        sha256: digest of the whole artifact; None where there is none (a tree, `installed`, `git`).
    """

    source: str
    file: str
    sha256: str | None = None

    @property
    def commit(self) -> str | None:
        """The commit that was read, when it is one of a repository."""
        return self.file if self.source == "git" else None

    @property
    def identity(self) -> str | None:
        """What proves that it is the same another time; None when nothing does (a tree)."""
        return self.sha256 or self.commit


class Upstream(Protocol):
    """One pinned distribution; reads verified files and never executes them."""

    @property
    def pin(self) -> str:
        """Name of the pin in `pins.yaml`."""

    @property
    def version(self) -> str:
        """The version of the distribution, as PEP 440 writes it."""

    @property
    def artifact(self) -> Artifact:
        """The artifact that the files come from."""

    def modules(self) -> Collection[str]:
        """Dotted names of all Python modules in the distribution."""

    def read(self, module: str) -> SourceFile:
        """The verified source of `module`.

        Raises:
            UpstreamError: there is no such module (NoModuleError), or it fails verification.
        """

    def package_files(self, suffix: str = ".py") -> Iterator[tuple[str, bytes]]:
        """Path and verified bytes of all Python files whose path ends with `suffix`, sorted by path.

        Raises:
            UpstreamError: they cannot be had, or one fails verification.
        """


class NoModuleError(UpstreamError):
    """The upstream was had, and has no such module (PK205): as a symbol that a module lacks, a slip of who names it."""

    exit_code = EXIT_FINDINGS


class CachingUpstream:
    """Base of the real ones: module table, one `SourceFile` per module, near names in errors."""

    def __init__(self, pin: str, version: str, artifact: Artifact) -> None:
        self.pin, self.version, self.artifact = pin, version, artifact
        self._files: dict[str, SourceFile] = {}

    def paths(self) -> Mapping[str, str]:
        """Module name to path inside the distribution."""
        raise NotImplementedError

    def read_bytes(self, path: str) -> bytes:
        """Verified bytes of one file."""
        raise NotImplementedError

    def modules(self) -> Collection[str]:
        """Dotted names of all Python modules in the distribution."""
        return self.paths().keys()

    def package_files(self, suffix: str = ".py") -> Iterator[tuple[str, bytes]]:
        """Path and verified bytes of all Python files whose path ends with `suffix`, sorted by path."""
        for path in sorted(self.paths().values()):
            if path.endswith(suffix):
                yield path, self.read_bytes(path)

    def read(self, module: str) -> SourceFile:
        """The verified source of `module` (read and parsed once)."""
        file = self._files.get(module)
        if file is None:
            path = self.paths().get(module)
            if path is None:
                near = nearest(module, self.paths())
                raise NoModuleError(
                    finding(
                        "PK205",
                        f"pin {self.pin} ({self.version}) has no module {module}",
                        upstream=Position(self.artifact.file),
                        details=tuple(f"near: {name}" for name in near),
                        help="Correct the symbol's module, or the pin it is looked up in.",
                    )
                )
            file = self._files[module] = load_source(self.read_bytes(path), pin=self.pin, path=path)
        return file


def module_table(paths: Collection[str]) -> dict[str, str]:
    """Module name to path for the `.py` files among `paths`; a package wins over a module of the same name."""
    table: dict[str, str] = {}
    for path in sorted(paths):
        if not path.endswith(".py"):
            continue
        parts = path[:-3].split("/")
        if parts[-1] == "__init__":
            parts.pop()
        if parts and all(part.isidentifier() for part in parts):
            name = ".".join(parts)
            if name not in table or path.endswith("/__init__.py"):
                table[name] = path
    return table


class MemoryUpstream(CachingUpstream):
    """Files given as a mapping; for tests and for scripts that have the text already."""

    def __init__(self, files: Mapping[str, str | bytes], *, pin: str = "acme", version: str = "1.0") -> None:
        self._raw = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
        digest = sha256(b"\0".join(path.encode() + b"\0" + data for path, data in sorted(self._raw.items())))
        super().__init__(pin, version, Artifact("memory", f"{pin}-{version}", digest))
        self._table = module_table(self._raw)

    def paths(self) -> Mapping[str, str]:
        """The path of each module inside the distribution."""
        return self._table

    def read_bytes(self, path: str) -> bytes:
        """The bytes given for `path`."""
        return self._raw[path]
