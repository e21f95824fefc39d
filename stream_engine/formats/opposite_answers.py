"""Participants, or parts of a file, who answer the other way round from the others, or change half-way: as where keys
or an instruction were reversed for some of them.

Each half of a participant's answers has a sign, by which the similarities that they imply agree best with those of all
others (the leading eigenvector). Signs count only if those of one half of the answers carry over to the other half.
"""

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

MIN_ANSWERS, MIN_OF_HALF = 20, 15  # of a participant, for each is a test
MAX_ANSWERS, MAX_CELLS = 10_000, 4_000_000  # that are looked at; of the similarities of all halves
N_PARTS = 10  # of a file without participants
LEVEL = 0.005  # of the tests of all participants together
CARRIES_OVER = 4.0  # standard errors
CERTAIN = 2.33  # standard errors, of a half that is opposite or not
LIKELY = 1.64  # standard errors, of one more participant where another one certainly is opposite
AS_CLEAR = 0.6  # in terms of the usual agreement: less is another view, which is no reversed one
CLEAR = 0.3  # mean of a half, from which the other one looks random beside it
EVEN = (0.35, 0.65)  # share of the answers, with which none of two opposite groups is the larger one
N_NAMED = 25

Answer = tuple[str, Sequence[tuple[str, ...]]]  # participant, and comparisons


