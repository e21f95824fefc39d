"""Files as the tools of the field write them, each made from the tool's documentation: one small study in many layouts.

`FILES` maps a name to a file name, its text, and what must come out: the answers that it holds, or that it is refused
because two readings fit. All hold the same trials: a layout is a line of column names and a line of cells, parted by
bars, in which words in braces stand for what a trial holds (`fields`).
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
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
    for number, trial in product(range(people), range(each)):
        anchor, left, right = random.sample(OBJECTS, 3)
        made.append(Trial(f"S{number:02}", anchor, (left, right), (trial + random.randrange(2)) % 2, 500 + 37 * trial))
    return made


TRIALS = trials()
PRACTICE = [Trial("S00", "red", ("blue", "green"), 0), Trial("S01", "blue", ("red", "green"), 1)]
ONE_SIDE = [each._replace(side=0) for each in TRIALS]


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


def numbered(some: Iterable[tuple[str, ...]]) -> list[tuple[str, str, str, str]]:
    """The same with the numbers of objects in place of their names."""
    return [(who, *(str(OBJECTS.index(name)) for name in names)) for who, *names in some]


NAMED, UNNAMED = answers(), answers(named=False)


def fields(trial: Trial, n: int) -> dict[str, Any]:
    """What stands for a word in braces, of the n-th trial."""
    (left, right), side = trial.shown, trial.side
    told = {"who": trial.who, "anchor": trial.anchor, "left": left, "right": right, "chosen": trial.chosen}
    told |= {"other": trial.shown[1 - side], "n": n, "side": side, "one": side + 1, "two": side + 2, "ms": trial.ms}
    told |= {"letter": "AB"[side], "where": ("left", "right")[side], "s": trial.ms / 1000}
    roles = ("anchor", "left", "right", "chosen", "other")
    return told | {f"#{role}": OBJECTS.index(told[role]) for role in roles if told[role] in OBJECTS}


def rows(names: str, cells: str, some: Sequence[Trial] = TRIALS, first: int = 0) -> list[dict[str, Any]]:
    """A row a trial; the layout of a table."""
    told = [cells.format(**fields(each, n)).split("|") for n, each in enumerate(some, first)]
    return [dict(zip(names.split("|"), row, strict=True)) for row in told]


def table(rows: Sequence[dict[str, Any]], delimiter: str = ",", quoted: bool = False) -> str:
    """Rows as CSV; the columns are those of any row, in the order in which they come."""
    names, out = list(dict.fromkeys(name for row in rows for name in row)), io.StringIO()
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    writer = csv.DictWriter(out, names, restval="", delimiter=delimiter, lineterminator="\n", quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def typed(rows: Sequence[dict[str, str]]) -> str:
    """Rows as JSON, numbers as numbers."""

    def value(cell: str) -> Any:
        try:
            return json.loads(cell)
        except ValueError:
            return cell

    return json.dumps([{name: value(cell) for name, cell in row.items()} for row in rows])


def by_person(some: Sequence[Trial]) -> dict[str, list[Trial]]:
    """The trials of each participant."""
    return {who: [each for each in some if each.who == who] for who in dict.fromkeys(each.who for each in some)}


FILES: dict[str, File] = {}


def add(name: str, file: str, text: str, said: list | None = None, refused: bool = False, **more: Any) -> None:
    """Add a file to the corpus."""
    assert name not in FILES
    FILES[name] = File(file, text, NAMED if said is None else said, refused, **more)


# ---- salmon: docs, "Downloading responses"

SALMON = "alg_ident|head|left|right|winner|loser|puid|response_time|network_latency|score|datetime_received"
OF_SALMON = "RandomSampling|{anchor}|{left}|{right}|{chosen}|{other}|{who}|{s}|0.12|0.7|2021-05-01 10:00:00.123"
FILE_NAMES = "|{anchor}.png|{chosen}.png|{other}.png|{left}.png|{right}.png"
NUMBERS = "RandomSampling|{#anchor}|{#left}|{#right}|{#chosen}|{#other}|{who}|{s}|0.12|0.7|2021-05-01 10:00:00.123"
salmon = rows(SALMON, OF_SALMON)
add("salmon, names", "responses.csv", table(salmon))
add("salmon, numbers", "responses.csv", table(rows(SALMON, NUMBERS)), numbered(NAMED))
add(
    "salmon, numbers and file names",
    "responses.csv",
    table(
        rows(
            SALMON + "".join(f"|{role}_filename" for role in ("head", "winner", "loser", "left", "right")),
            NUMBERS + FILE_NAMES,
        )
    ),
    [(who, *(f"{name}.png" for name in names)) for who, *names in NAMED],
)
add("salmon, JSON", "responses.json", typed(salmon))
add("salmon, semicolons from a spreadsheet", "responses.csv", table(salmon, ";"))
aborted = {"alg_ident": "RandomSampling", "puid": "S09"}
add("salmon, an aborted page at the end", "responses.csv", table([*salmon, aborted]))

# ---- jsPsych: plugin references of html-button-response and html-keyboard-response, versions 6, 7 and 8

Said = Callable[[Trial], dict[str, Any]]
KEYBOARD = "html-keyboard-response"


def jspsych(
    some: Sequence[Trial] = TRIALS,
    said: Said = lambda each: {"response": each.side},
    plugin: str = "html-button-response",
    fixation: bool = True,
) -> list[dict[str, Any]]:
    """The rows of all screens."""
    made: list[dict[str, Any]] = []
    for who, mine in by_person(some).items():
        told = {"subject_id": who}
        made += [{"rt": 2201, "stimulus": "<p>Welcome</p>", "response": "0", "trial_type": "instructions", **told}]
        for each in mine:
            data = {"anchor": each.anchor, "left": each.shown[0], "right": each.shown[1]}
            if fixation:
                made.append({"rt": None, "stimulus": "+", "response": None, "trial_type": KEYBOARD, **told})
            shown = {"rt": each.ms, "stimulus": "<p>Which?</p>", **said(each), "trial_type": plugin}
            made.append({**shown, **data, **told})
        made.append({"trial_type": "survey-text", "response": {"Q0": "no comment"}, "rt": 9000, **told})
    return [{**row, "trial_index": number, "time_elapsed": 100 * number} for number, row in enumerate(made)]


def as_csv(some: list[dict[str, Any]]) -> str:
    """As jsPsych's `csv()` writes it: everything quoted, objects as JSON, nothing as an empty text."""
    write = {dict: json.dumps, type(None): lambda cell: ""}
    return table([{k: write.get(type(v), str)(v) for k, v in row.items()} for row in some], quoted=True)


