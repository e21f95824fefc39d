"""The reservoir of judgements where the laws do not reach: judgements of many comparisons, equal hashes, forgetting.

The laws (tests/laws/test_accumulators.py) have an event a comparison. Here events come as files give them.
"""

import json
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest

from stream_engine.counts.judgement_kernels import ALL
from stream_engine.counts.judgements import Judgements
from stream_engine.data.comparisons import Batch
from stream_engine.data.container import Corrupt
from stream_engine.evaluation.kept_responses import kept_responses
from stream_engine.formats import expand_in_pieces
from stream_engine.formats.json_events import Decoder as JsonDecoder
from stream_engine.formats.options import EventOptions
from stream_engine.state.engine import Engine
from stream_engine.state.forgetting import forget_object, forget_worker
from stream_engine.testing.accumulators import same
from tests.counts.definitions import definition
from tests.support.accumulator_variants import FewJudgements
from tests.support.event_worlds import some_events

TOLD = EventOptions(provenance=True)


class SomeJudgements(Judgements):
    """A reservoir that holds most little worlds in part."""

    bound, most = 40, 6


def lines(events) -> bytes:
    return b"\n".join(json.dumps(event).encode() for event in events)


def engine_of(*blocks, accumulators=("triplet_counts", "judgements")) -> Engine:
    engine = Engine(accumulators, guard=False)
    for block in blocks:
        engine.learn(block)
    return engine


def decoded(events):
    return JsonDecoder(TOLD)(lines(events))


def batch_of(events) -> Batch:
    return engine_of().batch(decoded(events))


def contents(state, objects) -> list[tuple]:
    """(comparisons by name, worker, time, sampler, times) of each judgement, sorted."""
    kept = kept_responses(Engine().snapshot()._replace(arrays={f"judgements/{k}": a for k, a in state.items()}))
    found = []
    for number, times in enumerate(kept.times.tolist()):
        rows = tuple(tuple(objects[i] for i in row) for row in kept.rows[kept.judgement == number].tolist())
        who, how = ([*names, None][i] for names, i in ((kept.worker_names, kept.worker[number]),
                                                       (kept.sampler_names, kept.sampler[number])))  # fmt: skip
        time = float(kept.time[number])
        found.append((rows, who, None if np.isnan(time) else time, how, times))
    return sorted(found, key=repr)


PICK = {"type": "pick", "anchor": "a", "shown": ["b", "c", "d"], "chosen": ["c"], "worker": "w", "time": 5}
ODD = {"type": "odd_one_out", "objects": ["a", "b", "c"], "odd": "c", "sampler": "random"}
PLAIN = {"anchor": "a", "near": "b", "far": "c"}
FOUR = {"type": "quadruplet", "near": ["a", "b"], "far": ["c", "d"], "worker": "v"}


def test_a_judgement_is_an_event_with_all_its_comparisons():
    engine = engine_of(decoded([PICK, ODD, PLAIN, FOUR, PICK, PICK | {"time": 6}]))
    assert contents(engine.accumulators["judgements"].state(), engine.objects.names) == sorted(
        [
            ((("a", "c", "a", "b"), ("a", "c", "a", "d")), "w", 5.0, None, 2),
            ((("a", "c", "a", "b"), ("a", "c", "a", "d")), "w", 6.0, None, 1),
            ((("a", "b", "a", "c"), ("b", "a", "b", "c")), None, None, "random", 1),
            ((("a", "b", "a", "c"),), None, None, None, 1),
            ((("a", "b", "c", "d"),), "v", None, None, 1),
        ],
        key=repr,
    )
    kept = kept_responses(engine.snapshot())
    assert kept.complete and kept.judgement.tolist() == sorted(kept.judgement.tolist())
    assert kept.worker_names == ("v", "w") and kept.sampler_names == ("random",)
    assert kept_responses(Engine(("adds3",)).snapshot()) is None


@pytest.mark.parametrize("told", [{"worker": "w"}, {"time": 5}, {"sampler": "random"}])
def test_what_all_events_say_and_nothing_else_tells_judgements_apart(told):
    said, other = PLAIN | told, PLAIN | {key: f"{value}1" if key != "time" else 6 for key, value in told.items()}
    engine = engine_of(decoded([said, said]), decoded([other, other]), decoded([PLAIN]))
    assert sorted(kept_responses(engine.snapshot()).times.tolist()) == [1, 2, 2]


