"""How participants answer, whatever they answer: each check against a definition, and each flag against its cause."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import stream_engine
from stream_engine.counts.response_patterns import BOUNDS
from stream_engine.evaluation.participants import check_participants
from stream_engine.evaluation.response_checks import LEVEL, most_chosen, response_checks
from stream_engine.formats.record_columns import records_of
from stream_engine.formats.response_times import response_times
from stream_engine.report.findings import findings
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.state.artifact import Artifact
from tests.support.judged_worlds import PEOPLE

BIASED, FAST, STRAIGHT = "p03", "p07", "p11"


def answers(seed: int, careless: bool, size: int = 60) -> pa.Table:
    """So many answers of each of 15 participants about points on a plane, one of two at random positions; with or
    without one who mostly says left, one who is too fast, and one who says right 30 times in a row."""
    rng, points = np.random.default_rng(seed), np.random.default_rng(5).normal(size=(12, 2))
    rows = []
    for person in PEOPLE:
        for number in range(size):
            a, *shown = rng.choice(12, 3, replace=False).tolist()
            said = shown[int(np.argmin(((points[shown] - points[a]) ** 2).sum(axis=1) + rng.normal(0.0, 0.3, 2)))]
            seconds = rng.lognormal(0.3, 0.4)
            if careless and person == BIASED and rng.random() < 0.8:
                said = shown[0]
            if careless and person == FAST:
                seconds = rng.uniform(0.1, 0.4)
            if careless and person == STRAIGHT and 10 <= number < 40:
                said = shown[1]
            rows.append([person, f"o{a}", *(f"o{each}" for each in (*shown, said)), seconds])
    names = ("participant", "target", "left", "right", "choice", "response_time")
    return pa.table(dict(zip(names, map(list, zip(*rows)))))


@pytest.fixture(scope="module")
def careless() -> tuple[pa.Table, stream_engine.Study]:
    table = answers(0, careless=True)
    return table, stream_engine.read(table, frames="pandas")


def test_the_bound_for_runs_is_no_less_than_their_probability():
    for n, length in product((6, 9), (3, 5)):
        runs = [
            max(map(len, "".join(each).replace("01", "0 1").replace("10", "1 0").split()))
            for each in product("01", repeat=n)
        ]
        assert np.mean(np.array(runs) >= length) <= (n - length + 1) * 0.5 ** (length - 1)


def test_each_careless_participant_is_flagged_for_the_cause_and_nobody_else(careless):
    study = careless[1]
    found = response_checks(study.snapshot, PEOPLE)
    flagged = {
        name: {PEOPLE[i] for i in np.flatnonzero(getattr(found, name) <= LEVEL)}
        for name in ("p_position", "p_run", "p_fast")
    }
    assert BIASED in flagged["p_position"] and flagged["p_position"] <= {BIASED, STRAIGHT}
    assert STRAIGHT in flagged["p_run"] and flagged["p_run"] <= {BIASED, STRAIGHT}
    assert flagged["p_fast"] == {FAST}
    seconds = np.reshape(careless[0].column("response_time"), (len(PEOPLE), -1))
    np.testing.assert_allclose(found.seconds, np.median(seconds, axis=1), rtol=0.1)
    reasons = dict(zip(PEOPLE, check_participants(study.published, False).reasons))
    assert {name for name, why in reasons.items() if why} == {BIASED, FAST, STRAIGHT}
    (told,) = (each for each in findings(Facts(study.published))["participants"] if each.what == "participants_flagged")
    assert told.figures["flagged"] == 3 and told.command == "stream-engine report --state DIR --participants"
    typed = findings(Facts(study.published, Commands(typed="stream-engine report a.csv")))["participants"]
    assert "stream-engine report a.csv --participants" in [each.command for each in typed]
    (weaker,) = (each for each in findings(Facts(study.published))["participants"] if each.what == "weaker_check")
    assert weaker.command == "stream-engine refit --state DIR embedding"
    fitted = study.published._replace(artifacts={"embedding": Artifact("embedding", "", 1, {}, 0, {}, {})})
    assert "weaker_check" not in {each.what for each in findings(Facts(fitted))["participants"]}
    table = study.workers().set_index("worker")
    assert table.loc[FAST, "p_fast"] <= LEVEL and table.loc[FAST, "under_300_ms"] > 0.3
    assert table.loc[STRAIGHT, "longest_run"] >= 30 and table.loc[BIASED, "position"] == 1
    assert set(found.reasons(PEOPLE.index("p00"))) == set()


def test_pace_is_told_by_the_time_between_answers_where_nobody_measured_it():
    table = answers(0, careless=True)
    seconds = np.array(table.column("response_time").to_pylist()).reshape(len(PEOPLE), -1)
    seconds[:, 5] = 0.0  # recorded together
    times = pa.array(1e9 + np.cumsum(seconds).round(3))
    study = stream_engine.read(table.drop_columns("response_time").append_column("time", times))
    found = response_checks(study.snapshot, PEOPLE)
    gaps = np.diff(np.reshape(times, seconds.shape), axis=1)
    kept = [each[each > 0] for each in gaps]
    np.testing.assert_allclose(found.seconds, [np.median(each) for each in kept])
    np.testing.assert_allclose(found.fast, [np.mean(each < 0.3) for each in kept])
    assert not found.timed.any() and {PEOPLE[i] for i in np.flatnonzero(found.p_fast <= LEVEL)} == {FAST}
    quick = table.drop_columns("response_time").append_column("response_time", pa.array([0.004] * len(table)))
    found = response_checks(stream_engine.read(quick).snapshot, PEOPLE)
    np.testing.assert_allclose(found.seconds, BOUNDS[0] / 2000)  # the middle of the first of its bins


def test_who_is_excluded_is_not_compared_with(careless):
    fewer = careless[1].exclude(BIASED, FAST, STRAIGHT)
    checks = check_participants(fewer.published, False)
    assert len(checks.names) == 12
    assert checks.flagged == 0
    assert checks.responding.shown.all()


def test_nobody_is_flagged_where_the_order_of_a_file_carries_the_answer():
    """The first of the two is always chosen: that says something of the file, and nothing of participants."""
    table = answers(1, careless=False)
    first = table.column("choice")
    second = [
        left if said == right else right
        for left, right, said in zip(*(table.column(name).to_pylist() for name in ("left", "right", "choice")))
    ]
    found = response_checks(
        stream_engine.read(table.set_column(2, "left", first).set_column(3, "right", [second])).snapshot, PEOPLE
    )
    assert (found.share == 1.0).all()
    assert (found.p_position == 1.0).all()
    assert (found.p_run == 1.0).all()


def test_answers_without_positions_and_times_are_not_checked():
    table = answers(0, careless=True)
    far = [
        left if said == right else right
        for left, right, said in zip(*(table.column(name).to_pylist() for name in ("left", "right", "choice")))
    ]
    plain = pa.table(
        {
            "worker": table.column("participant"),
            "anchor": table.column("target"),
            "near": table.column("choice"),
            "far": far,
        }
    )
    study = stream_engine.read(plain)
    assert not len(study.snapshot.section("response_patterns")["n"])
    found = response_checks(study.snapshot, PEOPLE)
    assert not found.shown.any()
    assert np.isnan(found.seconds).all()
    assert not any(map(found.reasons, range(15)))


@pytest.mark.parametrize(
    "name, values, field",
    [
        ("rt", ["812", "1204", "650"], "milliseconds"),
        ("rt", ["0.812", "1.204", "NA"], "seconds"),
        ("key_resp.rt", ["0.812", "1.204", "0.65"], "seconds"),
        ("Reaction Time", ["812", "1204", "650"], "milliseconds"),
        ("response_time_ms", ["12", "20", "31"], "milliseconds"),
        ("network_latency", ["0.8", "1.2", "0.6"], None),
        ("rt", ["a", "b", "c"], None),
        ("seconds", ["1", "2", "3"], None),  # a field of events already
    ],
)
def test_the_column_of_response_times_and_its_unit(name, values, field):
    found = response_times(records_of({"target": ["a", "b", "c"], name: values}))
    assert (found and found[0]) == field


def of_shares(shares, n_each):
    """Rows of participants, each of whom chooses the first of two objects with a share of the answers."""
    first = np.round(np.asarray(shares) * n_each).astype(int)
    worker = np.repeat(np.arange(len(shares)), 2)
    return most_chosen(
        worker, np.full(len(worker), 2), np.tile([0, 1], len(shares)), np.stack([first, n_each - first], 1).ravel()
    )


@pytest.mark.parametrize(
    ("shares", "n_each", "preferred"),
    [
        ([0.58, 0.62] * 12, 40, True),
        ([0.55, 0.65] * 3, 100, True),
        ([0.04, 0.96] * 12 + [0.96], 40, False),  # participants differ in what they prefer
        ([1.0] * 3 + [0.5] * 22, 40, False),  # three of them do, who are flagged by name
        ([1.0] + [0.5] * 4, 200, False),
        ([0.52] * 24, 4000, False),  # certain, and harmless
        ([0.53, 0.55] * 12, 10, False),
    ],
)
def test_a_position_is_preferred_if_participants_in_common_choose_it(shares, n_each, preferred):
    found = of_shares(shares, n_each)
    assert (found is not None) == preferred
    assert not preferred or (found.position, found.shown, found.answers) == (0, 2, n_each * len(shares))
