"""What findings and the report's tables say is told once more from the raw events, by definitions that share nothing
with the product, of a small and of a larger study.

`SAID` has for each finding its figures and the numbers of its sentence in their order; `SHOWN` for each table of the
report its columns. A finding, a figure or a column without a definition, and without a word in `ELSEWHERE`, fails.
"""

import ast
import json
import re
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations

import msgspec
import numpy as np
import pytest
from scipy.stats import binom, norm

from stream_engine.refits import NEEDED_ARTIFACT, refit_module
from stream_engine.report import SECTIONS, maker
from stream_engine.report.material import material
from stream_engine.report.page import data
from stream_engine.state.published import Published
from tests.conftest import ROOT
from tests.support.crafted_worlds import QUICK, state
from tests.support.told import (
    NUMBER,
    TOLD,
    World,
    agreeing,
    as_printed,
    at_most,
    events,
    guard,
    numbers,
    same,
)
from tests.support.told_documents import REPORTED, alike, check

FITS = ("reliability", "embedding", "clusters", "sdp_clustering", "dimensions", "hierarchy")
WRONG = [{"anchor": "o1", "near": "o1", "far": "o3"}] * 200 + [{"anchor": "o1", "near": "o2"}] * 30


def larger() -> list[dict]:
    """Of fourteen objects by twelve people, one of whom answers the opposite in triplets; 200 more events compare an
    object with itself, and ten answers are recorded twice."""
    made = events([f"o{i}" for i in range(14)], 2000, 12, 0.02)
    for number, event in enumerate(made):
        if event.get("worker") == "w3" and "type" not in event:
            made[number] = event | {"near": event["far"], "far": event["near"]}
    made[0] |= {"colour": "red", "weather": "fair"}
    made[1] |= {"mood": 3}
    return made + [event for event in made if event.get("type") == "pick" and "time" in event][:10]


@pytest.fixture(scope="module", params=["small", "larger"])
def world(request) -> World:
    made, wrong = (events(), []) if request.param == "small" else (larger(), WRONG)
    snapshot, fits = state(data="\n".join(map(json.dumps, made + wrong)).encode()), {}
    for kind in FITS:
        module = refit_module(kind)
        more = {"needed": fits[NEEDED_ARTIFACT[kind]]} if kind in NEEDED_ARTIFACT else {}
        fits[kind] = module.refit(snapshot, msgspec.convert(QUICK.get(kind, {}), module.Params), 0, **more)
    found = World(Published(snapshot, fits), made)
    found.material, found.wrong = material(Published(snapshot, fits), workers=True), len(wrong)
    return found


def appearances(w: World) -> float:
    return sum(len({*rows}) for rows, _ in w.said) / len(w.names)


def kinds(w: World) -> list[int]:
    return [
        n for kind, n in sorted(Counter(event.get("type", "triplet") for event in w.events).items()) if kind != "label"
    ]


def both(w: World) -> list[tuple[float, float]]:
    """The votes each way of questions about three objects that were answered both ways."""
    return [votes for votes in w.questions().values() if min(votes)]


def report(kind: str, *path: str):
    def told(w):
        value = w.fits[kind].report
        for name in path:
            value = value[name]
        return value

    return told


def by_map(w: World, who: str) -> np.ndarray | None:
    """Answers, right ones, and sums of log odds, of what is expected of them, of its variance, and of squares, by maps
    of other people's answers; None where no map was fitted."""
    fitted = w.fits.get("embedding")
    return fitted.worker_predicted[w.people.index(who)] if hasattr(fitted, "worker_predicted") else None


def against_others(w: World, who: str) -> float:
    """The share of answers that the map of other people's answers predicts, or else of answers about three objects that
    AddS-3 of all other people's answers predicts, ties one half."""
    if by_map(w, who) is not None:
        return by_map(w, who)[1] / by_map(w, who)[0]
    own, right = w.own(who), 0.0
    mine = defaultdict(float)
    for (a, near, far), times in own.items():
        for x, y, sign in ((a, near, 1), (near, a, 1), (a, far, -1), (far, a, -1)):
            mine[x, y] += sign * times
    for (a, near, far), times in own.items():
        others = [w.similarity[""][a, each] - mine[a, each] for each in (near, far)]
        right += times * (1.0 if others[0] > others[1] else 0.5 if others[0] == others[1] else 0.0)
    return right / sum(own.values())


