"""Warnings about the data that were read: rejected events, suspicious names, sets of objects without a connection."""

import warnings
from collections.abc import Sequence

from stream_engine.api.feeding import RejectedRow
from stream_engine.api.frames import BadFrame
from stream_engine.api.study_engine import StudyEngine
from stream_engine.data.suspicious_names import suspicious_names

MAX_REJECTED_SHARE = 0.5  # share of rejected events above which reading fails, as in a run


def check_refused(engine: StudyEngine, rejected_rows: Sequence[RejectedRow], on_refused: str) -> None:
    """Warn of rejected events. Raises `BadFrame` if they are more than half of all, or if `on_refused` is "raise"."""
    if not rejected_rows:  # labels, after answers of which some were rejected
        return
    n_rejected = sum(engine.counters["rejected"].values())
    total, first = engine.counters["events"] + n_rejected, rejected_rows[0]
    message = f"{n_rejected:,} of {total:,} events were rejected; the first, {first.where}: {first.message}"
    if on_refused == "raise" or n_rejected > MAX_REJECTED_SHARE * total:
        raise BadFrame(message)
    warnings.warn(f"{message}; Study.refused() lists them", stacklevel=3)


def check_names(engine: StudyEngine) -> None:
    """Warn of objects whose names differ only in capitals, spaces, invisible characters or Unicode form. O(n)."""
    if groups := suspicious_names(engine.names):
        examples = ", ".join(" and ".join(map(repr, group)) for group in groups[:3])
        warnings.warn(
            f"{len(groups):,} of {len(set(engine.names)):,} objects differ from others only in capitals, spaces, "
            f"invisible characters or Unicode form, such as {examples}; give them one name if they are the same object",
            stacklevel=3,
        )


def check_sets(engine: StudyEngine) -> None:
    """Warn of sets of objects that are not connected by comparisons: distances between them are arbitrary."""
    if len(sizes := engine.sets()) > 1:
        lengths = ", ".join(f"{size:,}" for size in sizes[:5]) + (", ..." if len(sizes) > 5 else "")
        warnings.warn(
            f"the objects fall into {len(sizes):,} sets that no comparison joins ({lengths} objects): distances "
            "between sets mean nothing; next: ask questions with objects of several sets",
            stacklevel=3,
        )
