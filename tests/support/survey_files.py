"""Files as the tools of the field write them, each made from the tool's documentation: one small study in many layouts.

`FILES` maps a name to a file name, its text, and what must come out: the answers that it holds, or that it is refused
because two readings fit. All hold the same trials, so a writer is a few lines.
"""

import csv
import io
import json
from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import Any, NamedTuple

OBJECTS = ("cat", "dog", "owl", "pig", "hen", "emu")
KEYS = ("f", "j")


class Trial(NamedTuple):
    """One question: which of `shown` is more like the anchor; `side` is what was chosen."""

    who: str
    anchor: str
    shown: tuple[str, str]
    side: int
    ms: int = 800

    @property
    def chosen(self) -> str:
        return self.shown[self.side]

    @property
    def triplet(self) -> tuple[str, str, str]:
        return self.anchor, self.chosen, self.shown[1 - self.side]


def trials(people: int = 4, each: int = 12) -> list[Trial]:
    """The trials of a study in which everybody used both sides."""
    random, made = Random(7), []
    for number in range(people):
        for trial in range(each):
            anchor, *shown = random.sample(OBJECTS, 3)
            made.append(
                Trial(
                    f"S{number:02}", anchor, (shown[0], shown[1]), (trial + random.randrange(2)) % 2, 500 + 37 * trial
                )
            )
    return made


TRIALS = trials()
PRACTICE = [Trial("S00", "red", ("blue", "green"), 0), Trial("S01", "blue", ("red", "green"), 1)]


class File(NamedTuple):
    """A file and what it says: `answers` as (participant, anchor, near, far); `refused`: two readings fit, of which one
    gives these answers."""

    name: str
    text: str
    answers: list[tuple[str, str, str, str]]
    refused: bool = False
    catch: int = 0
    encoding: str = "utf-8"


def answers(some: Sequence[Trial] = TRIALS, named: bool = True) -> list[tuple[str, str, str, str]]:
    """What these trials say."""
    return [(each.who if named else "", *each.triplet) for each in some]


def odd_answers(some: Sequence[Trial] = TRIALS, named: bool = True) -> list[tuple[str, str, str, str]]:
    """The same trials as odd-one-out questions: the one that was chosen is the odd one."""
    told = []
    for each in some:
        a, b = [name for name in (each.anchor, *each.shown) if name != each.chosen]
        told += [(each.who if named else "", a, b, each.chosen), (each.who if named else "", b, a, each.chosen)]
    return told


def table(rows: Sequence[dict[str, Any]], delimiter: str = ",", quoted: bool = False) -> str:
    """Rows as CSV; the columns are those of any row, in the order in which they come."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(
        out,
        names,
        restval="",
        delimiter=delimiter,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
    )
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def by_person(some: Sequence[Trial]) -> dict[str, list[Trial]]:
    """The trials of each participant."""
    found: dict[str, list[Trial]] = {}
    for each in some:
        found.setdefault(each.who, []).append(each)
    return found


Rows = Callable[[Trial], dict[str, Any]]
FILES: dict[str, File] = {}


def add(
    name: str,
    file: str,
    text: str,
    said: list | None = None,
    refused: bool = False,
    catch: int = 0,
    encoding: str = "utf-8",
) -> None:
    """Add a file to the corpus."""
    assert name not in FILES
    FILES[name] = File(file, text, answers() if said is None else said, refused, catch, encoding)


# ---- salmon: docs, "Downloading responses"


def salmon(some: Sequence[Trial] = TRIALS, number: bool = False) -> list[dict[str, Any]]:
    def name(each: str) -> Any:
        return OBJECTS.index(each) if number else each

    return [
        {
            "alg_ident": "RandomSampling",
            "head": name(each.anchor),
            "left": name(each.shown[0]),
            "right": name(each.shown[1]),
            "winner": name(each.chosen),
            "loser": name(each.shown[1 - each.side]),
            "puid": each.who,
            "response_time": each.ms / 1000,
            "network_latency": 0.12,
            "score": 0.7,
            "datetime_received": "2021-05-01 10:00:00.123",
        }
        for each in some
    ]


def numbered(some: Sequence[Trial] = TRIALS) -> list[tuple[str, str, str, str]]:
    return [(who, *(str(OBJECTS.index(name)) for name in names)) for who, *names in answers(some)]


add("salmon, names", "responses.csv", table(salmon()))
add("salmon, numbers", "responses.csv", table(salmon(number=True)), numbered())
add(
    "salmon, numbers and file names",
    "responses.csv",
    table(
        [
            {
                **row,
                **{
                    f"{role}_filename": f"{OBJECTS[row[role]]}.png"
                    for role in ("head", "winner", "loser", "left", "right")
                },
            }
            for row in salmon(number=True)
        ]
    ),
    [(who, *(f"{name}.png" for name in names)) for who, *names in answers()],
)
add("salmon, JSON", "responses.json", json.dumps(salmon()))
add("salmon, semicolons from a spreadsheet", "responses.csv", table(salmon(), ";"))
add(
    "salmon, an aborted page at the end",
    "responses.csv",
    table([*salmon(), {"alg_ident": "RandomSampling", "puid": "S09"}]),
)

# ---- jsPsych: plugin references of html-button-response and html-keyboard-response, versions 6, 7 and 8


def jspsych(
    some: Sequence[Trial] = TRIALS,
    plugin: str = "html-button-response",
    said: Callable[[Trial], dict[str, Any]] = lambda each: {"response": each.side},
    before: Sequence[dict[str, Any]] = (),
    fixation: bool = True,
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for who, mine in by_person(some).items():
        told = {"subject_id": who}
        rows += [{"rt": 2201, "stimulus": "<p>Welcome</p>", "response": "0", "trial_type": "instructions", **told}]
        rows += [{**each, **told} for each in before]
        for each in mine:
            data = {"anchor": each.anchor, "left": each.shown[0], "right": each.shown[1]}
            if fixation:
                rows.append(
                    {"rt": None, "stimulus": "+", "response": None, "trial_type": "html-keyboard-response", **told}
                )
            rows.append(
                {"rt": each.ms, "stimulus": "<p>Which?</p>", **said(each), "trial_type": plugin, **data, **told}
            )
        rows.append({"trial_type": "survey-text", "response": {"Q0": "no comment"}, "rt": 9000, **told})
    return [{**row, "trial_index": number, "time_elapsed": 100 * number} for number, row in enumerate(rows)]


def as_csv(rows: list[dict[str, Any]]) -> str:
    """As jsPsych's `csv()` writes it: everything quoted, objects as JSON, nothing as an empty text."""
    cells = [
        {k: json.dumps(v) if isinstance(v, dict) else "" if v is None else v for k, v in row.items()} for row in rows
    ]
    return table(cells, quoted=True)