def of_all_others(w: World, who: str) -> float:
    size = {each: counted(w, each) for each in w.people if each != who}
    return sum(against_others(w, each) * n for each, n in size.items()) / sum(size.values())


def counted(w: World, who: str) -> float:
    """How many answers of a participant are compared with those of others."""
    return sum(w.own(who).values()) if by_map(w, who) is None else by_map(w, who)[0]


def size(w: World, who: str) -> int:
    return int(min(counted(w, who), len(w.answered(who))))


def noticed(w: World) -> list[float]:
    """Of everybody who is checked, if they only guessed: how probably their right answers are too few for the others,
    and not too many for a coin."""
    checked, found = [who for who in w.people if size(w, who) >= 10], []
    for who in checked if by_map(w, checked[0]) is not None else ():
        answers, _, _, expected, variance, square = by_map(w, who)
        rest = sum(by_map(w, each) for each in w.people if each != who)
        share = min(max(rest[2] / rest[3], 0.0), 1.0)  # of the expected log odds that others reach
        several = answers / size(w, who)  # comparisons of a response vary together
        others = norm(share * expected, (several * ((1 - share**2) * square + share**2 * variance)) ** 0.5)
        coin = norm(0.0, (several * square) ** 0.5)
        found.append(coin.cdf(min(others.ppf(0.01 / len(checked)), 1.96 * coin.std())))
    for who in checked if by_map(w, checked[0]) is None else ():
        n, others = size(w, who), of_all_others(w, who)
        few = [
            k for k in range(n + 1) if binom.cdf(k, n, others) <= 0.01 / len(checked) and wilson(k / n, n, -1) <= 0.5
        ]
        found.append(binom.cdf(max(few), n, 0.5) if few else 0.0)
    return found


def noticed_in_words(w: World) -> list[float]:
    """The mean, of how many, and the least and the largest where these are printed otherwise; 99 at most."""
    each = [min(100 * power, 99) for power in noticed(w)]
    ends = [min(each), max(each)] if round(min(each)) != round(max(each)) else []
    return [min(100 * np.mean(noticed(w)), 99), len(each), *ends]


def counts_too(w: World) -> list[int]:
    """How many flagged participants' answers are in a figure."""
    return [len(flagged(w))] if flagged(w) and len(w.people) >= 5 else []


def interval(w: World, who: str, side: int) -> float:
    return wilson(against_others(w, who), size(w, who), side)


def wilson(p: float, n: int, side: int) -> float:
    z = 1.96
    middle, half = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    return (middle + side * half) / (1 + z * z / n)


def bound(w: World, sign: int) -> float:
    accuracy, error = (report("embedding", name)(w) for name in ("accuracy", "standard_error"))
    return 100 * min(1.0, max(0.0, accuracy + sign * 1.96 * error))


def differ(*path: str):
    return report("embedding", "individual_differences", *path)


def contradicted(w: World) -> float:
    return sum(min(votes) for votes in both(w)) / sum(sum(votes) for votes in repeated(w))


def repeated(w: World) -> list[tuple[float, float]]:
    return [votes for votes in w.questions().values() if sum(votes) > 1]


VERDICTS = ("duplicate", "contradiction", "cycle")
HELD = {name: report("embedding", name) for name in ("accuracy", "standard_error")}
HELD |= {"model": lambda w: "embedding", "held_out": report("embedding", "held_out_comparisons")}


def flags_in_words(w: World) -> list[float]:
    return [len(flagged(w)), len(w.people), 100 * len(flagged(w)) / len(w.people)]


def accuracy_in_words(w: World) -> list[float]:
    return [100 * HELD["accuracy"](w), HELD["held_out"](w)]


