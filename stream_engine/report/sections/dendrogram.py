"""The dendrogram: which objects join first, from the distances in the map or from a hierarchy that was fitted."""

from typing import NamedTuple

import numpy as np

from stream_engine.report import Section, Table
from stream_engine.report.drawings import Axis, Drawing, Segments, shortened
from stream_engine.report.material import Material
from stream_engine.report.sections.object_map import numbered

MAX_OBJECTS = 1500  # objects of which it is made: of more, of those that are shown first
UNIT_OF_ADDS = "as the difference in similarity from the most similar two objects"
ADDS = ("adds3", "adds4")
OF_KERNEL = "as the difference in similarity from an object to itself"
UNITS = {**dict.fromkeys(("k1", "k2", "mulk3"), OF_KERNEL), "embedding": "in squared distances of the embedding"}
MAX_SETS_IN_TEXT = 3
MAX_DRAWN = 120  # that are drawn; of more objects, the last merges


class Tree(NamedTuple):
    """The merges of the objects `ids` in scipy's format."""

    merges: np.ndarray
    ids: np.ndarray


def section(material: Material) -> Section | None:
    """Average linkage, of each set of objects that were compared with each other; nothing where fewer than three
    objects are known, or no model predicts the answers better than chance."""
    if material.facts.beats_chance is False:
        return None
    trees, source, unit = _fitted(material) or _of_map(material)
    if not trees:
        return None
    few = material.facts.too_few
    names = [[f"{material.names[i]}{' *' if few[i] else ''}" for i in tree.ids.tolist()] for tree in trees]
    drawings = numbered([draw(tree.merges, called) for tree, called in zip(trees, names)])
    tables = [
        table(tree.merges, called)._replace(name=drawing.name) for tree, called, drawing in zip(trees, names, drawings)
    ]
    says = [f"Similar objects join at a small distance ({source})."]
    for number, (tree, called) in enumerate(zip(trees[:MAX_SETS_IN_TEXT], names), 1):
        first, merges = "" if len(trees) == 1 else f"Set {number}: ", tree.merges
        one, other = (called[int(i)] for i in merges[0, :2])
        says.append(
            f"{first}{one} and {other} are the closest in the tree (they join at {merges[0, 2]:.3g}, the last two "
            f"branches at {merges[-1, 2]:.3g}, {unit})."
        )
    notes = ["Any set of answers gives a tree, even if there are no clusters."]
    if any(few[tree.ids].any() for tree in trees):
        notes.append("* Too few comparisons: where this object joins is uncertain.")
    if not material.facts.connected:
        notes.append(f"Sets that {material.facts.apart} have a tree each.")
    if max(len(tree.ids) for tree in trees) > MAX_DRAWN:
        notes.append(
            f"Only the last {MAX_DRAWN} branches are drawn; a number in brackets counts the further objects in a "
            "branch."
        )
    return Section("Dendrogram", " ".join(says), tuple(drawings), tuple(tables), tuple(notes))


def table(merges: np.ndarray, names: list[str]) -> Table:
    """The merges that are drawn, in order; a branch is called after its first object, with how many it holds."""
    m = len(merges) + 1
    first, size = list(range(m)), [1] * m
    rows: list[tuple[str, str, float]] = []

    def called(branch: int) -> str:
        return names[first[branch]] + (f" (+{size[branch] - 1:,})" if size[branch] > 1 else "")

    for left, right, distance, objects in merges.tolist():
        a, b = int(left), int(right)
        rows.append((called(a), called(b), distance))
        first.append(min(first[a], first[b]))
        size.append(int(objects))
    shown = rows[-(MAX_DRAWN - 1) :]
    return Table("dendrogram", dict(zip(("branch", "joins", "at"), map(list, zip(*shown)))), folded=True)


def _fitted(material: Material) -> tuple[list[Tree], str, str] | None:
    """The hierarchy that was fitted, which joins all objects: not where they are in several sets."""
    artifact = material.artifact("hierarchy")
    if artifact is None or len(artifact.arrays["linkage"]) < 2 or len(artifact.arrays["leaves"]) > MAX_OBJECTS:
        return None
    if not material.facts.connected:
        return None
    similarity = str(artifact.params.get("similarity", "adds3"))
    how = f"{artifact.report['method']} linkage of {'AddS' if similarity in ADDS else similarity}"
    unit = UNITS.get(similarity.split("_")[0], UNIT_OF_ADDS)
    return [Tree(artifact.arrays["linkage"], artifact.arrays["leaves"])], how, unit


def _of_map(material: Material) -> tuple[list[Tree], str, str]:
    from scipy.cluster.hierarchy import linkage

    how, unit = "average linkage of the distances in the map", "in the units of the map's axes"
    if material.places is None:
        return [], how, unit
    points = material.places.points
    ids = material.shown[np.isfinite(points[material.shown]).all(axis=1)][:MAX_OBJECTS]
    sets = [mine for mine in material.sets_of(ids) if len(mine) >= 3]
    return [Tree(linkage(points[mine], "average"), mine) for mine in sets], how, unit


def draw(merges: np.ndarray, names: list[str]) -> Drawing:
    """A linkage in scipy's format as a drawing, leaves at the left, joined towards the right."""
    from scipy.cluster.hierarchy import dendrogram

    m = len(merges) + 1
    how = {"truncate_mode": "lastp", "p": MAX_DRAWN} if m > MAX_DRAWN else {}
    layout = dendrogram(merges, no_plot=True, labels=None, **how)
    leaves = [names[i] if i < m else "" for i in layout["leaves"]]
    texts = [text or label for text, label in zip(leaves, layout["ivl"])]
    across, along = np.array(layout["dcoord"], float), np.array(layout["icoord"], float)
    # each merge is three lines: out from the left child, along, and out to the right child
    ends = np.concatenate(
        [np.stack([across[:, k], along[:, k], across[:, k + 1], along[:, k + 1]], axis=1) for k in range(3)]
    )
    height = int(max(200, 14 * len(leaves) + 60))
    ticks = tuple((10.0 * place + 5.0, shortened(text)) for place, text in enumerate(texts))
    return Drawing(
        "dendrogram",
        "Dendrogram",
        f"A tree of {len(leaves)} leaves; similar objects are joined near the left.",
        Axis("distance at which they join", low=0.0),
        Axis("", low=0.0, high=10.0 * len(leaves), ticks=ticks),
        (Segments(ends, np.full(len(ends), 0)),),
        width=480,  # as on a phone, where its names could not be read in a wider one
        height=height,
    )
