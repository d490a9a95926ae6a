"""A depot that sends parcels on their way."""

from __future__ import annotations

import logging

from .pauses import pauses
from .roads import Road, shortest

logger = logging.getLogger(__name__)
LIMIT = 3


class Refused(Exception):
    """Nobody opened."""


class Depot:
    """Delivers parcels over the roads that it knows."""

    def __init__(self, roads: list[Road], attempts: int = 1) -> None:
        self.roads = roads
        self.attempts = attempts
        self.delivered: list[str] = []

    def knock(self, parcel: str, road: Road) -> bool:
        """Whether somebody took the parcel."""
        road.knocks -= 1
        return road.knocks == 0

    def deliver(self, parcel: str, to: str) -> int:
        """Carry one parcel; returns the distance."""
        if parcel in self.delivered:
            return 0
        road = shortest(self.roads, to)
        if road.length > LIMIT:
            logger.info("%s goes far", parcel)
        for _ in pauses(self.attempts):
            if self.knock(parcel, road):
                break
        else:
            raise Refused(parcel)
        self.delivered.append(parcel)
        return road.length
