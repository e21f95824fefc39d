"""Participants whose responses are those of another one: planted copies are named, honest studies have none."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

from stream_engine.evaluation.copied_participants import copied_participants
from stream_engine.evaluation.kept_responses import KeptResponses, kept_responses
from tests.support.learned import snapshot_of

N_OBJECTS = 20


def study(rng, people: int, n: int, slip: float, lists: int = 0, kinds: int = 1) -> list[list[dict]]:
    """The answers of each participant, of whom each answers n questions: everybody other ones, or one of so many lists
    in turn. An answer is the other way round with probability `slip`; so many kinds of participants have maps of their
    own."""
    maps = rng.normal(size=(kinds, N_OBJECTS, 2))
    drawn = [rng.permuted(np.tile(np.arange(N_OBJECTS), (n, 1)), axis=1)[:, :3] for _ in range(lists or people)]
    answered = []
    for who in range(people):
        a, b, c = drawn[who % len(drawn)].T
        x = maps[who % kinds]
        nearer = np.linalg.norm(x[a] - x[b], axis=1) < np.linalg.norm(x[a] - x[c], axis=1)
        nearer ^= rng.random(n) < slip
        near, far = np.where(nearer, b, c), np.where(nearer, c, b)
        rows = zip(a.tolist(), near.tolist(), far.tolist())
        answered.append([{"anchor": i, "near": j, "far": k, "worker": f"w{who:02d}"} for i, j, k in rows])
    return answered


def kept(answered: list[list[dict]]) -> KeptResponses:
    """As a snapshot keeps them, in which equal responses are one."""
    names = sorted({event["worker"] for events in answered for event in events})
    given = [(e["anchor"], e["near"], e["far"], names.index(e["worker"])) for events in answered for e in events]
    a, b, c, who = np.unique(np.array(given), axis=0).T
    n, none = len(a), np.full(len(a), -1, np.int32)
    return KeptResponses(
        np.stack([a, b, a, c], axis=1).astype(np.int32), np.arange(n, dtype=np.int32), np.ones(n, np.int64),
        who.astype(np.int32), tuple(names), np.full(n, np.nan), none, (), True,
    )  # fmt: skip


def as_somebody_else(events: list[dict], name: str) -> list[dict]:
    return [event | {"worker": name} for event in events]


DESIGNS = {  # of honest studies: options of `study`
    "own questions": {"slip": 0.02},
    "one list, little agreement": {"slip": 0.2, "lists": 1},
    "one list, much agreement": {"slip": 0.025, "lists": 1},  # two agree in 95 % of their answers
    "one list, no disagreement": {"slip": 0.0, "lists": 1},
    "several lists": {"slip": 0.025, "lists": 4},
    "two kinds of participants": {"slip": 0.025, "lists": 1, "kinds": 2},
}


@pytest.mark.parametrize("design", DESIGNS)
def test_honest_studies_have_no_copies(design):
    """A hundred studies of 12 to 40 participants."""
    rng = np.random.default_rng(len(design))
    for _ in range(100 // len(DESIGNS) + 1):
        people, n = int(rng.integers(12, 41)), int(rng.choice([20, 60, 200]))
        assert copied_participants(kept(study(rng, people, n, **DESIGNS[design]))) == []


@pytest.mark.parametrize("slip", [0.0, 0.1])
def test_a_copy_of_questions_that_nobody_else_has_is_named(slip):
    answered = study(np.random.default_rng(1), 18, 60, slip)
    (copy,) = copied_participants(kept([*answered, as_somebody_else(answered[6], "z")]))
    assert (copy.name, copy.original, copy.because) == ("z", "w06", "questions")
    assert copy.responses == len({tuple(each.values()) for each in answered[6]})


def test_who_answers_the_same_questions_otherwise_is_no_copy():
    """As somebody in the place of a participant who was left out, and gets their questions."""
    rng = np.random.default_rng(2)
    answered = study(rng, 18, 60, 0.05)
    other = [e | {"near": e["far"], "far": e["near"]} if rng.random() < 0.1 else e for e in answered[6]]
    assert copied_participants(kept([*answered, as_somebody_else(other, "z")])) == []


def test_a_copy_among_participants_with_the_same_questions_is_more_alike_than_agreement_explains():
    """The p-value is that of a binomial test, for every pair of participants."""
    answered = study(np.random.default_rng(3), 15, 80, 0.2, lists=1)
    everybody = [*answered, as_somebody_else(answered[4], "z")]
    (copy,) = copied_participants(kept(everybody))
    assert (copy.name, copy.original, copy.because) == ("z", "w04", "answers")
    given = {events[0]["worker"]: [(e["anchor"], e["near"], e["far"]) for e in events] for events in everybody}
    alike = [
        np.mean([one == other for one, other in zip(given[i], given[j])])
        for i, j in combinations(given, 2)
        if (i, j) != ("w04", "z")
    ]
    pairs = len(alike) + 1
    low, high = (pairs * binom.sf(79, 80, np.mean(alike) + more) for more in (0.0, 3 * np.std(alike)))
    assert low / 1.5 <= copy.p_value <= min(high, 0.01)  # agreement differs between pairs, and is not underestimated


def timed(answered: list[list[dict]], rng) -> list[list[dict]]:
    return [[event | {"time": round(float(rng.uniform(1e9, 2e9)), 2)} for event in events] for events in answered]


def of_snapshot(answered: list[list[dict]]) -> KeptResponses | None:
    return kept_responses(snapshot_of([event for events in answered for event in events]))


def test_equal_times_show_a_copy_where_all_agree():
    rng = np.random.default_rng(4)
    answered = study(rng, 14, 40, 0.0, lists=1)
    named = [[{**e, **{key: f"o{e[key]}" for key in ("anchor", "near", "far")}} for e in each] for each in answered]
    with_times = timed(named, rng)
    (copy,) = copied_participants(of_snapshot([*with_times, as_somebody_else(with_times[3], "z")]))
    assert (copy.name, copy.original, copy.because) == ("z", "w03", "times")
    other_times = timed([as_somebody_else(named[3], "z")], rng)
    assert copied_participants(of_snapshot(with_times + other_times)) == []


def test_responses_with_several_comparisons_are_one_question_each():
    """Odd-one-out: which objects are shown is the question, whichever is chosen."""
    rng = np.random.default_rng(5)
    shown = [[f"o{i}" for i in rng.choice(N_OBJECTS, 3, replace=False)] for _ in range(50)]
    events = [
        {"type": "odd_one_out", "objects": three, "odd": three[int(rng.integers(3))], "worker": f"w{who}"}
        for who in range(9)
        for three in shown
    ]
    copy = [event | {"worker": "z"} for event in events if event["worker"] == "w5"]
    (found,) = copied_participants(kept_responses(snapshot_of(events + copy)))
    assert (found.name, found.original, found.because) == ("z", "w5", "answers")
    assert copied_participants(kept_responses(snapshot_of(events))) == []


def test_nothing_is_said_of_a_sample():
    answered = study(np.random.default_rng(1), 18, 60, 0.0)
    everybody = kept([*answered, as_somebody_else(answered[6], "z")])
    assert copied_participants(everybody._replace(complete=False)) == copied_participants(None) == []
