"""How well models predict held-out answers, and how to interpret the map."""

from collections.abc import Iterable, Iterator, Mapping
from math import sqrt
from typing import Any

from stream_engine.data.numbers_in_words import amount
from stream_engine.evaluation.noise_ceiling import MAX_CEILING_HALF_WIDTH
from stream_engine.evaluation.response_checks import MIN_BIAS
from stream_engine.exports.models import COUNTS, MIN_HELD_OUT
from stream_engine.report.findings import GAP, WARNING, Finding
from stream_engine.report.findings.agreement import is_below_chance
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.words import count, p_value, percent
from stream_engine.state.artifact import PRELIMINARY, figure

COMPARE = "compare the first answers, which preview shows in words, with what participants chose"
CLOSE_TO_CEILING = 0.015  # to the noise ceiling: as good as it
BELOW_CHANCE = 2.58  # standard errors below one half: of an interval of 99 %
NAMES = {
    "embedding": "the map",
    "dimensions": "similarity by interpretable dimensions",
    "kernel_learning": "a kernel learned from the answers and auxiliary kernels",
    "partial_order_embedding": "a kernel learned from the partial order",
    "adds3": "AddS-3 similarity, from comparisons of three objects",
    "adds4": "AddS-4 similarity, from comparisons of two pairs",
    "k1": "how similarly two objects rank all others",
    "k2": "how similarly all other objects rank two objects",
    "majority": "the majority of earlier answers to the same question",
    "chance": "a random answer",
}


def explained(names: Iterable[str]) -> str:
    """What each model in a table is.

    >>> explained(["majority", "chance"])
    'majority: the majority of earlier answers to the same question; chance: a random answer'
    """
    shown = set(names)  # in an order of their own: that of the table depends on the seed where models are close
    return "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in NAMES.items() if name in shown)


def interval(accuracy: float, error: float) -> str:
    """A 95 % confidence interval in per cent.

    >>> interval(0.702, 0.0393)
    '95 % CI 62.5 to 77.9'
    """
    low, high = bounds(accuracy, error)
    return f"95 % CI {100 * low:.1f} to {100 * high:.1f}"


def bounds(accuracy: float, error: float) -> tuple[float, float]:
    """Of a 95 % confidence interval."""
    return max(0.0, accuracy - 1.96 * error), min(1.0, accuracy + 1.96 * error)


def accuracy(facts: Facts) -> Iterator[Finding]:
    """The best model's accuracy beside chance and the noise ceiling."""
    best, held_out = facts.best, facts.held_out
    if best is None:
        if facts.published.artifacts:
            yield Finding(
                "accuracy_unknown", "No model could be tested: there are too few answers to hold some out.", level=GAP
            )
        return
    share, error = best["accuracy"], best["standard_error"]
    figures = {"model": best["model"], "accuracy": share, "standard_error": error, "held_out": held_out}
    if facts.n_questions == 1:
        text = f"Prediction accuracy is unknown: all {amount(facts.summary['comparisons'], 'answer')} are to one "
        text += "question, and say nothing about others. Ask about further objects."
        yield Finding("one_question", text, figures, level=WARNING)
        return
    if facts.beats_chance is None:
        of = f"only {amount(held_out, 'held-out comparison')}" if held_out else "too few comparisons were held out"
        yield Finding("accuracy_unknown", f"Prediction accuracy is unknown: {of}.", figures, level=GAP)
        return
    of = f"{count(held_out)} held-out comparisons" if held_out else "held-out comparisons"
    if facts.beats_chance:
        also = f"; {facts.who_counts_too}" if facts.who_counts_too else ""
        notes = f"{interval(share, error)}; chance 50 %{also}"
        text = f"{_called(best['model'])} predicts {percent(share)} of {of} correctly ({notes})."
        yield Finding("accuracy", text, figures)
        yield from _worse_map(facts, best)
        yield from _better_baseline(facts)
        yield from _preferred_position(facts)
    else:
        yield from _no_better_than_chance(facts, best, of, figures)
    yield from _reversed(facts)
    yield from _noise_ceiling(facts, best)


