"""Files of answers in every layout that labs write, with what they say: vocabulary x layout x coding x container.

`generated(seed)` is one file, drawn at random. Its truth is known, because the answers are made first and then written
down. Some files hold a trap: a column that reverses answers, a second answer, words that name no object.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

OBJECTS = (
    ("cat", "dog", "owl", "pig", "hen", "emu", "ant", "bee", "cow", "elk", "fox", "gnu"),
    ("img/01.png", "img/02.png", "img/03.png", "img/04.png", "img/05.png", "img/06.png", "img/07.png", "img/08.png"),
    ("DE", "FR", "NA", "IT", "GB", "US", "NO", "SE", "FI", "PL"),
    ("Löwe", "Bär", "Wolf", "Äffchen", "Igel", "Esel", "Pferd", "Fuchs", "Dachs"),
    ("blue whale", "red fox", "sea lion", "polar bear", "house cat", "wild boar", "barn owl", "field mouse"),
    ("None", "car", "bus", "tram", "bike", "ship", "jet", "van"),
)
ANCHORS = (
    *("anchor", "target", "reference", "probe", "ref", "standard", "head", "center", "query", "Referenz", "Bezug"),
    *("cible", "referencia", "sample", "cue", "x", "Input.target", "INPUT:reference", "Zielbild"),
)
TWO = (
    *(("left", "right"), ("Left", "Right"), ("option1", "option2"), ("optionA", "optionB"), ("imgLeft", "imgRight")),
    *(("stim_left", "stim_right"), ("choice_a", "choice_b"), ("links", "rechts"), ("Bild links", "Bild rechts")),
    *(("gauche", "droite"), ("izquierda", "derecha"), ("top", "bottom"), ("first", "second"), ("Input.a", "Input.b")),
    *(("item_1", "item_2"), ("pic0", "pic1"), ("OptionA", "OptionB"), ("INPUT:left", "INPUT:right"), ("p0", "p1")),
)
THREE = (
    *(("image_A", "image_B", "image_C"), ("left", "middle", "right"), ("left", "center", "right"), ("a", "b", "c")),
    *(("first", "second", "third"), ("stim1", "stim2", "stim3"), ("stimA", "stimB", "stimC"), ("A", "B", "C")),
    *(
        ("links", "mitte", "rechts"),
        ("Bild1", "Bild2", "Bild3"),
        ("item_0", "item_1", "item_2"),
        ("top", "middle", "bottom"),
    ),
    *(("object1", "object2", "object3"), ("gauche", "milieu", "droite"), ("img_first", "img_second", "img_third")),
)
PAIRS = (
    *(("left1", "left2", "right1", "right2"), ("pair1_a", "pair1_b", "pair2_a", "pair2_b"), ("a1", "a2", "b1", "b2")),
    *(("top_left", "top_right", "bottom_left", "bottom_right"), ("pairA_1", "pairA_2", "pairB_1", "pairB_2")),
    *(("left_1", "left_2", "right_1", "right_2"), ("p1_first", "p1_second", "p2_first", "p2_second")),
)
NEUTRAL = (
    "choice",
    "chosen",
    "response",
    "answer",
    "selected",
    "pick",
    "key_resp.keys",
    "Antwort",
    "Auswahl",
    "reponse",
    "eleccion",
    "OUTPUT:result",
    "Answer.choice",
    "decision",
    "clicked",
)
NEAR = (
    "more_similar",
    "mostSimilar",
    "closer",
    "nearest",
    "winner",
    "closest",
    "ähnlicher",
    "näher",
    "plus_proche",
    "masParecido",
    "best_match",
    "similar_choice",
    "am ähnlichsten",
)
FAR = (
    *(
        "less_similar",
        "leastSimilar",
        "farther",
        "farthest",
        "furthest",
        "most_different",
        "more_dissimilar",
        "odd",
        "loser",
    ),
    *(
        "odd_one_out",
        "rejected",
        "not_chosen",
        "worst",
        "least_like",
        "different",
        "dissimilar",
        "unähnlicher",
        "entfernter",
    ),
    *("weniger ähnlich", "moins_similaire", "menos_parecido", "plus_different", "unlike", "oddity"),
)
ODD = (
    "odd",
    "odd_one_out",
    "outlier",
    "oddOneOut",
    "ooo",
    "least_similar",
    "most_different",
    "different",
    "intrus",
    "Ausreißer",
    "intruso",
    "odd_response",
)
WORKERS = (
    "worker",
    "subject",
    "participant",
    "PROLIFIC_PID",
    "VP",
    "Participant Private ID",
    "user_id",
    "subject_id",
    "WorkerId",
    "CASE",
    "record_id",
    "ASSIGNMENT:worker_id",
)
LETTERS = "ABCDEFGH"


class Generated(NamedTuple):
    """A file, what it says, what it is called, and whether a trap lies in it."""

    what: str
    name: str
    content: bytes
    truth: Counter
    trap: str


class _Trials(NamedTuple):
    """Answers as they were given: what was shown, which of it was meant, and what that says."""

    rows: list[dict[str, Any]]
    truth: Counter


def generated(seed: int) -> Generated:
    """The file of a seed."""
    random = Random(seed)
    layout = random.choice(list(_LAYOUTS))
    trials, what, shown, answers = _LAYOUTS[layout](random, list(random.choice(OBJECTS)))
    trap = random.choice(list(TRAPS)) if random.random() < 0.35 else ""
    rows, truth = trials
    _add_harmless(random, rows)
    if trap and not TRAPS[trap].lay(random, rows, truth, shown, answers):
        trap = ""
    name, content = _container(random, rows)
    return Generated(f"{layout}, {what}{', ' + trap if trap else ''}", name, content, truth, trap)


# ---- layouts: the trials, a description, the columns of objects, and those of answers


def _people(random: Random, n: int) -> tuple[str, list[str]]:
    names = [f"S{number:02}" for number in range(random.choice((4, 6)))]
    return random.choice(WORKERS), [names[row * len(names) // n] for row in range(n)]


def _sides(names: Sequence[str], place: int, random: Random, index: int) -> str:
    """The place of an answer as a word of its column."""
    word = names[place]
    for prefix in (
        "Input.",
        "INPUT:",
        "stim_",
        "choice_",
        "image_",
        "img_",
        "Bild ",
        "img",
        "stim",
        "option",
        "Option",
        "item_",
        "pic",
        "object",
        "Bild",
    ):
        word = word.removeprefix(prefix)
    return (word, word.lower(), word.capitalize(), names[place])[index]


def _coded(random: Random, names: Sequence[str], n: int) -> tuple[str, Any]:
    """A coding, and the code of the object at a place, given what it is called."""
    coding = random.choice(("name", "name", "position", "index", "word", "column", "letter", "key"))
    style = random.randrange(4)
    if coding == "key" and not (n == 2 and any(word in "".join(names).lower() for word in ("left", "links", "gauche"))):
        coding = "name"
    if coding == "letter" and not all(name[-1].lower() == LETTERS[place].lower() for place, name in enumerate(names)):
        coding = random.choice(("position", "name"))
    codes = {
        "name": lambda place, called: called,
        "position": lambda place, called: place + 1,
        "index": lambda place, called: place,
        "word": lambda place, called: _sides(names, place, random, style),
        "column": lambda place, called: names[place],
        "letter": lambda place, called: LETTERS[place],
        "key": lambda place, called: ("f", "j")[place],
    }
    return coding, codes[coding]


def _pick_two(random: Random, objects: list[str]) -> tuple[_Trials, str, list[str], list[str]]:
    n, far = random.choice((60, 120)), random.random() < 0.4
    anchor, names = random.choice(ANCHORS), list(random.choice(TWO))
    neutral = not far and random.random() < 0.6
    answer = random.choice(NEUTRAL if neutral else FAR if far else NEAR)
    coding, code = _coded(random, names, 2)
    who, people = _people(random, n)
    rows, truth = [], Counter()
    one_hot = random.random() < 0.2
    for row in range(n):
        a, *two = random.sample(objects, 3)
        place = random.randrange(2)
        cells = {who: people[row], anchor: a, names[0]: two[0], names[1]: two[1]}
        if one_hot:
            words = [_sides(names, k, random, 1) for k in (0, 1)]
            stem = "less_similar" if far else "chosen"
            cells |= {f"{stem}_{word}": int(k == place) for k, word in enumerate(words)}
        else:
            cells[answer] = code(place, two[place])
        near = two[1 - place] if far else two[place]
        truth[people[row], a, near, next(each for each in two if each != near)] += 1
        rows.append(cells)
    answers = [key for key in rows[0] if key not in (who, anchor, *names)]
    return (
        _Trials(rows, truth),
        f"{anchor}|{'|'.join(names)}|{'|'.join(answers)} by {'flag' if one_hot else coding}",
        [anchor, *names],
        answers,
    )


def _near_far(random: Random, objects: list[str]) -> tuple[_Trials, str, list[str], list[str]]:
    n, anchor = 80, random.choice([each for each in ANCHORS if each != "x"])
    near, far = random.choice(
        (
            ("winner", "loser"),
            ("near", "far"),
            ("closer", "farther"),
            ("more_similar", "less_similar"),
            ("positive", "negative"),
            ("most_similar", "least_similar"),
            ("näher", "ferner"),
            ("similar", "dissimilar"),
        )
    )
    who, people = _people(random, n)
    rows, truth = [], Counter()
    wrong = (near, far) == ("positive", "negative") and random.random() < 0.5
    for row in range(n):
        a, b, c = random.sample(objects, 3)
        correct = not wrong or random.random() < 0.8
        rows.append({who: people[row], anchor: a, near: b, far: c} | ({"correct": int(correct)} if wrong else {}))
        truth[(people[row], a, b, c) if correct else (people[row], a, c, b)] += 1
    return _Trials(rows, truth), f"{anchor}|{near}|{far}{' correct' if wrong else ''}", [anchor, near, far], []


def _odd(random: Random, objects: list[str]) -> tuple[_Trials, str, list[str], list[str]]:
    n, names = random.choice((60, 120)), list(random.choice(THREE))
    answer = random.choice(ODD)
    coding, code = _coded(random, names, 3)
    who, people = _people(random, n)
    rows, truth = [], Counter()
    in_list = random.randrange(3)
    style = random.choice(("columns", "columns", "columns", "flags", "json", "python", "numpy", ";", ",", "pairs"))
    for row in range(n):
        three = random.sample(objects, 3)
        place = random.randrange(3)
        a, b = (each for each in three if each != three[place])
        truth[people[row], a, b, three[place]] += 1
        truth[people[row], b, a, three[place]] += 1
        lists = {
            "json": json.dumps(three, ensure_ascii=False),
            "python": str(three),
            "numpy": "[" + " ".join(map(repr, three)) + "]",
            ";": ";".join(three),
            ",": ",".join(three),
        }
        cells: dict[str, Any] = {who: people[row]}
        if style in lists:
            cells |= {"images": lists[style], answer: (three[place], place + 1, place)[in_list]}
        elif style == "flags":
            cells |= dict(zip(names, three)) | {f"odd_{k + 1}": int(k == place) for k in range(3)}
        elif style == "pairs":
            names = ["A", "B", "C"]
            cells |= dict(zip(names, three)) | {"most_similar_pair": ("BC", "AC", "AB")[place]}
        else:
            cells |= dict(zip(names, three)) | {answer: code(place, three[place])}
        rows.append(cells)
    shown = ["images"] if style in (*[";", ","], ",", "json", "python", "numpy") else names
    answers = [key for key in rows[0] if key != who and key not in shown]
    return _Trials(rows, truth), f"{style} {'|'.join(shown)}|{'|'.join(answers)} by {coding}", shown, answers


def _pick_many(random: Random, objects: list[str]) -> tuple[_Trials, str, list[str], list[str]]:
    size, k = random.choice((3, 4, 6)), random.choice((1, 2))
    n, anchor = 60, random.choice(ANCHORS)
    stem = random.choice(("opt{}", "option_{}", "item{}", "stim_{}", "choice{}"))
    names = [stem.format(place + 1) for place in range(size)]
    k = 1 if size == 3 else k
    style = random.choice(("names", "flags", "position", "ranks"))
    answers = random.choice(
        (
            ["selected1", "selected2"],
            ["choice_1", "choice_2"],
            ["pick1", "pick2"],
            ["closest", "second_closest"],
            ["chosen1", "chosen2"],
        )
    )[:k]
    who, people = _people(random, n)
    rows, truth = [], Counter()
    for row in range(n):
        a, *some = random.sample(objects, min(size + 1, len(objects)))
        chosen = random.sample(range(len(some)), k)
        cells = {who: people[row], anchor: a, **dict(zip(names, some))}
        if style == "names" or (style == "position" and k == 2):
            cells |= {answer: some[place] for answer, place in zip(answers, chosen)}
        elif style == "flags":
            cells |= {f"chosen_{place + 1}": int(place in chosen) for place in range(size)}
        elif style == "position":
            cells["response"] = chosen[0] + 1
        else:
            order = random.sample(range(size), size)
            cells |= {f"rank_{place + 1}": order.index(place) + 1 for place in range(size)}
            truth.update((people[row], a, some[x], some[y]) for at, x in enumerate(order) for y in order[at + 1 :])
        if style != "ranks":
            truth.update((people[row], a, some[x], some[y]) for x in chosen for y in range(size) if y not in chosen)
        rows.append(cells)
    keys = [key for key in rows[0] if key not in (who, anchor, *names)]
    return _Trials(rows, truth), f"{size} {style} {anchor}|{names[0]}..|{'|'.join(keys)}", [anchor, *names], keys


def _two_pairs(random: Random, objects: list[str]) -> tuple[_Trials, str, list[str], list[str]]:
    n, names, far = 80, list(random.choice(PAIRS)), random.random() < 0.3
    answer = random.choice(FAR[:7] if far else (*NEUTRAL[:6], *NEAR[:3]))
    who, people = _people(random, n)
    codes = {
        "left": ("Left", "Right"),
        "pair1_": ("pair1", "pair2"),
        "a1": ("a", "b"),
        "top_": ("top", "bottom"),
        "pairA_": ("A", "B"),
        "p1_f": ("p1", "p2"),
    }
    words = next(value for key, value in codes.items() if names[0].startswith(key))
    words = random.choice((words, words, ("1", "2")))
    rows, truth = [], Counter()
    for row in range(n):
        i, j, k, l = random.sample(objects, 4)
        place = random.randrange(2)
        rows.append({who: people[row], **dict(zip(names, (i, j, k, l))), answer: words[place]})
        near, far_pair = ((i, j), (k, l)) if (place == 0) != far else ((k, l), (i, j))
        truth[(people[row], *near, *far_pair)] += 1
    return _Trials(rows, truth), f"{'|'.join(names)}|{answer} {words[0]}", names, [answer]


def _votes(random: Random, objects: list[str]) -> tuple[_Trials, str, list[str], list[str]]:
    names, anchor = ["left_path", "right_path"], random.choice(("ref_path", "reference", "anchor"))
    counts = random.choice((["left_vote", "right_vote"], ["left_votes", "right_votes"], ["n_left", "n_right"]))
    share = random.random() < 0.4
    rows, truth = [], Counter()
    for _ in range(60):
        a, b, c = random.sample(objects, 3)
        left = random.randrange(6)
        votes = {"left_share": left / 5, "votes": 5} if share else dict(zip(counts, (left, 5 - left)))
        rows.append({anchor: a, names[0]: b, names[1]: c, **votes})
        truth.update({("", a, b, c): left, ("", a, c, b): 5 - left})
    return _Trials(rows, +truth), f"{'share' if share else counts[0]}", [anchor, *names], []


_LAYOUTS = {
    "pick of two": _pick_two,
    "near and far": _near_far,
    "odd one out": _odd,
    "pick of many": _pick_many,
    "two pairs": _two_pairs,
    "votes": _votes,
}


# ---- columns that say nothing about the answer, and traps


def _add_harmless(random: Random, rows: list[dict[str, Any]]) -> None:
    made = {
        "rt": lambda row: random.randrange(400, 4000),
        "trial": lambda row: row + 1,
        "timestamp": lambda row: f"2024-05-01T10:{row // 60:02}:{row % 60:02}",
        "age": lambda row: 30,
        "block": lambda row: row // 20 + 1,
        "condition": lambda row: "AB"[row % 2],
        "comment": lambda row: f"no comment {row}" if row % 7 == 0 else "",
        "trial_type": lambda row: "main",
        "set_size": lambda row: "xyz"[row % 3],
        "confidence": lambda row: random.randrange(1, 6),
        "trial_correct": lambda row: "",
    }
    for name in random.sample(list(made), random.randrange(5)):
        for number, row in enumerate(rows):
            row[name] = made[name](number)


def _cannot_tell(random: Random, rows: list, truth: Counter, shown: list[str], answers: list[str]) -> bool:
    """Some answers name no object."""
    if len(answers) != 1:
        return False
    word = random.choice(("can't tell", "same", "don't know", "skip", "weiß nicht", "neither"))
    for row in rows[::9]:
        row[answers[0]] = word
    truth.clear()  # whatever is read without a word about it is wrong
    return True


def _swapped(random: Random, rows: list, truth: Counter, shown: list[str], answers: list[str]) -> bool:
    """The sides were exchanged on the screen in some trials."""
    if len(answers) != 1 or "response" in rows[0]:
        return False
    if any(str(row[answers[0]]) in str([row[name] for name in shown]) for row in rows[:5]):
        return False
    name = random.choice(("swapped", "flipped", "sides_reversed", "mirrored"))
    for row in rows:
        row[name] = random.randrange(2)
    truth.clear()
    return True


def _third_object(random: Random, rows: list, truth: Counter, shown: list[str], answers: list[str]) -> bool:
    """A column holds another object, of which nobody knows what it is."""
    if shown == ["images"]:
        return False
    objects = sorted({str(row[name]) for row in rows for name in shown})
    for row in rows:
        row["distractor"] = random.choice(
            [each for each in objects if each not in {str(cell) for cell in row.values()}] or objects
        )
    truth.clear()
    return True


def _second_answer(random: Random, rows: list, truth: Counter, shown: list[str], answers: list[str]) -> bool:
    """A second column of answers contradicts the first."""
    if len(answers) != 1 or not all(str(row[answers[0]]) in {str(row[name]) for name in shown} for row in rows):
        return False
    for row in rows:
        row["response_2"] = random.choice([row[name] for name in shown[-2:]])
    truth.clear()
    return True


def _mixed_questions(random: Random, rows: list, truth: Counter, shown: list[str], answers: list[str]) -> bool:
    """Half of the questions ask for the other direction."""
    if not answers:
        return False
    for row in rows:
        row["question"] = random.choice(("Which one is more similar?", "Which one is less similar?"))
    truth.clear()
    return True


def _header_again(random: Random, rows: list, truth: Counter, shown: list[str], answers: list[str]) -> bool:
    """The header is repeated, as where files were written one after the other."""
    for place in (len(rows) // 3, 2 * len(rows) // 3):
        rows.insert(place, {name: name for name in rows[0]})
    truth.clear()
    return True


def _unknown_word(random: Random, rows: list, truth: Counter, shown: list[str], answers: list[str]) -> bool:
    """The column of answers has a name of which nobody knows the direction."""
    if len(answers) != 1 or len(shown) != 3 or shown[0] not in ANCHORS:
        return False
    name = random.choice(("verwandt", "blorp", "zork", "my_column", "outcast", "kin"))
    for row in rows:
        row[name] = row.pop(answers[0])
    truth.clear()
    return True


class Trap(NamedTuple):
    """Something in a file that reverses or blurs its answers, and a word that a refusal must have."""

    lay: Callable[..., bool]
    fact: str


TRAPS = {
    "answers that name nothing": Trap(_cannot_tell, "--where"),
    "sides exchanged": Trap(_swapped, "exchanged"),
    "an object without a role": Trap(_third_object, "distractor"),
    "a second answer": Trap(_second_answer, "response_2"),
    "questions in both directions": Trap(_mixed_questions, "question"),
    "a name without a direction": Trap(_unknown_word, "could "),
    "a header in the rows": Trap(_header_again, "header"),
}


# ---- containers


def _container(random: Random, rows: list[dict[str, Any]]) -> tuple[str, bytes]:
    kind = random.choice(
        ("csv", "csv", "csv", "semicolons", "tabs", "jsonl", "json", "split", "columns", "jatos", "lists")
    )
    names = list(dict.fromkeys(name for row in rows for name in row))
    rows = [{name: row.get(name, "") for name in names} for row in rows]
    if kind in ("csv", "semicolons", "tabs"):
        out = io.StringIO()
        writer = csv.DictWriter(
            out, names, delimiter={"csv": ",", "semicolons": ";", "tabs": "\t"}[kind], lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)
        return "answers.tsv" if kind == "tabs" else "answers.csv", out.getvalue().encode()
    columns = {name: {str(number): row[name] for number, row in enumerate(rows)} for name in names}
    split = {"columns": names, "index": list(range(len(rows))), "data": [list(row.values()) for row in rows]}
    whole = {"json": rows, "split": split, "columns": columns, "lists": [rows[:30], rows[30:]]}
    if kind in whole:
        return "answers.json", json.dumps(whole[kind], ensure_ascii=False).encode()
    if kind == "jatos":
        return "results.txt", b"".join(json.dumps(some).encode() + b"\n" for some in (rows[:40], rows[40:]) if some)
    return "answers.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in rows)
