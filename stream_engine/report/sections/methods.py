"""Text for a paper with the figures of a study, in APA style, and what it takes to repeat it: methods, settings, seeds
and versions."""

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from stream_engine.clustering.sentence import CANNOT_TELL, NOT_SEPARABLE, are_separated, by_themselves, is_certain
from stream_engine.data import installed_version
from stream_engine.data.numbers_in_words import amount
from stream_engine.evaluation.participants import MIN_PARTICIPANTS
from stream_engine.evaluation.responses import are_held_out_by_screen
from stream_engine.report import Section, Table
from stream_engine.report.findings.agreement import difference_tests
from stream_engine.report.findings.data import KINDS, excluded_rows
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.models import NAMES, bounds
from stream_engine.report.findings.words import apa_p_value, count, listing, p_value
from stream_engine.report.material import Material
from stream_engine.report.sections.dendrogram import ADDS
from stream_engine.state.artifact import PRELIMINARY, Artifact, figure
from stream_engine.state.merging import are_of_three

CITED = {  # kind of artifact -> what was done, and whom to cite
    "embedding": (
        "embedding with a lapse rate for each participant, and weights on the axes if these predict better",
        "van der Maaten & Weinberger 2012, Stochastic triplet embedding (STE, t-STE); Carroll & Chang 1970, "
        "Analysis of individual differences in multidimensional scaling (weights)",
    ),
    "clusters": (
        "groups of the objects on the map (Ward's method, then k-means), graded by how clear they are compared with "
        "continua of as many objects, as many dimensions and the same precision",
        "Ward 1963, Hierarchical grouping to optimize an objective function; Hubert & Arabie 1985, Comparing "
        "partitions",
    ),
    "sdp_clustering": (
        "clustering by a semidefinite program on AddS similarities",
        "Perrot, Esser & Ghoshdastidar 2020, Near-optimal comparison based clustering",
    ),
    "triplet_boost": (
        "classification by boosted triplet classifiers",
        "Perrot & von Luxburg 2019, Boosting for comparison-based learning",
    ),
    "kernel_learning": (
        "a kernel learned from comparisons and auxiliary kernels",
        "Heim, Valizadegan & Hauskrecht 2014, Relative comparison kernel learning with auxiliary kernels",
    ),
    "partial_order_embedding": (
        "multiple kernel partial order embedding",
        "McFee & Lanckriet 2011, Learning multi-modal similarity",
    ),
    "hierarchy": (
        "average and complete linkage on AddS, scored by the comparison-based revenue",
        "Mandal, Perrot & Ghoshdastidar 2023, A revenue function for comparison-based hierarchical clustering",
    ),
    "spectral": ("spectral clustering of AddS", "Perrot, Esser & Ghoshdastidar 2020"),
    "reliability": ("agreement of each participant with the others", "Dawid & Skene 1979"),
}
NUMBERED_BY = {
    "spur": "number of clusters by SPUR",
    "given": "number of clusters given",
    "lam": "number of clusters by a given lambda",
}
PACKAGES = ("numpy", "scipy", "numba")
EMBEDDINGS = {
    "ste": "stochastic triplet embedding (STE; van der Maaten & Weinberger, 2012)",
    "t-ste": "t-distributed stochastic triplet embedding (t-STE; van der Maaten & Weinberger, 2012)",
}