def add_jspsych(name: str, *given: Any, said: list | None = None, refused: bool = False, **more: Any) -> None:
    """Add the CSV of a study by jsPsych."""
    add(f"jsPsych{name}", "data.csv", as_csv(jspsych(*given, **more)), said, refused)


def keyed(each: Trial) -> dict[str, Any]:
    return {"response": KEYS[each.side]}


add_jspsych(" 7, buttons, CSV")
add("jsPsych 7, buttons, JSON", "data.json", json.dumps(jspsych()))
add("jsPsych 7, buttons, JSON over several lines", "data.json", json.dumps(jspsych(), indent="\t"))
add_jspsych(" 7, keys f and j", TRIALS, keyed, KEYBOARD)
arrows = jspsych(TRIALS, lambda each: {"response": ("arrowleft", "arrowright")[each.side]}, KEYBOARD)
add("jsPsych 7, arrow keys, JSON", "data.json", json.dumps(arrows))
add_jspsych(" 6, buttons", TRIALS, lambda each: {"button_pressed": str(each.side)})
add_jspsych(" 6, key codes", TRIALS, lambda each: {"key_press": (70, 74)[each.side]}, KEYBOARD)
add(
    "jsPsych 8, image buttons, one line a participant (JATOS)",
    "results.txt.jsonl",
    "".join(json.dumps(jspsych(mine, plugin="image-button-response")) + "\n" for mine in by_person(TRIALS).values()),
)
phases = [{**row, "phase": phase} for phase, of in (("practice", PRACTICE), ("test", TRIALS)) for row in jspsych(of)]
add("jsPsych, practice in the data", "data.csv", as_csv(phases))
add_jspsych(
    ", timeouts and other keys",
    [*TRIALS, Trial("S03", "cat", ("dog", "owl"), 0)],
    lambda each: {"response": KEYS[each.side] if each.ms != 800 else " "},
    KEYBOARD,
)
add("jsPsych, aborted session", "data.csv", as_csv(jspsych()[:-6]), NAMED[:-3])
nothing = [
    {**row, "run_id": "17", "response": "NA" if row.get("response") is None else row["response"]} for row in jspsych()
]
add("jsPsych, Pavlovia's extra columns, NA", "data.csv", as_csv(nothing))
choices = [
    {"trial_type": "html-button-response", "target": each.anchor, "choices": list(each.shown)}
    | {"response": each.side, "rt": each.ms, "subject": each.who}
    for each in TRIALS
]
add("jsPsych, choices as a list, JSON", "data.json", json.dumps(choices))
add_jspsych(", 1 and 2 on the keyboard", TRIALS, lambda each: {"response": str(each.side + 1)}, KEYBOARD)
one_key = jspsych(ONE_SIDE, lambda each: {"response": "1"}, KEYBOARD, fixation=False)[1:]
add("jsPsych, only one key ever pressed", "data.csv", as_csv(one_key), answers(ONE_SIDE), refused=True)

