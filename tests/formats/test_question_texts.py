"""What questions in words ask for: negations turn it, and what is not certain is asked."""

from collections import Counter
from random import Random

import pytest

from stream_engine.formats.question_texts import asked
from stream_engine.formats.reading import in_doubt
from tests.support.readings import comparisons, inferred, saved

NEARER = (
    "Which one is more like the target?",
    "Which of the two different birds is more similar to the target?",
    "All pictures are different: which of them is closest to the one on top?",
    "Which of these is not different from the target?",
    "Qual é mais parecido com o objeto no topo?",
    "どちらが似ていますか",
    "哪个更相似",
    "Not only the colour counts: which one matches the target best?",
)
FARTHER = (
    "Which one does not go with the one on top?",
    "Which one doesn\u2019t match the target?",
    "Which of these two is not like the picture above?",
    "Click the picture that does NOT belong with the reference.",
    "Which one would you remove from the group of the reference?",
    "Which one has nothing in common with the target?",
    "Welches Bild passt nicht zum oberen Bild?",
    "Welches Bild ähnelt dem Ziel am wenigsten?",
    "Lequel ne ressemble pas à la cible ?",
    "¿Cuál de las dos no se parece al modelo?",
    "Quale non appartiene al gruppo?",
    "Qual não pertence ao grupo?",
    "Welke past niet bij het doel?",
    "Vilken bild liknar inte den övre?",
    "Hvilket bilde passer ikke til målet?",
    "哪个更不相似",
    "どちらが似ていないですか",
    "어느 것이 비슷하지 않습니까?",
    "Który obrazek nie pasuje do wzoru?",
)
UNSURE = (
    "Which one is not a good partner for the target?",
    "Which pair partner is worse for the target?",
    "Which is not the least similar one of these?",
)
UNKNOWN = ("Which one would you rather eat with the target?",)


@pytest.mark.parametrize("text", NEARER)
def test_a_question_asks_for_the_nearer_object(text):
    assert asked(text)[:2] == (1, "")


@pytest.mark.parametrize("text", FARTHER)
def test_a_question_asks_for_the_farther_object(text):
    assert asked(text)[:2] == (-1, "")


@pytest.mark.parametrize("text", UNSURE + UNKNOWN)
def test_it_is_not_certain_what_a_question_asks_for(text):
    assert asked(text).sign == 0 and asked(text).doubt


@pytest.mark.parametrize("text", ["left picture", "Please wait for the next picture.", "cat on a mat", "trial 7 of 20"])
def test_other_texts_ask_for_nothing(text):
    assert asked(text) == (0, "", False)


def answered(questions=(), header="choice"):
    """Rows of answers that name the second option, with a question each, if there are any."""
    random, rows = Random(0), []
    for number in range(40):
        target, one, other = random.sample([*"abcdefgh"], 3)
        row = {"participant": f"p{number % 4}", "target": target, "option1": one, "option2": other, header: other}
        rows.append(({"question": questions[number % len(questions)]} if questions else {}) | row)
    return rows


def nearer_is_chosen(settings, rows):
    """Whether the chosen object is read as the nearer one in all rows; None where it is in some."""
    near = Counter((row["participant"], row["target"], row["option2"], row["option1"]) for row in rows)
    far = Counter((who, target, other, one) for (who, target, one, other), n in near.items() for _ in range(n))
    return {tuple(near.items()): True, tuple(far.items()): False}.get(tuple(comparisons(settings).items()))


@pytest.mark.parametrize("text", [*NEARER, *FARTHER])
@pytest.mark.parametrize("in_header", [False, True])
def test_a_question_in_a_column_or_in_the_header_says_the_direction(tmp_path, text, in_header):
    rows = answered(header=text) if in_header and " " in text else answered([text])
    path = saved(tmp_path, rows)
    found = inferred(path)
    assert nearer_is_chosen(found.settings, rows) is (text in NEARER)
    denies = asked(text).denies
    other = found.settings.input.answer_is == "farther"
    assert bool(in_doubt(found.evidence)) == denies
    for said in in_doubt(found.evidence):
        assert text[:60] in said and "stream-engine run" in said and ("--answer-is farther" in said) != other


@pytest.mark.parametrize("text", UNSURE)
def test_a_question_that_is_not_certain_is_asked_with_both_commands(tmp_path, text):
    found = inferred(saved(tmp_path, answered([text])))
    assert text in found.problem and found.problem.count("stream-engine run") == 2
    assert found.problem.count("--answer-is farther") == 1


@pytest.mark.parametrize("text", UNSURE)
def test_the_name_of_the_answers_settles_a_question_that_is_not_certain(tmp_path, text):
    rows = answered([text], "least_similar")
    path = saved(tmp_path, rows)
    assert nearer_is_chosen(inferred(path).settings, rows) is False


@pytest.mark.parametrize("text", UNKNOWN)
def test_of_a_question_with_no_known_word_is_said_how_it_is_read(tmp_path, text):
    found = inferred(saved(tmp_path, answered([text])))
    (said,) = in_doubt(found.evidence)
    assert text in said and "are read as the nearer object" in said and "--answer-is farther" in said


def test_questions_that_differ_are_read_each_by_itself(tmp_path):
    questions = ["Which one goes with the target?", "Which one does not go with the target?"]
    found = inferred(saved(tmp_path, answered(questions)))
    assert "--where 'question!=Which one does not go with the target?'" in found.problem
    assert "--where 'question=Which one does not go with the target?' --answer-is farther" in found.problem


def test_of_several_questions_the_one_that_is_not_certain_is_asked(tmp_path):
    found = inferred(saved(tmp_path, answered(["Which one is more like the target?", UNSURE[0]])))
    assert found.problem.count("stream-engine run") == 3 and found.problem.count("--answer-is farther") == 1


def test_comments_that_deny_something_are_no_questions(tmp_path):
    rows = [{"note": f"I was not sure about number {number}"} | row for number, row in enumerate(answered())]
    found = inferred(saved(tmp_path, rows))
    assert not found.problem and not in_doubt(found.evidence)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("Welches der beiden Bilder unterscheidet sich stärker vom Referenzbild?", -1),
        ("Quelle image diffère le plus du modèle ?", -1),
        ("Welches passt schlechter?", -1),
        ("Any comments?", 0),
        ("Why not?", 0),
        ("Welches passt besser?", 1),
        ("Hangisi hedefe en az benziyor?", -1),
        ("Hangisi hedefe daha çok benziyor?", 1),
        ("Melyik hasonló jobban az alábbi képhez?", 1),
    ],
)
def test_verbs_that_say_that_objects_differ(text, sign):
    assert asked(text).sign == sign and not asked(text).doubt
