"""What exports tell is told once more by the definitions of `tests.support.told`; a column without one fails."""

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest

from stream_engine import exports
from stream_engine.exports.declarations import declared
from tests.support import told
from tests.support.told import ABOUT, FOUR, KEYS, OF_ANSWER, PEOPLE, events, reached, said, same, told_of

WHOLE = ("judgements", "summary", "models", "partial_order")  # below, all that they hold at once
PARTS = [what for what in exports.all_exports() if what not in WHOLE]
STUDIED = ("alignment", "classify", "clusters")  # whose figures are only there where there are enough answers


def check(rows, definition, world) -> int:
    """How many rows are as they are defined: all."""
    compared = list(rows)
    for about, found in compared:
        wanted = definition(world, *about)
        assert same(found, wanted), (about, found, wanted)
    return len(compared)


@pytest.fixture(params=[*PARTS, *(f"{what} of a study" for what in STUDIED)])
def exported(request, published, world, study):
    """An export, a state, and its events."""
    what, _, larger = request.param.partition(" ")
    return (what, told.studied(), study) if larger else (what, published, world)


def test_every_array_is_told_as_it_is_defined(exported):
    what, published, world = exported
    for stem, content in exports.contents(what, published).items():
        heads = [name for name in KEYS if name in content.arrays]
        keys = list(zip(*([world.names[i] for i in content.arrays[name].tolist()] for name in heads)))
        if "lo" in heads:  # by anchor, then by the other two, in the order of ids
            rows = [tuple(map(world.row.get, key)) for key in keys]
            assert rows == sorted(rows)
            assert {*keys} <= world.questions().keys()
            assert len({*keys}) == len(keys)
        if what == "triplet_counts":
            assert {*keys} == world.questions().keys()
        if what == "questions":
            wanted = {(a, *((lo, hi) if (n, lo) > (m, hi) else (hi, lo))) if n != m else (a, *sorted((lo, hi)))
                      for (a, lo, hi), (n, m) in world.questions().items()}  # fmt: skip
            assert len(keys) == len(wanted) and {*keys} == wanted
        about = {
            "n": [(name,) for name in content.objects or world.names],
            "s": [(name,) for name in content.subset or world.names],
            "w": [(name,) for name in (world.workers if what == "workers" else PEOPLE)],
            "t": keys,
        }
        for name, array in content.arrays.items():
            definition, _ = told_of(name, stem, what)
            axes = [
                about.get(letter) or [(i,) for i in range(size)]
                for letter, size in zip(declared(what, name).axes(array.ndim), array.shape)
            ]
            if name not in KEYS:
                at, keys_of = product(*map(range, array.shape)), product(*axes)
                check(((sum(key, ()), array[i]) for i, key in zip(at, keys_of)), definition, world)


def test_every_column_is_told_as_it_is_defined(exported):
    what, published, world = exported
    for content in exports.contents(what, published).values():
        for table, columns in content.tables.items():
            heads = [head for head in ABOUT if head in columns]
            rows = list(zip(*(list(columns[head]) for head in heads)))
            for head, column in columns.items():
                if head not in heads:
                    definition, numbered = told_of(head, f"{table} table", table)
                    number = (int(head.rpartition("_")[2]),) if numbered else ()
                    about = ((*(rows[i] if rows else (i,)), *number) for i in range(len(column)))
                    assert check(zip(about, column), definition, world) == len(column)


def test_judgements_are_the_answers_in_one_go(published):
    """What was said at once, by whom, when and how it was asked, and how often."""
    table = exports.contents("judgements", published)["judgements"].tables["judgements"]
    found: dict = defaultdict(list)
    for *names, judgement, times, worker, time, sampler in zip(*(list(table[head]) for head in (*FOUR, *OF_ANSWER))):
        found[judgement].append((between(names), worker, None if time is np.ma.masked else time, sampler, times))
    wanted = Counter(
        (frozenset(Counter(map(between, said(e))).items()), e.get("worker"), e.get("time"), e.get("sampler"))
        for e in events()
        if said(e)
    )
    assert wanted == {
        (frozenset(Counter(row[0] for row in rows).items()), *rows[0][1:4]): rows[0][4] for rows in found.values()
    }


def between(names) -> tuple:
    return frozenset(names[:2]), frozenset(names[2:])


def edges(names: list[str], rows: np.ndarray) -> list[tuple]:
    return [between([names[i] for i in row]) for row in rows.tolist()]


