"""What sections of the report say besides findings, their other tables, and what their drawings show, by definitions of
their own, of a state that has a figure wherever a report can have one.

`SAYS` has for each section the numbers of its sentences and notes in their order, without those of findings; `NAMED`
the names in them; `SHOWN` the columns of tables; `DRAWN` the marks of drawings. What has no entry fails.
"""

import re
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.metrics import adjusted_rand_score

from stream_engine import asking
from stream_engine.asking.knowledge import knowledge_of
from stream_engine.report import SECTIONS, maker
from stream_engine.report.drawings import Bars, Curve, Drawing, Ellipses, Points, Rules, Segments
from stream_engine.report.material import Material, material
from stream_engine.report.sections import learning, methods, object_map
from stream_engine.report.tiles import tiles
from tests.conftest import ROOT
from tests.support.told import TOLD, World, as_printed, numbers, same, studied

DRIFT = {"drift": {"accuracy": {"alarms": 2}, "log_loss": {"alarms": 0}}}


@pytest.fixture(scope="module")
def of() -> Material:
    return material(studied(), DRIFT, workers=True)


@pytest.fixture(scope="module")
def sections(of):
    return {name: maker(name)(of) for name in SECTIONS}


def report(w: World, kind: str, *path: str):
    found = w.fits[kind].report
    for name in path:
        found = found[name]
    return found


def percents(*shares: float) -> list[float]:
    return [100 * share for share in shares]


def interval(accuracy: float, error: float) -> list[float]:
    return percents(accuracy - 1.96 * error, accuracy + 1.96 * error)


def as_is(w: World) -> dict:
    """The set that predicts best without learning."""
    return max((row for row in report(w, "alignment", "rows") if "behind" in row), key=lambda row: row["accuracy"])


def best_row(w: World) -> dict:
    return max(report(w, "alignment", "rows"), key=lambda row: row["accuracy"])


def unheard(w: World) -> dict:
    """The row that predicts best of objects that were not learned from."""
    rows = [row for row in report(w, "alignment", "rows") if "by_object" in row]
    return max(rows, key=lambda row: row["by_object"]["accuracy"])


def of_group(w: World, group: int) -> list[float]:
    """The number of a group, of its participants, and how well each set predicts their answers together."""
    fit, embedding = w.fits["alignment"], w.fits["embedding"]
    mine = [at for at in range(4) if embedding.worker_group[at] == group]
    answers = fit.participant_answers[mine]
    shares = [np.average(fit.participant_accuracy[mine, at], weights=answers) for at in range(2)]
    return [group + 1, len(mine), *percents(*shares)]


def alignment(w: World) -> list[float]:
    told, best, other = report(w, "alignment"), as_is(w), unheard(w)["by_object"]
    ends = np.percentile(w.fits["alignment"].participant_accuracy, [10, 90], axis=0)
    top, ceiling, own = best_row(w)["accuracy"], told["ceiling"]["at_most"], report(w, "embedding", "accuracy")
    return [
        *(len(w.names) - told["with_features"], len(w.names), told["without_features"]),
        *(100 * best["accuracy"], 95, *percents(best["low"], best["high"]), 50),
        *(100 * other["accuracy"], 95, *percents(other["low"], other["high"])),
        *percents(ceiling, own, (own - top) / (ceiling - top)),
        *(13, 17, 4, 80, *percents(*ends.T.ravel())),
        *of_group(w, 0),
        *of_group(w, 1),
    ]


def dimensions(w: World) -> list[float]:
    said = [2, 1, 0.9]
    for kind, chance in (("odd_one_out", 100 / 3), ("triplet", 50)):
        right, error = (report(w, "dimensions", f"{kind}_{name}") for name in ("accuracy", "standard_error"))
        said += [100 * right, 95, 196 * error, chance]
    return said