SAID = {  # finding -> (its figures, the numbers of its sentence in their order)
    "read": (
        {"events": lambda w: len(w.events), "objects": lambda w: len(w.names), "comparisons": lambda w: len(w.said)},
        lambda w: [sum(kinds(w)), *kinds(w), len(w.names), len(w.said), round(appearances(w))],
    ),
    "rejected": (
        {"events": lambda w: w.wrong, "not_distinct": lambda w: 200, "missing_field": lambda w: 30},
        lambda w: [w.wrong, 100 * w.wrong / (w.wrong + len(w.events)), 30, 200],
    ),
    "accuracy": (HELD, lambda w: [*accuracy_in_words(w), 95, bound(w, -1), bound(w, 1), 50, *counts_too(w)]),
    "chance_level": (
        HELD,
        lambda w: [HELD["held_out"](w), 1, 100 * HELD["accuracy"](w), 95, bound(w, -1), bound(w, 1)],
    ),
    "noise_ceiling": (
        {"at_most": at_most},
        lambda w: [100 * at_most(w), *counts_too(w), 100 * (at_most(w) - HELD["accuracy"](w))],
    ),
    "noise_ceiling_unknown": ({}, lambda w: [95, 5] if at_most(w) is None else []),
    "inter_rater_agreement": (
        {"share": lambda w: agreeing(w, False)[0], "answers": lambda w: agreeing(w, False)[1]},
        lambda w: [100 * agreeing(w, False)[0], agreeing(w, False)[1], *counts_too(w)],
    ),
    "test_retest_agreement": (
        {"share": lambda w: agreeing(w, True)[0], "answers": lambda w: agreeing(w, True)[1]},
        lambda w: [100 * agreeing(w, True)[0], agreeing(w, True)[1]],
    ),
    "conflicting_answers": (
        {"questions": lambda w: len(both(w)), "repeated": lambda w: len(repeated(w)), "share": contradicted}
        | {"ties": lambda w: sum(a == b for a, b in both(w))},
        lambda w: [len(both(w)), len(repeated(w)), sum(a == b for a, b in both(w)), 100 * contradicted(w)],
    ),
    "participants": (
        {"participants": lambda w: len(w.people), "flagged": lambda w: len(flagged(w)) if len(w.people) >= 5 else None},
        lambda w: [len(w.people)],
    ),
    "participants_flagged": (
        {"participants": lambda w: len(w.people), "flagged": lambda w: len(flagged(w))},
        lambda w: [
            len(flagged(w)),
            len(w.people),
            100 * len(flagged(w)) / len(w.people),
            *causes(w),
            *noticed_in_words(w),
        ],
    ),
    "unused_columns": ({"columns": lambda w: 3}, lambda w: []),
    "duplicates": ({"answers": lambda w: 10}, lambda w: [10]),
    "map": ({"dimensions": lambda w: 2}, lambda w: [2]),
    "map_gated": ({"dimensions": lambda w: 2}, lambda w: []),
    "which_dimensions": (
        {"map": lambda w: 2, "groups": report("clusters", "dimensions")},
        lambda w: [2, report("clusters", "dimensions")(w)],
    ),
    "clusters_gated": ({}, lambda w: []),
    "differences_untested": ({}, lambda w: []),
    "no_differences": (
        {name: differ(name) for name in ("participants", "p_value")} | {"who": lambda w: 0},
        lambda w: [len(w.people), min(differ("p_value")(w), 0.99)],
    ),
    "differences": (  # of maps of their own, where no test is significant
        {name: differ(name) for name in ("participants", "p_value")}
        | {"who": lambda w: 0}
        | {f"accuracy{of}": differ(name, "accuracy") for of, name in (("", "own"), ("_of_one_map", "one_map"))},
        lambda w: [
            len(w.people),
            min(differ("p_value")(w), 0.99),
            *(100 * differ(name, "accuracy")(w) for name in ("own", "one_map")),
        ],
    ),
    "clusters": (
        {name: report("clusters", name) for name in ("grade", "k", "clearer_than", "detection_limit")}
        | {"gain": lambda w: known(w, "gain", 0), "gain_se": lambda w: known(w, "gain", 1)}
        | {f"ari{end}": lambda w, at=at: known(w, "replication", at) for at, end in enumerate(("", "_low", "_high"))},
        lambda w: [each for each in answered(w) if each is not None],
    ),
    "partial_order": (
        {"kept": lambda w: len(w.order()), "accepted": lambda w: len(w.order())}
        | {name: lambda w, name=name: guard(w)[name] for name in VERDICTS},
        lambda w: [len(w.order()), *(guard(w)[name] for name in VERDICTS)],
    ),
}


