"""Cross-fitting: every answer is predicted by a model that was neither fitted to it nor selected by it.

Responses are dealt to `FOLDS` folds by their hashes, and participants once more; two folds are a group, of many answers
five. The setting of a model is selected for each group from the answers outside it; then the model is fitted to all
answers outside each fold of the group, and predicts those inside (cross-validation, Stone 1974; nested, Varma & Simon
2006).
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, takewhile
from typing import NamedTuple, TypeVar

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.evaluation import held_out, noise_ceiling
from stream_engine.evaluation.held_out import Figures, HeldOut
from stream_engine.evaluation.responses import VALIDATION_SHARE, Responses, asked_fairly, further_draws, parts

# Hyperparameters of a model, such as a number of dimensions and a ridge. In the shapes below, U is the number of units,
# the responses (or questions) that are held out as a whole.
Setting = TypeVar("Setting")
# Selects a setting, from the (U,) part of each unit (`responses.parts`).
Choose = Callable[[np.ndarray], Setting]
# Log odds of the held-out answers by each model (name -> (m,)), from a setting and (U,) bool: the units that are held
# out.
Predict = Callable[[Setting, np.ndarray], Mapping[str, np.ndarray]]
# All answers are predicted once, so one split does not decide: the figures of a single split of a small study have a
# standard error of many points. Two folds share a setting, because selecting one costs more than a fit with it; from
# `MANY_COMPARISONS` on five do, because half of the answers select the same as four fifths.
FOLDS, FOLDS_A_GROUP = 10, 2
MANY_COMPARISONS, LARGE_GROUP = 20_000, 5
NOT_HELD_OUT = -1  # the fold of units that are not held out


class Group(NamedTuple):
    """Folds with one setting."""

    part: np.ndarray  # (U,) int8: FIT and CHOOSE select the setting; HELD are the units of the group
    folds: tuple[np.ndarray, ...]  # (U,) bool each: the units that are predicted by one fit


class Plan(NamedTuple):
    """What is held out: at least one group of responses, and participants unless events name too few of them."""

    responses: list[Group]
    participants: list[Group]


# Fewer folds are predicted of a large study: until the 95 % interval is within two points of the accuracy, whatever
# that is. So all models of a study are tested on the same answers.
HALF_WIDTH = 0.02
# And folds of participants until so many are predicted, as their accuracies vary by about .1.
ENOUGH_PARTICIPANTS = 100


# The figures of few answers depend on how these are divided, that is, on the seed: all are predicted again in further
# divisions, up to so many predictions, and figures are means over divisions.
REPEATED_COMPARISONS, MAX_DIVISIONS = 600, 5


def plan(responses: Responses, choose: float = VALIDATION_SHARE, evaluate: bool = True, max_divisions: int = 1) -> Plan:
    """What is held out. `choose` is the validation set's share of the units outside a group; without `evaluate`,
    nothing is held out; `max_divisions`: how often all responses of a small study are predicted at most. O(U log U)."""
    without_folds = [Group(parts(responses, np.zeros(len(responses.draw), bool), choose), ())]
    if not evaluate:
        return Plan(without_folds, [])
    size = np.bincount(responses.answers.response, responses.answers.times, len(responses.draw))
    n_divisions = int(np.clip(REPEATED_COMPARISONS // max(size.sum(), 1.0), 1, max_divisions))
    groups: list[Group] = []
    for division in range(n_divisions):
        divided = further_draws(responses, division)
        fold = np.where(asked_fairly(divided) & (size > 0), (divided.draw * FOLDS).astype(int), NOT_HELD_OUT)
        groups += _groups(divided, fold, lambda out: _half_width(size[out]) <= HALF_WIDTH, choose)
    participant_fold = _folds_of_participants(responses)
    participant_groups = _groups(
        responses,
        participant_fold,
        lambda out: len(np.unique(responses.participant[out])) >= ENOUGH_PARTICIPANTS,
        choose,
    )
    return Plan(groups or without_folds, participant_groups)  # one group at least: it selects the published setting


def _half_width(size: np.ndarray) -> float:
    """Of a 95 % interval of the accuracy of responses with so many comparisons, at worst: if the comparisons of a
    response are either all predicted or all mispredicted."""
    return 1.96 * 0.5 * float(np.sqrt(size @ size) / size.sum())


MIN_PARTICIPANTS = 5  # fewer are not held out
MAX_PARTICIPANT_SHARE = 0.5  # a participant with a larger share of the responses is not held out: too few would remain


def _folds_of_participants(responses: Responses) -> np.ndarray:
    """(U,) the fold of each unit's participant; participants are dealt in the order of their hashes."""
    named = responses.participant >= 0
    responses_each = np.bincount(responses.participant[named], minlength=len(responses.participant_hash))
    names = np.flatnonzero(
        (responses_each > 0) & (responses_each <= MAX_PARTICIPANT_SHARE * len(responses.participant))
    )
    if not responses.complete or len(names) < MIN_PARTICIPANTS:
        return np.full(len(responses.participant), NOT_HELD_OUT)
    fold = np.full(len(responses_each) + 1, NOT_HELD_OUT)  # the last: no participant
    fold[names[np.argsort(responses.participant_hash[names], kind="stable")]] = np.arange(len(names)) % FOLDS
    return fold[responses.participant]


