"""What the sections read: one published snapshot with its artifacts, and what several sections need of it.

Where objects lie: by the embedding, and by other similarities to stand beside it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stream_engine.counts import kernels
from stream_engine.counts.confidence import ObjectAnswers, answers_by_object
from stream_engine.data.symmetric_matrices import dense_matrix
from stream_engine.evaluation.connection import members
from stream_engine.evaluation.coordinates import kernel_pca
from stream_engine.evaluation.hash_split import name_hashes
from stream_engine.exports.clusters import grouping
from stream_engine.exports.object_places import (
    EMBEDDING,
    PICTURE,
    ObjectCoordinates,
    by_size,
    of_embedding,
    of_picture,
    of_supported,
)
from stream_engine.report.findings import Findings, findings
from stream_engine.report.findings.facts import DEFAULT_COMMANDS, Commands, Facts
from stream_engine.report.object_files import labels_of
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, triplet_columns

MAX_KERNEL_OBJECTS = 1000  # objects
AXES = 3


def maps(published: Published, unasked: np.ndarray) -> Iterator[ObjectCoordinates]:
    """All maps, the picture of the embedding and its axes first; an object that is `unasked` (n,) is on no other."""
    n = len(published.snapshot.objects)
    for make in (of_picture, of_embedding, of_supported):
        if (coordinates := make(published, n)) is not None:
            yield coordinates
    for name, similarity in _kernels(published, n):
        points = kernel_pca(similarity, AXES).points
        points = points[:, points.any(axis=0)]
        if points.shape[1] >= 2:
            points[unasked] = np.nan
            yield ObjectCoordinates(f"{name} (kernel PCA)", points, None)


def _kernels(published: Published, n: int) -> Iterator[tuple[str, np.ndarray]]:
    """Similarities whose kernel PCA the papers draw."""
    adds = published.snapshot.section("adds3")
    if not 3 <= n <= MAX_KERNEL_OBJECTS or not adds or not len(adds["w"]):
        return
    yield "AddS-3", dense_matrix(adds["i"], adds["j"], adds["w"], n)
    columns = triplet_columns(published.snapshot)
    if len(columns.anchor):
        yield "k1", kernels.k1(columns)


MAX_SHOWN_OBJECTS = 5000  # objects that are drawn and listed; of more, those whose names have the smallest hashes


class Material(NamedTuple):
    """`shown` are the ids of the objects that are drawn and listed, in the order of ids."""

    published: Published
    facts: Facts
    findings: Findings
    progressive: dict[str, Any]  # how predictions before learning went, as a run noted it; {}: not noted
    names: tuple[str, ...]  # labels of the objects: their names, without the suffix of pictures
    shown: np.ndarray
    answers: ObjectAnswers
    cluster: np.ndarray  # (n,) int, 0 the largest, which texts call 1; -1: in none, or not known
    maps: tuple[ObjectCoordinates, ...]  # where objects lie, by the embedding first, then by other similarities
    by_object: bool  # whether `answers` has all answers: those of four objects are not always kept by object
    workers: bool  # whether anything may be said about single workers

    @property
    def summary(self) -> dict[str, Any]:
        """The figures of the snapshot, by the contract's names."""
        return self.facts.summary

    @property
    def snapshot(self) -> Snapshot:
        return self.published.snapshot

    @property
    def places(self) -> ObjectCoordinates | None:
        """Where the embedding puts the objects."""
        return next((coordinates for coordinates in self.maps if coordinates.name == EMBEDDING), None)

    @property
    def drawn_map(self) -> ObjectCoordinates | None:
        """The map that is drawn: the picture of the embedding, or the embedding where it has at most two dimensions."""
        return next((coordinates for coordinates in self.maps if coordinates.name == PICTURE), self.places)

    def sets_of(self, ids: np.ndarray) -> list[np.ndarray]:
        """The objects `ids` by the set of objects that were compared with each other, the largest set first."""
        return members(self.facts.sets, ids)

    def artifact(self, kind: str) -> Artifact | None:
        return self.published.artifacts.get(kind)

    @property
    def sampled(self) -> str:
        """A sentence about the objects that are not shown; empty where all are."""
        n = len(self.names)
        if len(self.shown) == n:
            return ""
        return f"{len(self.shown):,} of the {n:,} objects are shown, chosen by a hash of their names."


def material(
    published: Published,
    progressive: dict[str, Any] | None = None,
    workers: bool = False,
    commands: Commands = DEFAULT_COMMANDS,
) -> Material:
    """What the page is made of. O(n + keys log keys)."""
    snapshot, names = published.snapshot, labels_of(published.snapshot.objects)
    n = len(names)
    shown = np.arange(n)
    if n > MAX_SHOWN_OBJECTS:
        shown = np.sort(np.argsort(name_hashes(names, 0), kind="stable")[:MAX_SHOWN_OBJECTS])
    cluster, facts = np.full(n, -1), Facts(published, commands)
    answers = answers_by_object(triplet_columns(snapshot), snapshot.section("quadruplet_counts") or None)
    if by_object := facts.comparisons_by_object is not None:
        answers = answers._replace(answers=facts.comparisons_by_object)
    if (partition := grouping(published.artifacts)) is not None and facts.positions_comparable:
        labels = partition.arrays["labels"]
        cluster[: len(labels)] = by_size(labels)
        cluster[facts.too_few & np.isin(cluster, cluster[~facts.too_few])] = -1  # a group keeps its only members
    return Material(
        published,
        facts,
        findings(facts),
        progressive or {},
        names,
        shown,
        answers,
        cluster,
        tuple(maps(published, answers.answers == 0)),
        by_object,
        workers,
    )
