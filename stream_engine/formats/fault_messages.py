"""Error messages for events with readable fields: the contract's reasons, in one line each."""

from stream_engine.data.comparisons import MAX_NAME_BYTES, InvalidEvent
from stream_engine.formats.event_fields import (
    MOST_CENTRAL,
    ODD_ONE_OUT,
    PICK,
    QUADRUPLET,
    RANKING,
    TRIPLET,
    member_name,
)
from stream_engine.formats.field_values import quoted

FINE, EMPTY, TOO_LONG, SAME, SAME_PAIR, NOT_SHOWN, NONE_CHOSEN, ALL_CHOSEN = range(8)
_REASON = {
    EMPTY: "empty_name",
    TOO_LONG: "name_too_long",
    SAME: "not_distinct",
    SAME_PAIR: "not_distinct",
    NOT_SHOWN: "not_shown",
    NONE_CHOSEN: "nothing_chosen",
    ALL_CHOSEN: "everything_chosen",
}
_DISTINCT = {
    TRIPLET: "a triplet needs three distinct objects",
    ODD_ONE_OUT: "odd_one_out needs three distinct objects",
    MOST_CENTRAL: "most_central needs three distinct objects",
    PICK: "the anchor and the objects shown must be distinct, and each can be chosen only once",
    RANKING: "the anchor and the objects ranked must be distinct",
}


def explain(fault: int, kind: int, members: list[str], split: int, first: int, second: int) -> InvalidEvent:
    """The one-line reason of a fault; `split`, `first` and `second` count from the event's first member.

    >>> str(explain(SAME, TRIPLET, ["car-12", "car-12", "car-3"], 2, 0, 1))
    "anchor equals near ('car-12'); a triplet needs three distinct objects"
    """
    name, role = quoted(members[first]) if members else "", member_name(kind, split, first)
    if fault == EMPTY:
        message = f"{role} is empty; a name needs at least one character"
    elif fault == TOO_LONG:
        size = len(members[first].encode())
        message = f"{role} is a name of {size:,} bytes ({name}); the limit is {MAX_NAME_BYTES:,}"
    elif fault == SAME and kind == QUADRUPLET:
        message = f"{'near' if first < 2 else 'far'} holds {name} twice; a pair needs two distinct objects"
    elif fault == SAME:
        message = f"{role} equals {member_name(kind, split, second)} ({name}); {_DISTINCT[kind]}"
    elif fault == SAME_PAIR:
        message = f"near and far are the same pair ({name}, {quoted(members[second])}); two different pairs are needed"
    elif fault == NOT_SHOWN:
        message = (
            f"{role} ({name}) is not among the {'objects shown' if kind == PICK else 'objects'}"
            "; if answers are positions (1) or columns (left), use --answers-by position"
        )
    elif fault == NONE_CHOSEN:
        message = (
            "chosen is empty; a pick needs at least one chosen object"
            if kind == PICK
            else f"ranked holds {len(members) - 1} objects; a ranking needs at least two"
        )
    else:
        message = f"chosen holds all {split - 1} objects shown; at least one must not be chosen"
    return InvalidEvent(_REASON[fault], message)
