"""Objects as points in d dimensions, by STE or t-STE with a lapse rate (room `embedding`; docs/design/embedding.md).

The number of dimensions, the kernel and the ridge are given, or selected by the log loss on a validation set, which is
the same for every seed; the figures of the report are cross-fitted (`evaluation.cross_fit`), each with a selection of
its own. The published embedding is then fitted to all answers, starting from the previous artifact and from scratch;
the fit with the smaller objective is used. So it depends neither on the seed nor on what is evaluated. All answers
count, with their multiplicities, including those about four objects. Memory O(n d + m), cost O(m d) an iteration.
"""

from threading import Event
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.data.answers import Answers
from stream_engine.data.packed_names import pack_names
from stream_engine.embedding import choice, dimensions, picture
from stream_engine.embedding.calibration import Calibration
from stream_engine.embedding.differences import Differences, Fitted, combined, differences
from stream_engine.embedding.differences import fitted as fitted_parts
from stream_engine.embedding.ellipses import covariances
from stream_engine.embedding.fit import Embedding, with_setting
from stream_engine.embedding.held_out import known_lapses, population_lapse
from stream_engine.embedding.individual import weighted_margins
from stream_engine.embedding.participant_groups import participant_groups
from stream_engine.embedding.posterior import Posterior, few, posterior
from stream_engine.embedding.questions import Questions, asked_about, of_answers
from stream_engine.evaluation import cross_fit, held_out
from stream_engine.evaluation.answer_probabilities import log_odds, probabilities, probability
from stream_engine.evaluation.answers import answers_of
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.probability import of_draws
from stream_engine.evaluation.responses import CHOOSE, FIT, HELD, VALIDATION_SHARE, Responses
from stream_engine.refits import CannotRefit, Progress, next_step, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import EMBEDDING
from stream_engine.state.snapshot import Snapshot

