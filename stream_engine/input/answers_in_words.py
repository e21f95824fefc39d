"""Answers in words, so that a person sees whether a file was read as intended."""

from collections.abc import Iterator

from stream_engine.data.comparisons import DecodedEvents


def answers(block: DecodedEvents) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """The participant ("" if there is none) and the comparisons, by name, of each event of a block."""
    if block.kinds is None:
        return
    of_event: dict[int, list[tuple[str, ...]]] = {}
    rows_of_types = ((block.kinds.of_triplet, block.triplets), (block.kinds.of_quadruplet, block.quadruplets))
    names, provenance = list(block.names), block.provenance
    for events, rows in rows_of_types:
        for event, row in zip(events.tolist(), rows.tolist(), strict=True):
            of_event.setdefault(event, []).append(tuple(names[i] for i in row))
    for event in sorted(of_event):
        worker_number = -1 if provenance is None else int(provenance.worker[event])
        yield ("" if provenance is None or worker_number < 0 else provenance.workers[worker_number]), of_event[event]


MAX_COMPARISONS = 2  # of one answer


def in_words(participant: str, answer: list[tuple[str, ...]]) -> str:
    """An answer in words.

    >>> in_words("S07", [("lemon", "lime", "bread")]), in_words("", [("a", "b", "c", "d")])
    ('S07 said lemon is more like lime than like bread', 'a and b are more alike than c and d')
    >>> in_words("0", [("2", "0", "1")])  # objects may be numbers, too
    'participant 0 said 2 is more like 0 than like 1'
    >>> in_words("", [("a", "b", "c"), ("a", "b", "d"), ("a", "c", "d")])
    'a is more like b than like c; a is more like b than like d; and 1 more'
    """
    who = participant if any(map(str.isalpha, participant)) else f"participant {participant}"
    further = f"; and {len(answer) - MAX_COMPARISONS:,} more" if len(answer) > MAX_COMPARISONS else ""
    return (
        (f"{who} said " if participant else "")
        + "; ".join(map(_comparison_in_words, answer[:MAX_COMPARISONS]))
        + further
    )


def _comparison_in_words(comparison: tuple[str, ...]) -> str:
    if len(comparison) == 3:
        anchor, near, far = comparison
        return f"{anchor} is more like {near} than like {far}"
    i, j, k, l = comparison
    return f"{i} and {j} are more alike than {k} and {l}"
