"""Own code in a project of one module, and what `upgrade` says when one release becomes another in memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from afd_patchkit.api import load_project
from afd_patchkit.findings.finding import Severity
from afd_patchkit.project import Project
from afd_patchkit.source.text import SourceFile, load_source
from afd_patchkit.upgrade.result import EntryResult
from afd_patchkit.upgrade.upgrader import Upgrader
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream
from tools.oracles.meaning.sources import Sources
from tools.oracles.proof.engine import no_aliases, opened, swap
from tools.oracles.releases import BASE

NEXT = "999.0"
"""The version that a changed release has."""
SILENT = frozenset({"unchanged", "clean", "moved"})
"""Statuses that no person looks at."""
_LEANING = ("PK330", "PK331", "PK533", "PK534", "PK550")
_NO_LOCK = frozenset({"PK505", "PK655"})
_PINS = 'schema: 1\npins:\n  vllm:\n    distribution: vllm\n    version: "{}"\n'


class Changed:
    """A release as another one, but for some modules; the face of an upstream."""

    version = NEXT

    def __init__(self, base: Any, changed: Mapping[str, str]) -> None:
        self._base, self._changed = base, changed
        self._files: dict[str, SourceFile] = {}
        self._modules = {*base.modules(), *changed}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    def modules(self) -> set[str]:
        """Dotted names of all modules."""
        return self._modules

    def read(self, module: str) -> SourceFile:
        """The source of a module."""
        if module not in self._changed:
            found: SourceFile = self._base.read(module)
            return found
        if module not in self._files:
            known = module in self._base.modules()
            path = self._base.read(module).path if known else module.replace(".", "/") + ".py"
            self._files[module] = load_source(self._changed[module].encode(), pin=self._base.pin, path=path)
        return self._files[module]


_changed: dict[str, str] = {}


def _open(name: str, pin: Any, options: SourceOptions, **_: Any) -> Any:
    if pin.version == NEXT:
        return Changed(opened(name, pin.moved(BASE), options), dict(_changed))
    return opened(name, pin, options)


def change_to(changed: Mapping[str, str]) -> None:
    """What `NEXT` is from now on: the pinned release, but for some modules."""
    _changed.clear()
    _changed.update(changed)


@contextmanager
def changeable() -> Iterator[None]:
    """Let this process open releases once, and `NEXT` as what was said last; the alias report, which reads all files, is left out."""
    aliases = Upgrader._aliases
    swap(open_upstream, _open)
    Upgrader._aliases = no_aliases  # type: ignore[method-assign]
    try:
        yield
    finally:
        swap(_open, open_upstream)
        Upgrader._aliases = aliases  # type: ignore[method-assign]


def sources(options: SourceOptions | None = None, name: str = "vllm") -> Sources:
    """The pinned release as text."""
    from afd_patchkit.model import Pin

    upstream = opened(name, Pin(distribution=name, version=BASE), options or SourceOptions())
    return Sources({m: upstream.paths()[m] for m in upstream.modules()}, lambda module: upstream.read(module).text)


@dataclass
class Carried:
    """What an upgrade says.

    Attributes:
        statuses: by entry.
        words: of its findings.
        problems: something does not work that is no matter of one entry.
    """

    statuses: dict[str, str]
    words: list[str] = field(default_factory=list)
    problems: bool = False

    @property
    def told(self) -> bool:
        """Whether a person is told."""
        return self.problems or bool(set(self.statuses.values()) - SILENT)

    @property
    def leaning(self) -> bool:
        """Whether something is said of what own code refers to."""
        return any(code in words for words in self.words for code in _LEANING)

    @property
    def conflict(self) -> bool:
        """Whether it says that something does not work any more."""
        return self.problems or bool({"conflict", "missing"} & set(self.statuses.values()))


class Carrier:
    """One project, carried to any number of changed releases."""

    def __init__(self, project: Project, options: SourceOptions | None = None) -> None:
        self.upgrader = Upgrader(project, options)
        self.problems = self._at_the_pin()

    def _at_the_pin(self) -> list[str]:
        """Errors at the pin: our own code works there, so there must be none."""
        side = self.upgrader.base("vllm")
        errors = [f"{f.code}: {f.message}" for f in side.problems if f.severity is Severity.ERROR]
        for attempt in side.attempts.values():
            errors += [f"{f.code}: {f.message}" for f in (attempt.error.findings if attempt.error is not None else ())]
        for items in side.leant.problems.values():
            errors += [f"{f.code}: {f.message}" for f in items]
        return list(dict.fromkeys(errors))

    def to(self, changed: Mapping[str, str]) -> Carried:
        """What is said of a release with these changes."""
        change_to(changed)
        result = self.upgrader.to({"vllm": NEXT})
        problems = [f for f in result.findings if f.code not in _NO_LOCK]
        words = [f"{f.code}: {f.message}" for f in problems]
        statuses: dict[str, str] = {e.ref: e.status for e in result.entries} or {"": "conflict"}
        for entry in result.entries:
            words += [f"{entry.status} {entry.ref}: {f.code}: {f.message}" for f in _reasons(entry)]
        return Carried(statuses, words, any(f.severity is Severity.ERROR for f in problems))


def _reasons(entry: EntryResult) -> list[Any]:
    return [f for f in (*entry.reasons, *(f for d in entry.deltas for f in d.reasons)) if f.exit_code]


class Folder:
    """Where projects of one module are written, one after the other."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="afd-patchkit-meaning-"))

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.root, ignore_errors=True)

    def project(self, manifest: str, part: str = "") -> Project:
        """A project with one manifest."""
        shutil.rmtree(self.root / "manifests", ignore_errors=True)
        (self.root / "manifests/set/parts").mkdir(parents=True)
        (self.root / "pyproject.toml").write_text('[tool.afd-patchkit]\npackage = "probed"\n', encoding="utf-8")
        (self.root / "manifests/pins.yaml").write_text(_PINS.format(BASE), encoding="utf-8")
        (self.root / "manifests/set/one.yaml").write_text(manifest, encoding="utf-8")
        if part:
            (self.root / "manifests/set/parts/one.py").write_text(part, encoding="utf-8")
        return load_project(self.root)
