"""What follows from the accepted order is not asked by a model: from a snapshot's own order."""

import numpy as np
import pytest

from stream_engine import Engine, asking
from stream_engine.asking import implied_questions
from stream_engine.asking.knowledge import knowledge_of
from stream_engine.data.comparisons import Triplet
from stream_engine.order.partial_order import PartialOrder
from tests.asking.worlds import artifact
from tests.support.generators import planted_triplets
from tests.support.order_reference import slow


def answered(n: int, size: int, guard: bool = True, seed: int = 0):
    """A snapshot of noisy answers about points on a plane, and the points."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    engine = Engine(["triplet_counts"], guard=guard)
    engine.objects.ids([f"o{i}" for i in range(n)])
    rows = planted_triplets(rng, points, size, 0.15).tolist()
    engine.learn_many([Triplet(*(f"o{i}" for i in row)) for row in rows])
    return engine.snapshot(), points


def test_it_is_the_closure_of_what_the_guard_keeps():
    snapshot, _ = answered(6, 25)
    true = slow(PartialOrder.from_state(snapshot.section("partial_order")).kept(), 6)
    rows, follow = np.array(list(true)), [answer != 0 for answer in true.values()]
    implied_by = knowledge_of(snapshot).implied
    assert implied_by(rows).tolist() == implied_by(rows[:, [0, 2, 1]]).tolist() == follow
    assert 0 < sum(follow) < len(rows)


def test_a_model_asks_nothing_that_follows_and_the_random_share_is_not_thinned():
    snapshot, points = answered(12, 120)
    known = knowledge_of(snapshot, artifact(points))
    made = asking.questions(known, 200, "information-gain", random_share=0.3)
    by_model = made.sampler == "information-gain"
    assert by_model.sum() > 100 and not known.implied(made.rows[by_model]).any()
    assert known.implied(made.rows[~by_model]).any()
    unaware = asking.questions(known._replace(implied=None), 200, "information-gain", random_share=0.3)
    assert known.implied(unaware.rows[unaware.sampler == "information-gain"]).any()


def test_where_all_follows_the_rest_is_random():
    snapshot, points = answered(4, 400)
    known = knowledge_of(snapshot, artifact(points))._replace(implied=lambda rows: np.ones(len(rows), bool))
    left = asking.questions_left(known)
    assert left == 0 or (asking.questions(known, left).sampler == "random").all()


def test_no_order_or_too_large_a_one_leaves_nothing_out(monkeypatch):
    assert knowledge_of(answered(6, 25, False)[0]).implied is None
    monkeypatch.setattr(implied_questions, "MAX_BLOCKED_COMPARISONS", 5)
    assert knowledge_of(answered(6, 25)[0]).implied is None


def test_an_order_with_a_cycle_is_told_when_it_is_looked_at():
    snapshot, points = answered(6, 25)
    cycle = np.array([[0, 1, 0, 2], [0, 2, 0, 3], [0, 3, 0, 1]], np.int32)
    broken = snapshot._replace(arrays={**snapshot.arrays, "partial_order/kept": cycle})
    known = knowledge_of(broken, artifact(points))
    with pytest.raises(asking.CannotAsk, match="^ask: partial_order: .*cycle"):
        asking.questions(known, 20, "information-gain")
    for without_model in ("random", asking.DEFAULT):
        assert len(asking.questions(known, 20, without_model).rows) == 20
