"""Owned code: a real file, so that linters and type checkers see it."""

from __future__ import annotations

from dataclasses import dataclass, field

from courier.depot import Refused
from courier_backports.rounds.depot import PatientDepot


@dataclass
class Tally:
    """One round of a depot: the distance of each parcel, and those that came back."""

    depot: PatientDepot
    delivered: dict[str, int] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)

    def carry(self, parcel: str, to: str) -> None:
        """Deliver one parcel and count it."""
        try:
            self.delivered[parcel] = self.depot.deliver(parcel, to)
        except Refused:
            self.returned.append(parcel)