def test_the_partial_order_is_what_was_said(published, world):
    arrays = exports.contents("partial_order", published)["partial_order"].arrays
    kept, reduced, canonical = (edges(world.names, arrays[name]) for name in ("kept", "reduced", "canonical"))
    assert len(kept) == len(set(kept))
    assert set(kept) == world.order()
    assert set(reduced) == world.reduced()
    assert arrays["weight_kept"] == pytest.approx(world.share_kept(kept))
    assert arrays["canonical_weight_kept"] == pytest.approx(world.share_kept(canonical))
    assert set(canonical) <= world.net().keys()
    for near, far in world.net().keys() - set(canonical):  # whatever is left out would close a cycle
        assert near in reached(canonical, far)
    assert all(near not in reached(canonical, far) for near, far in canonical)


def test_models_are_told_as_they_report(published, world):
    """The figures of each report in its row, the best first; those of counts are tested with held-out answers."""
    table = exports.contents("models", published)["models"].tables["models"]
    rows = [dict(zip(table, row)) for row in zip(*table.values())]
    losses = [row["log_loss"] for row in rows if row["log_loss"] is not None]
    assert losses == sorted(losses)
    reports = {kind: fit.report for kind, fit in world.fits.items()}
    of_fits = {kind: report for kind, report in reports.items() if {"held_out", "log_loss"} <= report.keys()}
    assert of_fits.keys() == {row["model"] for row in rows} - {"adds3", "adds4", "k1", "k2", "majority", "chance"}
    for row in rows:
        report = of_fits.get(row["model"])
        if report is None:
            continue
        people, ceiling = report.get("by_worker") or {}, report.get("ceiling") or {}
        wanted = {name: report.get(name) for name in ("accuracy", "standard_error", "log_loss", "calibration_error")}
        wanted |= {
            "comparisons": report.get("held_out_comparisons"),
            "workers": people.get("clusters"),
            "seconds": None,
        }
        wanted |= {"ceiling": ceiling.get("others"), "ceiling_at_most": ceiling.get("at_most")}
        wanted |= {"standard_error_by_worker": people.get("standard_error"), "model": row["model"]}
        wanted |= {"accuracy_by_worker": people.get("accuracy") if (people.get("clusters") or 0) >= 5 else None}
        assert row == wanted


def cells(export: str, column: str, *more, rows=None):
    """A column of an export by its definition, for all of its rows; `more` are numbers that its name ends in."""
    definition = told_of(column, f"{export} table", export)[0]

    def column_of(w):
        about = rows(w) if rows else {"objects": w.names, "workers": w.people, "participants": PEOPLE}[export]
        return [definition(w, *(each if isinstance(each, tuple) else (each,)), *more) for each in about]

    return column_of


def asked(w):
    return sorted(w.questions())


def weighed(weights):
    """The counts of all questions, by other weights of triplets."""

    def counts(w):
        votes = Counter()
        for (rows, _), weight in zip(w.triplets, weights(w, len(w.triplets))):
            votes[rows] += weight
        return [votes[a, *pair] for a, lo, hi in asked(w) for pair in ((lo, hi), (hi, lo))]

    return counts


def counted(how: str):
    return lambda w: [w.votes[how][a, *pair] for a, lo, hi in asked(w) for pair in ((lo, hi), (hi, lo))]


def of_people(figure):
    return lambda w: [figure(w, who) for who in w.people]


def share_of(above, below):
    return lambda w: [above(w) / below(w)]


