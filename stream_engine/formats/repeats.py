"""Responses that were sent twice: the same participant, the same answer and the same times.

Two people, or one person twice, may well answer alike; nobody does so in the same thousandth of a second. Responses
without a participant, or without any time, are therefore never called repeated. O(comparisons); memory: a hash for
each response.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, DecodedEvents
from stream_engine.data.hashing import mix64, name_hashes

MAX_REPEAT_KEYS = 2_000_000  # responses that are remembered, where repeated ones are only counted
LEAST_TIMES = 3  # different times of a participant, without which equal ones mean nothing


@dataclass
class Repeats:
    """The responses of one input so far; with `drop`, repeated ones are taken out of what `without` returns."""

    drop: bool = False
    of_participant: Counter[str] = field(default_factory=Counter)  # repeated responses
    counted: int = 0  # of which blocks told
    _seen: set[int] = field(default_factory=set)
    _times: dict[str, set[float]] = field(default_factory=dict)

    def without(self, decoded: DecodedEvents) -> DecodedEvents:
        """The block, which is looked at; without its repeated responses where they are to be dropped."""
        given, kinds = decoded.provenance, decoded.kinds
        if given is None or kinds is None or given.continues or kinds.goes_on or not len(given.worker):
            return decoded
        if len(given.seconds) != len(given.worker) or (len(self._seen) > MAX_REPEAT_KEYS and not self.drop):
            return decoded
        timed = (given.worker >= 0) & ~(np.isnan(given.time) & np.isnan(given.seconds))
        if not timed.any():
            return decoded
        again = np.zeros(len(timed), bool)
        for event, value in zip(np.flatnonzero(timed).tolist(), _hashes(decoded)[timed].tolist()):
            who = given.workers[int(given.worker[event])]
            times = self._times.setdefault(who, set())
            if len(times) < LEAST_TIMES:
                times.add(float(np.nan_to_num(given.time[event]) + np.nan_to_num(given.seconds[event])))
            again[event] = value in self._seen
            self._seen.add(value)
        self.of_participant.update(given.workers[number] for number in given.worker[again].tolist())
        before, self.counted = self.counted, sum(self._repeated().values())
        if self.counted > before:
            decoded = decoded._replace(repeated=self.counted - before)
        return _dropped(decoded, again) if self.drop and again.any() else decoded

    def _repeated(self) -> dict[str, int]:
        """How many responses each participant sent twice, where their times mean something; most first."""
        return {who: n for who, n in self.of_participant.most_common() if len(self._times[who]) >= LEAST_TIMES}

    def in_words(self, option: str = "--drop-duplicates") -> str:
        """Who sent how many responses twice, and what to do; "" where nobody did."""
        if not (found := self._repeated()):
            return ""
        most = ", ".join(f"{who} ({n:,})" for who, n in list(found.items())[:3])
        more = f" and {len(found) - 3:,} more" if len(found) > 3 else ""
        told = f"{sum(found.values()):,} responses were sent twice, with the same times and answers, by {most}{more}"
        return f"{told}; the copies were dropped" if self.drop else f"{told}; remove the copies with {option}"


def _hashes(decoded: DecodedEvents) -> np.ndarray:
    """(e,) uint64: of each response, who gave it, when, and all that it says."""
    given, names = decoded.provenance, name_hashes(decoded.names)
    assert given is not None
    people = name_hashes(given.workers) if len(given.workers) else np.zeros(1, np.uint64)
    found = mix64(people[given.worker] ^ given.time.astype(np.float64).view(np.uint64))
    found ^= mix64(given.seconds.astype(np.float64).view(np.uint64) + np.uint64(1))
    for rows, of_event in ((decoded.triplets, given.of_triplet), (decoded.quadruplets, given.of_quadruplet)):
        told = np.zeros(len(rows), np.uint64)
        for column in rows.T:
            told = mix64(told + names[column])
        np.add.at(found, of_event, told)
    return found


def _dropped(decoded: DecodedEvents, again: np.ndarray) -> DecodedEvents:
    """A block without these of its events, which are counted as filtered."""
    given, kinds = decoded.provenance, decoded.kinds
    assert given is not None and kinds is not None
    stays, number = ~again, np.cumsum(~again) - 1
    triplets, quadruplets = stays[kinds.of_triplet], stays[kinds.of_quadruplet]
    before = np.concatenate([[0], np.cumsum(triplets)])
    of_triplet = number[kinds.of_triplet[triplets]].astype(np.int32)
    of_quadruplet = number[kinds.of_quadruplet[quadruplets]].astype(np.int32)
    events = Counter(decoded.events)
    events.subtract(EVENT_TYPES[kind] for kind in kinds.kind[again].tolist())
    columns = ("worker", "weight", "time", "sampler", "seconds", "shown", "position")
    held = {name: getattr(given, name) for name in columns}
    return decoded._replace(
        triplets=decoded.triplets[triplets],
        quadruplets=decoded.quadruplets[quadruplets],
        quadruplet_at=before[decoded.quadruplet_at[quadruplets]],
        events=dict(+events),
        filtered=decoded.filtered + int(again.sum()),
        kinds=kinds._replace(of_triplet=of_triplet, of_quadruplet=of_quadruplet, kind=kinds.kind[stays]),
        provenance=given._replace(
            of_triplet=of_triplet,
            of_quadruplet=of_quadruplet,
            kind=given.kind[stays],
            **{name: values[stays] if len(values) == len(stays) else values for name, values in held.items()},
        ),
    )
