"""Answers in words, so that a person sees whether a file was read as it was meant."""

from collections.abc import Iterator

from stream_engine.data.comparisons import DecodedEvents

MOST_SHOWN = 2  # comparisons of one answer that are told


def answers(piece: DecodedEvents) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Who answered ("" where nobody is named) and the comparisons, by name, of each event of a block."""
    if piece.kinds is None:
        return
    of_event: dict[int, list[tuple[str, ...]]] = {}
    parts = ((piece.kinds.of_triplet, piece.triplets), (piece.kinds.of_quadruplet, piece.quadruplets))
    names, provenance = list(piece.names), piece.provenance
    for events, rows in parts:
        for event, row in zip(events.tolist(), rows.tolist(), strict=True):
            of_event.setdefault(event, []).append(tuple(names[i] for i in row))
    for event in sorted(of_event):
        number = -1 if provenance is None else int(provenance.worker[event])
        yield ("" if provenance is None or number < 0 else provenance.workers[number]), of_event[event]


def in_words(who: str, answer: list[tuple[str, ...]]) -> str:
    """An answer in words.

    >>> in_words("S07", [("lemon", "lime", "bread")]), in_words("", [("a", "b", "c", "d")])
    ('S07 said lemon is more like lime than like bread', 'a and b are more alike than c and d')
    """
    further = f"; and {len(answer) - MOST_SHOWN:,} more" if len(answer) > MOST_SHOWN else ""
    return (f"{who} said " if who else "") + "; ".join(map(_told, answer[:MOST_SHOWN])) + further


def _told(comparison: tuple[str, ...]) -> str:
    if len(comparison) == 3:
        anchor, near, far = comparison
        return f"{anchor} is more like {near} than like {far}"
    i, j, k, l = comparison
    return f"{i} and {j} are more alike than {k} and {l}"
