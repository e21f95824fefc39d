"""The online kernel in a run: tests before it learns, grows with the objects, goes on after a restart, never touches a
count."""

import json

import numpy as np
import pytest

from stream_engine.data.comparisons import Batch
from stream_engine.kernel_learning import rckl
from stream_engine.kernel_learning.auxiliary_files import KernelSpec
from stream_engine.kernel_learning.distance_operator import satisfied, triplet_rows
from stream_engine.kernel_learning.online_kernel import OnlineKernel
from stream_engine.prediction import online_predictor
from stream_engine.prediction.online_predictor import Online, steps
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.settings import DriftSettings
from stream_engine.state.store import Store
from tests.support import kernel_reference as reference
from tests.support.generators import planted_triplets
from tests.support.process import engine, jsonl, one_line

N = 20
NAMES = [f"o{i}" for i in range(N)]
POINTS, TRIPLETS = reference.planted(5, N, 3000, flip=0.05, dimensions=2)


def batch(triplets, n=N):
    return Batch(triplets, np.empty((0, 4), np.int32), np.empty(0, np.int64), n)


def spec(folder, names=NAMES):
    np.savez(folder / "known.npz", objects=np.array(names), X=POINTS[: len(names)])
    return {"known": KernelSpec(str(folder / "known.npz"), "rbf")}


class Log:
    def __init__(self):
        self.said = []

    def info(self, event, **more):
        self.said.append((event, more))

    warning = info


def test_steps_are_bounded_whatever_the_batches():
    """Against the definition, one comparison at a time; a batch of everything costs what single events cost."""
    m = 40_000
    rate = np.clip(online_predictor.BUDGET / np.arange(1, m + 1), online_predictor.LEAST, online_predictor.MOST)
    for size in (100, 5000, m):
        spent = sum(steps(seen, size) for seen in range(0, m, size))
        assert spent == pytest.approx(rate.sum(), rel=2e-3)
    assert steps(0, 100_000_000) < 17_000_000 and steps(0, 1_000_000) < 3_000_000


def test_nothing_is_predicted_after_it_was_learned():
    """Answers that are coin tosses are predicted right half of the time, although each is learned many times over, and
    although small batches wait for each other."""
    rng = np.random.default_rng(0)
    tossed = np.array([rng.permutation(N)[:3] for _ in range(600)], np.int32)
    fast = Online({}, rank=20)
    fast.grow(NAMES)
    fast.model.lambda1 = 1e-6  # by itself it would see that there is nothing to learn
    monitor = PredictionMonitor(DriftSettings(enabled=False), Metrics(), Log(), fast)
    for at in range(0, len(tossed), 50):
        monitor.observed(batch(tossed[at : at + 50]), {}, NAMES)
    live = monitor.tell()["predictors"]["online"]["triplet"]["total"]["accuracy"]
    monitor.close()
    assert abs(live - 0.5) < 0.08
    assert (fast.model.excess(tossed) < 0).mean() > 0.6  # it could have cheated


def test_it_grows_with_the_objects_and_says_what_it_skipped(tmp_path):
    """With kernels: room for an eighth more objects at once; until then comparisons that name new ones are skipped."""
    fast = Online(spec(tmp_path), rank=6)
    few = TRIPLETS[(TRIPLETS < 18).all(axis=1)]
    fast.learn(few, NAMES[:18])
    assert (fast.objects, fast.skipped, fast.model.seen) == (18, 0, len(few))
    fast.learn(TRIPLETS, NAMES)  # two of eighteen are new: not yet
    assert fast.objects == 18 and fast.skipped == len(TRIPLETS) - len(few)
    fast.grow(NAMES)
    fast.learn(TRIPLETS, NAMES)
    assert fast.objects == N and fast.model.seen == 2 * len(few) + len(TRIPLETS)
    assert (fast.model.excess(TRIPLETS) < 0).mean() > 0.85
    alone = Online({}, rank=6)
    alone.learn(TRIPLETS[:1], NAMES[:18])
    alone.learn(TRIPLETS[:1], NAMES)
    assert alone.objects == N
    rows = np.array([[0, 1, 2, 3], [0, 1, 0, N]], np.int32)
    margin = fast.predictor().margins(rows)
    gram = fast.kept().arrays["K"]
    d = lambda i, j: gram[i, i] + gram[j, j] - 2 * gram[i, j]  # noqa: E731
    assert margin[0] == pytest.approx(d(2, 3) - d(0, 1)) and np.isnan(margin[1])


def test_files_that_know_nobody_yet_make_it_wait(tmp_path):
    fast = Online(spec(tmp_path, names=[f"z{i}" for i in range(N)]))
    fast.learn(TRIPLETS, NAMES)
    assert fast.objects == 0 and fast.skipped == len(TRIPLETS) and "unknown objects" in fast.problem
    assert np.isnan(fast.predictor().margins(triplet_rows(TRIPLETS[:2]))).all() and fast.kept() is None


