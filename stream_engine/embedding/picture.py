"""A picture of a fit that has more than two dimensions: positions in the plane, made for looking at.

The first two of many axes are a poor picture: neighbours on them are seldom neighbours in the fit. There are two
candidates. A t-STE fit in two dimensions (van der Maaten & Weinberger 2012, whose heavy tails are meant for this),
started at the first two axes, keeps what can be kept of all comparisons. A neighbour layout (t-SNE, van der Maaten &
Hinton 2008) of the fit keeps who is near whom and gives up large distances. The fit is taken where it keeps the
neighbours too: where its trustworthiness (Venna & Kaski 2001) is at least `FAITHFUL`; else the more trustworthy one.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.embedding.fit import fit
from stream_engine.embedding.principal_axes import on_principal_axes
from stream_engine.embedding.questions import Questions, asked_about

FIT, LAYOUT = "two-dimensional fit (t-STE)", "neighbour layout (t-SNE)"
NEIGHBOURS = 10  # of trustworthiness
FAITHFUL = 0.95  # trustworthiness from which on the fit is as good a picture as a layout
FEWEST, MOST = 30, 3000  # objects that a layout is made of; of more it takes minutes
PERPLEXITY = 20.0


class Picture(NamedTuple):
    """`points` (n, 2), objects without answers at 0; `by`: FIT or LAYOUT; `trustworthiness` at k = 10, None of objects
    too few or too many for it."""

    points: np.ndarray
    by: str
    trustworthiness: float | None


def picture(points: np.ndarray, questions: Questions, ridge: float) -> Picture:
    """A picture of `points` (n, d). O(q) an iteration, and O(n^2) up to `MOST` objects."""
    seen = asked_about(questions)
    plane = fit(questions, 2, ridge, kernel="t-ste", start=points[:, :2]).points
    if not FEWEST <= int(seen.sum()) <= MOST:
        return Picture(plane, FIT, None)
    kept = _trustworthiness(points[seen], plane[seen])
    if kept >= FAITHFUL:
        return Picture(plane, FIT, kept)
    layout = np.zeros(plane.shape)
    layout[seen] = _layout(points[seen])
    nearer = _trustworthiness(points[seen], layout[seen])
    if nearer <= kept:
        return Picture(plane, FIT, kept)
    return Picture(on_principal_axes(layout, questions), LAYOUT, nearer)


def margins(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m,) how much nearer the near pair of each comparison `rows` (m, 4) is than the far one, in squared distances.

    >>> margins(np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]]), np.array([[0, 1, 0, 2], [2, 0, 2, 1]])).tolist()
    [8.0, -5.0]
    """
    near, far = (((points[rows[:, at]] - points[rows[:, at + 1]]) ** 2).sum(axis=1) for at in (0, 2))
    return far - near


def _trustworthiness(points: np.ndarray, shown: np.ndarray) -> float:
    from sklearn.manifold import trustworthiness

    return float(trustworthiness(points, shown, n_neighbors=min(NEIGHBOURS, (len(points) - 1) // 2)))


def _layout(points: np.ndarray) -> np.ndarray:
    """(k, 2), as widely spread as `points` on their first two axes."""
    from sklearn.manifold import TSNE

    spread = float(points[:, :2].std()) or 1.0
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    made = TSNE(2, perplexity=perplexity, init=1e-4 / spread * points[:, :2], random_state=0, n_jobs=1)
    found = np.asarray(made.fit_transform(points), float)
    return found * (spread / (float(found.std()) or 1.0))