KIND = "embedding"
AXES = EMBEDDING.axes
REQUIRED = EMBEDDING.required
SEARCHED = 300_000  # answers that a setting is searched with at most,
SEARCHED_EACH = 200  # or so many an object; the ridge is a prior, and does not depend on how many there are
TRIED = 30  # fits that a choice takes, until one has shown how many
LEAST = 20  # minimum number of answers for a lapse rate per participant; others share one
REGION_DIMENSIONS, REGION_ANSWERS = 3, 75  # at most, and answers an object at least, for regions that cover
TOLERANCE = 1e-7  # relative improvement of the objective at which a fit stops
MAX_ITERATIONS = 1000  # maximum number of L-BFGS iterations
SPLIT = 0  # seed of the validation set that the published setting is selected on, whatever the refit's seed is
KNOWING, PICTURE = "knowing_worker", "picture"  # what else is tested: knowing who answers, and the picture
PREDICTED = ("answers", "right", "log_odds", "expected", "variance", "square")  # columns of `worker_predicted`
ONE_MAP = "one_map"  # and, knowing who answers, one map where participants have weights


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    dimensions : int, optional
        Number of dimensions; default: the number that predicts held-out answers best.
    kernel : {'ste', 't-ste'}, optional
        "ste" or "t-ste"; default: by held-out log loss.
    ridge : float, optional
        Weight of the sum of squares of all coordinates; default: by held-out log loss.
    lapse : {'all', 'none', 'worker'}
        Lapse rates: one per participant with 20 answers (if worker_votes are kept), one for "all", or "none".
    participants : {'alike', 'test', 'weights'}
        Weights of participants on the axes: "test" for a significant gain in held-out log loss, always "weights", or
        one map for "alike"; participants need 20 answers and lapse rates of their own.
    """

    dimensions: Annotated[int, msgspec.Meta(ge=1)] | None = None
    kernel: Literal["ste", "t-ste"] | None = None
    ridge: Annotated[float, msgspec.Meta(gt=0)] | None = None
    lapse: Literal["worker", "all", "none"] = "worker"
    participants: Literal["test", "weights", "alike"] = "test"


def refit(
    snapshot: Snapshot,
    params: Params,
    seed: int,
    previous: Artifact | None = None,
    progress: Progress = no_progress,
    *,
    validation_share: float = VALIDATION_SHARE,
    evaluate: bool = True,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Artifact:
    """Embed a snapshot's objects.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        The parameters.
    seed : int
        Random seed.
    previous : Artifact, optional
        The previous artifact of this refit, to start from.
    progress : callable
        Called with the number of steps done, their total, and figures.
    validation_share : float
        Share of the answers in the validation set; 0: none.
    evaluate : bool
        Whether to compute the figures of prediction accuracy.
    tolerance : float
        A fit ends when an iteration improves the objective by less than this share.
    max_iterations : int
        Maximum number of iterations of a fit.

    Returns
    -------
    Artifact
        Arrays: `X` (n, d) float64: coordinates on principal axes about the mean (`principal_axes`), 0 for objects
        without answers; if fewer dimensions are supported by the answers, `supported` (n, D), coordinates in so many;
        `covariance` (n, d, d) float32 of each object's coordinates (`ellipses`), absent above
        `ellipses.LARGEST` coordinates; `asked` (n,) bool; `lapse` (), the rate of an unknown participant;
        `worker_lapse` (w,), the rates of the participants in `utf8`, `offsets`. With more than two dimensions,
        `picture` (n, 2), see `embedding.picture`; the report's `picture` describes the method, its trustworthiness, and
        its accuracy on held-out answers. If participants differ, `worker_weights` (w, d) on the axes, which then are
        those of the weights (`individual`), and `worker_group` (w,), -1 for whom no weights were fitted. If answers are
        few, `draws` (s, n, D) and `draw_lapse` (s,), over which predictions are averaged (`posterior`).

    Raises
    ------
    CannotRefit
        If the snapshot lacks what the refit needs.
    """
    with threadpool_limits(1):
        responses, answers = every = answers_of(snapshot, seed, params.lapse == "worker")
        _check(snapshot, answers)
        fixed, fixed_answers = every if seed == SPLIT else answers_of(snapshot, SPLIT, params.lapse == "worker")
        more = {"fixed_lapse": params.lapse == "none"}
        plan = cross_fit.plan(responses, validation_share, evaluate)
        stopped, fits, expected = Event(), 0, TRIED * (len(plan.responses) + len(plan.participants))

        def tell(done: int, total: int, **figures: Any) -> bool:
            nonlocal fits
            fits += 1
            if progress(fits, max(expected, fits + 1), **figures):
                stopped.set()
            return stopped.is_set()

        def choose(part: np.ndarray, answers: Answers = answers) -> choice.Choice:
            fitting, held = answers.without(part != FIT), answers.of_responses(part == CHOOSE)
            searched = fitting.sample(max(SEARCHED, SEARCHED_EACH * len(snapshot.objects)))
            training = of_answers(without_rare_participants(searched))
            made = choice.choose(training, held, params.kernel, params.dimensions, params.ridge, progress=tell, **more)
            if params.dimensions is None and len(searched.rows) < len(fitting.rows):
                training = of_answers(without_rare_participants(fitting))
                made = choice.larger(made, training, held, progress=tell, **more)
            return made._replace(outside=part == HELD)

        people = _People(answers, params, stopped, more)
        chosen = choose(cross_fit.plan(fixed, validation_share).responses[0].part, fixed_answers)
        expected = fits * (len(plan.responses) + len(plan.participants))
        tested = _FoldPredictor(responses.answers, answers, more, params, seed, people)
        first = chosen if fixed is responses or not evaluate else choose(plan.responses[0].part)
        figures = cross_fit.evaluated(
            responses, plan, first, choose, tested.response, tested.participant, stopped=stopped.is_set
        )
        known = without_rare_participants(fixed_answers)
        questions = of_answers(known)
        begin = (*chosen.begin, *_earlier(previous, len(snapshot.objects)))
        limits: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
        one = with_setting(questions, chosen.setting, begin, **more, **limits)
        made = people.fitted(chosen, known, one, max_iterations=max_iterations)
        fitted = made.embedding
        people_named = answers.participants
        report = _report(snapshot, responses, len(people_named), questions, chosen, figures, made)
        report["settings"] = tested.settings
        if not params.dimensions:
            report |= dimensions.report_of(fixed, known, chosen, SPLIT, progress=tell, **more)
            report["dimensions_interval"] = list(chosen.interval) if chosen.interval else None
            report["dimensions_tied"] = chosen.smallest.setting.d if chosen.smallest else None
        arrays = {**_arrays(answers.participants, questions, chosen, made), **_covariance(known, made, **more)}
        drawn = _drawn(questions, made, params, seed)
        if drawn is not None:
            arrays |= {"draws": drawn.points, "draw_lapse": drawn.lapse}
        report["no_regions"] = _without_regions(questions, chosen, params, fitted.points.shape[1])
        report["draws"] = 0 if drawn is None else len(drawn.lapse)
        least = report.get("dimensions_at_least")
        if least and least < fitted.points.shape[1]:
            arrays["supported"] = with_setting(questions, chosen.setting._replace(d=least), (), **more).points
        grouped, of_participants = _participants(made, questions, seed)
        arrays |= of_participants
        if tested.predicted.any():
            arrays["worker_predicted"] = tested.predicted
        report["individual_differences"] = _differences(made, answers.participants, snapshot) | grouped
        if of_participants:
            of = {"own": KNOWING, ONE_MAP: ONE_MAP}
            each = {name: figures[key].judgement if key in figures else None for name, key in of.items()}
            report["individual_differences"] |= {name: one and one._asdict() for name, one in each.items()}
        if fitted.points.shape[1] > 2:
            shown = picture.picture(fitted.points, questions, chosen.setting.ridge)
            arrays["picture"] = shown.points
            right = figures[PICTURE].judgement if PICTURE in figures else None
            report["picture"] = shown._asdict() | {"accuracy": right.accuracy if right else None}
            del report["picture"]["points"]
    progress(1, 1, log_likelihood=fitted.log_likelihood)
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _check(snapshot: Snapshot, answers: Answers) -> None:
    if len(answers.rows) == 0:
        raise CannotRefit(
            f"{KIND}: got 0 comparisons of {len(snapshot.objects)} objects; expected at least one, next: "
            + next_step(snapshot.counters["comparisons"], "triplet_counts (or worker_votes, quadruplet_counts)")
        )


def without_rare_participants(answers: Answers) -> Answers:
    """The same answers; participants who gave fewer than `LEAST` have the lapse of nobody in particular."""
    who = answers.participant
    each = np.bincount(who + 1, answers.times, 1 + len(answers.participants))
    return answers._replace(participant=np.where(each[who + 1] < LEAST, -1, who))


class _People:
    """Models of participants beside one map, selected anew for each group of responses that is held out."""

    def __init__(self, answers: Answers, params: Params, stopped: Event, more: dict[str, Any]):
        self.answers, self.params, self.stopped, self.more = answers, params, stopped, more
        self._selected: dict[int, tuple[choice.Choice, Differences]] = {}  # by the identity of a choice

    def fitted(
        self, chosen: choice.Choice, answers: Answers, one: Embedding, only_weights: bool = False, **limits: Any
    ) -> Fitted:
        """Selected by and fitted to these answers, to which `one` was fitted."""
        return fitted_parts(self._differences(chosen, answers, one, only_weights), answers, one, **self.more, **limits)

    def predicting(self, chosen: choice.Choice, answers: Answers, one: Embedding, only_weights: bool = False) -> Fitted:
        """Selected without all units of the group that the setting was chosen for, and fitted to these answers."""
        if id(chosen) not in self._selected:
            outside = self.answers if chosen.outside is None else self.answers.without(chosen.outside)
            inside = without_rare_participants(outside)
            of_group = with_setting(of_answers(inside), chosen.setting, (one.points,), **self.more)
            self._selected[id(chosen)] = chosen, self._differences(chosen, inside, of_group, only_weights)
        return fitted_parts(self._selected[id(chosen)][1], answers, one, **self.more)

    def _differences(self, chosen: choice.Choice, answers: Answers, one: Embedding, only_weights: bool) -> Differences:
        params = self.params
        if params.participants == "alike":
            return Differences("not requested")
        if params.lapse != "worker":
            return Differences(f"not requested: they need lapse rates of participants, and lapse is {params.lapse!r}")
        return differences(
            answers.sample(SEARCHED),
            one,
            chosen.setting,
            given_d=params.dimensions is not None,
            always=params.participants == "weights",
            only_weights=only_weights,
            **self.more,
        )


class _FoldPredictor:
    """Predicts answers that are out by a fit to all others."""

    def __init__(
        self, asked: Answers, answers: Answers, more: dict[str, Any], params: Params, seed: int, people: _People
    ):
        self.asked, self.answers, self.more, self.params = asked, answers, more, params
        self.seed, self.people = seed, people
        self.settings: list[dict[str, Any]] = []  # one a group of responses, with its lapse and scale
        self._last: choice.Choice | None = None
        self.predicted = np.zeros((len(answers.participants), len(PREDICTED)))  # of participants who were out

    def response(self, chosen: choice.Choice, out: np.ndarray) -> dict[str, np.ndarray]:
        """Log odds, whoever gave an answer, as `predict` does; beside it those of who gave it, as the fit knows them,
        those by their lapse rate and one map, and the margins of a picture of the fit."""
        asked, answers = self.asked.of_responses(out), without_rare_participants(self.answers.without(out))
        questions = of_answers(answers)
        if not len(questions.rows):
            return {}
        one = with_setting(questions, chosen.setting, chosen.begin, **self.more)
        made = self.people.predicting(chosen, answers, one)
        calibration = _calibration(chosen, made, questions)
        if chosen is not self._last:
            self.settings.append({**chosen.setting._asdict(), **calibration._asdict()})
            self._last = chosen
        drawn = _drawn(questions, made, self.params, self.seed)
        predicted = {KIND: _log_odds(made.embedding, calibration, drawn, asked.rows)}
        if len(answers.participants):
            predicted |= _knowing(asked, questions, chosen, made, drawn)
        if chosen.setting.d > 2:
            shown = picture.picture(made.embedding.points, questions, chosen.setting.ridge)
            predicted[PICTURE] = picture.margins(shown.points, asked.rows)
        return predicted

    def participant(self, chosen: choice.Choice, out: np.ndarray) -> dict[str, np.ndarray]:
        """Log odds of answers of somebody who was never heard."""
        answers = without_rare_participants(self.answers.without(out))
        questions = of_answers(answers)
        if not len(questions.rows):
            return {}
        one = with_setting(questions, chosen.setting, chosen.begin, **self.more)
        made = self.people.predicting(chosen, answers, one, only_weights=True)
        calibration, drawn = _calibration(chosen, made, questions), _drawn(questions, made, self.params, self.seed)
        asked = self.asked.of_responses(out)
        odds = _log_odds(made.embedding, calibration, drawn, asked.rows)
        if len(answers.participants):
            who, times, certain = asked.participant, asked.times, np.abs(odds)
            expected, square = certain * np.tanh(certain / 2), odds**2
            columns = (1.0, (odds > 0) + (odds == 0) / 2, odds, expected, square - expected**2, square)
            for number, column in enumerate(columns):
                np.add.at(self.predicted[:, number], who[who >= 0], (times * column)[who >= 0])
        return {KIND: odds}


def _drawn(questions: Questions, made: Fitted, params: Params, seed: int) -> Posterior | None:
    """Draws over which predictions of the group are averaged; None where one fit predicts: with enough answers, with
    weights of participants, and with a model that was given."""
    given = params.dimensions is not None or params.kernel is not None or params.ridge is not None
    if given or params.lapse == "none" or made.own is not None or not few(questions, made.one.points.shape[1]):
        return None
    return posterior(questions, made.one, seed)


def _log_odds(fitted: Embedding, calibration: Calibration, drawn: Posterior | None, rows: np.ndarray) -> np.ndarray:
    """Of answers of an unknown participant."""
    if drawn is None:
        p = probabilities(fitted.points, rows, calibration.lapse, fitted.alpha, scale=calibration.scale)
    else:
        p = of_draws(drawn.points, np.ones(len(fitted.points), bool), drawn.lapse)(rows)
    return log_odds(p)


def _knowing(
    asked: Answers, questions: Questions, chosen: choice.Choice, made: Fitted, drawn: Posterior | None
) -> dict[str, np.ndarray]:
    """Log odds of answers by who gave them: by one map, and by their own model where they have one."""
    who, one = asked.participant, made.one
    calibration = chosen.calibration or Calibration(1.0, population_lapse(one.lapse, questions))
    lapse = known_lapses(one.lapse, questions, calibration.lapse)
    if drawn is None:
        alike = log_odds(probabilities(one.points, asked.rows, lapse, one.alpha, who, calibration.scale))
    else:  # sigma(Delta) by the draws, with the lapse of each
        share = of_draws(drawn.points, np.ones(len(one.points), bool), 0.0)(asked.rows)
        known = (np.bincount(questions.worker, minlength=len(lapse))[who + 1] > 0) & (who >= 0)
        of_anybody = of_draws(drawn.points, np.ones(len(one.points), bool), drawn.lapse)(asked.rows)
        alike = log_odds(np.where(known, lapse[who + 1] / 2 + (1 - lapse[who + 1]) * share, of_anybody))
    base, selected = alike, made.differences
    if made.own is not None and selected.weights is not None:
        fitted, unknown = made.own.embedding, selected.weights.calibration
        lapse = known_lapses(fitted.lapse, questions, unknown.lapse if unknown else None)[who + 1]
        delta = weighted_margins(fitted.points, made.own.weights, asked.rows, who + 1, fitted.alpha)
        base = log_odds(probability(selected.weights.scale * delta, lapse))
    if made.maps is not None and selected.stack is not None:
        base = combined(base, made.maps.log_odds(asked.rows, who), selected.stack[who])
    return {ONE_MAP: alike, KNOWING: base}


def _participants(made: Fitted, questions: Questions, seed: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Groups of participants for the report, and the arrays of participants: weights and groups, -1: no weights; own
    maps, how they are stacked, and what the own model gains: mean, standard error and p-value."""
    arrays: dict[str, np.ndarray] = {}
    groups: dict[str, Any] = {"verdict": "not tested: one map for everybody", "count": 1}
    if made.own is not None:
        weights = made.own.weights[1:]
        known = np.bincount(questions.worker, minlength=1 + len(weights))[1:] > 0
        group, found = np.where(known, 0, -1), participant_groups(weights[known], seed)
        group[known] = found.group
        arrays |= {"worker_weights": weights, "worker_group": group}
        groups = {"verdict": found.verdict, "count": found.groups, "p_value": found.p_value}
    if made.maps is not None and made.differences.stack is not None:
        maps = made.maps
        arrays |= {"own_X": maps.points, "own_worker": maps.block, "own_object": maps.object, "own_lapse": maps.lapse}
        arrays["own_draw"] = maps.draw
        arrays["worker_stack"] = made.differences.stack
    tested = made.differences
    if tested.gain is not None and tested.standard_error is not None and tested.p_values is not None:
        arrays["worker_gain"] = np.stack([tested.gain, tested.standard_error, tested.p_values], axis=1)
    return {"groups": groups}, arrays