def section(material: Material) -> Section:
    """The text for a paper; tables of methods, settings and versions."""
    artifacts, snapshot = material.published.artifacts, material.snapshot
    kinds = [kind for kind in artifacts if kind in CITED]
    tables = []
    if kinds:
        methods = {
            "refit": kinds,
            "method": [_method(artifacts[kind])[0] for kind in kinds],
            "cite": [_method(artifacts[kind])[1] for kind in kinds],
            "snapshot": [artifacts[kind].sequence for kind in kinds],
            "seed": [artifacts[kind].seed for kind in kinds],
        }
        tables.append(Table("methods", methods))
    settings: dict[str, Any] = {
        f"{kind}.{name}": value for kind in sorted(artifacts) for name, value in sorted(artifacts[kind].params.items())
    }
    settings = {
        "accumulators": ", ".join(snapshot.settings["accumulators"]),
        "guard": snapshot.settings["guard"],
        **settings,
    }
    texts = ["chosen" if value is None else str(value) for value in settings.values()]
    tables.append(Table("settings", {"setting": list(settings), "value": texts}, folded=True))
    versions = {"stream-engine": installed_version(), "Python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    tables.append(Table("versions", {"package": list(versions), "version": list(versions.values())}, folded=True))
    again = (
        f"Generated from snapshot {snapshot.sequence} (digest {snapshot.digest[:12]}). "
        "The same answers, settings, seeds and versions give the same figures."
    )
    text = f"Text for a paper: {paper(material.facts)}"
    if PRELIMINARY in material.facts.report("embedding"):
        text = "The text for a paper follows when the embedding is fitted."
    return Section("Methods and references", text, (), tuple(tables), (again,))


def _method(artifact: Artifact) -> tuple[str, str]:
    """What was done, and whom to cite."""
    by = str(artifact.report.get("k_by"))
    method, cite = CITED[artifact.kind]
    similarity = str(artifact.params.get("similarity", "adds3"))
    if similarity not in ADDS:
        method = method.replace("AddS similarities", similarity).replace("AddS", similarity)
    return f"{method}, {NUMBERED_BY[by]}" if by in NUMBERED_BY else method, cite


def paper(facts: Facts) -> str:
    """A paragraph for a section on methods and results."""
    parts = [_data(facts)]
    if report := facts.report("embedding"):
        parts += _embedding(report, facts.connected)
        parts += _accuracy(facts, report)
        if facts.beats_chance is not False:
            parts += _differences(report)
    if facts.beats_chance is not False and (answer := facts.cluster_answer):
        parts += _groups(answer)
    software = f"Analyses used stream-engine, version {installed_version()}"
    return " ".join([*parts, f"{software} (Python {platform.python_version()}, NumPy {version('numpy')})."])


def _data(facts: Facts) -> str:
    """Whose answers, about what, and who was excluded."""
    summary, people = facts.summary, facts.participants
    comparisons = amount(summary["comparisons"], "comparison")
    kinds = listing([KINDS.get(kind, kind) for kind in summary["kinds"] if kind != "label"])
    answers = comparisons if facts.answers is None else f"{count(facts.answers)} {kinds} answers ({comparisons})"
    who = f" by {amount(len(people.names), 'participant')}" if people is not None else ""
    text = f"We analyzed {answers}{who} about {amount(summary['objects'], 'object')}."
    if facts.copies_counted:
        copies = amount(facts.copies_counted, "copy of an answer was", "copies of answers were")
        text += f" {copies} counted as answers."
    text += f" {excluded_rows(facts)}" if summary["filtered"] else ""
    if facts.sets is not None and not facts.connected:
        text += f" The objects formed {int(facts.sets.max()) + 1} sets that {facts.apart}; "
        text += "distances are interpreted only within a set."
    if facts.copied:
        copies = amount(len(facts.copied), "participant")
        text += f" All responses of {copies} were the same as those of another one, and were not excluded."
    if names := facts.published.excluded:
        text += f" {amount(len(names), 'further participant was', 'further participants were')} excluded."
    elif people is not None and people.flagged:
        flagged = amount(people.flagged, "participant", "participants")
        text += f" Checks of response quality flagged {flagged}, whose answers were not excluded."
    return text


def _embedding(report: Mapping[str, Any], connected: bool) -> Iterator[str]:
    d, kernel = figure(report, "d"), EMBEDDINGS.get(str(report.get("kernel")))
    if d is None or kernel is None:
        return
    yield (
        f"A {kernel} in {amount(int(d), 'dimension')}, with a lapse rate for random answers, was fitted by penalized "
        "maximum likelihood."
    )
    if draws := figure(report, "draws"):
        yield f"Answers were predicted by the mean over {int(draws)} draws from a posterior (Hamiltonian Monte Carlo)."
    least = figure(report, "dimensions_at_least")
    if not connected:
        yield "The number of dimensions has no meaning for sets that were not compared with each other."
    elif least is not None and least < d:
        yield _fewer_dimensions(report, int(least), int(d))
    if report.get("tried"):
        yield "Its settings were selected by the log loss on held-out answers."
    elif str(report.get("chosen_by")).startswith("too few"):
        yield "Its settings were the defaults, because there were too few answers for a validation set."


def _fewer_dimensions(report: Mapping[str, Any], least: int, d: int) -> str:
    """How many dimensions a test confirms, where the map has more."""
    if least > 1:
        return f"A test of the accuracy confirmed at least {least} dimensions; the map has {d} for prediction."
    tested = report.get("dimensions_tested")
    p = tested.get("p_values") if isinstance(tested, Mapping) else None
    figures = f" (p = {p_value(p[0])})" if p and isinstance(p[0], int | float) else ""
    return (
        f"A second dimension was not confirmed by a test of the accuracy{figures}, which does not show that there is "
        f"none; the map has {d} dimensions for prediction."
    )


def _accuracy(facts: Facts, report: Mapping[str, Any]) -> Iterator[str]:
    share, error, best = figure(report, "accuracy"), figure(report, "standard_error"), facts.best
    if share is None or best is None:
        return
    if facts.beats_chance is None or error is None:
        why = "all answers are to one question" if facts.n_questions == 1 else "too few comparisons were held out"
        yield f"Its prediction accuracy is unknown: {why}."
        return
    n = figure(report, "held_out_comparisons")
    if report.get("held_out") == "judgements":
        together = "with all its comparisons"
        if are_held_out_by_screen(facts.published.snapshot):
            same = "three objects" if are_of_three(facts.published.snapshot.counters) else "object"
            together = f"with all comparisons of the same participant about the same {same}"
        yield f"Its accuracy was estimated by cross-validation on other answers, each held out {together}."
    text = f"It predicted {_percent(share)} of {f'{count(n)} ' if n else ''}held-out comparisons correctly, "
    text += _interval(share, error)
    if best["model"] != "embedding":  # the page reports a model that predicts significantly better
        text += (
            f"; the model that predicted best, {NAMES.get(best['model'], best['model'].replace('_', ' '))}, predicted "
        )
        text += f"{_percent(best['accuracy'])}, {_interval(best['accuracy'], best['standard_error'])}"
    text += ", chance level 50%"
    if facts.beats_chance is False:
        yield f"{text}; this is not significantly better than chance."
        return
    most, others = (figure(facts.ceiling, name) for name in ("at_most", "others"))
    text += f", noise ceiling at most {_percent(most)}" if most is not None else ""
    text += f", inter-rater agreement {_percent(others)}" if others is not None else ""
    yield f"{text}."


def _interval(share: float, error: float) -> str:
    low, high = bounds(share, error)
    return f"95% CI [{100 * low:.1f}, {100 * high:.1f}]"


def _differences(report: Mapping[str, Any]) -> Iterator[str]:
    differences = report.get("individual_differences")
    if isinstance(differences, Mapping) and (p := figure(differences, "p_value")) is not None:
        tests = difference_tests(differences)
        were = "were" if tests else "were not"
        yield f"Individual differences {were} significant ({'; '.join(tests) or f'score test, {apa_p_value(p)}'})."
        n, p_groups = figure(differences, "groups", "count"), figure(differences, "groups", "p_value")
        if n is not None and p_groups is not None and (figure(differences, "participants") or 0) >= MIN_PARTICIPANTS:
            groups = f"{count(n)} groups" if n > 1 else "No separate groups"
            yield f"{groups} of participants were found ({apa_p_value(p_groups)})."


def _groups(answer: Mapping[str, Any]) -> Iterator[str]:
    grade, clearer, k = answer.get("grade"), figure(answer, "clearer_than"), figure(answer, "k")
    if grade == CANNOT_TELL or clearer is None or k is None:
        return
    p = 1 - clearer
    p_text = "< .001" if p < 0.001 else f"= {p_value(p)}"
    d = int(figure(answer, "dimensions") or 0)
    where = f" in {d} dimension{'s' if d > 1 else ''}" if d else ""
    text = (
        f"Groups were sought by Ward's method (Ward, 1963) and k-means{where}, and their clearness was compared with "
        "that of continua of equal size, dimension, and precision: "
    )
    if grade == NOT_SEPARABLE:
        yield f"{text}no clusters were detected (p {p_text})."
        return
    yield f"{text}{by_themselves(answer, count)} were found, {grade} (p {p_text})."
    ari, low, high = (figure(answer, "replication", name) for name in ("ari", "low", "high"))
    if ari is not None and low is not None and high is not None:
        yield (
            "The adjusted Rand index (Hubert & Arabie, 1985) with the partition of a replication is expected to be "
            + ("> .99." if is_certain(low) else f"{_apa(ari)}, 95% CI [{_apa(low)}, {_apa(high)}].")
        )
    for each in answer.get("subgroups") or ():
        if isinstance(each, Mapping) and are_separated(each):
            of, parts = (int(figure(each, name) or 0) for name in ("group", "k"))
            yield f"Group {of} split again into {parts} groups, {each['grade']}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _apa(value: float) -> str:
    """A figure that cannot exceed 1, without its leading zero."""
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.2f}"
