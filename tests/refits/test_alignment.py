"""The refit `alignment`: its table, transform and predictions are those of its definitions, from Python, the command
line and a run."""

import csv
import re
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

import stream_engine as se
from stream_engine import exports
from stream_engine.alignment.feature_files import FeatureSpec, FeatureTable
from stream_engine.commands import align
from stream_engine.data.comparisons import empty_batch
from stream_engine.data.packed_names import pack_names
from stream_engine.evaluation.answering import answered
from stream_engine.exports import alignment as exported
from stream_engine.input.settings import DriftSettings, loading
from stream_engine.refits import CannotRefit, alignment
from stream_engine.report import maker
from stream_engine.report.material import material
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.state.artifact_checks import check_artifact
from stream_engine.state.published import Published
from stream_engine.state.store import Store
from tests.support.facts import states
from tests.support.feature_worlds import world
from tests.support.process import engine, jsonl, one_line
from tests.support.served import Lines

WORLD = world(0, n=30, m=2500, weights=(2.0, 1.0, 0.0))
KNOWN = WORLD.names[:26]  # nobody compared the others
ROWS = WORLD.rows[(WORLD.rows < 26).all(axis=1)]
EVENTS = [
    {"anchor": WORLD.names[a], "near": WORLD.names[b], "far": WORLD.names[c], "worker": f"w{number % 8}"}
    for number, (a, b, _, c) in enumerate(ROWS.tolist())
]
NOISE = np.random.default_rng(1).normal(size=(30, 3))


@pytest.fixture(scope="module")
def study():
    study = se.read(EVENTS, frames="arrow")
    study.fit("embedding", dimensions=3, kernel="ste", ridge=0.3, participants="alike")
    study.align({"true": dict(zip(WORLD.names, WORLD.features)), "noise": dict(zip(WORLD.names[:25], NOISE))})
    return study


def column(study, name):
    return exports.contents("alignment", study.published)["transform"].tables["alignment"][name]


def test_the_table_has_every_set_beside_chance_and_the_map(study):
    rows = list(zip(column(study, "set"), column(study, "transform")))
    measures = ["cosine", "euclidean", "dot product", "weights", "linear map"]
    expected = [(name, each) for name in ("true", "noise") for each in measures]
    assert rows[:11] == [*expected, ("all sets", "combination")]
    assert rows[11] == ("", "chance") and rows[-1] == ("", "map")
    accuracy = dict(zip(rows, column(study, "accuracy")))
    assert accuracy["", "chance"] == 0.5
    assert accuracy["", "map"] == study.published.artifacts["embedding"].report["accuracy"]
    assert accuracy["true", "weights"] > 0.75 > 0.58 > accuracy["noise", "euclidean"]
    report = study.details("alignment")
    assert report["with_features"] == 25 and report["objects"] == 26
    about = sum(any(name == KNOWN[25] for name in (e["anchor"], e["near"], e["far"])) for e in EVENTS)
    assert report["without_features"] == about and report["answers"] == len(EVENTS) - about
    assert report["predicts"]["set"] == "true"
    check_artifact(study.published.artifacts["alignment"], 26)


