"""Objects that nobody compared, by their features: placed, predicted, exported; what is told of them is true."""

import csv
import json

import msgspec
import numpy as np
import pytest

from stream_engine import exports
from stream_engine.commands.predict import answers
from stream_engine.evaluation.probability import model
from stream_engine.evaluation.questions import Questions
from stream_engine.exports.models import table
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.kernel_learning.auxiliary_files import BadKernel, KernelSpec
from stream_engine.kernel_learning.pair_lists import excess
from stream_engine.refits import CannotRefit, feature_metric
from stream_engine.state import artifact as artifacts
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.support.kernel_reference import snapshot_of as counted

N, KNOWN, WIDTH = 60, 45, 10
DEFAULT = feature_metric.Params()


@pytest.fixture(scope="module", autouse=True)
def few_candidates():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(feature_metric, "RANKS", (3,))
        patched.setattr(feature_metric, "RIDGES", (1e-2, 1e-3))
        yield


def world(seed=0, answers=2500):
    """Features of which three directions tell, (answers, 3) triplets about the first objects, and a probability."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(N, WIDTH)) * np.linspace(0.3, 2.0, WIDTH)
    seen = features[:, :3] * [4.0, 2.0, 1.5]
    rows = np.array([rng.choice(KNOWN, 3, replace=False) for _ in range(answers)])
    return features, *said(rng, seen, rows)


def said(rng, seen, rows):
    p = expected(seen, rows)
    turned = rng.random(len(rows)) > p
    return seen, np.where(turned[:, None], rows[:, [0, 2, 1]], rows)


def expected(seen, rows):
    near, far = (((seen[rows[:, 0]] - seen[rows[:, c]]) ** 2).sum(axis=1) for c in (1, 2))
    return 1 / (1 + np.exp(near - far))


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    features, seen, triplets = world()
    path = tmp_path_factory.mktemp("features") / "features.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["object", *(f"f{c}" for c in range(WIDTH))])
        order = np.random.default_rng(1).permutation(N).tolist()
        writer.writerows([f"o{i}", *features[i].tolist()] for i in order)
    lines = [json.dumps({"anchor": f"o{a}", "near": f"o{b}", "far": f"o{c}"}) for a, b, c in triplets.tolist()]
    engine = Engine()
    engine.learn(decoder("json", EventOptions())("\n".join(lines).encode()))
    params = msgspec.structs.replace(DEFAULT, features=KernelSpec(str(path), "linear"))
    snapshot = engine.snapshot()
    return seen, snapshot, params, feature_metric.refit(snapshot, params, 0)


def asked_about_unseen(m=3000):
    rng = np.random.default_rng(5)
    rows = np.array([rng.choice(N, 3, replace=False) for _ in range(m)])
    return rows[(rows >= KNOWN).any(axis=1)]


def test_objects_that_nobody_compared_are_told_by_what_tells(given):
    seen, snapshot, _, made = given
    assert made.report["form"] == "metric" and made.report["never_compared"] == N - KNOWN
    published, rows = Published(snapshot, {"feature_metric": made}), asked_about_unseen()
    chosen = model(published, "feature_metric")
    number = np.array([chosen.names.index(f"o{i}") for i in range(N)])
    p = chosen.probability(number[rows][:, [0, 1, 0, 2]].astype(np.int32))
    truth = expected(seen, rows)
    assert ((p > 0.5) == (truth > 0.5)).mean() > 0.85 and np.abs(p - truth).mean() < 0.12
    plain = next(each for each in made.report["tried"] if each["form"] == "euclid")
    assert min(each["log_loss"] for each in made.report["tried"]) < plain["log_loss"] - 0.1


def test_the_reported_error_is_that_on_objects_never_met(given):
    seen, snapshot, params, _ = given
    apart = []
    for seed in range(3):
        made = feature_metric.refit(snapshot, params, seed)
        rows = asked_about_unseen()
        chosen = model(Published(snapshot, {"feature_metric": made}), "feature_metric")
        number = np.array([chosen.names.index(f"o{i}") for i in range(N)])
        p, truth = chosen.probability(number[rows][:, [0, 1, 0, 2]].astype(np.int32)), expected(seen, rows)
        loss = -(truth * np.log(p) + (1 - truth) * np.log1p(-p)).mean()
        assert made.report["held_out"] == "objects" and made.report["held_out_clusters"] >= 6
        apart.append(made.report["log_loss"] - loss)
    assert abs(np.mean(apart)) < 0.06


def test_what_is_reported_neither_chose_nor_was_fitted(given):
    """Answers that name an object that is reported on are turned round: nothing that was tried moves."""
    _, snapshot, params, made = given
    inputs = feature_metric._inputs(snapshot, params)
    fold = feature_metric.hash_split.object_folds(feature_metric.hash_split.name_hashes(inputs.names, 0), 5)
    out = (fold == 4)[inputs.rows].any(axis=1)
    place = {name: at for at, name in enumerate(inputs.names)}
    rows = np.where(out[:, None], inputs.rows[:, [2, 3, 0, 1]], inputs.rows)
    number = {place[name]: at for at, name in enumerate(snapshot.objects)}
    ids = np.vectorize(number.get)(np.repeat(rows, inputs.times.astype(int), axis=0))
    turned = counted(ids[:, [0, 1, 3]], len(snapshot.objects))._replace(objects=snapshot.objects)
    two = feature_metric.refit(turned, params, 0)
    for one, other in zip(made.report["tried"], two.report["tried"], strict=True):
        assert one["form"] == other["form"] and one["log_loss"] == pytest.approx(other["log_loss"], rel=1e-4)
    assert two.report["error"] == pytest.approx(1 - made.report["error"], abs=0.02)


def test_all_are_exported_and_answered_under_their_names(given):
    _, snapshot, _, made = given
    whole, decoded = artifacts.encode(made)
    published = Published(snapshot, {"feature_metric": artifacts.decode(b"".join(whole))})
    assert decoded.arrays["points"].shape[0] == N
    out = exports.contents("feature_metric", published)["feature_metric"].tables["feature_metric"]
    assert sorted(out["object"]) == sorted(f"o{i}" for i in range(N)) and out["compared"].sum() == KNOWN
    rows = [{"anchor": "o50", "left": "o1", "right": "o55"}, {"anchor": "o0", "left": "o1", "right": "stranger"}]
    questions = Questions(rows, [["o50", "o1", "o50", "o55"], ["o0", "o1", "o0", "stranger"]])
    told = answers(published, questions)
    assert told.rows[0]["model"] == "feature_metric" and 0 < told.rows[0]["p"] < 1 and told.rows[1]["p"] is None
    assert table(published)[0]["model"] == "feature_metric"


def test_without_features_an_object_is_a_column(given):
    _, snapshot, _, _ = given
    made = feature_metric.refit(snapshot, msgspec.structs.replace(DEFAULT, forms=("metric",)), 0)
    assert made.arrays["points"].shape[0] == KNOWN and made.report["never_compared"] == 0
    gram = made.arrays["points"] @ made.arrays["points"].T
    rows = feature_metric._inputs(snapshot, DEFAULT).rows
    assert (excess(gram, rows) < 0).mean() > 0.75


def test_what_it_cannot_use_it_says(given, tmp_path):
    _, snapshot, params, _ = given
    with pytest.raises(CannotRefit, match="0 comparisons"):
        feature_metric.refit(Engine().snapshot(), DEFAULT, 0)
    (tmp_path / "other.csv").write_text("object,f\nx,1\ny,2\n")
    with pytest.raises(CannotRefit, match="2.*45"):
        feature_metric.refit(
            snapshot, msgspec.structs.replace(params, features=KernelSpec(str(tmp_path / "other.csv"), "linear")), 0
        )
    with pytest.raises(BadKernel, match="'linear'"):
        feature_metric.refit(
            snapshot, msgspec.structs.replace(params, features=msgspec.structs.replace(params.features, kind="rbf")), 0
        )
