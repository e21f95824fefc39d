"""Answers of people who judge in different ways, about objects at known places."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Events = list[dict[str, Any]]
How = Callable[[np.random.Generator, np.ndarray, np.ndarray], int]
QUICK = "--set dimensions=2 --set kernel=ste --set ridge=1"


class World(NamedTuple):
    """What lies in a folder, and what is typed there; the state is `state`. `participants`: the page lists them;
    `whole`: all of it is approved, of others no drawings and only the ends of tables."""

    files: Callable[[], dict[str, Events | str]]
    commands: tuple[str, ...]
    participants: bool = False
    whole: bool = False
    without: tuple[str, ...] = ()  # sections and lines with figures that another processor changes


def by_distance(noise: float, *weights: float, opposite: bool = False) -> How:
    """Somebody who names the nearer one, by axes of these weights and with noise; `opposite`: the farther one."""

    def side(rng: np.random.Generator, anchor: np.ndarray, shown: np.ndarray) -> int:
        apart = (np.array(weights or (1.0, 1.0)) * (shown - anchor) ** 2).sum(axis=1) + rng.normal(0, noise, len(shown))
        return int(apart.argmax() if opposite else apart.argmin())

    return side


def coin(rng: np.random.Generator, anchor: np.ndarray, shown: np.ndarray) -> int:
    return int(rng.random() * len(shown))


def first(rng: np.random.Generator, anchor: np.ndarray, shown: np.ndarray) -> int:
    """Somebody who names the first, whatever is shown."""
    return 0 if rng.random() < 0.95 else 1


def picks(
    points: dict[str, np.ndarray],
    people: dict[str, tuple[int, How]],
    seed: int,
    shown: int = 2,
    again: float = 0.1,
    fast=(),
) -> Events:
    """Picks of one of those shown; now and then, a question that was asked before. `fast`: who hardly looks."""
    rng, events, asked = np.random.default_rng(seed), [], []
    names = list(points)
    for number, (who, (size, how)) in enumerate(people.items()):
        for at in range(size):
            if not asked or rng.random() > again:
                asked.append([names[i] for i in rng.choice(len(names), shown + 1, replace=False)])
            anchor, *among = (
                asked[-1] if asked[-1] is not None and rng.random() > again else asked[int(rng.integers(len(asked)))]
            )
            side = how(rng, points[anchor], np.array([points[name] for name in among]))
            event = {"type": "pick", "anchor": anchor, "shown": among, "chosen": [among[side]], "worker": who}
            event |= {"time": 1000.0 * (number + 1) + 3 * at}
            event |= {"milliseconds": int(rng.integers(800, 1900) / (1 + number % 3 if who not in fast else 6))}
            events.append(event)
    return events


def places(sizes: tuple[int, ...], seed: int, apart: float = 4.0, d: int = 2) -> dict[str, np.ndarray]:
    """Objects in groups of these sizes, about corners that are no regular figure."""
    rng = np.random.default_rng(seed)
    corners = apart * np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 0.8], [1.4, 1.3]])
    group = np.repeat(np.arange(len(sizes)), sizes)
    points = np.zeros((len(group), d))
    points[:, :2] = corners[group]
    points += rng.normal(0, 0.6, points.shape)
    names = [f"{word}{number}" for word, size in zip(("fish", "bird", "tree", "tool"), sizes) for number in range(size)]
    order = rng.permutation(len(names))
    return {names[i]: points[i] for i in order.tolist()}