def test_the_transform_maps_features_to_the_points_that_predict(study):
    """Also of objects that nobody compared; the probabilities are those of its distances."""
    transform = exports.contents("alignment", study.published)["transform"].arrays
    kept = WORLD.features[:, transform["true.varies"]]
    if transform["true.cosine"]:
        kept = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    moved, by = kept - transform["true.mean"], transform["true.map"]
    points = dict(zip(WORLD.names, moved * by if by.ndim == 1 else moved @ by))
    arrays = study.published.artifacts["alignment"].arrays
    found = dict(zip(study.snapshot.objects, arrays["points"]))
    for name in KNOWN:
        np.testing.assert_allclose(found[name], points[name], atol=1e-4)
    new = [("o26", "o27", "o28"), ("o0", "o29", "o1")]
    told = study.predict(new)
    for (a, b, c), p, model in zip(new, told["p"].to_pylist(), told["model"].to_pylist()):
        margin = ((points[a] - points[c]) ** 2).sum() - ((points[a] - points[b]) ** 2).sum()
        assert p == pytest.approx(1 / (1 + np.exp(-margin)), abs=1e-4) and model == "alignment"
    mixed = study.predict([("o26", "o1", "o2"), ("o3", "o1", "o2"), ("o3", "o1", "nobody")])
    assert mixed["model"].to_pylist()[:2] == ["alignment", "embedding"] and mixed["p"].to_pylist()[2] is None
    assert study.predict([("o3", "o1", "o2")], "alignment")["model"].to_pylist() == ["alignment"]


def test_predictions_of_objects_that_nobody_compared_are_right(study):
    """As often as those of objects that were held out."""
    new = WORLD.rows[(WORLD.rows[:, [1, 3]] >= 26).any(axis=1)]
    names = [tuple(WORLD.names[i] for i in row) for row in new.tolist()]
    p = answered(study.published, names).p
    told = next(row for row in study.details("alignment")["rows"] if row["transform"] == "weights")["by_object"]
    error = 4 * np.sqrt(0.25 / len(p))
    assert np.mean(p > 0.5) == pytest.approx(told["accuracy"], abs=error + 2 * told["standard_error"])


def test_an_object_that_is_compared_later_keeps_its_features(study):
    """The artifact is of an older snapshot, which knew fewer objects."""
    later = se.read([*EVENTS, {"anchor": "o27", "near": "o0", "far": "o1", "worker": "w1"}], frames="arrow")
    made = Published(later.snapshot, {"alignment": study.published.artifacts["alignment"]})
    question = [("o27", "o26", "o27", "o28")]
    assert answered(made, question).p == pytest.approx(answered(study.published, question, "alignment").p)


def test_participants_objects_and_questions(study):
    people = maker("alignment")(material(study.published, workers=True)).tables[-1].columns
    assert sorted(people["participant"]) == [f"w{i}" for i in range(8)]
    whole = study.details("alignment")
    best = max((row for row in whole["rows"] if "weight" in row and row["set"] == "true"), key=lambda r: r["accuracy"])
    share = np.average(people["true"], weights=people["answers"])
    assert share == pytest.approx(best["accuracy"], abs=1e-9) and sum(people["answers"]) == whole["answers"]
    tables = exports.contents("alignment", study.published)["transform"].tables
    objects = tables["alignment_objects"]
    assert len(objects["object"]) == 25 and np.all(np.diff(objects["accuracy"]) >= 0)
    agreement = [agreement_about(name) for name in objects["object"]]
    np.testing.assert_allclose(objects["agreement"], agreement)


def agreement_about(name: str) -> float:
    """How often an answer about an object is that of most of the others to its question, of questions with others."""
    nearer, shares = defaultdict(list), []
    for event in EVENTS:
        if KNOWN[25] not in event.values():  # it has no features in one set
            nearer[event["anchor"], frozenset((event["near"], event["far"]))].append(event["near"])
    for (anchor, pair), given in nearer.items():
        if name in (anchor, *pair) and len(given) > 1:
            net = [sum(1 if other == near else -1 for other in given) - 1 for near in given]
            shares += [(np.sign(each) + 1) / 2 for each in net]
    return float(np.mean(shares))