KEYED = {"said": lambda each: {"response": KEYS[each.side]}, "plugin": "html-keyboard-response"}
add("jsPsych 7, buttons, CSV", "data.csv", as_csv(jspsych()))
add("jsPsych 7, buttons, JSON", "data.json", json.dumps(jspsych()))
add("jsPsych 7, buttons, JSON over several lines", "data.json", json.dumps(jspsych(), indent="\t"))
add("jsPsych 7, keys f and j", "data.csv", as_csv(jspsych(**KEYED)))
add(
    "jsPsych 7, arrow keys, JSON",
    "data.json",
    json.dumps(
        jspsych(said=lambda each: {"response": ("arrowleft", "arrowright")[each.side]}, plugin="html-keyboard-response")
    ),
)
add("jsPsych 6, buttons", "data.csv", as_csv(jspsych(said=lambda each: {"button_pressed": str(each.side)})))
add(
    "jsPsych 6, key codes",
    "data.csv",
    as_csv(jspsych(said=lambda each: {"key_press": (70, 74)[each.side]}, plugin="html-keyboard-response")),
)
add(
    "jsPsych 8, image buttons, one line a participant (JATOS)",
    "results.txt.jsonl",
    "\n".join(json.dumps(jspsych(mine, "image-button-response")) for mine in by_person(TRIALS).values()) + "\n",
)
add(
    "jsPsych, practice in the data",
    "data.csv",
    as_csv(
        [*({**row, "phase": "practice"} for row in jspsych(PRACTICE)), *({**row, "phase": "test"} for row in jspsych())]
    ),
)
add(
    "jsPsych, timeouts and other keys",
    "data.csv",
    as_csv(
        jspsych(
            [*TRIALS, Trial("S03", "cat", ("dog", "owl"), 0)],
            "html-keyboard-response",
            lambda each: {"response": KEYS[each.side] if each.ms != 800 else " "},
        )
    ),
)
add("jsPsych, aborted session", "data.csv", as_csv(jspsych()[:-6]), answers()[:-3])
add(
    "jsPsych, Pavlovia's extra columns, NA",
    "data.csv",
    as_csv(
        [
            {**row, "run_id": "17", "response": "NA" if row.get("response") is None else row["response"]}
            for row in jspsych()
        ]
    ),
)
add(
    "jsPsych, choices as a list, JSON",
    "data.json",
    json.dumps(
        [
            {
                "trial_type": "html-button-response",
                "target": each.anchor,
                "choices": list(each.shown),
                "response": each.side,
                "rt": each.ms,
                "subject": each.who,
            }
            for each in TRIALS
        ]
    ),
)
add(
    "jsPsych, 1 and 2 on the keyboard",
    "data.csv",
    as_csv(jspsych(said=lambda each: {"response": str(each.side + 1)}, plugin="html-keyboard-response")),
)
add(
    "jsPsych, only one key ever pressed",
    "data.csv",
    as_csv(
        jspsych(
            [each._replace(side=0) for each in TRIALS],
            "html-keyboard-response",
            lambda each: {"response": "1"},
            fixation=False,
        )[1:]
    ),
    answers([each._replace(side=0) for each in TRIALS]),
    refused=True,
)

