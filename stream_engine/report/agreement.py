"""How far people agree: with each other, and with themselves. No model can be expected to do better."""

from stream_engine.exports.in_words import FEWEST_PEOPLE, guessers
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
            "model could do. Ask some questions again to find out." + _guessing(material),
            notes=_who(material),
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
    says += _guessing(material)
    rows = {
        "with": ["others", "themselves"],
        "agree": [found.others, found.themselves],
        "answers": [found.answers, found.own_answers],
    }
    notes = (f"{some(both, 'question was', 'questions were')} answered both ways.", *_who(material))
    return Section("How far people agree", says, (), (Table("agreement", rows),), notes)


def _guessing(material: Material) -> str:
    """How many people seem to answer like a coin; who, is told only where that is asked for."""
    guessing, people = _guessers(material)
    if people < FEWEST_PEOPLE:
        return ""
    if not guessing:
        return f" Of {people:,} people nobody seems to guess."
    return (
        f" {guessing:,} of {people:,} people ({percent(guessing / people, 0)}) "
        f"{'seems' if guessing == 1 else 'seem'} to guess most of the time: more than half of their answers come as a "
        "coin's would, and count less for it."
    )


def _guessers(material: Material) -> tuple[int, int]:
    artifact = material.artifact("embedding")
    return guessers(artifact.arrays) if artifact else (0, 0)


def _who(material: Material) -> tuple[str, ...]:
    """The command that names them, where the page does not."""
    guessing, people = _guessers(material)
    if material.workers or not guessing or people < FEWEST_PEOPLE:
        return ()
    return (f"Who they are: stream-engine report --state {material.directory} --workers --out report.html",)
