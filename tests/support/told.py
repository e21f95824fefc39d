"""Definitions of what is told, from the raw events, that share nothing with the product.

`TOLD` has a plain definition for each array and column of each export: a function of the world and of what a row is
about, by name. What only a fit can know is recomputed from the other arrays of its artifact where a formula links them.
"""

import json
import re
from collections import Counter, defaultdict
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from stream_engine.data.packed_names import pack_names
from stream_engine.state import artifact as artifacts
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from tests.support.crafted_worlds import artifacts_of, state
from tests.support.session_store import once

NAMES = [*"dacbfe", "g h", "é"]
HALF_LIFE, WINDOW = 50.0, 40  # of `state`


def events(names=NAMES, size: int = 200, people: int = 4, wrong: float = 0.15) -> list[dict]:
    """Triplets alone and with votes, picks, odd ones out, quadruplets, labels and catch trials, by people and nobody,
    with and without weights, times, response times and samplers; one object has no label."""
    rng, made = np.random.default_rng(5), []
    place = dict(zip(names, rng.permutation(len(names))))
    for number in range(size):
        a, b, c, d = (str(name) for name in rng.permutation(names)[:4])
        near, far = (b, c) if (abs(place[a] - place[b]) < abs(place[a] - place[c])) ^ (rng.random() < wrong) else (c, b)
        triplet = {"anchor": a, "near": near, "far": far}
        shown = [str(name) for name in rng.permutation([b, c, d])]
        if number % 4 < 2:  # two participants answer at another position than others
            shown.insert(number % 4 + 1, shown.pop(shown.index(near)))
        event = [
            triplet,
            triplet,
            triplet | {"n_near": 2 + number % 2, "n_far": 1},
            {"type": "pick", "anchor": a, "shown": shown, "chosen": [near]},
            {"type": "odd_one_out", "objects": shown, "odd": shown[number % 3 if number % 4 else 1]},
            {"type": "quadruplet", "near": [a, b], "far": [c, d]},
            {"type": "label", "object": a, "label": f"class {place[a] % 2}"},
        ][number % 7 if number % 21 < 19 and (a != names[-1] or number % 7 != 6) else 0]
        if rng.random() < 0.8:
            event = event | {"worker": f"w{number % people}", "time": 1000.0 + number // 2, "weight": float(number % 3)}
        if rng.random() < 0.8:
            event = event | {"sampler": ["random", "model"][number % 2], "milliseconds": int(rng.integers(200, 2000))}
        made.append(event)
    return made


def said(event: dict) -> list[tuple[str, str, str, str]]:
    """The comparisons d(i, j) < d(k, l) of an event; a triplet's anchor is i and k."""
    kind = event.get("type", "triplet")
    if kind == "triplet":
        a, near, far = event["anchor"], event["near"], event["far"]
        return [(a, near, a, far)] * event.get("n_near", 1) + [(a, far, a, near)] * event.get("n_far", 0)
    if kind == "pick":
        (near,) = event["chosen"]
        return [(event["anchor"], near, event["anchor"], far) for far in event["shown"] if far != near]
    if kind == "odd_one_out":
        odd, (a, b) = event["odd"], [name for name in event["objects"] if name != event["odd"]]
        return [(a, b, a, odd), (b, a, b, odd)]
    return [(*event["near"], *event["far"])] if kind == "quadruplet" else []


class World:
    """The comparisons as they were said, each with its event, and the arrays and reports of artifacts."""

    def __init__(self, published: Published, made: list[dict]):
        self.events = made
        self.people = sorted({event["worker"] for event in made if "worker" in event})
        self.names = list(published.snapshot.objects)
        self.row = {name: i for i, name in enumerate(self.names)}
        self.said = [(rows, event) for event in made for rows in said(event)]
        self.triplets = [((i, j, l), event) for (i, j, k, l), event in self.said if i == k]
        self.four = [rows for rows, _ in self.said if rows[0] != rows[2]]
        self.fits = {
            kind: SimpleNamespace(report=each.report, params=each.params, **each.arrays)
            for kind, each in published.artifacts.items()
        }
        workers = self.fits["reliability"]
        who = bytes(workers.utf8).decode()
        self.workers = [who[a:b] for a, b in zip(workers.offsets, workers.offsets[1:])]
        newest = len(self.triplets)
        trust = dict(zip(self.workers, np.maximum(2 * workers.accuracy - 1, 0)))
        self.counted = {  # the weight of each triplet, by how they are counted
            "": np.ones(newest),
            "_window": np.arange(newest) >= newest - WINDOW,
            "_decayed": 2.0 ** -((newest - 1 - np.arange(newest)) / HALF_LIFE),
            "_weighted": np.array([event.get("weight", 1.0) for _, event in self.triplets]),
            "_trusted": np.array([trust[event.get("worker", "")] for _, event in self.triplets]),
        }
        self.votes = {how: Counter() for how in self.counted}
        for how, weights in self.counted.items():
            for (rows, _), weight in zip(self.triplets, weights):
                self.votes[how][rows] += weight
        self.similarity = {}
        for how, votes in self.votes.items():
            w = self.similarity[how] = defaultdict(float)
            for (a, near, far), weight in votes.items():
                for x, y, sign in ((a, near, 1), (near, a, 1), (a, far, -1), (far, a, -1)):
                    w[x, y] += sign * weight
        self.similarity4 = defaultdict(float, self.similarity[""])
        for i, j, k, l in self.four:
            for x, y, sign in ((i, j, 1), (j, i, 1), (k, l, -1), (l, k, -1)):
                self.similarity4[x, y] += sign
        self.named = [(rows, event) for rows, event in self.said if rows[0] == rows[2]]

    def margin(self, anchor: str, lo: str, hi: str) -> float:
        """AddS-3 of all answers but those to this question."""
        votes, w = self.votes[""], self.similarity[""]
        net = votes[anchor, lo, hi] - votes[anchor, hi, lo]
        return w[anchor, lo] - w[anchor, hi] - 2 * net

    def questions(self) -> dict[tuple, tuple[float, float]]:
        """(anchor, lo, hi) by number -> how often lo and hi were nearer."""
        votes = self.votes[""]
        keys = {(a, *sorted((b, c), key=self.row.get)) for a, b, c in votes}
        return {(a, lo, hi): (votes[a, lo, hi], votes[a, hi, lo]) for a, lo, hi in keys}

    def predicted(self, anchor: str, lo: str, hi: str) -> float:
        """The share of answers for the margin's side at margins of that size, made to rise by pooling neighbours."""
        if not (margin := self.margin(anchor, lo, hi)):
            return 0.5
        agreeing, answers = Counter(), Counter()
        for key, (n_lo, n_hi) in self.questions().items():
            if size := self.margin(*key):
                answers[abs(size)] += n_lo + n_hi
                agreeing[abs(size)] += n_lo if size > 0 else n_hi
        answers[max(answers)] += 2
        agreeing[max(agreeing)] += 1
        pools: list[list] = []
        for size in sorted(answers):
            pools.append([[size], agreeing[size], answers[size]])
            while len(pools) > 1 and pools[-2][1] / pools[-2][2] >= pools[-1][1] / pools[-1][2]:
                sizes, right, of = pools.pop()
                pools[-1] = [pools[-1][0] + sizes, pools[-1][1] + right, pools[-1][2] + of]
        share = next(right / of for sizes, right, of in pools if abs(margin) in sizes)
        share = min(max(share, 0.5), 1.0)
        return share if margin > 0 else 1 - share

    def quadruplet_questions(self) -> dict[frozenset, Counter]:
        found: dict[frozenset, Counter] = defaultdict(Counter)
        for i, j, k, l in self.four:
            pairs = frozenset((i, j)), frozenset((k, l))
            found[frozenset(pairs)][pairs] += 1
        return found

    def about(self, name: str) -> list[tuple[tuple, tuple[float, float]]]:
        """The triplet questions about an object with the answers to them."""
        return [(key, votes) for key, votes in self.questions().items() if name in key]

    def contradicted(self, name: str) -> int:
        four = (min(each.values()) for pairs, each in self.quadruplet_questions().items()
                if len(each) > 1 and any(name in pair for pair in pairs))  # fmt: skip
        return sum(min(votes) for _, votes in self.about(name)) + sum(four)

    def right(self, name: str, margin) -> float:
        """The share of the answers about an object that a margin for lo predicts, ties one half."""
        right = of = 0.0
        for key, (n_lo, n_hi) in self.about(name):
            if (m := margin(*key)) is None:
                continue
            of += n_lo + n_hi
            right += n_lo if m > 0 else n_hi if m < 0 else (n_lo + n_hi) / 2
        return right / of if of else 0.5

    def by_kernel(self, kind: str):
        fit = self.fits[kind]
        ids = fit.ids.tolist()

        def margin(*names):
            if not all(self.row[name] in ids for name in names):
                return None
            a, lo, hi = (ids.index(self.row[name]) for name in names)
            apart = fit.K.diagonal()[:, None] + fit.K.diagonal() - 2 * fit.K
            return apart[a, hi] - apart[a, lo]

        return margin

    def satisfied(self, kind: str) -> float:
        """The share of the answers about its objects that a kernel predicts."""
        margin, right = self.by_kernel(kind), Counter()
        for key, (n_lo, n_hi) in self.questions().items():
            if (m := margin(*key)) is not None:
                right += Counter(yes=n_lo if m > 0 else n_hi, of=n_lo + n_hi)
        return right["yes"] / right["of"]

    def constraints_kept(self) -> float:
        """Of the comparisons that partial order embedding was given, those that its kernel answers so."""
        fit = self.fits["partial_order_embedding"]
        diagonal, row = fit.K.diagonal(), {name: i for i, name in enumerate(fit.ids.tolist())}
        apart = (diagonal[:, None] + diagonal - 2 * fit.K).round(9)
        kept = [apart[row[i], row[j]] < apart[row[k], row[l]] for i, j, k, l in fit.constraints.tolist()]
        return float(np.mean(kept))

    def own(self, worker: str) -> Counter:
        return Counter(rows for rows, event in self.triplets if event.get("worker", "") == worker)

    def agreement(self, worker: str, sign: int) -> int:
        """Answers for which the others' votes on the same question speak (+1), or against (-1)."""
        own, votes = self.own(worker), self.votes[""]
        found = 0
        for (a, near, far), times in own.items():
            others = (votes[a, near, far] - own[a, near, far]) - (votes[a, far, near] - own[a, far, near])
            found += times * (np.sign(others) == sign)
        return found

    def ellipse(self, name: str) -> tuple[float, float, float]:
        values, vectors = np.linalg.eigh(self.fits["embedding"].covariance[self.row[name]][:2, :2].astype(float))
        a, b = np.sqrt(5.991 * values[::-1])
        return a, b, np.arctan(vectors[1, 1] / vectors[0, 1])

    def variance(self, name: str) -> np.ndarray:
        return np.diag(self.fits["embedding"].covariance[self.row[name]]).astype(float)

    def nearest(self, name: str, rank: int) -> str:
        x = self.fits["embedding"].X
        far = {other: np.linalg.norm(x[self.row[other]] - x[self.row[name]]) for other in self.names if other != name}
        return sorted(far, key=far.get)[rank - 1]

    def cluster(self, kind: str, label: int) -> int:
        """Clusters counted from 1, the largest first; of equal sizes the one with the first object."""
        labels = self.fits[kind].labels.tolist()
        order = sorted({*labels} - {-1}, key=lambda each: (-labels.count(each), labels.index(each)))
        return order.index(label) + 1 if label in order else -1

    def answered(self, worker: str) -> list[dict]:
        return [event for event in self.events if event.get("worker", "") == worker]

    def weights(self, worker: str) -> np.ndarray:
        return self.fits["embedding"].worker_weights[PEOPLE.index(worker)]

    def timed(self, worker: str) -> list[float]:
        return [event["milliseconds"] / 1000 for event in self.answered(worker) if "milliseconds" in event]

    def places(self, worker: str) -> list[int]:
        """At which of three positions the chosen object stood, in the order of arrival."""
        lists = [(each["shown"], each["chosen"][0]) if "shown" in each else (each["objects"], each["odd"])
                 for each in self.answered(worker) if "shown" in each or "odd" in each]  # fmt: skip
        return [among.index(chosen) for among, chosen in lists]

    def expected(self, worker: str) -> list[float]:
        """The share of answers that is expected at each position: of chance, or of the others where that is more."""
        others = [place for each in self.people if each != worker for place in self.places(each)]
        return [max(1 / 3, others.count(place) / len(others)) for place in range(3)]

    def position(self, worker: str) -> tuple[int, float, float]:
        """The position that was chosen least probably, its share, and its p-value among three."""
        own = self.places(worker)
        p = [stats.binom.sf(own.count(place) - 1, len(own), share) for place, share in enumerate(self.expected(worker))]
        place = min(range(3), key=lambda each: (round(p[each], 9), -each))
        share = own.count(place) / len(own)
        return place, share, min(1.0, 3 * p[place]) if share - self.expected(worker)[place] >= 0.1 else 1.0

    def longest(self, worker: str) -> int:
        own = "".join(map(str, self.places(worker)))
        return max(length for length in range(1, len(own) + 1) if any(str(p) * length in own for p in range(3)))

    def p_run(self, worker: str) -> float:
        """Of a run of a position that they chose, each as often as others do, or after itself as often as others do."""
        own, longest = self.places(worker), self.longest(worker)
        pairs = [pair for who in self.people if who != worker for pair in pairwise(self.places(who))]
        q = max(np.mean([a == b for a, b in pairs]), *(self.expected(worker)[place] for place in {*own}))
        return 1.0 if longest < 10 else float(min(1.0, (len(own) - longest + 1) * q ** (longest - 1)))

    def p_fast(self, worker: str) -> float:
        own = np.array(self.timed(worker))
        return float(stats.binom.sf((own < 0.3).sum() - 1, len(own), 0.1))

    def holm(self, p, worker: str) -> float:
        if worker == "":
            return 1.0
        order = sorted(self.people, key=p)
        return min(1.0, max((len(order) - at) * p(who) for at, who in enumerate(order[: order.index(worker) + 1])))

    def classes(self) -> list[str]:
        return sorted({*self.labels().values()})

    def labels(self) -> dict[str, str]:
        return {event["object"]: event["label"] for event in self.events if event.get("type") == "label"}

    def classifiers(self) -> list[dict]:
        """A row a model as reported, the best as it was chosen, and the class that most objects have."""
        report = self.fits["classify"].report
        held = report["held_out"]
        mine = [self.labels()[name] for name, tested in zip(self.names, self.fits["classify"].reported) if tested]
        usual = max(map([*self.labels().values()].count, self.classes())) and max(self.classes(), key=mine.count)
        majority = {"objects": len(mine), "accuracy": mine.count(usual) / len(mine)}
        best = {key: held[key] for key in ("objects", "accuracy", "standard_error", "log_loss", "abstained")}
        return [*report["models"], {"model": "the best as chosen", **best, "best": False},
                {"model": "majority class", **majority, "best": False}]  # fmt: skip

    def likeliest(self, name: str) -> str:
        return self.classes()[int(np.argmax(self.fits["classify"].probability[self.row[name]]))]

    def k(self, which: int, a: str, b: str) -> float:
        """k1: who orders others alike; k2: who is ordered alike by others. Mean answers, as vectors of length 1."""

        def features(x):
            found = {}
            for (anchor, lo, hi), (n_lo, n_hi) in self.questions().items():
                sign = (n_lo - n_hi) / (n_lo + n_hi)
                if which == 1 and anchor == x:
                    found[lo, hi] = sign
                elif which == 2 and x in (lo, hi):
                    found[anchor, hi if x == lo else lo] = sign if x == lo else -sign
            return found

        one, two = features(a), features(b)
        size = np.sqrt(sum(v * v for v in one.values()) * sum(v * v for v in two.values()))
        return sum(v * two.get(key, 0) for key, v in one.items()) / size if size else 0.0

    def order(self) -> set[tuple]:
        """What the guard keeps of the comparisons one by one: neither said before, nor against what follows."""
        after: dict = defaultdict(set)
        for i, j, k, l in (rows for rows, _ in self.said):
            near, far = frozenset((i, j)), frozenset((k, l))
            reached, ahead = set(), [far]
            while ahead:
                at = ahead.pop()
                if at not in reached:
                    reached.add(at)
                    ahead += after[at]
            if near not in reached:
                after[near].add(far)
        return {(near, far) for near, each in after.items() for far in each}

    def reduced(self) -> set[tuple]:
        kept = self.order()
        after: dict = defaultdict(set)
        for near, far in kept:
            after[near].add(far)

        def reaches(near, far):
            seen, ahead = set(), [each for each in after[near] if each != far]
            while ahead:
                at = ahead.pop()
                if at == far:
                    return True
                if at not in seen:
                    seen.add(at)
                    ahead += after[at]
            return False

        return {(near, far) for near, far in kept if not reaches(near, far)}

    def net(self) -> dict[tuple, int]:
        """Pairs (near, far) -> by how many answers more than the reverse."""
        found: Counter = Counter()
        for i, j, k, l in (rows for rows, _ in self.said):
            found[frozenset((i, j)), frozenset((k, l))] += 1
        return {(a, b): n - found[b, a] for (a, b), n in list(found.items()) if n > found[b, a]}

    def share_kept(self, kept) -> float:
        net = self.net()
        return sum(net.get(edge, 0) for edge in kept) / sum(net.values())


PEOPLE = [f"w{i}" for i in range(4)]
KERNELS = ("kernel_learning", "partial_order_embedding")


def _counted() -> Snapshot:
    return state(data="\n".join(json.dumps(event) for event in events()).encode())


def _fits() -> dict[str, bytes]:
    return artifacts_of(_counted())


@cache
def published() -> Published:
    """A state of these events with an artifact of every refit, and counts of which no two are alike."""
    snapshot = _counted()
    made = {kind: artifacts.decode(data) for kind, data in once(_fits).items()}
    n, rng = len(snapshot.objects), np.random.default_rng(0)  # so few answers hold no dimension
    dimensions = {"X": rng.random((n, 2), np.float32), "standard_error": rng.random((n, 2), np.float32)}
    dimensions |= {name: rng.random(2) for name in ("reproducibility", "importance", "importance_error")}
    held = made["dimensions"]
    report = {**held.report, "held_out_responses": 40.0}
    made["dimensions"] = held._replace(arrays={**held.arrays, **dimensions}, report=report)
    held = made["clusters"]  # and no groups
    groups = {"labels": [1, 2, 2, 1, 0, 2, -1, 2], "second": [2, 1, 0, 2, 1, 0, -1, 1]}  # not by size
    groups |= {"subgroup": [-1, 1, 0, -1, -1, 1, -1, 0]}
    groups = {name: np.array(values, np.int32) for name, values in groups.items()}
    groups |= {"stability": np.array([0.95, 0.6, 1.0, 0.92, 0.8, 0.97, 0.0, 0.85]), "k": np.array(3)}
    told = {
        "grade": "separated",
        "k": 3,
        "sizes": [4, 2, 1],
        "between": 3,
        "reason": "",
        "note": "Two groups and one object by itself, separated.",
    }
    made["clusters"] = held._replace(arrays={**held.arrays, **groups}, report={**held.report, **told})
    fitted = made["embedding"]  # and no participant's own weights, nor a group
    picture = {"picture": rng.normal(size=(n, 2))}  # nor more dimensions than two
    people = {"worker_weights": rng.random((len(PEOPLE), fitted.arrays["X"].shape[1])) + 0.5}
    people["worker_group"] = np.array([0, 1, -1, 0])
    people |= {"worker_stack": rng.random((len(PEOPLE), 2)), "worker_gain": rng.random((len(PEOPLE), 3))}
    made["embedding"] = fitted._replace(arrays={**fitted.arrays, **people, **picture})
    counted = {"filtered": 4, "empty": 6, "records": 5, "repeated": 9, "dead_letters": {"lost": 3, "removed": 11}}
    counted["rejected"] = {"not_distinct": 7, "missing_field": 12}
    return Published(snapshot._replace(counters={**snapshot.counters, **counted}), made)


@cache
def studied() -> Published:
    """The same with figures in the reports wherever a larger study has some: no two are printed alike, the best is
    neither the first nor the last, and seven people have weights of their own."""
    held = published()
    made = dict(held.artifacts)

    def filled(kind: str, arrays: dict, **report) -> None:
        of = made[kind]
        made[kind] = of._replace(arrays={**of.arrays, **arrays}, report={**of.report, **report})

    rng = np.random.default_rng(1)
    people = [*PEOPLE, "v0", "v1", "v2"]
    weights = {f"worker_{name}": rng.random((len(people), size)) + 0.5 for name, size in (("weights", 2), ("stack", 2))}
    weights |= {"worker_gain": rng.random((len(people), 3)), "worker_lapse": np.array([0.1, 0.2, 0.3, 0.6, 0.5, 0, 1])}
    weights |= {"worker_group": np.array([0, 1, -1, 0, 1, 0, 0]), **pack_names(people)}
    who = [("w1", 0.012, 0.005, 0.034, ["b", "a"]), ("v0", 0.031, 0.009, 0.0021, ["f", "d", "c"])]
    differ = {
        **made["embedding"].report["individual_differences"],
        "own": {"accuracy": 0.741},
        "one_map": {"accuracy": 0.7083},
        "groups": {"count": 2, "p_value": 0.043},
        "participants": 7,
        "p_value": 0.0037,
        "shrinkage": 3.1,
        "who": [dict(zip(("participant", "gain", "standard_error", "p_value", "objects"), each)) for each in who],
        "verdict": "participants differ",
    }
    ceiling = {"others": 0.8613, "answers": 417, "themselves": 0.9021, "own_answers": 133, "at_most": 0.8937}
    filled("embedding", weights, individual_differences=differ, ceiling=ceiling)
    made["embedding"] = made["embedding"]._replace(
        arrays={name: each for name, each in made["embedding"].arrays.items() if name != "picture"}
    )
    right = {"odd_one_out": (0.6134, 0.0211), "triplet": (0.7172, 0.0342)}
    right = {f"{of}_{name}": v for of, each in right.items() for name, v in zip(("accuracy", "standard_error"), each)}
    filled("dimensions", {}, dimensions=2, reproducible=1, **right)
    tested = {"tested_k": np.array([2, 3, 4]), "tested_clearness": np.array([0.5, 2.5, -1.0])}
    answer = {"clearer_than": 0.9641, "detection_limit": 2.34, "gain": 0.0131, "gain_se": 0.0042}
    again = {"ari": 0.912, "low": 0.843, "high": 0.957}
    tested |= {"replication": np.array([*again.values()]), "gain": np.array([answer["gain"], answer["gain_se"]])}
    tested |= {name: np.array(answer[name]) for name in ("clearer_than", "detection_limit")}
    note = "Two groups and one object by itself, separated (clearer than 96.4 % of continua); "
    note += "the same partition is expected in a replication "
    note += "(ARI .91, 95 % CI .84 to .96); positions within the groups still carry information (.013 nats an "
    filled("clusters", tested, replication=again, **answer, note=f"{note}answer, SE .004).")
    criterion = {"2": 0.4123, "3": 0.5234, "4": 0.4712}
    program = {"criterion": np.array([*criterion.values()]), "criterion_k": np.array([2, 3, 4])}
    program |= {"criterion_converged": np.array([True, True, False])}
    program |= {"labels": np.array([1, 0, 0, 1, 1, 0, 0, 0], np.int32)}
    filled("sdp_clustering", program, criterion=criterion, criterion_not_converged=[4], certified=False, gap=0.0123)
    models = [
        ("boosted", 40.0, 7, 0.714, 0.17, 0.61, 0.14, False),
        ("neighbours", 5.0, 7, 0.857, 0.13, 0.48, 0.0, True),
        ("penalized", 0.1, 7, 0.429, 0.19, 0.83, 0.29, False),
    ]
    heads = ("model", "setting", "objects", "accuracy", "standard_error", "log_loss", "abstained", "best")
    usual = {"objects": 7, "accuracy": 0.643, "standard_error": 0.11, "log_loss": 0.57, "abstained": 0.07}
    label = {event["object"]: event["label"] for event in events() if event.get("type") == "label"}
    labels, reported = [*label.values()], np.array([name in label for name in held.snapshot.objects])
    usual["majority_class_accuracy"] = max(map(labels.count, labels)) / len(labels)
    rows = [dict(zip(heads, row)) for row in models]
    filled("classify", {"reported": reported}, models=rows, held_out=usual, model="neighbours", setting=5.0)
    filled("alignment", **aligned(held.snapshot.objects))
    return held._replace(artifacts=made, seconds={"embedding": 12.5, "alignment": 3.25})


def aligned(names) -> dict:
    """Arrays and a report of two feature sets, the second of which is the better one once its weights are learned; on
    objects that were not learned from, the first."""
    rng, n = np.random.default_rng(2), len(names)
    of = ("set", "transform", "accuracy", "standard_error", "answers", "log_loss", "behind", "behind_standard_error",
          "weight", "adds", "adds_standard_error")  # fmt: skip
    rows = [
        ("x", "cosine", 0.5023, 0.0201, 288, None, 0.0216, 0.0112, 0.31, 0.0041, 0.0023),
        ("x", "euclidean", 0.5239, 0.0191, 288, 0.6512, 0.0, 0.0031, 0.31, 0.0041, 0.0023),
        ("x", "weights", 0.5572, 0.0183, 271, 0.6134, None, None, None, None, None),
        ("x", "linear map", 0.5911, 0.0172, 271, 0.5877, None, None, None, None, None),
        ("y", "cosine", 0.4724, 0.0212, 288, 0.6731, 0.0515, 0.0143, 0.69, 0.0278, 0.0081),
        ("y", "weights", 0.6146, 0.0165, 271, 0.5641, None, None, None, None, None),
    ]
    told = []
    for at, row in enumerate(rows):
        found = {name: value for name, value in zip(of, row) if value is not None}
        found |= {"low": found["accuracy"] - 0.05 - at / 1000, "high": found["accuracy"] + 0.04 + at / 1000}
        if found["transform"] in ("weights", "linear map"):
            by = found["accuracy"] - 0.03 + 0.06 * (at == 2)
            found["by_object"] = {"accuracy": by, "standard_error": 0.02 + at / 500, "log_loss": 0.7 - at / 50}
            found["by_object"] |= {"low": by - 0.06 - at / 900, "high": by + 0.055 + at / 900}
        told.append(found)
    sets = [
        {"name": "x", "constant_dimensions": 0, "joined_by": "name", "dimensions": 4, "objects": n},
        {"name": "y", "constant_dimensions": 13, "joined_by": "stem", "dimensions": 29, "objects": n - 1},
    ]
    predicts = {"set": "y", "sets": [{"set": "x", "measure": "euclidean"}, {"set": "y", "measure": "cosine"}]}
    ceiling = {"others": 0.7613, "answers": 411, "themselves": 0.8021, "own_answers": 131, "at_most": 0.7937}
    object_answers = np.array([31, 0, 37, 53, 41, 29, 43, 47.0])[:n]
    arrays = {
        "object_answers": object_answers,
        "object_accuracy": np.array([0.61, 0.0, 0.47, 0.82, 0.55, 0.71, 0.66, 0.39])[:n],
        "object_agreement": np.array([0.91, -1.0, 0.58, 0.84, -1.0, 0.97, 0.83, 0.63])[:n],
        "participant_accuracy": np.array([[0.41, 0.62], [0.58, 0.71], [0.66, 0.43], [0.49, 0.87]]),
        "participant_answers": np.array([56.0, 70.0, 64.0, 58.0]),
        "questions": np.array([[0, 2, 0, 3], [4, 1, 4, 6], [5, 7, 2, 3]], np.int32),
        "question_votes": np.array([[5.0, 1.0], [7.0, 2.0], [6.0, 0.0]]),
        "question_margin": np.array([-2.5, -1.4, -0.6]),
    }
    for at, (r, v, d) in enumerate(((3, 3, 4), (1, 5, 6))):
        arrays |= {f"varies_{at}": np.arange(d) < v, f"mean_{at}": rng.random(v)}
        arrays[f"map_{at}"] = rng.random((v, r)) if r > 1 else rng.random(v)
    report = {"rows": told, "sets": sets, "predicts": predicts, "ceiling": ceiling, "chosen_by_model": 17}
    return {"arrays": arrays, **report, "without_features": 23, "with_features": n - 1}


def of_fit(kind: str, name: str):
    """The cell of an array of an artifact, an object's by its row; of a kernel over some objects by its row in it."""

    def cell(w, *at):
        array, ids = getattr(w.fits[kind], name), getattr(w.fits[kind], "ids", np.arange(len(w.names))).tolist()
        row = {name: i for i, name in enumerate(w.workers)} if kind == "reliability" else w.row
        rows = [row[each] if isinstance(each, str) else each for each in at]
        return array[tuple(ids.index(row) if size == len(ids) else row for row, size in zip(rows, array.shape))]

    return cell


def copied(kind: str, names: str):
    """What only the fit knows: the export must hold it as the artifact does."""
    return {name: of_fit(kind, name) for name in names.split()}


def axis(kind: str, name: str):
    """A column `axis_3`, cell by cell."""
    return lambda w, name_of, number, kind=kind, name=name: getattr(w.fits[kind], name)[w.row[name_of], number - 1]


ANSWERS = {
    "answers": lambda w, o: sum(o in rows for rows, _ in w.said),
    "contradicted": lambda w, o: w.contradicted(o),
    "agreement": lambda w, o: w.right(o, w.margin),
}
CONFIDENCE = {
    "confidence": lambda w, *key: stats.beta(
        1 + max(votes := [w.votes[""][key], w.votes[""][key[0], key[2], key[1]]]), 1 + min(votes)
    ).sf(0.5),
    "predicted": lambda w, a, near, far: (
        w.predicted(a, near, far) if w.row[near] < w.row[far] else 1 - w.predicted(a, far, near)
    ),
}
PICTURE = {
    f"picture_{head}": lambda w, o, at=at: w.fits["embedding"].picture[w.row[o], at] for at, head in enumerate("xy")
}
KEYS = dict.fromkeys(("anchor", "lo", "hi", "near", "far"))  # what a row is about: all are compared at once
ABOUT = ("object", "worker", "participant", "anchor", "near", "far")  # what a row of a table is about
FOUR, OF_ANSWER = ("near_i", "near_j", "far_i", "far_j"), ("judgement", "times", "worker", "time", "sampler")
HOWS = ("", "_window", "_decayed", "_weighted", "_trusted")


# ---- feature sets


def of_sets(w: World, row: int) -> dict:
    """A row of the table of feature sets: chance, the ceiling where it is known, and the map stand last."""
    told, fit = w.fits["alignment"].report, w.fits["embedding"].report
    own, error, ceiling = fit["accuracy"], fit["standard_error"], told["ceiling"]["at_most"]
    last = {name: fit[name] for name in ("accuracy", "standard_error", "log_loss")} | {"transform": "map"}
    last |= {"low": own - 1.96 * error, "high": own + 1.96 * error, "answers": fit["held_out_comparisons"]}
    ceilings = [] if ceiling is None else [{"transform": "noise ceiling", "accuracy": ceiling}]
    return [*told["rows"], {"transform": "chance", "accuracy": 0.5}, *ceilings, last][row]


def left(w: World, row: int) -> float | None:
    """The share of the gap between a set and the ceiling that the map closes."""
    of, ceiling = of_sets(w, row), w.fits["alignment"].report["ceiling"]["at_most"]
    if "set" not in of or ceiling is None:
        return None
    own = w.fits["embedding"].report["accuracy"]
    return min(1.0, max(0.0, (own - of["accuracy"]) / (ceiling - of["accuracy"])))


def of_set(name: str, part: str):
    """A cell of what was learned of a feature set."""
    return lambda w, *at: getattr(w.fits["alignment"], f"{part}_{'xy'.index(name)}")[at]


def cosine(w: World, name: str) -> bool:
    return {"cosine"} == {
        each["measure"] for each in w.fits["alignment"].report["predicts"]["sets"] if each["set"] == name
    }


SETS = ("transform", "accuracy", "standard_error", "low", "high", "answers", "log_loss", "behind",
        "behind_standard_error", "weight", "adds", "adds_standard_error")  # fmt: skip
ALIGNED = {
    "alignment": {
        "set": lambda w, row: of_sets(w, row).get("set", ""),
        **{name: lambda w, row, name=name: of_sets(w, row).get(name) for name in SETS},
        **{
            f"by_object{'_' * bool(name)}{name}": lambda w, row, name=name: (
                of_sets(w, row).get("by_object") or {}
            ).get(name or "accuracy")
            for name in ("", "standard_error", "log_loss")
        },
        "left": left,
    },
    "alignment_objects": {
        "answers": lambda w, o: int(w.fits["alignment"].object_answers[w.row[o]]),
        "accuracy": lambda w, o: w.fits["alignment"].object_accuracy[w.row[o]],
        "agreement": lambda w, o: share if (share := w.fits["alignment"].object_agreement[w.row[o]]) >= 0 else None,
    },
    "alignment_questions": {
        **{head: lambda w, row, at=at: w.names[w.fits["alignment"].questions[row, at]] for at, head in enumerate(FOUR)},
        **{
            head: lambda w, row, at=at: int(w.fits["alignment"].question_votes[row, at])
            for at, head in enumerate(("agree", "disagree"))
        },
        "log_odds": lambda w, row: w.fits["alignment"].question_margin[row],
    },
    "transform": {
        **{f"{name}.{part}": of_set(name, part) for name in "xy" for part in ("varies", "mean", "map")},
        **{f"{name}.cosine": lambda w, name=name: cosine(w, name) for name in "xy"},
    },
}


TOLD = {
    **ALIGNED,
    **{f"adds3{how}": {"W": lambda w, a, b, how=how: w.similarity[how][a, b]} for how in HOWS},
    "adds4": {"W": lambda w, a, b: w.similarity4[a, b]},
    **{
        f"triplet_counts{how}": KEYS
        | {
            "n_lo": lambda w, a, lo, hi, how=how: w.votes[how][a, lo, hi],
            "n_hi": lambda w, a, lo, hi, how=how: w.votes[how][a, hi, lo],
        }
        for how in HOWS
    },
    "k1": {"K": lambda w, a, b: w.k(1, a, b)},
    "k2": {"K": lambda w, a, b: w.k(2, a, b)},
    "questions": KEYS
    | CONFIDENCE
    | {
        "n_near": lambda w, a, near, far: w.votes[""][a, near, far],
        "n_far": lambda w, a, near, far: w.votes[""][a, far, near],
    },
    "evidence": ANSWERS
    | {
        "as_anchor": lambda w, o: sum(rows[0] == o for rows, _ in w.triplets),
        "questions": lambda w, o: len(w.about(o)) + sum(any(o in p for p in q) for q in w.quadruplet_questions()),
        "cluster_stability": of_fit("clusters", "stability"),
    },
    "objects": ANSWERS
    | {
        "object": lambda w, o: o,
        "cluster": lambda w, o: w.cluster("clusters", w.fits["clusters"].labels[w.row[o]]),
        "cluster_label": of_fit("clusters", "labels"),
        "stability": lambda w, o: (
            of_fit("clusters", "stability")(w, o) if w.fits["clusters"].labels[w.row[o]] >= 0 else None
        ),
        **{head: lambda w, o, at=at: w.fits["embedding"].X[w.row[o], at] for at, head in enumerate("xy")},
        **{f"se_{head}": lambda w, o, at=at: w.variance(o)[at] ** 0.5 for at, head in enumerate("xy")},
        **{f"ellipse_{head}": lambda w, o, at=at: w.ellipse(o)[at] for at, head in enumerate(("a", "b", "angle"))},
        **PICTURE,
        "nearest_?": lambda w, o, rank: w.nearest(o, rank),
        "label": lambda w, o: w.labels().get(o),
        "predicted": lambda w, o: w.likeliest(o),
    },
    "workers": {
        "worker": lambda w, who: who,
        "events": lambda w, who: len(w.answered(who)),
        "comparisons": lambda w, who: sum(w.own(who).values()),
        "agreed": lambda w, who: w.agreement(who, 1),
        "disagreed": lambda w, who: w.agreement(who, -1),
        "repeats": lambda w, who: sum(w.own(who).values()) - len({(a, frozenset((b, c))) for a, b, c in w.own(who)}),
        "contradictions": lambda w, who: sum(min(n, w.own(who)[a, c, b]) for (a, b, c), n in w.own(who).items()) // 2,
        "passed": lambda w, who: 0,
        "failed": lambda w, who: 0,
        **copied("reliability", "accuracy"),
        "weight": lambda w, who: max(0, 2 * w.fits["reliability"].accuracy[w.workers.index(who)] - 1),
        "response_time": lambda w, who: pytest.approx(np.median(w.timed(who)), rel=0.1) if who else np.nan,
        "under_300_ms": lambda w, who: np.mean(np.array(w.timed(who)) < 0.3) if who else np.nan,
        "position": lambda w, who: w.position(who)[0] + 1 if who else 0,
        "positions": lambda w, who: 3 if who else 0,
        "position_share": lambda w, who: w.position(who)[1] if who else np.nan,
        "longest_run": lambda w, who: w.longest(who) if who else 0,
        "p_position": lambda w, who: w.holm(lambda each: w.position(each)[2], who),
        "p_run": lambda w, who: w.holm(w.p_run, who),
        "p_fast": lambda w, who: w.holm(w.p_fast, who),
    },
    "participants": {
        "participant": lambda w, who: who,
        "verdict": lambda w: w.fits["embedding"].report["individual_differences"]["verdict"],
        "lapse": lambda w, who: w.fits["embedding"].worker_lapse[PEOPLE.index(who)],
        "slope": lambda w, who: np.mean(w.weights(who)),
        "group": lambda w, who: {"w0": 1, "w1": 2, "w2": -1, "w3": 1}[who],
        "of_group_map": lambda w, who: w.fits["embedding"].worker_stack[PEOPLE.index(who)][0],
        "of_own_map": lambda w, who: w.fits["embedding"].worker_stack[PEOPLE.index(who)][1],
        **{
            name: lambda w, who, at=at: w.fits["embedding"].worker_gain[PEOPLE.index(who)][at]
            for at, name in enumerate(("gain", "gain_error", "p_differs"))
        },
        "weights": lambda w, who, at: w.weights(who)[at] / np.mean(w.weights(who)),
        "weight_*": lambda w, who, number: w.weights(who)[number - 1] / np.mean(w.weights(who)),
    },
    "clusters": {
        "cluster": lambda w, o: w.cluster("clusters", w.fits["clusters"].labels[w.row[o]]),
        "cluster_label": of_fit("clusters", "labels"),
        "between": lambda w, o: (
            w.fits["clusters"].labels[w.row[o]] >= 0 and w.fits["clusters"].stability[w.row[o]] < 0.9
        ),
        "grade": lambda w, o: w.fits["clusters"].report["grade"],
        "k": lambda w: len({*w.fits["clusters"].labels.tolist()} - {-1}),
        **copied(
            "clusters",
            "labels stability second subgroup clearer_than detection_limit replication gain tested_k tested_clearness",
        ),
        "sdp_labels": of_fit("sdp_clustering", "labels"),
        "sdp_cluster": lambda w, o: w.cluster("sdp_clustering", w.fits["sdp_clustering"].labels[w.row[o]]),
        "sdp_k": lambda w: len({*w.fits["sdp_clustering"].labels.tolist()} - {-1}),
        **copied("sdp_clustering", "lam objective upper_bound residuals criterion criterion_k criterion_converged"),
        "gap": lambda w: (w.fits["sdp_clustering"].upper_bound / w.fits["sdp_clustering"].objective) - 1,
    },
    "clusters table": {
        "second": lambda w, o: w.cluster("clusters", w.fits["clusters"].second[w.row[o]]),
        "subgroup": lambda w, o: -1 if (part := w.fits["clusters"].subgroup[w.row[o]]) < 0 else part + 1,
    },
    "cluster_answer": {
        **{
            name: lambda w, row, name=name: w.fits["clusters"].report[name]
            for name in ("grade", "reason", "clearer_than", "detection_limit", "gain")
        },
        "k": lambda w, row: w.fits["clusters"].k,
        **{
            f"ari{end}": lambda w, row, at=at: w.fits["clusters"].replication[at]
            for at, end in enumerate(("", "_low", "_high"))
        },
        "gain_error": lambda w, row: w.fits["clusters"].gain[1],
        "sentence": lambda w, row: w.fits["clusters"].report["note"],
    },
    "cluster_numbers": {
        "k": lambda w, row: w.fits["clusters"].tested_k[row],
        "clearness": lambda w, row: w.fits["clusters"].tested_clearness[row],
    },
    "spectral": copied("spectral", "labels objective eigenvalues edge")
    | {
        "cluster": lambda w, o: w.cluster("spectral", w.fits["spectral"].labels[w.row[o]]),
        "cluster_label": of_fit("spectral", "labels"),
        "k": lambda w: len({*w.fits["spectral"].labels.tolist()} - {-1}),
    },
    "hierarchy": copied("hierarchy", "linkage leaves revenue revenue_bound")
    | {
        "names": lambda w, at: w.names[w.fits["hierarchy"].leaves[at]],
        "merge": lambda w, row: row + 1,
        **{
            side: lambda w, row, at=at: (
                w.names[w.fits["hierarchy"].leaves[int(child)]]
                if (child := w.fits["hierarchy"].linkage[row, at]) < len(w.names)
                else ""
            )
            for at, side in enumerate(("left", "right"))
        },
        **{
            f"{side}_merge": lambda w, row, at=at: max(w.fits["hierarchy"].linkage[row, at] - len(w.names) + 1, 0)
            for at, side in enumerate(("left", "right"))
        },
        "height": lambda w, row: w.fits["hierarchy"].linkage[row, 2],
        "objects": lambda w, row: w.fits["hierarchy"].linkage[row, 3],
    },
    "embedding": copied("embedding", "X covariance lapse picture")
    | {
        "asked": lambda w, o: any(o in rows for rows, _ in w.said),
        **PICTURE,
        "axis_*": axis("embedding", "X"),
        "sd_*": lambda w, o, number: w.fits["embedding"].covariance[w.row[o], number - 1, number - 1] ** 0.5,
        "alpha": lambda w: w.fits["embedding"].report["alpha"],
        "d": lambda w: w.fits["embedding"].X.shape[1],
        "held_out": lambda w: w.fits["embedding"].report["held_out"],
        "held_out_accuracy": lambda w: w.fits["embedding"].report["accuracy"],
        "held_out_log_loss": lambda w: w.fits["embedding"].report["log_loss"],
    },
    "dimensions": copied("dimensions", "X standard_error reproducibility importance importance_error")
    | {
        "dimension_*": axis("dimensions", "X"),
        "asked": lambda w, o: any(o in rows for rows, _ in w.said),
    },
    "dimension_quality": {
        "dimension": lambda w, row: row + 1,
        "share": lambda w, row: w.fits["dimensions"].X[:, row].sum() / w.fits["dimensions"].X.sum(),
        "objects": lambda w, row: "; ".join(w.names[i] for i in np.argsort(-w.fits["dimensions"].X[:, row])),
        **{name: of_fit("dimensions", name) for name in ("reproducibility", "importance", "importance_error")},
    },
    "booster": copied(
        "triplet_boost",
        "j k alpha o_j o_k predicted given score abstained margin part bound log_bound curve_rounds train_error "
        "watched_error",
    )
    | {"classes": lambda w, at: w.classes()[at]},
    "classifiers": {
        name: lambda w, row, name=name: w.classifiers()[row].get(name, np.nan)
        for name in ["model", "setting", "objects", "accuracy", "standard_error", "log_loss", "abstained", "best"]
    },
    "classify": copied("classify", "probability abstained fold reported")
    | {
        "classes": lambda w, at: w.classes()[at],
        "predicted": lambda w, o: np.argmax(w.fits["classify"].probability[w.row[o]]),
        "score": lambda w, o: w.fits["classify"].probability[w.row[o]].max(),
        "given": lambda w, o: w.classes().index(w.labels()[o]) if o in w.labels() else -1,
    },
    "predictions": {
        "object": lambda w, o: o,
        "label": lambda w, o: w.labels().get(o, ""),
        "predicted": lambda w, o: w.likeliest(o),
        "score": lambda w, o: w.fits["classify"].probability[w.row[o]].max(),
        "abstained": of_fit("classify", "abstained"),
        **{
            f"probability_class {at}": lambda w, o, at=at: w.fits["classify"].probability[w.row[o], at]
            for at in range(2)
        },
    },
    **{
        stem: copied(kind, "K K0 W map_0 coordinates dual known mu objective triplets constraints ids explained")
        | {
            "method": lambda w, kind=kind: kind,
            "satisfied": lambda w, kind=kind: w.satisfied(kind) if kind == "kernel_learning" else w.constraints_kept(),
            "auxiliary": lambda w, at: "identity",
        }
        for stem, kind in zip(("kernel", "kernel.partial_order_embedding"), KERNELS)
    },
    "kernel_weights": {
        "identity": lambda w, o: of_fit("partial_order_embedding", "W")(w, 0, o),
    },
}


def told_of(name: str, *where: str):
    """The definition of an array or a column, and whether its name ends in a number that it takes."""
    for pattern, found in [each for place in where for each in TOLD.get(place, {}).items()]:
        if fnmatchcase(name, pattern):
            return found, pattern[-1] in "*?"
    raise AssertionError(f"{where}: {name} has no definition")


def same(found, wanted) -> bool:
    """Equal to rounding; what is not known is masked, NaN, None, or an empty text."""
    if found is np.ma.masked:
        found = None
    found, wanted = (each.item() if isinstance(each, np.ndarray | np.generic) else each for each in (found, wanted))
    if found is None or found != found:
        return wanted is None or wanted in ("", -1) or wanted != wanted
    return found == (pytest.approx(wanted, rel=1e-5, abs=1e-6) if isinstance(wanted, float) else wanted)


NUMBER = re.compile(r"(?<![\w.])-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")


def numbers(text: str) -> list[str]:
    """The numbers of a sentence, as they are written."""
    return [each.replace(",", "").rstrip(".") for each in NUMBER.findall(text)]


def as_printed(found: list[str], wanted: list[float], text: str) -> None:
    """Whether so many numbers are written, each to the digits that are shown, or to two digits."""
    assert len(found) == len(wanted), (text, found, wanted)
    for each, value in zip(found, wanted):
        unit = 10.0 ** -len(each.partition(".")[2])
        assert abs(float(each) - value) <= 0.51 * unit or float(each) == float(f"{value:.2g}"), (text, each, value)


def reached(order: list[tuple], begin) -> set:
    """Whatever pair is farther than one, by the comparisons of an order."""
    found, ahead = {begin}, [begin]
    while ahead:
        at = ahead.pop()
        new = {far for near, far in order if near == at} - found
        found |= new
        ahead += new
    return found


@cache
def _answers(w: World):
    """Of each question: how often each answer was given by whom; nobody is somebody else each time."""
    found: dict = defaultdict(Counter)
    for number, ((i, j, k, l), event) in enumerate(w.said):
        near, far = frozenset((i, j)), frozenset((k, l))
        found[frozenset((near, far))][near, event.get("worker", number)] += 1
    return [*found.values()]


@cache
def agreeing(w: World, own: bool) -> tuple[float, int]:
    """How often an answer is that of most of the others, or of one's own others, and of how many; ties one half."""
    right = of = 0.0
    for given in _answers(w):
        for (near, who), times in given.items():
            if own and not isinstance(who, str):
                continue
            rest = {key: n for key, n in given.items() if (key[1] == who) == own}
            net = sum(n if key[0] == near else -n for key, n in rest.items()) - own
            if sum(rest.values()) - own > 0:
                right, of = right + times * (1.0 if net > 0 else 0.5 if net == 0 else 0.0), of + times
    return right / of, int(of)


@cache
def at_most(w: World) -> float | None:
    """(1 + sqrt(2 a - 1)) / 2 for the share a of pairs of two people's answers to a question that agree, of questions
    by their answers; unknown where its 95 % interval is wider than .1."""
    agree, weight = [], []
    for given in _answers(w):
        pairs = [(n * m, one[0] == two[0]) for one, n in given.items() for two, m in given.items() if one[1] != two[1]]
        if of := sum(n for n, _ in pairs):
            agree.append(sum(n for n, alike in pairs if alike) / of)
            weight.append(sum(given.values()))
    a = np.average(agree, weights=weight)
    error = 1.96 * np.sqrt(sum((w * (each - a)) ** 2 for each, w in zip(agree, weight))) / sum(weight)
    low, best, high = ((1 + min(max(2 * each - 1, 0), 1) ** 0.5) / 2 for each in (a - error, a, a + error))
    return best if high - low <= 0.1 else None


@cache
def guard(w: World) -> Counter:
    """What the order does with each comparison: kept, said before, the opposite of one that is kept, or a cycle."""
    verdicts, kept, after = Counter(), set(), defaultdict(set)
    for i, j, k, l in (rows for rows, _ in w.said):
        near, far = frozenset((i, j)), frozenset((k, l))
        if (near, far) in kept or (far, near) in kept:
            verdicts["duplicate" if (near, far) in kept else "contradiction"] += 1
        elif near in reached([(a, b) for a, bs in after.items() for b in bs], far):
            verdicts["cycle"] += 1
        else:
            verdicts["accepted"] += 1
            kept.add((near, far))
            after[near].add(far)
    return verdicts