# ---- Qualtrics: "Understanding your data set"; three header rows, loop and merge numbers in front


def qualtrics(
    names: Sequence[str], texts: Sequence[str], cells: Callable[[list[Trial]], list[Any]], previews: bool = True
) -> str:
    meta = ["StartDate", "EndDate", "Status", "Progress", "Duration (in seconds)", "Finished", "ResponseId"]
    told = ["Start Date", "End Date", "Response Type", "Progress", "Duration (in seconds)", "Finished", "Response ID"]
    rows: list[list[Any]] = [[*meta, *names], [*told, *texts]]
    rows.append([json.dumps({"ImportId": name}) for name in (*meta, *(f"QID{n}" for n in range(len(names))))])
    day = "2024-05-01 10:00:00"
    if previews:
        rows.append([day, day, "Survey Preview", 100, 60, "True", "R_0", *cells(list(by_person(TRIALS)["S00"]))])
    for who, mine in by_person(TRIALS).items():
        rows.append([day, day, "IP Address", 100, 300, "True", who, *cells(mine)])
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


N = range(1, 13)
ROLES = ("anchor", "left", "right", "choice")
add(
    "Qualtrics, embedded data, names",
    "q.csv",
    qualtrics(
        [f"{role}_{n}" for n in N for role in ROLES],
        ["Which is more similar?"] * 48,
        lambda mine: [cell for each in mine for cell in (each.anchor, *each.shown, each.chosen)],
    ),
)
add(
    "Qualtrics, loop and merge",
    "q.csv",
    qualtrics(
        [f"{n}_{role}" for n in N for role in ROLES],
        ["Which is more similar?"] * 48,
        lambda mine: [cell for each in mine for cell in (each.anchor, *each.shown, each.side + 1)],
    ),
)
add(
    "Qualtrics, left and right",
    "q.csv",
    qualtrics(
        [f"Q{n}_{role}" for n in N for role in ROLES],
        ["Which, the left or the right?"] * 48,
        lambda mine: [cell for each in mine for cell in (each.anchor, *each.shown, ("Left", "Right")[each.side])],
    ),
)
SAME = [Trial("", "cat", ("dog", "owl"), 0), Trial("", "dog", ("cat", "pig"), 0), Trial("", "owl", ("hen", "emu"), 0)]
EVERYBODY = [
    each._replace(who=f"S{n:02}", side=(n + k) % 2) for n, k in product(range(4), range(3)) for each in [SAME[k]]
]


def asked(each: Trial) -> str:
    return f"Which is more similar to {each.anchor}: {each.shown[0]} or {each.shown[1]}?"


def with_same_questions(write: Callable[[], str]) -> str:
    global TRIALS
    kept, TRIALS = TRIALS, EVERYBODY
    try:
        return write()
    finally:
        TRIALS = kept


add(
    "Qualtrics, the questions in the second row",
    "q.csv",
    with_same_questions(
        lambda: qualtrics(
            ["Q1", "Q2", "Q3"], [asked(each) for each in SAME], lambda mine: [each.chosen for each in mine]
        )
    ),
    answers(EVERYBODY),
)
add(
    "Qualtrics, header in the third row of a spreadsheet",
    "q.csv",
    "Export of May,,,\nSurvey 1,,,\n"
    + table(
        [
            {"head": each.anchor, "winner": each.chosen, "loser": each.shown[1 - each.side], "worker": each.who}
            for each in TRIALS
        ]
    ),
)
add(
    "Qualtrics, unanswered questions",
    "q.csv",
    qualtrics(
        [f"{role}_{n}" for n in N for role in ROLES],
        ["?"] * 48,
        lambda mine: [
            cell for n, each in enumerate(mine) for cell in (each.anchor, *each.shown, each.chosen if n < 9 else "")
        ],
    ),
    [each for n, each in enumerate(answers()) if n % 12 < 9],
)

# ---- wide tables: one row a participant


