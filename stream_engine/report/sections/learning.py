"""Would more answers help? The embedding fitted to parts of the answers, each tested on judgements held out of all.

The responses are dealt to folds as for the published map, with its setting: what is said depends neither on the seed of
the refit nor on chance. Of all that is predicted, the setting was selected on a part; the four fits share it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from stream_engine.data.answers import Answers
from stream_engine.data.numbers_in_words import amount
from stream_engine.embedding.fit import LOOSE, Embedding, Setting, fit, fit_carefully
from stream_engine.embedding.questions import Questions, of_answers
from stream_engine.evaluation import cross_fit
from stream_engine.evaluation.answer_probabilities import log_odds, probabilities
from stream_engine.evaluation.answers import answers_of
from stream_engine.evaluation.held_out import BINS, Figures, slope_of
from stream_engine.evaluation.participants import wilson
from stream_engine.evaluation.responses import PUBLISHED_SEED, Responses
from stream_engine.report import Section, Table
from stream_engine.report.drawings import Axis, Curve, Drawing, Rules
from stream_engine.report.findings.words import count, percent
from stream_engine.report.material import Material
from stream_engine.state.artifact import PRELIMINARY, Artifact

SHARES = (0.125, 0.25, 0.5, 1.0)
MAX_CURVE_ANSWERS = 200_000  # answers that the curve is made of at most
MIN_BIN_ANSWERS, MIN_FILLED_BIN_ANSWERS = 5, 20  # answers, below which a share of them is not drawn; or drawn hollow
MIN_STATED_BIN_ANSWERS = 50  # below which the text says no share of them
MIN_HELD_OUT = 50  # held-out comparisons, below which there is nothing to tell
TITLE = "Would more answers help?"
PREDICTOR = (
    "The curve is of an embedding with the setting of the published map, which is not selected again for each fold, "
    "without averaging over draws and without participants' own parameters; its probabilities are calibrated on other "
    "folds. So its accuracy with all comparisons can "
    "differ from that under Prediction accuracy, which is the one to report."
)


class Step(NamedTuple):
    """One point of the curve."""

    answers: int
    figures: Figures


def section(material: Material) -> Section:
    """The learning curve, the calibration, and what a run noted about drift."""
    artifact = material.artifact("embedding")
    if artifact is None:
        return Section(TITLE, "No embedding has been fitted yet.", notes=_drift(material))
    if PRELIMINARY in artifact.report:
        return Section(TITLE, "The embedding is being fitted.")
    steps, confidence, right = curve(material, artifact)
    if len(steps) < 2:
        comparisons = amount(material.summary["comparisons"], "comparison")
        few = f"There are too few answers to tell: {comparisons}, of which at least {MIN_HELD_OUT} must be held out."
        return Section(TITLE, few, notes=_drift(material))
    last, before = steps[-1].figures, steps[-2].figures
    gain, unsure = last.accuracy - before.accuracy, last.standard_error or 0.0
    fewer, more = (f"{count(step.answers)} comparisons" for step in steps[-2:])
    says = (
        f"Fitted to {fewer}, the embedding predicts {percent(before.accuracy)} of held-out comparisons correctly; "
        f"fitted to {more}, {percent(last.accuracy)}: "
    )
    if material.facts.beats_chance is False:
        says = says.removesuffix(": ") + f". Because {material.facts.at_chance} better than chance, the curve has "
        says += "nothing to say about more answers: see what is to be done under Prediction accuracy."
    elif gain > max(0.005, 1.96 * unsure):
        most_before = max(step.figures.accuracy for step in steps[:-1])
        if last.accuracy - most_before > max(0.005, 1.96 * unsure):
            says += "more answers would help."
        else:
            says += "fewer comparisons predicted nearly as well, so this does not tell whether more answers would help."
    elif gain < 0.005 and unsure < 0.01:
        says += "more answers of this kind would hardly help."
    else:
        says += f"the difference is not significant (SE {100 * unsure:.1f} points), so this does not tell whether more "
        says += "answers would help."
    columns = {
        "comparisons fitted": [step.answers for step in steps],
        "accuracy": [step.figures.accuracy for step in steps],
        "standard error": [step.figures.standard_error for step in steps],
        "log loss": [step.figures.log_loss for step in steps],
    }
    stated, came, answers = _bins(confidence, right)
    drawings = (_curve(steps, material), *_calibration(stated, came, answers))
    tables = [Table("learning_curve", columns, folded=True)]
    if len(drawings) > 1:
        rows = {"predicted": stated.tolist(), "observed": came.tolist(), "comparisons": answers.tolist()}
        about = (
            "Calibration: observed frequency of the predicted answer, for bins of predicted probability .05 wide "
            f"with at least {MIN_BIN_ANSWERS} comparisons. Hollow points have fewer than {MIN_FILLED_BIN_ANSWERS}."
            f"{_left_out(len(confidence) - int(answers.sum()))}"
        )
        tables.append(Table("calibration", rows, about=about, folded=True))
        if material.facts.beats_chance is not False:
            says += _calibration_in_words(stated, came, answers)
    return Section(TITLE, says, drawings, tuple(tables), (PREDICTOR, *_drift(material)))


def _left_out(n: int) -> str:
    return f" {amount(n, 'comparison is', 'comparisons are')} in bins with fewer, which are left out." if n else ""


def curve(material: Material, artifact: Artifact) -> tuple[list[Step], np.ndarray, np.ndarray]:
    """The steps, and of the last one each held-out answer's probability of what was expected, and whether it came."""
    params, report = artifact.params, artifact.report
    responses, answers = answers_of(material.snapshot, PUBLISHED_SEED, params["lapse"] == "worker")
    groups = cross_fit.plan(responses).responses
    chosen = [report] * len(groups)
    out = [fold for group in groups for fold in group.folds]
    if responses.answers.of_responses(np.any(out, axis=0)).times.sum() < MIN_HELD_OUT if out else True:
        return [], np.empty(0), np.empty(0)
    steps, part = [], _Part(responses, answers, params["lapse"] == "none", {}, 0.0, [], [])
    for share in SHARES:
        part = part._replace(share=share, sizes=[], margins=[])
        with cross_fit.FoldPredictions(responses) as folds:
            pending = folds.begin(groups, chosen, part.predict)
            figures = cross_fit.fold_figures(pending, np.arange(len(responses.draw)))
        if figures:
            steps.append(Step(int(np.mean(part.sizes)), figures[""]))
    margin = np.concatenate([np.empty(0), *_calibrated(part.margins)])
    return steps, expit(np.abs(margin)), np.where(margin > 0, 1.0, np.where(margin == 0, 0.5, 0.0))


