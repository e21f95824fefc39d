"""How often does the test of `sdp_clustering` see clusters in a continuum, and how often does it find those there are?

    python -m tests.benchmarks cluster_verdicts [--seeds 9] [--table]

Continua: 14 kinds (`CONTINUA`) of 30 to 80 objects, 50 to 120 answers an object. Groups: k = 2 to 12 Gaussian groups in
the plane, the nearest centres 3, 4, 5, 6 or 12 standard deviations apart, on a line, a ring, a grid or at random, some
of unequal size, 6 to 10 objects a group (30 at least in all), 60 to 140 answers an object. Both are answered by five
models (`ANSWERS`) with .83 to .93 of the answers right: every answer wrong equally often (flat), STE with a lapse,
normal errors of distances (probit), logistic errors of city-block distances, and 20 participants who weigh the axes
differently and lapse differently. The oracle knows the points and chooses k by the gap statistic (Tibshirani, Walther &
Hastie 2001). Agreement: two independent studies of the same objects; the agreement of their groups beside what one of
them says of itself (`stability`). Every run is a line of cluster_verdicts.jsonl, and one that is there is not made
again, so the command can be stopped and resumed. `--seeds` begin at `FIRST`, which no setting was chosen on. It ends
with the figures of the tables in the manual's measurements, line by line.
"""

import argparse
import json
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit, ndtr

import stream_engine
from stream_engine.clustering import borders
from stream_engine.clustering.stability import agreement
from stream_engine.refits.cluster_verdict import verdict
from stream_engine.refits.sdp_clustering import Params, refit
from stream_engine.state.snapshot import Snapshot

FIRST = 100_000
KEPT = Path(__file__).with_suffix(".jsonl")
CONTINUA = (
    *("line", "band", "spiral", "triangle", "ring", "square", "disc", "lognormal"),
    *("gaussian1", "gaussian2", "gaussian3", "gaussian5", "swiss roll", "funnel"),
)
ANSWERS = ("flat", "ste", "probit", "city block", "people")
APART = (3, 4, 5, 6, 12)
LAYOUTS = ("line", "ring", "grid", "random")
DRAWS = Params().test
PEOPLE = 20
AGREEING = (("disc", 0), ("gaussian2", 0), ("ring", 0), ("", 3), ("", 6))  # kinds of worlds, or groups so far apart


def continuum(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """(n, d) points of a kind, about 0 with a mean square of 1."""
    u, v = rng.random(n), rng.random(n)
    turn = 2 * np.pi * u
    if kind == "line":
        points = u[:, None]
    elif kind == "band":
        radius = 1 + 0.15 * rng.normal(size=n)
        points = np.stack([radius * np.cos(turn / 2), radius * np.sin(turn / 2)], axis=1)
    elif kind == "spiral":
        angle = 3 * np.pi * np.sqrt(0.05 + 0.95 * u)
        points = np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1)
    elif kind == "triangle":
        points = np.stack([1 - np.sqrt(u), np.sqrt(u) * (1 - v)], axis=1) @ [[1, 0], [0.5, 0.866]]
    elif kind in ("ring", "disc"):
        radius = np.ones(n) if kind == "ring" else np.sqrt(v)
        points = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    elif kind == "square":
        points = np.stack([u, v], axis=1)
    elif kind == "lognormal":
        points = np.exp(0.8 * rng.normal(size=(n, 1)))
    elif kind == "swiss roll":
        angle = 1.5 * np.pi * (1 + u)
        points = np.stack([angle * np.cos(angle), angle * np.sin(angle), 10 * v], axis=1)
    elif kind == "funnel":
        width = 1 - np.sqrt(u)
        points = np.stack([3 * width, *(0.8 * width * rng.normal(size=(2, n)))], axis=1)
    else:
        points = rng.normal(size=(n, int(kind[-1])))
    return _unit(points)


