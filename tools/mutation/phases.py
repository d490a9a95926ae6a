"""A pytest plugin: what runs while lines of generated modules are reached."""

from __future__ import annotations

import contextlib
import json
import mmap
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.mutation.hits import PHASE, SIZE

TOLD = "told.json"


class Phases:
    """A pytest plugin: what runs, how long that takes alone, and which fixtures a test uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with (folder / PHASE).open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), SIZE)
        self.names = [""]
        self._stack, self._since = [0], time.monotonic()
        self._seconds: dict[int, float] = defaultdict(float)
        self._fixtures: dict[str, list[str]] = {}
        self._failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, Any]:
        """Note which test runs."""
        known = item._fixtureinfo.name2fixturedefs
        self._fixtures[item.nodeid] = [_name(definitions[-1]) for definitions in known.values()]
        with self._in(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """A fixture, whoever asks for it first."""
        with self._in(_name(fixturedef)):
            return (yield)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test that fails because of the instruments, or without them."""
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what was noted when the run ends."""
        self._switch(0)
        told = {
            "names": self.names,
            "seconds": self._seconds,
            "fixtures": self._fixtures,
            "failed": sorted(set(self._failed)),
        }
        (self.folder / TOLD).write_text(json.dumps(told), encoding="utf-8")

    @contextlib.contextmanager
    def _in(self, name: str) -> Iterator[None]:
        self.names.append(name)
        self._stack.append(len(self.names) - 1)
        self._switch(self._stack[-1])
        try:
            yield
        finally:
            self._stack.pop()
            self._switch(self._stack[-1])

    def _switch(self, phase: int) -> None:
        now = time.monotonic()
        self._seconds[int.from_bytes(self._shared[:SIZE], "little")] += now - self._since
        self._shared[:SIZE], self._since = phase.to_bytes(SIZE, "little"), now


def _name(definition: Any) -> str:
    return f"{definition.baseid}::{definition.argname} (fixture)"
