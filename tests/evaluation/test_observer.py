"""Test, then train: totals equal a plain count, figures equal river's metrics, every predictor equals its definition, a
change is noticed, a stationary stream stays quiet."""

import math

import numpy as np
import pytest
from river import metrics

from stream_engine import evaluation
from stream_engine.counts import kernels
from stream_engine.data.comparisons import DecodedEvents
from stream_engine.evaluation import PREDICTORS, predictor
from stream_engine.evaluation.drift import Worsening
from stream_engine.evaluation.observer import MAX_BATCH, Observer, signals
from stream_engine.evaluation.platt import Calibration
from stream_engine.evaluation.running_scores import BINS, KINDS, Scores, figures, table
from stream_engine.evaluation.stream_sample import SAMPLED_ONE_IN
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns
from tests.support.generators import as_batch, decoded, dense_batch, planted_triplets
from tests.support.planted_similarities import adds3, adds4


def test_totals_equal_a_plain_count():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(8, 2))
    engine, learned = Engine(), planted_triplets(rng, points, 200, 0.2)
    engine.learn(decoded(learned, 8))
    snapshot, observer, totals = engine.snapshot(), Observer(), {}
    fresh = planted_triplets(rng, np.vstack([points, rng.normal(size=(1, 2))]), 300)
    observer.observe(as_batch(fresh, 9), totals)
    assert totals == {}
    observer.serve(snapshot)
    observer.observe(as_batch(fresh, 9), totals)
    w, id_of = adds3(learned, 8), {name: int(name) for name in snapshot.objects}
    w = w[np.ix_(list(id_of.values()), list(id_of.values()))]
    margins = [w[a, b] - w[a, c] for a, b, c in fresh.tolist() if max(a, b, c) < 8]
    assert totals == {
        "adds3": {
            "tested": len(margins),
            "correct": sum(m > 0 for m in margins),
            "undecided": sum(m == 0 for m in margins),
        }
    }
    assert 0 < totals["adds3"]["undecided"] < totals["adds3"]["tested"] < 300
    everything = figures_of(observer)["adds3"]["all"]["total"]  # all of them are in the sample
    assert observer.sampled == 300 and everything["tested"] == len(margins)


def figures_of(observer):
    observer.test()  # what was drawn
    return observer.figures()["predictors"]


@pytest.fixture(scope="module")
def world():
    """A dense little world with repeats, contradictions and quadruplets, and artifacts of it."""
    rng = np.random.default_rng(3)
    engine = Engine(("adds3", "adds4", "triplet_counts"))
    batch = dense_batch(rng, 6, 400)
    names = [str(i) for i in range(6)]
    engine.learn(DecodedEvents(names, batch.triplets, batch.quadruplets, batch.quadruplet_at, [], {}, []))
    x = rng.normal(size=(6, 3))
    made = {
        "sdp_clustering": Artifact(
            "sdp_clustering", "", 1, {}, 0, {"labels": np.array([0, 0, 1, 1, 1, -1], np.int32)}, {}
        ),
        "kernel_learning": Artifact("kernel_learning", "", 1, {}, 0, {"K": x @ x.T}, {}),
        "partial_order_embedding": Artifact("partial_order_embedding", "", 1, {}, 0, {"K": x[:, :2] @ x[:, :2].T}, {}),
        "embedding": Artifact(
            "embedding",
            "",
            1,
            {},
            0,
            {"X": x, "asked": np.arange(6) < 5, "lapse": np.array(0.2)},
            {"alpha": 0.0, "scale": 1.5},
        ),
    }
    return Published(engine.snapshot(), made), batch, x


def expected_margins(name, world, rows):
    """Each predictor straight from its definition."""
    published, batch, x = world
    n = 6
    w = adds3(batch.triplets, n)
    four = w + adds4(batch.quadruplets, n)
    labels = published.artifacts["sdp_clustering"].arrays["labels"]
    columns = triplet_columns(published.snapshot)
    said = [tuple(t) for t in batch.triplets.tolist()]
    k1, k2 = kernels.k1(columns), kernels.k2(columns)
    for i, j, k, l in rows.tolist():
        three = i == k
        if max(i, j, k, l) >= n:
            yield math.nan
        elif name == "adds3":
            yield w[i, j] - w[k, l] if three else math.nan
        elif name == "adds4":
            yield math.nan if three else four[i, j] - four[k, l]
        elif name in ("k1", "k2"):
            of = {"k1": k1, "k2": k2}[name]
            yield of[i, j] - of[k, l]
        elif name == "sdp_clustering":
            known = (labels[[i, j, k, l]] >= 0).all()
            yield float(labels[i] == labels[j]) - float(labels[k] == labels[l]) if known else math.nan
        elif name == "repeats":
            near, far = said.count((i, j, l)), said.count((i, l, j))
            yield math.log((near + 1) / (far + 1)) if three and near + far else math.nan
        elif name == "embedding":
            delta = ((x[k] - x[l]) ** 2).sum() - ((x[i] - x[j]) ** 2).sum()
            p = 0.1 + 0.8 / (1 + math.exp(-1.5 * delta))
            yield math.log(p / (1 - p)) if max(i, j, k, l) < 5 else math.nan
        else:
            at = x if name == "kernel_learning" else x[:, :2]
            yield ((at[k] - at[l]) ** 2).sum() - ((at[i] - at[j]) ** 2).sum()


