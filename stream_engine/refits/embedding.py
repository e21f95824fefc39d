"""Objects as points in d dimensions, by STE or t-STE with a lapse rate (room `embedding`; docs/design/embedding.md).

What is not given of the setting is selected by the log loss on a validation set; the published embedding is then fitted
to all answers, including those about four objects, so it depends neither on the seed nor on what is evaluated. The
figures of the report are cross-fitted, each with a selection of its own. Memory O(n d + m), cost O(m d) an iteration.
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
from stream_engine.evaluation import cross_fit, noise_ceiling
from stream_engine.evaluation.answer_probabilities import log_odds, probabilities, probability
from stream_engine.evaluation.answers import answers_of
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.learned import of_draws
from stream_engine.evaluation.responses import CHOOSE, FIT, HELD, VALIDATION_SHARE, Responses
from stream_engine.refits import CannotRefit, Progress, next_step, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import EMBEDDING
from stream_engine.state.snapshot import Snapshot

KIND = "embedding"
AXES = EMBEDDING.axes
REQUIRED = EMBEDDING.required
TOLERANCE = 1e-7  # relative improvement of the objective at which a fit stops
MAX_ITERATIONS = 1000  # maximum number of L-BFGS iterations
# The setting of the published embedding is chosen on the validation set of this seed, whatever the refit's seed is:
# the published map does not depend on the seed.
PUBLISHED_SEED = 0
# A choice of a setting takes this many fits, for the total that is reported until the first choice was made.
USUAL_FITS = 30
# A setting is searched with at most so many answers, or so many an object where that is more: the ridge is a prior,
# and does not depend on the number of answers.
MAX_SEARCHED_ANSWERS, SEARCHED_ANSWERS_PER_OBJECT = 300_000, 200
# Beside `KIND`, the names of the models that are evaluated on held-out answers, as in the report: the model of the
# participant who answers, one map with the participant's lapse rate, and the picture of the map.
WITH_PARTICIPANT, ONE_MAP, PICTURE = "knowing_worker", "one_map", "picture"


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    dimensions : int, optional
        Number of dimensions; default: the smallest that predicts held-out answers nearly as well as the best.
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
        responses, answers = answers_of(snapshot, seed, params.lapse == "worker")
        _check(snapshot, answers)
        # The number of dimensions, the kernel and the ridge of the published map are given, or selected by the log loss
        # on a validation set that is the same for every seed. Its figures are cross-fitted (`evaluation.cross_fit`),
        # each with a selection of its own.
        published_responses, published_answers = responses, answers
        if seed != PUBLISHED_SEED:
            published_responses, published_answers = answers_of(snapshot, PUBLISHED_SEED, params.lapse == "worker")
        lapse_option = {"fixed_lapse": params.lapse == "none"}
        plan = cross_fit.plan(responses, validation_share, evaluate)
        stop, fits, expected = Event(), 0, USUAL_FITS * (len(plan.responses) + len(plan.participants))

        def report_progress(done: int, total: int, **figures: Any) -> bool:
            nonlocal fits
            fits += 1
            if progress(fits, max(expected, fits + 1), **figures):
                stop.set()
            return stop.is_set()

        def choose(part: np.ndarray, answers: Answers = answers) -> choice.Choice:
            fitting, validation = answers.without(part != FIT), answers.of_responses(part == CHOOSE)
            searched = fitting.sample(max(MAX_SEARCHED_ANSWERS, SEARCHED_ANSWERS_PER_OBJECT * len(snapshot.objects)))
            training = of_answers(without_rare_participants(searched))
            selected = choice.choose(
                training,
                validation,
                params.kernel,
                params.dimensions,
                params.ridge,
                progress=report_progress,
                **lapse_option,
            )
            if params.dimensions is None and len(searched.rows) < len(fitting.rows):
                training = of_answers(without_rare_participants(fitting))
                selected = choice.choose_larger(
                    selected, training, validation, progress=report_progress, **lapse_option
                )
            return selected._replace(test_units=part == HELD)

        individual_differences = _IndividualDifferences(answers, params, stop, lapse_option)
        chosen = choose(cross_fit.plan(published_responses, validation_share).responses[0].part, published_answers)
        expected = fits * (len(plan.responses) + len(plan.participants))
        predictor = _FoldPredictor(responses.answers, answers, lapse_option, params, seed, individual_differences)
        first = chosen if published_responses is responses or not evaluate else choose(plan.responses[0].part)
        figures = cross_fit.evaluate(
            responses, plan, first, choose, predictor.response, predictor.participant, stopped=stop.is_set
        )
        # The published map is fitted to all answers, from the previous artifact and from scratch; of the two, the fit
        # with the smaller objective is used. So it depends neither on the seed nor on what was evaluated.
        frequent = without_rare_participants(published_answers)
        questions = of_answers(frequent)
        starts = (*chosen.starts, *_previous_start(previous, len(snapshot.objects)))
        limits: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
        group_map = with_setting(questions, chosen.setting, starts, **lapse_option, **limits)
        model = individual_differences.fitted(chosen, frequent, group_map, max_iterations=max_iterations)
        embedding = model.embedding
        participants = answers.participants
        report = _report(snapshot, responses, len(participants), questions, chosen, figures, model)
        report["settings"] = predictor.settings
        if not params.dimensions:
            report |= dimensions.report_of(
                published_responses, frequent, chosen, PUBLISHED_SEED, progress=report_progress, **lapse_option
            )
            report["dimensions_interval"] = list(chosen.interval) if chosen.interval else None
            report["dimensions_tied"] = chosen.smallest.setting.d if chosen.smallest else None
        arrays = {
            **_coordinate_arrays(answers.participants, questions, chosen, model),
            **_covariance(frequent, model, **lapse_option),
        }
        draws = _posterior_draws(questions, model, params, seed)
        if draws is not None:
            arrays |= {"draws": draws.points, "draw_lapse": draws.lapse}
        report["no_regions"] = _reason_for_no_regions(questions, chosen, params, embedding.points.shape[1])
        report["draws"] = 0 if draws is None else len(draws.lapse)
        min_dimensions = report.get("dimensions_at_least")
        if min_dimensions and min_dimensions < embedding.points.shape[1]:
            arrays["supported"] = with_setting(
                questions, chosen.setting._replace(d=min_dimensions), (), **lapse_option
            ).points
        grouped, participant_arrays = _participant_arrays(model, questions, seed)
        arrays |= participant_arrays
        if predictor.prediction_sums.any():
            arrays["worker_predicted"] = predictor.prediction_sums
        report["individual_differences"] = _differences_report(model, answers.participants, snapshot) | grouped
        if participant_arrays:
            figure_of = {"own": WITH_PARTICIPANT, ONE_MAP: ONE_MAP}
            accuracies = {name: figures[key].judgement if key in figures else None for name, key in figure_of.items()}
            report["individual_differences"] |= {
                name: accuracy and accuracy._asdict() for name, accuracy in accuracies.items()
            }
        if embedding.points.shape[1] > 2:
            flat_map = picture.picture(embedding.points, questions, chosen.setting.ridge)
            arrays["picture"] = flat_map.points
            picture_figures = figures[PICTURE].judgement if PICTURE in figures else None
            report["picture"] = flat_map._asdict() | {"accuracy": picture_figures.accuracy if picture_figures else None}
            del report["picture"]["points"]
    progress(1, 1, log_likelihood=embedding.log_likelihood)
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _check(snapshot: Snapshot, answers: Answers) -> None:
    if len(answers.rows) == 0:
        raise CannotRefit(
            f"{KIND}: got 0 comparisons of {len(snapshot.objects)} objects; expected at least one, next: "
            + next_step(snapshot.counters["comparisons"], "triplet_counts (or worker_votes, quadruplet_counts)")
        )


MIN_PARTICIPANT_ANSWERS = 20  # answers that a participant needs for a lapse rate of their own; others share one


def without_rare_participants(answers: Answers) -> Answers:
    """The same answers; those of participants who gave fewer than `MIN_PARTICIPANT_ANSWERS` name no participant."""
    participant = answers.participant
    answers_given = np.bincount(participant + 1, answers.times, 1 + len(answers.participants))
    return answers._replace(
        participant=np.where(answers_given[participant + 1] < MIN_PARTICIPANT_ANSWERS, -1, participant)
    )


class _IndividualDifferences:
    """Models of participants in addition to the group's map; selected anew for each group of held-out responses."""

    def __init__(self, answers: Answers, params: Params, stop: Event, lapse_option: dict[str, Any]):
        self.answers, self.params, self.stop, self.lapse_option = answers, params, stop, lapse_option
        self._selected: dict[int, tuple[choice.Choice, Differences]] = {}  # by the identity of a choice

    def fitted(
        self, chosen: choice.Choice, answers: Answers, group_map: Embedding, only_weights: bool = False, **limits: Any
    ) -> Fitted:
        """Selected by and fitted to these answers, to which `group_map` was fitted."""
        return fitted_parts(
            self._select(chosen, answers, group_map, only_weights), answers, group_map, **self.lapse_option, **limits
        )

    def predicting(
        self, chosen: choice.Choice, answers: Answers, group_map: Embedding, only_weights: bool = False
    ) -> Fitted:
        """Selected without all units of the group that the setting was chosen for, and fitted to these answers."""
        if id(chosen) not in self._selected:
            available = self.answers if chosen.test_units is None else self.answers.without(chosen.test_units)
            frequent = without_rare_participants(available)
            map_of_group = with_setting(of_answers(frequent), chosen.setting, (group_map.points,), **self.lapse_option)
            self._selected[id(chosen)] = chosen, self._select(chosen, frequent, map_of_group, only_weights)
        return fitted_parts(self._selected[id(chosen)][1], answers, group_map, **self.lapse_option)

    def _select(self, chosen: choice.Choice, answers: Answers, group_map: Embedding, only_weights: bool) -> Differences:
        params = self.params
        if params.participants == "alike":
            return Differences("not requested")
        if params.lapse != "worker":
            return Differences(f"not requested: they need lapse rates of participants, and lapse is {params.lapse!r}")
        return differences(
            answers.sample(MAX_SEARCHED_ANSWERS),
            group_map,
            chosen.setting,
            given_d=params.dimensions is not None,
            always=params.participants == "weights",
            only_weights=only_weights,
            **self.lapse_option,
        )


