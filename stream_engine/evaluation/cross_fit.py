"""Cross-fitting: every answer is predicted by a model that was neither fitted to it nor chosen by it.

Responses are dealt to `FOLDS` folds by their hashes, and participants once more; two folds are a group. The setting of
a model is chosen for each group, from the answers outside it. Then the model is fitted to all answers outside each fold
of the group, and predicts those inside (cross-validation, Stone 1974; nested, Varma & Simon 2006). Figures are over all
predictions together: one split of a small study instead has a standard error of many points, and the seed decides.

Folds are predicted until the 95 % interval is within two points of the accuracy, whatever that is, or every answer was
predicted once; so all models of a study are tested on the same answers.

The folds' figures depend on each other: each answer is predicted by a fit to the answers in other folds, which are
predicted by fits to it. While a model tells little this matters, and the standard error of independent answers is too
small (Nadeau & Bengio 2003, who correct it; Bengio & Grandvalet 2004): see `_figures`.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, takewhile
from typing import NamedTuple, TypeVar

import numpy as np

from stream_engine.evaluation import held_out
from stream_engine.evaluation.held_out import Figures, HeldOut
from stream_engine.evaluation.responses import VALIDATION_SHARE, Responses, asked_fairly, parts

FOLDS, IN_GROUP = 10, 2
HALF_WIDTH = 0.02  # of a 95 % interval of the accuracy, at which no further fold is predicted
PARTICIPANTS, ENOUGH = 5, 100  # fewer are not held out; so many are enough, as their accuracies vary by some .1
MAX_PARTICIPANT_SHARE = 0.5  # share of the responses above which a participant is never held out
MAX_FITTED_COMPARISONS = 2_000_000  # comparisons that models are fitted to over all folds, beyond the first
NEVER = -1  # the fold of what is not held out
CLEAR = 3.0  # corrected standard errors from one half: up to there the corrected one is reported, and gates claims

Setting = TypeVar("Setting")
Choose = Callable[[np.ndarray], Setting]  # from the (U,) part of each unit: see `responses.parts`
Predict = Callable[[Setting, np.ndarray], Mapping[str, np.ndarray]]  # from (U,) bool, what is out, to log odds by name


class Group(NamedTuple):
    """Folds with one setting."""

    part: np.ndarray  # (U,) int8: FIT and CHOOSE choose the setting; HELD are the units of the group
    folds: tuple[np.ndarray, ...]  # (U,) bool each: the units that one fit predicts


class Plan(NamedTuple):
    """What is held out, at least one group of responses; no participants where events name too few of them."""

    responses: list[Group]
    participants: list[Group]


def plan(responses: Responses, choose: float = VALIDATION_SHARE, evaluate: bool = True) -> Plan:
    """Who is held out. `choose` is the share of the units outside a group that chooses; without `evaluate` nothing is
    held out. O(U log U)."""
    nothing = [Group(parts(responses, np.zeros(len(responses.draw), bool), choose), ())]
    if not evaluate:
        return Plan(nothing, [])
    size = np.bincount(responses.answers.response, responses.answers.times, len(responses.draw))
    fold = np.where(asked_fairly(responses) & (size > 0), (responses.draw * FOLDS).astype(int), NEVER)
    groups = _groups(responses, fold, lambda out: _half_width(size[out]) <= HALF_WIDTH, choose)
    people = _folds_of_participants(responses)
    each = _groups(responses, people, lambda out: len(np.unique(responses.participant[out])) >= ENOUGH, choose)
    return Plan(groups or nothing, each)


def _half_width(size: np.ndarray) -> float:
    """Of the accuracy of responses with so many comparisons, at worst: all of one response right or all wrong."""
    return 1.96 * 0.5 * float(np.sqrt(size @ size) / size.sum())


def _folds_of_participants(responses: Responses) -> np.ndarray:
    """(U,) fold of the unit's participant, dealt in the order of their hashes."""
    named = responses.participant >= 0
    units = np.bincount(responses.participant[named], minlength=len(responses.participant_hash))
    names = np.flatnonzero((units > 0) & (units <= MAX_PARTICIPANT_SHARE * len(responses.participant)))
    if not responses.complete or len(names) < PARTICIPANTS:
        return np.full(len(responses.participant), NEVER)
    fold = np.full(len(units) + 1, NEVER)  # the last is nobody
    fold[names[np.argsort(responses.participant_hash[names], kind="stable")]] = np.arange(len(names)) % FOLDS
    return fold[responses.participant]


