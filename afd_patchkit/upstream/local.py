"""Sources on this machine: a tree, wheel or sdist that the user names, and installed distributions."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from afd_patchkit.digests import sha256_of_file
from afd_patchkit.files import read_regular
from afd_patchkit.upstream.artifact import unpack_wheel
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.cache import digest_of
from afd_patchkit.upstream.failures import Unavailable, bad_source, corrupt, mismatch, refused
from afd_patchkit.upstream.licences import in_tree, in_wheel, is_licence
from afd_patchkit.upstream.sdist import package_table, pkg_info, read_sdist
from afd_patchkit.upstream.verified import Request, SourceUpstream
from afd_patchkit.upstream.wheel import check_identity, parse_record

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_SKIPPED = {".git", ".hg", ".svn", ".tox", ".nox", ".venv", "node_modules", "__pycache__"}


# ---- explicit sources -----------------------------------------------------------------------------------------


def open_path(request: Request, path: Path) -> SourceUpstream:
    """The source that the user gave for this pin.

    Raises:
        UpstreamError: it is none (PK409), unsound (PK403, PK407) or of another release (PK402).
    """
    path = Path(os.path.expanduser(path))
    try:
        if path.is_dir():
            return TreeUpstream(request, path)
        if not path.is_file():
            raise bad_source(f"the source of pin {request.name}, {path}, does not exist")
        if path.name.endswith((".whl", ".tar.gz", ".tgz", ".zip")):
            return _open_archive(request, path)
    except OSError as error:
        raise bad_source(
            f"the source of pin {request.name}, {path}, cannot be read: {error.strerror or error}"
        ) from None
    raise bad_source(f"the source of pin {request.name}, {path}, is no folder, wheel or sdist")


def _open_archive(request: Request, path: Path) -> SourceUpstream:
    with open(path, "rb") as archive:
        digest = sha256_of_file(archive)
        locked = request.artifact
        if locked is not None and locked.sha256 not in {None, digest} and locked.file == path.name:
            raise mismatch(
                f"{path} has the name of the locked artifact of {request.label}, but other content",
                details=(f"locked: sha256 {locked.sha256}", f"found:  sha256 {digest}"),
            )
        if path.name.endswith(".whl"):
            index, unpacked = unpack_wheel(archive, path.name, request)
            licences = {name: unpacked[name] for name in index.licences}
            files, kind = {name: unpacked[name] for name in index.rows}, index.kind
        else:
            (files, licences), kind = read_sdist(archive, path.name, request, public=True), "sdist"
    return FilesUpstream(request, Artifact(kind, path.name, digest), files, licences)


class FilesUpstream(SourceUpstream):
    """Files of an archive at hand."""

    def __init__(
        self, request: Request, artifact: Artifact, files: Mapping[str, bytes], licences: Mapping[str, bytes]
    ) -> None:
        super().__init__(request, artifact, "path")
        self._bytes, self._licences = files, licences

    def members(self) -> Collection[str]:
        """Paths of the Python files."""
        return self._bytes.keys()

    def licences(self) -> Collection[str]:
        """Names of the licence files."""
        return self._licences.keys()

    def load(self, paths: Collection[str]) -> Mapping[str, bytes]:
        """Read these files of the archive."""
        for path in paths:
            if path not in self._bytes and path not in self._licences:
                raise self._no_file(path)
        return {**self._bytes, **self._licences}


class TreeUpstream(SourceUpstream):
    """A source tree with the package at its root or below `src/` (or the package folder itself)."""

    def __init__(self, request: Request, root: Path) -> None:
        super().__init__(request, Artifact("path", root.as_posix()), "path")
        if (root / "__init__.py").is_file() and root.resolve().name in request.packages:
            root = root.resolve().parent
        self._root = root
        self._real = root.resolve()
        _check_tree(request, root)
        files = [
            path for top in ("", "src/") for package in request.packages for path in _python_files(root, top + package)
        ]
        if not files:
            # Let the error say what is there instead.
            files = [f"{entry.name}/__init__.py" for entry in root.iterdir() if (entry / "__init__.py").is_file()]
        self._places = package_table(files, request, str(root))
        self._licences = _licences_of(root, request)

    def members(self) -> Collection[str]:
        """Paths of the Python files."""
        return self._places.keys()

    def licences(self) -> Collection[str]:
        """Names of the licence files."""
        return self._licences.keys()

    def load(self, paths: Collection[str]) -> Mapping[str, bytes]:
        """The files' bytes; a link out of the tree is refused."""
        found = {}
        for path in paths:
            below = self._places.get(path) or self._licences.get(path)
            if below is None:
                raise self._no_file(path)
            place = self._root / below
            if not _resolved(place).is_relative_to(self._real):
                raise refused(str(self._root), f"{below} is a link out of the tree, or a loop of links", path=path)
            try:
                found[path] = read_regular(place)
            except OSError as error:
                raise bad_source(f"{place} of pin {self.pin} cannot be read: {error.strerror or error}") from None
        return found


