"""What to ask next: the first questions that `ask` would give, and the command for more."""

from stream_engine import asking
from stream_engine.asking.known import known_from
from stream_engine.report import Section, Table
from stream_engine.report.findings.words import some
from stream_engine.report.material import Material

ENOUGH = 10  # answers about each object, below which any question about it helps
SHOWN = 10
LARGEST = 10_000  # objects, above which questions are left to `ask`: they take a while
TITLE = "What to ask next"


def section(material: Material) -> Section:
    """One piece of advice, the questions, and the command for more."""
    answers = material.answers.answers
    if len(answers) < 3:
        return Section(TITLE, "Questions need at least three objects.")
    says, note = _says(material), f"stream-engine ask --state {material.directory} --n 100"
    if len(answers) > LARGEST:
        return Section(TITLE, says, notes=(note,))
    try:
        known = known_from(material.snapshot, material.artifact("embedding"))
        left = asking.questions_left(known)
        if not left:
            return Section(TITLE, "Every question about three objects has been answered.")
        asked = asking.questions(known, min(SHOWN, left))
    except asking.CannotAsk as error:
        return Section(TITLE, says, notes=(str(error), note))
    anchor, left_one, right_one = ([material.names[i] for i in column] for column in asked.rows.T.tolist())
    columns = {"anchor": anchor, "left": left_one, "right": right_one, "chosen by": asked.sampler.tolist()}
    about = "Which of the two is more like the anchor? Sorted by priority."
    return Section(TITLE, says, (), (Table("questions", columns, about=about),), (note,))


def _says(material: Material) -> str:
    answers = material.answers.answers
    if not material.by_object:
        return "Questions about the objects with the fewest answers come first."
    if thin := int((answers < ENOUGH).sum()):
        return f"{some(thin, 'object has', 'objects have')} fewer than {ENOUGH} answers: ask about these first."
    return (
        f"Each of the {len(answers):,} objects has at least {ENOUGH} answers. The questions balance the number of "
        "answers per object and per pair of objects (strategy coverage, without a model)."
    )
