"""One round of a depot, on courier 1.0 and the generated modules."""

from courier.depot import Depot, Refused
from courier.roads import Road
from courier_backports.rounds.depot import PatientDepot
from courier_backports.rounds.tally import Tally


def roads() -> list[Road]:
    """Ada opens at the first knock, Ben at the third, Cleo is not in."""
    return [Road("Ada", 2), Road("Ben", 5, knocks=3), Road("Cleo", 1, knocks=0)]


plain = Depot(roads())
try:
    plain.deliver("books", "Ben")
except Refused as error:
    print(f"courier alone: {error} came back")

tally = Tally(PatientDepot(roads()))
for parcel, to in (("tea", "Ada"), ("books", "Ben"), ("shoes", "Cleo")):
    tally.carry(parcel, to)
print(f"delivered {tally.delivered}, returned {tally.returned}")
print(f"{tally.depot.knocks} knocks, {tally.depot.waited} minutes of waiting")
