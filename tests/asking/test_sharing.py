"""Who chooses which question: the model as many as it is believed, but for the random share; and questions taken a few
at a time from one model made ready."""

import numpy as np
import pytest

from stream_engine import asking
from stream_engine.asking import at_random
from stream_engine.asking.knowledge import (
    CannotAsk,
    answered_codes,
    codes,
    count_questions,
    no_knowledge,
    with_objects,
    with_pending,
)
from stream_engine.asking.model import model_of
from stream_engine.asking.sharing import choose_mixed, places
from tests.asking.worlds import taught, world
from tests.support.facts import stating

BY_MODEL = list(asking.BY_MODEL)


def counts(made: asking.ChosenQuestions) -> dict[str, int]:
    return dict(zip(*(column.tolist() for column in np.unique(made.sampler, return_counts=True))))


@pytest.mark.parametrize("n, count", [(7, 2), (100, 15), (40, 39.5), (5, 0), (3, 3)])
def test_places_are_spread_and_each_is_as_likely_as_any(n, count):
    drawn = np.array([places(n, count, np.random.default_rng(seed)) for seed in range(2000)])
    assert set(drawn.sum(axis=1)) <= {int(np.floor(count)), int(np.ceil(count))}
    assert np.abs(drawn.mean(axis=0) - count / n).max() < 0.05


@pytest.mark.parametrize("strategy", BY_MODEL)
@pytest.mark.parametrize("share, accuracy, expected", [
    (0.15, 0.8, {"random": 6, "model": 34}),
    (0.0, 0.8, {"model": 40}),
    (1.0, 0.8, {"random": 40}),
    (0.15, 0.71, {"random": 23, "model": 17}),
    (0.15, 0.66, {"random": 40}),
    (0.15, None, {"random": 40}),
])  # fmt: skip
def test_the_model_chooses_as_many_as_it_is_believed(strategy, share, accuracy, expected):
    known = taught(12, 100, accuracy=accuracy)
    made = asking.questions(known, 40, strategy, random_share=share)
    assert counts(made) == {strategy if who == "model" else who: n for who, n in expected.items()}
    assert len(np.unique(codes(made.rows, 12))) == 40 and not np.isin(codes(made.rows, 12), answered_codes(known)).any()


def test_without_an_embedding_all_is_random():
    made = asking.questions(world(12, 100)[1], 40, "information-gain")
    left = count_questions(12) - len(world(12, 100)[1].columns.anchor)
    assert counts(made) == {"random": 40} and np.allclose(made.propensity, 1 / (left - np.arange(40)))


@pytest.mark.parametrize("strategy", ["random", "coverage", "landmark"])
def test_a_design_asks_alone(strategy):
    assert counts(asking.questions(taught(12, 10), 20, strategy)) == {strategy: 20}


def test_propensities_are_how_often_a_question_is_asked():
    """Two questions of a small world are left beside those that the model prefers: at random each is drawn as often as
    its propensity says."""
    known = taught(5, 0, accuracy=0.8)
    code = codes(asking.questions(known, 1, "information-gain", random_share=0.0).rows, 5)[0]
    asked, drawn = (
        np.zeros(count_questions(5)),
        np.sort(np.unique(codes(asking.questions(known, 30, "random").rows, 5))),
    )
    for seed in range(800):
        made = asking.questions(known, 1, "information-gain", seed, random_share=0.4)
        asked[np.searchsorted(drawn, codes(made.rows, 5)[0])] += 1
        if made.sampler[0] == "random":
            assert made.propensity[0] == pytest.approx(0.4 / 30)
        else:
            assert made.propensity[0] == pytest.approx(0.6)
    others = np.delete(asked, np.searchsorted(drawn, code)) / 800
    assert asked.sum() == 800 and others.mean() < 0.03


def test_the_propensity_of_random_questions_rises_as_fewer_are_left():
    known = taught(5, 0)
    made = asking.questions(known, 30, "random")
    assert np.allclose(made.propensity, 1 / np.arange(30, 0, -1))
    made = asking.questions(known, 20, "information-gain", random_share=0.25)
    assert np.allclose(made.propensity[made.sampler == "random"], 0.25 / np.arange(30, 25, -1))
    assert np.isnan(asking.questions(known, 5, "coverage").propensity).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("strategy", BY_MODEL)