# ---- Qualtrics: "Understanding your data set"; three header rows, loop and merge numbers in front


def qualtrics(names: Sequence[str], texts: Sequence[str], cells: Callable, some: Sequence[Trial] = TRIALS) -> str:
    """With a preview before the answers."""
    meta = ["StartDate", "EndDate", "Status", "Progress", "Duration (in seconds)", "Finished", "ResponseId"]
    told = ["Start Date", "End Date", "Response Type", "Progress", "Duration (in seconds)", "Finished", "Response ID"]
    day, people = ["2024-05-01 10:00:00"] * 2, by_person(some)
    imports = [json.dumps({"ImportId": name}) for name in (*meta, *(f"QID{n}" for n in range(len(names))))]
    made = [[*meta, *names], [*told, *texts], imports]
    made.append([*day, "Survey Preview", 100, 60, "True", "R_0", *cells(people["S00"])])
    made += [[*day, "IP Address", 100, 300, "True", who, *cells(mine)] for who, mine in people.items()]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(made)
    return out.getvalue()


ROLES = ("anchor", "left", "right", "choice")


def asked_in_full(name: str, text: str, choice: Callable[[int, Trial], Any], aborted: bool = False) -> str:
    """Twelve questions of four cells each; `name` has {role} and {n}. Of aborted sessions unanswered ones are empty."""

    def cells(mine: list[Trial]) -> list[Any]:
        told = [(each.anchor, *each.shown, choice(n, each)) for n, each in enumerate(mine)]
        return [cell for four in told for cell in (four if four[3] != "" or not aborted else [""] * 4)]

    names = [name.format(role=role, n=n) for n in range(1, 13) for role in ROLES]
    return qualtrics(names, [text] * 48, cells)


SIMILAR = "Which is more similar?"
embedded = asked_in_full("{role}_{n}", SIMILAR, lambda n, each: each.chosen)
add("Qualtrics, embedded data, names", "q.csv", embedded)
add("Qualtrics, loop and merge", "q.csv", asked_in_full("{n}_{role}", SIMILAR, lambda n, each: each.side + 1))
sides = asked_in_full("Q{n}_{role}", "Which, the left or the right?", lambda n, each: ("Left", "Right")[each.side])
add("Qualtrics, left and right", "q.csv", sides)
SAME = [Trial("", "cat", ("dog", "owl"), 0), Trial("", "dog", ("cat", "pig"), 0), Trial("", "owl", ("hen", "emu"), 0)]
EVERYBODY = [SAME[k]._replace(who=f"S{n:02}", side=(n + k) % 2) for n, k in product(range(4), range(3))]


def asked(each: Trial) -> str:
    return f"Which is more similar to {each.anchor}: {each.shown[0]} or {each.shown[1]}?"


second_row = qualtrics(["Q1", "Q2", "Q3"], [*map(asked, SAME)], lambda mine: [each.chosen for each in mine], EVERYBODY)
add("Qualtrics, the questions in the second row", "q.csv", second_row, answers(EVERYBODY))
third_row = "Export of May,,,\nSurvey 1,,,\n" + table(
    rows("head|winner|loser|worker", "{anchor}|{chosen}|{other}|{who}")
)
add("Qualtrics, header in the third row of a spreadsheet", "q.csv", third_row)
unanswered = asked_in_full("{role}_{n}", "?", lambda n, each: each.chosen if n < 9 else "")
add("Qualtrics, unanswered questions", "q.csv", unanswered, [each for n, each in enumerate(NAMED) if n % 12 < 9])

# ---- wide tables: one row a participant


