"""What is bound where in this process, and what went wrong."""

# Standard library only: generated packages carry this module, and do not need the engine.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class InstallError(RuntimeError):
    """Nothing was installed, or not everything could be given back.

    It is no ImportError, so that nobody takes it for a module that is not there.

    Attributes:
        problems: one sentence each.
    """

    def __init__(self, what: str, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n  ".join([f"{what}:", *self.problems]))


class TargetState(NamedTuple):
    """One target in this process.

    Attributes:
        target: `package.module:Qual.name`.
        replacement: of what is generated.
        mode: `process`, `scope` or `subclass`.
        state: `bound`; `waiting` for its module to be imported; `lost`, when it was bound and something else is there now;
            `off`; `subclass`, of which nothing is bound.
        places: the names that are bound to the replacement.
        left: names that hold the original, although they should not.
        native: names that hold the original, as declared.
        beyond: who holds the original so that nothing can rebind it, such as defaults of parameters.
        why: what else there is to say.
    """

    target: str
    replacement: str
    mode: str
    state: str
    places: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    native: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is as `install` is to make it."""
        return self.state in ("bound", "waiting", "subclass") and not self.left

    def lines(self) -> list[str]:
        """One line for the target, and one for each name that is not as it should be."""
        found = [f"{self.state} ({self.mode}): {self.target} -> {self.replacement}"]
        found += [f"  {self.why}"] if self.why else []
        for title, places in (
            ("bound", self.places),
            ("left", self.left),
            ("native", self.native),
            ("beyond reach", self.beyond),
        ):
            found += [f"  {title}: {place}" for place in places]
        return found


class InstallState(NamedTuple):
    """What is bound where in this process.

    Attributes:
        rows: one for each target, in the order of the manifests.
        problems: why nothing was installed; empty when nothing went wrong.
    """

    rows: tuple[TargetState, ...]
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything that is for the whole process is installed, and nothing was lost."""
        return not self.problems and all(row.ok for row in self.rows if row.mode != "scope")

    def as_dict(self) -> dict[str, Any]:
        """The same, of plain dictionaries and lists, as JSON takes it."""
        return {"ok": self.ok, "problems": list(self.problems), "targets": [row._asdict() for row in self.rows]}

    def __str__(self) -> str:
        return "\n".join([*self.problems, *(line for row in self.rows for line in row.lines())])
