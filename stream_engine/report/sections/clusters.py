"""Groups of objects: how separated they are, who belongs to them, and what the semidefinite program found beside."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stream_engine.clustering import MIN_CORE_STABILITY
from stream_engine.clustering.sentence import CANNOT_TELL, are_separated, by_themselves
from stream_engine.data.numbers_in_words import amount
from stream_engine.exports.clusters import ANSWER, PROGRAM, grouping
from stream_engine.exports.object_places import numbers
from stream_engine.report import Section, Table
from stream_engine.report.drawings import Axis, Bars, Drawing
from stream_engine.report.findings.clusters import explained
from stream_engine.report.findings.words import listing
from stream_engine.report.material import Material
from stream_engine.report.sections.object_map import part_name
from stream_engine.state.artifact import Artifact, figure

TITLE = "Clusters"
STABILITY = (
    "Stability: share of replicates, positions moved by their standard errors, in which an object is assigned to its "
    "group; objects below .9 lie between groups. High stability means that there are enough responses to locate the "
    "borders, not that there are gaps: the parts of a continuum can be stable, too."
)
CLEARNESS = (
    "Clearness of each number of groups: how empty the borders between groups are, and how much of the variance this "
    "number explains beyond one group fewer or more; in standard deviations of continua, where 0 is the mean. The "
    "number with the clearest groups is reported."
)
CRITERION = (
    "SPUR objective (higher is better, at most 1): how close the relaxed solution is to a partition. It compares "
    "numbers of clusters; it does not say whether there are clusters."
)


def section(material: Material) -> Section:
    """What was found, and how far it may be believed."""
    artifact, program = grouping(material.published.artifacts), material.artifact(PROGRAM)
    if artifact is None:
        return Section(TITLE, "Groups were not looked for yet.", notes=(material.facts.commands.how_to_fit(ANSWER),))
    if not material.facts.positions_comparable:
        return Section(TITLE, _text(material))
    beside: tuple[str, tuple[Table, ...]] = ("", ())
    if program is not None and material.facts.cluster_answer.get("grade") != CANNOT_TELL:
        beside = _program(program, artifact)
    says, notes = _text(material), [beside[0]]
    labels = material.cluster[: len(artifact.arrays["labels"])]
    sizes = np.bincount(labels[labels >= 0]) if (labels >= 0).any() else np.empty(0, int)
    if not len(sizes):
        if artifact.kind == PROGRAM:
            says = f"{says} No object was clustered.".strip()
        return Section(TITLE, says, (), beside[1], tuple(filter(None, notes)))
    word = part_name(material)
    says += f" The partition assigns {amount(int(sizes.sum()), 'object')} to {_parts(material, len(sizes))}."
    members = [listing([material.names[i] for i in np.flatnonzero(labels == k).tolist()], 8) for k in range(len(sizes))]
    columns = {word: list(range(1, len(sizes) + 1)), "objects": sizes.tolist(), "among them": members}
    tables, drawings = [Table("clusters", columns)], list[Drawing]()
    if artifact.kind == ANSWER:
        if artifact.arrays["stability"].any() and len(sizes) > 1:
            stability = artifact.arrays["stability"]
            columns["stability"] = [float(np.mean(stability[labels == k])) for k in range(len(sizes))]
            columns["between"] = [int((stability[labels == k] < MIN_CORE_STABILITY).sum()) for k in range(len(sizes))]
            tables[0] = Table("clusters", columns, about=STABILITY)
        if are_separated(material.facts.cluster_answer):
            tables += [*_between(material.names, artifact, labels, word), *_subgroups(material.names, artifact)]
        k, clearness = (artifact.arrays[f"tested_{name}"] for name in ("k", "clearness"))
        if len(k) > 1:
            drawings.append(_clearness(k, clearness, int(artifact.arrays["k"])))
            tables.append(
                Table(
                    "clearness", {"groups": k.tolist(), "clearness": clearness.tolist()}, about=CLEARNESS, folded=True
                )
            )
        notes.insert(0, explained(material.facts.cluster_answer))
    return Section(TITLE, says.strip(), tuple(drawings), (*tables, *beside[1]), tuple(filter(None, notes)))


def _parts(material: Material, n: int) -> str:
    """How many parts there are, an object by itself being no group."""
    answer = material.facts.cluster_answer
    return by_themselves({**answer, "k": n}) if are_separated(answer) else amount(n, part_name(material))


def _text(material: Material) -> str:
    return " ".join(f"{finding.text} {finding.command}".strip() for finding in material.findings["clusters"])


def _between(names: Sequence[str], artifact: Artifact, groups: np.ndarray, word: str) -> Iterator[Table]:
    """The objects that lie between groups, the least certain first."""
    labels, stability = artifact.arrays["labels"], artifact.arrays["stability"]
    cluster, second = numbers(labels), numbers(labels, artifact.arrays["second"])
    at = np.flatnonzero((groups >= 0) & (stability < MIN_CORE_STABILITY)) if stability.any() else np.empty(0, int)
    at = at[np.argsort(stability[at], kind="stable")]
    if len(at):
        columns = {
            "object": [names[i] for i in at.tolist()],
            word: cluster[at].tolist(),
            f"or {word}": [number if number >= 1 else None for number in second[at].tolist()],
            "stability": stability[at].tolist(),
        }
        yield Table("between", columns, ids=at, about=f"Objects between {word}s.")


def _subgroups(names: Sequence[str], artifact: Artifact) -> Iterator[Table]:
    """Groups that split again, a row a part."""
    cluster, subgroup = numbers(artifact.arrays["labels"]), artifact.arrays["subgroup"]
    rows = sorted({(int(cluster[i]), int(subgroup[i])) for i in np.flatnonzero(subgroup >= 0)})
    if rows:
        members = [np.flatnonzero((cluster == group) & (subgroup == part)) for group, part in rows]
        columns = {
            "group": [group for group, _ in rows],
            "subgroup": [part + 1 for _, part in rows],
            "objects": [len(member) for member in members],
            "among them": [listing([names[i] for i in member.tolist()], 8) for member in members],
        }
        yield Table("subgroups", columns, about="Groups that split again.")


def _program(program: Artifact, shown: Artifact) -> tuple[str, tuple[Table, ...]]:
    """What the semidefinite program found, by name, which stands about SPUR's table if there is one."""
    report = program.report
    k, parts = figure(report, "k") or 0, []
    if k:
        by = {"spur": "SPUR chose", "lam": "lambda gave"}.get(str(report.get("k_by")), "given was")
        parts.append(f"Semidefinite program (Perrot et al. 2020): {by} k = {k:.0f}")
        parts.append(_certificate(report))
        one, other = program.arrays["labels"], shown.arrays["labels"]
        if shown is not program and len(one) == len(other) and (other >= 0).any():
            from stream_engine.clustering.stability import agreement

            ari = agreement(one, other)
            parts.append(
                "" if ari is None else f"adjusted Rand index {ari:.2f} with the partition that is stated first"
            )
    criterion = report.get("criterion")
    statement = "; ".join(filter(None, parts)) + ("." if parts else "")
    if not isinstance(criterion, Mapping) or len(criterion) < 2:
        return statement, ()
    unsolved = report.get("criterion_not_converged") or []
    tried = sorted(criterion, key=int)  # a file has the texts in their own order
    rows: dict[str, list[Any]] = {"clusters": list(map(int, tried)), "SPUR": [criterion[k] for k in tried]}
    rows["converged"] = ["no" if k in unsolved else "yes" for k in rows["clusters"]]
    return "", (Table("SPUR", rows, about=f"{statement} {CRITERION}", folded=True),)


def _certificate(report: Mapping[str, Any]) -> str:
    """Whether the optimum is proven, which says nothing about clusters."""
    if report.get("certified"):
        return "proven to be the optimum, which does not say that there are clusters"
    gap = figure(report, "gap")
    return "not proven to be the optimum" + (f" (gap {gap:.2g})" if gap else "")


def _clearness(k: np.ndarray, clearness: np.ndarray, chosen: int) -> Drawing:
    return Drawing(
        "clearness",
        "Clearness for each number of groups",
        f"How clear {k.min()} to {k.max()} groups are; the clearest number is {chosen}.",
        Axis(
            "number of groups",
            ticks=tuple((float(number), str(number)) for number in k.tolist()) if len(k) < 20 else None,
        ),
        Axis("clearness"),
        (Bars(k.astype(float), clearness.astype(float), k == chosen),),
        width=480,
        height=260,
    )
