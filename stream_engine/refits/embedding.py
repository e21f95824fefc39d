"""Objects as points in d dimensions, by STE or t-STE with a lapse rate (room `embedding`; docs/design/embedding.md).

What is not given of the setting is selected by the log loss on a validation set; the published embedding is then fitted
to all answers, including those about four objects, so it depends neither on the seed nor on what is evaluated. The
figures of the report are cross-fitted, each with a selection of its own. Memory O(n d + m), cost O(m d) an iteration.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event, Lock
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.data.answers import Answers
from stream_engine.data.packed_names import pack_names
from stream_engine.embedding import choice, dimensions, picture
from stream_engine.embedding.choice import Choice
from stream_engine.embedding.ellipses import covariances
from stream_engine.embedding.fit import with_setting
from stream_engine.embedding.held_out import known_lapses
from stream_engine.embedding.questions import asked_about, of_answers
from stream_engine.evaluation import cross_fit
from stream_engine.evaluation.answers import answers_of
from stream_engine.evaluation.connection import are_connected, components
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.responses import (
    CHOOSE,
    FIT,
    HELD,
    PUBLISHED_SEED,
    VALIDATION_SHARE,
    Responses,
    further_validation_sets,
)
from stream_engine.refits import CannotRefit, Progress, next_step, no_progress
from stream_engine.refits.embedding_models import (
    MAX_SEARCHED_ANSWERS,
    SEARCHED_ANSWERS_PER_OBJECT,
    ModelOptions,
    ParticipantModels,
    calibration_of,
    posterior_draws,
    scale_of_draws,
    without_rare_participants,
)
from stream_engine.refits.embedding_predictions import KIND, FoldPredictor
from stream_engine.refits.embedding_report import (
    FinalFit,
    accuracy_with_participant,
    differences_report,
    fit_report,
    group_map_report,
    participant_arrays,
    picture_report,
    reason_for_no_regions,
)
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import EMBEDDING
from stream_engine.state.snapshot import Snapshot

AXES = EMBEDDING.axes
REQUIRED = EMBEDDING.required
TOLERANCE = 1e-7  # relative improvement of the objective at which a fit stops
MAX_ITERATIONS = 1000  # maximum number of L-BFGS iterations
# A choice of a setting takes this many fits, for the total that is reported until the first choice was made.
USUAL_FITS = 30


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
    max_answers: int | None = None,
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
    max_answers : int, optional
        Fit to a sample of about so many answers.

    Returns
    -------
    Artifact
        Arrays: `X` (n, d) float64: coordinates on principal axes about the mean (`principal_axes`), 0 for objects
        without answers; if fewer dimensions are supported by the answers, `supported` (n, D), coordinates in so many;
        `covariance` (n, d, d) float32 of each object's coordinates (`ellipses`), absent above
        `ellipses.MAX_COORDINATES` coordinates; `asked` (n,) bool; `lapse` (), the rate of an unknown participant;
        `worker_lapse` (w,), the rates of the participants in `utf8`, `offsets`. With more than two dimensions,
        `picture` (n, 2), see `embedding.picture`; the report's `picture` describes the method, its trustworthiness, and
        its accuracy on held-out answers. If participants differ, `worker_weights` (w, d) on the axes, which then are
        those of the weights (`individual`), and `worker_group` (w,), -1 for whom no weights were fitted; `group_X`
        (n, D), one map for everybody, where it predicts unknown participants too (`weight_selection`). If answers are
        few, `draws` (s, n, D) and `draw_lapse` (s,), over which predictions are averaged (`posterior`).

    Raises
    ------
    CannotRefit
        If the snapshot lacks what the refit needs.
    """
    options = _model_options(params)
    with threadpool_limits(1):
        responses, answers = _answers_to_fit(snapshot, seed, params, max_answers)
        _check(snapshot, answers)
        # The number of dimensions, the kernel and the ridge of the published map are given, or selected by the log loss
        # on a validation set that is the same for every seed. Its figures are cross-fitted (`evaluation.cross_fit`),
        # each with a selection of its own.
        published_responses, published_answers = responses, answers
        if seed != PUBLISHED_SEED:
            published_responses, published_answers = _answers_to_fit(snapshot, PUBLISHED_SEED, params, max_answers)
        plan = cross_fit.plan(responses, validation_share, evaluate, cross_fit.MAX_DIVISIONS)
        search = _SettingSearch(params, options, len(plan.responses) + len(plan.participants), progress)
        part = cross_fit.plan(published_responses, validation_share).responses[0].part
        chosen = search.choose(part, published_responses, published_answers)
        search.expect_as_many_fits()
        first = chosen
        if evaluate and published_responses is not responses:
            first = search.choose(plan.responses[0].part, responses, answers)
        models = ParticipantModels(answers, options)
        limits = {"tolerance": tolerance, "max_iterations": max_iterations}
        predictor = FoldPredictor(responses.answers, models, seed)
        counts_dimensions = not params.dimensions and are_connected(components(snapshot))
        with ThreadPoolExecutor(1, "final") as executor:
            final = executor.submit(_final_fit, chosen, published_answers, previous, models, seed, limits)
            if len(answers.rows) > MAX_SEARCHED_ANSWERS:  # memory for one model at a time; its fits use both cores
                wait([final])
            if counts_dimensions:
                support = executor.submit(_dimensions_report, published_responses, published_answers, chosen, search)
            figures = cross_fit.evaluate(
                responses,
                plan,
                first,
                lambda part: search.choose(part, responses, answers),
                predictor.response,
                predictor.participant,
                stopped=search.stop.is_set,
            )
        fit = final.result()
        of_dimensions: dict[str, Any] = {} if params.dimensions else OF_SEVERAL_SETS
        if counts_dimensions:
            of_dimensions = support.result()
        arrays, report = _results(fit, of_dimensions, figures, predictor, responses, snapshot.objects)
    progress(1, 1, log_likelihood=fit.model.embedding.log_likelihood)
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _model_options(params: Params) -> ModelOptions:
    return ModelOptions(
        params.lapse,
        params.participants,
        given_dimensions=params.dimensions is not None,
        given_setting=params.dimensions is not None or params.kernel is not None or params.ridge is not None,
    )