def known(w: World, name: str, at: int) -> float | None:
    """A figure of the answer about clusters, None where it was not computed."""
    value = w.fits["clusters"].__dict__[name][at]
    return None if np.isnan(value) else float(value)


def answered(w: World) -> list[float | None]:
    """The numbers of the sentence about clusters."""
    told = w.fits["clusters"].report
    if told["grade"] == "cannot tell":
        return [told["answers"], len(w.names), told["detection_limit"]]
    k, clearer = told["k"], None if told["clearer_than"] is None else 100 * told["clearer_than"]
    if told["grade"] == "not separable":
        first = [k if k > 1 else None, clearer, told["detection_limit"]]
    else:
        first = [k if k > 12 else None, clearer]
    ari = [known(w, "replication", at) for at in range(3)]
    inner = [number for each in told["subgroups"] for number in (each["group"], each["k"])]
    return [*first, ari[0], None if ari[1] is None else 95, *ari[1:], *(known(w, "gain", at) for at in (0, 1)), *inner]


@cache
def why(w: World, who: str) -> list[str]:
    """Why somebody is flagged; who agrees little with others here does so beyond doubt."""
    found = []
    if against_others(w, who) < 0.55 and len(w.people) > 4:
        found.append("chance")
    lapse = w.fits["embedding"].worker_lapse[w.people.index(who)]
    if lapse > 0.5 and HELD["accuracy"](w) > 0.5 and interval(w, who, 1) < of_all_others(w, who):
        found.append("random")
    found += ["position"] * bool(w.holm(lambda each: w.position(each)[2], who) <= 0.01)
    found += ["run"] * bool(w.holm(w.p_run, who) <= 0.01) + ["fast"] * bool(w.holm(w.p_fast, who) <= 0.01)
    return found


def flagged(w: World) -> list[str]:
    return [who for who in w.people if why(w, who)]


def causes(w: World) -> list[int]:
    """How many are flagged for the same causes, of which answers at chance level are named once."""
    together = [
        tuple(each for each in why(w, who) if (each, "chance" in why(w, who)) != ("random", True)) for who in w.people
    ]
    return [n for name in ORDER for causes, n in Counter(filter(None, together)).items() if causes[0] == name]


ORDER = ("chance", "random", "position", "run", "fast")


ELSEWHERE = {  # table -> the test that has its definition
    "models": "tests/laws/test_told.py::test_models_are_told_as_they_report",
    "dimension-quality": "tests/laws/test_told.py::test_every_column_is_told_as_it_is_defined",
    "dimension-objects": "tests/laws/test_told.py::test_every_column_is_told_as_it_is_defined",
    "between": "tests/laws/test_told_in_words.py::test_groups_between_and_within_are_those_of_the_arrays",
    "subgroups": "tests/laws/test_told_in_words.py::test_groups_between_and_within_are_those_of_the_arrays",
    "clearness": "tests/laws/test_told_in_words.py::test_groups_between_and_within_are_those_of_the_arrays",
    "methods": "tests/report/test_sections.py::"
    "test_the_methods_are_those_that_were_used_and_the_text_for_a_paper_has_the_findings",
}  # fmt: skip
COPIED = {"settings", "versions", "SPUR"}  # texts and what a report says


def members(w: World, row: int) -> list[str]:
    labels = w.fits["clusters"].labels
    return [name for name in w.names if w.cluster("clusters", labels[w.row[name]]) == row + 1]


def stable(w: World, row: int) -> list[float]:
    return [w.fits["clusters"].stability[w.row[name]] for name in members(w, row)]