# Folds are predicted until models were fitted to so many comparisons, each counting in every fit; one fold at least.
MAX_FITTED_COMPARISONS = 2_000_000


def _groups(responses: Responses, fold: np.ndarray, enough: Callable[[np.ndarray], bool], choose: float) -> list[Group]:
    """The groups of the first folds, by the (U,) fold of each unit: so many that `enough` is true of the (U,) mask of
    all units in them, or that the limit of costs is reached."""
    folds = np.unique(fold[fold != NOT_HELD_OUT]).tolist()
    fits = max(1, MAX_FITTED_COMPARISONS // max(len(responses.answers.rows), 1))
    n_folds = next(
        (count for count, last in enumerate(folds, 1) if count == fits or enough((fold >= 0) & (fold <= last))), None
    )
    groups, size = [], LARGE_GROUP if len(responses.answers.rows) >= MANY_COMPARISONS else FOLDS_A_GROUP
    for first in range(0, len(folds[:n_folds]), size):
        group_folds = folds[:n_folds][first : first + size]
        # the setting is selected without all folds of the group, also those that are not predicted any more
        part = parts(responses, np.isin(fold, folds[first : first + size]), choose)
        groups.append(Group(part, tuple(fold == number for number in group_folds)))
    return groups


class FoldPredictions:
    """Predictions of held-out folds, made by another thread while this one selects the settings of further groups
    (compiled code runs in parallel); one thread, so that they are made in their order."""

    def __init__(self, responses: Responses) -> None:
        self._responses, self._executor = responses, ThreadPoolExecutor(1, "folds")

    def __enter__(self) -> "FoldPredictions":
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown(cancel_futures=True)

    def begin(
        self, groups: list[Group], settings: Iterable[Setting], predict: Predict
    ) -> list[tuple[Answers, Future[Mapping[str, np.ndarray]]]]:
        """The held-out answers of each fold, and what will be predicted of them. `settings`: one a group."""
        return [
            (targets, self._executor.submit(predict, setting, out))
            for group, setting in zip(groups, settings)
            for out in group.folds
            if len((targets := self._responses.answers.of_responses(out)).rows)
        ]


def fold_figures(
    pending: Iterable[tuple[Answers, Future[Mapping[str, np.ndarray]]]], cluster: np.ndarray, fitted: bool = True
) -> dict[str, Figures]:
    """The figures of each model of which there are log odds (`FoldPredictions.begin`). `cluster` (U,): the clusters of
    standard errors; `fitted`: whether models are fitted to answers (`_figures`)."""
    predictions: dict[str, list[tuple[np.ndarray, ...]]] = {}
    n_predicted = np.zeros(len(cluster), np.int64)  # how often each unit is predicted: once in each division
    for targets, future in pending:
        units = np.unique(targets.response)
        division = np.full(len(targets.rows), n_predicted[units].max(initial=0))
        n_predicted[units] += 1
        for name, margin in future.result().items():
            columns = margin, targets.times, cluster[targets.response], targets.rows, division
            predictions.setdefault(name, []).append(columns)
    return {
        name: _mean_over_divisions(len(parts) if fitted else 0, *map(np.concatenate, zip(*parts)))
        for name, parts in predictions.items()
    }


def _mean_over_divisions(
    folds: int, margin: np.ndarray, times: np.ndarray, cluster: np.ndarray, rows: np.ndarray, division: np.ndarray
) -> Figures:
    """The figures of predictions in one or several divisions of the same answers; with several, the standard error
    covers how much their mean depends on the divisions, that is, on the seed."""
    present, division = np.unique(division, return_inverse=True)  # some models are not fitted in each of them
    n = max(len(present), 1)
    figures = _figures(margin, times / n, cluster, rows, folds / n)
    if n == 1 or figures.standard_error is None:
        return figures
    right, total = (np.bincount(division, column) for column in (times * noise_ceiling.credit(margin), times))
    of_mean = float(np.std(right / total, ddof=1)) / np.sqrt(n)
    return figures._replace(standard_error=float(np.hypot(figures.standard_error, of_mean)))


CLEAR_ERRORS = 3.0  # standard errors from one half within which the corrected one is reported: it gates claims


def _figures(margin: np.ndarray, times: np.ndarray, cluster: np.ndarray, rows: np.ndarray, folds: float) -> Figures:
    """The figures of predictions by so many fitted folds; 0 for models that count answers and are not fitted."""
    # An answer that is predicted from another one to the same question is predicted correctly if that one is, so the
    # two count as one: the standard error is the larger one of those over clusters and over questions. Each answer is
    # predicted by a fit to the answers in other folds, which are predicted by fits to it. So the standard error of
    # independent answers is too small while a model predicts little (Bengio & Grandvalet 2004): of f folds of one tenth
    # each, the variance is 1 + f / 9 times as large (Nadeau & Bengio 2003, eq. 9). It is not corrected where the
    # accuracy is clear of one half even so: a model that tells answers from chance does so in every fold. Nor for
    # counts (f = 0): an answer changes only what they predict about the same pairs.
    figures = held_out.figures(margin, 1.0, times, cluster)
    by_question = held_out.figures(margin, 1.0, times, questions_of(rows)).standard_error
    if figures.standard_error is None or by_question is None:
        return figures
    error = max(figures.standard_error, by_question)
    corrected = error * float(np.sqrt(1.0 + folds / (FOLDS - 1.0)))
    clear = abs(figures.accuracy - 0.5) > CLEAR_ERRORS * corrected
    return figures._replace(standard_error=error if clear else corrected)


def questions_of(rows: np.ndarray) -> np.ndarray:
    """(m,) the number of the question of each of (m, 4) answers i, j, k, l: both answers to a question have the same.
    O(m log m).

    >>> questions_of(np.array([[0, 1, 0, 2], [2, 0, 1, 0], [0, 1, 1, 2]])).tolist()
    [0, 0, 1]
    """
    low, high = np.minimum(rows[:, ::2], rows[:, 1::2]).ravel(), np.maximum(rows[:, ::2], rows[:, 1::2]).ravel()
    pairs = np.unique(low.astype(np.int64) << 32 | high, return_inverse=True)[1].reshape(len(rows), 2)
    pairs.sort(axis=1)
    return np.unique(pairs[:, 0].astype(np.int64) << 32 | pairs[:, 1], return_inverse=True)[1].reshape(-1)


def evaluate(
    responses: Responses,
    planned: Plan,
    first: Setting,
    choose: Choose,
    predict: Predict,
    predict_of_participants: Predict | None = None,
    fitted: bool = True,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, HeldOut]:
    """The held-out figures of each model for reports. `first`: the setting of the first group of responses, which was
    selected already; `fitted`: whether models are fitted to answers, or count them; `stopped`: once it is true, no
    further group is predicted."""
    later = (choose(group.part) for group in takewhile(lambda _: not stopped(), planned.responses[1:]))
    settings = (choose(group.part) for group in takewhile(lambda _: not stopped(), planned.participants))
    with FoldPredictions(responses) as folds:
        of_responses = folds.begin(planned.responses, chain([first], later), predict)
        of_participants = folds.begin(planned.participants, settings, predict_of_participants or predict)
        by_response = fold_figures(of_responses, np.arange(len(responses.draw)), fitted)
        by_participant = fold_figures(of_participants, responses.participant, fitted)
    ceiling = noise_ceiling.ceiling(responses)
    return {
        name: HeldOut(responses.by, figures, by_participant.get(name), ceiling) for name, figures in by_response.items()
    }
