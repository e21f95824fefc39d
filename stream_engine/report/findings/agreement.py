"""Inter-rater and test-retest agreement, conflicting answers, and what the partial order drops.

How many participants were checked and flagged: see `evaluation.participants`.
"""

from collections.abc import Iterator

import numpy as np

from stream_engine.evaluation.response_checks import LEAST
from stream_engine.report.findings import GAP, WARNING, Finding
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.words import count, percent, some
from stream_engine.state.artifact import figure
from stream_engine.state.snapshot import triplet_columns

FEWEST = 5  # participants, below which flags are not counted: a count could identify a person


def participants(facts: Facts) -> Iterator[Finding]:
    """How many participants were checked and flagged; names are shown only on request."""
    found = facts.participants
    if found is None:
        if facts.summary["comparisons"]:
            text = "There is no participant column, so guessing cannot be assessed."
            yield Finding("participants_unknown", text, level=GAP, command="stream-engine preview SOURCE")
        return
    people = len(found.names)
    figures = {"participants": people, "flagged": found.flagged}
    if people < FEWEST:
        yield Finding(
            "participants", f"{some(people, 'participant')} answered, too few to compare with each other.", figures
        )
        return
    if again := int(found.responding.duplicates.sum()):
        text = (
            f"{some(again, 'answer was', 'answers were')} recorded more than once, by the same participant at the same "
        )
        yield Finding("duplicates", f"{text}time.", {"answers": again}, level=WARNING)
    judged = int((np.minimum(found.responses, np.isfinite(found.accuracy) * found.responses) >= LEAST).sum())
    if facts.beats_chance is False and not found.flagged:
        text = "Individual participants cannot be assessed, because no model predicts the answers better than chance."
        yield Finding("participants_gated", text, {"participants": people})
    elif found.flagged:
        share = percent(found.flagged / people, 0)
        were = "was" if found.flagged == 1 else "were"
        text = (
            f"{count(found.flagged)} of {some(people, 'participant')} ({share}) {were} flagged: {_why(found.reasons)}."
        )
        command = f"stream-engine report --state {facts.directory} --workers --out report.html"
        yield Finding("participants_flagged", text, figures, command, WARNING)
    else:
        text = (
            f"No participant was flagged as guessing ({count(judged)} of {count(people)} gave enough answers to be "
            "checked)."
        )
        yield Finding("participants", text, figures | {"checked": judged})


def _why(reasons: tuple[str, ...]) -> str:
    """The kinds of reasons, each with the number of participants."""
    kinds = {
        "at chance level": "answers at chance level",
        "the opposite": "answers opposite to all others",
        "catch trials": "failed catch trials",
        "lapse rate": "mostly random answers",
        "at position": "mostly one position chosen",
        "in a row": "straight-lining",
        "within": "answers faster than 300 ms",
    }
    told = {text: sum(key in reason for reason in reasons) for key, text in kinds.items()}
    return "; ".join(f"{text} ({count(n)})" for text, n in told.items() if n)


def agreement(facts: Facts) -> Iterator[Finding]:
    """Inter-rater and test-retest agreement, and conflicting answers."""
    summary, found = facts.summary, facts.ceiling
    if not summary["comparisons"]:
        return
    others, own, answers = (figure(found, name) for name in ("others", "themselves", "answers"))
    if others is not None:
        text = "Inter-rater agreement: an answer matches the majority of the other answers to the same question in "
        text += f"{percent(others)}" + (f" ({count(answers)} answers)." if answers else ".")
        yield Finding("inter_rater_agreement", text, {"share": others, "answers": answers})
    elif facts.published.artifacts:
        text = (
            "Inter-rater agreement is unknown: almost no question has more than one answer. Ask some questions again."
        )
        yield Finding("agreement_unknown", text, level=GAP)
    if own is not None:
        text = f"The same participant, asked again, gives the same answer in {percent(own)}."
        yield Finding("test_retest_agreement", text, {"share": own})
    if not summary["triplets"]:
        return
    columns = triplet_columns(facts.published.snapshot)
    ties = int(np.count_nonzero((columns.n_lo == columns.n_hi) & (columns.n_lo > 0)))
    pairs, minority = summary["contradicting_pairs"], summary["contradicting_triplets"] / summary["triplets"]
    figures = {"questions": pairs, "ties": ties, "share": minority}
    if pairs:
        text = f"{some(pairs, 'question has', 'questions have')} conflicting answers ({count(ties)} of them tied); "
        text += f"{percent(minority)} of answers disagree with the majority for their question (ties count half)."
    else:
        text = "No answer conflicts with another."
    yield Finding("conflicting_answers", text, figures)


def order(facts: Facts) -> Iterator[Finding]:
    """What the partial order keeps and drops."""
    guard = facts.summary["guard"]
    again, against, cycles = (guard.get(each, 0) for each in ("duplicate", "contradiction", "cycle"))
    kept = facts.summary["order_kept"]  # now: `accepted` counts from the beginning, whatever was forgotten since
    if not kept:
        return
    text = f"The partial order keeps {some(kept, 'comparison')}; {count(again)} later comparisons repeated one of them."
    if against or cycles:
        text += (
            f" It dropped {count(against)} comparisons that contradict one that it keeps and {count(cycles)} that "
            "would close a cycle. Only the partial order drops comparisons; map, clusters and similarities use all "
            "of them."
        )
    yield Finding("partial_order", text, {"kept": kept, **guard})
