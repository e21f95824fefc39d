"""The picture of a fit: which of the two candidates is taken, what is said of it, and which neighbours it keeps."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from stream_engine.embedding import picture
from stream_engine.embedding.questions import of_rows
from tests.support.generators import planted_triplets

GROUPS = np.repeat(np.arange(20), 5)


def spread(d: int, seed: int = 0) -> np.ndarray:
    """100 points in 20 groups that lie in d dimensions."""
    rng = np.random.default_rng(seed)
    return 3 * rng.normal(size=(20, d))[GROUPS] + 0.6 * rng.normal(size=(100, d))


def asked(points: np.ndarray):
    return of_rows(planted_triplets(np.random.default_rng(1), points, 12000)[:, [0, 1, 0, 2]], len(points))


def test_in_the_plane_the_fit_is_kept():
    points = spread(2)
    made = picture.picture(points, asked(points), 0.1)
    assert made.by == picture.FIT and made.trustworthiness >= picture.MIN_FIT_TRUST
    assert made.trustworthiness == pytest.approx(trustworthiness(points, made.points, n_neighbors=10))


def test_in_many_dimensions_the_layout_keeps_the_neighbours():
    points = spread(10)
    made = picture.picture(points, asked(points), 0.1)
    assert made.by == picture.LAYOUT
    assert made.trustworthiness == pytest.approx(trustworthiness(points, made.points, n_neighbors=10))
    apart = ((made.points[:, None] - made.points) ** 2).sum(axis=2) + np.diag(np.full(100, np.inf))
    first_axes = ((points[:, None, :2] - points[:, :2]) ** 2).sum(axis=2) + np.diag(np.full(100, np.inf))
    near, near_on_axes = (GROUPS[np.argsort(d, axis=1)[:, :4]] == GROUPS[:, None] for d in (apart, first_axes))
    assert near.mean() > 0.95 > near_on_axes.mean()
    again = picture.picture(points, asked(points), 0.1)
    np.testing.assert_array_equal(made.points, again.points)


def test_few_objects_and_objects_without_answers():
    points = spread(5)
    few = picture.picture(points[:20], asked(points[:20]), 0.1)
    assert few.by == picture.FIT and few.trustworthiness is None
    rows = planted_triplets(np.random.default_rng(1), points, 12000)[:, [0, 1, 0, 2]]
    some = of_rows(rows, 102)  # nothing was asked about two of them
    made = picture.picture(np.concatenate([points, np.zeros((2, 5))]), some, 0.1)
    assert made.points.shape == (102, 2)
    assert not made.points[100:].any()
    assert np.isfinite(made.points).all()


def test_margins_say_which_pair_the_picture_has_nearer():
    rng = np.random.default_rng(2)
    points, rows = rng.normal(size=(9, 2)), rng.integers(0, 9, (200, 4))
    margins = picture.margins(points, rows)
    for (i, j, k, l), margin in zip(rows.tolist(), margins.tolist()):
        near, far = np.linalg.norm(points[i] - points[j]), np.linalg.norm(points[k] - points[l])
        assert np.sign(margin) == (0 if {i, j} == {k, l} else np.sign(far - near))
    assert len(picture.margins(points, rows[:0])) == 0


@pytest.mark.parametrize(("d", "n_fits"), [(2, 2), (10, 1)])
def test_of_many_questions_some_say_whether_all_are_fitted(d, n_fits, monkeypatch):
    points, sizes = spread(d), []
    questions = asked(points)
    whole = picture.picture(points, questions, 0.1)
    fit = picture.fit

    def counted(asked, *given, **more):
        sizes.append(len(asked.rows))
        return fit(asked, *given, **more)

    monkeypatch.setattr(picture, "fit", counted)
    monkeypatch.setattr(picture, "TRIED_QUESTIONS", len(questions.rows) // 3)
    monkeypatch.setattr(picture, "TRIED_MARGIN", 0.0)
    quick = picture.picture(points, questions, 0.1)
    assert sizes[0] == pytest.approx(len(questions.rows) / 3, abs=1)
    assert sizes[1:] == [len(questions.rows)] * (n_fits - 1)
    assert quick.by == whole.by and quick.trustworthiness == pytest.approx(whole.trustworthiness, abs=0.02)
