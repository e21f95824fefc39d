"""How far people agree: with each other, and with themselves. No model can be expected to do better."""

from stream_engine.report import Section, Table
from stream_engine.report.material import Material
from stream_engine.report.words import percent, some
from stream_engine.statistics import judgement_folds
from stream_engine.statistics.held_out import ceiling


def section(material: Material) -> Section:
    """The ceiling, from questions that were answered more than once."""
    found = ceiling(judgement_folds.evidence(material.snapshot, 0))
    summary = material.summary
    both, again = summary["contradicting_pairs"], None if found is None else found.others
    if found is None or (again is None and found.themselves is None):
        return Section(
            "How far people agree",
            "Too few answers to say: hardly any question was answered more than once, so nobody knows how well any "
            "model could do. Ask some questions again to find out.",
        )
    says = (
        f"When a question was answered more than once, an answer was that of the majority of the others "
        f"{percent(again)} of the time."
        if again is not None
        else "Too few questions were answered by more than one person to say how far people agree with each other."
    )
    if found.at_most is not None:
        says += f" On such questions no model that answers alike for everybody is right above {percent(found.at_most)}."
    if found.themselves is not None:
        says += f" The same person answered in the same way {percent(found.themselves)} of the time."
    rows = {
        "with": ["others", "themselves"],
        "agree": [found.others, found.themselves],
        "answers": [found.answers, found.own_answers],
    }
    notes = (f"{some(both, 'question was', 'questions were')} answered both ways.",)
    return Section("How far people agree", says, (), (Table("agreement", rows),), notes)
