"""A decoder that fails, and a record that kills the process: put aside, counted, and their neighbours are as ever."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from connectors import Position, Record
from stream_engine.formats import json_events
from stream_engine.formats.arrow_events import Decoder as ArrowDecoder
from stream_engine.formats.csv_events import Decoder as CsvDecoder
from stream_engine.formats.options import EventOptions, UnreadableHeader
from stream_engine.input import decoding
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.in_flight import InFlight, Note
from stream_engine.input.record_units import unit_of
from stream_engine.state.engine import Engine
from tests.support.killed_runs import KILLED, killed
from tests.support.process import engine, jsonl, summary

EVENTS = [{"anchor": f"a{i}", "near": f"b{i}", "far": f"c{i % 7}"} for i in range(100)]
POISON = {"anchor": "poison", "near": "potion", "far": "c"}
REFUSED = {**POISON, "anchor": "potion"}  # of the same length, and refused by every decoder itself


class Failing:
    """A decoder that fails on every value in which `word` stands."""

    def __init__(self, decoder, error: Exception, word: bytes = b"poison"):
        self._decoder, self._error, self._word, self.calls = decoder, error, word, 0

    def _check(self, value) -> None:
        self.calls += 1
        if self._word in (value if isinstance(value, bytes) else repr(value.to_pylist()).encode()):
            raise self._error

    def __call__(self, value, header=b""):
        self._check(value)
        return self._decoder(value, header)

    def lines(self, value):
        self._check(value)
        return self._decoder.lines(value)

    def many(self, values):
        for value in values:
            self._check(value)
        return self._decoder.many(values)


def lines(events) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def csv_of(events) -> bytes:
    return b"".join(",".join(f'"{event[key]}\n"' for key in event).encode() + b"\n" for event in events)


def whole(value, **more) -> Record:
    size = value.num_rows if isinstance(value, pa.RecordBatch) else len(value)
    return Record(value, "f", 1000, 1000 + size, **more)


def records_with(events, kind: str) -> list[Record]:
    """The events as the records of a source: one block, or a message each."""
    if kind == "json":
        return [whole(lines(events))]
    if kind == "csv":
        return [whole(csv_of(events), format="csv", header=b"anchor,near,far\n")]
    if kind == "arrow":
        return [whole(pa.RecordBatch.from_pylist(events), format="arrow", unit="row")]
    values = [json.dumps(event).encode() for event in events]
    return [Record(value, f"t/{i % 2}", i // 2, i // 2 + 1, unit="message") for i, value in enumerate(values)]


def learned(events, kind: str, decoder=None, in_flight: InFlight | None = None):
    """An engine that has learned the events, and the dead letters."""
    reading, letters, state = RecordDecoder(EventOptions(provenance=True), None, in_flight), [], Engine()
    for record in (records := records_with(events, kind)):
        if decoder:
            reading._decoders[record.format] = decoder
    blocks = list(reading.blocks(records))
    assert sum(bool(block.positions()) for block in blocks) <= len(records)  # a position comes with all of its effect
    for block in blocks:
        state.learn(block.decoded, block.positions(), block.counts().total())
        letters += block.dead_letters
    return state, letters


DECODERS = {"json": json_events.Decoder, "csv": CsvDecoder, "arrow": ArrowDecoder, "messages": json_events.Decoder}


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("at", [[0], [50, 51], [3, 99]])
def test_only_the_event_that_a_decoder_fails_on_is_refused(kind, at):
    events = [dict(event) for event in EVENTS]
    events[70] = REFUSED
    for i in at:
        events[i] = POISON
    options = EventOptions(provenance=True)
    failing = Failing(DECODERS[kind](options), TypeError("no such\n  thing"))
    state, letters = learned(events, kind, failing)
    healthy, _ = learned([event for event in events if event not in (POISON, REFUSED)], kind)
    assert {letter.reason for letter in letters} == {"decoder_failed", "not_distinct"}
    assert [letter.message for letter in letters if letter.event_index != 70 and letter.reason == "decoder_failed"] == [
        "TypeError: no such thing"
    ] * len(at)
    assert state.counters["rejected"] == {"decoder_failed": len(at), "not_distinct": 1}
    assert state.counters["records"] == 100 and state.counters["events"] == 99 - len(at)
    assert state.objects.names == healthy.objects.names
    for name, array in healthy.arrays().items():
        assert (state.arrays()[name] == array).all(), name
    _, expected = learned([REFUSED if event == POISON else event for event in events], kind)
    assert [letter[:3] for letter in letters] == [letter[:3] for letter in expected]  # the same places
    assert all(b"poison" in letter.value for letter in letters if letter.reason == "decoder_failed")


@pytest.mark.parametrize(
    "error", [MemoryError("no"), pa.ArrowMemoryError("no"), OSError(12, "no"), UnreadableHeader("no")], ids=repr
)
@pytest.mark.parametrize("kind", ["json", "messages"])
def test_what_is_no_verdict_about_an_event_ends_the_run(error, kind):
    with pytest.raises(UnreadableHeader if isinstance(error, UnreadableHeader) else MemoryError):
        learned([*EVENTS, POISON], kind, Failing(json_events.Decoder(EventOptions()), error))


def test_a_decoder_that_always_fails_is_not_asked_for_every_line(monkeypatch):
    monkeypatch.setattr(decoding, "MAX_LOCATED_FAILURES", 4)
    failing = Failing(json_events.Decoder(EventOptions()), ValueError("x"), b"anchor")
    state, letters = learned(EVENTS, "json", failing)
    assert b"".join(letter.value for letter in letters) == lines(EVENTS) and failing.calls < 30
    assert state.counters["rejected"]["decoder_failed"] == len(letters) < 30


def test_a_record_is_refused_at_which_the_last_three_deaths_happened():
    def deaths(*flights: Note) -> Note:
        known = Note()
        for flight in flights:
            known = replace(known, ranges=flight.ranges, alone=flight.alone).after_death()
        return known

    wide, alone = Note({"f": (0, 90)}), Note({"f": (30, 31)}, True)
    assert not deaths(wide, alone).refused and deaths(wide, alone, alone).refused == [alone.ranges]
    assert deaths(alone, alone).deaths == 2 and not deaths(alone, alone).refused
    assert not deaths(wide, alone, Note({"f": (31, 32)}, True)).refused
    assert not deaths(wide, wide, wide).refused
    behind = deaths(wide, alone, alone, Note({"f": (31, 90)}))  # another record kills the process: the first stays
    assert behind.deaths == 1 and behind.refused == [alone.ranges]


def left_at_work(directory: Path, records: list[Record]) -> InFlight:
    """The note of the process after one that died at work on these."""
    note = InFlight(directory)
    note.begins(records, alone=False)
    note.close()
    return InFlight(directory)


def test_after_a_death_what_was_at_work_is_suspected_until_a_snapshot_is_past_it(tmp_path):
    record = whole(lines(EVENTS))
    again = left_at_work(tmp_path, [record])
    assert again.suspects(record)
    assert not again.suspects(record._replace(partition="g"))
    assert again.died_at
    again.close()
    assert InFlight(tmp_path).suspects_of_crash  # nothing was read meanwhile
    past = InFlight(tmp_path, {"f": Position(record.next_offset)})
    assert past.suspects_of_crash == []
    past.close()
    assert not (tmp_path / "in_flight").exists()


def test_nothing_is_noted_once_all_is_learned_or_the_run_has_failed(tmp_path):
    record = whole(lines(EVENTS))
    for ends in (lambda note: (note.finish_oldest(), note.finish_oldest()), lambda note: note.clear()):
        note = InFlight(tmp_path)
        note.begins([record], alone=False)
        note.begins([record._replace(offset=record.next_offset, next_offset=record.next_offset + 9)], alone=False)
        assert b"1000" in (tmp_path / "in_flight").read_bytes()
        ends(note)
        note.close()
        assert not (tmp_path / "in_flight").exists()


@pytest.mark.parametrize("kind", DECODERS)
def test_records_under_suspicion_are_learned_in_parts_as_if_they_were_whole(kind, tmp_path):
    events = [*EVENTS[:40], REFUSED, *EVENTS[40:], REFUSED]
    again = left_at_work(tmp_path, records_with(events, kind))
    assert again.suspects_of_crash
    (state, letters), (expected, same) = learned(events, kind, in_flight=again), learned(events, kind)
    assert letters == same and len(letters) == 2
    assert (state.counters, state.positions) == (expected.counters, expected.positions)
    for name, array in expected.arrays().items():
        assert (state.arrays()[name] == array).all(), name
    again.close()


def dies(directory: Path, record: Record, kills: Callable[[Record], bool]) -> list[Record]:
    """A process that dies at the first part of a record that kills it, unless it refuses it; what it refuses."""
    note, refused = InFlight(directory), []
    for part in unit_of(record).parts(record, 1) if note.suspects(record) else [record]:
        note.begins([part], alone=note.suspects(record))
        if note.is_rejected(part):
            refused.append(part)
        elif kills(part):
            break
        note.clear()
    note.close()
    return refused


def test_who_kills_a_healthy_process_again_and_again_accuses_nothing(tmp_path):
    record, chance = whole(lines(EVENTS * 10)), random.Random(5)
    for _ in range(40):
        moment = chance.randrange(record.offset, record.next_offset)
        assert not dies(tmp_path, record, lambda part, moment=moment: part.offset <= moment < part.next_offset)


def test_two_records_that_kill_are_both_found(tmp_path):
    """Three deaths each, though no snapshot lies between them."""
    record = whole(lines([*EVENTS, POISON, *EVENTS, POISON, *EVENTS]))
    refused = [dies(tmp_path, record, lambda part: b"poison" in part.value) for _ in range(8)]
    assert list(map(len, refused)) == [0, 0, 0, 1, 1, 1, 2, 2]
    assert [part.value for part in refused[-1]] == [lines([POISON])] * 2


# ---- in processes that really die


def test_a_line_that_kills_the_process_is_put_aside_after_three_deaths(tmp_path):
    state, events = tmp_path / "s", jsonl(tmp_path / "e.jsonl", [*EVENTS[:50], POISON, *EVENTS[50:]])
    run = ("run", events, "--state", state, "--no-refits")
    assert killed([-1] * 4, *run) == [KILLED] * 3 + [0]
    found = summary(state)
    assert found["rejected"] == {"process_died": 1}
    assert found["events"] == 100
    assert found["records"] == 101
    (letter,) = map(json.loads, (state / "dead_letters" / "000001.jsonl").read_text().splitlines())
    assert json.loads(letter["value"]) == POISON and (letter["offset"], letter["index"]) == (
        len(lines(EVENTS[:50])),
        50,
    )
    assert "3 times" in letter["message"]
    engine("run", jsonl(tmp_path / "healthy.jsonl", EVENTS), "--state", tmp_path / "h", "--no-refits")
    healthy = summary(tmp_path / "h")
    assert all(found[key] == healthy[key] for key in ("objects", "guard", "comparisons", "unique_triplets"))
    engine(*run)  # nothing is left to do, and the note of the deaths goes
    assert not (state / "in_flight").exists()