def wide(name: str, choice: str, who: str = "participant") -> str:
    """`name` has {role} and {n}, `choice` is of `fields`."""
    made = []
    for person, mine in by_person(TRIALS).items():
        made.append({who: person, "age": 30})
        for n, each in enumerate(mine, 1):
            cells = (each.anchor, *each.shown, fields(each, n)[choice])
            made[-1] |= {name.format(role=role, n=n): cell for role, cell in zip(ROLES, cells)}
    return table(made)


add("wide, Q{n}_choice", "wide.csv", wide("Q{n}_{role}", "chosen"))
add("wide, choice.1", "wide.csv", wide("{role}.{n}", "letter").replace(",A", ",L").replace(",B", ",R"))
add("wide, t01 with positions", "wide.csv", wide("t{n:02}_{role}", "one"))
add("wide, NA", "wide.csv", wide("Q{n}_{role}", "chosen") + "S09,30" + ",NA" * 48 + "\n")
add("wide, oTree", "all_apps_wide.csv", wide("triplets.{n}.player.{role}", "chosen", "participant.code"))
OTREE = (
    "participant.id_in_session|participant.code|participant._is_bot|player.id_in_group|player.target|player.option_a|"
    "player.option_b|player.choice|player.payoff|subsession.round_number|session.code"
)
otree = table(rows(OTREE, "1|{who}|0|1|{anchor}|{left}|{right}|{chosen}|0|1|abc"))
add("oTree, one app", "triplets.csv", otree)


def by_question(header: Callable[[Trial], str], who: str) -> list[dict[str, Any]]:
    """Columns that are questions."""
    return [
        {who: person, **{header(each): each.chosen for each in mine}} for person, mine in by_person(EVERYBODY).items()
    ]


def add_by_question(name: str, file: str, header: Callable[[Trial], str], who: str, said: list | None = None) -> None:
    add(name, file, table(by_question(header, who)), answers(EVERYBODY) if said is None else said)


forms = [{"Timestamp": "2024/05/01 10:00:00 AM", **row} for row in by_question(asked, "Participant ID")]
add("Google Forms", "Form responses.csv", table(forms), answers(EVERYBODY))
add_by_question(
    "Google Forms, commas in the questions",
    "form.csv",
    lambda each: f"Compared with {each.anchor}, is it more like {each.shown[0]}, or {each.shown[1]}?",
    "Username",
)
add_by_question(
    "Google Forms, questions in which the objects cannot be told",
    "form.csv",
    lambda each: f"{each.anchor.title()}, compared with {each.anchor}: {each.shown[0]}, or {each.shown[1]}?",
    "Username",
    [],
)
lime = [
    {"id. Response ID": n, "submitdate. Date submitted": "2024-05-01", **row}
    for n, row in enumerate(by_question(asked, "token"), 1)
]
add("LimeSurvey, question texts", "results-survey.csv", table(lime, quoted=True), answers(EVERYBODY))
add_by_question(
    "names of columns are the questions", "wide.csv", lambda each: "_".join((each.anchor, *each.shown)), "subject"
)
monkey = (
    "Respondent ID,Collector ID," + ",".join(f'"{asked(each)}"' for each in SAME) + "\n,,Response,Response,Response\n"
)
monkey += "".join(f"1180{n},77,{','.join(each.chosen for each in EVERYBODY[3 * n : 3 * n + 3])}\n" for n in range(4))
respondents = [(f"1180{int(who[1:])}", *names) for who, *names in answers(EVERYBODY)]
add("SurveyMonkey", "SurveyMonkey.csv", monkey, respondents)

# ---- Gorilla: "Data columns" of the task builder; rows for screens, zones and events


def gorilla(some: Sequence[Trial] = TRIALS) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for who, mine in by_person(some).items():
        base = {"UTC Date": "01/05/2024 10:00:00", "Experiment ID": 4711, "Participant Public ID": "BLIND"}
        base |= {"Participant Private ID": who, "Task Name": "Triplets"}
        welcome = {"Screen Name": "Welcome", "Zone Type": "continue_button", "Response": "Next"}
        made += [{**base, "Trial Number": "BEGIN TASK"}, {**base, **welcome, "display": "instructions"}]
        for n, each in enumerate(mine, 1):
            cells = {**base, "Trial Number": n, "Anchor": each.anchor, "Left": each.shown[0], "Right": each.shown[1]}
            cells["display"] = "practice" if each in PRACTICE else "task"
            made.append({**cells, "Screen Name": "Fixation", "Zone Type": "fixation", "Reaction Time": 250.1})
            choice = {"Screen Name": "Choice", "Zone Type": "response_button_image", "Reaction Time": each.ms}
            made.append({**cells, **choice, "Response": each.chosen, "Correct": 0, "Attempt": 1})
        made.append({**base, "Trial Number": "END TASK"})
    return [{"Event Index": n, **row} for n, row in enumerate(made, 1)] + [{"Event Index": "END OF FILE"}]


