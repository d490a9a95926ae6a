"""The base of all real upstreams: counted, checked against the lock, read in batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from afd_patchkit.digests import sha256
from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.source.text import SourceFile, load_source
from afd_patchkit.upstream.base import Artifact, CachingUpstream, module_table
from afd_patchkit.upstream.failures import mismatch
from afd_patchkit.upstream.network import Stats

if TYPE_CHECKING:
    from packaging.version import Version

    from afd_patchkit.model import Pin
    from afd_patchkit.upstream.options import SourceOptions

_BATCH = 400


@dataclass(frozen=True)
class Request:
    """One pin to be opened.

    Attributes:
        name: the pin's name in `pins.yaml`.
        pin: what it says there.
        options: where to look.
        locked: path inside the distribution to sha256 of the raw file, from the lock.
        artifact: the artifact that the lock names, if any.
        stats: traffic so far, also that of sources which then failed.
    """

    name: str
    pin: Pin
    options: SourceOptions
    locked: Mapping[str, str] = field(default_factory=dict)
    artifact: Artifact | None = None
    stats: Stats = field(default_factory=Stats)

    @cached_property
    def version(self) -> Version:
        """The pinned version."""
        from packaging.version import Version

        return Version(self.pin.version)

    @property
    def label(self) -> str:
        """The pin as messages name it, with its distribution and version."""
        return f"pin {self.name} ({self.pin.distribution} {self.pin.version})"

    @property
    def packages(self) -> tuple[str, ...]:
        """The import packages of the pin, as folders; guessed from the name when the pin does not say."""
        return tuple(package.replace(".", "/") for package in self.pin.import_packages)


class SourceUpstream(CachingUpstream):
    """One pin, opened.

    Attributes:
        origin: where the bytes come from: `path`, `cache`, `installed`, `wheel`, `sdist` or `git`. Unlike
            `artifact.source` it changes from run to run.
        stats: files read, bytes received and requests made for this pin.
        notes: findings that change nothing, such as a yanked release.
    """

    def __init__(self, request: Request, artifact: Artifact, origin: str) -> None:
        super().__init__(request.name, request.pin.version, artifact)
        self.request, self.origin, self.stats = request, origin, request.stats
        self.notes: list[Finding] = []
        self._modules: dict[str, str] | None = None
        self._seen: set[str] = set()

    def members(self) -> Collection[str]:
        """Paths of the Python files of the distribution."""
        raise NotImplementedError

    def licences(self) -> Collection[str]:
        """Names of the licence and notice files of the distribution, as they lie in its source tree."""
        raise NotImplementedError

    def licence_files(self, names: Collection[str]) -> dict[str, bytes]:
        """The content of licence files; the cache keeps it.

        Raises:
            UpstreamError: one is not there (PK405), or fails verification.
        """
        for name in names:
            if name not in self.licences():
                raise self._no_file(name)
        loaded = self.load(names) if names else {}
        found = {name: loaded[name] for name in names}
        for data in found.values():
            self.request.options.store.put(f"sha256:{sha256(data)}", data)
        return found

    def load(self, paths: Collection[str]) -> Mapping[str, bytes]:
        """The bytes of these members or licence files, verified against what the artifact says about them.

        Raises:
            UpstreamError: they cannot be had or fail verification.
        """
        raise NotImplementedError

    def paths(self) -> Mapping[str, str]:
        """Module name to path inside the distribution."""
        if self._modules is None:
            self._modules = module_table(self.members())
        return self._modules

    def read(self, module: str) -> SourceFile:
        """The verified source of `module` (read and parsed once)."""
        if module not in self._files and self._modules is None:
            # The usual read needs no table of all modules: a locked path, or a member, says where it is.
            path = self._quick_path(module)
            if path is not None:
                self._files[module] = load_source(self.read_bytes(path), pin=self.pin, path=path)
        return super().read(module)

    def _quick_path(self, module: str) -> str | None:
        base = module.replace(".", "/")
        candidates = (f"{base}/__init__.py", f"{base}.py")
        for known in (self.request.locked, None):
            for path in candidates:
                if path in (self.members() if known is None else known):
                    return path
        return None

    def read_bytes(self, path: str) -> bytes:
        """Verified bytes of one Python file.

        Raises:
            UpstreamError: there is no such file (PK405), or it is not the locked one (PK402).
        """
        return self._take([path])[path]

    def compare(self) -> None:
        """Read every file that the lock names, whether anything needs it or not.

        Raises:
            UpstreamError: one is not there (PK405), or is not the locked one (PK402).
        """
        self._take(self.request.locked)

    def read_many(self, modules: Iterable[str]) -> dict[str, SourceFile]:
        """The sources of several modules, fetched together.

        Raises:
            UpstreamError: as `read`.
        """
        wanted = list(dict.fromkeys(modules))
        paths = {m: path for m in wanted if m not in self._files and (path := self._quick_path(m)) is not None}
        for module, data in zip(paths, self._take(paths.values()).values(), strict=True):
            self._files[module] = load_source(data, pin=self.pin, path=paths[module])
        return {module: self.read(module) for module in wanted}

    def package_files(self, suffix: str = ".py") -> Iterator[tuple[str, bytes]]:
        """All Python files of the release whose path ends with `suffix`, sorted by path, fetched in large pieces.

        Raises:
            UpstreamError: as `read`.
        """
        wanted = sorted(path for path in self.members() if path.endswith(suffix))
        for at in range(0, len(wanted), _BATCH):
            yield from self._take(wanted[at : at + _BATCH]).items()

    def _take(self, paths: Iterable[str]) -> dict[str, bytes]:
        wanted = list(dict.fromkeys(paths))
        for path in wanted:
            if path not in self.request.locked and path not in self.members():
                raise self._no_file(path)
        found = self.load(wanted)
        for path in wanted:
            self._check_lock(path, found[path])
        self._seen.update(wanted)
        self.stats.files = len(self._seen)
        return {path: found[path] for path in wanted}

    def _no_file(self, path: str) -> UpstreamError:
        locked = " that the lock names" if path in self.request.locked else ""
        return UpstreamError(
            finding(
                "PK405",
                f"{self.request.label} has no file {path}{locked}",
                upstream=Position(self.artifact.file),
                help="Correct the path, or the pin it is looked up in.",
            )
        )

    def _check_lock(self, path: str, data: bytes) -> None:
        locked = self.request.locked.get(path)
        if locked is not None and (found := sha256(data)) != locked:
            raise mismatch(
                f"{path} of {self.request.label}, read from {self.artifact.file}, is not the locked file",
                path=path,
                details=(f"locked: sha256 {locked}", f"found:  sha256 {found}"),
            )
