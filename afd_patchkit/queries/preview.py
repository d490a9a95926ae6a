"""What a project generates, in memory only: for `diff`, and to compare two states of manifests and lock."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.errors import ManifestError, PatchkitError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.git import GitError, complaint, run_git
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.project import PYPROJECT, SECTION, SETTINGS, Project, load_project, read_settings
from afd_patchkit.run import lock as locks
from afd_patchkit.run.modules import maker_of, prefetch
from afd_patchkit.run.pins import Opener, overridden
from afd_patchkit.upstream.options import SourceOptions


@dataclass(frozen=True)
class EntryText:
    """One entry as it is generated now.

    Attributes:
        ref: `module.py::name`.
        symbol: upstream's `package.module:Qual.name`; empty for owned code.
        upstream: upstream's text; None for owned code.
        generated: the generated text, without the comments above it.
    """

    ref: str
    symbol: str
    upstream: str | None
    generated: str


@dataclass(frozen=True)
class Preview:
    """What would be written.

    Attributes:
        modules: module path below the generated package to text; wholly retired ones are left out.
        entries: every live entry by reference.
        findings: what does not stop generation.
    """

    modules: Mapping[str, str]
    entries: Mapping[str, EntryText]
    findings: tuple[Finding, ...] = ()


def preview(
    project: Project,
    *,
    overrides: Mapping[str, str] | None = None,
    options: SourceOptions | None = None,
    lenient: bool = False,
) -> Preview:
    """Generate every module into memory, whatever the lock and the files say.

    Args:
        project: what to generate.
        overrides: pin or distribution name to version, in place of the pinned one.
        options: where upstreams may come from.
        lenient: sources may be given for pins that the project does not have: it is another state of it.

    Raises:
        PatchkitError: something cannot be generated; it carries the findings of all modules.
    """
    lock = locks.load(project.lock, project.shown(project.lock))
    loaded = load_manifests(project)
    pins, _ = overridden(loaded.pins, overrides or {})
    chosen = options or SourceOptions()
    if lenient:
        known = {name: path for name, path in chosen.sources.items() if name.partition("@")[0] in pins.pins}
        chosen = replace(chosen, sources=known)
    opener = Opener(chosen, lock, pins)
    workspace = Workspace(pins, opener)
    prefetch(workspace, loaded.manifests, opener)
    modules: dict[str, str] = {}
    entries: dict[str, EntryText] = {}
    findings: list[Finding] = []
    errors: list[PatchkitError] = []
    for manifest in loaded.manifests:
        try:
            made = maker_of(project, workspace, manifest).make()
        except PatchkitError as error:
            errors.append(error)
            continue
        findings += made.findings
        if made.text:
            modules[manifest.module] = made.text
        for product in made.products:
            entries[product.ref] = EntryText(product.ref, product.symbol, product.upstream_text, product.body.text)
    if errors:
        worst = max(errors, key=lambda e: e.exit_code)
        raise type(worst)(*(f for error in errors for f in error.findings))
    return Preview(modules, entries, tuple(dict.fromkeys(findings)))


# ---- another state of the project ---------------------------------------------------------------------------------


@contextmanager
def project_at(project: Project, revision: str) -> Iterator[Project]:
    """The project as git has it at `revision`: settings, manifests and lock in a temporary folder.

    Raises:
        ManifestError: there is no such revision, no git, or no project in it (PK098).
    """
    commit = _commit(project, revision)
    folder = Path(tempfile.mkdtemp(prefix="afd-patchkit-"))
    try:
        for name in (SETTINGS, PYPROJECT):
            _put(project, commit, folder, [name])
        own, shared = folder / SETTINGS, folder / PYPROJECT
        if not own.is_file() and not (shared.is_file() and read_settings(shared, SECTION) is not None):
            raise ManifestError(
                finding(
                    "PK098",
                    f"there is no project at {revision}",
                    help="Name a revision that has settings and manifests.",
                )
            )
        there = load_project(folder)
        _put(project, commit, folder, [there.shown(there.manifests), there.shown(there.lock)])
        yield there
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_HELP = "--base takes a branch, tag or commit of the project's repository; in CI, fetch it first (`fetch-depth: 0`)."


# a caller's variables must not decide which repository it is, nor what a commit holds
_THEIRS = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"}


def _run(project: Project, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return run_git(arguments, project.root, stdin=data, kept=lambda name: name not in _THEIRS)
    except GitError as error:
        raise ManifestError(finding("PK098", str(error), help="Install git, or compare without --base.")) from error


def _git(project: Project, *arguments: str, data: bytes = b"") -> bytes:
    done = _run(project, *arguments, data=data)
    if done.returncode:
        said = next(iter(complaint(done)), done.returncode)
        raise ManifestError(finding("PK098", f"git {arguments[0]} failed: {said}", help=_HELP))
    return done.stdout


def _commit(project: Project, revision: str) -> str:
    _git(project, "rev-parse", "--git-dir")
    done = _run(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode:
        raise ManifestError(finding("PK098", f"git knows no revision {revision}", help=_HELP))
    return done.stdout.decode().strip()


def _put(project: Project, commit: str, folder: Path, paths: Sequence[str]) -> None:
    """Write the files below `paths` as the commit has them, byte for byte; what it does not have is left out."""
    prefix = _git(project, "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").rstrip("\n")
    listing = _git(project, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *(f"{prefix}{path}" for path in paths))
    found = []
    for record in listing.decode("utf-8", "surrogateescape").split("\0"):
        facts, _, name = record.partition("\t")
        if name:
            mode, kind, digest = facts.split()
            if kind == "blob":
                found.append((mode, digest, name.removeprefix(prefix)))
    if not found:
        return
    blobs = _blobs(_git(project, "cat-file", "--batch", data="".join(f"{digest}\n" for _, digest, _ in found).encode()))
    links = []
    for (mode, _, shown), blob in zip(found, blobs, strict=True):
        path = _inside(folder, shown, commit)
        if mode == "120000":
            links.append((path, os.fsdecode(blob)))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(blob)
    for path, target in links:  # behind the files, so that none is written through one
        if os.path.lexists(path) or not target or "\0" in target:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise _hostile(commit, f"the link {path.relative_to(folder).as_posix()!a}, which leads out of the project")


def _inside(folder: Path, name: str, commit: str) -> Path:
    """Where a file of a commit goes. Whoever writes a tree by hand can put any name into it.

    Raises:
        ManifestError: out of the folder, or into git's own (PK098).
    """
    parts = name.split("/")
    bad = any(p in ("", ".", "..") or p.casefold() == ".git" or "\\" in p or ":" in p or "\0" in p for p in parts)
    path = folder.joinpath(*parts)
    if (
        bad
        or not path.is_relative_to(folder)
        or any(p.is_symlink() for p in (path, *path.parents) if p.is_relative_to(folder))
    ):
        raise _hostile(commit, f"{name!a}, which no checkout may write")
    return path


def _hostile(commit: str, what: str) -> ManifestError:
    return ManifestError(finding("PK098", f"commit {commit[:12]} holds {what}", help="Do not trust that commit."))


def _blobs(data: bytes) -> Iterator[bytes]:
    """The objects in the output of `git cat-file --batch`."""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        size = int(data[at:end].split()[2])
        yield data[end + 1 : end + 1 + size]
        at = end + size + 2