def _differences(made: Fitted, participants: tuple[str, ...], snapshot: Snapshot) -> dict[str, Any]:
    """The tests, and who differs, for the report."""
    tested = made.differences
    used, who = tested.weights, tested.who
    report: dict[str, Any] = {
        "verdict": tested.verdict,
        "participants": tested.participants,
        "p_value": tested.p_value,
        "shrinkage": used.shrinkage if used else None,
        "scale": used.scale if used else 1.0,
        "gain_of_weights": tested.gain_of_weights,
        "p_of_weights": tested.p_of_weights,
        "own_maps": len(tested.own),
        "who": [],
    }
    if tested.gain is not None and tested.standard_error is not None and tested.p_values is not None:
        rows = zip(who.tolist(), tested.gain[who], tested.standard_error[who], tested.p_values[who], tested.objects)
        report["who"] = [
            {
                "participant": participants[one],
                "gain": float(gain),
                "standard_error": float(error),
                "p_value": float(p),
                "objects": [snapshot.objects[each] for each in objects],
            }
            for one, gain, error, p, objects in rows
        ]
    return report


def _calibration(chosen: choice.Choice, made: Fitted, questions: Questions) -> Calibration:
    used = made.differences.weights
    if used is not None and used.calibration is not None:
        return used.calibration
    return chosen.calibration or Calibration(1.0, population_lapse(made.one.lapse, questions))