def _no_better_than_chance(
    facts: Facts, best: Mapping[str, Any], of: str, figures: Mapping[str, Any]
) -> Iterator[Finding]:
    """That the reported model predicts no better than chance, whether answers are random all the same, and what to do;
    `of`: how many comparisons were held out."""
    share, error, name = best["accuracy"], best["standard_error"], best["model"].replace("_", " ")
    above, below = facts.above_chance, share + BELOW_CHANCE * (error or 0.0) < 0.5
    contradict = is_below_chance(figure(facts.ceiling, "others"), figure(facts.ceiling, "answers"))
    text = (
        f"{_capitalized(facts.at_chance)} {of} significantly better than chance (one-sided test at the 1 % level, "
        f"corrected for the number of models): {name} predicts {percent(share)} correctly "
        f"({interval(share, error)}). "
    )
    if facts.better_baseline is not None:
        text += f"The answers are not random: {_baseline_in_words(facts.better_baseline)}, which no map expresses. "
    elif above is not None:
        text += f"The answers are not random: {above['model'].replace('_', ' ')} predicts "
        text += f"{percent(above['accuracy'])} ({interval(above['accuracy'], above['standard_error'])}). "
    elif contradict:
        text += "The answers are not random: participants contradict each other more often than by chance, as where "
        text += "some name the less similar object. "
    elif below:
        text += "This is significantly less than one half: answers contradict each other, as where the instruction "
        text += "of some participants, or of one file, was the opposite. "
    elif share < 0.5:
        text += "Less than one half is chance, too. "
    text += "The map, clusters and dimensions are not interpretable. "
    opposite = above is None and facts.better_baseline is None and (contradict or below)
    promising = above is not None or facts.better_baseline is not None or share - 1.96 * (error or 0.0) > 0.5
    if opposite:
        text += f"More answers of this kind would not help: {COMPARE}, for each participant and each file."
    elif promising:
        text += "Collect more answers."
    else:
        text += f"Before you collect more, {COMPARE}. If they are the same, participants may have answered at random; "
        text += "only many more answers could show otherwise."
    yield Finding("chance_level", text, figures, "" if promising else facts.preview, WARNING)
    yield from _one_position(facts)


def _noise_ceiling(facts: Facts, best: Mapping[str, Any]) -> Iterator[Finding]:
    """What disagreement leaves to be predicted."""
    share = best["accuracy"]
    if (most := best["ceiling_at_most"]) is not None and facts.beats_chance:
        gap = most - share
        also = f" ({facts.who_counts_too})" if facts.who_counts_too else ""
        text = f"The noise ceiling for a model without individual differences is at most {percent(most)}{also}"
        printed_gap = float(f"{100 * most:.1f}") - float(f"{100 * share:.1f}")
        more = f", so at most {printed_gap:.1f} points can be gained."
        text += "; the model reaches it." if gap < CLOSE_TO_CEILING else more
        yield Finding("noise_ceiling", text, {"at_most": most})
    elif facts.beats_chance and figure(facts.ceiling, "others") is not None:
        text = "The noise ceiling is not reported: the agreement of two participants varies so much between questions, "
        text += f"or rests on so few, that the 95 % CI is wider than ± {100 * MAX_CEILING_HALF_WIDTH:.0f} points."
        yield Finding("noise_ceiling_unknown", text, level=GAP)


def _worse_map(facts: Facts, best: Mapping[str, Any]) -> Iterator[Finding]:
    """A warning where counts predict better than the map."""
    if best["model"] not in COUNTS:
        return
    of_map = next((row["accuracy"] for row in facts.models if row["model"] == "embedding"), None)
    if of_map is not None:
        text = f"The map predicts held-out comparisons worse than counts of answers do ({percent(of_map)} against "
        text += f"{percent(best['accuracy'])}), so it does not show all that they tell."
        figures = {"accuracy": of_map, "of_counts": best["accuracy"]}
        yield Finding("map_worse_than_counts", text, figures, level=WARNING)


def _baseline_in_words(row: Mapping[str, Any]) -> str:
    ends = interval(row["accuracy"], row["standard_error"])
    return f"{NAMES[row['model']]} predicts {percent(row['accuracy'])} ({ends})"