# Columns of `worker_predicted`: sums over the answers of a participant, each predicted by a map of others' answers.
PREDICTION_SUMS = ("answers", "right", "log_odds", "expected", "variance", "square")


class _FoldPredictor:
    """Predicts held-out answers (`out`) by a model that is fitted to all others."""

    def __init__(
        self,
        candidates: Answers,
        answers: Answers,
        lapse_option: dict[str, Any],
        params: Params,
        seed: int,
        individual_differences: _IndividualDifferences,
    ):
        self.candidates, self.answers, self.lapse_option, self.params = candidates, answers, lapse_option, params
        self.seed, self.individual_differences = seed, individual_differences
        self.settings: list[dict[str, Any]] = []  # one a group of responses, with its lapse and scale
        self._last_choice: choice.Choice | None = None
        # a row a participant, filled when their answers are predicted by a map of other participants
        self.prediction_sums = np.zeros((len(answers.participants), len(PREDICTION_SUMS)))

    def response(self, chosen: choice.Choice, out: np.ndarray) -> dict[str, np.ndarray]:
        """Log odds of held-out answers: for an unknown participant, as `predict` gives them; by the model of the
        participant who answers; by one map and this participant's lapse rate; and margins of the map's picture."""
        targets, answers = self.candidates.of_responses(out), without_rare_participants(self.answers.without(out))
        questions = of_answers(answers)
        if not len(questions.rows):
            return {}
        group_map = with_setting(questions, chosen.setting, chosen.starts, **self.lapse_option)
        model = self.individual_differences.predicting(chosen, answers, group_map)
        calibration = _calibration(chosen, model, questions)
        if chosen is not self._last_choice:
            self.settings.append({**chosen.setting._asdict(), **calibration._asdict()})
            self._last_choice = chosen
        draws = _posterior_draws(questions, model, self.params, self.seed)
        odds = {KIND: _log_odds(model.embedding, calibration, draws, targets.rows)}
        if len(answers.participants):
            odds |= _log_odds_with_participant(targets, questions, chosen, model, draws)
        if chosen.setting.d > 2:
            flat_map = picture.picture(model.embedding.points, questions, chosen.setting.ridge)
            odds[PICTURE] = picture.margins(flat_map.points, targets.rows)
        return odds

    def participant(self, chosen: choice.Choice, out: np.ndarray) -> dict[str, np.ndarray]:
        """Log odds of the answers of participants none of whose answers were fitted."""
        answers = without_rare_participants(self.answers.without(out))
        questions = of_answers(answers)
        if not len(questions.rows):
            return {}
        group_map = with_setting(questions, chosen.setting, chosen.starts, **self.lapse_option)
        model = self.individual_differences.predicting(chosen, answers, group_map, only_weights=True)
        calibration = _calibration(chosen, model, questions)
        draws = _posterior_draws(questions, model, self.params, self.seed)
        targets = self.candidates.of_responses(out)
        odds = _log_odds(model.embedding, calibration, draws, targets.rows)
        if len(answers.participants):
            participant, times, certainty = targets.participant, targets.times, np.abs(odds)
            expected, square = certainty * np.tanh(certainty / 2), odds**2
            columns = (1.0, (odds > 0) + (odds == 0) / 2, odds, expected, square - expected**2, square)
            named = participant >= 0
            for number, column in enumerate(columns):
                np.add.at(self.prediction_sums[:, number], participant[named], (times * column)[named])
        return {KIND: odds}