def _earlier(previous: Artifact | None, n: int) -> tuple[np.ndarray, ...]:
    """The previous points as a start; objects that came since are at 0, the mean of the others."""
    if previous is None or "X" not in previous.arrays:
        return ()
    points = np.zeros((n, previous.arrays["X"].shape[1]))
    points[: len(previous.arrays["X"])] = previous.arrays["X"][:n]
    return (points,)


def _arrays(
    participants: tuple[str, ...], questions: Questions, chosen: choice.Choice, made: Fitted
) -> dict[str, np.ndarray]:
    unknown, fitted = _calibration(chosen, made, questions).lapse, made.embedding
    return {
        "X": fitted.points,
        "asked": asked_about(questions),
        "lapse": np.array(unknown),
        "worker_lapse": known_lapses(fitted.lapse, questions, unknown)[1:],
        **pack_names(participants),
    }


def _covariance(answers: Answers, made: Fitted, fixed_lapse: bool) -> dict[str, np.ndarray]:
    """Covariances of the coordinates, if they are computed."""
    found = covariances(made.embedding, answers, fixed_lapse, None if made.own is None else made.own.weights)
    return {} if found is None else {"covariance": found.astype(np.float32)}


def _without_regions(questions: Questions, chosen: choice.Choice, params: Params, d: int) -> str | None:
    """Why no regions are drawn from the covariances: where the number of dimensions was chosen, regions of 95 % cover
    as often only with so many answers, few dimensions, and no doubt about their number. None where they are drawn."""
    if params.dimensions is not None:
        return None
    if chosen.interval is None or d > REGION_DIMENSIONS:
        return f"more than {REGION_DIMENSIONS} dimensions" if chosen.interval else chosen.by
    if questions.answers < REGION_ANSWERS * int(asked_about(questions).sum()):
        return f"there are fewer than {REGION_ANSWERS} times as many answers as objects"
    certain = chosen.smallest is not None and chosen.smallest.setting.d == d
    return None if certain else "the number of dimensions is uncertain"


