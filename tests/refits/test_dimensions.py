"""The refit `dimensions`: planted dimensions are found and called reproducible, figures are of what was held out, and
its export and its section of the report hold what the artifact says."""

import numpy as np
import pytest

from stream_engine import exports
from stream_engine.data.comparisons import Triplet
from stream_engine.embedding.odd_one_out import Responses
from stream_engine.embedding.sparse_fit import MAX_PASSES, PASSES, REPRODUCIBLE
from stream_engine.evaluation.learned import of_dimensions
from stream_engine.refits import CannotRefit, dimensions
from stream_engine.report import maker
from stream_engine.report.material import material
from stream_engine.state.artifact_checks import check_artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.support.odd_one_out_worlds import odd_one_out, planted, shares

TRUE = planted(3, n=40, d=4)
ROWS = odd_one_out(np.random.default_rng(4), TRUE, 20_000)


def snapshot_of(rows):
    engine = Engine(("triplet_counts",), guard=False)
    engine.objects.ids([f"o{number}" for number in range(40)])
    names = [[f"o{number}" for number in row] for row in rows.tolist()]
    engine.learn_many([Triplet(*each) for a, b, c in names for each in ((a, b, c), (b, a, c))])
    return engine.snapshot()


@pytest.fixture(scope="module")
def published():
    snapshot = snapshot_of(ROWS)
    artifact = dimensions.refit(snapshot, dimensions.Params(dimensions=12, fits=3), 0)
    return Published(snapshot, {"dimensions": artifact})


def test_planted_dimensions_are_found_and_reproducible(published):
    artifact = published.artifacts["dimensions"]
    arrays, report = artifact.arrays, artifact.report
    check_artifact(artifact, 40)
    r = np.corrcoef(TRUE.T, arrays["X"].T)[:4, 4:]
    assert (r.max(axis=1) > 0.9).all() and report["dimensions"] == arrays["X"].shape[1] <= 6
    best = r.argmax(axis=1)
    assert (arrays["reproducibility"][best] >= REPRODUCIBLE).all() and report["reproducible"] >= 4
    assert (arrays["importance"][best] > 4 * arrays["importance_error"][best]).all()
    assert report["odd_one_out"] == 1.0
    assert report["responses"] == 20_000
    assert report["triplet_accuracy"] is None
    assert report["sparsity"] in dimensions.SPARSITIES and len(report["tried"]) == len(dimensions.SPARSITIES)
    new = odd_one_out(np.random.default_rng(5), TRUE, 20_000)
    most = shares(TRUE, new).max(axis=1).mean()
    found = (shares(arrays["X"], new).argmax(axis=1) == 0).mean()
    assert found > most - 0.02
    assert report["odd_one_out_accuracy"] == pytest.approx(found, abs=4 * report["odd_one_out_standard_error"] + 0.01)
    error = np.abs(arrays["X"][:, best] - TRUE) / arrays["standard_error"][:, best]
    assert np.median(error) < 2.0


def test_what_is_held_out_is_neither_fitted_nor_selected_by(monkeypatch):
    """Turning the test set's responses round changes its figures and nothing else."""
    snapshot, kept = snapshot_of(ROWS[:3000]), dimensions.responses_of
    params = dimensions.Params(dimensions=6, fits=2)
    one = dimensions.refit(snapshot, params, 0)

    def turned(*given):
        made = kept(*given)
        test = made.draw < dimensions.HELD_OUT_SHARE
        return made._replace(rows=np.where(test[:, None], made.rows[:, [2, 1, 0]], made.rows))

    monkeypatch.setattr(dimensions, "responses_of", turned)
    other = dimensions.refit(snapshot, params, 0)
    assert np.array_equal(one.arrays["X"], other.arrays["X"]) and one.report["tried"] == other.report["tried"]
    assert one.report["odd_one_out_accuracy"] > other.report["odd_one_out_accuracy"] + 0.1


def test_importance_is_what_a_dimension_adds(published):
    arrays = published.artifacts["dimensions"].arrays
    held = dimensions.responses_of(
        dimensions.triplet_columns(published.snapshot), dimensions.name_hashes(published.snapshot.objects, 0)
    )
    held = held.of(held.draw < dimensions.HELD_OUT_SHARE)
    less = arrays["X"].copy()
    less[:, 0] = 0.0
    rows = held.rows
    lost = np.log(shares(arrays["X"], rows)[:, 0]) - np.log(shares(less, rows)[:, 0])
    assert arrays["importance"][0] == pytest.approx(np.average(lost, weights=held.times), rel=1e-4)


def test_figures_of_held_out_responses_are_those_of_the_likelihood(published):
    """Triplets with their anchor first, and odd-one-out responses, which are two comparisons each."""
    rng = np.random.default_rng(1)
    rows, three = np.array([rng.permutation(6)[:3] for _ in range(40)], np.int32), np.arange(40) % 3 > 0
    times, weights = rng.integers(1, 4, 40).astype(np.float32), rng.random((6, 2), np.float32)
    told = dimensions._figures(Responses(rows, three, times, np.zeros(40), 6), weights)
    s = np.exp(weights.astype(float) @ weights.T)
    ab, ac, bc = (s[rows[:, i], rows[:, j]] for i, j in ((0, 1), (0, 2), (1, 2)))
    own = np.where(three, ab / (ab + ac + bc), ab / (ab + ac))
    right = np.where(three, (ab > ac) & (ab > bc), ab > ac)
    assert told["held_out_responses"] == times.sum()
    for name, of in (("odd_one_out", three), ("triplet", ~three)):
        share = np.average(right[of], weights=times[of])
        assert told[f"{name}_accuracy"] == pytest.approx(share)
        assert told[f"{name}_log_loss"] == pytest.approx(np.average(-np.log(own[of]), weights=times[of]), rel=1e-5)
    triplet_standard_error = np.sqrt(((times * (right - share))[~three] ** 2).sum()) / times[~three].sum()
    assert told["triplet_standard_error"] == pytest.approx(triplet_standard_error)
    odd_one_out_log_loss, triplet_log_loss = (told[f"{name}_log_loss"] for name in ("odd_one_out", "triplet"))
    assert odd_one_out_log_loss != pytest.approx(triplet_log_loss, rel=0.01)
    pairs = np.append(ab / (ab + ac), (ab / (ab + bc))[three])
    again = np.append(times, times[three])
    assert told["held_out_comparisons"] == again.sum() != times.sum()
    assert told["log_loss"] == pytest.approx(np.average(-np.log(pairs), weights=again), rel=1e-5)
    report = published.artifacts["dimensions"].report
    best = min(report["fits"], key=lambda each: each["objective"])
    assert len(report["fits"]) == 3 and best["dimensions"] == report["dimensions"]
    assert PASSES <= report["passes"] < MAX_PASSES