def joins(w: World) -> list[tuple[str, str, float]]:
    """What joins what at which height, by the objects below each branch; it is called after the first of them."""
    fit, below = w.fits["hierarchy"], [{at} for at in range(len(w.fits["hierarchy"].leaves))]
    for one, other, _, _ in fit.linkage.tolist():
        below.append(below[int(one)] | below[int(other)])

    def called(branch: float) -> str:
        some = below[int(branch)]
        return w.names[fit.leaves[min(some)]] + (f" (+{len(some) - 1})" if len(some) > 1 else "")

    return [(called(one), called(other), height) for one, other, height, _ in fit.linkage.tolist()]


def often(share: float, answers: int) -> float | None:
    return share if answers >= 100 else None


READ = {
    "answers read": lambda w: sum(kinds(w)), "rejected": lambda w: w.wrong, "filtered": lambda w: 0,
    "empty messages": lambda w: 0, "comparisons": lambda w: len(w.said),
    "comparisons of three objects": lambda w: len(w.triplets), "comparisons of four objects": lambda w: len(w.four),
    "distinct questions (anchor and two objects)": lambda w: len(w.questions()),
    "distinct answers to these": lambda w: sum(n > 0 for n in w.votes[""].values()),
    "objects": lambda w: len(w.names), "objects with a label": lambda w: len(w.labels()),
}  # fmt: skip
SHOWN = {
    "read": {"what": lambda w, row: list(READ)[row], "number": lambda w, row: [*READ.values()][row](w)},
    "rejected": {
        "reason": lambda w, row: ("missing_field", "not_distinct")[row],
        "events": lambda w, row: (30, 200)[row],
    },
    "agreement": {
        "with": lambda w, row: ["other participants", "themselves", "noise ceiling, at most"][row],
        "share": lambda w, row: [agreeing(w, False)[0], often(*agreeing(w, True)), at_most(w)][row],
        "comparisons": lambda w, row: [agreeing(w, False)[1], agreeing(w, True)[1], None][row],
    },
    "guard": {
        "verdict": lambda w, row: ["accepted", *VERDICTS][row],
        "comparisons": lambda w, row: [len(w.order()), *(guard(w)[each] for each in VERDICTS)][row],
    },
    "clusters": {
        **dict.fromkeys(("group", "part"), lambda w, row: row + 1),
        "objects": lambda w, row: len(members(w, row)),
        "among them": lambda w, row: " and ".join(", ".join(members(w, row)).rsplit(", ", 1)),
        "stability": lambda w, row: np.mean(stable(w, row)),
        "between": lambda w, row: sum(each < 0.9 for each in stable(w, row)),
    },
    "dendrogram": {
        "branch": lambda w, row: joins(w)[row][0],
        "joins": lambda w, row: joins(w)[row][1],
        "at": lambda w, row: joins(w)[row][2],
    },
    "both_ways": {
        "answers": lambda w, a, near, far: w.votes[""][a, near, far],
        "opposite answers": lambda w, a, near, far: w.votes[""][a, far, near],
    },
    "objects": {
        "comparisons": TOLD["objects"]["answers"],
        **{head: TOLD["objects"][head] for head in ("contradicted", "agreement", "cluster", "label")},
        **{f"axis {at + 1}": TOLD["objects"][name] for at, name in enumerate("xy")},
        "nearest three": lambda w, o: ", ".join(w.nearest(o, rank) for rank in (1, 2, 3)),
    },
    "workers": {
        **{head: TOLD["workers"][head] for head in ("agreed", "disagreed", "repeats", "contradictions", "weight")},
        "median seconds": TOLD["workers"]["response_time"],
        "under 300 ms": TOLD["workers"]["under_300_ms"],
        "share at it": TOLD["workers"]["position_share"],
        "longest run": TOLD["workers"]["longest_run"],
        "position": lambda w, who: f"{w.position(who)[0] + 1} of 3",
        "responses": lambda w, who: len(w.answered(who)),
        "accuracy against others": against_others,
        "from": lambda w, who: interval(w, who, -1),
        "to": lambda w, who: interval(w, who, 1),
        "lapse rate": lambda w, who: (
            w.fits["embedding"].worker_lapse[w.people.index(who)] if w.material.facts.beats_chance else None
        ),
        "flagged because": lambda w, who: bool(why(w, who)),
        "duplicates": lambda w, who: sum(event.get("worker") == who for event in w.events[-10:]),
    },
}
ROW = {"objects": ("object",), "workers": ("participant",), "both_ways": ("anchor", "nearer", "farther")}  # of a row


