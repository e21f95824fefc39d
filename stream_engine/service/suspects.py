"""Which records a process may have died of: pure functions of where it stood at each of its deaths.

At a death, some stretch of the stream was being decoded or learned. The next process takes the records of that stretch
in small parts, so that the next death is at fewer of them, and at last at one alone. A record is taken for the cause
when it was in flight at each of `DEATHS` deaths, alone at the last `ALONE` of them: a person who kills a healthy
process again and again does not hit the same record. One that the stream got past is no suspect any more.
"""

from collections.abc import Iterable, Mapping

import msgspec

from connectors import Position, Record

DEATHS, ALONE = 3, 2
Ranges = dict[str, tuple[int, int]]  # partition -> from the offset of the first record to the one after the last


class Flight(msgspec.Struct, frozen=True):
    """What was at work at a death; `check` is the CRC-32 of the bytes of a record alone, where it is known."""

    ranges: Ranges
    alone: bool = False
    check: int | None = None
    process: str = ""  # which one, so that no death is counted twice


class Suspect(msgspec.Struct, frozen=True):
    """Records among which one may have killed the process, and how often they were in flight when it died."""

    ranges: Ranges
    deaths: int
    alone: int = 0  # of the last deaths, at just this one record
    check: int | None = None

    def guilty(self) -> bool:
        """Whether this is one record, and the process died of it."""
        return self.deaths >= DEATHS and self.alone >= ALONE

    def is_record(self, record: Record, check: int | None) -> bool:
        """Whether this is that one record."""
        place = self.ranges.get(record.partition)
        return place is not None and place[1] == record.next_offset and _agree(self.check, check)

    def holds(self, partition: str, first: int, after: int) -> bool:
        """Whether a stretch of a partition touches these records."""
        place = self.ranges.get(partition)
        return place is not None and first < place[1] and place[0] < after


def after_death(suspects: Iterable[Suspect], flight: Flight) -> list[Suspect]:
    """The suspects after one more death.

    >>> one = after_death([], Flight({"f": (0, 90)}))
    >>> two = after_death(one, Flight({"f": (30, 60)}))
    >>> three = after_death(two, Flight({"f": (40, 50)}, alone=True))
    >>> [suspect.guilty() for suspect in three], after_death(three, Flight({"f": (40, 50)}, alone=True))[0].guilty()
    ([False], True)
    """
    left: list[Suspect] = []
    met = False
    for suspect in suspects:
        common = _common(suspect.ranges, flight.ranges)
        if common:
            met = True
            left.append(_seen_again(suspect, common, flight))
        elif not _passed(suspect.ranges, flight.ranges):
            left.append(suspect)
    return left if met else [*left, Suspect(flight.ranges, 1, int(flight.alone), flight.check)]


def still_ahead(suspects: Iterable[Suspect], positions: Mapping[str, Position]) -> list[Suspect]:
    """Those that a state at these positions has not read."""
    none = Position(0)
    return [s for s in suspects if any(positions.get(p, none).offset < after for p, (_, after) in s.ranges.items())]


def _seen_again(suspect: Suspect, common: Ranges, flight: Flight) -> Suspect:
    if flight.alone:
        same = suspect.alone and _agree(suspect.check, flight.check)
        return Suspect(common, suspect.deaths + 1, suspect.alone + 1 if same else 1, flight.check)
    if suspect.alone:  # among others this time, which proves nothing new
        return suspect
    return Suspect(common, suspect.deaths + 1)


def _common(one: Ranges, other: Ranges) -> Ranges:
    both = {p: (max(one[p][0], other[p][0]), min(one[p][1], other[p][1])) for p in one.keys() & other.keys()}
    return {partition: place for partition, place in sorted(both.items()) if place[0] < place[1]}


def _passed(suspect: Ranges, flight: Ranges) -> bool:
    """Whether all of it that can be judged lies before what was in flight: it was taken in, and killed nobody."""
    shared = suspect.keys() & flight.keys()
    return shared == suspect.keys() and all(suspect[p][1] <= flight[p][0] for p in shared)


def _agree(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other