def groups(rng: np.random.Generator, k: int, apart: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) points of k groups whose nearest centres are so many standard deviations apart, and their groups."""
    layout = LAYOUTS[int(rng.integers(4))]
    if layout == "line":
        centres = np.stack([np.arange(k), np.zeros(k)], axis=1)
    elif layout == "ring":
        turn = 2 * np.pi * np.arange(k) / k
        centres = np.stack([np.cos(turn), np.sin(turn)], axis=1) * 0.5 / np.sin(np.pi / k)
    elif layout == "grid":
        centres = np.stack(np.divmod(np.arange(k), int(np.ceil(np.sqrt(k)))), axis=1).astype(float)
    else:
        centres = _at_random(rng, k)
    group = np.arange(n) % k
    if rng.integers(2) and n >= 6 * k:
        group = np.concatenate([np.repeat(np.arange(k), 5), rng.choice(k, n - 5 * k, p=rng.dirichlet(np.full(k, 4.0)))])
    return _unit(apart * centres[group] + rng.normal(size=(n, 2))), group


def _at_random(rng: np.random.Generator, k: int) -> np.ndarray:
    """(k, 2) centres, no two nearer than 1."""
    side, found = 1.2 * np.sqrt(k), np.empty((0, 2))
    while len(found) < k:
        found = np.empty((0, 2))
        for centre in side * rng.random((2000, 2)):
            if len(found) < k and (len(found) == 0 or ((found - centre) ** 2).sum(axis=1).min() >= 1):
                found = np.vstack([found, centre])
        side *= 1.05
    return found


def _unit(points: np.ndarray) -> np.ndarray:
    points = points - points.mean(axis=0)
    return points / np.sqrt((points**2).sum(axis=1).mean())


def answered(
    rng: np.random.Generator, points: np.ndarray, count: int, model: str, right: float
) -> tuple[np.ndarray, np.ndarray]:
    """(about `count`, 3) answers, anchor, near and far, of which so many are right; and who gave each."""
    n, people = len(points), rng.integers(PEOPLE, size=count)
    anchor = rng.integers(n, size=count)
    one, other = ((anchor + rng.integers(1, n, size=count)) % n for _ in range(2))
    anchor, one, other, people = (column[one != other] for column in (anchor, one, other, people))
    steps = np.abs(points[anchor] - points[one]), np.abs(points[anchor] - points[other])
    if model == "people":
        weight = np.exp(0.5 * rng.normal(size=(PEOPLE, points.shape[1])))
        weight /= np.sqrt((weight**2).mean(axis=1, keepdims=True))
        steps = weight[people] * steps[0], weight[people] * steps[1]
    near, far = (step.sum(axis=1) if model == "city block" else (step**2).sum(axis=1) for step in steps)
    if model == "flat":
        p = np.where(far > near, right, 1 - right)
    elif model == "probit":
        p = _scaled(np.sqrt(far) - np.sqrt(near), ndtr, right)
    else:
        p = _scaled(far - near, expit, right)
    lapse = rng.beta(1, 6, size=PEOPLE)[people] if model == "people" else 0.05 if model == "ste" else 0.0
    yes = rng.random(len(p)) < lapse / 2 + (1 - lapse) * p
    return np.stack([anchor, np.where(yes, one, other), np.where(yes, other, one)], axis=1), people


def _scaled(delta: np.ndarray, distribution, right: float) -> np.ndarray:
    """P(near), the differences scaled so that so many answers are right."""
    low, high = 1e-4, 1e4
    for _ in range(50):
        scale = np.sqrt(low * high)
        low, high = (scale, high) if distribution(scale * np.abs(delta)).mean() < right else (low, scale)
    return distribution(scale * delta)


def snapshot_of(rows: np.ndarray, people: np.ndarray | None = None) -> tuple[Snapshot, np.ndarray]:
    """What the engine keeps of these answers; and the number of each of its objects."""
    events = [dict(zip(("anchor", "near", "far"), map(str, row))) for row in rows.tolist()]
    if people is not None:
        events = [event | {"worker": f"p{person}"} for event, person in zip(events, people.tolist(), strict=True)]
    snapshot = stream_engine.read(events).snapshot
    return snapshot, np.array([int(name) for name in snapshot.objects])


def by_gap(rng: np.random.Generator, points: np.ndarray, references: int = 10) -> int:
    """The number of groups by the gap statistic: the smallest k with Gap(k) >= Gap(k + 1) - s(k + 1)."""
    ks = tuple(range(2, len(points) // 5 + 2))
    middle = points - points.mean(axis=0)
    turned = middle @ np.linalg.svd(middle, full_matrices=False)[2].T

    def log_within(cloud: np.ndarray) -> np.ndarray:
        whole = ((cloud - cloud.mean(axis=0)) ** 2).sum()
        return np.log(np.maximum([1.0, *(cut.within for cut in borders.cuts(cloud, ks))], 1e-12) * whole)

    drawn = np.array(
        [log_within(rng.uniform(turned.min(axis=0), turned.max(axis=0), turned.shape)) for _ in range(references)]
    )
    gap, error = drawn.mean(axis=0) - log_within(turned), drawn.std(axis=0) * np.sqrt(1 + 1 / references)
    enough = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    return 1 + int(enough[0]) if len(enough) else len(gap)


def runs(seeds: int) -> Iterator[tuple[str, int, str | None, int]]:
    """(kind or groups, how far apart, answers, seed); "3": three groups; no answers: two studies that may agree."""
    for seed in range(FIRST, FIRST + seeds):
        yield from ((kind, apart, None, seed) for kind, apart in AGREEING)
        yield from ((kind, 0, model, seed) for kind in CONTINUA for model in ANSWERS)
        for k in range(2, 13):
            yield from ((str(k), apart, ANSWERS[(seed + k + apart) % 5], seed) for apart in APART)


def run(kind: str, apart: int, model: str, seed: int) -> dict:
    """The verdict about one study."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{kind} {apart} {model}".encode())])
    if apart:
        k = int(kind)
        n = int(rng.integers(max(30, 6 * k), max(61, 10 * k)))
        points, group = groups(rng, k, apart, n)
        count = int(rng.integers(60, 141) * n)
    else:
        n = int(rng.integers(30, 81))
        points, group = continuum(rng, kind, n), np.zeros(n, int)
        count = int(rng.integers(50, 121) * n)
    rows, people = answered(rng, points, count, model, float(rng.uniform(0.83, 0.93)))
    snapshot, number = snapshot_of(rows, people if model == "people" else None)
    began = time.process_time()
    said = verdict(snapshot, np.arange(len(number)), DRAWS, 0, seed)
    spent = time.process_time() - began
    return {
        "kind": kind,
        "apart": apart,
        "answers": model,
        "seed": seed,
        "n": n,
        "asked": len(rows),
        "verdict": said.said,
        "k": said.k,
        "p": None if said.p_continuum != said.p_continuum else round(said.p_continuum, 4),
        "crowding": None if said.crowding is None else round(said.crowding, 3),
        "model": said.model,
        "dimensions": said.dimensions,
        "ari": None if said.labels is None or not apart else round(agreement(said.labels, group[number]) or 0.0, 3),
        "oracle": by_gap(rng, points),
        "cpu": round(spent, 2),
    }


