"""The laws of formats: a decoder's results depend on the value alone, and one bad event harms no other."""

from collections.abc import Callable, Sequence
from typing import Any

from stream_engine.data.comparisons import REASONS, DecodedEvents, Quadruplet, Triplet
from stream_engine.formats import Decoder
from stream_engine.formats.options import EventOptions

PLAIN = EventOptions()
Make = Callable[[EventOptions], Decoder]


def check_format(
    make: Make,
    accepts: Sequence[tuple[Any, list[Triplet | Quadruplet]]],
    rejects: Sequence[tuple[Any, str]],
    header: bytes = b"",
    options: EventOptions = PLAIN,
) -> None:
    """Check that a decoder reads examples as it should, and keeps the laws of decoders on them.

    Parameters
    ----------
    make : callable
        `make(options)` gives a decoder that has seen nothing: the class `Decoder` of a format.
    accepts : sequence of (value, comparisons)
        Values, and the comparisons that they hold, in order.
    rejects : sequence of (value, reason)
        Values that hold one event each, which is refused with this key of `REASONS`.
    header : bytes
        The header that belongs to each value.
    options : EventOptions
        How events are read.

    Raises
    ------
    AssertionError
        With the value and the law that it broke.

    Examples
    --------
    >>> from stream_engine.formats.json_events import Decoder
    >>> abc = b'{"anchor": "a", "near": "b", "far": "c"}'
    >>> check_format(Decoder, [(abc, [Triplet("a", "b", "c")])], [(b"{", "not_parseable")])
    """
    assert accepts and rejects, "give examples of both, of values that are accepted and of some that are refused"
    for provenance in (False, True):
        asked = options._replace(provenance=provenance)
        for value, expected in accepts:
            done = make(asked)(value, header)
            assert comparisons(done) == expected, f"{value!r}: got {comparisons(done)}, expected {expected}"
            assert not done.rejected, f"{value!r}: refused: {done.rejected}"
            assert (done.provenance is not None) == provenance, f"{value!r}: provenance is given where it is asked for"
        for value, reason in rejects:
            _check_refused(make(asked)(value, header), value, reason)
    values = [*(value for value, _ in accepts), *(value for value, _ in rejects)]
    seasoned = make(options)
    for value in [*values, *reversed(values)]:
        alone = make(options)(value, header)
        assert _told(seasoned(value, header)) == _told(alone), f"{value!r}: depends on what was decoded before"
    if not header:
        _check_many(make, options, values)


def _check_refused(done: DecodedEvents, value: Any, reason: str) -> None:
    assert not comparisons(done) and not done.names and not done.events, f"{value!r}: refused and counted"
    assert [each.reason for each in done.rejected] == [reason], f"{value!r}: got {done.rejected}, expected {reason}"
    message = done.rejected[0].message
    assert reason in REASONS and "\n" not in message and 0 < len(message) < 300, f"{value!r}: {message!r}"


def _check_many(make: Make, options: EventOptions, values: list[Any]) -> None:
    """Values decoded together give what they give one by one, refusals between the others included."""
    together, rest, refused_in, decode = [], [*values, *reversed(values)], [], make(options)
    singly = [make(options)(value) for value in rest]
    at = 0
    while at < len(rest):
        done, of_value = decode.many(rest[at:])
        together += comparisons(done)
        refused_in += [at + each for each in of_value]
        taken = len(rest) - at if done.values is None else done.values
        assert taken >= 1, "many: decoded no value at all"
        at += taken
    assert together == [each for done in singly for each in comparisons(done)], (
        "many: other comparisons than one by one"
    )
    assert refused_in == [n for n, done in enumerate(singly) for _ in done.rejected], "many: other refusals"


def _told(done: DecodedEvents) -> tuple:
    return comparisons(done), done.labels, [(each.reason, each.message) for each in done.rejected], dict(done.events)


def comparisons(done: DecodedEvents) -> list[Triplet | Quadruplet]:
    """What a block holds, in order."""
    names = done.names
    found: list[Triplet | Quadruplet] = [Triplet(*(names[i] for i in row)) for row in done.triplets.tolist()]
    for place, (i, j, k, l) in reversed(list(zip(done.quadruplet_at.tolist(), done.quadruplets.tolist()))):
        found.insert(place, Quadruplet((names[i], names[j]), (names[k], names[l])))
    return found