def test_it_goes_on_from_what_it_kept(tmp_path):
    first = Online(spec(tmp_path), rank=6)
    first.learn(TRIPLETS, NAMES)
    snapshot = reference.snapshot_of(TRIPLETS, N, NAMES)
    made = first.artifact(first.kept(), snapshot, 0.75)
    assert made.report["live_accuracy"] == 0.75 and made.sequence == snapshot.sequence
    again = Online(spec(tmp_path), rank=6)
    assert again.resume(made, [*NAMES, "new"])
    np.testing.assert_allclose(again.model.gram(again._kernels), made.arrays["K"], atol=1e-12)
    assert again.model.seen == len(TRIPLETS)
    again.learn(TRIPLETS, [*NAMES, "new"])
    assert not Online(spec(tmp_path), rank=7).resume(made, NAMES) and not Online({}, 6).resume(made, NAMES)


@pytest.mark.parametrize("n, m", [(100, 2000), (100, 20_000), (200, 4000)])
def test_stays_close_to_the_batch_at_a_fraction_of_the_work(n, m):
    """Stated distance: 0.03 in held-out error, at the lambda that nobody chose. Work: iterations of the batch touch
    every triplet and n^3 numbers; the stream is stepped on `steps` times."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(n, 3))
    stream, test = planted_triplets(rng, points, m, 0.1), planted_triplets(rng, points, 20_000)
    fast = OnlineKernel(n, 20)
    for at in range(0, m, 500):
        fast.learn(stream[at : at + 500], steps(at, 500))
    batch = rckl.fit(stream, n, form="t", lambda1=np.sqrt(3 * m / n), tolerance=1e-2)
    error = (fast.excess(test) >= 0).mean()
    assert error <= 1 - satisfied(batch.gram, triplet_rows(test)) + 0.03


def test_a_run_keeps_it_beside_the_counts(tmp_path):
    """Same counts with and without; live accuracy in the figures; the next run goes on; K in the exports."""
    lines = [dict(zip(("anchor", "near", "far"), (NAMES[i] for i in t))) for t in TRIPLETS.tolist()]
    events = jsonl(tmp_path / "events.jsonl", lines[:2000])
    np.savez(tmp_path / "known.npz", objects=np.array(NAMES), X=POINTS)
    (tmp_path / "on.toml").write_text(
        "[kernels.known]\nfile = 'known.npz'\nkind = 'rbf'\n[online]\nenabled = true\nrank = 5\n"
        "[input]\nblock_bytes = 20000\n"
    )
    (tmp_path / "off.toml").write_text("[input]\nblock_bytes = 20000\n")
    for name in ("on", "off"):
        engine(
            "run",
            events,
            "--state",
            tmp_path / name,
            "--config",
            tmp_path / f"{name}.toml",
            "--no-refits",
            "--guard",
            "off",
        )
    on, off = (Store(tmp_path / name).latest().snapshot for name in ("on", "off"))
    assert (
        all(np.array_equal(on.arrays[key], off.arrays[key]) for key in off.arrays)
        and on.arrays.keys() == off.arrays.keys()
    )
    told = json.loads((tmp_path / "on" / "progressive.json").read_text())["predictors"]["online"]["triplet"]["total"]
    assert told["accuracy"] > 0.75
    made = Store(tmp_path / "on").latest_artifact("online_kernel")
    assert made.report["learned"] == 2000 and made.report["live_accuracy"] > 0.75 and made.report["mu"]["known"] > 0
    jsonl(tmp_path / "more.jsonl", lines[2000:])
    engine(
        "run",
        tmp_path / "more.jsonl",
        "--state",
        tmp_path / "on",
        "--config",
        tmp_path / "on.toml",
        "--no-refits",
        "--guard",
        "off",
    )
    made = Store(tmp_path / "on").latest_artifact("online_kernel")
    assert made.report["learned"] == 3000
    engine("export", "--state", tmp_path / "on", "--out", tmp_path / "out", "kernel")
    with np.load(tmp_path / "out" / "kernel.npz") as held:
        assert held["L"].shape == (N, 5) and np.linalg.eigvalsh(held["K"])[0] > -1e-9
        number = {name: i for i, name in enumerate(Store(tmp_path / "on").latest().snapshot.objects)}
        ids = np.array([number[name] for name in NAMES], np.int32)[TRIPLETS]
        assert satisfied(held["K"], triplet_rows(ids)) > 0.85
    engine("export", "--state", tmp_path / "on", "--out", tmp_path / "by", "--object-order", "name", "kernel")
    with np.load(tmp_path / "by" / "kernel.npz") as turned, np.load(tmp_path / "out" / "kernel.npz") as held:
        at = [number[name] for name in sorted(NAMES)]
        assert np.array_equal(turned["K"], held["K"][np.ix_(at, at)]) and np.array_equal(turned["L"], held["L"][at])
    (tmp_path / "known.npz").write_bytes(b"PK\x03\x04")
    said = one_line(
        engine("run", events, "--state", tmp_path / "no", "--config", tmp_path / "on.toml", status=1).stderr
    )
    assert "kernel 'known' (known.npz): cannot be read as a numpy file" in said