def _calibrated(margins: list[np.ndarray]) -> list[np.ndarray]:
    """Log odds of folds, each times the slope that fits those of the other folds best: the published setting has the
    scale of what predicts with it, which may be an average over draws."""
    others = (np.concatenate([np.empty(0), *margins[:fold], *margins[fold + 1 :]]) for fold in range(len(margins)))
    slopes = [slope_of(other, np.ones(len(other))) if len(other) else 1.0 for other in others]
    return [slope * margin for slope, margin in zip(slopes, margins)]


class _Part(NamedTuple):
    """Fits to a share of the answers outside each fold; `fitted` to the share before, by the fold."""

    responses: Responses
    answers: Answers
    fixed_lapse: bool
    fitted: dict[bytes, Embedding]
    share: float
    sizes: list[float]  # of what was fitted
    margins: list[np.ndarray]  # log odds of what was out

    def predict(self, setting: Mapping[str, Any], out: np.ndarray) -> dict[str, np.ndarray]:
        """Log odds of the answers that are out."""
        draw = self.responses.draw
        share = self.share * min(1.0, MAX_CURVE_ANSWERS / max(len(self.answers.rows), 1))
        kept = ~out & (draw <= np.quantile(draw[~out], share)) if not out.all() else ~out
        answers = self.answers.of_responses(kept)
        if not len(answers.rows):
            return {}
        before = self.fitted.get(out.tobytes())
        embedding = _fit(of_answers(answers), setting, before, fixed_lapse=self.fixed_lapse, tolerance=LOOSE)
        self.fitted[out.tobytes()] = embedding
        self.sizes.append(float(answers.times.sum()))
        out_answers = self.responses.answers.of_responses(out)
        p = probabilities(embedding.points, out_answers.rows, setting["lapse"], embedding.alpha, scale=setting["scale"])
        self.margins.append(np.repeat(log_odds(p), out_answers.times.astype(int)))  # as often as it was answered so
        return {"": log_odds(p)}