def _better_baseline(facts: Facts) -> Iterator[Finding]:
    """A warning where what was answered to the same question predicts better than every model."""
    row = facts.better_baseline
    if row is not None:
        text = f"Every model predicts held-out comparisons worse than a baseline does: {_baseline_in_words(row)}. So "
        text += "answers depend on their question in a way that no map or similarity expresses."
        yield Finding("worse_than_baseline", text, {"baseline": row["accuracy"]}, level=WARNING)


def _one_position(facts: Facts) -> Iterator[Finding]:
    """A warning where the position of an object predicts answers, and models do not."""
    preferred = facts.preferred_position
    if preferred is not None and preferred.excess >= MIN_BIAS:
        text = f"{preferred.in_words()}: participants may have chosen it whatever was asked, or the column of answers "
        text += "does not say what was chosen."
        yield Finding("one_position", text, {"share": preferred.share}, facts.preview, WARNING)


def _preferred_position(facts: Facts) -> Iterator[Finding]:
    """A warning where models predict answers, and many name the object at one position."""
    preferred = facts.preferred_position
    if preferred is not None and not preferred.by_design():
        text = f"{preferred.in_words()}. If objects were shown in random order, and the file lists them as they were "
        text += "shown, participants prefer this position, and no model corrects for it."
        yield Finding("preferred_position", text, {"share": preferred.share}, level=WARNING)


REVERSED_ERRORS = 3.0  # standard errors by which reversed answers must be predicted better


def _reversed(facts: Facts) -> Iterator[Finding]:
    """A warning where a map of reversed answers predicts better: as where answers name the less similar object."""
    report = facts.report("embedding").get("reversed")
    report = report if isinstance(report, Mapping) else {}
    gain, error, of_reversed = (figure(report, name) for name in ("gain", "standard_error", "accuracy"))
    as_is = figure(report, "as_is", "accuracy")
    if gain is None or error is None or of_reversed is None or as_is is None:
        return
    few = facts.n_questions is not None and facts.n_questions < MIN_HELD_OUT  # which a map may give either way
    at_chance = of_reversed < 0.5 + 1.96 * sqrt(0.25 / max(facts.held_out, 1))  # as where some answers are reversed
    if gain < REVERSED_ERRORS * error or of_reversed <= as_is or few or at_chance:
        return
    direction = "nearer" if facts.read_as.get("answer_is") == "farther" else "farther"
    text = "Answers may name the less similar object: if each is reversed, a map predicts held-out comparisons better "
    text += f"({percent(of_reversed)} against {percent(as_is)}; log loss lower by {gain:.3f} nats, SE {error:.3f}). "
    text += f"{_capitalized(COMPARE)}; --answer-is {direction} reverses all of them (if preview names participants or "
    text += "rows with opposite answers, correct these alone)."
    yield Finding("reversed", text, {"accuracy": of_reversed, "gain": gain}, facts.preview, WARNING)


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def _called(model: str) -> str:
    """The embedding is reported as it makes the map, others if they predict significantly better than it."""
    return "The embedding" if model == "embedding" else f"The best model ({model.replace('_', ' ')})"


def not_interpretable(facts: Facts) -> str:
    """What is said in place of a map."""
    return f"The map is not interpretable: {facts.at_chance} the answers better than chance."


def object_map(facts: Facts) -> Iterator[Finding]:
    """What the map shows and how many dimensions it has."""
    report = facts.report("embedding")
    d = figure(report, "d")
    if d is None:
        return
    if facts.beats_chance is False:
        yield Finding("map_gated", not_interpretable(facts), {"dimensions": d})
        return
    kernel = {"ste": "STE", "t-ste": "t-STE"}.get(str(report.get("kernel")), "embedding")
    chosen = facts.published.artifacts["embedding"].params.get("dimensions") is None
    least = figure(report, "dimensions_at_least")
    size = f", {amount(int(d), 'dimension')}"
    if (chosen and least is not None and least < d) or not facts.connected:  # said below, or of no set
        size = ""
    text = f"Objects judged similar are close together ({kernel}{size})."
    if not facts.connected:
        text += f" The relative position of sets that {facts.apart} is arbitrary."
    if PRELIMINARY in report:
        text += " Preliminary map, without cross-validation: its dimensions and settings are not selected yet."
    yield Finding("map", text, {"dimensions": d})
    if not facts.connected:
        if chosen:
            text = f"The number of dimensions was not tested: the objects fall into sets that {facts.apart}, and the "
            text += "dimensions of one set have nothing to do with those of another."
            yield Finding("dimensions_untested", text, level=GAP)
        yield from _picture(report, "the whole map")
        return
    of_answers, of_prediction = _supported(report, int(d), chosen), _for_prediction(report, int(d), chosen)
    yield from (*of_answers, *_picture(report, f"the {int(d)} dimensions"), *of_prediction)
    yield from _which_dimensions(facts, int(d))


