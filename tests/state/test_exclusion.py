"""Participants who are left out: counts as if they had never answered, and everybody again when they are included."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import structlog
from click.testing import CliRunner

from stream_engine.api.reading import read
from stream_engine.commands.input_options import apply_exclusion
from stream_engine.commands.report import command as report
from stream_engine.counts.removal import CannotForget
from stream_engine.service.metrics import Metrics
from stream_engine.service.published_state import PublishedState
from stream_engine.state.artifact import Artifact
from stream_engine.state.exclusion import (
    BadExclusion,
    check_known,
    excluded_of,
    participants_in,
    with_exclusions,
    without,
)
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.support import learned
from tests.support.judged_worlds import counts

N, WORKERS = 9, 6


def events(seed: int = 0, m: int = 240, quadruplets: float = 0.3) -> list[dict]:
    rng = np.random.default_rng(seed)
    points, out = rng.normal(size=(N, 2)), []
    for at in range(m):
        i, j, k, l = (f"o{x}" for x in rng.permutation(N)[:4])
        who = {"worker": f"w{at % WORKERS}", "time": 1000.0 + at}
        if rng.random() < quadruplets:
            out.append({"type": "quadruplet", "near": [i, j], "far": [k, l], **who})
        else:
            a, b, c = (int(name[1:]) for name in (i, j, k))
            nearer = ((points[a] - points[b]) ** 2).sum() < ((points[a] - points[c]) ** 2).sum()
            near, far = (j, k) if nearer else (k, j)
            out.append({"anchor": i, "near": near, "far": far, **who})
    return out


def snapshot_of(lines: list[dict]):
    return encode(learned.snapshot_of(lines, KEPT))[1]


KEPT = ("triplet_counts", "quadruplet_counts", "worker_votes", "judgements", "adds3", "adds4")


def counted(snapshot) -> dict[tuple, int]:
    """Answers by question, in names."""
    named = {tuple(snapshot.objects[i] for i in key): times for key, times in counts(snapshot).items()}
    return {(*sorted(key[:2]), *sorted(key[2:])): times for key, times in named.items()}


def test_the_counts_are_those_of_a_stream_without_them():
    lines = events()
    whole = snapshot_of(lines)
    left = without(whole, ["w2", "w5"])
    alone = snapshot_of([line for line in lines if line["worker"] not in ("w2", "w5")])
    assert counted(left) == counted(alone) and counted(left) != counted(whole)
    assert left.counters["comparisons"] == alone.counters["comparisons"] == 160
    assert (left.sequence, left.digest) == (whole.sequence, whole.digest)
    for name in ("adds3", "adds4"):
        assert np.sort(left.section(name)["w"]).tolist() == np.sort(alone.section(name)["w"]).tolist()
    assert without(whole, ["nobody"]) is whole and without(left, ["w2"]).counters == left.counters


def test_names_come_one_by_one_or_from_a_file(tmp_path):
    (tmp_path / "out.txt").write_text("S07\n\n S09 \n", encoding="utf-8")
    assert participants_in([f"participant=@{tmp_path / 'out.txt'}", "participant=a=b"]) == ["S07", "S09", "a=b"]
    for bad in ("S07", "object=x", "participant=", f"participant=@{tmp_path / 'none'}"):
        with pytest.raises(BadExclusion, match="^--exclude: [^\n]*$"):
            participants_in([bad])


def test_of_an_unknown_participant_the_nearest_names_are_told():
    whole = snapshot_of(events(m=60))
    check_known(["w1"], whole)
    with pytest.raises(BadExclusion, match="'w11'.*w1") as error:
        check_known(["w1", "w11"], whole)
    assert "\n" not in str(error.value)


def test_an_artifact_says_who_was_out_and_what_that_changed():
    def made(accuracy: float, turned: float = 0.0) -> Artifact:
        points = np.random.default_rng(0).normal(size=(N, 2)) @ [
            [np.cos(turned), -np.sin(turned)],
            [np.sin(turned), np.cos(turned)],
        ]
        return Artifact("embedding", "", 1, {}, 0, {"X": points}, {"accuracy": accuracy, "d": 2})

    everybody = made(0.7)
    assert with_exclusions(everybody, (), None) is everybody
    out = with_exclusions(made(0.8, 3.0), ("w3",), everybody)
    assert excluded_of(out) == ("w3",) and excluded_of(everybody) == ()
    before = out.report["excluded"]["before"]
    assert before["accuracy"] == 0.7 and before["participants"] == []
    assert before["distance_correlation"] == pytest.approx(1.0)
    again = with_exclusions(made(0.81), ("w3",), out)
    assert again.report["excluded"]["before"] == before, "a refit of the same participants keeps what it compares with"
    groups = [
        Artifact("clusters", "", 1, {}, 0, {"labels": np.array(labels)}, {"grade": grade, "k": k})
        for labels, grade, k in (([0, 0, 1, 2], "separated", 3), ([0, 0, 1, 1], "clearly separated", 2))
    ]
    told = with_exclusions(groups[1], ("w3",), groups[0]).report["excluded"]["before"]
    assert (told["grade"], told["k"], told["participants"]) == ("separated", 3, [])
    back = with_exclusions(made(0.7), (), again)
    assert excluded_of(back) == () and back.report["excluded"]["before"]["participants"] == ["w3"]


def test_a_state_keeps_everything(tmp_path):
    """Excluded, fitted and reported without; included again, the snapshot is the one before."""
    store = Store(tmp_path)
    store.publish(snapshot_of(events(quadruplets=0.0)))
    assert "2 participants (w1, w2)" in apply_exclusion(store, ("participant=w1", "participant=w2"), ())
    assert "nothing changed" in apply_exclusion(store, ("participant=w1",), ())
    assert store.excluded() == store.published().excluded == ("w1", "w2")
    assert store.published().snapshot.counters["comparisons"] == 160
    assert store.named("latest").counters["comparisons"] == 240
    apply_exclusion(store, (), ("participant=w1",))
    assert store.published().snapshot.counters["comparisons"] == 200
    told = CliRunner().invoke(report, ["--state", str(tmp_path), "--include", "participant=w1"])
    assert told.exit_code == 2 and "w1" in told.output
    apply_exclusion(store, (), ("participant=w2",))
    assert store.published().excluded == () and store.published().snapshot.counters["comparisons"] == 240


def test_who_answered_must_be_known(tmp_path):
    """Else nobody is excluded, though somebody is named; nor from a state to come, which says how to read it."""
    whole = encode(learned.snapshot_of(events(m=60), ("triplet_counts", "judgements", "adds3", "adds4")))[1]
    with pytest.raises(CannotForget, match="w1: cannot be excluded, since the state does not say who answered"):
        without(whole, ["w1"])
    store = Store(tmp_path)
    apply_exclusion(store, ("participant=w1",), ())
    store.publish(whole)
    with pytest.raises(CannotForget, match="--include participant=NAME"):
        store.published()


def test_a_run_shows_who_is_included_again_and_goes_on_where_nobody_can_be_excluded(tmp_path):
    store = Store(tmp_path)
    whole, _ = store.publish(snapshot_of(events(quadruplets=0.0)))
    monitor: Any = SimpleNamespace(use_published=lambda published: None)
    state = PublishedState(store, monitor, Metrics(), structlog.get_logger())
    store.exclude(["w1"])
    state.set_newest(whole)
    store.exclude([], ["w1"])
    state.renew_artifacts()
    assert state.newest and state.newest.snapshot.counters["comparisons"] == 240
    store.exclude(["w1"])
    state.set_newest(encode(learned.snapshot_of(events(m=60), ("triplet_counts", "judgements")))[1])
    assert state.newest.snapshot.counters["comparisons"] == 240


def test_a_study_without_somebody_stands_beside_it():
    lines = [(line["anchor"], line["near"], line["far"]) for line in events(quadruplets=0.0)]
    whole = read(
        [dict(zip(("anchor", "near", "far", "worker"), (*row, f"w{at % 3}"))) for at, row in enumerate(lines)],
        frames="arrow",
    )
    fewer = whole.exclude("w1")
    assert whole.snapshot.counters["comparisons"] == 240 and fewer.snapshot.counters["comparisons"] == 160
    assert fewer.exclude("w2").snapshot.counters["comparisons"] == 80
    assert fewer.exclude("w2").include("w1").published.excluded == ("w2",) and fewer.include() is whole
    with pytest.raises(ValueError, match="w2"):
        fewer.include("w2")
    with pytest.raises(ValueError, match="nobody"):
        whole.exclude("nobody")
