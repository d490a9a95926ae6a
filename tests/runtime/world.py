"""Invented releases of an upstream, `acme_up`, and packages that replace some of it, as `regen` would write them."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from afd_patchkit.runtime import Gate, Installer, Pinned, Target
from afd_patchkit.runtime.proof import digest, first_line

UP = "acme_up"
OURS = "acme_ours"
GATE = Gate("acme-up", "1.0")

FILES = {
    "acme_up/__init__.py": "",
    "acme_up/core.py": """
        import contextlib
        import functools


        def run(x, *, twice=False):
            return x + 1


        @contextlib.contextmanager
        def session(name):
            yield name


        def logged(function):
            def inner(*args):
                return function(*args)

            return inner


        @logged
        def hidden(x):
            return x


        class Engine:
            __slots__ = ("size",)

            def __init__(self, size):
                self.size = size

            def step(self):
                return "step"

            @staticmethod
            def boot(x):
                return x

            @classmethod
            def make(cls, size):
                return cls(size)

            @property
            def room(self):
                return self.size

            @room.setter
            def room(self, value):
                self.size = value


        class Fast(Engine):
            __slots__ = ("__dict__",)

            @functools.cached_property
            def table(self):
                return [self.size]
    """,
    "acme_up/alias.py": "from acme_up.core import run, Engine\n\nclass Holder:\n    go = run\n    boot = staticmethod(run)\n",
    "acme_up/renamed.py": "from acme_up.core import run as go\n",
    "acme_up/beyond.py": """
        import functools

        from acme_up import core


        def call(f=core.run):
            return f(1)


        half = functools.partial(core.run, twice=True)
        table = {"run": core.run}
    """,
    "acme_up/late.py": "from acme_up.core import run\n",
    "acme_up/lazy.py": "def __getattr__(name):\n    raise RuntimeError(name)\n",
}
OURS_FILES = {
    "acme_ours/__init__.py": "",
    "acme_ours/core.py": """
        from functools import cached_property


        def run(x, *, twice=False):
            return x + 100


        def session(name):
            raise RuntimeError


        def hidden(x):
            return -x


        def step(self):
            return "ours"


        def boot(x):
            return x * 2


        def make(cls, size):
            return cls(size + 1)


        def room(self):
            return 7


        def table(self):
            return ["ours"]


        class Engine:
            pass
    """,
}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")


class Scene:
    """Upstream and ours in a folder on `sys.path`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write(folder, FILES)
        write(folder, OURS_FILES)
        self.version("1.0")

    def version(self, version: str) -> None:
        write(
            self.folder,
            {"acme_up-0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: acme-up\nVersion: {version}\n"},
        )

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")

    def pinned(self, module: str, path: str) -> Pinned:
        text = (self.folder / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        lines, body = text.split("\n"), ast.parse(text).body
        parts = path.split(".")
        found: list[Any] = []
        for name in parts:
            found = [n for n in body if getattr(n, "name", None) == name]
            body = getattr(found[-1], "body", [])
        first = [first_line(node, lines) for node in found]
        spans = [(n.end_lineno - f + 1, digest(lines[f - 1 : n.end_lineno])) for n, f in zip(found, first, strict=True)]
        layers = max(len(node.decorator_list) for node in found)
        is_class = isinstance(found[-1], ast.ClassDef)
        return Pinned(module, tuple(parts), tuple(spans), layers, (UP, "contextlib", "functools"), is_class)

    def target(self, path: str, mode: str = "process", *, module: str = f"{UP}.core", **more: Any) -> Target:
        replacement = f"{OURS}.core:{more.pop('replacement', path.rpartition('.')[2])}"
        pinned = more.pop("pinned", None) or self.pinned(f"{UP}.core", path)
        return Target(module, tuple(path.split(".")), replacement, mode, pinned, GATE, **more)

    def installer(self, *paths: str, **more: Any) -> Installer:
        return Installer(OURS, [self.target(path, **more) for path in paths])


def forget() -> None:
    """Drop the invented packages, and hooks that a test has left."""
    for name in list(sys.modules):
        if name.partition(".")[0] in (UP, OURS, "stranger"):
            del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "package", None) != OURS]


def bindings() -> dict[str, tuple[int, object]]:
    """Every name of upstream's loaded modules and classes, with the object that it is bound to."""
    found: dict[str, tuple[int, object]] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != UP:
            continue
        for key, value in list(vars(module).items()):
            found[f"{name}.{key}"] = (id(value), value)
            if isinstance(value, type) and value.__module__ == name:
                found |= {f"{name}.{key}.{k}": (id(v), v) for k, v in list(vars(value).items())}
    return found
