"""Labels as sets, examples as groups, and the parting of labelled objects into train and test.

A *label set* is what an object is known to be: one class, or several where objects are multi-label (a film and its
genres). Examples with the same label set form a *group*; two examples can be the references of a triplet classifier
exactly when their groups differ (y_j != y_k), so examples are numbered group by group. Invariant: every class that is
split keeps an example to train on. O(n |Y|).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.hashing import GOLDEN_GAMMA, mix64

UNLABELLED, TRAIN, TEST, OUTSIDE = 0, 1, 2, 4  # the last: labelled, but not in the subset


class Groups(NamedTuple):
    """The examples, numbered group by group."""

    example: np.ndarray  # (n,) int32: object id of example 0, 1, ...
    start: np.ndarray  # (G + 1,) int64: group g holds the examples start[g]:start[g + 1]
    truth: np.ndarray  # (G, Y) bool: the label set of each group


def label_sets(y, n_objects: int) -> np.ndarray:
    """(n_objects, Y) bool label sets from class indices (-1: no label) or from a boolean matrix (no True: no label).

    >>> label_sets([1, -1, 0], 3).astype(int).tolist()
    [[0, 1], [0, 0], [1, 0]]
    """
    y = np.asarray(y)
    if y.shape[:1] != (n_objects,) or not ((y.ndim == 1 and y.dtype.kind in "iu") or (y.ndim == 2 and y.dtype == bool)):
        raise ValueError(
            f"y has shape {y.shape} and dtype {y.dtype}; expected ({n_objects},) class indices with -1 "
            f"for objects without a label, or an ({n_objects}, classes) boolean matrix"
        )
    if y.ndim == 2:
        return y
    y = y.astype(np.int64)
    if n_objects and y.min() < -1:
        raise ValueError(f"y holds class {y.min()}; expected 0, 1, ... or -1 for objects without a label")
    return y[:, None] == np.arange(y.max(initial=-1) + 1)


def parse(objects: Sequence[str], labels: Mapping[str, str], multi_label: bool) -> tuple[np.ndarray, list[str]]:
    """Label sets of the objects and the class texts, sorted; with `multi_label`, "a|b" says both a and b.

    >>> sets, classes = parse(["x", "y"], {"y": "b|a", "elsewhere": "z"}, multi_label=True)
    >>> sets.tolist(), classes
    ([[False, False], [True, True]], ['a', 'b'])
    """
    texts = {i: labels[name] for i, name in enumerate(objects) if name in labels}
    parts = {i: sorted(set(text.split("|")) - {""}) if multi_label else [text] for i, text in texts.items()}
    classes = sorted({label for those in parts.values() for label in those})
    index = {label: c for c, label in enumerate(classes)}
    sets = np.zeros((len(objects), len(classes)), bool)
    for i, those in parts.items():
        sets[i, [index[label] for label in those]] = True
    return sets, classes


def group(sets: np.ndarray, examples: np.ndarray) -> Groups:
    """The groups of the given labelled objects: by label set, within a group by id.

    >>> g = group(label_sets([1, 0, 1, -1], 4), np.array([0, 1, 2]))
    >>> g.example.tolist(), g.start.tolist(), g.truth.astype(int).tolist()
    ([1, 0, 2], [0, 1, 3], [[1, 0], [0, 1]])
    """
    examples = np.sort(np.asarray(examples, np.int32))
    truth, of = np.unique(~sets[examples], axis=0, return_inverse=True)
    of = of.reshape(-1)
    sizes = np.bincount(of, minlength=len(truth))
    return Groups(examples[np.argsort(of, kind="stable")], np.append(0, np.cumsum(sizes)).astype(np.int64), ~truth)


def scramble(values: np.ndarray, seed: int) -> np.ndarray:
    """A random-looking uint64 for every integer, the same on every machine and for every company (SplitMix64)."""
    with np.errstate(over="ignore"):
        z = np.asarray(values).astype(np.uint64) * np.uint64(GOLDEN_GAMMA)
        return mix64(z + np.uint64((seed * 0xD1B54A32D192ED03 + 0x8CB92BA72F3D8DD7) % 2**64))


def split(sets: np.ndarray, test: float, seed: int, inside: np.ndarray | None = None) -> np.ndarray:
    """(n,) int8 parts: of every group the floor(test * size) members that come first by a hash of their id are held out
    to test on; the rest are trained on, but labelled objects that are not `inside` (n,) bool (OUTSIDE).

    Depends on ids, labels and the seed alone, so it hardly moves as a stream goes on.

    >>> np.bincount(split(label_sets([0] * 10 + [1] * 5 + [-1], 16), 0.2, seed=1), minlength=3).tolist()
    [1, 12, 3]
    """
    parts = np.where(sets.any(axis=1), TRAIN, UNLABELLED).astype(np.int8)
    if inside is not None:
        parts[(parts == TRAIN) & ~inside] = OUTSIDE
    order = scramble(np.arange(len(sets)), seed)
    groups = group(sets, np.flatnonzero(parts == TRAIN))
    for a, b in zip(groups.start, groups.start[1:]):
        members = groups.example[a:b]
        members = members[np.argsort(order[members], kind="stable")]
        parts[members[: int(test * (b - a) + 1e-9)]] = TEST
    return parts


def folds(sets: np.ndarray, test: float, seed: int, inside: np.ndarray) -> list[np.ndarray]:
    """Parts (n,) int8 of round(1 / test) fits, at least two, that test every labelled object `inside` (n,) bool once,
    but the only one of its label set, which is always trained on. `split`'s order and shares, label set by label set.

    >>> made = folds(label_sets([0, 0, 0, 1, 1, 1, 1, 2], 8), 0.34, 1, np.ones(8, bool))
    >>> (np.stack(made) == TEST).sum(axis=0).tolist(), [int((parts == TEST).sum()) for parts in made]
    ([1, 1, 1, 1, 1, 1, 1, 0], [3, 2, 2])
    """
    many = max(round(1.0 / test), 2)
    order, labelled = scramble(np.arange(len(sets)), seed), sets.any(axis=1)
    nothing = np.where(labelled, np.where(inside, TRAIN, OUTSIDE), UNLABELLED).astype(np.int8)
    made = [nothing.copy() for _ in range(many)]
    groups = group(sets, np.flatnonzero(nothing == TRAIN))
    for a, b in zip(groups.start, groups.start[1:]):
        members = groups.example[a:b]
        members = members[np.argsort(order[members], kind="stable")]
        number = np.arange(b - a) % many
        for fold, parts in enumerate(made if b - a > 1 else []):
            parts[members[number == fold]] = TEST
    return made
