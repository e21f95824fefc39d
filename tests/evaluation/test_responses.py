"""What can be held out: whole judgements, by names alone; counts without them, against a recount."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine import Engine, Triplet
from stream_engine.counts.worker_votes import WorkerVotes
from stream_engine.data.comparisons import empty_batch
from stream_engine.data.triplet_columns import columns_from_triplets, state_of_columns
from stream_engine.evaluation import cross_fit
from stream_engine.evaluation import responses as folds
from stream_engine.evaluation.answers import counted_answers
from stream_engine.evaluation.counts_without import without
from stream_engine.evaluation.hash_split import name_hashes
from stream_engine.state.snapshot import Snapshot
from tests.support.judged_worlds import World, counts, world


def evidence(made: World, seed: int = 0, **changed) -> folds.Responses:
    return folds.of_judgements(made.judgements._replace(**changed), name_hashes(made.names, seed), seed)


def part_of(found: folds.Responses) -> np.ndarray:
    """The part of each unit in the first group of folds."""
    return cross_fit.plan(found).responses[0].part


def once(made: World) -> World:
    """The same world with every judgement given once."""
    return made._replace(judgements=made.judgements._replace(times=np.ones_like(made.judgements.times)))


def counted(rows: np.ndarray, names: tuple[str, ...]) -> Snapshot:
    """A snapshot that counted these rows, in plain Python where they are quadruplets."""
    n, three = len(names), rows[:, 0] == rows[:, 2]
    columns = columns_from_triplets(rows[three][:, [0, 1, 3]], n)
    arrays = {f"triplet_counts/{key}": array for key, array in state_of_columns(columns).items()}
    said = Counter((tuple(sorted(r[:2])), tuple(sorted(r[2:]))) for r in rows[~three].tolist())
    keys = sorted({tuple(sorted(key)) for key in said})
    arrays |= {
        f"quadruplet_counts/{c}": np.array([(p + q)[a] for p, q in keys], np.int32) for a, c in enumerate("ijkl")
    }
    arrays["quadruplet_counts/n_lo"] = np.array([said[p, q] for p, q in keys], np.int32)
    arrays["quadruplet_counts/n_hi"] = np.array([said[q, p] for p, q in keys], np.int32)
    return Snapshot(1, {}, names, {}, {}, {"guard": "first"}, arrays)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.4]))
@settings(max_examples=40, deadline=None)
def test_counts_without_some_judgements_are_a_recount_of_the_others(seed, quadruplets):
    """Triplets and quadruplets of the judgements that stay, in canonical form."""
    made = world(seed, n=6, screens=25, shown=4, quadruplets=quadruplets, repeats=0.3)
    found, rng = evidence(made), np.random.default_rng(seed)
    out = rng.random(len(found.draw)) < rng.choice([0.2, 0.8, 1.0])
    whole = counted(made.rows(), made.names)
    after = without(whole, found.answers.of_responses(out))
    kept = found.answers.without(out)
    again = counted(np.repeat(kept.rows, kept.times.astype(int), axis=0), made.names)
    for name, array in again.arrays.items():
        assert np.array_equal(after.arrays[name], array), name


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_no_judgement_or_worker_is_on_both_sides(seed):
    """Seen in the counts that training gets, not in the bookkeeping: nothing that was held out is left in them."""
    made = world(seed, screens=150, repeats=0.4)
    found = evidence(made)
    plan = cross_fit.plan(found)
    whole, kept = counted(made.rows(), made.names), made.judgements
    copied, _, times = folds._copies(kept)
    assert np.array_equal(np.bincount(copied, times), kept.times)
    for group in plan.responses[:2] + plan.participants[:2]:
        assert group.part.shape == copied.shape
        assert {folds.FIT, folds.CHOOSE, folds.HELD} == set(group.part.tolist())
        for held in (group.part > folds.FIT, group.part > folds.CHOOSE, *group.folds):
            training = counts(without(whole, found.answers.of_responses(held)))
            others = Counter()
            for unit, number in enumerate(copied.tolist()):
                for row in kept.rows[kept.judgement == number].tolist():
                    others[tuple(row)] += int(times[unit]) * int(not held[unit])
            assert training == {key: times for key, times in others.items() if times}
    worker = kept.worker[copied]
    for group in plan.participants:
        for held in (group.part == folds.HELD, *group.folds):
            out = set(worker[held].tolist())
            assert out
            assert -1 not in out
            assert not out & set(worker[~held].tolist())


def test_equal_answers_of_people_without_a_name_are_held_out_one_by_one(monkeypatch):
    """Nine people say near and three say far: both sides lose their share, so that the majority stays what it is."""
    lines = [(f"a{i}", f"b{i}", f"c{i}") for i in range(60)]
    engine = Engine()
    engine.learn_many([Triplet(a, *((b, c) if place < 9 else (c, b))) for a, b, c in lines for place in range(12)])
    snapshot = engine.snapshot()
    found = folds.responses_of(snapshot, 0)
    assert len(found.draw) == 60 * (folds.MAX_COPIES + 3) and sorted(set(found.answers.times)) == [1, 2]
    training = counts(without(snapshot, found.answers.of_responses(found.draw < 0.3)))
    kept = {way: [n for (_, i, _, j), n in training.items() if (i < j) == way] for way in (True, False)}
    for each, all_of_them in ((kept[True], 540), (kept[False], 180)):
        assert abs(sum(each) - 0.7 * all_of_them) < 0.1 * all_of_them
    monkeypatch.setattr(folds, "MAX_COPIED_ROWS", 10)
    few = folds.responses_of(snapshot, 0)
    assert len(few.draw) == 60 * (2 + 2) and few.answers.times.sum() == found.answers.times.sum() == 720


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_where_a_judgement_goes_depends_on_names_alone(seed):
    """Other ids, another order of comparisons within a judgement, and a stream that went on: it stays where it was."""
    rng, made = np.random.default_rng(seed), once(world(seed, screens=60))
    kept, n = made.judgements, len(made.names)
    found = evidence(made)
    new_id = rng.permutation(n).astype(np.int32)
    shuffled = np.lexsort((rng.random(len(kept.rows)), kept.judgement))
    moved = kept._replace(rows=new_id[kept.rows][shuffled])
    names = tuple(made.names[i] for i in np.argsort(new_id))
    again = folds.of_judgements(moved, name_hashes(names, 0), 0)
    assert np.array_equal(again.draw, found.draw)
    assert np.array_equal(part_of(again), part_of(found))
    early = kept.judgement < 30
    before = evidence(
        made,
        rows=kept.rows[early],
        judgement=kept.judgement[early],
        times=kept.times[:30],
        worker=kept.worker[:30],
        time=kept.time[:30],
    )
    assert np.array_equal(before.draw, found.draw[:30])
    assert not np.array_equal(evidence(made, seed=1).draw, found.draw)
    assert len(np.unique(found.draw)) > 50


def test_a_sample_of_judgements_cannot_hold_out_a_worker():
    """What the sample does not hold of them goes on training, so no figure may say they were never heard."""
    made = world(3, screens=150, repeats=0.5)
    assert cross_fit.plan(evidence(made)).participants
    plan = cross_fit.plan(evidence(made, complete=False))
    assert plan.responses and not plan.participants
    for few in (cross_fit.MIN_PARTICIPANTS - 1, 0):
        plan = cross_fit.plan(evidence(world(3, screens=150, workers=few)))
        assert plan.responses and not plan.participants


def test_a_worker_who_gave_half_of_the_answers_is_not_held_out():
    made = world(9, screens=200, workers=10)
    worker = np.where(np.arange(200) % 3, 0, made.judgements.worker).astype(np.int32)
    for seed in range(20):
        found = evidence(made, seed=seed, worker=worker)
        out = np.any([held for group in cross_fit.plan(found).participants for held in group.folds], axis=0)
        assert 0 < out.mean() <= 0.5 and 0 not in found.participant[out]


def test_comparisons_alone_are_held_out_with_their_reverses():
    made = world(2, n=6, screens=40, quadruplets=0.3, shown=4)
    snapshot = counted(made.rows(), made.names)
    found = folds.responses_of(snapshot, 0)
    assert found.by == "comparisons"
    said = {tuple(row): times for row, times in zip(found.answers.rows.tolist(), found.answers.times.tolist())}
    assert said == counts(snapshot)
    held = part_of(found)[found.answers.response] > folds.FIT
    where = {}
    for row, out in zip(found.answers.rows.tolist(), held.tolist()):
        pairs = frozenset({(*sorted(row[:2]),), (*sorted(row[2:]),)})
        assert where.setdefault(pairs, out) == out
    assert set(where.values()) == {True, False}


@pytest.mark.parametrize("n", [0, 3])
def test_nothing_to_hold_out(n):
    snapshot = counted(np.empty((0, 4), np.int32), tuple("abc"[:n]))
    found = folds.responses_of(snapshot, 0)
    assert len(found.answers.rows) == 0
    assert len(part_of(found)) == 0
    assert cross_fit.plan(found).responses[0].folds == ()
    assert counts(without(snapshot, found.answers)) == {}


@pytest.mark.parametrize("asked_so", [0.15, 0.6])
def test_judgements_that_a_model_chose_neither_choose_nor_are_reported(asked_so):
    made = once(world(3, screens=3000, workers=0, repeats=0.0))
    units = len(made.judgements.times)
    rng = np.random.default_rng(0)
    names = ("coverage", "information-gain", "random")
    fair = rng.random(units) < asked_so
    sampler = np.where(fair, rng.choice([-1, 0, 2], units), 1).astype(np.int32)
    found = evidence(made, sampler=sampler, sampler_names=names, complete=False)
    groups = cross_fit.plan(found).responses
    part = groups[0].part
    assert set(np.unique(part[~fair])) == {folds.FIT}
    assert abs((part == folds.HELD).sum() - units * asked_so * 0.2) < 0.03 * units
    outside = fair & (part != folds.HELD)
    chooses = min(0.2 * (part != folds.HELD).sum() / outside.sum(), folds.MAX_VALIDATION_SHARE)
    assert abs((part[outside] == folds.CHOOSE).mean() - chooses) < 0.05
    out = [held for group in groups for held in group.folds]
    assert not np.any(out, axis=0)[~fair].any() and np.sum(out, axis=0).max() == 1
    few = np.where(np.arange(units) < folds.ENOUGH_WITHOUT_MODEL - 1, 0, 1).astype(np.int32)
    assert np.array_equal(part_of(evidence(made, sampler=few, sampler_names=names)), part_of(evidence(made))), (
        "too few asked without a model hold out nothing alone"
    )


def test_few_units_are_validated_in_further_sets():
    """As large as the first one, of the training set alone, without common units, and until enough were validated."""
    made = once(world(3, screens=300, workers=0, repeats=0.0))
    units = len(made.judgements.times)
    sampler = np.where(np.arange(units) < 220, -1, 1).astype(np.int32)
    asked = {"sampler": sampler, "sampler_names": ("coverage", "information-gain"), "complete": False}
    for found, fair in ((evidence(made), np.ones(units, bool)), (evidence(made, **asked), sampler == -1)):
        part = part_of(found)
        size = int((part == folds.CHOOSE).sum())
        sets = folds.further_validation_sets(found, part)
        available = int(((part == folds.FIT) & fair).sum())
        assert len(sets) == min(np.ceil(200 / size) - 1, available // size) > 1
        assert [int(each.sum()) for each in sets] == [size] * len(sets)
        assert np.sum(sets, axis=0).max() == 1
        assert set(part[np.any(sets, axis=0)]) == {folds.FIT}
        assert fair[np.any(sets, axis=0)].all()
    many = evidence(once(world(3, screens=1300, workers=0, repeats=0.0)))
    assert folds.further_validation_sets(many, part_of(many)) == []
    none = np.full(units, folds.FIT, np.int8)
    assert folds.further_validation_sets(evidence(made), none) == []


@pytest.mark.parametrize("by_participant", [True, False])
def test_votes_are_the_answers_where_triplets_are_not_counted(by_participant):
    votes = WorkerVotes()
    batch = empty_batch(3)._replace(triplets=np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2]], np.int32))
    votes.update(batch)
    arrays = {f"worker_votes/{name}": array for name, array in votes.state().items()}
    answers = counted_answers(Snapshot(1, {}, ["a", "b", "c"], {}, {}, {}, arrays), by_participant)
    assert answers.times.sum() == 3 and (answers.participant == -1).all() and answers.participants == ()
