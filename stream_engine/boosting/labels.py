"""Labels as sets, examples as groups, and the split of labelled objects into training and test sets. O(n |Y|)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.hashing import GOLDEN_GAMMA, mix64

UNLABELLED, TRAIN, TEST, OUTSIDE = 0, 1, 2, 4  # parts; OUTSIDE: labelled, but not in the subset


class Groups(NamedTuple):
    """The examples, numbered group by group.

    A label set is the classes of an object: one, or several if objects are multi-label (a film and its genres).
    Examples with the same label set form a group. Two examples can be the references of a triplet classifier exactly if
    their groups differ (y_j != y_k).
    """

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
    """Label sets of the objects and the class texts, sorted; with `multi_label`, "a|b" means both a and b.

    >>> sets, classes = parse(["x", "y"], {"y": "b|a", "elsewhere": "z"}, multi_label=True)
    >>> sets.tolist(), classes
    ([[False, False], [True, True]], ['a', 'b'])
    """
    texts = {i: labels[name] for i, name in enumerate(objects) if name in labels}
    parts = {i: sorted(set(text.split("|")) - {""}) if multi_label else [text] for i, text in texts.items()}
    classes = sorted({label for class_texts in parts.values() for label in class_texts})
    index = {label: c for c, label in enumerate(classes)}
    sets = np.zeros((len(objects), len(classes)), bool)
    for i, class_texts in parts.items():
        sets[i, [index[label] for label in class_texts]] = True
    return sets, classes


def group(sets: np.ndarray, examples: np.ndarray) -> Groups:
    """The groups of the given labelled objects: by label set, within a group by id.

    >>> g = group(label_sets([1, 0, 1, -1], 4), np.array([0, 1, 2]))
    >>> g.example.tolist(), g.start.tolist(), g.truth.astype(int).tolist()
    ([1, 0, 2], [0, 1, 3], [[1, 0], [0, 1]])
    """
    examples = np.sort(np.asarray(examples, np.int32))
    truth, group_of_example = np.unique(~sets[examples], axis=0, return_inverse=True)
    group_of_example = group_of_example.reshape(-1)
    sizes = np.bincount(group_of_example, minlength=len(truth))
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    return Groups(examples[np.argsort(group_of_example, kind="stable")], starts, ~truth)


def scramble(values: np.ndarray, seed: int) -> np.ndarray:
    """A random-looking uint64 for every integer, the same on every machine and whatever the other integers
    (SplitMix64)."""
    with np.errstate(over="ignore"):
        z = np.asarray(values).astype(np.uint64) * np.uint64(GOLDEN_GAMMA)
        return mix64(z + np.uint64((seed * 0xD1B54A32D192ED03 + 0x8CB92BA72F3D8DD7) % 2**64))


def split(sets: np.ndarray, test: float, seed: int, inside: np.ndarray | None = None) -> np.ndarray:
    """(n,) int8 parts: of every group the first floor(test * size) members by a hash of their id are TEST, the others
    TRAIN; labelled objects that are not `inside` (n,) bool are OUTSIDE. Every class keeps a training example.

    Depends on ids, labels and the seed alone, so it changes little while a stream goes on.

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
    """Parts (n,) int8 of round(1 / test) fits, at least two, in which every labelled object `inside` (n,) bool is TEST
    once.

    The only object of a label set is always TRAIN. Order and shares are those of `split`, label set by label set.

    >>> made = folds(label_sets([0, 0, 0, 1, 1, 1, 1, 2], 8), 0.34, 1, np.ones(8, bool))
    >>> (np.stack(made) == TEST).sum(axis=0).tolist(), [int((parts == TEST).sum()) for parts in made]
    ([1, 1, 1, 1, 1, 1, 1, 0], [3, 2, 2])
    """
    n_folds = max(round(1.0 / test), 2)
    order, has_label = scramble(np.arange(len(sets)), seed), sets.any(axis=1)
    untested = np.where(has_label, np.where(inside, TRAIN, OUTSIDE), UNLABELLED).astype(np.int8)
    fold_parts = [untested.copy() for _ in range(n_folds)]
    groups = group(sets, np.flatnonzero(untested == TRAIN))
    for a, b in zip(groups.start, groups.start[1:]):
        members = groups.example[a:b]
        members = members[np.argsort(order[members], kind="stable")]
        number = np.arange(b - a) % n_folds
        for fold, parts in enumerate(fold_parts if b - a > 1 else []):
            parts[members[number == fold]] = TEST
    return fold_parts
