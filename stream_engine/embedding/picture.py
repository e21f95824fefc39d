"""A picture of a fit that has more than two dimensions: positions in the plane, made for looking at.

The first two of many axes are a poor picture: neighbours on them are seldom neighbours in the fit. There are two
candidates. A t-STE fit in two dimensions (van der Maaten & Weinberger 2012, whose heavy tails are meant for this),
started at the first two axes, keeps what can be kept of all comparisons. A neighbour layout (t-SNE, van der Maaten &
Hinton 2008) of the fit keeps who is near whom and gives up large distances. The fit is taken where it keeps the
neighbours too: where its trustworthiness (Venna & Kaski 2001) is at least `MIN_FIT_TRUST`; else the more trustworthy
one.
"""

from typing import Any, NamedTuple

import numpy as np

from stream_engine.embedding.fit import fit
from stream_engine.embedding.gradient import PER_QUESTION
from stream_engine.embedding.neighbour_layout import neighbour_layout, squared_distances
from stream_engine.embedding.principal_axes import on_principal_axes
from stream_engine.embedding.questions import Questions, asked_about
from stream_engine.evaluation.connection import joined

FIT, LAYOUT = "two-dimensional fit (t-STE)", "neighbour layout (t-SNE)"
N_NEIGHBOURS = 10  # of trustworthiness
MIN_FIT_TRUST = 0.95  # trustworthiness from which on the fit is as good a picture as a layout
MIN_LAYOUT_OBJECTS, MAX_LAYOUT_OBJECTS = 30, 3000  # objects that a layout is made of; of more it takes minutes
PERPLEXITY = 20.0
TRIED_QUESTIONS = 300_000  # questions of which one in two or more are tried first, about so many
TRIED_MARGIN = 0.03  # of their fit's trustworthiness below `MIN_FIT_TRUST`, up to which all questions are fitted
GAP = 0.3  # of its width lies between a set of objects and the next, which was never compared with it


class Picture(NamedTuple):
    """`points` (n, 2), objects without answers at 0; `by`: FIT or LAYOUT; `trustworthiness` at k = 10, None of objects
    too few or too many for it."""

    points: np.ndarray
    by: str
    trustworthiness: float | None


def picture(points: np.ndarray, questions: Questions, ridge: float) -> Picture:
    """A picture of `points` (n, d). Sets of objects that were never compared with each other have a picture each, the
    largest set on the left; the trustworthiness is the smallest of them. O(q) an iteration, and O(n^2) up to
    `MAX_LAYOUT_OBJECTS` objects."""
    i, j, k, l = questions.rows.T
    member = joined(np.concatenate([i, i, i]), np.concatenate([j, k, l]), questions.n_objects)
    sets = [np.flatnonzero(member == number) for number in range(int(member.max(initial=0)) + 1)]
    if len(sets) == 1:
        return _connected_picture(points, questions, ridge)
    positions, edge, pictures = np.zeros((len(points), 2)), 0.0, []
    for ids in sets:
        new_id = np.full(len(points), -1)
        new_id[ids] = np.arange(len(ids))
        new_rows = new_id[questions.rows]
        within = (new_rows >= 0).all(axis=1)
        columns = {name: getattr(questions, name)[within] for name in ("near", "far", "worker")}
        own_questions = questions._replace(rows=new_rows[within].astype(np.int32), n_objects=len(ids), **columns)
        pictures.append(_connected_picture(on_principal_axes(points[ids], own_questions), own_questions, ridge))
        part = pictures[-1].points
        width = max(float(np.ptp(part[:, 0])), 1e-6)
        positions[ids] = part
        positions[ids, 0] += edge - part[:, 0].min()
        edge += (1.0 + GAP) * width
    trust = [each.trustworthiness for each in pictures if each.trustworthiness is not None]
    return Picture(positions, pictures[0].by, min(trust, default=None))