GORILLA = "data_exp_4711.csv"
add("Gorilla", GORILLA, table(gorilla()))
add("Gorilla, practice", GORILLA, table(gorilla([*PRACTICE, *TRIALS])))
zones = [
    {
        **row,
        "Response": ("Left", "Right")[row["Response"] == row["Right"]] if "Attempt" in row else row.get("Response", ""),
    }
    for row in gorilla()
]
add("Gorilla, names of zones", GORILLA, table(zones))
late = [row if n % 10 else {**row, "Response": ""} for n, row in enumerate(gorilla())]
in_time = [row["Response"] != "" for row in late if "Attempt" in row]
add("Gorilla, no answer in time", GORILLA, table(late), [each for each, told in zip(NAMED, in_time) if told])

# ---- PsychoPy: "Data outputs", wide csv of the experiment handler


def psychopy(some: Sequence[Trial] = TRIALS, keys: Sequence[str] = ("left", "right")) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for who, mine in by_person(some).items():
        base = {"participant": who, "session": 1, "date": "2024-05-01_10h00", "expName": "triplets", "frameRate": 59.9}
        made.append({**base, "instr_key.keys": "space", "instr_key.rt": 2.1})
        for n, each in enumerate(mine):
            shown = {"target": each.anchor, "left_img": each.shown[0], "right_img": each.shown[1]}
            number = {"trials.thisN": n, "trials.thisIndex": n}
            made.append(shown | number | {"key_resp.keys": keys[each.side], "key_resp.rt": each.ms / 1000} | base)
        made.append(base)
    return made


PSYCHOPY = "S00_triplets.csv"
add("PsychoPy, arrow keys", PSYCHOPY, table(psychopy()))
add("PsychoPy, f and j", PSYCHOPY, table(psychopy(keys=KEYS)))
cut_off = {"participant": "S04", "session": 1, "target": "cat", "left_img": "dog", "right_img": "owl"}
add("PsychoPy, aborted session, None", PSYCHOPY, table([*psychopy(), {**cut_off, "key_resp.keys": "None"}]))
mouse = [
    {k: v for k, v in row.items() if not k.startswith("key_")}
    | {"mouse.clicked_name": f"{row['key_resp.keys']}_img" if "key_resp.keys" in row else ""}
    for row in psychopy()
]
add("PsychoPy, mouse on a picture", PSYCHOPY, table(mouse))
blocks = [{**row, "block": name} for name, of in (("practice", PRACTICE), ("main", TRIALS)) for row in psychopy(of)]
add("PsychoPy, practice loop", PSYCHOPY, table(blocks))


