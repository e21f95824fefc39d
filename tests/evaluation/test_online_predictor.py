"""The online embedding in a run: it tests before it learns, takes over fits, goes on after a restart, and never touches
a count."""

import json

import numpy as np

from stream_engine.embedding.online_predictor import MARKS, Online
from stream_engine.input.settings import DriftSettings
from stream_engine.refits import embedding
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from stream_engine.state.store import Store
from tests.support import kernel_reference as reference
from tests.support.generators import as_batch, concatenated, decoded, with_provenance
from tests.support.process import engine, jsonl
from tests.support.served import Lines

N = 20
NAMES = [f"o{i}" for i in range(N)]
_, TRIPLETS = reference.planted(5, N, 3000, flip=0.05, dimensions=2)
FIT = {"dimensions": 2, "kernel": "ste", "ridge": 0.5}


def same(one, other):
    ours, theirs = one.state().arrays, other.state().arrays
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def fitted(triplets, sequence):
    counted = Engine(("adds3", "triplet_counts"), guard=False)
    counted.learn(decoded(triplets.astype(np.int32), N)._replace(names=NAMES))
    snapshot = counted.snapshot()._replace(sequence=sequence)
    return snapshot, embedding.refit(snapshot, embedding.Params(**FIT), 0)._replace(digest=f"{sequence}")


def test_nothing_is_predicted_after_it_was_learned():
    """Answers that are coin tosses are predicted right half of the time, although each is learned many times over, and
    although small batches wait for each other."""
    rng = np.random.default_rng(0)
    tossed = np.array([rng.permutation(N)[:3] for _ in range(1500)], np.int32)
    fast = Online(12)
    fast.model.setting[2] = 0.0  # by itself it would see that there is little to learn
    monitor = PredictionMonitor(DriftSettings(enabled=False), Metrics(), Lines(), fast)
    for at in range(0, len(tossed), 50):
        monitor.observe(as_batch(tossed[at : at + 50], N), {})
    live = monitor.tell()["predictors"]["online"]["triplet"]["total"]["accuracy"]
    monitor.close()
    assert abs(live - 0.5) < 0.08
    assert (fast.model.margins(tossed[:, [0, 1, 0, 2]]) > 0).mean() > 0.56  # it could have cheated


def test_batches_and_workers():
    """Cut anywhere, with quadruplets and workers by name: the same state. Rows are by first answers."""
    rng = np.random.default_rng(1)
    stream = []
    for at in range(0, 300, 60):
        four = np.array([rng.permutation(N)[:4] for _ in range(5)], np.int32)
        batch = as_batch(TRIPLETS[at : at + 60], N)._replace(
            quadruplets=four, quadruplet_at=np.array([0, 3, 3, 20, 60])
        )
        stream.append(with_provenance(rng, batch))
    whole, parts, none = Online(2), Online(2), Online(2)
    whole.learn(stream)
    for batch in stream:
        parts.learn([batch])
    none.learn([batch._replace(provenance=None) for batch in stream])
    assert same(whole, parts)
    assert len(whole.model.lapse_counts) == 5
    assert len(none.model.lapse_counts) == 1
    assert whole.model.n_learned == 325
    one = concatenated(stream[:2])
    assert (Online(2)._workers(one) > 0).sum() == (one.provenance.worker >= 0).sum()


def test_a_fit_is_taken_over_once_and_what_came_since_is_learned_again():
    log, fast = Lines(), Online(3)
    monitor = PredictionMonitor(DriftSettings(enabled=False), Metrics(), log, fast)
    monitor.observe(as_batch(TRIPLETS[:2000], N), {})
    snapshot, made = fitted(TRIPLETS[:2000], 1)
    monitor.serve(snapshot)
    monitor.observe(as_batch(TRIPLETS[2000:], N), {})
    for _ in range(2):
        monitor.use_published(Published(snapshot, {"embedding": made}))
    monitor.serve(snapshot._replace(sequence=2))
    kept = fast.state()
    assert len(log.said) == 1
    assert (kept.report["d"], kept.report["kernel"], kept.report["fit_of_snapshot"]) == (2, "ste", 1)
    assert fast.model.n_learned == 3000 and kept.arrays["answers"].sum() == 9000
    assert (fast.model.margins(TRIPLETS[:, [0, 1, 0, 2]]) > 0).mean() > 0.85
    monitor.use_published(Published(snapshot, {"embedding": made._replace(sequence=9)}))  # newer than the snapshot
    assert not fast.take(fitted(TRIPLETS[:10], 0)[1])
    monitor.close()
    for sequence in range(100):
        fast.mark(sequence)
    assert len(fast.state().arrays["marks"]) == MARKS


