"""Studies made to show what the first screen of a report says: each is a list of events."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stream_engine import read
from stream_engine.api.study import Study
from stream_engine.report.material import Material, material
from stream_engine.state import artifact
from tests.support import digit_answers
from tests.support.session_store import once

Events = list[dict[str, Any]]
PARTICIPANTS = 30


def answered(
    rng: np.random.Generator,
    points: np.ndarray,
    ids: np.ndarray,
    worker: str,
    time: float,
    how: Callable[[np.random.Generator, int], int] | None = None,
    number: int = 0,
) -> dict[str, Any]:
    """A pick between two shown objects; `how` chooses the position whatever is shown."""
    anchor, *shown = rng.choice(ids, 3, replace=False).tolist()
    apart = [((points[anchor] - points[each]) ** 2).sum() + rng.normal(0, 0.5) for each in shown]
    chosen = shown[int(np.argmin(apart)) if how is None else how(rng, number)]
    other = next(each for each in shown if each != chosen)
    return {"anchor": f"o{anchor}", "near": f"o{chosen}", "far": f"o{other}", "worker": worker, "time": time}


def study(
    points: np.ndarray,
    answers: int,
    careless: dict[str, Any] | None = None,
    sets: tuple[int, ...] = (),
    seed: int = 0,
) -> Events:
    """Answers of participants about points; `careless`: who chooses how; `sets`: sizes of sets of objects
    that are never compared with each other."""
    rng, events = np.random.default_rng(seed), []
    bounds = np.cumsum([0, *(sets or (len(points),))])
    clock = {f"S{number:02}": 1000.0 * number for number in range(PARTICIPANTS)}
    for at in range(answers):
        worker = f"S{at % PARTICIPANTS:02}"
        which = at // PARTICIPANTS % (len(bounds) - 1)
        clock[worker] += 2.0 * rng.uniform(0.7, 1.3)
        ids, how = np.arange(bounds[which], bounds[which + 1]), (careless or {}).get(worker)
        events.append(answered(rng, points, ids, worker, clock[worker], how, at // PARTICIPANTS))
    return events


def grouped(rng: np.random.Generator, n: int, groups: int, apart: float = 4.0) -> np.ndarray:
    """(n, 2) points in groups around a circle."""
    angle = 2 * np.pi * np.arange(n) / groups
    return apart * np.stack([np.cos(angle), np.sin(angle)], 1) + rng.normal(0, 0.6, (n, 2))


def digits(answers: int = 60_000) -> tuple[Events, np.ndarray]:
    """Answers about 200 handwritten digits, one in ten wrong; and the digits."""
    pixels, target = digit_answers.digits(0)
    rows = digit_answers.simulated_answers(pixels, answers, digit_answers.FLIPPED, np.random.default_rng(1))
    return [dict(zip(("anchor", "near", "far"), (f"o{i}" for i in row))) for row in rows.tolist()], target


def same_among_nearest(made: Study, target: np.ndarray, k: int = 10) -> float:
    """How many of the k nearest objects in the picture have the object's own class."""
    shown = made.map(2)
    of = target[[int(name[1:]) for name in shown.names]]
    apart = ((shown.points[:, None] - shown.points) ** 2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    near = np.argsort(apart, axis=1)[:, :k]
    return float((of[near] == of[:, None]).mean())


def coin(rng: np.random.Generator, number: int) -> int:
    """Answer at random."""
    return int(rng.random() < 0.5)


def all_guess() -> Events:
    """Thirty participants who answer at random."""
    people = {f"S{number:02}": coin for number in range(30)}
    return study(np.random.default_rng(1).normal(size=(20, 2)), 1800, careless=people)


def two_sets() -> Events:
    """Two sets of objects that are never compared with each other."""
    return study(np.random.default_rng(2).normal(size=(50, 5)), 3000, sets=(30, 20))


def weakly_joined(across: int = 3) -> Events:
    """Two sets of ten objects with many answers in each, and few about objects of both."""
    points, rng = np.random.default_rng(2).normal(size=(20, 2)), np.random.default_rng(4)
    joining = [answered(rng, points, np.array([at, at + 1, at + 10]), "S00", 1e6 + at) for at in range(across)]
    return study(points, 2000, sets=(10, 10)) + joining


def no_structure() -> Events:
    """A continuum: a disc without gaps."""
    rng = np.random.default_rng(5)
    angle, radius = rng.uniform(0, 2 * np.pi, 30), 2.0 * np.sqrt(rng.random(30))
    return study(np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1), 4000)


def good() -> Events:
    """Three groups, thirty participants who answer with care."""
    return study(grouped(np.random.default_rng(6), 30, 3), 4000)


def fitted(events: Events, seed: int = 0, **params: Any) -> Study:
    """The study with what its page needs; `params` of the embedding."""
    counts = read(events, frames="arrow").published
    fits = {kind: artifact.decode(data) for kind, data in once(_fits, events, seed, params).items()}
    return Study(counts._replace(artifacts=fits), seed=seed)


def _fits(events: Events, seed: int, params: dict[str, Any]) -> dict[str, bytes]:
    made = read(events, frames="arrow")
    made.seed = seed
    fits = made.fit("embedding", **params).fit("clusters").published.artifacts
    return {kind: b"".join(artifact.encode(each)[0]) for kind, each in fits.items()}


def of(made: Study, **more: Any) -> Material:
    """What its page is made of."""
    return material(made.published, **more)