def odd_in_loops(main: Sequence[str], key: str = "key_odd.keys") -> str:
    """An odd-one-out by three arrow keys, with practice in a loop of its own; the trials in one or several loops."""
    made = []
    for who, mine in by_person(TRIALS).items():
        some = [("practice_loop", each._replace(who=who)) for each in PRACTICE]
        some += [(main[n * len(main) // len(mine)], each) for n, each in enumerate(mine)]
        for n, (loop, each) in enumerate(some):
            shown = [name for name in (each.anchor, *each.shown) if name != each.chosen]
            shown.insert(n % 3, each.chosen)
            stims = dict(zip(("stim1", "stim2", "stim3"), shown))
            pressed = {key: ("left", "down", "right")[n % 3], "participant": who}
            made.append(stims | {f"{loop}.thisRepN": 0, f"{loop}.thisN": n} | pressed)
    return table(made)


add("PsychoPy, odd one out, practice in its loop", PSYCHOPY, odd_in_loops(["trials"]), odd_answers())
several = odd_in_loops(["block_1", "block_2"])
add("PsychoPy, odd one out, practice beside two loops", PSYCHOPY, several, odd_answers())
either = odd_in_loops(["trials"], "key_resp.keys")
add("PsychoPy, three keys that answer something", PSYCHOPY, either, odd_answers(), refused=True)
guess = table(psychopy(ONE_SIDE, ("1", "2")))
add("PsychoPy, one key for what is anybody's guess", PSYCHOPY, guess, answers(ONE_SIDE), refused=True)

# ---- tripletTools, NEXT, THINGS, Meadows, lab.js, label-studio, MTurk, cblearn

TOOLS = "head|winner|loser|worker_id|rt|Center|Left|Right|Answer|sampleAlg|sampleSet"


def triplet_tools(checks: int = 6) -> list[dict[str, Any]]:
    made = rows(TOOLS, "{n}|1|2|{who}|{ms}|{anchor}|{left}|{right}|{chosen}|random|train")
    for row in made[1::2]:
        row |= {"sampleAlg": "validation", "sampleSet": "test"}
    for n in range(checks):
        check = f"1|1|2|S{n % 4:02}|700|cat|cat|owl|{('cat', 'owl')[n == 3]}|check|NA"
        made.insert(5 * n, dict(zip(TOOLS.split("|"), check.split("|"))))
    return made


add("tripletTools, checks", "individual.csv", table(triplet_tools()), catch=6)
add("tripletTools, without checks", "individual.csv", table(triplet_tools(checks=0)))
without = [*triplet_tools(), {**triplet_tools()[-1], "Answer": "NA"}]
add("tripletTools, NA in answers", "individual.csv", table(without), catch=6)
twice = table([*triplet_tools(), *triplet_tools()])
add("tripletTools, duplicated participant", "individual.csv", twice, [*NAMED, *NAMED], catch=12)
NEXT = "participant_uid|target_center|target_left|target_right|target_winner|response_time|timestamp_query_generated"
of_next = table(rows(NEXT, "{who}|{anchor}|{left}|{right}|{chosen}|{s}|2015-05-29 03:46:14.384"))
add("NEXT", "participants.csv", of_next)


def three(names: str, cell: str) -> str:
    """Three pictures and what was said of them."""
    return table(rows(f"subject_id|{names}|RT", f"{{who}}|{{anchor}}|{{left}}|{{right}}|{cell}|{{ms}}"))


things = three("image1|image2|image3|choice", "{two}").replace(",", "\t")
add("THINGS, choices", "triplets_large_final.csv", things, odd_answers())
bare = "".join(" ".join(names) + "\n" for _, *names in numbered(odd_answers()[::2]))
of_bare = numbered(odd_answers(named=False))
add("THINGS, training triplets without a header", "trainset.txt", bare, of_bare, refused=True)
add("odd one out, by name", "odd.csv", three("left|middle|right|odd_one_out", "{chosen}"), odd_answers())
two_and_odd = table(rows("a|b|odd|worker", "{anchor}|{other}|{chosen}|{who}"))
add("odd one out, two and the odd one", "odd.csv", two_and_odd, odd_answers())
either = three("image_1|image_2|image_3|response", "{chosen}")
add("odd or central", "three.csv", either, odd_answers(), refused=True)
meadows = rows(
    "task|participation|stim1_name|stim2_name|stim3_name|start|resp|label",
    "triplets|{who}|{anchor}|{left}|{right}|2020-09-14T18:18:43.196Z|2020-09-14T18:19:00.993Z|{chosen}",
)
for row in meadows:
    ids = {f"stim{n}_id": f"{ord(row[f'stim{n}_name'][0]):x}{ord(row[f'stim{n}_name'][1]):x}" for n in (1, 2, 3)}
    stored = dict(row)
    row.clear()
    row |= {"task": stored["task"], "participation": stored["participation"]} | ids | stored
add("Meadows, annotations", "Meadows_study_annotations.csv", table(meadows), odd_answers(), refused=True)
tree = {
    who: {
        "screen": {"width": 1280},
        "task": {"name": "triplets"},
        "trials": rows("anchor|left|right|choice", "{anchor}|{left}|{right}|{chosen}", mine),
    }
    for who, mine in by_person(TRIALS).items()
}
add("Meadows, tree", "Meadows_study_tree.json", json.dumps(tree))


def labjs() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for who, mine in by_person(TRIALS).items():
        made.append({"sender": "Welcome", "sender_type": "html.Form", "participant_id": who, "response": ""})
        for each in mine:
            data = {"anchor": each.anchor, "left": each.shown[0], "right": each.shown[1], "participant_id": who}
            fixation = {"sender": "Fixation", "sender_type": "canvas.Screen", "duration": 500, "ended_on": "timeout"}
            choice = {"sender": "Choice", "sender_type": "html.Screen", "duration": each.ms, "ended_on": "response"}
            made += [data | fixation, data | choice | {"response": ("left", "right")[each.side]}]
    return made


add("lab.js", "labjs.csv", table(labjs()))
add("lab.js, JSON lines", "labjs.jsonl", "".join(json.dumps(row) + "\n" for row in labjs()))
red = {"sender": "Choice", "anchor": "red", "left": "blue", "right": "green", "response": "left"}
red |= {"participant_id": "S00", "practice": "true"}
add("lab.js, practice block", "labjs.csv", table([red, *({**row, "practice": "false"} for row in labjs())]))


def pairwise_result(where: str) -> list[dict[str, Any]]:
    return [{"from_name": "pw", "to_name": "left,right", "type": "pairwise", "value": {"selected": where}}]


data_of = rows("anchor|left|right", "{anchor}|{left}|{right}")
tasks = [
    {"id": n, "data": data_of[n - 1]}
    | {
        "annotations": [
            {"id": n, "completed_by": each.who, "lead_time": each.ms / 1000}
            | {"result": pairwise_result(("left", "right")[each.side])}
        ],
        "created_at": "2024-05-01T10:00:00Z",
    }
    for n, each in enumerate(TRIALS, 1)
]
add("label-studio, JSON", "project-1.json", json.dumps(tasks))
least = rows(
    "anchor|left|right|id|choice|annotator|lead_time", "{anchor}|{left}|{right}|{n}|{where}|{who}|1.2", first=1
)
add("label-studio, JSON_MIN", "project-1.json", typed(least))
studio = "anchor|left|right|annotator|annotation_id|choice|lead_time"
least = rows(studio, "{anchor}|{left}|{right}|{who}|{n}|{where}|1.2", first=1)
add("label-studio, CSV", "project-1.csv", table(least))
MTURK = (
    "HITId|Title|AssignmentId|WorkerId|AssignmentStatus|WorkTimeInSeconds|Input.target|Input.option1|Input.option2|"
    "Answer.choice"
)
mturk = table(rows(MTURK, "3{n}|Which?|A{n}|{who}|Approved|12|{anchor}|{left}|{right}|option{one}"), quoted=True)
add("MTurk, batch results", "Batch_42_batch_results.csv", mturk)
hits = []
for number, (who, mine) in enumerate(by_person(TRIALS).items()):
    hits.append({"HITId": f"3{number}", "WorkerId": who})
    for n, each in enumerate(mine, 1):
        hits[-1] |= {f"Input.anchor{n}": each.anchor, f"Input.left{n}": each.shown[0], f"Input.right{n}": each.shown[1]}
    hits[-1] |= {f"Answer.choice{n}": each.chosen for n, each in enumerate(mine, 1)}
add("MTurk, several questions a HIT", "Batch_43_batch_results.csv", table(hits))
PROLIFIC = "PROLIFIC_PID|Submission id|Status|Age|Sex|probe|optionA|optionB|answer|rt"
prolific = table(rows(PROLIFIC, "{who}|a1|APPROVED|31|Female|{anchor}|{left}|{right}|{letter}|{ms}"))
add("Prolific, joined with demographics", "joined.csv", prolific)


def add_answers(name: str, names: str, cells: str, said: list = UNNAMED, refused: bool = False) -> None:
    """Add a table that somebody made by hand."""
    add(name, "answers.csv", table(rows(names, cells)), said, refused)


options, OF = "Target|Option1|Option2", "{anchor}|{left}|{right}"
add_answers("Target,Option1,Option2 with an answer", f"{options}|Selected", OF + "|{chosen}")
add_answers("Target,Option1,Option2 without an answer", options, "{anchor}|{chosen}|{other}", refused=True)
add_answers("0 or 1, but only 1 was answered", f"{options}|Choice", "{anchor}|{chosen}|{other}|1", refused=True)
add_answers("unnamed columns, answers by name", "x|y1|y2|z", OF + "|{chosen}")
cblearn = [("", *names) for _, *names in numbered(NAMED)]
add("cblearn, list order", "triplets.csv", table(rows("i|j|k", "{#anchor}|{#chosen}|{#other}")), cblearn)
responses = rows("i|j|k|response", "{#anchor}|{#left}|{#right}|{side}")
responses = [{**row, "response": 1 - 2 * int(row["response"])} for row in responses]
add("cblearn, responses", "triplets.csv", table(responses), cblearn)
add_answers("this engine", "anchor|near|far|worker", "{anchor}|{chosen}|{other}|{who}", NAMED)
ours = [
    {**row, "phase": phase}
    for phase, some in (("practice", PRACTICE), ("main", TRIALS))
    for row in rows("anchor|near|far|subject", "{anchor}|{chosen}|{other}|{who}", some)
]
add("this engine, practice and another word for participants", "answers.csv", table(ours))
OF += "|{chosen}|{who}"
marked = [{**row, "is_catch": int(n % 8 == 0)} for n, row in enumerate(rows("target|left|right|chosen|subject", OF))]
kept = [each for n, each in enumerate(NAMED) if n % 8]
add("catch trials marked, answers not known", "answers.csv", table(marked), kept)
parts = [
    {**row, "set": ("training", "test")[n % 2]} for n, row in enumerate(rows("target|left|right|chosen|subject", OF))
]
add("training and test: practice or a split?", "answers.csv", table(parts), refused=True)

# ---- what happens to files on the way

windows = table(salmon).replace("\n", "\r\n")
add("salmon, a byte order mark and line ends of Windows", "responses.csv", windows, encoding="utf-8-sig")
in_r = table([{"": n, **row} for n, row in enumerate(salmon, 1)], quoted=True)
add("salmon, R's row names", "responses.csv", in_r)
add("salmon, pandas' index", "responses.csv", table([{"Unnamed: 0": n, **row} for n, row in enumerate(salmon)]))
add("Qualtrics, tabs in UTF-16", "q.tsv", embedded.replace(",", "\t"), encoding="utf-16")
stopped = asked_in_full("{n}_{role}", "?", lambda n, each: each.chosen if n < 7 else "", aborted=True)
seven = [each for n, each in enumerate(NAMED) if n % 12 < 7]
add("Qualtrics, progress of aborted sessions", "q.csv", stopped, seven)
add("PsychoPy, semicolons", PSYCHOPY, table(psychopy(), ";"))
nobody = table([{**row, "participant": ""} for row in psychopy()])
add("PsychoPy, no participant entered", PSYCHOPY, nobody, UNNAMED)
add("Gorilla, semicolons", GORILLA, table(gorilla(), ";"))
add("jsPsych, a session twice", "data.csv", as_csv([*jspsych(), *jspsych()]), [*NAMED, *NAMED])
renamed = {"anchor": "ref_img", "left": "opt_img_1", "right": "opt_img_2"}
other_names = as_csv([{renamed.get(name, name): cell for name, cell in row.items()} for row in jspsych()])
add("jsPsych, target and options with other names", "data.csv", other_names)
add("oTree, an aborted round", "triplets.csv", otree + "1,x9,0,1,cat,dog,owl,,,13,abc\n")
add("MTurk, rejected answers", "Batch_42_batch_results.csv", mturk.replace("Approved", "Rejected", 3), NAMED[3:])
timeout = [{**row, "response": "", "ended_on": "timeout"} if n == 2 else row for n, row in enumerate(labjs())]
add("lab.js, answers in time only", "labjs.csv", table(timeout), NAMED[1:])

# ---- columns whose names mean nothing to the engine: shown as candidates, never read unasked


def spreadsheet(answer: Callable[[int, list[str]], str]) -> str:
    """A German spreadsheet: three objects, of which the n-th trial's odd one stands in column n % 3."""
    made = []
    for who, mine in by_person(TRIALS).items():
        for n, each in enumerate(mine):
            shown = [name.replace("owl", "öwl") for name in (each.anchor, *each.shown) if name != each.chosen]
            shown.insert(n % 3, each.chosen.replace("owl", "öwl"))
            given = {"VP": who, "Auswahl": answer(n, shown), "Reaktionszeit": f"0,{each.ms}", "Bedingung": "AB"[n % 2]}
            made.append(dict(zip(("links", "mitte", "rechts"), shown)) | given)
    return table(made, ";")


ODD = [tuple(name.replace("owl", "öwl") for name in each) for each in odd_answers()]
by_side = spreadsheet(lambda n, shown: ("links", "mitte", "rechts")[n % 3])
add("spreadsheet, German columns", "excel.csv", by_side, ODD, refused=True, encoding="cp1252")
by_name = spreadsheet(lambda n, shown: shown[n % 3])
add("spreadsheet, German columns, names", "excel.csv", by_name, ODD, refused=True, encoding="cp1252")
welche = table(rows("Person|Bezug|eins|zwei|Wahl", "{who}|{anchor}|{left}|{right}|{chosen}"))
add("spreadsheet, words of another language", "excel.csv", welche)
