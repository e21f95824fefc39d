"""Would more answers help? What the section says of probabilities."""

import numpy as np
from scipy.special import expit

from stream_engine.report.sections import learning


def test_probabilities_of_the_curve_are_calibrated_on_other_folds():
    """An over-confident map, three times as sure as it may be, in folds of which one is all right."""
    rng = np.random.default_rng(4)
    sure = rng.exponential(1.0, (4, 3_000))
    margins = list(3.0 * np.where(rng.random(sure.shape) < expit(sure), sure, -sure))
    for raw, scaled in zip(margins, learning._calibrated(margins)):
        stated, came, n = learning._bins(expit(np.abs(scaled)), (scaled > 0).astype(float))
        assert n @ np.abs(stated - came) / n.sum() < 0.03 < expit(np.abs(raw)).mean() - (raw > 0).mean()
    always_right = [np.full(50, 1.0), *margins]
    first = learning._calibrated(always_right)[0]
    assert np.allclose(first, first[0]) and first[0] < 0.5, "its own answers do not calibrate a fold"
    assert np.array_equal(learning._calibrated(margins[:1])[0], margins[0])