def _connected_picture(points: np.ndarray, questions: Questions, ridge: float) -> Picture:
    """The picture of objects that were all compared with each other."""
    has_answers = asked_about(questions)
    n_objects = int(has_answers.sum())
    if not MIN_LAYOUT_OBJECTS <= n_objects <= MAX_LAYOUT_OBJECTS:
        return Picture(_plane(questions, points, ridge), FIT, None)
    n_neighbours = min(N_NEIGHBOURS, (n_objects - 1) // 2)

    def trust_of(positions: np.ndarray) -> float:
        return trustworthiness(points[has_answers], positions[has_answers], n_neighbours)

    tried = _some_of(questions)
    plane = _plane(tried, points, ridge)
    fit_trust = trust_of(plane)
    if tried is not questions and fit_trust >= MIN_FIT_TRUST - TRIED_MARGIN:
        plane = _plane(questions, plane, ridge)
        fit_trust = trust_of(plane)
    if fit_trust >= MIN_FIT_TRUST:
        return Picture(plane, FIT, fit_trust)
    layout = np.zeros(plane.shape)
    layout[has_answers] = _layout(points[has_answers])
    layout_trust = trust_of(layout)
    if layout_trust <= fit_trust:
        return Picture(plane, FIT, fit_trust)
    return Picture(on_principal_axes(layout, questions), LAYOUT, layout_trust)


def _some_of(questions: Questions) -> Questions:
    """The questions; of many, some, whose fit says whether a fit to all may keep the neighbours."""
    every = len(questions.rows) // TRIED_QUESTIONS
    if every < 2:
        return questions
    some: dict[str, Any] = {name: np.ascontiguousarray(getattr(questions, name)[::every]) for name in PER_QUESTION}
    return questions._replace(**some)


def _plane(questions: Questions, start: np.ndarray, ridge: float) -> np.ndarray:
    """(n, 2) a fit from the first two axes of `start`."""
    return fit(questions, 2, ridge, kernel="t-ste", start=start[:, :2]).points


def margins(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m,) how much nearer the near pair of each comparison `rows` (m, 4) is than the far one, in squared distances.

    >>> margins(np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]]), np.array([[0, 1, 0, 2], [2, 0, 2, 1]])).tolist()
    [8.0, -5.0]
    """
    near, far = (((points[rows[:, at]] - points[rows[:, at + 1]]) ** 2).sum(axis=1) for at in (0, 2))
    return far - near


def trustworthiness(points: np.ndarray, positions: np.ndarray, neighbours: int) -> float:
    """How far neighbours in a picture are neighbours (Venna & Kaski 2001): 1 where all are. O(n^2 log n).

    >>> points = np.array([[0.0], [1.0], [2.5], [4.5]])
    >>> trustworthiness(points, points, 1), round(trustworthiness(points, points[[0, 2, 1, 3]], 1), 3)
    (1.0, 0.375)
    """
    n = len(points)
    distances, shown_distances = squared_distances(points), squared_distances(positions)
    np.fill_diagonal(distances, np.inf)
    np.fill_diagonal(shown_distances, np.inf)
    nearest = np.argpartition(shown_distances, neighbours, axis=1)[:, :neighbours]
    distance = np.take_along_axis(distances, nearest, axis=1)
    rank = np.stack([1 + (distances < column[:, None]).sum(axis=1) for column in distance.T])
    beyond = np.maximum(rank - neighbours, 0).sum()
    return 1.0 - float(beyond) * 2.0 / (n * neighbours * (2.0 * n - 3.0 * neighbours - 1.0))


def _layout(points: np.ndarray) -> np.ndarray:
    """(k, 2), as widely spread as `points` on their first two axes."""
    spread = float(points[:, :2].std()) or 1.0
    positions = neighbour_layout(points, min(PERPLEXITY, (len(points) - 1) / 3), 1e-4 / spread * points[:, :2])
    return positions * (spread / (float(positions.std()) or 1.0))