def test_no_object_is_the_anchor_of_more_than_its_fair_share(strategy, seed):
    rng = np.random.default_rng(seed)
    objects, n = int(rng.integers(5, 14)), int(rng.integers(1, 60))
    known = taught(objects, int(rng.integers(0, 30)), seed)
    n = min(n, asking.knowledge.questions_left(known))
    made = asking.questions(known, n, strategy, seed)
    chosen = made.rows[made.sampler == strategy, 0]
    free = np.bincount(np.repeat(np.arange(objects), count_questions(objects) // objects), minlength=objects)
    free -= np.bincount(known.columns.anchor, minlength=objects)
    fair = -(-len(chosen) // objects)
    if free.min() >= n:  # nobody runs out
        assert np.bincount(chosen, minlength=objects).max(initial=0) <= fair


# ---- a few at a time


@pytest.mark.parametrize("strategy", ["random", "coverage", "information-gain", "uncertainty"])
def test_taken_a_few_at_a_time_no_question_comes_twice_and_all_come(strategy):
    known = taught(8, 20)
    left = asking.knowledge.questions_left(known)
    ready, seen = asking.prepare(known, strategy, seed=3, first=20), []
    while len(seen) < left:
        made, ready = asking.take(ready, min(7, left - len(seen)))
        seen += codes(made.rows, 8).tolist()
    assert len(set(seen)) == left and not set(seen) & set(answered_codes(known).tolist())
    with pytest.raises(CannotAsk, match=stating("n = 1 … 0")):
        asking.take(ready, 1)


def test_what_was_taken_first_is_what_is_asked_for_at_once():
    known = taught(9, 40)
    ready = asking.prepare(known, "information-gain", 5, first=30)
    at_once, parts = asking.take(ready, 30)[0], []
    for _ in range(10):
        made, ready = asking.take(ready, 3)
        parts.append(made.rows)
    assert np.array_equal(at_once.rows, np.concatenate(parts))
    again, _ = asking.take(asking.prepare(known, "information-gain", 5, first=30), 30)
    assert np.array_equal(at_once.rows, again.rows)
    assert not np.array_equal(at_once.rows, asking.take(asking.prepare(known, "information-gain", 6), 30)[0].rows)


def test_blocks_differ_and_go_on_where_the_last_one_ended():
    ready = asking.prepare(with_objects(no_knowledge(), map(str, range(30))), "coverage", first=30)
    anchors = []
    for _ in range(4):
        made, ready = asking.take(ready, 30)
        anchors.append(made.rows[:, 0].tolist())
        assert sorted(anchors[-1]) == list(range(30)), "every object once before any comes twice"
    assert len({tuple(each) for each in anchors}) == 4


def test_questions_that_wait_for_an_answer_are_not_asked_again():
    known = taught(7, 10)
    first = asking.questions(known, 30, "information-gain")
    again = asking.questions(with_pending(known, first.rows), 30, "information-gain")
    assert not np.isin(codes(first.rows, 7), codes(again.rows, 7)).any()


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_is_between_0_and_1(share):
    with pytest.raises(CannotAsk, match="random.*0.*1"):
        asking.questions(taught(7, 10), 5, random_share=share)


def test_where_the_model_has_too_few_the_rest_is_random_and_nothing_is_asked_twice():
    known = taught(5, 0, accuracy=0.8)
    known = known._replace(model=model_of(known.embedding, known.columns))
    few = asking.questions(known, 4, "information-gain", random_share=0.0).rows

    def some(known, n, rng):
        return few[~np.isin(codes(few, 5), answered_codes(known))][:n]

    asks = {"random": at_random.ask, "uncertainty": some}
    for seed in range(5):
        made = choose_mixed(known, 20, "uncertainty", asks, 0.25, np.random.default_rng(seed))
        by_model = counts(made).get("uncertainty", 0)
        assert 1 <= by_model <= 4 and counts(made)["random"] == 20 - by_model
        assert len(np.unique(codes(made.rows, 5))) == 20
        assert np.allclose(made.propensity[made.sampler == "uncertainty"], 0.75)
        later = made.propensity[made.sampler == "random"]
        assert set(np.round(0.25 / later).astype(int)) <= set(range(10, 31))