def test_questions_on_which_people_agree_and_features_do_not():
    """A question that twelve people answer against the features stands before one that seven do so."""
    against = WORLD.features[:, :2] * np.sqrt([2.0, 1.0])
    turned = []
    for anchor, people in ((1, 7), (0, 12)):
        d = ((against[anchor] - against) ** 2).sum(axis=1)
        near, far = (WORLD.names[i] for i in np.argsort(d)[[1, 20]])
        turned += [{"anchor": f"o{anchor}", "near": far, "far": near, "worker": f"w{i}"} for i in range(people)]
    study = se.read([*EVENTS, *turned], frames="arrow")
    artifact = alignment.aligned(study.snapshot, {"true": WORLD.table}, alignment.Params(linear=False), 0)
    table = exported.object_tables(artifact, study.snapshot.objects)["alignment_questions"]
    assert [table[key][0] for key in ("near_i", "near_j", "far_j")] == ["o0", far, near]
    assert table["agree"][0] == 12 and table["log_odds"][0] < 0
    assert (table["near_i"][1], table["agree"][1]) == ("o1", 7)


def test_the_section_states_what_was_left_out_and_which_set_is_best(study):
    section = maker("alignment")(material(study.published))
    rows = study.details("alignment")["rows"]
    best = max((row for row in rows if row["transform"] in ("cosine", "euclidean")), key=lambda row: row["accuracy"])
    assert f"{100 * best['accuracy']:.1f} %" in section.says and f"{best['set']} ({best['transform']})" in section.says
    assert "1 of 26 objects" in section.says and not section.caution
    assert [table.name for table in section.tables][:2] == ["alignment", "alignment_objects"]
    assert not any("participants" in table.name for table in section.tables)
    drawing = section.drawings[0]
    assert len(drawing.marks) == 11 and {mark.name.split(",")[0] for mark in drawing.marks[:-1]} == {"true", "noise"}
    people = maker("alignment")(material(study.published, workers=True)).tables[-1]
    assert people.name == "alignment_participants" and len(people.columns["participant"]) == 8
    assert maker("alignment")(material(study.published._replace(artifacts={}))) is None


def test_a_set_that_was_made_from_the_answers_is_suspicious():
    """Features that are the majorities of answers that are coins, beside people who agree half of the time."""
    rng = np.random.default_rng(0)
    pairs = [tuple(int(i) for i in rng.permutation(8)[:3]) for _ in range(60)]
    events = [
        {"anchor": f"o{a}", "near": f"o{b}", "far": f"o{c}", "worker": f"w{i}"}
        for a, b, c in pairs
        for i in range(12)
        for b, c in [(b, c) if rng.random() < 0.6 else (c, b)]
    ]
    study = se.read(events, frames="arrow")
    artifact = alignment.aligned(
        study.snapshot, {"x": FeatureTable([f"o{i}" for i in range(8)], rng.normal(size=(8, 3)))}, alignment.Params(), 0
    )
    report = artifact.report
    assert report["ceiling"]["at_most"] is not None and exported.too_good(report) == ""
    rows = [{**row, "accuracy": 0.99, "low": 0.98} if row["transform"] == "cosine" else row for row in report["rows"]]
    suspect = artifact._replace(report={**report, "rows": rows})
    assert exported.too_good(suspect.report) == "x"
    section = maker("alignment")(material(Published(study.snapshot, {"alignment": suspect})))
    assert section.caution and section.says.startswith("x ")


