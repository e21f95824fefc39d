"""How many dimensions at least: what a dimension more adds to the accuracy on answers held out (Künstle, von Luxburg &
Wichmann 2022).

Judgements, or all of a worker's, are dealt to J = `FOLDS` folds; an STE embedding in each number of dimensions is
fitted to all folds but one and predicts that one (STE whatever kernel is delivered: t-STE's tails change with d, and
nothing but d should differ). Dimension d + 1 is there if the accuracy grows from d to d + 1 by more than chance:
a one-sided t-test of the J differences x whose variance is corrected because the J fits share most of their answers
(Nadeau & Bengio 2003, sec. 3.3),

    t = mean(x) / sqrt((1 / J + 1 / (J - 1)) var(x)),   J - 1 degrees of freedom.

The answer is the number of dimensions before the first step that is not shown. It is a lower bound: with more answers a
further step may show. Steps are tested in a fixed order up to the first that is not shown, so each has the whole level
(Maurer, Hothorn & Lehmacher 1995): more is shown wrongly in at most 5 of 100 data sets. Cost: J fits by `fit_carefully`
for each number of dimensions tried.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.choice import DEFAULT_SETTING, Choice
from stream_engine.embedding.fit import LOOSE, fit_carefully
from stream_engine.embedding.held_out import known_lapses
from stream_engine.embedding.questions import of_answers
from stream_engine.evaluation.answer_probabilities import probabilities
from stream_engine.evaluation.hash_split import name_hashes
from stream_engine.evaluation.responses import Responses

FOLDS = 10
LEVEL = 0.05
MAX_DIMENSIONS = 7  # dimensions tried at most
MAX_ANSWERS = 20_000  # different answers beyond which it is not computed by a refit: some 10 CPU-seconds
# named participants, and their share of the answers, from which whole participants are held out
MIN_PARTICIPANTS, MIN_NAMED_SHARE = 20, 0.9
REST = -1  # the fold of answers that are never held out


class Dimensions(NamedTuple):
    """The bound, and what it rests on."""

    at_least: int
    accuracy: list[float]  # held out, of 1, 2, ... dimensions
    p_values: list[float]  # that 2, 3, ... dimensions do not predict better than one less


def dimensions_at_least(
    answers: Answers,
    fold: np.ndarray,
    ridge: float = DEFAULT_SETTING.ridge,
    max_dimensions: int = MAX_DIMENSIONS,
    level: float = LEVEL,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
    **options: Any,
) -> Dimensions:
    """The number of dimensions that the answers show. `fold` (m,) int of `folds_of`. Deterministic; the first number of
    dimensions that adds nothing is the last that is tried.
    """
    max_dimensions = min(max_dimensions, max(answers.n_objects - 1, 1))
    folds = np.unique(fold[fold != REST])
    accuracy: list[np.ndarray] = []
    p_values: list[float] = []
    for d in range(1, max_dimensions + 1):
        accuracy.append(np.array([_accuracy(answers, fold == each, d, ridge, options) for each in folds]))
        progress(d, max_dimensions, accuracy=float(accuracy[-1].mean()))
        if d > 1:
            p_values.append(corrected_test(accuracy[-1] - accuracy[-2]))
            if p_values[-1] > level:
                break
    at_least = next((d for d, each in enumerate(p_values, 1) if each > level), len(accuracy))
    return Dimensions(at_least, [float(each.mean()) for each in accuracy], p_values)


def report_of(responses: Responses, answers: Answers, chosen: Choice, seed: int, **options: Any) -> dict[str, Any]:
    """`dimensions_at_least` and `dimensions_tested` of a refit's report: the bound and what it rests on, or nothing and
    why. `answers` are all that there are."""
    if chosen.setting.d and chosen.basis != "held-out log loss":
        return {"dimensions_at_least": None, "dimensions_tested": f"no: {chosen.basis}"}
    if len(answers.rows) > MAX_ANSWERS:
        return {"dimensions_at_least": None, "dimensions_tested": f"no: more than {MAX_ANSWERS:,} different answers"}
    group, by = _groups(responses, answers, seed)
    fold = folds_of(group, FOLDS)
    fold[answers.response >= len(responses.draw)] = REST
    if len(np.unique(fold[fold != REST])) < FOLDS:
        return {"dimensions_at_least": None, "dimensions_tested": f"no: fewer than {FOLDS} {by}"}
    ste = [each for each in chosen.trials if each["kernel"] == "ste"]
    ridge = float(min(ste, key=lambda each: each["log_loss"])["ridge"]) if ste else DEFAULT_SETTING.ridge
    result = dimensions_at_least(answers, fold, ridge, **options)
    test = {"by": by, "folds": FOLDS, "accuracy": result.accuracy, "p_values": result.p_values}
    return {"dimensions_at_least": result.at_least, "dimensions_tested": test}


def _groups(responses: Responses, answers: Answers, seed: int) -> tuple[np.ndarray, str]:
    """(m,) keys, in random order, of what is held out as a whole, and what that is."""
    participant, times, named = answers.participant, answers.times, answers.participant >= 0
    if len(np.unique(participant[named])) >= MIN_PARTICIPANTS and times[named].sum() >= MIN_NAMED_SHARE * times.sum():
        return np.append(name_hashes(answers.participants, seed), np.uint64(0))[participant], "workers"
    draw = np.append(responses.draw, 2.0)  # the last: of no response
    return draw[np.minimum(answers.response, len(responses.draw))], responses.by


def folds_of(group: np.ndarray, folds: int) -> np.ndarray:
    """(m,) int fold of each answer: groups in the order of their keys, dealt round.

    >>> folds_of(np.array([7, 7, 8, 9, 10]), 3).tolist()
    [0, 0, 1, 2, 0]
    """
    return np.unique(group, return_inverse=True)[1].reshape(-1) % folds


def _accuracy(answers: Answers, out: np.ndarray, d: int, ridge: float, options: dict[str, Any]) -> float:
    """Accuracy on the held-out answers of a fit to the others; ties count half."""
    questions, targets = of_answers(answers.of(~out)), answers.of(out)
    embedding, _ = fit_carefully(questions, d, ridge, tolerance=LOOSE, **options)
    p = probabilities(
        embedding.points, targets.rows, known_lapses(embedding.lapse, questions), embedding.alpha, targets.participant
    )
    return float(((p > 0.5) + 0.5 * (p == 0.5)) @ targets.times / targets.times.sum())


def corrected_test(difference: np.ndarray) -> float:
    """One-sided p-value of the mean of (J,) differences between two models over J folds being above 0 (Nadeau & Bengio
    2003). Equal differences: 0 above, 1 else.

    >>> corrected_test(np.array([1.0, -1.0, 2.0, -2.0]))
    0.5
    """
    from scipy.special import stdtr

    folds = len(difference)
    spread = float(difference.var(ddof=1)) * (1 / folds + 1 / (folds - 1))
    if spread == 0.0:
        return 0.0 if difference.mean() > 0 else 1.0
    return float(stdtr(folds - 1, -difference.mean() / np.sqrt(spread)))