def _fit(questions: Questions, setting: Mapping[str, Any], smaller: Embedding | None, **more: Any) -> Embedding:
    """The setting fitted, begun at the points of the fit to fewer of the same answers."""
    kernel, d, ridge = (setting[name] for name in Setting._fields)
    if smaller is None:
        return fit_carefully(questions, d, ridge, kernel=kernel, **more)[0]
    return fit(questions, d, ridge, kernel=kernel, start=smaller.points, **more)


def _curve(steps: list[Step], material: Material) -> Drawing:
    x = np.array([step.answers for step in steps], float)
    y = np.array([step.figures.accuracy for step in steps])
    half = 1.96 * np.array([step.figures.standard_error or 0.0 for step in steps])
    error = np.stack([np.minimum(half, y), np.minimum(half, 1.0 - y)])
    ceiling = material.published.artifacts["embedding"].report.get("ceiling") or {}
    heights = {"inter-rater agreement": ceiling.get("others"), "noise ceiling": ceiling.get("at_most")}
    there = {text: float(height) for text, height in heights.items() if height is not None}
    rules = (Rules(tuple(there.values()), tuple(there)),) if there else ()
    return Drawing(
        "learning_curve",
        "Accuracy by number of comparisons",
        f"Accuracy is {y[0]:.3f} with {count(x[0])} comparisons and {y[-1]:.3f} with {count(x[-1])}.",
        Axis("comparisons fitted", low=0.0),
        Axis("accuracy on held-out responses"),
        (Curve(x, y, "embedding", error), *rules),
        width=480,
        height=300,
    )


def _bins(confidence: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the bins with at least `MIN_BIN_ANSWERS` answers: mean stated probability, share that came so, answers."""
    entry = np.minimum(((confidence - 0.5) * 2 * BINS).astype(int), BINS - 1)
    n = np.bincount(entry, minlength=BINS)
    there = n >= MIN_BIN_ANSWERS
    stated, came = (np.bincount(entry, values, BINS)[there] / n[there] for values in (confidence, right))
    return stated, came, n[there]


def _calibration_in_words(stated: np.ndarray, came: np.ndarray, answers: np.ndarray) -> str:
    """The most certain of the bins that have enough comparisons; "" where none has."""
    enough = np.flatnonzero(answers >= MIN_STATED_BIN_ANSWERS)
    if not len(enough):
        return ""
    at = int(enough[-1])
    low, high = (100 * bound for bound in wilson(came[at], answers[at]))
    # bounds that would be rounded to the same number have more digits, and the share, too
    digits = next((n for n in range(4) if f"{low:.{n}f}" != f"{high:.{n}f}"), 4)
    return (
        f" Comparisons predicted with {percent(stated[at], digits)} occurred {percent(came[at], digits)} of the time "
        f"(95 % CI {low:.{digits}f} to {high:.{digits}f}; {count(answers[at])} comparisons)."
    )


def _calibration(x: np.ndarray, y: np.ndarray, n: np.ndarray) -> tuple[Drawing, ...]:
    if len(x) < 2:
        return ()
    low, high = wilson(y, n)
    line = np.array([0.5, 1.0])
    return (
        Drawing(
            "calibration",
            "Calibration",
            "Observed frequency of answers by the probability that the embedding predicted; the dashed line is "
            f"perfect calibration. Hollow points have fewer than {MIN_FILLED_BIN_ANSWERS} comparisons.",
            Axis("predicted probability", 0.48, 1.02),
            Axis("observed frequency", min(0.3, float(low.min()) - 0.02), 1.02),
            (
                Curve(line, line, "perfect calibration", dashed=True, marked=False),
                Curve(x, y, "embedding", np.stack([y - low, high - y]), hollow=n < MIN_FILLED_BIN_ANSWERS),
            ),
            width=380,
            height=300,
        ),
    )


def _drift(material: Material) -> tuple[str, ...]:
    """What a run noted about change."""
    noted = material.progressive.get("drift") or {}
    alarms = {name: signal.get("alarms", 0) for name, signal in noted.items()}
    if not alarms:
        return ()
    some_alarm = {name: n for name, n in alarms.items() if n}
    if not some_alarm:
        return ("No drift was detected during the run.",)
    text = ", ".join(f"{name} {amount(n, 'time')}" for name, n in some_alarm.items())
    return (f"Drift was detected during the run: {text}.",)