def wide(name: Callable[[str, int], str], said: Callable[[Trial], Any], who: str = "participant") -> str:
    rows = []
    for person, mine in by_person(TRIALS).items():
        row: dict[str, Any] = {who: person, "age": 30}
        for n, each in enumerate(mine, 1):
            cells = {"anchor": each.anchor, "left": each.shown[0], "right": each.shown[1], "choice": said(each)}
            row |= {name(role, n): cell for role, cell in cells.items()}
        rows.append(row)
    return table(rows)


add("wide, Q{n}_choice", "wide.csv", wide(lambda role, n: f"Q{n}_{role}", lambda each: each.chosen))
add("wide, choice.1", "wide.csv", wide(lambda role, n: f"{role}.{n}", lambda each: "LR"[each.side]))
add("wide, t01 with positions", "wide.csv", wide(lambda role, n: f"t{n:02}_{role}", lambda each: each.side + 1))
add(
    "wide, NA",
    "wide.csv",
    wide(lambda role, n: f"Q{n}_{role}", lambda each: each.chosen).replace("\n", "\n", 1)
    + "S09,30"
    + ",NA" * 48
    + "\n",
)
add(
    "wide, oTree",
    "all_apps_wide.csv",
    wide(lambda role, n: f"triplets.{n}.player.{role}", lambda each: each.chosen, "participant.code"),
)
add(
    "oTree, one app",
    "triplets.csv",
    table(
        [
            {
                "participant.id_in_session": 1,
                "participant.code": each.who,
                "participant._is_bot": 0,
                "player.id_in_group": 1,
                "player.target": each.anchor,
                "player.option_a": each.shown[0],
                "player.option_b": each.shown[1],
                "player.choice": each.chosen,
                "player.payoff": 0,
                "subsession.round_number": 1,
                "session.code": "abc",
            }
            for each in TRIALS
        ]
    ),
)


def by_question(
    header: Callable[[Trial], str], who: str, extra: Sequence[str] = (), said=lambda each: each.chosen
) -> list:
    rows = []
    for number in range(4):
        mine = [each for each in EVERYBODY if each.who == f"S{number:02}"]
        rows.append({who: f"S{number:02}", **dict.fromkeys(extra, "x"), **{header(each): said(each) for each in mine}})
    return rows


add(
    "Google Forms",
    "Form responses.csv",
    table([{"Timestamp": "2024/05/01 10:00:00 AM", **row} for row in by_question(asked, "Participant ID")]),
    answers(EVERYBODY),
)
add(
    "Google Forms, commas in the questions",
    "form.csv",
    table(
        by_question(
            lambda each: f"Compared with {each.anchor}, is it more like {each.shown[0]}, or {each.shown[1]}?",
            "Username",
        )
    ),
    answers(EVERYBODY),
)
add(
    "Google Forms, questions in which the objects cannot be told",
    "form.csv",
    table(
        by_question(
            lambda each: f"{each.anchor.title()}, compared with {each.anchor}: {each.shown[0]}, or {each.shown[1]}?",
            "Username",
        )
    ),
    [],
)
add(
    "LimeSurvey, question texts",
    "results-survey.csv",
    table(
        [
            {"id. Response ID": n, "submitdate. Date submitted": "2024-05-01", "token": row.pop("token"), **row}
            for n, row in enumerate(by_question(asked, "token"), 1)
        ],
        quoted=True,
    ),
    answers(EVERYBODY),
)
add(
    "names of columns are the questions",
    "wide.csv",
    table(by_question(lambda each: "_".join((each.anchor, *each.shown)), "subject")),
    answers(EVERYBODY),
)
add(
    "SurveyMonkey",
    "SurveyMonkey.csv",
    "Respondent ID,Collector ID,"
    + ",".join(f'"{asked(each)}"' for each in SAME)
    + "\n,,"
    + "Response," * 2
    + "Response\n"
    + "".join(f"1180{n},77,{','.join(each.chosen for each in EVERYBODY[3 * n : 3 * n + 3])}\n" for n in range(4)),
    [(f"1180{int(who[1:])}", *names) for who, *names in answers(EVERYBODY)],
)

# ---- Gorilla: "Data columns" of the task builder; rows for screens, zones and events


