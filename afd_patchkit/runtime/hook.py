"""Tells when modules of some packages have been run, imported for the first time or again, without changing anything of them."""

# Standard library only: generated packages carry this module, and do not need the engine.

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection
from typing import Any

from afd_patchkit.runtime.loaded import is_lazy, namespace


class Finder:
    """Stands in front of `sys.meta_path` and lets the others find; asks to be told when what they found has been run.

    Whoever is told may import in turn: it is told at the end of the outermost import of a thread, when no module of the
    packages is half run in it.

    Args:
        package: the generated package that it works for.
        owner: its installer.
        roots: top-level packages whose modules matter.
        done: is told the names of the modules that were run.
    """

    PATCHKIT = True
    """By this a finder is known, whichever copy of this module it comes from."""

    def __init__(
        self, package: str, owner: Any, roots: Collection[str], done: Callable[[Collection[str]], None]
    ) -> None:
        self.package, self.owner, self.roots, self.done = package, owner, frozenset(roots), done
        self.running: set[str] = set()
        self._state = threading.local()

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """What the finders behind this one find, with a loader that tells."""
        if name.partition(".")[0] not in self.roots:
            return None
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else []
        for finder in behind:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    self._listen(spec)
                return spec
        return None

    def _listen(self, spec: Any) -> None:
        if type(spec.loader).__name__ == "LazyLoader" and hasattr(spec.loader, "loader"):
            spec.loader.loader = Loader(spec.loader.loader, self)  # it runs the module later, by this one
        else:
            spec.loader = Loader(spec.loader, self)

    def listen_to(self, module: object) -> None:
        """Be told of a module, too, that waits already for its first use."""
        spec = (namespace(module) or {}).get("__spec__")
        if is_lazy(module) and spec is not None and type(spec.loader) is not Loader:
            spec.loader = Loader(spec.loader, self)

    def begin(self, name: str) -> None:
        """A module begins to run in this thread."""
        self.running.add(name)
        self._state.depth = getattr(self._state, "depth", 0) + 1

    def end(self, name: str, *, complete: bool) -> None:
        """A module has run, or has failed."""
        self.running.discard(name)
        self._state.depth -= 1
        names: list[str] = self._state.__dict__.setdefault("names", [])
        if complete:
            names.append(name)
        if not self._state.depth:
            self._state.names = []
            if names:
                self.done(names)


class Loader:
    """Runs a module by the loader that was found for it, which stays the one that the module shows.

    Args:
        loader: that loader.
        finder: who is told.
    """

    def __init__(self, loader: Any, finder: Finder) -> None:
        self.loader, self.finder = loader, finder

    def __getattr__(self, name: str) -> Any:
        """What else that loader can, for those who ask a specification instead of a module."""
        if name == "loader":  # not set yet
            raise AttributeError(name)
        return getattr(self.loader, name)

    def create_module(self, spec: Any) -> Any:
        """Let the loader that was found make the module."""
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Run the module, and tell the finder when it has run or failed."""
        names = object.__getattribute__(module, "__dict__")
        names["__loader__"] = self.loader
        if names.get("__spec__") is not None:
            names["__spec__"].loader = self.loader
        self.finder.begin(names["__name__"])
        complete = False
        try:
            self.loader.exec_module(module)
            complete = True
        finally:
            self.finder.end(names["__name__"], complete=complete)