def _groups(responses: Responses, fold: np.ndarray, enough: Callable[[np.ndarray], bool], choose: float) -> list[Group]:
    folds = np.unique(fold[fold != NEVER]).tolist()
    fits = max(1, MAX_FITTED_COMPARISONS // max(len(responses.answers.rows), 1))
    used = next((at for at, last in enumerate(folds, 1) if at == fits or enough((fold >= 0) & (fold <= last))), None)
    groups = []
    for first in range(0, len(folds[:used]), IN_GROUP):
        mine = folds[:used][first : first + IN_GROUP]
        part = parts(responses, np.isin(fold, folds[first : first + IN_GROUP]), choose)
        groups.append(Group(part, tuple(fold == each for each in mine)))
    return groups


def crossed(
    responses: Responses,
    groups: list[Group],
    settings: Iterable[Setting],
    predict: Predict,
    cluster: np.ndarray,
    fitted: bool = True,
) -> dict[str, Figures]:
    """The figures of each model that `predict` gives log odds of. `settings`: one a group, made when it is needed,
    while another thread predicts the groups before, one fold after the other; `cluster` (U,): what standard errors are
    over; `fitted`: see `_figures`."""
    told: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]] = {}
    with ThreadPoolExecutor(1, "folds") as beside:
        predicted = [
            (asked, beside.submit(predict, setting, out))
            for group, setting in zip(groups, settings)
            for out in group.folds
            if len((asked := responses.answers.of_responses(out)).rows)
        ]
    for asked, ahead in predicted:
        for name, margin in ahead.result().items():
            told.setdefault(name, []).append((margin, asked.times, cluster[asked.response], asked.rows))
    made = {name: [np.concatenate(column) for column in zip(*each)] for name, each in told.items()}
    return {
        name: _figures(margin, times, units, rows, len(told[name]) if fitted else 0)
        for name, (margin, times, units, rows) in made.items()
    }


def _figures(margin: np.ndarray, times: np.ndarray, cluster: np.ndarray, rows: np.ndarray, folds: int) -> Figures:
    """The figures, their standard error the larger of those over clusters and over questions: an answer that is
    predicted from another one to the same question is right where that one is, so the two count as one.

    Of f folds of one tenth each, the variance is 1 + f / 9 times as large (Nadeau & Bengio 2003, eq. 9), unless the
    accuracy is `CLEAR` of one half even so: a model that tells answers from chance does so in every fold. f = 0 for
    counts, which are not fitted: an answer changes only what they predict about the same pairs."""
    found = held_out.figures(margin, 1.0, times, cluster)
    by_question = held_out.figures(margin, 1.0, times, questions_of(rows)).standard_error
    if found.standard_error is None or by_question is None:
        return found
    error = max(found.standard_error, by_question)
    corrected = error * float(np.sqrt(1.0 + folds / (FOLDS - 1.0)))
    clear = abs(found.accuracy - 0.5) > CLEAR * corrected
    return found._replace(standard_error=error if clear else corrected)


def questions_of(rows: np.ndarray) -> np.ndarray:
    """(m,) the number of the question that each of (m, 4) rows i, j, k, l answers, whichever pair is the nearer one.
    O(m log m).

    >>> questions_of(np.array([[0, 1, 0, 2], [2, 0, 1, 0], [0, 1, 1, 2]])).tolist()
    [0, 0, 1]
    """
    low, high = np.minimum(rows[:, ::2], rows[:, 1::2]).ravel(), np.maximum(rows[:, ::2], rows[:, 1::2]).ravel()
    pairs = np.unique(low.astype(np.int64) << 32 | high, return_inverse=True)[1].reshape(len(rows), 2)
    pairs.sort(axis=1)
    return np.unique(pairs[:, 0].astype(np.int64) << 32 | pairs[:, 1], return_inverse=True)[1].reshape(-1)


def evaluated(
    responses: Responses,
    planned: Plan,
    first: Setting,
    choose: Choose,
    predict: Predict,
    predict_of_participants: Predict | None = None,
    fitted: bool = True,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, HeldOut]:
    """What reports say of each model. `first`: the setting of the first group of responses, chosen already; `fitted`:
    whether models are fitted to answers, or count them; `stopped`: no further group is predicted once it is true."""
    later = (choose(group.part) for group in takewhile(lambda _: not stopped(), planned.responses[1:]))
    number = np.arange(len(responses.draw))
    by_response = crossed(responses, planned.responses, chain([first], later), predict, number, fitted)
    settings = (choose(group.part) for group in takewhile(lambda _: not stopped(), planned.participants))
    by_participant = crossed(
        responses, planned.participants, settings, predict_of_participants or predict, responses.participant, fitted
    )
    ceiling = held_out.ceiling(responses)
    return {
        name: HeldOut(responses.by, figures, by_participant.get(name), ceiling) for name, figures in by_response.items()
    }