class _Compared(NamedTuple):
    """Comparisons of numbered answers: each says that pair `near` is more alike than pair `far`."""

    near: np.ndarray
    far: np.ndarray
    answer: np.ndarray
    person: np.ndarray  # of each answer
    anchor: np.ndarray  # of each answer
    half: np.ndarray  # of each answer: twice the number of the person, and one more in the second half
    n_pairs: int

    def similarities(self, weight: np.ndarray) -> np.ndarray:
        """(halves, pairs) sums of the answers of each half, each with a weight."""
        sums = np.zeros((2 * (int(self.person.max()) + 1), self.n_pairs))
        of = self.half[self.answer]
        np.add.at(sums, (of, self.near), weight[self.answer])
        np.add.at(sums, (of, self.far), -weight[self.answer])
        return sums

    def agreement(self, sums: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """(answers,) 1 where an answer is as the other people's with their signs say, -1 where not, 0 where neither."""
        signed = sums * signs[:, None]
        of_others = signed.sum(0) - signed.reshape(-1, 2, self.n_pairs).sum(1)
        of = self.person[self.answer]
        margin = of_others[of, self.near] - of_others[of, self.far]
        return np.sign(np.bincount(self.answer, np.sign(margin), len(self.person)))


def opposite_answers(answers: Iterable[Answer], by_anchor: bool = False) -> list[str]:
    """What to say of who answers the other way round, or changes. `by_anchor`: answers about one anchor, one after
    another, depend on each other."""
    compared, names = _numbered(answers)
    if compared is None:
        return []
    sums = compared.similarities(np.ones(len(compared.person)))
    signs = _signs(sums)
    if not _carry_over(compared):
        return []
    agreement = compared.agreement(sums, signs)
    agreement *= 1 if agreement.sum() >= 0 else -1
    people = [agreement[compared.person == number] for number in range(len(names))]
    if by_anchor:
        people = [_by_run(each, compared.anchor[compared.person == number]) for number, each in enumerate(people)]
    certain, different = (NormalDist().inv_cdf(1 - LEVEL / sides / len(names)) for sides in (1, 2))
    changes = [_change(each, different) for each in people]
    opposite = _opposite_people(people, changes, certain)
    if opposite and not _are_reversed(compared, sums, signs, opposite):
        opposite = []
    changed = [(name, change) for name, change in zip(names, changes) if change]
    return [*_opposite(names, opposite, [len(each) for each in people]), *_changed(changed, len(names))]


def _opposite_people(people: list[np.ndarray], changes: Sequence[object], certain: float) -> list[int]:
    """Who answers the other way round, about as clearly as others answer alike; where somebody certainly does, also
    those of whom it is likely."""
    errors = [each.sum() / sqrt(len(each)) for each in people]
    usual = float(np.median([abs(each.mean()) for each in people]))
    likely = [
        number
        for number, each in enumerate(people)
        if not changes[number] and errors[number] <= -LIKELY and each.mean() <= -AS_CLEAR * usual
    ]
    return likely if any(errors[number] <= -certain for number in likely) else []


def _are_reversed(compared: _Compared, sums: np.ndarray, signs: np.ndarray, opposite: list[int]) -> bool:
    """Whether the others predict the reverse of these people's answers about as well as each other's: else they have
    another view."""
    is_other = ~np.isin(np.arange(len(signs)) // 2, opposite)
    agreement = compared.agreement(sums, signs * is_other)
    among = ~np.isin(compared.person, opposite)
    of_others, of_opposite = float(agreement[among].mean()), float(agreement[~among].mean())
    return of_opposite * of_others <= -AS_CLEAR * of_others**2


def _numbered(answers: Iterable[Answer]) -> tuple[_Compared | None, list[str]]:
    """The comparisons of the people with enough answers, or of parts of a file, and what these are called."""
    listed = [answer for _, answer in zip(range(MAX_ANSWERS), answers)]
    if not any(name for name, _ in listed):
        size = max(MIN_ANSWERS, -(-len(listed) // N_PARTS))
        listed = [(f"{row - row % size + 1}", comparisons) for row, (_, comparisons) in enumerate(listed)]
        ends = {name: min(int(name) + size - 1, len(listed)) for name, _ in listed}
        listed = [(f"answers {int(name):,} to {ends[name]:,}", comparisons) for name, comparisons in listed]
    sizes: dict[str, int] = {}
    for name, _ in listed:
        sizes[name] = sizes.get(name, 0) + 1
    names = [name for name, size in sizes.items() if size >= MIN_ANSWERS and name]
    numbers, nth = {name: number for number, name in enumerate(names)}, dict.fromkeys(names, 0)
    pairs: dict[frozenset[str], int] = {}
    objects: dict[str, int] = {}
    person: list[int] = []
    anchor: list[int] = []
    half: list[int] = []
    rows: list[tuple[int, int, int]] = []
    for name, comparisons in listed:
        if name in numbers:
            for one in comparisons:
                near, far = (one[:2], (one[0], one[2])) if len(one) == 3 else (one[:2], one[2:])
                of_near, of_far = (pairs.setdefault(frozenset(pair), len(pairs)) for pair in (near, far))
                rows.append((of_near, of_far, len(person)))
            person.append(numbers[name])
            anchor.append(objects.setdefault(comparisons[0][0], len(objects)))
            half.append(2 * numbers[name] + (2 * nth[name] >= sizes[name]))
            nth[name] += 1
    if len(names) < 3 or 2 * len(names) * len(pairs) > MAX_CELLS:
        return None, names
    near, far, answer = np.array(rows).T
    return _Compared(near, far, answer, np.array(person), np.array(anchor), np.array(half), len(pairs)), names


def _signs(sums: np.ndarray) -> np.ndarray:
    """(halves,) the signs with which the similarities of people agree best with those of others."""
    product = sums @ sums.T
    same = np.arange(len(sums)) // 2
    product[same[:, None] == same] = 0.0
    vector = np.random.default_rng(0).normal(size=len(sums))
    shift = np.abs(product).sum(1).max()  # so that the largest eigenvalue is the leading one
    for _ in range(200):
        vector = product @ vector + shift / 4 * vector
        vector /= max(float(np.linalg.norm(vector)), 1e-300)
    return np.where(vector < 0, -1.0, 1.0)


def _carry_over(compared: _Compared) -> bool:
    """Whether signs by every second answer predict the other answers."""
    total = n = 0.0
    every_second = np.arange(len(compared.person)) % 2
    for part in (every_second, 1 - every_second):
        sums = compared.similarities(part.astype(float))
        signs = _signs(sums)
        others = (compared.agreement(sums, signs) * signs[compared.half])[part == 0]
        total, n = total + others.sum(), n + np.count_nonzero(others)
    return total >= CARRIES_OVER * sqrt(2 * max(n, 1.0))


def _by_run(agreement: np.ndarray, key: np.ndarray) -> np.ndarray:
    """The mean agreement of each run of answers with the same key."""
    run = np.cumsum(np.append(True, key[1:] != key[:-1])) - 1
    return np.bincount(run, agreement) / np.bincount(run)


def _change(agreement: np.ndarray, different: float) -> tuple[str, int, int] | None:
    """How a participant changes between the halves of their answers, from which answer on, and of how many; None
    where they do not."""
    n = len(agreement)
    if n < 2 * MIN_OF_HALF:
        return None
    halves = agreement[: n // 2], agreement[n // 2 :]
    means, errors = [float(half.mean()) for half in halves], [1 / sqrt(len(half)) for half in halves]
    spread = sqrt(max(1 - float(agreement.mean()) ** 2, 0.1)) * sqrt(errors[0] ** 2 + errors[1] ** 2)
    if abs(means[0] - means[1]) < different * spread:
        return None
    begins = np.arange(1, n)
    before, total = np.cumsum(agreement)[:-1], agreement.sum()
    gap = np.abs(before / begins - (total - before) / (n - begins)) * np.sqrt(begins * (n - begins) / n)
    low, high = min(means), max(means)
    error = errors[means.index(low)]
    if high < CLEAR:
        return None
    how = "the other way round" if low <= -CERTAIN * error else "at random" if low <= CERTAIN * error / 2 else ""
    when = "from" if means[1] == low else "until"
    return (f"{how} {when}", int(begins[gap.argmax()]) + (when == "from"), n) if how else None


def _opposite(names: list[str], opposite: list[int], sizes: list[int]) -> list[str]:
    if not opposite:
        return []
    share = sum(sizes[number] for number in opposite) / sum(sizes)
    of_all, are = f"{len(opposite)} of {len(names)}", "answers" if len(opposite) == 1 else "answer"
    text = f"{_listed([names[number] for number in opposite])} ({of_all}) {are} the other way round from the others"
    if EVEN[0] < share < EVEN[1]:
        text += ", and the answers do not tell which of the two are right"
    return [
        f"{text}: were keys or the instruction reversed for them? Reversing all answers would be wrong; correct these "
        "alone in the file, or leave them out (--where)"
    ]


def _changed(changes: list[tuple[str, tuple[str, int, int]]], n_people: int) -> list[str]:
    texts = [f"{name} ({how} about answer {at} of {n})" for name, (how, at, n) in changes]
    if not texts:
        return []
    are = "answers" if len(texts) == 1 else "answer"
    text = f"{_listed(texts)}: {len(texts)} of {n_people} {are} otherwise in one half of the answers than in the other "
    return [f"{text}(were keys or the instruction changed? They may be flagged as guessing for it)"]


def _listed(texts: list[str]) -> str:
    return ", ".join(texts[:N_NAMED]) + (f" and {len(texts) - N_NAMED} more" if len(texts) > N_NAMED else "")