def _answers_to_fit(
    snapshot: Snapshot, seed: int, params: Params, max_answers: int | None
) -> tuple[Responses, Answers]:
    """All responses, and their answers or a sample of about `max_answers`."""
    responses, answers = answers_of(snapshot, seed, params.lapse == "worker")
    return responses, answers if max_answers is None else answers.sample(max_answers)


def _check(snapshot: Snapshot, answers: Answers) -> None:
    if len(answers.rows) == 0:
        raise CannotRefit(
            f"{KIND}: got 0 comparisons of {len(snapshot.objects)} objects; expected at least one, next: "
            + next_step(snapshot.counters["comparisons"], "triplet_counts (or worker_votes, quadruplet_counts)")
        )


class _SettingSearch:
    """Selects settings on validation sets, and reports the fits that this takes."""

    def __init__(self, params: Params, options: ModelOptions, n_choices: int, progress: Progress):
        self.params, self.options, self.n_choices, self.progress = params, options, n_choices, progress
        self.lock = Lock()  # of the progress, which two threads report
        self.stop = Event()  # set once the progress asked the refit to end
        self.fits, self.expected_fits = 0, USUAL_FITS * n_choices

    def expect_as_many_fits(self) -> None:
        """Expect that every choice takes as many fits as there were so far."""
        self.expected_fits = self.fits * self.n_choices

    def report_progress(self, done: int, total: int, **figures: Any) -> bool:
        """One more fit is done; whether to end."""
        with self.lock:
            self.fits += 1
            if self.progress(self.fits, max(self.expected_fits, self.fits + 1), **figures):
                self.stop.set()
        return self.stop.is_set()

    def choose(self, part: np.ndarray, responses: Responses, answers: Answers) -> Choice:
        """The setting by the parts (U,) of the responses: training, validation and test set."""
        params, lapse_option = self.params, self.options.lapse_option
        fitting, validation = answers.without(part != FIT), answers.of_responses(part == CHOOSE)
        searched = fitting.sample(max(MAX_SEARCHED_ANSWERS, SEARCHED_ANSWERS_PER_OBJECT * answers.n_objects))
        training = of_answers(without_rare_participants(searched))
        further = self._further_splits(part, responses, answers)
        chosen = choice.choose(
            training,
            validation,
            params.kernel,
            params.dimensions,
            params.ridge,
            further=further,
            progress=self.report_progress,
            **lapse_option,
        )
        if params.dimensions is None and len(searched.rows) < len(fitting.rows):
            training = of_answers(without_rare_participants(fitting))
            chosen = choice.choose_larger(chosen, training, validation, progress=self.report_progress, **lapse_option)
        scale = scale_of_draws(chosen, [choice.Split(training, validation), *further], self.options)
        return chosen._replace(draw_scale=scale, test_units=part == HELD)

    def _further_splits(self, part: np.ndarray, responses: Responses, answers: Answers) -> list[choice.Split]:
        """Training and validation sets besides those of `part`, where its validation set is small."""
        return [
            choice.Split(
                of_answers(without_rare_participants(answers.without((part == HELD) | out))), answers.of_responses(out)
            )
            for out in further_validation_sets(responses, part)
        ]


def _final_fit(
    chosen: Choice,
    answers: Answers,
    previous: Artifact | None,
    models: ParticipantModels,
    seed: int,
    limits: dict[str, Any],
) -> FinalFit:
    """The model of all answers, fitted from the previous artifact and from scratch; of the two maps, the one with the
    smaller objective is used. So it depends neither on the seed nor on what was evaluated."""
    frequent, options = without_rare_participants(answers), models.options
    questions = of_answers(frequent)
    starts = (*chosen.starts, *_previous_start(previous, answers.n_objects))
    group_map = with_setting(questions, chosen.setting, starts, **options.lapse_option, **limits)
    model = models.fit(chosen, frequent, questions, group_map, max_iterations=limits["max_iterations"])
    return FinalFit(frequent, questions, chosen, model, posterior_draws(questions, model, chosen, seed))