def agreeing(kind: str, apart: int, seed: int, k: int = 3) -> dict:
    """What a study says of the stability of k groups, and how well those of two independent studies agree."""
    rng = np.random.default_rng([seed, 7, zlib.crc32(f"{kind} {apart}".encode())])
    n = int(rng.integers(30, 61))
    points = groups(rng, k, apart, n)[0] if apart else continuum(rng, kind, n)
    count, right = int(rng.integers(20, 101) * n), float(rng.uniform(0.83, 0.93))
    made, labels = [], np.full((2, n), -1)
    for study in range(2):
        snapshot, number = snapshot_of(answered(rng, points, count, "ste", right)[0])
        made.append(refit(snapshot, Params(k=k, test=0), seed))
        labels[study, number] = made[-1].arrays["labels"]
    true = agreement(*labels)
    said = np.mean([each.report["stability"]["ari"] for each in made])
    return {
        "kind": kind,
        "apart": apart,
        "seed": seed,
        "true": round(float(true or 0), 3),
        "said": round(float(said), 3),
    }


def main(arguments: list[str] | None = None) -> int:
    """The command of the head of the file."""
    from tests.manual import kept_tables

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--table", action="store_true", help="only the tables of what is kept")
    given = parser.parse_args(arguments)
    results = [json.loads(line) for line in KEPT.read_text().splitlines()]
    done = {(each["kind"], each["apart"], each.get("answers"), each["seed"]) for each in results}
    for kind, apart, model, seed in () if given.table else runs(given.seeds):
        if (kind, apart, model, seed) not in done:
            found = run(kind, apart, model, seed) if model else agreeing(kind, apart, seed)
            with open(KEPT, "a") as file:
                print(json.dumps(found), file=file)
    for lines in (kept_tables.false_clusters(), kept_tables.found_groups(), kept_tables.agreement()):
        print("\n".join("  ".join(f"{figure:6.4g}" for figure in line) for line in lines), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
