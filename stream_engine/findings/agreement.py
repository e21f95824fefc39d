"""Inter-rater and test-retest agreement, conflicting answers, and what the partial order drops."""

from collections.abc import Iterator

import numpy as np

from stream_engine.findings import GAP, Finding
from stream_engine.findings.facts import Facts
from stream_engine.findings.words import count, percent, some
from stream_engine.state.artifact_figures import figure
from stream_engine.state.snapshot import triplet_columns


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