def _which_dimensions(facts: Facts, d: int) -> Iterator[Finding]:
    """Which number of dimensions is which, where the page has several."""
    of_groups = figure(facts.cluster_answer, "dimensions")
    if not of_groups or of_groups == d:
        return
    text = f"Numbers of dimensions on this page: the map has {d}, for prediction; groups were sought in "
    text += f"{int(of_groups)}" + ("; the picture has 2." if d > 2 else ".")
    yield Finding("which_dimensions", text, {"map": d, "groups": of_groups})


def _picture(report: Mapping[str, Any], whole: str) -> Iterator[Finding]:
    """How faithful the two-dimensional picture is of more dimensions, which are called `whole`."""
    shown = report.get("picture")
    if not isinstance(shown, Mapping):
        return
    right, trust = figure(shown, "accuracy"), figure(shown, "trustworthiness")
    about = []
    if right is not None:
        all_of_them = percent(figure(report, "accuracy"))
        about.append(f"it predicts {percent(right)} of held-out comparisons correctly, {whole} {all_of_them}")
    if trust is not None:
        about.append(f"trustworthiness of its neighbourhoods {trust:.2f}")
    text = f"The picture is a {shown['by']}" + (f": {'; '.join(about)}." if about else ".")
    yield Finding("picture", text, {"accuracy": right, "trustworthiness": trust})


def _supported(report: Mapping[str, Any], d: int, chosen: bool) -> Iterator[Finding]:
    """How many dimensions the answers support at least."""
    least, tested = figure(report, "dimensions_at_least"), report.get("dimensions_tested")
    if least is None:
        if isinstance(tested, str) and tested.startswith("no: "):
            text = f"The number of dimensions was not tested: {tested.removeprefix('no: ')[:200]}."
            yield Finding("dimensions_untested", text, level=GAP)
        return
    p = tested.get("p_values", []) if isinstance(tested, Mapping) else []
    figures = {"at_least": least, "dimensions": d, "p_values": p}
    if least > 1:
        text = f"The answers support at least {amount(int(least), 'dimension')}: fewer predict significantly worse"
        more = p[int(least) - 1] if len(p) >= least else None
        text += f"; adding one more is not significant (p = {p_value(more)})." if isinstance(more, int | float) else "."
        yield Finding("dimensions", text, figures)
    elif chosen and d > least and p and isinstance(p[0], int | float):
        text = (
            f"A second dimension is not confirmed by the test (p = {p_value(p[0])}); that does not show that there is "
        )
        text += "none."
        yield Finding("dimensions", text, figures)


def _for_prediction(report: Mapping[str, Any], d: int, chosen: bool) -> Iterator[Finding]:
    """Why the map has more dimensions than the answers support."""
    least = figure(report, "dimensions_at_least")
    if least is None or d <= least or not chosen:
        return
    low, high = report.get("dimensions_interval") or (d, d)
    text = f"For prediction, the map has {d} dimensions, the "
    if d < high:
        text += f"smallest number whose log loss on held-out comparisons is close to the least, that of {high}"
    else:
        text += "number with the least log loss on held-out comparisons"
    text += f"; {low} to {high} have no significantly larger one (95 % interval)" if low < high else ""
    if low > least:
        text += ". The log loss of fewer is larger, but tests of accuracy do not confirm that more than "
        text += f"{amount(int(least), 'dimension is', 'dimensions are')} needed"
    text += ". It is no estimate of how many dimensions the objects have."
    figures = {"at_least": least, "dimensions": d, "interval": [low, high]}
    yield Finding("dimensions_for_prediction", text, figures)
