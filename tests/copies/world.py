"""An invented upstream, and hand files about it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from afd_patchkit.copies.audit import AuditOptions, audit
from afd_patchkit.findings.report import Report
from afd_patchkit.model import Pin
from afd_patchkit.upstream.options import SourceOptions

ENGINE = '''
import queue
from contextlib import contextmanager
from functools import wraps

from acme.tools import helper, traced

logger = object()
LIMIT = 8


def dispatch(batch, rank=0):
    logger.debug("dispatch %s", batch)
    count = helper(batch, LIMIT)
    if count > LIMIT:
        raise ValueError("too many")
    results = []
    for part in batch:
        # one after the other
        results.append(helper(part, rank))
    return results


@contextmanager
def session(name: str, size: int = 4):
    logger.info("open %s", name)
    box = queue.Queue[str](size)
    try:
        yield box
    finally:
        logger.info("close %s", name)


class Engine:
    def __init__(self, config: dict, rank: int = 0) -> None:
        self.config = config
        self.rank = rank
        self.cache: dict = {}
        self.ready = False
        if config.get("warm"):
            self.warm()
        self.ready = True

    def warm(self, times: int = 1):
        for _ in range(times):
            self.step([])

    @staticmethod
    def run(*args, **kwargs):
        engine = Engine(*args, **kwargs)
        try:
            engine.loop()
        except SystemExit as e:
            logger.info("exit")
            raise e
        finally:
            engine.close()

    @traced("step")
    def step(self, batch, limit: int = LIMIT) -> list:
        """One step."""
        out = dispatch(batch, self.rank)
        total = len(out)
        if total and self.ready:
            self.cache["last"] = out
        return out

    def loop(self):
        while self.poll():
            self.step([])
            self.flush()
        raise SystemExit

    def poll(self):
        return False

    def flush(self):
        self.cache.clear()

    def close(self):
        self.cache.clear()
        self.ready = False
        logger.debug("closed")


class WideEngine(Engine):
    def loop(self):
        waves = 0
        while self.poll():
            self.step([])
            waves += 1
            if waves > LIMIT:
                self.flush()
                waves = 0
        raise SystemExit
'''
TOOLS = """
def helper(value, limit):
    return min(len(value), limit)


def traced(name):
    def mark(function):
        return function

    return mark
"""
CLI = "from acme.engine import session\n\n\ndef main():\n    with session('cli'):\n        pass\n"
FILES = {"acme/__init__.py": "", "acme/engine.py": ENGINE, "acme/tools.py": TOOLS, "acme/cli.py": CLI}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Put files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return folder


class World:
    """The invented upstream in a folder, and a plugin beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.upstream = write(folder / "upstream", FILES)
        self.plugin = folder / "plugin"

    @property
    def pins(self) -> dict[str, Pin]:
        """The one pin."""
        return {"acme": Pin(distribution="acme", version="1.0")}

    @property
    def sources(self) -> SourceOptions:
        """Where it is read from."""
        return SourceOptions(sources={"acme": self.upstream}, offline=True)

    def audit(self, files: Mapping[str, str], **more: object) -> Report:
        """The audit of a plugin with these files."""
        write(self.plugin, files)
        options = AuditOptions(pins=self.pins, sources=self.sources, base=self.folder, **more)  # type: ignore[arg-type]
        return audit([self.plugin], options)


def found(report: Report) -> list[tuple[str, int]]:
    """Code and line of each finding, in order of the lines."""
    return sorted((f.code, f.generated.line if f.generated else 0) for f in report.findings)
