"""What to ask next: advice, some questions, and the command for more."""

from stream_engine import asking
from stream_engine.asking.known import known_from
from stream_engine.report import Section, Table
from stream_engine.report.findings.words import some
from stream_engine.report.material import Material

ENOUGH = 10  # answers about each object, below which any question about it helps
SUGGESTED = 10
LARGEST = 10_000  # objects, above which questions are left to `ask`: they take a while
NEXT = "What to ask next"


def section(material: Material) -> Section:
    """One piece of advice, the questions, and the command for more."""
    answers = material.answers.answers
    if len(answers) < 3:
        return Section(NEXT, "Questions need at least three objects.")
    commands = material.facts.commands
    says, note = _advice(material), f"{commands.first}stream-engine ask --state {commands.state} --n 100"
    if len(answers) > LARGEST:
        return Section(NEXT, says, notes=(note,))
    try:
        known = known_from(material.snapshot, material.artifact("embedding"))
        left = asking.questions_left(known)
        if not left:
            return Section(NEXT, "Every question about three objects has been answered.")
        asked = asking.questions(known, min(SUGGESTED, left))
    except asking.CannotAsk as error:
        return Section(NEXT, says, notes=(str(error), note))
    anchor, left_one, right_one = ([material.names[i] for i in column] for column in asked.rows.T.tolist())
    columns = {"anchor": anchor, "left": left_one, "right": right_one, "chosen by": asked.sampler.tolist()}
    about = "Which of the two is more like the anchor? Sorted by priority."
    return Section(NEXT, says, (), (Table("questions", columns, about=about),), (note,))


def _advice(material: Material) -> str:
    answers = material.answers.answers
    if not material.by_object:
        return "Questions about the objects with the fewest comparisons come first."
    if thin := int((answers < ENOUGH).sum()):
        return f"{some(thin, 'object has', 'objects have')} fewer than {ENOUGH} comparisons: ask about these first."
    return (
        f"Each of the {len(answers):,} objects has at least {ENOUGH} comparisons. The questions balance the number of "
        "comparisons per object and per pair of objects (strategy coverage, without a model)."
    )
