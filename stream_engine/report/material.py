"""What the sections read: one published snapshot with its artifacts, and what several sections need of it."""

from typing import Any, NamedTuple

import numpy as np

from stream_engine.exports.object_places import EMBEDDING, Places
from stream_engine.exports.summary import summary_of
from stream_engine.report.places import maps
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.statistics.confidence import ObjectAnswers, answers_by_object
from stream_engine.statistics.hash_split import name_hashes

MOST = 5000  # objects that are drawn and listed; of more, those whose names have the smallest hashes


class Material(NamedTuple):
    """`shown` are the ids of the objects that are drawn and listed, in the order of ids."""

    published: Published
    summary: dict[str, Any]
    progressive: dict[str, Any]  # how predictions before learning went, as a run noted it; {}: not noted
    names: tuple[str, ...]
    shown: np.ndarray
    answers: ObjectAnswers
    cluster: np.ndarray  # (n,) int, -1: in none
    maps: tuple[Places, ...]  # where objects lie, by the embedding first, then by other similarities
    workers: bool  # whether anything may be said about single workers
    directory: str  # of the state, for commands that a person may type

    @property
    def snapshot(self) -> Snapshot:
        return self.published.snapshot

    @property
    def places(self) -> Places | None:
        """Where the embedding puts the objects."""
        return next((each for each in self.maps if each.name == EMBEDDING), None)

    def artifact(self, kind: str) -> Artifact | None:
        """The artifact of that kind, if there is one."""
        return self.published.artifacts.get(kind)

    @property
    def sampled(self) -> str:
        """A sentence about the objects that are not shown; empty where all are."""
        n = len(self.names)
        if len(self.shown) == n:
            return ""
        return f"{len(self.shown):,} of the {n:,} objects are shown, chosen by a hash of their names."


def material(
    published: Published, progressive: dict[str, Any] | None = None, workers: bool = False, directory: str = "DIR"
) -> Material:
    """What the page is made of. O(n + keys log keys)."""
    snapshot, names = published.snapshot, tuple(published.snapshot.objects)
    n = len(names)
    shown = np.arange(n)
    if n > MOST:
        shown = np.sort(np.argsort(name_hashes(names, 0), kind="stable")[:MOST])
    answers = answers_by_object(triplet_columns(snapshot), snapshot.section("quadruplet_counts") or None)
    cluster = np.full(n, -1)
    if (held := published.artifacts.get("sdp_clustering")) is not None:
        labels = held.arrays["labels"]
        cluster[: len(labels)] = labels
    return Material(
        published,
        summary_of(snapshot),
        progressive or {},
        names,
        shown,
        answers,
        cluster,
        tuple(maps(published, answers.answers == 0)),
        workers,
        directory,
    )
