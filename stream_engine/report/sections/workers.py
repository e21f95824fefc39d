"""Participants one by one, with the checks of their answers. Only where somebody asked for them."""

import shlex

import numpy as np

from stream_engine.data.numbers_in_words import amount
from stream_engine.exports import NothingToExport
from stream_engine.exports.workers import workers
from stream_engine.report import Section, Table
from stream_engine.report.drawings import Axis, Bars, Drawing
from stream_engine.report.findings.agreement import own_view
from stream_engine.report.findings.words import listing
from stream_engine.report.material import Material

TITLE = "Participants"
ABOUT = (
    "Accuracy against others: share of a participant's answers that the similarities of all other participants "
    "predict, with 95 % CI. Lapse rate: estimated share of answers that do not follow the map, because they are "
    "random, the other way round, or by another view. Median seconds, within a tenth, and share under 300 ms: "
    "response times, or else from one answer of the participant to the next. Position, and share at it: the "
    "position whose share is least probable by chance. Longest run: of answers at the same position. Duplicates: the "
    "same answer recorded again with the same time."
)
OF_RELIABILITY = (
    " Agreed, disagreed: answers with, or against, the majority of the other participants. Repeats: answers to a "
    "question that the participant had answered before; contradictions: those that differ. Weight: of an answer in "
    "weighted counts."
)


def section(material: Material) -> Section | None:
    """A row a participant, flagged ones first; None unless participants are asked for."""
    if not material.workers:
        return None
    checks = material.facts.participants
    if checks is None:
        if material.published.excluded:
            return Section(TITLE, " ".join(f"{each.text} {each.command}" for each in material.findings["participants"]))
        return Section(TITLE, "There is no participant column.")
    order = sorted(range(len(checks.names)), key=lambda i: (not checks.reasons[i], checks.names[i]))
    responding = checks.responding
    columns = {
        "participant": [checks.names[i] for i in order],
        "flagged because": [checks.reasons[i] for i in order],
        "responses": checks.responses[order].tolist(),
        "accuracy against others": checks.accuracy[order].tolist(),
        "from": checks.low[order].tolist(),
        "to": checks.high[order].tolist(),
        "lapse rate": checks.lapse[order].tolist(),
    }
    if np.isfinite(responding.seconds).any():
        columns["median seconds"] = responding.seconds[order].tolist()
        columns["under 300 ms"] = responding.fast[order].tolist()
    if (checks.passed + checks.failed).any():
        columns |= {"catch trials passed": checks.passed[order].tolist()}
        columns |= {"catch trials failed": checks.failed[order].tolist()}
    if responding.duplicates.any():
        columns["duplicates"] = responding.duplicates[order].tolist()
    if responding.shown.any():
        columns |= {
            "position": [
                f"{at + 1} of {of}" if of else ""
                for at, of in zip(responding.position[order].tolist(), responding.shown[order].tolist())
            ],
            "share at it": responding.share[order].tolist(),
            "longest run": [n or None for n in responding.longest[order].tolist()],
        }
    of_reliability = _reliability(material, columns["participant"])
    columns |= of_reliability
    about = ABOUT + (OF_RELIABILITY if of_reliability else "")
    flagged = [columns["participant"][i] for i in range(checks.flagged)]
    says = f"{amount(len(checks.names), 'participant')} answered. "
    flags = f"{amount(len(flagged), 'is', 'are')} flagged: {listing(flagged)}."
    if flagged:
        says += flags
    elif material.facts.beats_chance is False:
        says += f"Guessing cannot be assessed, because {material.facts.at_chance} the answers better than chance."
    elif not checks.tested.any():
        says += "Nobody gave enough answers to be checked for guessing; no participant is flagged for anything else."
    else:
        says += "No participant is flagged."
    says += own_view(material.facts, checks)
    lapse_rates = np.sort(checks.lapse[np.isfinite(checks.lapse)])[::-1]
    drawings = (_lapses(lapse_rates),) if len(lapse_rates) > 1 else ()
    notes = (f"To exclude participants (reversible): {_command(material, flagged)}",) if flagged else ()
    return Section(TITLE, says, drawings, (Table("workers", columns, about=about),), notes)


def _command(material: Material, names: list[str]) -> str:
    """The command that excludes these participants."""
    out = " ".join(f"--exclude {shlex.quote(f'participant={name}')}" for name in names)
    return f"{material.facts.commands.report} {out}"


def _reliability(material: Material, names: list[str]) -> dict:
    """What the refit `reliability` says, where it was made."""
    try:
        table = workers(material.published)["workers"].tables["workers"]
    except NothingToExport:
        return {}
    row = {name: i for i, name in enumerate(table["worker"])}
    at = [row.get(name) for name in names]
    wanted = ("agreed", "disagreed", "repeats", "contradictions", "weight")
    return {head: [None if i is None else np.asarray(table[head])[i].item() for i in at] for head in wanted}


def _lapses(lapse: np.ndarray) -> Drawing:
    return Drawing(
        "workers",
        "Lapse rates of participants",
        f"One bar per participant, the highest lapse rate first; from {lapse.min():.2f} to {lapse.max():.2f}.",
        Axis("participants in order", ticks=()),
        Axis("lapse rate", low=0.0, high=1.0),
        (Bars(np.arange(len(lapse), dtype=float), lapse, lapse > 0.5),),
        height=260,
    )
