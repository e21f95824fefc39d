"""What to ask next: advice, some questions, and the command for more."""

from stream_engine import asking
from stream_engine.asking.knowledge import knowledge_of
from stream_engine.evaluation.few_comparisons import MIN_COMPARISONS
from stream_engine.report import Section, Table
from stream_engine.report.findings.words import some
from stream_engine.report.material import Material

MAX_SUGGESTED = 10
MAX_OBJECTS = 10_000  # objects, above which questions are left to `ask`: they take a while
TITLE = "What to ask next"


def section(material: Material) -> Section:
    """One piece of advice, the questions, and the command for more."""
    answers = material.answers.answers
    if len(answers) < 3:
        return Section(TITLE, "Questions need at least three objects.")
    commands = material.facts.commands
    ask = material.facts.on_a_state(f"stream-engine ask --state {commands.state} --n 100")
    says, note = _advice(material), f"For more questions: {ask}"
    if len(answers) > MAX_OBJECTS:
        return Section(TITLE, says, notes=(note,))
    try:
        knowledge = knowledge_of(material.snapshot, material.artifact("embedding"))
        n_open = asking.questions_left(knowledge)
        if not n_open:
            return Section(TITLE, "Every question about three objects has been answered.")
        asked = asking.questions(knowledge, min(MAX_SUGGESTED, n_open))
    except asking.CannotAsk as error:
        return Section(TITLE, says, notes=(str(error), note))
    anchor, left_one, right_one = ([material.names[i] for i in column] for column in asked.rows.T.tolist())
    columns = {"anchor": anchor, "left": left_one, "right": right_one, "chosen by": asked.sampler.tolist()}
    about = "Which of the two is more like the anchor? Sorted by priority."
    return Section(TITLE, says, (), (Table("questions", columns, about=about),), (note,))


def _advice(material: Material) -> str:
    answers = material.answers.answers
    if not material.by_object:
        return "Questions about the objects with the fewest comparisons come first."
    if thin := int((answers < MIN_COMPARISONS).sum()):
        few = some(thin, "object has", "objects have")
        return f"{few} fewer than {MIN_COMPARISONS} comparisons: ask about these first."
    return (
        f"Each of the {len(answers):,} objects has at least {MIN_COMPARISONS} comparisons. The questions balance the "
        "number of comparisons per object and per pair of objects (strategy coverage, without a model)."
    )