def groups_and_alone(w: World) -> tuple[int, int]:
    """How many groups have several objects, and how many have one."""
    sizes = Counter(label for label in w.fits["clusters"].labels.tolist() if label >= 0).values()
    return sum(size > 1 for size in sizes), sum(size == 1 for size in sizes)


def clusters(w: World) -> list[float]:
    mine, others = w.fits["clusters"].labels, w.fits["sdp_clustering"].labels
    told, both = report(w, "clusters"), mine >= 0
    ari = adjusted_rand_score(mine[both], others[both])
    grouped = [int(both.sum()), *groups_and_alone(w), 1 - told["clearer_than"], len(w.names), 2, 99, 95]
    return [*grouped, 2020, len({*others.tolist()}), report(w, "sdp_clustering", "gap"), ari, 1]


def paper(w: World) -> list[float]:
    """The text for a paper, as far as the versions of what was used."""
    fit, told, groups = report(w, "embedding"), report(w, "alignment", "ceiling"), report(w, "clusters")
    answers, differ = sum(event.get("type") != "label" for event in w.events), fit["individual_differences"]
    return [
        *(answers, len(w.said), len(w.people), len(w.names), 9, 1, 2012, fit["d"]),
        *(100 * fit["accuracy"], fit["held_out_comparisons"], 95, *interval(fit["accuracy"], fit["standard_error"])),
        *(50, *percents(told["at_most"], told["others"])),
        *(
            len(differ["who"]),
            min(each["p_value"] for each in differ["who"]),
            differ["p_value"],
            differ["groups"]["count"],
            differ["groups"]["p_value"],
            1963,
            groups["dimensions"],
        ),
        *(*groups_and_alone(w), 1 - groups["clearer_than"], 1985, groups["replication"]["ari"], 95),
        *(groups["replication"]["low"], groups["replication"]["high"]),
    ]


def counted(w: World) -> np.ndarray:
    return np.array([sum(name in rows for rows, _ in w.said) for name in w.names])


def calibrated(table: dict) -> list[float]:
    """The most certain bin of at least fifty comparisons: predicted, observed, its 95 % interval (Wilson), how many."""
    stated, came, n = next(row for row in [*zip(*(table[head] for head in CALIBRATION))][::-1] if row[2] >= 50)
    ends = np.sort(np.roots([1 + 1.96**2 / n, -2 * came - 1.96**2 / n, came**2]))
    return [100 * stated, 100 * came, 95, *(100 * ends), n]


CALIBRATION = ("predicted", "observed", "comparisons")
SAYS = {
    "map": lambda w, tables: [95],
    "quality": lambda w, tables: [2],
    "models": lambda w, tables: [5, 0.693],
    "agreement": lambda w, tables: [],
    "differences": lambda w, tables: [],
    "alignment": lambda w, tables: alignment(w),
    "dimensions": lambda w, tables: dimensions(w),
    "clusters": lambda w, tables: clusters(w),
    "dendrogram": lambda w, tables: [w.fits["hierarchy"].linkage[at, 2] for at in (0, -1)],
    "objects": lambda w, tables: [int(np.median(counted(w))), counted(w).min()],
    "workers": lambda w, tables: [4, 1],
    "contradictions": lambda w, tables: [],
    "read": lambda w, tables: [],
    "learning": lambda w, tables: (
        [
            each
            for at in (-2, -1)
            for each in (
                tables["learning_curve"]["comparisons fitted"][at],
                100 * tables["learning_curve"]["accuracy"][at],
            )
        ]
        + [100 * tables["learning_curve"]["standard error"][-1]]
        + calibrated(tables["calibration"])
        + [2]
    ),
    "next": lambda w, tables: [len(w.names), 10, 100],
    "methods": lambda w, tables: [*paper(w), 2],
}
NAMED = {  # section -> texts that stand in it
    "alignment": lambda w: [
        f"{as_is(w)['set']} ({as_is(w)['transform']}) predicts the answers best",
        f"{unheard(w)['set']} ({unheard(w)['transform']}) is best",
        f"between {best_row(w)['set']} ({best_row(w)['transform']}) and the ceiling",
        "Constant dimensions, left out: y",
        "suffix: y.",
    ],
    "dendrogram": lambda w: [
        " and ".join(w.names[w.fits["hierarchy"].leaves[int(each)]] for each in w.fits["hierarchy"].linkage[0, :2])
        + " are the closest in the tree"
    ],
    "objects": lambda w: [f"{w.names[int(counted(w).argmin())]} has the fewest"],
    "workers": lambda w: ["flagged: w0.", "--exclude participant=w0"],
    "methods": lambda w: ["differences were significant", "by itself were found, separated"],
    "learning": lambda w: ["run: accuracy 2 times."],
}


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_says_each_number_as_it_is_defined(name, sections, of, study):
    section = sections[name]
    abouts = [table.about for table in section.tables if table.name in ("models", "SPUR")]
    text = " ".join([section.says, *section.notes, *abouts])
    for finding in (each for topic in of.findings.values() for each in topic):
        text = text.replace(finding.text, "")
    text = re.sub(r"AddS-\d|Analyses used .*?\)\.|\(digest \w+\)|300 ms", "", text)
    tables = {table.name: table.columns for table in section.tables}
    as_printed(numbers(text), SAYS[name](study, tables), text)
    for part in NAMED.get(name, lambda w: [])(study):
        assert part in text, (part, text)