def test_it_goes_on_from_what_it_kept():
    """The next run is what this one would have been, also where a fit is taken that was made of an earlier snapshot."""
    rng = np.random.default_rng(2)
    batches = [with_provenance(rng, as_batch(TRIPLETS[at : at + 500], N)) for at in range(0, 2000, 500)]
    first, again = Online(3), Online(3)
    first.learn(batches[:2])
    first.mark(1)
    first.learn(batches[2:3])
    first.mark(2)
    snapshot, made = fitted(TRIPLETS[:1000], 1)
    artifact = first.artifact(first.state(), snapshot._replace(sequence=2), 0.75)
    assert artifact.report["live_accuracy"] == 0.75 and artifact.sequence == 2
    again.resume(artifact)
    assert same(first, again)
    for each in (first, again):
        each.learn(batches[3:])
        assert each.take(made)
    assert same(first, again) and first.model.n_learned == 2000
    fresh = Online(3)
    assert fresh.take(made)  # from a fit alone
    assert fresh.model.n_learned == 0
    assert fresh.state() is not None
    assert Online(3).state() is None
    some = Online(3)
    some.learn([with_provenance(rng, as_batch(TRIPLETS[(TRIPLETS != 4).all(axis=1)], N))])
    assert some.artifact(some.state(), snapshot, 0.75).report["objects"] == N - 1, "nothing was said of one"


def test_a_run_keeps_it_beside_the_counts(tmp_path):
    """Same counts with and without; live accuracy in the figures; the next run goes on, from the fit between them. No
    snapshot by the clock: where compiling takes a minute there were two, and the fit was of the second."""
    lines = [dict(zip(("anchor", "near", "far"), (NAMES[i] for i in t))) for t in TRIPLETS.tolist()]
    events = jsonl(tmp_path / "events.jsonl", lines[:2000])
    more = jsonl(tmp_path / "more.jsonl", lines[2000:])
    always = "[snapshot]\ninterval = 0\nevery = 5000\n"  # blocks of 20 kB, no snapshot
    (tmp_path / "on.toml").write_text(f"[online]\nenabled = true\n{always}")
    (tmp_path / "off.toml").write_text(always)

    def run(source, name):
        config = tmp_path / f"{name}.toml"
        engine("run", source, "--state", tmp_path / name, "--config", config, "--no-refits", "--guard", "off")

    for name in ("on", "off"):
        run(events, name)
    on, off = (Store(tmp_path / name).latest().snapshot for name in ("on", "off"))
    assert on.arrays.keys() == off.arrays.keys()
    assert all(np.array_equal(on.arrays[key], off.arrays[key]) for key in off.arrays)
    told = json.loads((tmp_path / "on" / "progressive.json").read_text())["predictors"]["online"]["triplet"]["total"]
    assert told["accuracy"] > 0.75
    made = Store(tmp_path / "on").latest_artifact("online_embedding")
    assert made.report["learned"] == 2000
    assert made.report["live_accuracy"] > 0.75
    assert made.report["kernel"] == "t-ste"
    engine("refit", "--state", tmp_path / "on", "embedding", "--set", "dimensions=3", "--set", "kernel=ste")
    run(more, "on")
    made = Store(tmp_path / "on").latest_artifact("online_embedding")
    assert made.report["learned"] == 3000 and made.report["fit_of_snapshot"] == 1
    assert made.report["kernel"] == "ste" and made.arrays["X"].shape == (N, 3)
    engine("export", "--state", tmp_path / "on", "--out", tmp_path / "by", "--object-order", "name", "embedding")


def test_every_snapshot_has_the_embedding_of_its_moment(tmp_path):
    """Snapshots within the stream and the last one: each with an artifact that learned just what the snapshot holds."""
    lines = [dict(zip(("anchor", "near", "far"), (NAMES[i] for i in t))) for t in TRIPLETS.tolist()]
    events = jsonl(tmp_path / "events.jsonl", lines)
    (tmp_path / "on.toml").write_text("[online]\nenabled = true\n[snapshot]\nevery = 700\ninterval = 0\nkeep = 9\n")
    engine("run", events, "--state", tmp_path / "on", "--config", tmp_path / "on.toml", "--no-refits", "--guard", "off")
    store = Store(tmp_path / "on")
    held = {number: store.read(number).counters["comparisons"] for number in store.sequences()}
    learned = {n: store.artifact("online_embedding", n) for n in store.artifact_sequences("online_embedding")}
    assert len(held) >= 3 and max(held.values()) == 3000
    assert {n: artifact.report["learned"] for n, artifact in learned.items()} == held
    assert all(learned[n].snapshot == store.read(n).digest for n in held)