def test_few_responses_and_none():
    few = dimensions.refit(snapshot_of(ROWS[:30]), dimensions.Params(fits=2), 0)
    assert few.report["odd_one_out_accuracy"] is None and few.report["chosen_by"].startswith("too few")
    with pytest.raises(CannotRefit, match="got 0 triplets"):
        dimensions.refit(Engine(("triplet_counts",), guard=False).snapshot(), dimensions.Params(), 0)


def test_the_export_and_the_report_say_what_was_found(published):
    quality = exports.contents("dimensions", published)["dimensions"].tables["dimension_quality"]
    arrays = published.artifacts["dimensions"].arrays
    first = published.snapshot.objects[int(arrays["X"][:, 0].argmax())]
    assert quality["objects"][0].split("; ")[0] == first and sum(quality["share"]) == pytest.approx(1.0)
    made = material(published)
    shown = maker("dimensions")(made)
    tables = {each.name: each for each in shown.tables}
    assert f"{arrays['X'].shape[1]} non-negative dimensions" in shown.says and "held-out odd-one-out" in shown.says
    objects = tables["dimension-objects"]
    assert objects.columns["object"][0] == first == made.names[objects.ids[0]]
    assert objects.columns["weight"][0] == pytest.approx(arrays["X"].max(axis=0)[0])
    assert maker("dimensions")(material(published._replace(artifacts={}))) is None


def test_probabilities_of_pairs_are_those_of_the_likelihood():
    """Of two pairs that share an object, whichever column has it; of others, and of objects never asked about, none."""
    weights, asked = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, 2.0], [1.0, 1.0]]), np.array([True, True, True, False])
    rows = np.array([[0, 1, 0, 2], [1, 0, 2, 0], [0, 2, 0, 1], [0, 1, 2, 3], [0, 1, 0, 3]], np.int32)
    p = of_dimensions(weights, asked)(rows)
    expected = np.exp(0.5) / (np.exp(0.5) + 1.0)
    np.testing.assert_allclose(p[:3], [expected, expected, 1 - expected])
    assert np.isnan(p[3:]).all()


def test_a_dimension_is_as_reproducible_as_in_the_fit_that_has_it_least(monkeypatch):
    found, fits = [], dimensions._fits

    def recorded(*given):
        for made in fits(*given):
            found.append(made)
            yield made

    monkeypatch.setattr(dimensions, "_fits", recorded)
    snapshot = snapshot_of(ROWS[:60])
    artifact = dimensions.refit(snapshot, dimensions.Params(dimensions=3, fits=3, sparsity=0.5), 0)
    best = min(found, key=lambda each: each.objective)
    there = artifact.arrays["asked"]
    each_fit = [
        dimensions.reproducibility(best.weights[there], other.weights[there]) for other in found if other is not best
    ]
    assert not np.allclose(*each_fit, atol=1e-3), "else the least is also the largest"
    assert artifact.arrays["reproducibility"].tolist() == [min(each) for each in zip(*each_fit)]


def test_importance_is_unknown_where_nothing_was_held_out():
    snapshot = snapshot_of(ROWS[:60])
    artifact = dimensions.refit(snapshot, dimensions.Params(dimensions=3, fits=2), 0)
    published = Published(snapshot, {"dimensions": artifact})
    assert artifact.report["held_out_responses"] == 0
    quality = exports.contents("dimensions", published)["dimensions"].tables["dimension_quality"]
    assert np.isnan(quality["importance"]).all() and np.isnan(quality["importance_error"]).all()
    columns = maker("dimensions")(material(published)).tables[0].columns
    assert np.isnan(columns["importance"]).all() and np.isnan(columns["standard error"]).all()


def test_the_error_of_an_importance_is_that_of_kinds_of_responses():
    """A kind that was given several times varies as a whole."""
    rng = np.random.default_rng(2)
    rows = np.array([rng.permutation(6)[:3] for _ in range(40)], np.int32)
    times, weights = rng.integers(1, 6, 40).astype(np.float32), rng.random((6, 2), np.float32)
    held = Responses(rows, np.ones(40, bool), times, np.zeros(40), 6)
    less = weights * [[1.0, 0.0]]
    lost = np.log(shares(weights, rows)[:, 0]) - np.log(shares(less.astype(np.float32), rows)[:, 0])
    mean = np.average(lost, weights=times)
    importance, error = dimensions.importances(held, weights)
    assert importance[1] == pytest.approx(mean, rel=1e-4)
    assert error[1] == pytest.approx(np.linalg.norm(times * (lost - mean)) / times.sum(), rel=1e-3)
