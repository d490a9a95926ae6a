"""One change of one thing that own code refers to: what the engine says, and what happens when the code runs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from afd_patchkit.api import load_project
from tools.environments import ROOT
from tools.oracles.meaning.change import BREAKING, COMPATIBLE, Change, change
from tools.oracles.meaning.draw import Draft, Drawer
from tools.oracles.meaning.engine import Carried, Carrier, Folder
from tools.oracles.meaning.judge import Own, Runner, Verdict, verdict
from tools.oracles.meaning.patchset import named, patch_set
from tools.oracles.meaning.sources import Sources
from tools.oracles.meaning.spots import spots
from tools.oracles.meaning.values import InconsistentError
from tools.oracles.meaning.world import World

SET = -1
"""Number of the project that is this one."""
Outcome = Literal["caught", "soft", "missed", "false alarm", "quiet", "open", "discarded"]
"""`caught`: it breaks or differs, and a person is told; `soft`: it breaks, and is called a matter of review; `missed`: nobody is told;
`quiet`: nothing differs, and nothing is said; `false alarm`: nothing differs, and something is said."""


@dataclass(frozen=True)
class Case:
    """One change, judged.

    Attributes:
        project: number of the project.
        number: of the change in the project.
        place: where the own code stands.
        kind: how it refers to what was changed, as far as one snippet tells.
        change: what was changed; None for what is said at the pin.
        verdict: of the judge.
        why: in words.
        carried: what the engine says.
        ours: the own code that the verdict is about.
    """

    project: int
    number: int
    place: str
    kind: str
    change: Change | None
    verdict: Verdict | None
    why: str
    carried: Carried
    ours: str = ""

    @property
    def outcome(self) -> Outcome:
        """What that amounts to."""
        if self.verdict is None:
            return "discarded"
        if self.verdict == "open":
            return "open"
        if self.verdict == "same" and self.project == SET:
            return self._of_the_set()
        if self.verdict == "same":
            return "false alarm" if self.carried.told else "quiet"
        if not self.carried.told:
            return "missed"
        return "caught" if self.verdict == "different" or self.carried.conflict else "soft"

    def _of_the_set(self) -> Outcome:
        """The set copies and watches, too, and its copied text is not run: only compatible changes say anything."""
        if self.change is None or not self.change.compatible:
            return "open"
        return "false alarm" if self.carried.leaning else "quiet"

    @property
    def wrong(self) -> bool:
        """Whether it is a miss or a false alarm."""
        return self.outcome in {"missed", "false alarm"}


class Observed:
    """Own code at the pin: what happens there, and what it looks at."""

    def __init__(self, sources: Sources, own: Own) -> None:
        self.own = own
        self.world = World(sources)
        runner = Runner(self.world, own)
        runner.prepare()
        self.world.touched.clear()
        self.before = [runner.run(snippet) for snippet in own.snippets]
        self.spots = spots(self.world.touched, sources)

    def after(self, sources: Sources) -> tuple[Verdict | None, str, int]:
        """What differs in another release: the verdict, why, and for which snippet."""
        world = World(sources)
        runner = Runner(world, self.own)
        try:
            runner.prepare()
        except InconsistentError as error:
            return None, str(error), 0
        except Exception as error:
            return "broken", f"{type(error).__name__}: {error}", 0
        worst: tuple[Verdict, str, int] = ("same", "", 0)
        order = ("same", "open", "different", "broken")
        for index, (snippet, before) in enumerate(zip(self.own.snippets, self.before, strict=True)):
            try:
                said, why = verdict(before, runner.run(snippet))
            except InconsistentError as error:
                return None, str(error), index
            except Exception as error:
                said, why = "broken", f"{type(error).__name__}: {error}"
            if order.index(said) > order.index(worst[0]):
                worst = (said, why, index)
        return worst


def cases(
    sources: Sources, folder: Folder, seed: int, project: int, breaking: int, compatible: int, only: int | None = None
) -> Iterator[Case]:
    """The cases of one project.

    Args:
        sources: the release.
        folder: where the project is written.
        seed: another seed, other projects.
        project: number of the project.
        breaking: how many changes that may break something.
        compatible: how many compatible ones.
        only: number of the one case that is wanted.
    """
    draw = random.Random(f"{seed}:{project}")
    draft = Drawer(sources, draw).project()
    carrier = Carrier(folder.project(draft.manifest, draft.part))
    pin = Carried({"": "conflict" if carrier.problems else "unchanged"}, carrier.problems)
    if only in (None, 0):
        yield Case(project, 0, draft.place, "at the pin", None, "same", "", pin, draft.manifest + draft.part)
    if carrier.problems:
        return
    observed = Observed(sources, draft.own)
    if not observed.spots:
        return
    names = [BREAKING] * breaking + [COMPATIBLE] * compatible
    done: set[Any] = set()
    for number, group in enumerate(names, 1):
        draw = random.Random(f"{seed}:{project}:{number}")
        made = change(draw, sources, observed.spots, group, draft.copied, draft.own.owner)
        if made is None or (made.name, made.target, hash(frozenset(made.files.items()))) in done:
            continue
        done.add((made.name, made.target, hash(frozenset(made.files.items()))))
        if only in (None, number):
            yield _case(sources, carrier, observed, draft, made, project, number)


def set_cases(sources: Sources, seed: int, count: int, only: int | None = None) -> Iterator[Case]:
    """Cases of this project's own patch set.

    Args:
        sources: the release.
        seed: another seed, other changes.
        count: how many changes that may break something, and how many compatible ones.
        only: number of the one case that is wanted.
    """
    own = patch_set(sources)
    observed = Observed(sources, own)
    taken = named()
    found = [s for s in observed.spots if f"{s.listing.module}:{s.qualname}" not in taken]
    carrier = Carrier(load_project(ROOT))
    draft = Draft("patch set", own, "", "", "")
    done: set[tuple[str, str]] = set()
    for number in range(1, 2 * count + 1):
        group = BREAKING if number % 2 else COMPATIBLE
        made = change(random.Random(f"{seed}:set:{number}"), sources, found, group, "")
        if made is None or (made.name, made.target) in done:
            continue
        done.add((made.name, made.target))
        if only in (None, number):
            yield _case(sources, carrier, observed, draft, made, SET, number)


def _case(
    sources: Sources, carrier: Carrier, observed: Observed, draft: Draft, made: Change, project: int, number: int
) -> Case:
    said, why, index = observed.after(sources.with_changes(made.files))
    carried = carrier.to(made.files) if said is not None else Carried({})
    every = said == "same" and project != SET
    found = draft.own.snippets if every else draft.own.snippets[index : index + 1] if said != "same" else ()
    ours = "\n".join(line for s in found for line in (*s.imports, s.ours))
    return Case(project, number, draft.place, found[0].kind if found else "set", made, said, why, carried, ours)
