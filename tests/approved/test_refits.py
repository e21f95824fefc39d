"""What each refit reports, exports and has said of it, with parameters that other documents do not give: subsets, other
methods, labels in conflict, fits that end too early, and a fit that follows another one."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from stream_engine.commands.refit_text import plain_figures
from stream_engine.exports import OF_REFITS, NothingToExport, contents
from stream_engine.input.settings.refit_params import refit_params
from stream_engine.refits import CannotRefit, SolverFailed, refit_module
from stream_engine.report import maker
from stream_engine.report.material import material
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, encode
from tests.support.approved import number, outline, sentences, unchanging
from tests.support.approved_answers import by_distance, coin, picks, places
from tests.support.approved_pages import table_lines
from tests.support.learned import snapshot_of

POINTS = places((5, 4, 3), 5)
NAMES = sorted(POINTS)
SIX = ["bird0", "bird2", "fish0", "fish1", "fish3", "tree1"]  # a subset
OF_SECTIONS = {  # where the report says something of a refit
    "hierarchy": "dendrogram",
    "dimensions": "dimensions",
    "sdp_clustering": "clusters",
    "spectral": "clusters",
    "classify": "objects",
    "triplet_boost": "objects",
    "reliability": "workers",
}
SKIPPED = {
    "iterations",
    "evaluations",
    "slope",
    "gap",
    "bound",
    "passes",
    "seconds",
    "cpu_seconds",
    "params",
    "settings",
    "warm_bytes",
    "theorem_3",
    "theorem_4",
}
STARTS = {"dual", "triplets", "constraints", "method", "K0", "W", "factor", "map_0"}  # long, or said elsewhere
FIT = {"dimensions": 2, "kernel": "ste", "ridge": 1.0, "participants": "alike"}


class Case(NamedTuple):
    """A refit with parameters; `after`: the parameters of the fit before it; `few`: of fewer answers."""

    kind: str
    params: Mapping[str, Any] = {}
    after: Mapping[str, Any] | None = None
    few: bool = False


CASES = {
    "spectral by spur": Case("spectral"),
    "spectral again, in other groups": Case("spectral", {"k": 4}, after={"k": 2}),
    "spectral of six": Case("spectral", {"k": 3, "objects": SIX, "rest": "nearest"}),
    "spectral of the seven most": Case("spectral", {"k": 2, "objects": 7, "similarity": "k1", "refine": False}),
    "hierarchy of six": Case("hierarchy", {"objects": SIX, "method": "complete"}),
    "hierarchy by pairs": Case("hierarchy", {"similarity": "adds4", "min_links": 3}),
    "reliability": Case("reliability", {"rank": 1}),
    "boosting of six": Case(
        "triplet_boost", {"rounds": 30, "objects": SIX, "rest": "none", "multi_label": True, "test": 0.0}
    ),
    "boosting": Case("triplet_boost", {"rounds": 30, "objects": 9}),
    "classes": Case("classify", {"rounds": 20, "similarities": ["k1", "adds3"], "neighbours": [1, 3]}),
    "classes of eight": Case(
        "classify", {"rounds": 0, "similarities": ["k2"], "neighbours": [1], "penalties": [1.0], "objects": 8}
    ),
    "classes by the map": Case(
        "classify", {"rounds": 0, "similarities": ["embedding"], "neighbours": [3], "penalties": [1.0]}, few=True
    ),
    "dimensions": Case("dimensions", {"dimensions": 4, "sparsity": 0.02, "fits": 2}),
    "sdp again, in other groups": Case("sdp_clustering", {"k": 3}, after={"k": 2}),
    "sdp, ended early": Case("sdp_clustering", {"similarity": "k1", "tol": 1e-9, "max_iterations": 2}),
    "sdp of six": Case("sdp_clustering", {"k": 2, "objects": SIX, "rest": "nearest", "similarity": "adds4"}),
    "sdp by lambda": Case("sdp_clustering", {"lam": 0.3, "similarity": "k1"}),
    "sdp by cvxpy": Case("sdp_clustering", {"k": 2, "similarity": "k1", "solver": "cvxpy", "objects": 8}),
    "embedding, one lapse rate": Case("embedding", FIT | {"lapse": "all", "kernel": "t-ste"}),
    "embedding in three dimensions": Case("embedding", FIT | {"dimensions": 3}),
    "kernel of six": Case(
        "kernel_learning", {"form": "t", "lambda1": 0.02, "objects": SIX, "tolerance": 1e-5, "rest": "extended"}
    ),
    "kernel, hinge": Case(
        "kernel_learning", {"form": "t", "loss": "hinge", "lambda1": 0.1, "tolerance": 1e-5}, few=True
    ),
    "order of six": Case(
        "partial_order_embedding",
        {"form": "order", "objects": SIX, "dimensions": 2},
    ),
    "order of six, and the others": Case(
        "partial_order_embedding",
        {"form": "diagonal", "objects": SIX, "dimensions": 2, "rest": "extended", "beta": 9.0, "weights": "one"},
    ),
    "order, not solved": Case(
        "partial_order_embedding", {"beta": 30.0, "tolerance": 1e-9, "max_iterations": 2, "form": "diagonal"}, few=True
    ),
    "nothing to cluster": Case("spectral", {"objects": ["bird0", "bird1", "nobody"]}),
}


@cache
def snapshot(few: bool = False) -> Snapshot:
    """Answers of four people about triplets and pairs; labels in conflict with the groups, and for some objects two."""
    people = {"ann": (210, by_distance(1.0)), "bob": (150, by_distance(1.0, 2.0, 0.4)), "cho": (90, coin)}
    people |= {"dev": (60, by_distance(1.5))}
    events = picks(POINTS, people, 71, again=0.25)[: 120 if few else None]
    rng = np.random.default_rng(72)
    for _ in range(130):
        i, j, k, l = (NAMES[at] for at in rng.choice(len(NAMES), 4, replace=False))
        apart = [((POINTS[a] - POINTS[b]) ** 2).sum() + rng.normal(0, 3) for a, b in ((i, j), (k, l))]
        near, far = ((i, j), (k, l)) if apart[0] < apart[1] else ((k, l), (i, j))
        events.append({"type": "quadruplet", "near": list(near), "far": list(far), "worker": "bob"})
    for at, name in enumerate(NAMES):
        if at % 5 != 4:
            label = "tree" if name == "bird1" else f"{name[:4]}|old" if at % 4 == 2 else name[:4]
            events.append({"type": "label", "object": name, "label": label})
    return encode(snapshot_of(events))[1]


@cache
def embedded() -> Artifact:
    return refit_module("embedding").refit(snapshot(), refit_params("embedding", FIT), 0)


def fitted(case: Case) -> Artifact:
    refit, of = refit_module(case.kind).refit, snapshot(case.few)
    before = None if case.after is None else refit(of, refit_params(case.kind, case.after), 0)
    return refit(of, refit_params(case.kind, case.params), 3, before)


def lines(case: Case) -> Iterator[str]:
    try:
        artifact = fitted(case)
    except (CannotRefit, SolverFailed, LookupError) as error:
        yield f"!! {type(error).__name__}: {error}"
        return
    yield from (f"{what}: {value}" for what, value in plain_figures(artifact.report))
    yield ""
    report = json.loads(json.dumps(dict(artifact.report)))
    yield from outline({name: value for name, value in report.items() if name not in SKIPPED})
    published = Published(snapshot(case.few), {case.kind: artifact})
    yield from exported(published, next((what for what, of in OF_REFITS.items() if case.kind in of), case.kind))
    if (name := OF_SECTIONS.get(case.kind)) is not None:
        shown = published._replace(artifacts={"embedding": embedded(), case.kind: artifact})
        section = maker(name)(material(shown, workers=True))
        yield from ("", "## the report", *sentences(section.says))
        yield from (line for note in section.notes for line in sentences(note))
        for table in section.tables:
            yield from table_lines(table, whole=False)


def exported(published: Published, what: str) -> Iterator[str]:
    """Every table of an export, and the arrays that are beside them."""
    try:
        made = contents(what, published)
    except NothingToExport as error:
        yield f"! {error}"
        return
    for file, content in made.items():
        if "." in file:  # the same under the name of its refit
            continue
        yield f"## {file}: of {'all' if content.objects is None else ', '.join(content.objects)}"
        if content.subset is not None:
            yield f"subset: {', '.join(content.subset)}"
        yield from (array_line(name, array) for name, array in sorted(content.arrays.items()) if name not in STARTS)
        for table, columns in content.tables.items():
            cells = [value.tolist() if isinstance(value, np.ndarray) else list(value) for value in columns.values()]
            yield f"table {table}: {' | '.join(columns)}"
            yield from ("  " + " | ".join(map(number, row)) for row in zip(*cells))


def array_line(name: str, array: np.ndarray) -> str:
    if array.dtype.kind == "f":
        array = np.where(np.abs(array) < 1e-6, 0.0, array.astype(float))
    text = number(array.tolist())
    if len(text) > 400:
        text = f"{text[: text.rindex(',', 0, 360)]}, ..."
    return f"{name} {array.dtype.kind}{array.shape}: {text}"


@pytest.mark.parametrize("name", CASES)
def test_refit(name, approved):
    assert unchanging("\n".join(lines(CASES[name]))) == approved