def gorilla(some: Sequence[Trial] = TRIALS, practice: bool = False) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for who, mine in by_person(some).items():
        base = {
            "UTC Date": "01/05/2024 10:00:00",
            "Experiment ID": 4711,
            "Participant Public ID": "BLIND",
            "Participant Private ID": who,
            "Task Name": "Triplets",
        }
        rows.append({**base, "Trial Number": "BEGIN TASK"})
        rows.append(
            {
                **base,
                "Screen Name": "Welcome",
                "Zone Type": "continue_button",
                "Response": "Next",
                "display": "instructions",
            }
        )
        for n, each in enumerate(mine, 1):
            cells = {
                **base,
                "Trial Number": n,
                "Anchor": each.anchor,
                "Left": each.shown[0],
                "Right": each.shown[1],
                "display": "practice" if practice and each in PRACTICE else "task",
            }
            rows.append({**cells, "Screen Name": "Fixation", "Zone Type": "fixation", "Reaction Time": 250.1})
            rows.append(
                {
                    **cells,
                    "Screen Name": "Choice",
                    "Zone Type": "response_button_image",
                    "Reaction Time": each.ms,
                    "Response": each.chosen,
                    "Correct": 0,
                    "Attempt": 1,
                }
            )
        rows.append({**base, "Trial Number": "END TASK"})
    return [{"Event Index": n, **row} for n, row in enumerate(rows, 1)] + [{"Event Index": "END OF FILE"}]


add("Gorilla", "data_exp_4711.csv", table(gorilla()))
add("Gorilla, practice", "data_exp_4711.csv", table(gorilla([*PRACTICE, *TRIALS], practice=True)))
add(
    "Gorilla, names of zones",
    "data_exp_4711.csv",
    table(
        [
            {
                **row,
                "Response": ("Left", "Right")[row["Response"] == row["Right"]]
                if row.get("Anchor") and row.get("Response")
                else row.get("Response", ""),
            }
            for row in gorilla()
        ]
    ),
)
add(
    "Gorilla, no answer in time",
    "data_exp_4711.csv",
    table([row if n % 10 else {**row, "Response": ""} for n, row in enumerate(gorilla())]),
    [
        each
        for each, row in zip(answers(), (r for r in gorilla() if r.get("Response") and r.get("Anchor")))
        if (row["Event Index"] - 1) % 10
    ],
)

# ---- PsychoPy: "Data outputs", wide csv of the experiment handler


