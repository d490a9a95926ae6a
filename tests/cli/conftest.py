"""The command line with an engine that does as the test says: what is tested here is parsing and printing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from afd_patchkit.cli import main
from afd_patchkit.findings.report import Report
from afd_patchkit.run.options import RunOptions
from afd_patchkit.upstream.options import SourceOptions


@dataclass
class Engine:
    """Stands in for `afd_patchkit.api`; `result` is returned, called or raised."""

    result: Any = field(default_factory=Report)
    calls: list[dict[str, Any]] = field(default_factory=list)

    def regen(self, project: Any, options: RunOptions, *, check: bool = False) -> Report:
        self.calls.append(
            {"project": project, "check": check, **{f.name: getattr(options, f.name) for f in fields(options)}}
        )
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result() if callable(self.result) else self.result


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    stub = Engine()

    def module(name: str, **names: Any) -> None:
        made = ModuleType(name)
        made.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, made)

    module(
        "afd_patchkit.api",
        RunOptions=RunOptions,
        SourceOptions=SourceOptions,
        regen=stub.regen,
        check=partial(stub.regen, check=True),
    )
    module(
        "afd_patchkit.project",
        load_project=lambda start=None: SimpleNamespace(start=start, root=(start or Path()).resolve()),
    )
    return stub


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the current one."""
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where bug reports go."""
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(folder: Path, logs: Path) -> Callable[..., Result]:
    """Run the command line in this process; what escapes it fails the test."""

    def call(*arguments: str, **options: Any) -> Result:
        result = CliRunner().invoke(main, arguments, **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call