def test_what_cannot_be_tested_is_one_line():
    with pytest.raises(CannotRefit, match="feature sets"):
        alignment.refit(se.read(EVENTS[:50], frames="arrow").snapshot, alignment.Params(), 0)
    empty = se.read([("a", "b", "c")], frames="arrow")
    with pytest.raises(CannotRefit, match="0 comparisons among"):
        three = FeatureTable(["a", "b", "x"], np.eye(3))
        names = empty.snapshot._replace(objects=("a", "b", "c", "x"))
        alignment.aligned(names, {"x": three}, alignment.Params(), 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("align")
    jsonl(folder / "events.jsonl", EVENTS)
    np.save(folder / "true.npy", WORLD.features)
    (folder / "true.txt").write_text("\n".join(WORLD.names))
    np.savez(folder / "noise.npz", NOISE, objects=np.array(WORLD.names))
    (folder / "run.toml").write_text(
        f'source = ["{folder}/events.jsonl"]\nstate = "{folder}/state"\n[refits]\nkinds = ["alignment"]\n'
        "[refits.params.alignment]\nlinear = false\n[snapshot]\nevery = 800\n"
        '[features.true]\nfile = "true.npy"\n[features.noise]\nfile = "noise.npz"\n'
    )
    return folder


def test_a_run_fits_the_refit_with_the_sets_of_its_configuration(folder):
    engine("run", "--config", folder / "run.toml")
    artifact = Store(folder / "state").latest_artifact("alignment")
    assert {each["name"] for each in artifact.report["sets"]} == {"noise", "true"}
    assert len(artifact.report["rows"]) == 9  # three measures and weights of each, and the combination


def test_a_run_predicts_by_each_set_before_it_learns(folder):
    """The metric is the share of answers after the snapshot that the set predicts; a bad set is told once."""
    settings = loading.load(str(folder / "run.toml"), {})
    bad = FeatureSpec(str(folder / "gone.npy"))
    metrics, log = Metrics(CollectorRegistry()), Lines()
    specs = {**settings.features, "bad": bad}
    monitor = PredictionMonitor(DriftSettings(), metrics, log, features=specs)
    half = WORLD._replace(rows=ROWS[:600], worker=np.zeros(600, int)).snapshot()
    monitor.use_published(Published(half, {}))
    monitor._making.result()
    later = ROWS[600:]
    batch = empty_batch(30)._replace(triplets=np.ascontiguousarray(later[:, [0, 1, 3]]))
    monitor.observe(batch, {})
    monitor._observer.test()
    monitor.tell()
    x, (i, j, k, l) = WORLD.features, later.T
    right = np.mean(((x[i] - x[j]) ** 2).sum(axis=1) < ((x[k] - x[l]) ** 2).sum(axis=1))
    labels = {"kind": "all", "window": "total"}
    found = {
        name: metrics.registry.get_sample_value(
            "stream_engine_progressive_accuracy", {**labels, "predictor": f"features {name}"}
        )
        for name in ("true", "noise", "bad")
    }
    assert found["true"] == pytest.approx(right, abs=0.05) and abs(found["noise"] - 0.5) < 0.1
    assert found["bad"] is None
    assert [more["predictor"] for _, _, more in log.said if "predictor" in more] == ["features bad"]
    monitor.close()


def test_the_command_prints_the_table_and_writes_files(folder):
    out = folder / "out"
    done = engine("align", folder / "true.npy", "--answers", folder / "events.jsonl", "--quick", "--out", out)
    assert "26 of 26 objects" in done.stdout and "map" not in done.stdout.split(str(out))[0]
    with open(out / "alignment.csv") as file:
        rows = {(row["set"], row["transform"]): row for row in csv.DictReader(file)}
    assert float(rows["true", "weights"]["accuracy"]) > 0.7
    assert rows["", "chance"]["accuracy"] == "0.5" and ("", "map") not in rows
    assert {"true.map", "true.mean"} <= set(np.load(out / "transform.npz").files)
    assert '<section id="alignment"' in (out / "report.html").read_text()


def test_bad_arguments_are_one_line(folder):
    for arguments, line in (
        ((folder / "true.npy",), "--state DIR or --answers"),
        ((folder / "gone.npy", "--answers", folder / "events.jsonl"), "gone.npy"),
        ((folder / "run.toml", "--answers", folder / "events.jsonl"), ".toml"),
    ):
        done = engine("align", *arguments, status=None)
        assert done.returncode and line in one_line(done.stderr)
    with open(folder / "bad.toml", "w") as file:
        file.write('[features.x]\nfile = "gone.npy"\n')
    done = engine("check-config", folder / "bad.toml", status=None)
    assert done.returncode == 2 and "features.x.file" in one_line(done.stderr)


def test_objects_that_fail_are_drawn_where_the_table_says(study):
    of = material(study.published)
    made = maker("alignment")(of)
    told = exports.contents("alignment", study.published)["transform"].tables["alignment_objects"]
    known = np.isfinite(told["agreement"])
    drawing = next(each for each in made.drawings if each.name == "alignment_objects")
    (points,) = drawing.marks
    assert known.any() and points.names == tuple(np.array(told["object"])[known])
    assert [of.names[i] for i in points.ids.tolist()] == list(points.names)
    np.testing.assert_allclose(points.x, 100 * told["accuracy"][known])
    np.testing.assert_allclose(points.y, 100 * told["agreement"][known])


def test_each_set_is_told_for_each_group_of_participants(study):
    """Groups of the embedding, here given; their figures are shares of the answers of all of their members."""
    embedding = study.published.artifacts["embedding"]
    group = np.array([0, 1, 0, -1, 1, 0, 1, 0])
    people = pack_names([f"w{number}" for number in range(8)])
    arrays = {**embedding.arrays, "worker_group": group, **people}
    published = study.published._replace(
        artifacts={**study.published.artifacts, "embedding": embedding._replace(arrays=arrays)}
    )
    (note,) = (each for each in maker("alignment")(material(published)).notes if each.startswith("By group"))
    groups = re.findall(r"group (\d) \((\d) participants\): true ([\d.]+) %, noise ([\d.]+) %", note)
    assert [each[:2] for each in groups] == [("1", "4"), ("2", "3")]
    with_features = set(KNOWN[:25])
    for number, _, *shown in groups:
        mine = [e for e in EVENTS if group[int(e["worker"][1:])] == int(number) - 1]
        mine = [e for e in mine if {e["anchor"], e["near"], e["far"]} <= with_features]
        for (name, values), share in zip({"true": WORLD.features, "noise": NOISE}.items(), shown):
            best = max(
                (row for row in study.details("alignment")["rows"] if row["set"] == name and "weight" in row),
                key=lambda row: row["accuracy"],
            )["transform"]
            assert float(share) == pytest.approx(100 * np.mean([right(best, values, e) for e in mine]), abs=0.06)
    assert not any(each.startswith("By group") for each in maker("alignment")(material(study.published)).notes)


def right(measure, values, event):
    """Whether a set is right about an answer, as it is."""
    a, b, c = (values[int(event[field][1:])] for field in ("anchor", "near", "far"))
    if measure == "cosine":
        a, b, c = (each / np.linalg.norm(each) for each in (a, b, c))
    return ((a - b) ** 2).sum() < ((a - c) ** 2).sum()


def test_the_command_counts_what_was_tested_and_what_was_left_out(study):
    about = sum(KNOWN[25] in (e["anchor"], e["near"], e["far"]) for e in EVENTS)
    first = align.as_text(study.published).splitlines()[0]
    assert states(first, f"25 of 26 objects … {len(EVENTS) - about:,} comparisons tested, {about} … left out")


def test_participants_are_told_by_the_answers_that_no_model_chose():
    """One is right in each of 20 of these and wrong in all others; the other has too few of them."""
    participant, right = np.repeat([0, 0, 1, -1], [20, 15, 30, 9]), np.repeat([2.0, 0.0, 2.0, 2.0], [20, 15, 30, 9])
    answers = SimpleNamespace(participant=participant, times=np.ones(74), participants=["w0", "w1"])
    models = SimpleNamespace(sets=[SimpleNamespace(name="one")], right={("one", "cosine"): right})
    settings, fair = (
        [SimpleNamespace(measure="cosine")],
        np.repeat([True, False, True, False, True], [20, 15, 9, 21, 9]),
    )
    told = alignment._participants(SimpleNamespace(answers=answers, models=models, settings=settings, fair=fair))
    assert told["participant_accuracy"].tolist() == [[1.0]] and told["participant_answers"].tolist() == [20.0]