def _posterior_draws(questions: Questions, model: Fitted, params: Params, seed: int) -> Posterior | None:
    """Draws over which predictions of the group are averaged; None where one fit predicts: with enough answers, with
    weights of participants, and with a model that was given."""
    fixed = params.dimensions is not None or params.kernel is not None or params.ridge is not None
    if fixed or params.lapse == "none" or model.own is not None or not few(questions, model.one.points.shape[1]):
        return None
    return posterior(questions, model.one, seed)


def _log_odds(fitted: Embedding, calibration: Calibration, draws: Posterior | None, rows: np.ndarray) -> np.ndarray:
    """(m,) log odds of answers of an unknown participant."""
    if draws is None:
        p = probabilities(fitted.points, rows, calibration.lapse, fitted.alpha, scale=calibration.scale)
    else:
        p = of_draws(draws.points, np.ones(len(fitted.points), bool), draws.lapse)(rows)
    return log_odds(p)


def _log_odds_with_participant(
    targets: Answers, questions: Questions, chosen: choice.Choice, model: Fitted, draws: Posterior | None
) -> dict[str, np.ndarray]:
    """Log odds of answers by who gave them: by one map, and by their own model where they have one."""
    participant, group_map = targets.participant, model.one
    calibration = chosen.calibration or Calibration(1.0, population_lapse(group_map.lapse, questions))
    lapse = known_lapses(group_map.lapse, questions, calibration.lapse)
    if draws is None:
        by_group = log_odds(
            probabilities(group_map.points, targets.rows, lapse, group_map.alpha, participant, calibration.scale)
        )
    else:  # sigma(Delta) by the draws, with the lapse of each
        share = of_draws(draws.points, np.ones(len(group_map.points), bool), 0.0)(targets.rows)
        has_answers = (np.bincount(questions.worker, minlength=len(lapse))[participant + 1] > 0) & (participant >= 0)
        of_anybody = of_draws(draws.points, np.ones(len(group_map.points), bool), draws.lapse)(targets.rows)
        by_group = log_odds(
            np.where(has_answers, lapse[participant + 1] / 2 + (1 - lapse[participant + 1]) * share, of_anybody)
        )
    by_model, differences = by_group, model.differences
    if model.own is not None and differences.weights is not None:
        weighted_map, of_unknown = model.own.embedding, differences.weights.calibration
        lapse = known_lapses(weighted_map.lapse, questions, of_unknown.lapse if of_unknown else None)[participant + 1]
        delta = weighted_margins(
            weighted_map.points, model.own.weights, targets.rows, participant + 1, weighted_map.alpha
        )
        by_model = log_odds(probability(differences.weights.scale * delta, lapse))
    if model.maps is not None and differences.stack is not None:
        by_model = combined(by_model, model.maps.log_odds(targets.rows, participant), differences.stack[participant])
    return {ONE_MAP: by_group, WITH_PARTICIPANT: by_model}