@pytest.mark.parametrize("name", PREDICTORS)
def test_every_predictor_equals_its_definition(name, world):
    rng = np.random.default_rng(4)
    rows = np.array(
        [
            (a, b, a, c) if rng.random() < 0.6 else (a, b, c, d)
            for a, b, c, d in (rng.permutation(7)[:4] for _ in range(300))
        ],
        np.int32,
    )
    made = predictor(name, world[0])
    np.testing.assert_allclose(made.margins(rows), list(expected_margins(name, world, rows)), atol=1e-9)
    turned = made.margins(rows[:, [2, 3, 0, 1]])
    np.testing.assert_allclose(turned, -made.margins(rows), atol=1e-9)
    assert made.scale > 0
    assert predictor(name, Published(Engine(()).snapshot(), {})) is None


@pytest.mark.parametrize(
    ("labels", "there"), [([0, 0, 1], True), ([0, -1, -1], True), ([-1, -1, -1], False), ([0, 1], False)]
)
def test_clusters_foretell_something_where_there_are_any(world, labels, there):
    made = Artifact("sdp_clustering", "", 1, {}, 0, {"labels": np.array(labels, np.int32)}, {})
    found = predictor("sdp_clustering", Published(world[0].snapshot, {"sdp_clustering": made}))
    assert (found is not None) == there


def test_an_artifact_newer_than_the_state_predicts_nothing(world):
    """After a damaged snapshot the comparisons that such an artifact has seen are read again."""
    published, _, _ = world
    newer = {kind: made._replace(sequence=2) for kind, made in published.artifacts.items()}
    assert all(predictor(kind, Published(published.snapshot, newer)) is None for kind in newer)


def test_figures_equal_river_metrics():
    rng = np.random.default_rng(0)
    margin = rng.normal(0.5, 1, 3000)
    margin[:200] = 0.0
    probability = 1 / (1 + np.exp(-1.3 * margin))
    kind = rng.integers(len(KINDS), size=3000)
    scores = Scores()
    for part in np.array_split(np.arange(3000), 7):
        scores.add(table(margin[part], probability[part], kind[part]))
    for name in ("all", *KINDS):
        mine = np.ones(3000, bool) if name == "all" else kind == KINDS.index(name)
        accuracy, loss = metrics.Accuracy(), metrics.LogLoss()
        for m, p in zip(margin[mine].tolist(), probability[mine].tolist()):
            loss.update(True, p)
            if m:
                accuracy.update(True, m > 0)
            else:  # a coin's expectation: half of it right
                accuracy.update(True, True, 0.5)
                accuracy.update(True, False, 0.5)
        found = scores.figures()[name]["total"]
        assert found["tested"] == mine.sum()
        assert found["accuracy"] == pytest.approx(accuracy.get()) and found["log_loss"] == pytest.approx(loss.get())
        assert sum(row["n"] for row in found["reliability"]) == mine.sum()
        at = np.clip(((np.maximum(probability, 1 - probability)[mine] - 0.5) * 2 * BINS).astype(int), 0, BINS - 1)
        right = np.where(margin[mine] == 0, 0.5, margin[mine] > 0)
        confidence = np.maximum(probability, 1 - probability)[mine]
        ece = sum(abs((right - confidence)[at == b].sum()) for b in range(BINS)) / mine.sum()
        assert found["calibration_error"] == pytest.approx(ece)


def test_calibration_finds_the_probabilities_of_noisy_judges():
    rng = np.random.default_rng(0)
    calibration, sums = Calibration(), []
    assert calibration.probability(np.zeros(1)) == 0.5
    for block in range(40):
        x = rng.normal(size=256)
        truth = 0.1 + 0.8 / (1 + np.exp(-3 * x))  # a lapse in ten, whatever the distance
        margin = np.where(rng.random(256) < truth, x, -x)
        p = calibration.probability(margin)
        np.testing.assert_allclose(p + calibration.probability(-margin), 1)
        if block >= 20:
            sums.append(table(margin, p, np.zeros(256, int)))
        calibration.learn(margin)
    found = figures(sum(sums)[0])
    assert found["calibration_error"] < 0.03 and found["log_loss"] < 0.6 < math.log(2)
    for _ in range(200):  # all as expected, for long: confident, and finite
        calibration.learn(np.ones(256))
    assert 0.95 < calibration.probability(np.ones(1))[0] < 1 and np.isfinite(calibration.weights).all()


