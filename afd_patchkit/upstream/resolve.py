"""Opening a pin: explicit source, cache, installed distribution, package index, git, in this order."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.findings.report import PinReport, Progress
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Artifact, Upstream
from afd_patchkit.upstream.failures import Unavailable, corrupt
from afd_patchkit.upstream.network import Stats
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.verified import Request, SourceUpstream

if TYPE_CHECKING:
    from afd_patchkit.model import Pin

__all__ = ["Progress", "SourceOptions", "SourceUpstream", "evidence", "evidence_note", "open_upstream", "pin_report"]


def open_upstream(
    name: str,
    pin: Pin,
    options: SourceOptions | None = None,
    *,
    locked: Mapping[str, str] | None = None,
    locked_artifact: Artifact | None = None,
) -> SourceUpstream:
    """The first source that has the pinned distribution.

    Args:
        name: the pin's name in `pins.yaml`.
        pin: what it says there.
        options: where to look; pins of one run should share one object.
        locked: path inside the distribution to sha256 of the raw file; a file that differs is an error.
        locked_artifact: the artifact that the lock names; no other is taken from the cache, the index or git.

    Raises:
        UpstreamError: no source has it (PK401), or what was found fails verification (PK402 to PK410).
    """
    from packaging.version import InvalidVersion

    options = options or SourceOptions()
    request = Request(name, pin, options, locked or {}, locked_artifact, Stats())
    explicit = options.sources.get(name)
    try:
        if locked_artifact is None:
            _ = request.version  # a wrong one is said at once
        if explicit is not None:
            from afd_patchkit.upstream.local import open_path

            return open_path(request, explicit)
        return _search(request)
    except InvalidVersion:
        raise UpstreamError(
            finding(
                "PK401",
                f"pin {name}: {pin.version!r} is no PEP 440 version",
                help="Write the version as the package index names it.",
            )
        ) from None


def _search(request: Request) -> SourceUpstream:
    attempts: list[tuple[str, str]] = []
    commit = request.pin.git is not None  # a name and a version on an index may be another project, or another text
    for source in SOURCES:
        asked = source.commits if commit else not (source.online and request.options.offline)
        if asked:
            try:
                return source.open(request)
            except Unavailable as error:
                attempts.extend(error.attempts)
    pin = request.pin
    where = " with --offline" if request.options.offline else ""
    raise UpstreamError(
        finding(
            "PK401",
            f"{request.label} cannot be had from any source{where}",
            details=tuple(f"{source}: {reason}" for source, reason in attempts),
            help=(
                f"Get {pin.distribution} {pin.version} yourself and name it: --source {request.name}=PATH "
                "(a source tree, an sdist or a wheel file)."
            ),
        )
    )


def _cached(request: Request) -> SourceUpstream:
    """What needs no network: a locked artifact whose table is kept, or, with --offline, what an index said earlier."""
    from afd_patchkit.upstream.artifact import ArtifactUpstream, remembered

    locked = request.artifact
    if locked is not None and locked.sha256 is not None:
        upstream = ArtifactUpstream(request, locked, "cache")
        if upstream.is_kept():
            return upstream
        raise Unavailable("cache", f"{locked.file} is not there")
    if not request.options.offline:
        raise Unavailable("cache", "the lock names no artifact to look for")
    for file in remembered(request):
        if file.sha256 is not None:
            artifact = Artifact("wheel" if file.is_wheel else "sdist", file.filename, file.sha256)
            upstream = ArtifactUpstream(request, artifact, "cache", file)
            if upstream.is_kept():
                return upstream
    raise Unavailable("cache", f"nothing of {request.pin.distribution} {request.version} is there")


def _installed(request: Request) -> SourceUpstream:
    from afd_patchkit.upstream.local import open_installed

    return open_installed(request)


def _git(request: Request) -> SourceUpstream:
    from afd_patchkit.upstream.git import open_git

    return open_git(request)


def _indexed(request: Request) -> SourceUpstream:
    """The best wheel by range; without ranges the sdist; without an sdist the whole wheel."""
    from afd_patchkit.upstream.artifact import ArtifactUpstream, candidates

    files = candidates(request)
    wheels = [file for file in files if file.is_wheel][:1]
    sdists = [file for file in files if not file.is_wheel][:1]
    attempts: list[tuple[str, str]] = []
    for file in (*wheels, *sdists, *wheels):
        sha256 = file.sha256 or (request.artifact.sha256 if request.artifact is not None else None)
        if sha256 is None:
            raise corrupt(
                f"the index gives no sha256 for {file.filename}, so it cannot be verified",
                help="Use an index that does, or give the file by hand with --source.",
            )
        kind = "wheel" if file.is_wheel else "sdist"
        upstream = ArtifactUpstream(request, Artifact(kind, file.filename, sha256), kind, replace(file, sha256=sha256))
        try:
            upstream.prepare()
        except Unavailable as error:
            attempts.extend(a for a in error.attempts if a not in attempts)
            continue
        if file.yanked is not None:
            upstream.notes.append(_yanked(request, file.filename, file.yanked))
        return upstream
    raise Unavailable.several(attempts)


@dataclass(frozen=True, slots=True)
class Source:
    """One place to look for a pin.

    Attributes:
        open: gives the upstream, or says why it is not there (`Unavailable`).
        online: whether it needs the network.
        commits: whether it has a commit of a repository; no other source is asked for a pin that is one.
    """

    open: Callable[[Request], SourceUpstream]
    online: bool = False
    commits: bool = False


SOURCES = (Source(_cached), Source(_installed), Source(_indexed, online=True), Source(_git, online=True, commits=True))
"""Where a pin is looked for, in this order, unless the user names a path. One with `git` is read at its commit, offline from the cache."""


def _yanked(request: Request, filename: str, reason: str) -> Finding:
    return finding(
        "PK640",
        f"{filename} of {request.label} was yanked by its publisher{': ' + reason if reason else ''}",
        help="It is still served and verified; plan to move the pin.",
    )


# ---- what reports need ----------------------------------------------------------------------------------------


def pin_report(upstream: Upstream) -> PinReport:
    """What one pin was read from, and at what cost."""
    stats = getattr(upstream, "stats", None) or Stats()
    artifact = upstream.artifact
    origin = getattr(upstream, "origin", artifact.source)
    if origin == "cache" and stats.requests:
        origin = artifact.source
    return PinReport(
        upstream.pin, upstream.version, origin, artifact.file, artifact.sha256, stats.files, stats.bytes, stats.requests
    )


def evidence(upstream: Upstream) -> dict[str, str]:
    """What the distribution says about the commit it was built from: `commit`, `version`, `file`, as far as known.

    Read from `<package>/_version.py` as text; nothing is executed. Commits are evidence, digests are identity.
    """
    if upstream.artifact.commit is not None:
        return {"commit": upstream.artifact.commit}
    for module in sorted(upstream.modules()):
        if module.count(".") == 1 and module.endswith("._version"):
            try:
                file = upstream.read(module)
                found = _version_facts(file)
            except UpstreamError:
                continue
            if found:
                return {**found, "file": file.path}
    return {}


_COMMIT = re.compile(r"g?([0-9a-f]{7,40})\Z")


def _version_facts(file: SourceFile) -> dict[str, str]:
    values: dict[str, str] = {}
    for node in file.tree.body:
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            values.update((t.id.strip("_"), value.value) for t in targets if isinstance(t, ast.Name))
    facts = {}
    for key in ("commit_id", "commit", "git_revision", "git_commit", "git_hash"):
        if match := _COMMIT.match(values.get(key, "")):
            facts["commit"] = match[1]
            break
    if "version" in values:
        facts["version"] = values["version"]
        # setuptools-scm writes the commit into a local version when there is no commit_id.
        local = re.search(r"\+(?:.*\.)?g([0-9a-f]{7,40})\b", values["version"])
        if local and "commit" not in facts:
            facts["commit"] = local[1]
    return facts


def evidence_note(upstream: Upstream, pin: Pin) -> Finding | None:
    """A note when the distribution names another commit than `pins.yaml` does."""
    commit = evidence(upstream).get("commit")
    if pin.commit is None or commit is None or pin.commit.startswith(commit):
        return None
    return finding(
        "PK641",
        f"pin {upstream.pin}: pins.yaml has commit {pin.commit[:10]}, {upstream.artifact.file} says {commit[:10]}",
        help="Nothing to do when the digests agree with the lock: digests are identity, commits are evidence.",
    )