def _report(
    snapshot: Snapshot,
    responses: Responses,
    participants: int,
    questions: Questions,
    chosen: choice.Choice,
    figures: dict[str, HeldOut],
    made: Fitted,
) -> dict[str, Any]:
    fitted, calibration = made.embedding, _calibration(chosen, made, questions)
    variance = fitted.points.var(axis=0)
    none = HeldOut(responses.by, None, None, held_out.ceiling(responses))
    knowing = figures.get(KNOWING, none).judgement
    return {
        **chosen.setting._asdict(),
        "alpha": fitted.alpha,
        "chosen_by": chosen.by,
        "tried": chosen.tried,
        **figures.get(KIND, none).report(),
        KNOWING: knowing._asdict() if knowing else None,
        "answers": questions.answers,
        "questions": len(questions.rows),
        "objects": len(snapshot.objects),
        "never_asked_about": int(len(snapshot.objects) - asked_about(questions).sum()),
        "lapse": calibration.lapse,
        "lapse_fitted": population_lapse(fitted.lapse, questions),
        "scale": calibration.scale,
        "workers": participants,
        "guessers": fitted.guessers,
        "explained": (variance / (variance.sum() or 1.0)).tolist(),
        "objective": fitted.objective,
        "fitted_log_loss": -fitted.log_likelihood / questions.answers,
        "iterations": fitted.iterations,
        "evaluations": fitted.evaluations,
        "converged": fitted.converged,
        "slope": fitted.slope,
    }