def test_small_blocks_wait_and_nothing_is_tested_by_a_later_model():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(10, 2))
    engine = Engine()
    engine.learn(decoded(planted_triplets(rng, points, 2000), 10))
    good = engine.snapshot()
    observer = Observer()
    observer.serve(good)
    for triplet in planted_triplets(rng, points, 100):
        observer.observe(as_batch(triplet[None], 10), {})
    assert not observer.figures()["predictors"]  # a hundred wait, whoever asks
    observer.serve(Engine().snapshot())  # they are tested before the model goes
    assert observer.figures()["predictors"]["adds3"]["all"]["total"]["tested"] == 100


def test_signals_are_wrong_predictions_of_what_is_decided():
    margins = {"adds3": np.array([1.0, -2.0, 0.0, np.nan]), "repeats": np.array([np.nan, 1.0, -1.0, 0.0])}
    found = signals(margins, 4)
    np.testing.assert_array_equal(found["loss"], [0, 1, np.nan, np.nan])
    np.testing.assert_array_equal(found["contradictions"], [np.nan, 0, 1, np.nan])
    both = signals({**margins, "adds4": np.array([np.nan, np.nan, np.nan, -1.0])}, 4)
    np.testing.assert_array_equal(both["loss"], [0, 1, np.nan, 1])
    assert np.isnan(signals({}, 2)["loss"]).all()


def test_the_window_is_that_of_rivers_adwin():
    """Alarms and level, value by value, against the class that river documents."""
    from river.drift import ADWIN

    rng = np.random.default_rng(0)
    alarms = 0
    for delta in (0.002, 0.2, 0.5):
        watch, adwin = Worsening(delta), ADWIN(delta=delta)
        for _ in range(60):
            values, expected = (rng.random(int(rng.integers(300))) < rng.random()).astype(float).tolist(), False
            before = adwin.estimation
            for value in values:
                adwin.update(value)
                if adwin.drift_detected:
                    expected |= adwin.estimation > before
                    before = adwin.estimation
            assert (watch.update(values), watch.level) == (expected, adwin.estimation)
            alarms += expected
    assert alarms > 10


def stream(rng, points, observer, blocks):
    """Blocks of a thousand; the alarms they raised."""
    return [
        alarm
        for _ in range(blocks)
        for alarm in observer.observe(as_batch(planted_triplets(rng, points, 1000, 0.1), 30), {})
    ]


def test_what_is_noticed_in_the_quiet_is_told_when_it_is_over():
    """Worse, and worse again soon after: two alarms, the second when the quiet after the first is over."""
    rng = np.random.default_rng(0)
    observer, told = Observer(cooldown=20_000), []
    for right in [0.95] * 20 + [0.7] * 10 + [0.2] * 30:
        rows = np.tile(np.array([[0, 1, 2]], np.int32), (1000, 1))
        wrong = np.where(rng.random(10_000) < right, 1.0, -1.0)
        observer.predictors["adds3"] = evaluation.Predictor(lambda rows, wrong=wrong: wrong[: len(rows)])
        told += [observer.seen for _ in observer.observe(as_batch(rows, 3), {})]
        observer.test()  # what was drawn
    assert len(told) >= 2
    assert 20_000 < told[0] < 30_000
    assert 20_000 <= told[1] - told[0] < 20_000 + 2 * MAX_BATCH * SAMPLED_ONE_IN
    assert len(told) == observer.alarms["loss"] <= 3


def test_a_change_is_noticed_and_a_stationary_stream_is_quiet():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(30, 2))
    engine = Engine()
    engine.learn(decoded(planted_triplets(rng, points, 20_000, 0.1), 30))
    observer = Observer(cooldown=10_000_000)
    snapshot = engine.snapshot()
    observer.serve(snapshot)
    assert stream(rng, points, observer, 60) == []
    moved = points.copy()
    moved[:3] = rng.normal(size=(3, 2)) * 2  # a tenth of the objects
    assert set(stream(rng, moved, observer, 60)) == {"loss", "contradictions"}
    assert observer.alarms == {"loss": 1, "contradictions": 1}  # quiet since
    assert figures_of(observer)["adds3"]["all"]["total"]["accuracy"] > 0.7
    assert not Observer(None).detectors and evaluation.COSTLY[0] in PREDICTORS