@pytest.mark.parametrize("kind", [Judgements, SomeJudgements, FewJudgements])
@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_events_in_any_batches_gives_the_definition(kind, seed):
    rng = np.random.default_rng(seed)
    events = [event for event in some_events(seed, 90, faults=False) if event.get("type") != "label"]
    events += [events[int(i)] for i in rng.integers(len(events), size=30)]
    everything = engine_of(decoded(events))
    whole = everything.batch(decoded(events))  # all names are known by now, so all batches have the same ids
    expected = definition(kind, whole)
    assert (int(expected["below"]) < ALL) == (kind is not Judgements)
    assert (expected["larger"] > 0) == (kind is not Judgements)
    shuffled = [events[i] for i in rng.permutation(len(events))]
    parts = [kind(), kind(), kind()]
    for begin in range(0, len(events), 25):
        parts[begin // 25 % 3].update(everything.batch(decoded(shuffled[begin : begin + 25])))
    parts[1].merge(parts[2])
    parts[0].merge(parts[1])
    assert same(parts[0].state(), expected)
    kind.check_state(expected, whole.n_objects)


def test_equal_hashes_are_told_apart_by_contents():
    whole = batch_of([e for e in some_events(3, 60, faults=False) if e.get("type") != "label"])
    whole = whole._replace(
        name_hashes=np.zeros(whole.n_objects, np.uint64),  # with nobody named, every hash is that of its length
        provenance=whole.provenance._replace(
            worker=np.full_like(whole.provenance.worker, -1), sampler=np.full_like(whole.provenance.sampler, -1)
        ),
    )
    made = Judgements()
    made.update(whole)
    state = made.state()
    assert len(np.unique(state["hash"])) < len(state["hash"]) / 2
    assert same(state, definition(Judgements, whole))
    reverse = np.arange(whole.n_objects)[::-1].astype(np.int32)
    other = Judgements()
    other.update(whole._replace(triplets=reverse[whole.triplets], quadruplets=reverse[whole.quadruplets]))
    assert same(Judgements.renamed(state, reverse), other.state())


def test_the_threshold_falls_and_what_lies_below_it_is_whole():
    events = [PLAIN | {"worker": f"w{i}", "time": i} for i in range(300)]
    few = FewJudgements()
    for begin in range(0, 300, 20):
        few.update(batch_of(events[begin : begin + 20]))
    state, everything = few.state(), Judgements()
    everything.update(batch_of(events))
    whole = everything.state()
    assert len(state["rows"]) == 7 and state["below"] == whole["hash"][7]
    assert state["hash"].tolist() == whole["hash"][:7].tolist()
    assert len(few._workers.number) <= 20, "names of workers that are gone are not held"
    assert not kept_responses(engine_of().snapshot()._replace(arrays={f"judgements/{k}": a for k, a in state.items()})
                             ).complete  # fmt: skip


def test_a_judgement_too_large_is_counted_however_it_comes(monkeypatch):
    ranking = {"type": "ranking", "anchor": "a", "ranked": [f"r{i}" for i in range(12)]}
    events = [PLAIN, ranking, FOUR, ranking | {"worker": "w"}, PICK]
    one = engine_of(decoded(events), accumulators=())
    whole = SomeJudgements()
    whole.update(one.batch(decoded(events)))
    monkeypatch.setattr(expand_in_pieces, "COMPARISONS_AT_ONCE", 20)
    pieces, block = SomeJudgements(), decoded(events)
    for part in [block, *block.rest]:
        pieces.update(one.batch(part))
    assert block.rest and same(pieces.state(), whole.state())
    assert whole.state()["larger"] == 2 and len(whole.state()["hash"]) == 3


def test_forgetting_leaves_the_hash():
    engine = engine_of(decoded([PICK, ODD, FOUR]))
    before = engine.snapshot()
    section = before.section("judgements")
    after = forget_object(before, "d").snapshot
    kept = contents(after.section("judgements"), after.objects)
    assert [each[0] for each in kept] == [
        (("a", "b", "a", "c"), ("b", "a", "b", "c")),
        (("a", "c", "a", "b"),),
    ]
    assert set(after.section("judgements")["hash"].tolist()) < set(section["hash"].tolist())
    Judgements.check_state(after.section("judgements"), len(after.objects))
    nameless = forget_worker(before, "w").snapshot  # no worker_votes: the answer stays, the name goes
    assert kept_responses(nameless).worker_names == ("forgotten-1", "v")
    assert np.array_equal(nameless.section("judgements")["hash"], section["hash"])
    again = Engine.restore(before)
    again.learn(decoded([PICK]))
    assert 2 in kept_responses(again.snapshot()).times


def test_a_row_is_a_triplet_or_has_four_objects():
    state = engine_of(decoded([PLAIN])).accumulators["judgements"].state()
    for a, b, c, d in product(range(4), repeat=4):
        good = len({a, b, c, d}) == 4 or (a == c and len({a, b, d}) == 3)
        with nullcontext() if good else pytest.raises(Corrupt, match="^rows"):
            Judgements.check_state(state | {"rows": np.array([[a, b, c, d]], np.int32)}, 4)