def test_every_finding_is_as_it_is_defined(world):
    """Its figures, and each number of its sentence to the digits that are shown."""
    for finding in (each for topic in world.material.findings.values() for each in topic):
        figures, _ = SAID[finding.what]
        known = {name: value for name in figures if (value := figures[name](world)) is not None}
        assert finding.figures.keys() == known.keys(), finding
        for name, told in finding.figures.items():
            assert same(told, known[name]), (finding.what, name, told, known[name])
        text = re.sub(r"AddS-\d|300 ms", "", finding.text)
        as_printed(numbers(text), SAID[finding.what][1](world), text)


@pytest.mark.parametrize("kind", FITS)
def test_every_report_of_a_fit_is_as_it_is_defined(kind, world):
    if kind != "dimensions":
        assert check(world.fits[kind].report, REPORTED[kind], world)


SAME = {  # what is alike by its meaning
    ("accepted", "kept"),  # nothing was forgotten
}


def test_no_two_figures_beside_each_other_are_alike(world):
    """Of a finding, or of a table's columns of several rows: else a mistake of one for the other would not be seen."""
    found = {name for some in world.material.findings.values() for each in some for name in alike(each.figures)}
    for section in (maker(name)(world.material) for name in SECTIONS if name not in ("learning", "next")):
        for table in section.tables if section else ():
            columns = {head: tuple(map(str, values)) for head, values in table.columns.items()}
            twice = Counter(columns.values())
            found |= {
                (table.name, head)
                for head, values in columns.items()
                if twice[values] > 1 and len(values) > 1 and {*values} != {"None"}
            }
    assert {tuple(sorted(names)) for names in found} <= SAME


def test_every_table_is_as_it_is_defined(world):
    made = [maker(name)(world.material) for name in SECTIONS if name not in ("learning", "next")]
    tables = {table.name: table.columns for section in made if section for table in section.tables}
    assert ("rejected" in tables) == (world.wrong > 0)
    for name in tables.keys() - ELSEWHERE.keys() - COPIED:
        columns = {head: list(values) for head, values in tables[name].items()}
        rows = list(zip(*(columns.pop(head) for head in ROW.get(name, ()))))
        for head, values in columns.items():
            for row, found in zip(rows or zip(range(len(values))), values, strict=True):
                if head == "flagged because":
                    shares = [int(share) for share in re.findall(r"others predict (\d+)", str(found))]
                    assert shares == [round(100 * against_others(world, *row))] * len(shares), (row, found)
                    found = bool(found)
                assert head in SHOWN[name], (name, head)
                wanted = SHOWN[name][head](world, *row)
                assert same(found, wanted), (name, head, row, found, wanted)
    assert {*tables["objects"]["object"]} == {*world.names} and np.diff(tables["objects"]["comparisons"]).min() >= 0
    least = sorted((min(votes) for votes in both(world)), reverse=True)[:20]
    assert tables["both_ways"]["opposite answers"] == least


def test_the_page_holds_every_axis_of_the_map(world):
    """To four digits, with the upper triangles of the covariances to three."""
    held, fit = json.loads(data(world.material, {}, {})), world.fits["embedding"]
    (shown,) = (each for each in held["maps"] if each["name"] == "embedding")
    assert held["names"] == world.names and np.allclose(np.array(shown["axes"]).T, fit.X, rtol=1e-3)
    upper = np.triu_indices(fit.X.shape[1])
    covariance = np.array([each[upper] for each in fit.covariance])
    assert "covariance" not in shown or np.allclose(shown["covariance"], covariance, rtol=1e-2)
    labels = world.fits["clusters"].labels.tolist()
    assert held["cluster"] == [world.cluster("clusters", label) - 1 if label >= 0 else -1 for label in labels]


@pytest.mark.parametrize("test", sorted({*ELSEWHERE.values()}))
def test_what_is_defined_elsewhere_is_there(test):
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    assert name in [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]


