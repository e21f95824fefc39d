"""Participants who are excluded from what is fitted and reported, reversibly: the state keeps all their answers.

    DIR/excluded.json ──▶ `Store.with_artifacts` ──▶ a snapshot without them, for refits, reports, predictions, exports

The snapshot without somebody is that of `forgetting`, exact or not at all, under the number and digest of the whole
one. An artifact says in its report who was excluded when it was fitted, and what it changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from stream_engine.counts.removal import CannotForget
from stream_engine.state.artifact import Artifact, figure
from stream_engine.state.forgetting import forget_worker, workers_of
from stream_engine.state.snapshot import Snapshot

NOTE = "excluded"  # DIR/excluded.json
FIELD = "excluded"  # of an artifact's report
MAX_LISTED = 10  # participants that a message names
_remembered: dict[tuple[str, tuple[str, ...]], Snapshot] = {}


class BadExclusion(ValueError):
    """What is to be excluded or included cannot be; one line: option, what, got, expected."""


def participants_in(texts: Iterable[str], option: str = "--exclude") -> list[str]:
    """The names in `participant=NAME` and `participant=@FILE` (one name a line). Raises `BadExclusion`.

    >>> participants_in(["participant=S07", "participant=S09"])
    ['S07', 'S09']
    """
    names: list[str] = []
    for text in texts:
        field, equals, value = text.partition("=")
        if field not in ("participant", "worker") or not equals or not value:
            raise BadExclusion(f"{option}: got {text!r}, expected participant=NAME or participant=@FILE")
        if not value.startswith("@"):
            names.append(value)
            continue
        try:
            lines = Path(value[1:]).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadExclusion(f"{option}: {value[1:]}: {getattr(error, 'strerror', None) or error}") from None
        names += [line.strip() for line in lines if line.strip()]
    return names


def check_known(names: Iterable[str], snapshot: Snapshot, option: str = "--exclude") -> None:
    """Raises `BadExclusion` for a participant who is not in the data, with the nearest names."""
    participants = workers_of(snapshot)
    for name in names:
        if name in participants:
            continue
        near = get_close_matches(name, participants, 3, 0.5)
        expected = f"did you mean {', '.join(near)}?" if near else f"{len(participants):,} participants are named"
        raise BadExclusion(f"{option}: there is no participant {name!r}; {expected}")


def check_some_remain(snapshot: Snapshot, names: Iterable[str], option: str = "--exclude") -> None:
    """Raises `BadExclusion` where all answers are those of these participants, and `CannotForget` as `without` does."""
    names = sorted(names)
    if snapshot.counters["comparisons"] and not without(snapshot, names).counters["comparisons"]:
        raise BadExclusion(f"{option}: {nothing_left(names)}")


def nothing_left(names: Sequence[str]) -> str:
    """What to say where everybody is excluded."""
    named = ", ".join(names[:MAX_LISTED]) + (f" and {len(names) - MAX_LISTED:,} more" * (len(names) > MAX_LISTED))
    return (
        f"every answer is excluded, since all participants who answered are ({named}); next: exclude fewer, or include "
        "some again (--include participant=NAME)"
    )


def without(snapshot: Snapshot, names: Sequence[str]) -> Snapshot:
    """The snapshot without the answers of these participants; those that it does not name do not matter. Raises
    `CannotForget` where a statistic cannot be told apart by participant. O(names * keys); the last one is remembered.
    """
    participants = workers_of(snapshot) if names else set()
    excluded = tuple(sorted(participants & set(names)))
    if not excluded:
        return snapshot
    key = snapshot.digest, excluded
    fewer = _remembered.get(key) if snapshot.digest else None
    if fewer is None:
        fewer = snapshot
        try:
            for name in excluded:
                if (forgotten := forget_worker(fewer, name)).answers_stay:
                    raise CannotForget("the state does not say who answered (worker_votes does)")
                fewer = forgotten.snapshot
        except CannotForget as error:
            why = str(error).partition(". Nothing was deleted")[0]
            raise CannotForget(f"{', '.join(excluded)}: cannot be excluded, since {why}") from None
        fewer = fewer._replace(sequence=snapshot.sequence, digest=snapshot.digest)
        _remembered.clear()
        _remembered[key] = fewer
    return fewer


def excluded_of(artifact: Artifact) -> tuple[str, ...]:
    """Who was excluded when it was fitted."""
    note = artifact.report.get(FIELD)
    names = note.get("participants") if isinstance(note, Mapping) else None
    return tuple(map(str, names)) if isinstance(names, list) else ()


def with_exclusions(artifact: Artifact, names: Sequence[str], previous: Artifact | None) -> Artifact:
    """The artifact, whose report says who was excluded, and what differs from the `previous` one with others."""
    if not names and (previous is None or not excluded_of(previous)):
        return artifact
    note: dict[str, Any] = {"participants": sorted(names)}
    if previous is not None and excluded_of(previous) == tuple(sorted(names)):
        before = previous.report.get(FIELD)
        note["before"] = before.get("before") if isinstance(before, Mapping) else None
    elif previous is not None:
        former = {"participants": list(excluded_of(previous))}
        note["before"] = {**former, **_figures(previous), **_alike(artifact, previous)}
    return artifact._replace(report={**artifact.report, FIELD: note})


def _figures(artifact: Artifact) -> dict[str, Any]:
    names = ("accuracy", "standard_error", "d", "k")
    figures = {name: value for name in names if (value := figure(artifact.report, name)) is not None}
    return figures | ({"grade": str(artifact.report["grade"])} if "grade" in artifact.report else {})


def _alike(artifact: Artifact, previous: Artifact) -> dict[str, float]:
    """How much the map and the clusters of two artifacts agree: the correlation of all distances, and the adjusted Rand
    index."""
    points, former_points = (np.asarray(fit.arrays.get("X", np.empty((0, 1)))) for fit in (artifact, previous))
    n = min(len(points), len(former_points), 1000)
    if n >= 3:
        from scipy.spatial.distance import pdist

        r = float(np.corrcoef(pdist(points[:n]), pdist(former_points[:n]))[0, 1])
        return {"distance_correlation": r} if np.isfinite(r) else {}
    if "labels" in artifact.arrays and len(artifact.arrays["labels"]) == len(previous.arrays.get("labels", ())):
        from sklearn.metrics import adjusted_rand_score

        return {"ari": float(adjusted_rand_score(previous.arrays["labels"], artifact.arrays["labels"]))}
    return {}