def _resolved(path: Path) -> Path:
    """Where a path leads; a loop of links leads nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return Path(os.devnull)


def _python_files(root: Path, package: str) -> Iterator[str]:
    if (root / f"{package}.py").is_file():
        yield f"{package}.py"
    for folder, folders, names in os.walk(root / package):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        below = Path(folder).relative_to(root).as_posix()
        yield from (f"{below}/{name}" for name in names if name.endswith(".py"))


def _licences_of(root: Path, request: Request) -> dict[str, str]:
    """Name to path below `root` of the licence files of a tree; of a folder of installed distributions, those of this one."""
    tops = sorted(entry.name for entry in root.iterdir())
    mine = canonicalize_name(request.pin.distribution)
    for info in tops:
        name, _, version = info.removesuffix(".dist-info").rpartition("-")
        if info.endswith(".dist-info") and canonicalize_name(name) == mine and _same(version, request.version):
            return in_wheel(_files_below(root, info), info, str(root))
    below = [path for top in tops if is_licence(f"{top}/x") for path in _files_below(root, top)]
    return in_tree([*(top for top in tops if (root / top).is_file()), *below], str(root))


def _same(version: str, wanted: Version) -> bool:
    try:
        return Version(version) == wanted
    except InvalidVersion:
        return False


def _files_below(root: Path, folder: str) -> Iterator[str]:
    for current, _, names in os.walk(root / folder):
        yield from ((Path(current) / name).relative_to(root).as_posix() for name in names)


def _check_tree(request: Request, root: Path) -> None:
    """An unpacked sdist says which release it is; a checkout does not."""
    try:
        text = (root / "PKG-INFO").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    check_identity(request, str(root), *pkg_info(text), public=True)


# ---- installed distributions ----------------------------------------------------------------------------------


class InstalledUpstream(SourceUpstream):
    """An installed distribution; every file is checked against its `RECORD`, nothing is imported."""

    def __init__(
        self,
        request: Request,
        artifact: Artifact,
        root: Path,
        digests: Mapping[str, str],
        licences: Mapping[str, tuple[str, str]],
    ) -> None:
        super().__init__(request, artifact, "installed")
        self._root, self._digests, self._licences = root, digests, licences

    def members(self) -> Collection[str]:
        """Paths of the Python files."""
        return self._digests.keys()

    def licences(self) -> Collection[str]:
        """Names of the licence files."""
        return self._licences.keys()

    def load(self, paths: Collection[str]) -> Mapping[str, bytes]:
        """Read these files, and verify them against `RECORD`."""
        found = {}
        for path in paths:
            if path not in self._digests and path not in self._licences:
                raise self._no_file(path)
            place, digest = self._licences.get(path) or (path, self._digests[path])
            try:
                data = read_regular(self._root / place)
            except OSError as error:
                raise corrupt(
                    f"{path} of the installed {self.request.pin.distribution} cannot be read: {error.strerror or error}",
                    path=path,
                    help="Install the distribution again, or give another source with --source.",
                ) from None
            if digest_of(digest.partition(":")[0], data) != digest:
                raise corrupt(
                    f"{path} of the installed {self.request.pin.distribution} is not the file that was installed",
                    path=path,
                    details=(f"in {self._root}",),
                    help="Somebody edited it: install the distribution again, or give another source with --source.",
                )
            found[path] = data
        return found


def open_installed(request: Request) -> SourceUpstream:
    """The installed distribution of exactly the pinned version (local part included).

    With lock digests it must agree with all of them; it then stands for the locked artifact.

    Raises:
        Unavailable: there is none, or it cannot be verified.
    """
    candidate = _find(request)
    root = Path(str(candidate.locate_file("")))
    text = candidate.read_text("RECORD")
    if text is None:
        raise Unavailable("installed", f"{root} has no RECORD to verify it by")
    label = f"installed {request.pin.distribution}"
    recorded = {
        path: digest
        for path, digest in parse_record(text.encode(), label).items()
        if not path.startswith(("/", "../")) and "/../" not in path and "\\" not in path
    }
    digests = {path: digest for path, digest in recorded.items() if path.endswith(".py")}
    infos = {path.partition("/")[0] for path in recorded if path.partition("/")[0].endswith(".dist-info")}
    licences = {
        name: (path, recorded[path]) for info in sorted(infos) for name, path in in_wheel(recorded, info, label).items()
    }
    if request.pin.packages:
        tops = request.packages
        digests = {p: d for p, d in digests.items() if any(p == f"{t}.py" or p.startswith(f"{t}/") for t in tops)}
    if not any(
        path.startswith(f"{package}/") or path == f"{package}.py" for package in request.packages for path in digests
    ):
        raise Unavailable("installed", f"the distribution in {root} does not list its modules (an editable install?)")
    info = Artifact("installed", f"{_field(candidate, 'Name')}-{_field(candidate, 'Version')}")
    locked = request.artifact
    if locked is not None and locked.sha256 is not None:
        _agrees(request, digests, root)
        info = locked
    return InstalledUpstream(request, info, root, digests, licences)


def _find(request: Request) -> Distribution:
    from importlib import metadata

    path = request.options.search_path
    wanted = canonicalize_name(request.pin.distribution)
    search = (
        {"name": request.pin.distribution} if path is None else {"name": request.pin.distribution, "path": list(path)}
    )
    seen = []
    for candidate in metadata.distributions(**search):
        if canonicalize_name(_field(candidate, "Name")) != wanted:
            continue
        # The first on the path is the one that would be imported.
        try:
            if Version(_field(candidate, "Version")) == request.version:
                return candidate
        except InvalidVersion:
            pass
        seen.append(_field(candidate, "Version") or "?")
        break
    found = f"version {seen[0]} is installed" if seen else "not installed"
    raise Unavailable("installed", f"{found}; exactly {request.version} is needed" if seen else found)


def _field(candidate: Distribution, key: str) -> str:
    """A field of its metadata; broken installations lack some."""
    metadata = candidate.metadata
    return str(metadata[key]) if metadata is not None and key in metadata else ""


def _agrees(request: Request, digests: Mapping[str, str], root: Path) -> None:
    """Whether an installation may stand for the locked artifact.

    Raises:
        Unavailable: the lock says nothing to compare with, or says otherwise.
    """
    if not request.locked:
        raise Unavailable("installed", "nothing proves that it came from the locked artifact")
    for path, sha256 in request.locked.items():
        if digests.get(path) != f"sha256:{sha256}":
            raise Unavailable("installed", f"{root / path} is not the locked file (PK402)")