def _participant_arrays(model: Fitted, questions: Questions, seed: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Groups of participants for the report, and the arrays of participants: weights and groups, -1: no weights; own
    maps, how they are stacked, and what the own model gains: mean, standard error and p-value."""
    arrays: dict[str, np.ndarray] = {}
    groups: dict[str, Any] = {"verdict": "not tested: one map for everybody", "count": 1}
    if model.own is not None:
        weights = model.own.weights[1:]
        has_answers = np.bincount(questions.worker, minlength=1 + len(weights))[1:] > 0
        group, grouping = np.where(has_answers, 0, -1), participant_groups(weights[has_answers], seed)
        group[has_answers] = grouping.group
        arrays |= {"worker_weights": weights, "worker_group": group}
        groups = {"verdict": grouping.verdict, "count": grouping.groups, "p_value": grouping.p_value}
    if model.maps is not None and model.differences.stack is not None:
        maps = model.maps
        arrays |= {"own_X": maps.points, "own_worker": maps.block, "own_object": maps.object, "own_lapse": maps.lapse}
        arrays["own_draw"] = maps.draw
        arrays["worker_stack"] = model.differences.stack
    differences = model.differences
    if differences.gain is not None and differences.standard_error is not None and differences.p_values is not None:
        arrays["worker_gain"] = np.stack([differences.gain, differences.standard_error, differences.p_values], axis=1)
    return {"groups": groups}, arrays


def _differences_report(model: Fitted, participants: tuple[str, ...], snapshot: Snapshot) -> dict[str, Any]:
    """The tests, and who differs, for the report."""
    differences = model.differences
    weights, differing = differences.weights, differences.who
    report: dict[str, Any] = {
        "verdict": differences.verdict,
        "participants": differences.participants,
        "p_value": differences.p_value,
        "shrinkage": weights.shrinkage if weights else None,
        "scale": weights.scale if weights else 1.0,
        "gain_of_weights": differences.gain_of_weights,
        "p_of_weights": differences.p_of_weights,
        "own_maps": len(differences.own),
        "who": [],
    }
    if differences.gain is not None and differences.standard_error is not None and differences.p_values is not None:
        statistics = differences.gain, differences.standard_error, differences.p_values
        rows = zip(differing.tolist(), *(values[differing] for values in statistics), differences.objects)
        report["who"] = [
            {
                "participant": participants[number],
                "gain": float(gain),
                "standard_error": float(standard_error),
                "p_value": float(p),
                "objects": [snapshot.objects[object] for object in objects],
            }
            for number, gain, standard_error, p, objects in rows
        ]
    return report


def _calibration(chosen: choice.Choice, model: Fitted, questions: Questions) -> Calibration:
    weights = model.differences.weights
    if weights is not None and weights.calibration is not None:
        return weights.calibration
    return chosen.calibration or Calibration(1.0, population_lapse(model.one.lapse, questions))


def _previous_start(previous: Artifact | None, n: int) -> tuple[np.ndarray, ...]:
    """The previous points as a start of the fit; objects that are new since are at 0, the mean of the others."""
    if previous is None or "X" not in previous.arrays:
        return ()
    points = np.zeros((n, previous.arrays["X"].shape[1]))
    points[: len(previous.arrays["X"])] = previous.arrays["X"][:n]
    return (points,)


def _coordinate_arrays(
    participants: tuple[str, ...], questions: Questions, chosen: choice.Choice, model: Fitted
) -> dict[str, np.ndarray]:
    unknown_lapse, embedding = _calibration(chosen, model, questions).lapse, model.embedding
    return {
        "X": embedding.points,
        "asked": asked_about(questions),
        "lapse": np.array(unknown_lapse),
        "worker_lapse": known_lapses(embedding.lapse, questions, unknown_lapse)[1:],
        **pack_names(participants),
    }


def _covariance(answers: Answers, model: Fitted, fixed_lapse: bool) -> dict[str, np.ndarray]:
    """Covariances of the coordinates, if they are computed."""
    covariance = covariances(model.embedding, answers, fixed_lapse, None if model.own is None else model.own.weights)
    return {} if covariance is None else {"covariance": covariance.astype(np.float32)}


# Limits within which regions of 95 % were seen to cover as often: the number of dimensions at most, and answers an
# object at least.
MAX_REGION_DIMENSIONS, MIN_REGION_ANSWERS = 3, 75


def _reason_for_no_regions(questions: Questions, chosen: choice.Choice, params: Params, d: int) -> str | None:
    """Why no confidence regions are drawn from the covariances; None where they are drawn. If the number of dimensions
    was selected, regions of 95 % have this coverage only with many answers, few dimensions, and a clear number."""
    if params.dimensions is not None:
        return None
    if chosen.interval is None or d > MAX_REGION_DIMENSIONS:
        return f"more than {MAX_REGION_DIMENSIONS} dimensions" if chosen.interval else chosen.basis
    if questions.answers < MIN_REGION_ANSWERS * int(asked_about(questions).sum()):
        return f"there are fewer than {MIN_REGION_ANSWERS} times as many answers as objects"
    certain = chosen.smallest is not None and chosen.smallest.setting.d == d
    return None if certain else "the number of dimensions is uncertain"


def _report(
    snapshot: Snapshot,
    responses: Responses,
    participants: int,
    questions: Questions,
    chosen: choice.Choice,
    figures: dict[str, HeldOut],
    model: Fitted,
) -> dict[str, Any]:
    embedding, calibration = model.embedding, _calibration(chosen, model, questions)
    variance = embedding.points.var(axis=0)
    no_figures = HeldOut(responses.by, None, None, noise_ceiling.ceiling(responses))
    with_participant = figures.get(WITH_PARTICIPANT, no_figures).judgement
    return {
        **chosen.setting._asdict(),
        "alpha": embedding.alpha,
        "chosen_by": chosen.basis,
        "tried": chosen.trials,
        **figures.get(KIND, no_figures).report(),
        WITH_PARTICIPANT: with_participant._asdict() if with_participant else None,
        "answers": questions.answers,
        "questions": len(questions.rows),
        "objects": len(snapshot.objects),
        "never_asked_about": int(len(snapshot.objects) - asked_about(questions).sum()),
        "lapse": calibration.lapse,
        "lapse_fitted": population_lapse(embedding.lapse, questions),
        "scale": calibration.scale,
        "workers": participants,
        "guessers": embedding.guessers,
        "explained": (variance / (variance.sum() or 1.0)).tolist(),
        "objective": embedding.objective,
        "fitted_log_loss": -embedding.log_likelihood / questions.answers,
        "iterations": embedding.iterations,
        "evaluations": embedding.evaluations,
        "converged": embedding.converged,
        "slope": embedding.slope,
    }