def _previous_start(previous: Artifact | None, n: int) -> tuple[np.ndarray, ...]:
    """The previous points as a start of the fit; objects that are new since are at 0, the mean of the others."""
    if previous is None or "X" not in previous.arrays:
        return ()
    points = np.zeros((n, previous.arrays["X"].shape[1]))
    points[: len(previous.arrays["X"])] = previous.arrays["X"][:n]
    return (points,)


OF_SEVERAL_SETS = {
    "dimensions_at_least": None,
    "dimensions_tested": "no: the objects fall into sets that were never compared with each other, or by few questions",
    "dimensions_interval": None,
    "dimensions_tied": None,
}


def _dimensions_report(
    responses: Responses, answers: Answers, chosen: Choice, search: _SettingSearch
) -> dict[str, Any]:
    """How many dimensions the answers support, and which numbers predict as well as the best."""
    frequent, lapse_option = without_rare_participants(answers), search.options.lapse_option
    support = dimensions.report_of(
        responses, frequent, chosen, PUBLISHED_SEED, progress=search.report_progress, **lapse_option
    )
    return support | {
        "dimensions_interval": list(chosen.interval) if chosen.interval else None,
        "dimensions_tied": chosen.smallest.setting.d if chosen.smallest else None,
    }


def _results(
    fit: FinalFit,
    of_dimensions: dict[str, Any],
    figures: dict[str, HeldOut],
    predictor: FoldPredictor,
    responses: Responses,
    objects: Sequence[str],
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the report of the artifact; `of_dimensions` says how many dimensions the answers support."""
    embedding, options = fit.model.embedding, predictor.models.options
    report = fit_report(fit, responses, figures) | {"settings": predictor.settings} | of_dimensions
    if options.lapse != "worker":
        report["workers"] = None  # who answered was not looked at
    n_dimensions = embedding.points.shape[1]
    report["no_regions"] = reason_for_no_regions(fit.questions, fit.chosen, options.given_dimensions, n_dimensions)
    report["draws"] = 0 if fit.draws is None else len(fit.draws.lapse)
    arrays = _map_arrays(fit, options, report.get("dimensions_at_least"))
    differences, participants_arrays = _participant_results(fit, predictor, figures, objects)
    report["reversed"] = predictor.reversed_report()
    report["individual_differences"] = differences
    arrays |= participants_arrays
    if n_dimensions > 2:
        flat_map = picture.picture(embedding.points, fit.questions, fit.chosen.setting.ridge)
        arrays["picture"] = flat_map.points
        report["picture"] = picture_report(flat_map, figures)
    return arrays, report


def _participant_results(
    fit: FinalFit,
    predictor: FoldPredictor,
    figures: dict[str, HeldOut],
    objects: Sequence[str],
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Who differs, and the arrays of participants."""
    groups, arrays = participant_arrays(fit.model, fit.questions, predictor.seed)
    report = differences_report(fit.model, fit.answers.participants, objects) | groups
    report["group_map"] = group_map_report(fit)
    if arrays:
        report |= accuracy_with_participant(figures)
    if predictor.prediction_sums.any():
        arrays["worker_predicted"] = predictor.prediction_sums
    return report, arrays


def _map_arrays(fit: FinalFit, options: ModelOptions, min_dimensions: int | None) -> dict[str, np.ndarray]:
    """Coordinates, lapse rates, covariances, draws, and the coordinates in as many dimensions as are supported."""
    questions, chosen, embedding = fit.questions, fit.chosen, fit.model.embedding
    unknown_lapse, individual = calibration_of(chosen, fit.model, questions).lapse, fit.model.individual
    arrays = {
        "X": embedding.points,
        "asked": asked_about(questions),
        "lapse": np.array(unknown_lapse),
        "worker_lapse": known_lapses(embedding.lapse, questions, unknown_lapse)[1:],
        **pack_names(fit.answers.participants),
    }
    weights = None if individual is None else individual.weights
    covariance = covariances(embedding, fit.answers, options.lapse == "none", weights)
    if covariance is not None:
        arrays["covariance"] = covariance.astype(np.float32)
    if fit.model.map_share:
        arrays["group_X"] = fit.model.group_map.points
    if fit.draws is not None:
        arrays |= {"draws": fit.draws.points, "draw_lapse": fit.draws.lapse}
    if min_dimensions and min_dimensions < embedding.points.shape[1]:
        setting = chosen.setting._replace(d=min_dimensions)
        arrays["supported"] = with_setting(questions, setting, (), **options.lapse_option).points
    return arrays