def test_groups_between_and_within_are_those_of_the_arrays(world):
    """Of groups that are separated, with objects between them and groups within one, in no order that shows."""
    held, n = world.material.published, len(world.names)
    artifact = held.artifacts["clusters"]
    labels = np.array([(7 * i + i // 3) % 3 for i in range(n)])
    stability = np.array([0.5 + 0.06 * ((5 * i) % n) if i % 2 else 0.97 for i in range(n)]).clip(0, 0.98)
    size = sorted({*labels.tolist()}, key=lambda k: (-(labels == k).sum(), labels.tolist().index(k)))
    second = np.where(labels == size[2], np.array(size)[np.arange(n) % 2], size[2])  # the smallest most often
    subgroup = np.where(labels == 1, np.cumsum(labels == 1) % 2, -1)
    arrays = artifact.arrays | {"labels": labels, "stability": stability, "second": second, "subgroup": subgroup}
    arrays |= {"tested_k": np.array([2, 3, 4]), "tested_clearness": np.array([0.5, 2.5, -1.0])}
    crafted = artifact._replace(arrays=arrays, report=artifact.report | {"grade": "separated", "k": 3})
    of = material(Published(held.snapshot, {**held.artifacts, "clusters": crafted}), workers=True)
    tables = {table.name: table.columns for table in maker("clusters")(of).tables}
    number = {k: at + 1 for at, k in enumerate(size)}
    where = [np.flatnonzero(labels == k) for k in size]
    assert list(tables["clusters"]["objects"]) == [len(each) for each in where]
    named = [{*re.split(", | and ", text)} for text in tables["clusters"]["among them"]]
    assert named == [{world.names[i] for i in each} for each in where]
    assert list(tables["clusters"]["stability"]) == pytest.approx([stability[each].mean() for each in where])
    unsure = sorted((i for i in range(n) if stability[i] < 0.9), key=lambda i: stability[i])
    assert list(tables["between"]["object"]) == [world.names[i] for i in unsure]
    assert list(tables["between"]["group"]) == [number[labels[i]] for i in unsure]
    assert list(tables["between"]["or group"]) == [number[second[i]] for i in unsure]
    assert list(tables["between"]["stability"]) == pytest.approx([stability[i] for i in unsure])
    rows = [np.flatnonzero((labels == 1) & (subgroup == part)) for part in (0, 1)]
    assert list(tables["subgroups"]["group"]) == [number[1]] * 2
    assert list(tables["subgroups"]["subgroup"]) == [1, 2]
    assert list(tables["subgroups"]["objects"]) == [len(each) for each in rows]
    named = [{*re.split(", | and ", text)} for text in tables["subgroups"]["among them"]]
    assert named == [{world.names[i] for i in each} for each in rows]
    assert tables["clearness"] == {"groups": [2, 3, 4], "clearness": [0.5, 2.5, -1.0]}


def test_branches_of_the_map_join_at_their_mean_distance(world):
    """Of all pairs of branches the nearest two first, without a hierarchy that was fitted."""
    held = world.material.published
    of = material(Published(held.snapshot, {k: v for k, v in held.artifacts.items() if k != "hierarchy"}))
    (table,) = maker("dendrogram")(of).tables
    x, wanted = of.places.points, []
    branches = [[i] for i in of.shown.tolist() if np.isfinite(x[i]).all()]

    def apart(pair: tuple[list[int], list[int]]) -> float:
        return float(np.mean([np.linalg.norm(x[i] - x[j]) for i in pair[0] for j in pair[1]]))

    while len(branches) > 1:
        one, other = min(combinations(branches, 2), key=apart)
        wanted.append(({len(one), len(other)}, apart((one, other))))
        branches = [each for each in branches if each not in (one, other)] + [one + other]
    sizes = [
        {int((NUMBER.findall(text.partition(" (+")[2]) or ["0"])[0]) + 1 for text in pair}
        for pair in zip(table.columns["branch"], table.columns["joins"])
    ]
    assert sizes == [size for size, _ in wanted]
    assert list(table.columns["at"]) == pytest.approx([distance for _, distance in wanted])