# ---- tables


def weights(w: World) -> tuple[np.ndarray, np.ndarray]:
    """Of who has weights: how much each axis counts for them of the differences between objects, and who is in which
    group."""
    fit = w.fits["embedding"]
    have = fit.worker_group >= 0
    size = fit.worker_weights[have] * fit.X.var(axis=0)
    return size / size.sum(axis=1)[:, None], fit.worker_group[have]


def people(w: World) -> list[tuple[str, int, np.ndarray]]:
    fit = w.fits["embedding"]
    text = bytes(fit.utf8).decode()
    names = [text[a:b] for a, b in pairwise(fit.offsets)]
    return [(n, g, own) for n, g, own in zip(names, fit.worker_group, fit.worker_weights) if g >= 0]


def ends(w: World, axis: int, other: bool) -> str:
    order = np.argsort(w.fits["embedding"].X[:, axis])
    one, two, three = (w.names[i] for i in (order[::-1] if other else order)[:3])
    return f"{one}, {two} and {three}"


def who(w: World, row: int) -> dict:
    return sorted(report(w, "embedding", "individual_differences", "who"), key=lambda each: -each["gain"])[row]


def failing(w: World, row: int) -> int:
    """The object in a row of those that were compared, the one with the least accuracy first."""
    fit = w.fits["alignment"]
    there = [i for i in range(len(w.names)) if fit.object_answers[i]]
    return sorted(there, key=lambda i: fit.object_accuracy[i])[row]


def of_export(table: str, about=lambda w, row: row) -> dict:
    """Columns that an export has, too, by what a row is about."""
    return {
        head.replace("_", " "): lambda w, row, told=told: told(w, about(w, row)) for head, told in TOLD[table].items()
    }


