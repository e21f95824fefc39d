"""How crowded borders are, and the elbow of the share within: the formulas, by loops."""

import numpy as np
import pytest

from stream_engine.clustering import borders


def by_loops(points, labels) -> tuple[float, float]:
    """Crowding and share within by the formulas of the module, one object and one border at a time."""
    numbers = sorted(set(labels.tolist()))
    centres = {a: points[labels == a].mean(axis=0) for a in numbers}
    density, inside = borders.CROWDING_PRIOR, 0
    for a in numbers:
        for b in numbers[: numbers.index(a)]:
            apart = ((centres[a] - centres[b]) ** 2).sum()
            third = [((centres[c] - centres[a]) ** 2).sum() + ((centres[c] - centres[b]) ** 2).sum() for c in numbers]
            if any(way < apart * (1 - 1e-9) for c, way in zip(numbers, third) if c not in (a, b)):
                continue
            inside += min((labels == a).sum(), (labels == b).sum())
            for x in points[(labels == a) | (labels == b)]:
                t = (((x - centres[a]) ** 2).sum() - ((x - centres[b]) ** 2).sum()) / (2 * apart)
                density += np.exp(-((t / borders.BORDER_WIDTH) ** 2)) / (borders.BORDER_WIDTH * np.sqrt(np.pi))
    whole = sum(((x - points.mean(axis=0)) ** 2).sum() for x in points)
    return density / inside, sum(((x - centres[a]) ** 2).sum() for x, a in zip(points, labels.tolist())) / whole


@pytest.mark.parametrize("seed", range(4))
def test_crowding_and_the_share_within_are_the_formulas(seed):
    points, ks = np.random.default_rng(seed).normal(size=(25, 1 + seed % 3)), (2, 3, 5)
    for k, cut in zip(ks, borders.cuts(points, ks), strict=True):
        assert sorted(set(cut.labels.tolist())) == list(range(k))
        assert (cut.crowding, cut.within_share) == pytest.approx(by_loops(points, cut.labels))
        centres = np.stack([points[cut.labels == a].mean(axis=0) for a in range(k)])
        nearest = ((points[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        assert (nearest == cut.labels).all()  # k-means is settled


def test_crowding_knows_no_scale_place_or_turn_and_equal_points_do_no_harm():
    rng = np.random.default_rng(5)
    points, turn = rng.normal(size=(40, 2)), np.linalg.qr(rng.normal(size=(2, 2)))[0]
    for one, other in zip(borders.cuts(points, (2, 4)), borders.cuts(7 * points @ turn + 3, (2, 4))):
        assert (one.crowding, one.within_share) == pytest.approx((other.crowding, other.within_share))
    for points in (np.repeat(np.eye(2), 5, axis=0), np.zeros((10, 2))):
        assert np.isfinite(borders.features(borders.cuts(points, (2, 3, 4)))).all()


def test_features_are_log_crowding_and_the_elbow_of_the_share_within():
    made = borders.cuts(np.random.default_rng(2).normal(size=(30, 2)), (2, 3, 4, 5))
    w = [1.0, *(cut.within_share for cut in made)]
    by_hand = [(made[k - 2].crowding, w[k - 1] / np.sqrt(w[k - 2] * w[k])) for k in (2, 3, 4)]
    assert np.exp(borders.features(made)) == pytest.approx(np.array(by_hand), rel=1e-3)


def test_an_object_by_itself_is_a_group_only_if_it_lies_far_away():
    grid = 10 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [2, 1]])
    points = np.repeat(grid, 3, axis=0) + 2.6 * np.random.default_rng(46).normal(size=(18, 2))
    assert np.bincount(borders.cuts(points, (6,))[0].labels).tolist() == [3] * 6  # the tree has 5, 3, 1, 3, 3, 3
    points[0] = [-200, 0]
    assert np.bincount(borders.cuts(points, (6,))[0].labels).min() == 1