APART = {  # a figure -> its definition, and others that could be taken for it
    "window": [counted("_window"), *(weighed(lambda w, m, k=k: np.arange(m) >= m - told.WINDOW - k) for k in (-1, 1))],
    "half-life": [
        counted("_decayed"),
        weighed(lambda w, m: 2.0 ** -((m - np.arange(m)) / told.HALF_LIFE)),
        weighed(lambda w, m: np.exp(-((m - 1 - np.arange(m)) / told.HALF_LIFE))),
    ],
    "weight": [counted("_weighted"), counted("")],
    "trust": [counted("_trusted"), weighed(lambda w, m: [w.fits["reliability"].accuracy[w.workers.index(
        event.get("worker", ""))] for _, event in w.triplets])],
    "near or far": [cells("triplet_counts", name, rows=asked) for name in ("n_lo", "n_hi")],
    "near in questions": [
        cells("questions", "n_near", rows=asked), cells("questions", "n_far", rows=asked),
    ],
    "answers about an object": [
        cells("objects", "answers"), cells("evidence", "as_anchor", rows=lambda w: w.names),
        cells("evidence", "questions", rows=lambda w: w.names), cells("objects", "contradicted"),
    ],
    "agreement": [
        cells("objects", "agreement"),
        lambda w: [1 - w.right(name, w.margin) for name in w.names],
        lambda w: [w.right(name, lambda a, lo, hi: w.similarity[""][a, lo] - w.similarity[""][a, hi])
                   for name in w.names],
    ],
    "coordinates": [cells("objects", "x"), cells("objects", "y"), cells("objects", "se_x"), cells("objects", "se_y")],
    "ellipse": [cells("objects", "ellipse_a"), cells("objects", "ellipse_b"), cells("objects", "ellipse_angle")],
    "nearest": [cells("objects", "nearest_?", rank) for rank in (1, 2, 3, len(told.NAMES) - 1)],
    "cluster": [cells("objects", "cluster"), lambda w: [w.fits["clusters"].labels[w.row[o]] for o in w.names]],
    "counts of participants": [
        cells("workers", name) for name in ("events", "comparisons", "agreed", "disagreed", "repeats", "contradictions")
    ],
    "repeats": [cells("workers", "repeats"), of_people(lambda w, who: sum(n > 1 for n in w.own(who).values()))],
    "response time": [cells("workers", "response_time"), of_people(lambda w, who: 1.2 * np.mean(w.timed(who)))],
    "fast": [
        cells("workers", "under_300_ms"),
        of_people(lambda w, who: np.mean(np.array(w.timed(who)) < 0.5)),
        of_people(lambda w, who: sum(t < 0.3 for t in w.timed(who)) / len(w.answered(who))),
    ],
    "position": [
        cells("workers", "position"),
        of_people(lambda w, who: w.position(who)[0]),
        of_people(lambda w, who: 3 - w.position(who)[0]),
    ],
    "share at a position": [
        cells("workers", "position_share"),
        of_people(lambda w, who: w.places(who).count(0) / len(w.places(who))),
        of_people(lambda w, who: max(w.expected(who))),
    ],
    "longest run": [cells("workers", "longest_run"), of_people(lambda w, who: len(w.places(who)))],
    "p-values": [cells("workers", name) for name in ("p_position", "p_run", "p_fast")],
    "participants": [
        cells("participants", name)
        for name in ("lapse", "slope", "of_group_map", "of_own_map", "gain", "gain_error", "p_differs")
    ],
    "weights": [
        cells("participants", "weight_*", 1), cells("participants", "weight_*", 2),
        lambda w: [w.weights(who)[0] for who in PEOPLE],
        lambda w: [w.weights(who)[0] / max(w.weights(who)) for who in PEOPLE],
    ],
    "similarity": [
        *(lambda w, of=of: [of(w)[a, b] for a in w.names for b in w.names if a < b]
          for of in (lambda w: w.similarity[""], lambda w: w.similarity4, lambda w: w.similarity["_weighted"],
                     lambda w: w.similarity["_window"], lambda w: w.similarity["_decayed"])),
        *(lambda w, which=which: [w.k(which, a, b) for a in w.names for b in w.names if a < b] for which in (1, 2)),
    ],
    "order": [
        lambda w: [len(w.order())], lambda w: [len(w.reduced())], lambda w: [len(w.net())], lambda w: [len(w.said)],
    ],
    "weight kept": [
        lambda w: [w.share_kept(w.order())], share_of(lambda w: len(w.order()), lambda w: len(w.said)),
        share_of(lambda w: len(w.order() & w.net().keys()), lambda w: len(w.net())),
    ],
    "prediction": [
        cells("questions", "predicted", rows=asked), cells("questions", "confidence", rows=asked),
        lambda w: [1 - w.predicted(*key) for key in asked(w)],
    ],
    "satisfied": [
        lambda w: [w.satisfied("kernel_learning")], lambda w: [w.constraints_kept()],
        lambda w: [np.mean([(n > m) == (w.by_kernel("kernel_learning")(*key) > 0) for key, (n, m) in
                            w.questions().items() if w.by_kernel("kernel_learning")(*key) is not None])],
    ],
}  # fmt: skip


@pytest.mark.parametrize("figure", APART)
def test_what_could_be_taken_for_a_figure_is_another_one(figure, world):
    """No two of them are printed alike: else a mistake would not be seen in these events."""
    plain = [[getattr(each, "expected", each) for each in one(world)] for one in APART[figure]]
    shown = [[each if isinstance(each, str) else f"{each:.3g}" for each in one] for one in plain]
    assert len({*map(tuple, shown)}) == len(shown), shown