SHOWN = {
    "who-differs": {
        "participant": lambda w, row: who(w, row)["participant"],
        "gain": lambda w, row: who(w, row)["gain"],
        "from": lambda w, row: who(w, row)["gain"] - 1.96 * who(w, row)["standard_error"],
        "to": lambda w, row: who(w, row)["gain"] + 1.96 * who(w, row)["standard_error"],
        "p": lambda w, row: who(w, row)["p_value"],
        "objects": lambda w, row: " and ".join(", ".join(who(w, row)["objects"]).rsplit(", ", 1)),
    },
    "axes": {
        "axis": lambda w, row: row + 1,
        "share, group": lambda w, row: (var := w.fits["embedding"].X.var(axis=0))[row] / var.sum(),
        "from": lambda w, row: np.percentile(weights(w)[0][:, row], 10),
        "to": lambda w, row: np.percentile(weights(w)[0][:, row], 90),
        "one end": lambda w, row: ends(w, row, False),
        "other end": lambda w, row: ends(w, row, True),
    },
    "participant-groups": {
        "group": lambda w, row: row + 1,
        "participants": lambda w, row: sum(group == row for _, group, _ in people(w)),
        "mean slope": lambda w, row: np.mean([own.mean() for _, group, own in people(w) if group == row]),
        **{
            f"share of axis {at + 1}": lambda w, row, at=at: weights(w)[0][weights(w)[1] == row, at].mean()
            for at in range(2)
        },
    },
    "participant-weights": {
        "participant": lambda w, row: people(w)[row][0],
        "group": lambda w, row: people(w)[row][1] + 1,
        "slope": lambda w, row: people(w)[row][2].mean(),
        **{f"axis {at + 1}": lambda w, row, at=at: (own := people(w)[row][2])[at] / own.mean() for at in range(2)},
    },
    "alignment": of_export("alignment"),
    "alignment_objects": {
        "object": lambda w, row: w.names[failing(w, row)],
        **of_export("alignment_objects", lambda w, row: w.names[failing(w, row)]),
    },
    "alignment_questions": of_export("alignment_questions"),
    "alignment_participants": {
        "participant": lambda w, row: w.people[row],
        "answers": lambda w, row: int(w.fits["alignment"].participant_answers[row]),
        **{
            name: lambda w, row, at=at: w.fits["alignment"].participant_accuracy[row, at]
            for at, name in enumerate("xy")
        },
    },
    "SPUR": {
        "clusters": lambda w, row: (2, 3, 4)[row],
        "SPUR": lambda w, row: report(w, "sdp_clustering", "criterion", ("2", "3", "4")[row]),
        "converged": lambda w, row: ("yes", "yes", "no")[row],
    },
    "dimension-quality": {
        "dimension": lambda w, row: row + 1,
        "share of weights": lambda w, row: (x := w.fits["dimensions"].X.astype(float))[:, row].sum() / x.sum(),
        "reproducibility": lambda w, row: w.fits["dimensions"].reproducibility[row],
        "importance": lambda w, row: 1000 * w.fits["dimensions"].importance[row],
        "standard error": lambda w, row: 1000 * w.fits["dimensions"].importance_error[row],
        "objects": lambda w, row: " and ".join(", ".join(strongest(w, row)).rsplit(", ", 1)),
    },
    "dimension-objects": {
        "dimension": lambda w, row: row // 8 + 1,
        "object": lambda w, row: strongest(w, row // 8)[row % 8],
        **{
            head: lambda w, row, name=name: getattr(w.fits["dimensions"], name)[
                w.row[strongest(w, row // 8)[row % 8]], row // 8
            ]
            for head, name in (("weight", "X"), ("standard error", "standard_error"))
        },
    },
    "questions": {
        **{
            head: lambda w, row, at=at: w.names[asked(w).rows[row, at]]
            for at, head in enumerate(("anchor", "left", "right"))
        },
        "chosen by": lambda w, row: asked(w).sampler[row],
    },
    "methods": {
        "refit": lambda w, row: [kind for kind in studied().artifacts if kind in methods.CITED][row],
        "cite": lambda w, row: methods.CITED[SHOWN["methods"]["refit"](w, row)][1],
        "method": lambda w, row: (
            methods.CITED[kind := SHOWN["methods"]["refit"](w, row)][0]
            + (", number of clusters given" if report(w, kind).get("k_by") == "given" else "")
        ),
        "snapshot": lambda w, row: 2,
        "seed": lambda w, row: 0,
    },
}
LEARNED = {"learning_curve", "calibration"}  # below
IN_WORDS = ROOT / "tests/laws/test_told_in_words.py"


def strongest(w: World, dimension: int) -> list[str]:
    return [w.names[i] for i in np.argsort(-w.fits["dimensions"].X[:, dimension])]


def asked(w: World):
    return asking.questions(knowledge_of(studied().snapshot, None), 10)


@pytest.mark.parametrize("name", SECTIONS)
def test_every_other_table_is_as_it_is_defined(name, sections, study):
    for table in sections[name].tables:
        if table.name not in SHOWN:
            assert table.name in LEARNED or f'"{table.name}"' in IN_WORDS.read_text(), table.name
            continue
        assert {*table.columns} == {*SHOWN[table.name]}
        for head, values in table.columns.items():
            for row, found in enumerate(values):
                wanted = SHOWN[table.name][head](study, row)
                assert same(found, wanted), (table.name, head, row, found, wanted)


def test_every_table_has_all_of_its_rows(sections, study):
    rows = {table.name: len(next(iter(table.columns.values()))) for each in sections.values() for table in each.tables}
    wanted = {"who-differs": 2, "axes": 2, "participant-groups": 2, "participant-weights": 6, "alignment": 9, "SPUR": 3}
    wanted |= {"alignment_objects": 7, "alignment_questions": 3, "alignment_participants": 4, "dimension-objects": 16}
    assert wanted.items() <= rows.items()


def test_shares_of_the_answers_are_fitted(sections):
    """An eighth, a quarter, half and all of what nine of ten parts hold."""
    fitted = next(t.columns for t in sections["learning"].tables if t.name == "learning_curve")["comparisons fitted"]
    assert fitted == pytest.approx([share * 0.9 * 311 for share in (1 / 8, 1 / 4, 1 / 2, 1)], rel=0.1)


# ---- drawings


def numbers_of(drawing: Drawing) -> list[str]:
    return numbers(" ".join([drawing.title, drawing.about, drawing.x.label, drawing.y.label]))


def one(drawing: Drawing, kind: type):
    (mark,) = (mark for mark in drawing.marks if isinstance(mark, kind))
    return mark


def drawn_map(w: World, drawing: Drawing, tables: dict) -> list[float]:
    x, points = w.fits["embedding"].X, one(drawing, Points)
    assert points.names == tuple(w.names)
    assert points.ids.tolist() == [*range(len(w.names))]
    assert np.stack([points.x, points.y]) == pytest.approx(x.T)
    group = [w.cluster("clusters", label) - 1 if label >= 0 else -1 for label in w.fits["clusters"].labels.tolist()]
    assert points.group.tolist() == group
    found = one(drawing, Ellipses)
    for at, name in enumerate(w.names):
        a, b, angle = w.ellipse(name)
        assert (found.x[at], found.y[at], found.a[at], found.b[at]) == pytest.approx((*x[at], a, b), rel=1e-4)
        assert np.tan(found.angle[at]) == pytest.approx(np.tan(angle), rel=1e-3)
    assert found.group.tolist() == group
    called = {each: f"group {each + 1}" for each in {*group}} | {-1: "no group"}
    single = [each for each in called if each >= 0 and group.count(each) == 1]
    called |= {each: f"{w.names[group.index(each)]}, by itself" for each in single}
    assert drawing.groups == tuple((each, f"{called[each]} ({group.count(each)})") for each in sorted({*group}))
    share = x.var(axis=0) / x.var(axis=0).sum()
    return [len(w.names), 1, 100 * share[0], 2, 100 * share[1]]


STEPS = ("as it is", "weights", "linear map", "weights on new objects", "linear map on new objects")


def drawn_sets(w: World, drawing: Drawing, tables: dict) -> list[float]:
    """Of each set what is learned step by step, beside each other in that order; hollow where objects are new."""
    wanted = []
    for name in "xy":
        rows = [row for row in report(w, "alignment", "rows") if row["set"] == name]
        best = max((row for row in rows if "behind" in row), key=lambda row: row["accuracy"])
        learned = [next((row for row in rows if row["transform"] == each), None) for each in ("weights", "linear map")]
        steps = [best, *learned, *(row and row["by_object"] for row in learned)]
        wanted += [(f"{name}, {step}", row, "new objects" in step) for step, row in zip(STEPS, steps) if row]
    curves = [mark for mark in drawing.marks if isinstance(mark, Curve)]
    assert [curve.name for curve in curves] == [name for name, _, _ in wanted]
    for curve, (_, row, hollow) in zip(curves, wanted):
        assert curve.y[0] == pytest.approx(row["accuracy"])
        assert curve.error[:, 0] == pytest.approx([row["accuracy"] - row["low"], row["high"] - row["accuracy"]])
        assert curve.hollow.tolist() == [hollow]
    places = [curve.x[0] for curve in curves]
    assert places == sorted(places) and all(abs(x - round(x)) < 0.5 for x in places)
    assert [round(x) for x in places] == ["xy".index(curve.name[0]) for curve in curves]
    assert drawing.x.ticks == ((0.0, "x"), (1.0, "y"))
    ceiling, own = report(w, "alignment", "ceiling", "at_most"), report(w, "embedding", "accuracy")
    rules = one(drawing, Rules)
    assert dict(zip(rules.names, rules.y)) == {"chance": 0.5, "noise ceiling": ceiling, "map": own}
    return [row["accuracy"] for _, row, _ in wanted]


def drawn_failing(w: World, drawing: Drawing, tables: dict) -> list[float]:
    points, fit = one(drawing, Points), w.fits["alignment"]
    known = [i for i in range(len(w.names)) if fit.object_answers[i] and fit.object_agreement[i] >= 0]
    assert sorted(points.names) == sorted(w.names[i] for i in known)
    for x, y, number, name in zip(points.x, points.y, points.ids, points.names):
        assert w.row[name] == number
        assert (x, y) == pytest.approx((100 * fit.object_accuracy[number], 100 * fit.object_agreement[number]))
    gap = sorted(known, key=lambda i: fit.object_accuracy[i] - fit.object_agreement[i])[:3]
    assert f"upper left: {', '.join(w.names[i] for i in gap)}." in drawing.about
    assert f"that {best_row(w)['set']} ({best_row(w)['transform']}) predicts" in drawing.x.label
    return []


def drawn_tree(w: World, drawing: Drawing, tables: dict) -> list[float]:
    fit, segments = w.fits["hierarchy"], one(drawing, Segments)
    heights = fit.linkage[:, 2]
    across = segments.ends[(segments.ends[:, 0] == segments.ends[:, 2]) & (segments.ends[:, 1] != segments.ends[:, 3])]
    assert sorted(across[:, 0]) == pytest.approx(sorted(heights))
    assert sorted(text for _, text in drawing.y.ticks) == sorted(w.names)
    place = {text: at for at, text in drawing.y.ticks}
    first, second = (w.names[fit.leaves[int(each)]] for each in fit.linkage[0, :2])
    assert abs(place[first] - place[second]) == 10.0  # what joins first is beside each other
    return [len(w.names)]


def drawn_clearness(w: World, drawing: Drawing, tables: dict) -> list[float]:
    bars, fit = one(drawing, Bars), w.fits["clusters"]
    assert bars.x.tolist() == fit.tested_k.tolist()
    assert bars.y.tolist() == fit.tested_clearness.tolist()
    assert bars.marked.tolist() == [k == 3 for k in fit.tested_k.tolist()]
    assert drawing.x.ticks == tuple((float(k), str(k)) for k in fit.tested_k.tolist())
    return [2, 4, 3]


def drawn_lapses(w: World, drawing: Drawing, tables: dict) -> list[float]:
    bars, rates = one(drawing, Bars), sorted(w.fits["embedding"].worker_lapse[:4].tolist(), reverse=True)
    assert bars.y.tolist() == rates
    assert bars.marked.tolist() == [rate > 0.5 for rate in rates]
    return [rates[-1], rates[0]]


def drawn_curve(w: World, drawing: Drawing, tables: dict) -> list[float]:
    curve, table = one(drawing, Curve), tables["learning_curve"]
    x, y, error = (np.array(table[head]) for head in ("comparisons fitted", "accuracy", "standard error"))
    assert curve.x.tolist() == x.tolist() and curve.y.tolist() == y.tolist()
    assert curve.error == pytest.approx(np.stack([1.96 * error] * 2))
    rules, told = one(drawing, Rules), report(w, "embedding", "ceiling")
    wanted = {"inter-rater agreement": told["others"], "noise ceiling": told["at_most"]}
    assert dict(zip(rules.names, rules.y)) == wanted
    return [y[0], x[0], y[-1], x[-1]]


def drawn_calibration(w: World, drawing: Drawing, tables: dict) -> list[float]:
    line, curve = drawing.marks
    assert line.x.tolist() == line.y.tolist() == [0.5, 1.0]
    stated, came, n = (np.array(tables["calibration"][head]) for head in ("predicted", "observed", "comparisons"))
    assert curve.x.tolist() == stated.tolist() and curve.y.tolist() == came.tolist()
    z = 1.96
    middle, half = came + z * z / (2 * n), z * np.sqrt(came * (1 - came) / n + z * z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    assert curve.error == pytest.approx(np.stack([came - low, high - came]), abs=1e-6)
    assert curve.hollow.tolist() == (n < 20).tolist()
    return [20]


DRAWN = {
    "map": drawn_map,
    "alignment": drawn_sets,
    "alignment_objects": drawn_failing,
    "dendrogram": drawn_tree,
    "clearness": drawn_clearness,
    "workers": drawn_lapses,
    "learning_curve": drawn_curve,
    "calibration": drawn_calibration,
}


@pytest.mark.parametrize("name", SECTIONS)
def test_every_drawing_shows_what_it_is_defined_to(name, sections, study):
    tables = {table.name: table.columns for table in sections[name].tables}
    for drawing in sections[name].drawings:
        wanted = DRAWN[drawing.name](study, drawing, tables)
        as_printed(numbers_of(drawing), wanted, drawing.about)


def test_every_kind_of_drawing_is_there(sections):
    assert {drawing.name for each in sections.values() for drawing in each.drawings} == {*DRAWN}


# ---- at the borders


def test_only_bins_of_so_many_answers_are_told():
    """Five are enough to be told, and twenty to be drawn full."""
    sizes = [4, 5, 19, 20]
    sure = np.repeat([0.53, 0.63, 0.73, 0.83], sizes)
    stated, came, n = learning._bins(sure, (np.arange(sum(sizes)) % 2).astype(float))
    assert (stated, n.tolist()) == (pytest.approx([0.63, 0.73, 0.83]), sizes[1:])
    (drawing,) = learning._calibration(stated, came, n)
    assert drawing.marks[1].hollow.tolist() == [True, True, False]


SIGNIFICANT = {
    0.0004: "were significant (score test, p < .001)",
    0.03: "were significant (score test, p = .03)",
    0.07: "were not significant (score test, p = .07)",
    0.995: "were not significant (score test, p > .99)",
}


@pytest.mark.parametrize("p, said", SIGNIFICANT.items())
def test_differences_are_significant_at_the_five_per_cent_level(p, said):
    (text,) = methods._differences({"individual_differences": {"p_value": p}})
    assert said in text


def on_a_line(of: Material, sets: np.ndarray | None):
    """Its map by the first axis alone, of objects in some sets that were never compared."""
    x = of.places.points[:, :1]
    places = of.places._replace(points=x, covariance=of.places.covariance[:, :1, :1])
    facts = SimpleNamespace(
        connected=sets is None,
        sets=sets,
        cluster_answer=of.facts.cluster_answer,
        beats_chance=True,
        too_few=np.zeros(len(x), bool),
    )
    return of._replace(facts=facts), places


def test_a_scale_has_the_intervals_of_its_objects_in_order(of, study):
    ids = np.arange(len(study.names))
    (drawing,) = object_map.frames(*on_a_line(of, None), ids)
    x = study.fits["embedding"].X[:, 0]
    order = np.argsort(x)
    points, lines = one(drawing, Points), one(drawing, Segments)
    assert points.names == tuple(study.names[i] for i in order)
    assert points.ids.tolist() == order.tolist()
    assert points.x == pytest.approx(x[order]) and points.y.tolist() == [*range(len(ids))]
    half = 1.96 * np.sqrt(study.fits["embedding"].covariance[order, 0, 0].astype(float))
    assert lines.ends == pytest.approx(np.stack([x[order] - half, points.y, x[order] + half, points.y], axis=1))
    as_printed(numbers_of(drawing), [len(ids), 95], drawing.about)


def test_sets_that_were_never_compared_have_a_drawing_each(of, study):
    """The largest first, each with its own number of all sets."""
    sets = np.array([0, 1, 0, 0, 1, 0, 2, 0])
    drawings = [*object_map.frames(*on_a_line(of, sets), np.arange(8))]
    assert [each.name for each in drawings] == ["map", "map_2", "map_3"]
    assert [numbers(each.title) for each in drawings] == [["1", "3"], ["2", "3"], ["3", "3"]]
    rank = rankdata(study.fits["embedding"].X[:, 0])
    for number, drawing in enumerate(drawings):
        mine = sorted(np.flatnonzero(sets == number), key=lambda i: rank[i])
        assert one(drawing, Points).names == tuple(study.names[i] for i in mine)


def test_flagged_participants_stand_first(of, monkeypatch):
    """Each row with its own figures, whoever comes first by name."""
    found = of.facts.participants
    reasons = ("", "random", "", "fast")
    facts = SimpleNamespace(participants=found._replace(reasons=reasons), beats_chance=True, commands=of.facts.commands)
    section = maker("workers")(of._replace(facts=facts))
    columns = section.tables[0].columns
    assert columns["participant"] == ["w1", "w3", "w0", "w2"]
    assert columns["responses"] == [found.responses[found.names.index(who)] for who in columns["participant"]]
    assert "2 are flagged: w1 and w3." in section.says
    assert section.notes[0].endswith("--exclude participant=w1 --exclude participant=w3")


def test_the_first_figure_is_the_number_of_answers(of, study):
    """Of which some are several comparisons, and labels are none."""
    first = next(tiles(of))
    answers = sum(event.get("type") != "label" for event in study.events)
    assert numbers(f"{first.value} {first.note}") == [str(n) for n in (answers, len(study.said), len(study.names))]
    assert answers != len(study.said)


def test_the_table_of_models_has_the_figures_of_a_fit_below_their_heads(sections, study):
    (table,) = sections["models"].tables
    row = list(table.columns["model"]).index("embedding")
    fit, ceiling = report(study, "embedding"), report(study, "embedding", "ceiling")
    assert {head: values[row] for head, values in table.columns.items()} == {
        "model": "embedding",
        "accuracy": fit["accuracy"],
        "log loss": fit["log_loss"],
        "calibration error": fit["calibration_error"],
        "inter-rater agreement": ceiling["others"],
        "noise ceiling, at most": ceiling["at_most"],
        "CPU seconds": 12.5,
    }


def test_methods_have_the_snapshot_and_the_seed_that_each_was_fitted_to(of):
    held = of.published
    made = {
        kind: each._replace(sequence=10 + at, seed=70 - at) for at, (kind, each) in enumerate(held.artifacts.items())
    }
    tables = {
        table.name: table.columns
        for table in methods.section(of._replace(published=held._replace(artifacts=made))).tables
    }
    found = {kind: (snapshot, seed) for kind, snapshot, seed in zip(*(tables["methods"][n] for n in OF_METHODS))}
    assert found == {kind: (each.sequence, each.seed) for kind, each in made.items() if kind in methods.CITED}


OF_METHODS = ("refit", "snapshot", "seed")
