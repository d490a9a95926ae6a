"""Installs what a generated package replaces: plans it, proves it, and binds all of it or nothing."""

# Standard library only: generated packages carry this module, and do not need the engine.

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from afd_patchkit.runtime import gate
from afd_patchkit.runtime.binding import BindError, Bound, Rebinding, Target, bind, fitted, give_back
from afd_patchkit.runtime.hook import Finder
from afd_patchkit.runtime.loaded import MISSING, Holder, find, function_of, holders, is_lazy
from afd_patchkit.runtime.proof import described, doubt, root_of, source_of, text_doubt
from afd_patchkit.runtime.report import InstallError, InstallState, TargetState


class Installer:
    """What is installed of one generated package in this process.

    No module is imported and no attribute of a module is asked for while the lock is held: whoever waits for it cannot hold
    what this thread waits for.

    Args:
        package: the generated package.
        targets: what it replaces, in order.
    """

    def __init__(self, package: str, targets: Sequence[Target]) -> None:
        self.package, self.targets = package, tuple(targets)
        self._bound: dict[str, Bound] = {}
        self._scoped: dict[str, Bound] = {}
        self._depth: dict[str, int] = {}
        self._active: dict[str, Target] = {}
        self._finder: Finder | None = None
        self._free()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._free)

    def _free(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it when this process was forked
        if self._finder is not None:
            self._finder.running.clear()  # it may have been importing, too

    # ---- for users ----------------------------------------------------------------------------------------------

    def install(self, *names: str, strict: bool = True, any_version: bool = False) -> InstallState:
        """Bind every target of mode `process`, now or, where its module is not imported yet, as soon as it is.

        Calling it again changes nothing but what was lost to a reload. Nothing is bound unless everything can be.

        Args:
            *names: only these targets: `package.module:Qual.name` of upstream's attribute, or generated modules or their
                entries, below the package.
            strict: raise; otherwise a refusal is logged as a warning, and stands in the result.
            any_version: bind on any release whose text of every target is the pinned one.

        Raises:
            InstallError: nothing was bound: a target is missing, or is not the pinned original, the release is another one,
                or a generated module cannot be imported.
            ValueError: a name fits no target.
        """
        chosen = self._chosen(names, "process")
        self._take_over()
        problems = self._gates(chosen, any_version) + self._on_disk(chosen)
        if not problems:
            self._listen(True)  # from here on nothing is imported unseen
            problems = self._import(chosen)
        if not problems:
            with self._lock:
                problems = self._bind(chosen, self._bound)
                if not problems:
                    self._active.update((str(target), target) for target in chosen)
        self._listen(bool(self._active))
        if not problems:
            self._were_run(())
        elif strict:
            raise InstallError(f"{self.package}: nothing was installed", problems)
        else:
            import logging

            logging.getLogger(self.package).warning("nothing was installed:\n  %s", "\n  ".join(problems))
        return InstallState(self.verify().rows, tuple(problems))

    def uninstall(self) -> None:
        """Give every name back that `install` has bound, and those that have taken a replacement since; forget the hook.

        Raises:
            InstallError: a name was bound to something else meanwhile, and keeps it; all others were given back.
        """
        self._take_over()
        with self._lock:
            problems = self._give_back(self._bound)
            self._active = {}
        self._listen(False)
        if problems:
            raise InstallError(f"{self.package}: not everything was given back", problems)

    @contextmanager
    def scope(self, *names: str, any_version: bool = False) -> Iterator[InstallState]:
        """Bind targets of mode `scope` for a while, for the whole process: the last one to leave gives them back.

        Args:
            *names: as for `install`; all of that mode without.
            any_version: as for `install`.

        Raises:
            InstallError: as for `install`; or, at the end, as for `uninstall`.
            ValueError: a name fits no target.
        """
        chosen = self._chosen(names, "scope")
        problems = self._gates(chosen, any_version)
        for target in chosen:
            problems += self._imported(target.module)
        problems += self._import(chosen)
        if not problems:
            with self._lock:
                new = [target for target in chosen if not self._depth.get(str(target))]
                problems = self._bind(new, self._scoped)
                if not problems:
                    for target in chosen:
                        self._depth[str(target)] = self._depth.get(str(target), 0) + 1
        if problems:
            raise InstallError(f"{self.package}: nothing was installed", problems)
        try:
            yield self.verify()
        finally:
            with self._lock:
                ended = {}
                for target in chosen:
                    self._depth[str(target)] -= 1
                    if not self._depth[str(target)]:
                        ended[str(target)] = self._scoped.pop(str(target))
                problems = self._give_back(ended)
            if problems:
                raise InstallError(f"{self.package}: not everything was given back", problems)

    def verify(self) -> InstallState:
        """What is bound where in this process, whoever asks; nothing is imported, and nothing changed."""
        self._take_over()
        with self._lock:
            bounds = {**self._bound, **self._scoped}
            held = _held(bounds.values(), self.package)
            return InstallState(tuple(self._row(target, bounds.get(str(target)), held) for target in self.targets))

    # ---- choosing and checking ------------------------------------------------------------------------------------

    def _chosen(self, names: Sequence[str], mode: str) -> list[Target]:
        known = [target for target in self.targets if target.mode == mode]
        if not names:
            return known
        chosen: list[Target] = []
        for name in names:
            wanted = name.removeprefix(f"{self.package}.")
            found = [
                target
                for target in known
                if name == str(target)
                or wanted in (own := target.replacement.removeprefix(f"{self.package}."), own.partition(":")[0])
                or own.startswith(f"{wanted}.")
            ]
            if not found:
                raise ValueError(f"{self.package} has no target {name!r} of mode {mode}: {', '.join(map(str, known))}")
            chosen += [target for target in found if target not in chosen]
        return chosen

    @staticmethod
    def _gates(chosen: Iterable[Target], any_version: bool) -> list[str]:
        if any_version:
            return []
        return [why for found in dict.fromkeys(t.gate for t in chosen) if (why := gate.refusal(found)) is not None]

    def _on_disk(self, chosen: Iterable[Target]) -> list[str]:
        """What can be said of targets whose modules are not loaded, without running them."""
        problems = []
        for target in chosen:
            if not self._is_loaded(target.module):
                try:
                    text = source_of(target.pinned.module)
                except Exception as error:  # of a finder
                    problems.append(f"{target}: {target.pinned.module} cannot be looked for: {error}")
                    continue
                why = f"{target.pinned.module} is not there" if text is None else text_doubt(text, target.pinned)
                problems += [f"{target}: {why}"] if why else []
        return problems

    def _import(self, chosen: Iterable[Target]) -> list[str]:
        """Import the generated modules of all targets whose own modules are loaded."""
        waiting = list(chosen)
        problems: list[str] = []
        while ready := [target for target in waiting if self._is_loaded(target.module)]:
            waiting = [target for target in waiting if target not in ready]
            for name in dict.fromkeys(target.replacement.partition(":")[0] for target in ready):
                problems += self._imported(name)
        return problems

    @staticmethod
    def _imported(name: str) -> list[str]:
        try:
            importlib.import_module(name)
        except Exception as error:
            return [f"{name} cannot be imported: {type(error).__name__}: {error}"]
        return []

    # ---- binding --------------------------------------------------------------------------------------------------

    def _bind(self, chosen: Iterable[Target], bounds: dict[str, Bound]) -> list[str]:
        """Bind all loaded targets of `chosen` that are not bound, or none; what stands in the way is returned."""
        problems: list[str] = []
        new: list[Bound] = []
        for target in chosen:
            if not self._is_loaded(target.module):
                continue
            try:
                planned = self._planned(target, bounds.get(str(target)))
            except BindError as error:
                problems += error.problems
            else:
                new += [planned] if planned is not None else []
        if problems or not new:
            return problems
        self._find_aliases(new)
        for planned in new:
            problems += self._foreign_aliases(planned)
        if problems:
            return problems
        try:
            bind([change for planned in new for change in planned.changes.values()])
        except BindError as error:
            return error.problems
        for planned in new:
            _keep(bounds, planned)
        return []

    def _planned(self, target: Target, known: Bound | None) -> Bound | None:
        """What is to be bound for a target; None when it is already.

        Raises:
            BindError: it must not be.
        """
        place = find(target.module, target.path)
        found = MISSING if place is None else place.get()
        if place is None or found is MISSING:
            raise BindError([f"{target}: {target.module} has no {'.'.join(target.path)}"])
        module, _, name = target.replacement.partition(":")
        home = find(module, tuple(name.split(".")))
        replacement = MISSING if home is None else home.get()
        if replacement is MISSING:
            raise BindError([f"{target}: {module} has no {name}"])
        if known is not None and found is known.value:
            if function_of(known.value) is function_of(replacement):
                return None
            original = known.original  # the generated module was reloaded
        else:
            why = doubt(found, target.pinned)
            if why is not None:
                raise BindError([f"{target}: {why}"])
            original = found
        try:
            planned = Bound(target, original, fitted(original, replacement, place))
        except TypeError as error:
            raise BindError([f"{target}: {error}"]) from error
        planned.changes[id(place.owner), place.path[-1]] = Rebinding(place, found, planned.value)
        if known is not None:
            planned.again, planned.early = True, set(known.early)
            planned.stale = known.value
        return planned

    def _find_aliases(self, new: Sequence[Bound]) -> None:
        """Put the other names of what is to be bound into the plans, by one look at all loaded modules."""
        ours: dict[int, Bound] = {}
        theirs: dict[int, Bound] = {}
        for planned in new:
            old = () if function_of(planned.stale) is function_of(planned.value) else (planned.stale,)
            for value in (planned.original, *old):
                theirs |= {id(x): planned for x in (value, function_of(value)) if x is not MISSING}
            ours |= {id(x): planned for x in (planned.value, function_of(planned.value))}
        for held in list(holders({*ours, *theirs}, (self.package,))):
            ids = id(held.held), id(function_of(held.held))
            replaced = theirs.get(ids[0]) or theirs.get(ids[1])
            if replaced is None:
                planned = ours.get(ids[0]) or ours[ids[1]]
                if not planned.again:
                    planned.early.add(str(held.place))
            elif held.within:
                replaced.beyond.append(str(held))
            elif replaced.target.reaches(held.place.module) and str(held.place) not in replaced.early:
                after = replaced.like(held.held, original=False)
                key = id(held.place.owner), held.place.path[-1]
                replaced.changes.setdefault(key, Rebinding(held.place, held.held, after))

    def _foreign_aliases(self, planned: Bound) -> list[str]:
        """Names that upstream gives the original, and that somebody else has bound to something of his own."""
        problems = []
        for module, name in planned.target.sites:
            place = find(module, tuple(name.split("."))) if planned.target.reaches(module) else None
            value = MISSING if place is None or not self._is_loaded(module) else place.get()
            if place is None or value is MISSING or (id(place.owner), place.path[-1]) in planned.changes:
                continue
            if doubt(value, planned.target.pinned) is None:  # from before upstream's module was imported again
                after = planned.like(value, original=False)
                planned.changes[id(place.owner), place.path[-1]] = Rebinding(place, value, after)
            elif root_of(value) not in (*planned.target.pinned.roots, self.package.partition(".")[0], "builtins"):
                problems.append(f"{planned.target}: {described(value)} is in place of its other name {place}")
        return problems

    def _give_back(self, bounds: dict[str, Bound]) -> list[str]:
        """Give back what these have bound, and empty the mapping; what stands in the way is returned."""
        gone = list(bounds.values())
        bounds.clear()
        problems = give_back([change for bound in gone for change in bound.changes.values()])
        values = {id(value): bound for bound in gone for value in (bound.value, function_of(bound.value))}
        later = []
        for held in list(holders(values, (self.package,))) if values else []:
            bound = values.get(id(held.held)) or values[id(function_of(held.held))]
            if not held.within and str(held.place) not in bound.early:
                later.append(Rebinding(held.place, bound.like(held.held, original=True), held.held))
        return problems + give_back(later)

    # ---- what is imported later -----------------------------------------------------------------------------------

    def _listen(self, wanted: bool) -> None:
        """Put the hook in place, or take it out."""
        with self._lock:
            if wanted and self._finder is None:
                roots = {target.module.partition(".")[0] for target in self.targets}
                self._finder = Finder(self.package, self, roots, self._were_run)
                sys.meta_path.insert(0, self._finder)
                for target in self.targets:
                    self._finder.listen_to(sys.modules.get(target.module))
            elif not wanted and self._finder is not None:
                if self._finder in sys.meta_path:
                    sys.meta_path.remove(self._finder)
                self._finder = None

    def _were_run(self, names: Collection[str]) -> None:
        """Bind what waited for modules that have been run now, and again what running them again has lost.

        Raises:
            InstallError: something cannot be bound; everything was given back.
        """
        while True:
            with self._lock:
                due = [
                    target
                    for key, target in self._active.items()
                    if self._is_loaded(target.module) and (target.module in names or key not in self._bound)
                ]
            if not due:
                return
            problems = self._import(due)
            with self._lock:
                problems = problems or self._bind(due, self._bound)
                if problems:
                    problems += self._give_back(self._bound)
                    self._active = {}
            if problems:
                self._listen(False)
                raise InstallError(f"{self.package}: everything was given back", problems)
            names = ()

    def _is_loaded(self, module: str) -> bool:
        """Whether a module has been run, or is run without this hook knowing."""
        known = sys.modules.get(module)
        running = self._finder.running if self._finder is not None else ()
        return known is not None and not is_lazy(known) and module not in running

    def _take_over(self) -> None:
        """Go on with what an earlier copy of this package has installed in this process."""
        for finder in list(sys.meta_path):
            kind = type(finder).__dict__
            if "PATCHKIT" not in kind or finder.package != self.package or finder.owner is self:  # type: ignore[attr-defined]
                continue
            other = finder.owner  # type: ignore[attr-defined]
            own = {str(target): target for target in self.targets}
            with other._lock, self._lock:
                self._active |= {key: own.get(key, target) for key, target in other._active.items()}
                for mine, theirs in ((self._bound, other._bound), (self._scoped, other._scoped)):
                    mine.update(theirs)
                    theirs.clear()
                self._depth |= other._depth
                other._active = {}
            other._listen(False)
            self._listen(bool(self._active))

    # ---- telling ----------------------------------------------------------------------------------------------------

    def _row(self, target: Target, bound: Bound | None, held: Sequence[Holder]) -> TargetState:
        place = find(target.module, target.path) if self._is_loaded(target.module) else None
        found = MISSING if place is None else place.get()
        what = "nothing is there" if found is MISSING else doubt(found, target.pinned)
        row = TargetState(str(target), target.replacement, target.mode, "off", why=what or "")
        if place is None:
            row = row._replace(why="")
        if target.mode == "subclass":
            return row._replace(state="subclass")
        if bound is None:
            return row._replace(state="waiting" if str(target) in self._active else "off")
        originals = {id(bound.original), id(function_of(bound.original))}
        values = {id(bound.value), id(function_of(bound.value))}
        mine = [h for h in held if {id(h.held), id(function_of(h.held))} & values and not h.within]
        theirs = [h for h in held if {id(h.held), id(function_of(h.held))} & originals]
        names = [h for h in theirs if not h.within]
        return row._replace(
            state="bound" if found is bound.value else "lost",
            why="" if found is bound.value else what or "the original is in its place again",
            places=tuple(str(h) for h in mine if str(h.place) not in bound.early),
            left=tuple(str(h) for h in names if target.reaches(h.place.module)),
            native=tuple(str(h) for h in names if not target.reaches(h.place.module)),
            beyond=tuple(str(h) for h in theirs if h.within),
        )


def _held(bounds: Iterable[Bound], package: str) -> list[Holder]:
    """Who holds an original or a replacement of these."""
    wanted = {id(x) for b in bounds for value in (b.original, b.value) for x in (value, function_of(value))}
    return list(holders(wanted, (package,))) if wanted else []


def _keep(bounds: dict[str, Bound], planned: Bound) -> None:
    """Put what was bound now to what was bound before: each name keeps what it had before the first time."""
    known = bounds.setdefault(str(planned.target), planned)
    if known is planned:
        return
    for key, change in planned.changes.items():
        before = known.changes.get(key)
        if before is not None and change.before is before.after:
            change = change._replace(before=before.before)  # noqa: PLW2901
        elif function_of(change.before) is function_of(known.value):
            change = change._replace(before=known.like(change.before, original=True))  # noqa: PLW2901
        known.changes[key] = change
    known.original, known.value = planned.original, planned.value
    known.target, known.beyond = planned.target, planned.beyond
    known.early |= planned.early