def psychopy(
    some: Sequence[Trial] = TRIALS, keys: Sequence[str] = ("left", "right"), names=("target", "left_img", "right_img")
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for who, mine in by_person(some).items():
        base = {"participant": who, "session": 1, "date": "2024-05-01_10h00", "expName": "triplets", "frameRate": 59.9}
        rows.append({**base, "instr_key.keys": "space", "instr_key.rt": 2.1})
        for n, each in enumerate(mine):
            rows.append(
                {
                    names[0]: each.anchor,
                    names[1]: each.shown[0],
                    names[2]: each.shown[1],
                    "trials.thisN": n,
                    "trials.thisIndex": n,
                    "key_resp.keys": keys[each.side],
                    "key_resp.rt": each.ms / 1000,
                    **base,
                }
            )
        rows.append(base)
    return rows


add("PsychoPy, arrow keys", "S00_triplets.csv", table(psychopy()))
add("PsychoPy, f and j", "S00_triplets.csv", table(psychopy(keys=KEYS)))
add(
    "PsychoPy, aborted session, None",
    "S00_triplets.csv",
    table(
        [
            *psychopy(),
            {
                "participant": "S04",
                "session": 1,
                "target": "cat",
                "left_img": "dog",
                "right_img": "owl",
                "key_resp.keys": "None",
            },
        ]
    ),
)
add(
    "PsychoPy, mouse on a picture",
    "S00_triplets.csv",
    table(
        [
            {
                **{k: v for k, v in row.items() if not k.startswith("key_")},
                "mouse.clicked_name": {"left": "left_img", "right": "right_img"}.get(row.get("key_resp.keys"), ""),
            }
            for row in psychopy()
        ]
    ),
)
add(
    "PsychoPy, practice loop",
    "S00_triplets.csv",
    table(
        [
            *({**row, "block": "practice"} for row in psychopy(PRACTICE)),
            *({**row, "block": "main"} for row in psychopy()),
        ]
    ),
)
add(
    "PsychoPy, one key for what is anybody's guess",
    "S00_triplets.csv",
    table(psychopy([each._replace(side=0) for each in TRIALS], ("1", "2"))),
    answers([each._replace(side=0) for each in TRIALS]),
    refused=True,
)

# ---- tripletTools, NEXT, THINGS, Meadows, lab.js, label-studio, MTurk, cblearn


def triplet_tools(some: Sequence[Trial] = TRIALS, checks: int = 6) -> list[dict[str, Any]]:
    rows = []
    for n, each in enumerate(some):
        alg = ("random", "validation")[n % 2]
        rows.append(
            {
                "head": n,
                "winner": 1,
                "loser": 2,
                "worker_id": each.who,
                "rt": each.ms,
                "Center": each.anchor,
                "Left": each.shown[0],
                "Right": each.shown[1],
                "Answer": each.chosen,
                "sampleAlg": alg,
                "sampleSet": ("train", "test")[n % 2],
            }
        )
    for n in range(checks):
        rows.insert(
            5 * n,
            {
                "head": 1,
                "winner": 1,
                "loser": 2,
                "worker_id": f"S{n % 4:02}",
                "rt": 700,
                "Center": "cat",
                "Left": "cat",
                "Right": "owl",
                "Answer": ("cat", "owl")[n == 3],
                "sampleAlg": "check",
                "sampleSet": "NA",
            },
        )
    return rows


add("tripletTools, checks", "individual.csv", table(triplet_tools()), catch=6)
add("tripletTools, without checks", "individual.csv", table(triplet_tools(checks=0)))
add(
    "tripletTools, NA in answers",
    "individual.csv",
    table([*triplet_tools(), {**triplet_tools()[-1], "Answer": "NA"}]),
    catch=6,
)
add(
    "tripletTools, duplicated participant",
    "individual.csv",
    table([*triplet_tools(), *triplet_tools()]),
    [*answers(), *answers()],
    catch=12,
)
add(
    "NEXT",
    "participants.csv",
    table(
        [
            {
                "participant_uid": each.who,
                "target_center": each.anchor,
                "target_left": each.shown[0],
                "target_right": each.shown[1],
                "target_winner": each.chosen,
                "response_time": each.ms / 1000,
                "timestamp_query_generated": "2015-05-29 03:46:14.384",
            }
            for each in TRIALS
        ]
    ),
)


def three(names: Sequence[str], said: str, value: Callable[[Trial], Any], who: str = "subject_id") -> str:
    return table(
        [
            {who: each.who, **dict(zip(names, (each.anchor, *each.shown))), said: value(each), "RT": each.ms}
            for each in TRIALS
        ]
    )


add(
    "THINGS, choices",
    "triplets_large_final.csv",
    three(["image1", "image2", "image3"], "choice", lambda each: each.side + 2).replace(",", "\t"),
    odd_answers(),
)
add(
    "THINGS, training triplets without a header",
    "trainset.txt",
    "".join(" ".join(str(OBJECTS.index(name)) for name in (a, b, c)) + "\n" for _, a, b, c in odd_answers()[::2]),
    [("", *(str(OBJECTS.index(name)) for name in names)) for _, *names in odd_answers()],
    refused=True,
)
add(
    "odd one out, by name",
    "odd.csv",
    three(["left", "middle", "right"], "odd_one_out", lambda each: each.chosen),
    odd_answers(),
)
add(
    "odd one out, two and the odd one",
    "odd.csv",
    table(
        [{"a": each.anchor, "b": each.shown[1 - each.side], "odd": each.chosen, "worker": each.who} for each in TRIALS]
    ),
    odd_answers(),
)
add(
    "odd or central",
    "three.csv",
    three(["image_1", "image_2", "image_3"], "response", lambda each: each.chosen),
    odd_answers(),
    refused=True,
)
add(
    "Meadows, annotations",
    "Meadows_study_annotations.csv",
    table(
        [
            {
                "task": "triplets",
                "participation": each.who,
                **{
                    f"stim{n}_id": f"{ord(name[0]):x}{ord(name[1]):x}"
                    for n, name in enumerate((each.anchor, *each.shown), 1)
                },
                **{f"stim{n}_name": name for n, name in enumerate((each.anchor, *each.shown), 1)},
                "start": "2020-09-14T18:18:43.196Z",
                "resp": "2020-09-14T18:19:00.993Z",
                "label": each.chosen,
            }
            for each in TRIALS
        ]
    ),
    odd_answers(),
    refused=True,
)
add(
    "Meadows, tree",
    "Meadows_study_tree.json",
    json.dumps(
        {
            who: {
                "screen": {"width": 1280},
                "task": {"name": "triplets"},
                "trials": [
                    {"anchor": each.anchor, "left": each.shown[0], "right": each.shown[1], "choice": each.chosen}
                    for each in mine
                ],
            }
            for who, mine in by_person(TRIALS).items()
        }
    ),
)


def labjs() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for who, mine in by_person(TRIALS).items():
        rows.append({"sender": "Welcome", "sender_type": "html.Form", "participant_id": who, "response": ""})
        for each in mine:
            data = {"anchor": each.anchor, "left": each.shown[0], "right": each.shown[1], "participant_id": who}
            rows.append(
                {**data, "sender": "Fixation", "sender_type": "canvas.Screen", "duration": 500, "ended_on": "timeout"}
            )
            rows.append(
                {
                    **data,
                    "sender": "Choice",
                    "sender_type": "html.Screen",
                    "duration": each.ms,
                    "ended_on": "response",
                    "response": ("left", "right")[each.side],
                }
            )
    return rows


add("lab.js", "labjs.csv", table(labjs()))
add("lab.js, JSON lines", "labjs.jsonl", "".join(json.dumps(row) + "\n" for row in labjs()))
add(
    "lab.js, practice block",
    "labjs.csv",
    table(
        [
            {
                "sender": "Choice",
                "anchor": "red",
                "left": "blue",
                "right": "green",
                "response": "left",
                "participant_id": "S00",
                "practice": "true",
            },
            *({**row, "practice": "false"} for row in labjs()),
        ]
    ),
)
TASKS = [
    {
        "id": n,
        "data": {"anchor": each.anchor, "left": each.shown[0], "right": each.shown[1]},
        "annotations": [
            {
                "id": n,
                "completed_by": each.who,
                "lead_time": each.ms / 1000,
                "result": [
                    {
                        "from_name": "pw",
                        "to_name": "left,right",
                        "type": "pairwise",
                        "value": {"selected": ("left", "right")[each.side]},
                    }
                ],
            }
        ],
        "created_at": "2024-05-01T10:00:00Z",
    }
    for n, each in enumerate(TRIALS, 1)
]
add("label-studio, JSON", "project-1.json", json.dumps(TASKS))
add(
    "label-studio, JSON_MIN",
    "project-1.json",
    json.dumps(
        [
            {
                **task["data"],
                "id": task["id"],
                "choice": task["annotations"][0]["result"][0]["value"]["selected"],
                "annotator": task["annotations"][0]["completed_by"],
                "lead_time": 1.2,
            }
            for task in TASKS
        ]
    ),
)
add(
    "label-studio, CSV",
    "project-1.csv",
    table(
        [
            {
                **task["data"],
                "annotator": task["annotations"][0]["completed_by"],
                "annotation_id": task["id"],
                "choice": task["annotations"][0]["result"][0]["value"]["selected"],
                "lead_time": 1.2,
            }
            for task in TASKS
        ]
    ),
)
add(
    "MTurk, batch results",
    "Batch_42_batch_results.csv",
    table(
        [
            {
                "HITId": f"3{n}",
                "Title": "Which?",
                "AssignmentId": f"A{n}",
                "WorkerId": each.who,
                "AssignmentStatus": "Approved",
                "WorkTimeInSeconds": 12,
                "Input.target": each.anchor,
                "Input.option1": each.shown[0],
                "Input.option2": each.shown[1],
                "Answer.choice": f"option{each.side + 1}",
            }
            for n, each in enumerate(TRIALS)
        ],
        quoted=True,
    ),
)
add(
    "MTurk, several questions a HIT",
    "Batch_43_batch_results.csv",
    table(
        [
            {
                "HITId": f"3{n}",
                "WorkerId": mine[0].who,
                **{
                    f"Input.{role}{n}": cell
                    for n, each in enumerate(mine, 1)
                    for role, cell in (("anchor", each.anchor), ("left", each.shown[0]), ("right", each.shown[1]))
                },
                **{f"Answer.choice{n}": each.chosen for n, each in enumerate(mine, 1)},
            }
            for n, mine in enumerate(by_person(TRIALS).values())
        ]
    ),
)
add(
    "Prolific, joined with demographics",
    "joined.csv",
    table(
        [
            {
                "PROLIFIC_PID": each.who,
                "Submission id": "a1",
                "Status": "APPROVED",
                "Age": 31,
                "Sex": "Female",
                "probe": each.anchor,
                "optionA": each.shown[0],
                "optionB": each.shown[1],
                "answer": "AB"[each.side],
                "rt": each.ms,
            }
            for each in TRIALS
        ]
    ),
)
add(
    "Target,Option1,Option2 with an answer",
    "answers.csv",
    table(
        [
            {"Target": each.anchor, "Option1": each.shown[0], "Option2": each.shown[1], "Selected": each.chosen}
            for each in TRIALS
        ]
    ),
    answers(named=False),
)
add(
    "Target,Option1,Option2 without an answer",
    "answers.csv",
    table([{"Target": each.anchor, "Option1": each.chosen, "Option2": each.shown[1 - each.side]} for each in TRIALS]),
    answers(named=False),
    refused=True,
)
add(
    "0 or 1, but only 1 was answered",
    "answers.csv",
    table(
        [
            {"Target": each.anchor, "Option1": each.chosen, "Option2": each.shown[1 - each.side], "Choice": 1}
            for each in TRIALS
        ]
    ),
    answers(named=False),
    refused=True,
)
add(
    "unnamed columns, answers by name",
    "answers.csv",
    table([{"x": each.anchor, "y1": each.shown[0], "y2": each.shown[1], "z": each.chosen} for each in TRIALS]),
    answers(named=False),
)
add(
    "cblearn, list order",
    "triplets.csv",
    table([dict(zip("ijk", (OBJECTS.index(name) for name in each.triplet))) for each in TRIALS]),
    [("", *names) for _, *names in numbered()],
)
add(
    "cblearn, responses",
    "triplets.csv",
    table(
        [
            {
                "i": OBJECTS.index(each.anchor),
                "j": OBJECTS.index(each.shown[0]),
                "k": OBJECTS.index(each.shown[1]),
                "response": 1 - 2 * each.side,
            }
            for each in TRIALS
        ]
    ),
    [("", *names) for _, *names in numbered()],
)
add(
    "this engine",
    "answers.csv",
    table([{"anchor": a, "near": b, "far": c, "worker": who} for who, a, b, c in answers()]),
)
add(
    "this engine, practice and another word for participants",
    "answers.csv",
    table(
        [
            {"anchor": a, "near": b, "far": c, "subject": who, "phase": phase}
            for phase, some in (("practice", PRACTICE), ("main", TRIALS))
            for who, a, b, c in answers(some)
        ]
    ),
)
add(
    "catch trials marked, answers not known",
    "answers.csv",
    table(
        [
            {
                "target": each.anchor,
                "left": each.shown[0],
                "right": each.shown[1],
                "chosen": each.chosen,
                "subject": each.who,
                "is_catch": int(n % 8 == 0),
            }
            for n, each in enumerate(TRIALS)
        ]
    ),
    [each for n, each in enumerate(answers()) if n % 8],
)
add(
    "training and test: practice or a split?",
    "answers.csv",
    table(
        [
            {
                "target": each.anchor,
                "left": each.shown[0],
                "right": each.shown[1],
                "chosen": each.chosen,
                "subject": each.who,
                "set": ("training", "test")[n % 2],
            }
            for n, each in enumerate(TRIALS)
        ]
    ),
    refused=True,
)

# ---- what happens to files on the way


add(
    "salmon, a byte order mark and line ends of Windows",
    "responses.csv",
    table(salmon()).replace("\n", "\r\n"),
    encoding="utf-8-sig",
)
add("salmon, R's row names", "responses.csv", table([{"": n, **row} for n, row in enumerate(salmon(), 1)], quoted=True))
add("salmon, pandas' index", "responses.csv", table([{"Unnamed: 0": n, **row} for n, row in enumerate(salmon())]))
add(
    "Qualtrics, tabs in UTF-16",
    "q.tsv",
    qualtrics(
        [f"{role}_{n}" for n in N for role in ROLES],
        ["Which is more similar?"] * 48,
        lambda mine: [cell for each in mine for cell in (each.anchor, *each.shown, each.chosen)],
    ).replace(",", "\t"),
    encoding="utf-16",
)
add(
    "Qualtrics, progress of aborted sessions",
    "q.csv",
    qualtrics(
        [f"{n}_{role}" for n in N for role in ROLES],
        ["?"] * 48,
        lambda mine: [
            cell
            for n, each in enumerate(mine)
            for cell in ((each.anchor, *each.shown, each.chosen) if n < 7 else [""] * 4)
        ],
    ),
    [each for n, each in enumerate(answers()) if n % 12 < 7],
)
add("PsychoPy, semicolons", "S00_triplets.csv", table(psychopy(), ";"))
add(
    "PsychoPy, no participant entered",
    "S00_triplets.csv",
    table([{**row, "participant": ""} for row in psychopy()]),
    answers(named=False),
)
add("Gorilla, semicolons", "data_exp_4711.csv", table(gorilla(), ";"))
add("jsPsych, a session twice", "data.csv", as_csv([*jspsych(), *jspsych()]), [*answers(), *answers()])
add(
    "jsPsych, target and options with other names",
    "data.csv",
    as_csv(
        [
            {
                {"anchor": "ref_img", "left": "opt_img_1", "right": "opt_img_2"}.get(name, name): cell
                for name, cell in row.items()
            }
            for row in jspsych()
        ]
    ),
)
add("oTree, an aborted round", "triplets.csv", FILES["oTree, one app"].text + "1,x9,0,1,cat,dog,owl,,,13,abc\n")
add(
    "MTurk, rejected answers stay",
    "Batch_42_batch_results.csv",
    FILES["MTurk, batch results"].text.replace("Approved", "Rejected", 3),
)
add(
    "lab.js, answers in time only",
    "labjs.csv",
    table([{**row, "response": "", "ended_on": "timeout"} if n == 2 else row for n, row in enumerate(labjs())]),
    answers()[1:],
)
