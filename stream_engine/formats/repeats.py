"""Responses that were sent twice: the same participant, the same answer and the same times.

Without a participant or a time, equal answers are never called repeated: people may well answer alike, but not in the
same millisecond.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, DecodedEvents
from stream_engine.data.hashing import mix64, name_hashes

MAX_REPEAT_KEYS = 2_000_000  # responses that are remembered, where repeated ones are only counted
MIN_DIFFERENT_TIMES = 3  # different times of a participant, without which equal ones mean nothing


@dataclass
class Repeats:
    """The responses of one input so far; with `drop`, repeated ones are taken out of what `without` returns."""

    drop: bool = False
    of_participant: Counter[str] = field(default_factory=Counter)  # repeated responses
    counted: int = 0  # of which blocks told
    _hashes_before: set[int] = field(default_factory=set)
    _times: dict[str, set[float]] = field(default_factory=dict)

    def without(self, decoded: DecodedEvents) -> DecodedEvents:
        """The block, which is looked at; without its repeated responses, and copies of catch trials, where they are to
        be dropped."""
        decoded = self._without_copied_catch_trials(decoded)
        provenance, kinds = decoded.provenance, decoded.kinds
        if provenance is None or kinds is None or provenance.continues or kinds.goes_on or not len(provenance.worker):
            return decoded
        if len(provenance.seconds) != len(provenance.worker) or (
            len(self._hashes_before) > MAX_REPEAT_KEYS and not self.drop
        ):
            return decoded
        timed = (provenance.worker >= 0) & ~(np.isnan(provenance.time) & np.isnan(provenance.seconds))
        if not timed.any():
            return decoded
        again = np.zeros(len(timed), bool)
        for event, value in zip(np.flatnonzero(timed).tolist(), _hashes(decoded)[timed].tolist()):
            who = provenance.workers[int(provenance.worker[event])]
            times = self._times.setdefault(who, set())
            if len(times) < MIN_DIFFERENT_TIMES:
                times.add(float(np.nan_to_num(provenance.time[event]) + np.nan_to_num(provenance.seconds[event])))
            again[event] = value in self._hashes_before
            self._hashes_before.add(value)
        self.of_participant.update(provenance.workers[number] for number in provenance.worker[again].tolist())
        before, self.counted = self.counted, sum(self._repeated().values())
        repeated = int(again.sum()) if self.drop else self.counted - before
        if repeated > 0:
            decoded = decoded._replace(repeated=repeated)
        return _dropped(decoded, again) if self.drop and again.any() else decoded

    def _repeated(self) -> dict[str, int]:
        """How many responses each participant sent twice, where their times mean something; most first."""
        return {who: n for who, n in self.of_participant.most_common() if len(self._times[who]) >= MIN_DIFFERENT_TIMES}

    def _without_copied_catch_trials(self, decoded: DecodedEvents) -> DecodedEvents:
        provenance = decoded.provenance
        if not self.drop or provenance is None or not provenance.catch_key.any():
            return decoded
        stays = np.ones(len(provenance.catch_key), bool)
        for trial, key in enumerate(provenance.catch_key.tolist()):
            stays[trial] = not key or key not in self._hashes_before
            self._hashes_before.add(key)
        columns = ("catch_worker", "catch_passed", "catch_key")
        return decoded._replace(provenance=provenance._replace(**{c: getattr(provenance, c)[stays] for c in columns}))

    def in_words(self, option: str = "--drop-duplicates") -> str:
        """Who sent how many responses twice, and what to do; what was dropped though its times mean nothing. "" where
        nobody did."""
        times_of = self._repeated()
        unsure = self.of_participant.total() - sum(times_of.values()) if self.drop else 0
        doubt = (
            f"{option} dropped equal responses of participants who have fewer than {MIN_DIFFERENT_TIMES} different "
            f"times: {unsure:,}, which may be answers of their own"
        )
        if not times_of:
            return doubt if unsure else ""
        most = ", ".join(f"{who} ({n:,})" for who, n in list(times_of.items())[:3])
        more = f" and {len(times_of) - 3:,} more" if len(times_of) > 3 else ""
        fact = f"{sum(times_of.values()):,} responses were sent twice, with the same times and answers, by {most}{more}"
        if self.drop:
            return f"{fact}; the copies were dropped" + (f"; {doubt}" if unsure else "")
        return f"{fact}; remove the copies with {option}"


def _hashes(decoded: DecodedEvents) -> np.ndarray:
    """(e,) uint64: of each response, who gave it, when, and all that it says."""
    provenance, names = decoded.provenance, name_hashes(decoded.names)
    assert provenance is not None
    people = name_hashes(provenance.workers) if len(provenance.workers) else np.zeros(1, np.uint64)
    hashes = mix64(people[provenance.worker] ^ provenance.time.astype(np.float64).view(np.uint64))
    hashes ^= mix64(provenance.seconds.astype(np.float64).view(np.uint64) + np.uint64(1))
    for rows, of_event in ((decoded.triplets, provenance.of_triplet), (decoded.quadruplets, provenance.of_quadruplet)):
        row_hashes = np.zeros(len(rows), np.uint64)
        for column in rows.T:
            row_hashes = mix64(row_hashes + names[column])
        np.add.at(hashes, of_event, row_hashes)
    return hashes


def _dropped(decoded: DecodedEvents, again: np.ndarray) -> DecodedEvents:
    """A block without these of its events, which are counted as filtered."""
    provenance, kinds = decoded.provenance, decoded.kinds
    assert provenance is not None and kinds is not None
    stays, number = ~again, np.cumsum(~again) - 1
    triplets, quadruplets = stays[kinds.of_triplet], stays[kinds.of_quadruplet]
    before = np.concatenate([[0], np.cumsum(triplets)])
    of_triplet = number[kinds.of_triplet[triplets]].astype(np.int32)
    of_quadruplet = number[kinds.of_quadruplet[quadruplets]].astype(np.int32)
    events = Counter(decoded.events)
    events.subtract(EVENT_TYPES[kind] for kind in kinds.kind[again].tolist())
    columns = ("worker", "weight", "time", "sampler", "seconds", "shown", "position")
    columns_of = {name: getattr(provenance, name) for name in columns}
    return decoded._replace(
        triplets=decoded.triplets[triplets],
        quadruplets=decoded.quadruplets[quadruplets],
        quadruplet_at=before[decoded.quadruplet_at[quadruplets]],
        events=dict(+events),
        filtered=decoded.filtered + int(again.sum()),
        kinds=kinds._replace(of_triplet=of_triplet, of_quadruplet=of_quadruplet, kind=kinds.kind[stays]),
        provenance=provenance._replace(
            of_triplet=of_triplet,
            of_quadruplet=of_quadruplet,
            kind=provenance.kind[stays],
            **{name: values[stays] if len(values) == len(stays) else values for name, values in columns_of.items()},
        ),
    )
