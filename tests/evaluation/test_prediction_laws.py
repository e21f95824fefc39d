"""Laws of prediction before learning, of calibration and of drift: the same whatever the blocks, and the same when
every question is turned round."""

import math
from itertools import pairwise

import numpy as np
import pytest

from stream_engine.data.comparisons import Batch, Kinds
from stream_engine.evaluation.observer import MAX_BATCH, MIN_BATCH, Observer
from stream_engine.evaluation.platt import Calibration
from stream_engine.evaluation.running_scores import KINDS, TESTED, WINDOW, Scores, table
from stream_engine.evaluation.stream_sample import SAMPLED_ONE_IN, SAMPLED_WHOLE, drawn_until, numbers_drawn
from stream_engine.state.engine import Engine
from tests.support.generators import decoded, planted_triplets
from tests.support.planted_similarities import adds3

N, LENGTH = 14, 60_000
TYPES = np.array([0, 1, 2, 4, 5, 0, 2], np.int8)  # of event, by the place of a comparison


def planted_stream():
    """What is learned before, and the stream that follows, triplets with quadruplets among them; after half of it some
    objects are elsewhere."""
    rng = np.random.default_rng(7)
    points = rng.normal(size=(N, 2))
    learned, first = planted_triplets(rng, points, 400, 0.1), planted_triplets(rng, points, LENGTH // 2, 0.1)
    points[:5] = rng.normal(size=(5, 2)) * 3
    rows = np.concatenate([first, planted_triplets(rng, points, LENGTH // 2, 0.1)])
    four = np.array([rng.permutation(N)[:4] for _ in range(LENGTH // 10)], np.int32)
    return learned, rows, four, np.sort(rng.integers(0, len(rows), len(four)))


LEARNED, ROWS, FOUR, AT = planted_stream()
PLACE = AT + np.arange(len(AT))  # of each quadruplet among all comparisons
ALL_OF_IT = len(ROWS) + len(FOUR)


def turned(rows):
    """Near and far the other way round."""
    return rows[:, [0, 2, 1]] if rows.shape[1] == 3 else rows[:, [2, 3, 0, 1]]


def as_is(rows):
    return rows


def block(begin, end, turn=as_is):
    """The comparisons of the stream from this number to that one."""
    (q, r), offset = np.searchsorted(PLACE, [begin, end]), np.array([begin, end])
    t, u = offset - (q, r)
    kinds = Kinds(np.arange(t, u, dtype=np.int32) % 7, np.arange(q, r, dtype=np.int32) % 7, TYPES)
    return Batch(turn(ROWS[t:u]), turn(FOUR[q:r]), AT[q:r] - t, N, None, kinds)


def snapshot(turn=as_is):
    engine = Engine(("adds3", "adds4", "triplet_counts"), False)
    at = np.full(60, len(LEARNED))
    engine.learn(decoded(turn(LEARNED), N)._replace(quadruplets=turn(FOUR[:60]), quadruplet_at=at))
    assert engine.objects.names == [str(i) for i in range(N)]
    return engine.snapshot()


def observed(cuts, turn=as_is):
    """(figures, totals, alarms) of the stream in these blocks; there is a snapshot in the middle."""
    observer, totals, alarms = Observer(0.2, 5000), {}, []
    for begin, end in zip([0, *cuts], [*cuts, ALL_OF_IT], strict=True):
        if begin in (0, ALL_OF_IT // 2):
            observer.serve(snapshot(turn))
        alarms += observer.observe(block(begin, end, turn), totals)
        assert observer.tested <= observer.seen == end and observer.seen - observer.tested < MAX_BATCH * SAMPLED_ONE_IN
    observer.test()
    assert observer.tested == observer.seen
    return observer.figures(), totals, alarms


@pytest.fixture(scope="module")
def whole():
    return observed([ALL_OF_IT // 2])


@pytest.mark.parametrize("seed", range(3))
def test_predictions_calibration_and_alarms_are_the_same_whatever_the_blocks(seed, whole):
    rng = np.random.default_rng(seed)
    size = (5000, 700, 90)[seed]  # about so large, some of one comparison, some of none
    cuts = rng.integers(0, ALL_OF_IT, ALL_OF_IT // size)
    cuts = np.sort(
        np.concatenate([cuts, cuts[:20] + 1, cuts[20:30], [ALL_OF_IT // 2, 1, SAMPLED_WHOLE, SAMPLED_WHOLE + 1]])
    )
    figures, totals, alarms = observed(cuts.tolist()) if seed else observed([1, *cuts.tolist()[1:]])
    assert figures == whole[0]
    assert totals == whole[1]
    assert sorted(alarms) == sorted(whole[2])
    assert figures["drift"]["loss"]["alarms"] > 0 and figures["predictors"].keys() == {"adds3", "adds4", "repeats"}


def test_what_is_predicted_is_a_plain_loop_over_the_sample(whole):
    """By the definition: for each so many of the sample, first predict, then count, then learn."""
    w = adds3(LEARNED, N)
    scale = snapshot_scale()
    drawn = numbers_drawn(0, ALL_OF_IT, np.uint64(0))[0].tolist()
    middle, edges = sum(i < ALL_OF_IT // 2 for i in drawn), [0]
    while edges[-1] < len(drawn):  # up to the snapshot in the middle, and to the end
        after = edges[-1] + min(max(MIN_BATCH, edges[-1] // 8), MAX_BATCH)
        edges.append(min(after, middle if edges[-1] < middle else len(drawn)))
    place, calibration, sums = {int(p): k for k, p in enumerate(PLACE)}, Calibration(), {}
    for begin, end in pairwise(edges):
        xs = []
        for i in drawn[begin:end]:
            if i in place:
                continue
            t = i - int(np.searchsorted(PLACE, i))
            a, b, c = ROWS[t].tolist()
            xs.append((w[a, b] - w[a, c]) / scale)
            p = float(calibration.probability(np.array(xs[-1:]))[0])
            mine = sums.setdefault(int(TYPES[t % 7]), [0, 0.0, 0.0])
            mine[0] += 1
            mine[1] += 1.0 if xs[-1] > 0 else 0.5 if xs[-1] == 0 else 0.0
            mine[2] -= math.log(p)
        calibration.learn(np.array(xs))
    found = whole[0]["predictors"]["adds3"]
    assert whole[0]["sampled"] == len(drawn) and len(sums) == 5
    for kind, (tested, right, loss) in sums.items():
        got = found[KINDS[kind]]["total"]
        assert got["tested"] == tested
        assert got["accuracy"] == pytest.approx(right / tested) and got["log_loss"] == pytest.approx(loss / tested)


def snapshot_scale():
    observer = Observer()
    observer.serve(snapshot())
    return observer.predictors["adds3"].scale


def test_every_question_turned_round_is_predicted_alike(whole):
    """Learned and predicted the other way round: the same figures, the same alarms."""
    figures, totals, alarms = observed([ALL_OF_IT // 2], turned)
    assert totals == whole[1] and alarms == whole[2]
    assert figures["drift"] == whole[0]["drift"] and figures["sampled"] == whole[0]["sampled"]
    for name, kinds in whole[0]["predictors"].items():
        for kind, windows in kinds.items():
            for window, there in windows.items():
                back = figures["predictors"][name][kind][window]
                for figure in ("tested", "accuracy", "log_loss", "calibration_error"):
                    assert back[figure] == pytest.approx(there[figure], rel=1e-9), (name, kind, figure)


@pytest.mark.parametrize(
    "at",
    [
        0,
        1,
        SAMPLED_WHOLE - 1,
        SAMPLED_WHOLE,
        SAMPLED_WHOLE + 1,
        5 * SAMPLED_WHOLE,
        SAMPLED_WHOLE * SAMPLED_ONE_IN - 1,
        SAMPLED_WHOLE * SAMPLED_ONE_IN,
        10**7,
    ],
)
def test_which_are_drawn_does_not_depend_on_where_a_block_begins(at):
    rng = np.random.default_rng(at)
    seed, length = np.uint64(at % 3), 5000
    together, after = numbers_drawn(at, length, seed)
    assert abs(len(together) - (drawn_until(at + length) - drawn_until(at))) <= 1 and (np.diff(together) >= 0).all()
    cuts = np.sort(rng.integers(at, at + length, 40)).tolist()
    parts = [numbers_drawn(a, b - a, seed) for a, b in zip([at, *cuts], [*cuts, at + length], strict=True)]
    np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), together)
    assert parts[-1][1] == after == numbers_drawn(at + length, 20 * SAMPLED_ONE_IN, seed)[0][0]
    assert at >= SAMPLED_WHOLE or together[: SAMPLED_WHOLE - at].tolist() == list(range(at, SAMPLED_WHOLE))


def test_sums_do_not_depend_on_how_they_are_added_and_the_window_is_whole_parts():
    rng = np.random.default_rng(1)
    margin = rng.normal(size=WINDOW * 2)
    p, kind = 1 / (1 + np.exp(-margin)), rng.integers(len(KINDS), size=len(margin))
    totals, rolling = [], []
    for size in (100, 250, 500):  # each divides a twentieth of the window
        scores = Scores()
        for part in np.split(np.arange(len(margin)), len(margin) // size):
            scores.add(table(margin[part], p[part], kind[part]))
        totals.append(scores.total)
        rolling.append(scores.rolling)
    for each in (*totals, *rolling):
        np.testing.assert_allclose(each, totals[0] if each[..., TESTED].sum() > WINDOW else rolling[0], atol=1e-8)
    last = slice(len(margin) - WINDOW, None)
    np.testing.assert_allclose(rolling[0], table(margin[last], p[last], kind[last]), atol=1e-8)
    assert scores.current[..., TESTED].sum() == WINDOW, "of a predictor that is never replaced"
    scores.renew()
    scores.add(table(margin[:300], p[:300], kind[:300]))
    np.testing.assert_allclose(scores.current, table(margin[:300], p[:300], kind[:300]))
