"""What to ask next: advice, some questions, and the command for more."""

from stream_engine import asking
from stream_engine.asking.as_events import choose_for_type
from stream_engine.asking.knowledge import knowledge_of
from stream_engine.data.numbers_in_words import amount
from stream_engine.evaluation.few_comparisons import MIN_COMPARISONS
from stream_engine.report import Section, Table
from stream_engine.report.findings.data import KINDS
from stream_engine.report.findings.words import listing
from stream_engine.report.material import Material

MAX_SUGGESTED = 10
MAX_OBJECTS = 10_000  # objects, above which questions are left to `ask`: they take a while
TITLE = "What to ask next"
ODD_ONE_OUT = "odd_one_out"


def section(material: Material) -> Section:
    """One piece of advice, the questions, and the command for more."""
    answers = material.answers.answers
    if len(answers) < 3:
        return Section(TITLE, "Questions need at least three objects.")
    commands = material.facts.commands
    kind = _kind(material)
    with_type = f" --type {kind}" if kind == ODD_ONE_OUT else ""
    ask = material.facts.on_a_state(f"stream-engine ask --state {commands.state} --n 100{with_type}")
    says, note = _advice(material), f"For more questions: {ask}"
    if len(answers) > MAX_OBJECTS:
        return Section(TITLE, says, notes=(note,))
    try:
        knowledge = knowledge_of(material.snapshot, material.artifact("embedding"))
        n_open = asking.questions_left(knowledge)
        if not n_open:
            return Section(TITLE, "Every question about three objects has been answered.")
        n_sets = -(-n_open // 3) if kind == ODD_ONE_OUT else n_open  # a set of three objects has up to three questions
        asked = choose_for_type(kind, knowledge, min(MAX_SUGGESTED, n_sets), asking.DEFAULT, 0, asking.RANDOM_SHARE)
    except asking.CannotAsk as error:
        return Section(TITLE, says, notes=(str(error), note))
    anchor, left_one, right_one = ([material.names[i] for i in column] for column in asked.rows.T.tolist())
    heads = ("first", "second", "third") if kind == ODD_ONE_OUT else ("anchor", "left", "right")
    columns = {**dict(zip(heads, (anchor, left_one, right_one))), "chosen by": asked.sampler.tolist()}
    about = "Which of the two is more like the anchor? Sorted by priority."
    if kind == ODD_ONE_OUT:
        about = "Which of the three is the odd one out? Sorted by priority."
    elif others := _kinds_of_other_questions(material):
        about += f" They are about three objects although answers are {listing(others)} answers: what the next answer "
        about += "would tell is computed for such questions alone."
    return Section(TITLE, says, (), (Table("questions", columns, about=about),), (note,))


def _kind(material: Material) -> str:
    """The type of the questions: that of the study where questions of this type can be chosen."""
    return ODD_ONE_OUT if {*material.summary["kinds"]} - {"label"} == {ODD_ONE_OUT} else "triplet"


def _kinds_of_other_questions(material: Material) -> list[str]:
    """What answers are called that are not about an anchor and two others."""
    kinds, answers = material.summary["kinds"], material.facts.answers
    of_several = answers is not None and material.summary["comparisons"] > answers  # a pick of one of two gives one
    of_two = {"label", "triplet"} if of_several else {"label", "triplet", "pick"}
    return [KINDS.get(kind, kind) for kind in kinds if kind not in of_two]


def _advice(material: Material) -> str:
    answers = material.answers.answers
    if not material.by_object:
        return "Questions about the objects with the fewest comparisons come first."
    if thin := int((answers < MIN_COMPARISONS).sum()):
        few = amount(thin, "object has", "objects have")
        return f"{few} fewer than {MIN_COMPARISONS} comparisons: ask about these first."
    return (
        f"Each of the {len(answers):,} objects has at least {MIN_COMPARISONS} comparisons. The questions balance the "
        "number of comparisons per object and per pair of objects (strategy coverage, without a model)."
    )
