"""What commands print about what they read, did and left, counted from the events: two runs over different parts of a
study, their sum, and what is deleted, excluded, predicted and verified."""

import json
import re
from collections import Counter
from statistics import median
from types import SimpleNamespace

import pytest

from stream_engine.state.store import Store
from tests.support.process import engine, jsonl
from tests.support.told import events, numbers, said

HALVES = (slice(0, 120), slice(120, 200))
WRONG = [{"anchor": "a", "near": "a", "far": "b"}] * 4 + [{"anchor": "a", "near": "b"}] * 7
REFUSED = (WRONG, WRONG[:5])  # of each half


def comparisons(made: list[dict]) -> list[tuple]:
    return [rows for event in made for rows in said(event)]


def ints(text: str) -> list[int]:
    return [int(each) for each in numbers(text) if "." not in each]


def asked_in(event: dict):
    """The objects that an answer is about: two pairs, or an anchor and others, or three without an anchor."""
    rows = said(event)
    if event.get("type") == "quadruplet":
        return frozenset((frozenset(rows[0][:2]), frozenset(rows[0][2:])))
    return event.get("anchor"), frozenset(name for row in rows for name in row)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Where it is done, and what each command printed."""
    folder, found = tmp_path_factory.mktemp("commands"), {}
    for name, part, wrong in zip("ab", HALVES, REFUSED):
        path = jsonl(folder / f"{name}.jsonl", events()[part] + wrong)
        found[f"run {name}"] = engine("run", path, "--state", folder / name, "--no-refits").stderr
    found["preview"] = engine("preview", folder / "a.jsonl").stdout
    for name, who in zip("ab", ("w1", "w3")):
        refit = ("refit", "--state", folder / name, "hierarchy", "--exclude", f"participant={who}")
        found[f"refit {name}"] = engine(*refit).stdout
    found["merge"] = engine("merge", folder / "a", folder / "b", "--out", folder / "c").stdout
    found["verify"] = engine("verify", "--state", folder / "a").stdout
    asked = ("ask", "--state", folder / "c", "--n", "3", "--out", folder / "asked.jsonl")
    found["ask"] = "".join(engine(*asked)[1:])
    return SimpleNamespace(folder=folder, of=lambda state: Store(folder / state).latest().snapshot, said=found)


@pytest.mark.parametrize("name, part, wrong", [*zip("ab", HALVES, REFUSED)])
def test_a_run_ends_with_what_it_read(name, part, wrong, done):
    made = events()[part]
    last = done.said[f"run {name}"].strip().splitlines()[-1]
    reasons = Counter("not_distinct" if "far" in event else "missing_field" for event in wrong)
    read, _, rest = last.partition("first: ")
    assert f"of {name}.jsonl read" in read
    assert ints(read) == [len(made), len(comparisons(made)), len(wrong), *(n for _, n in reasons.most_common())]
    assert [*re.findall(r"\d+ (\w+)[,;]", read.partition("(")[2])] == [reason for reason, _ in reasons.most_common()]
    first = len(made) + 1 if name == "b" else len(made) + 5  # of the commonest reason
    assert f"line {first}:" in rest
    assert f"{len({name for rows in comparisons(made) for name in rows})} objects" in rest


def test_a_preview_counts_what_a_run_would(done):
    made = events()[HALVES[0]]
    rows = dict(
        line.strip().split(None, 1)
        for line in done.said["preview"].splitlines()
        if line.startswith("  ") and " " in line.strip()
    )
    names = [*dict.fromkeys(name for rows in comparisons(made) for name in rows)]
    assert ints(rows["events"]) == [len(made), len(comparisons(made))]
    assert rows["rejected"] == "7 missing_field, 4 not_distinct"
    number, _, named = rows["objects"].partition(": ")
    assert (number, sorted(named.split(", "))) == (str(len(names)), sorted(names))
    answered = Counter(e["worker"] for e in made if "worker" in e and e.get("type") != "label")
    said_of_people = [float(each) for each in numbers(rows["participants"])]
    assert said_of_people == [4, min(answered.values()), max(answered.values()), median(answered.values())]
    last, again, alike = {}, 0, 0
    for event in made:
        rows_of = said(event)
        if not rows_of:
            continue
        question = asked_in(event)
        sides = frozenset((frozenset(r[:2]), frozenset(r[2:])) for r in rows_of)
        again += question in last
        alike += last.get(question) == sides
        last[question] = sides
    assert 0 < alike != again - alike > 0
    assert ints(rows["repeated"]) == [again, alike] and "repetitions" in rows["repeated"]


def test_the_sum_of_two_states_names_what_each_excludes(done):
    first, excluded = done.said["merge"].strip().splitlines()
    assert ints(first.replace(str(done.folder), "")) == [1, len(comparisons(events())), 8, 2]
    assert excluded.partition(":")[2].partition(".")[0].split(", ") == [" w1", "w3"]
    assert Store(done.folder / "c").excluded() == ("w1", "w3")


@pytest.mark.parametrize("name, part, who", [*zip("ab", HALVES, ("w1", "w3"))])
def test_a_refit_is_of_the_others(name, part, who, done):
    three = [rows for e in events()[part] if e.get("worker") != who for rows in said(e) if rows[0] == rows[2]]
    rows = dict(line.strip().split(": ", 1) for line in done.said[f"refit {name}"].splitlines()[1:])
    assert rows["comparisons"] == str(len(three))
    assert rows["participants excluded"] == who


def test_questions_are_said_to_be_over_what_is_not_excluded(done):
    left = [e for e in events() if e.get("worker") not in ("w1", "w3")]
    text = done.said["ask"].replace(str(done.folder), "")
    assert ints(text.partition(";")[0]) == [3, 8, 1, len(comparisons(left))]
    assert len((done.folder / "asked.jsonl").read_text().splitlines()) == 3


def test_verify_names_every_file_with_what_it_holds(done):
    lines = done.said["verify"].splitlines()
    (snapshot,) = (line for line in lines if "snapshot 0" in line)
    size = next((done.folder / "a" / "snapshots").glob("*1*")).stat().st_size
    assert ints(snapshot.partition(": ")[2].partition(", sha")[0]) == [
        len(comparisons(events()[HALVES[0]])),
        8,
        1,
        size,
    ]
    assert any(line.startswith("ok") and "dead letters" in line and f"{len(WRONG)} dead" in line for line in lines)
    assert lines[-1].endswith("no problem found")


def test_dead_letters_are_listed_with_their_lines(done):
    rows = engine("dead-letters", "show", "--state", done.folder / "a").stdout.splitlines()
    begin = len(events()[HALVES[0]]) + 1
    assert [ints(row.partition("line ")[2].partition(" ")[0])[0] for row in rows[::2]] == [
        begin + at for at in range(11)
    ]
    assert [json.loads(row) for row in rows[1::2]] == WRONG
    assert [row.split()[3].rstrip(":") for row in rows[::2]] == ["not_distinct"] * 4 + ["missing_field"] * 7


def test_what_is_deleted_with_somebody_is_counted(done):
    made = events()[HALVES[0]]
    rest = [event for event in made if event.get("worker") != "w2"]
    gone = engine("forget", "--state", done.folder / "a", "--participant", "w2").stdout.splitlines()
    assert ints(gone[0]) == [2, len(comparisons(made)) - len(comparisons(rest)), 0, 8, len(comparisons(rest))]
    kept = done.of("a").section("partial_order")["kept"]
    assert 0 < ints(gone[1])[0] < len(kept)
    deed = done.of("a").counters["history"][-1]
    assert (deed["did"], deed["what"]) == ("forget", "worker")
    assert (deed["comparisons"], deed["dead_letters"]) == (len(comparisons(made)) - len(comparisons(rest)), 0)
    shown = engine("inspect", "--state", done.folder / "a").stdout
    assert re.search(r"forgotten +objects=0 +workers=1", shown)


def test_what_is_deleted_with_an_object_is_counted(done):
    """Each comparison that names it, and no other one of the same answers."""
    made = [event for event in events() if event.get("type") != "quadruplet"]
    path = jsonl(done.folder / "d.jsonl", [*made, {"anchor": "b", "near": "b", "far": "c"}])
    engine("run", path, "--state", done.folder / "d", "--no-refits")
    left = [rows for rows in comparisons(made) if "b" not in rows]
    gone = engine("forget", "--state", done.folder / "d", "--object", "b").stdout.splitlines()
    assert ints(gone[0]) == [2, len(comparisons(made)) - len(left), 1, 7, len(left)]
    assert re.search(r"forgotten +objects=1 +workers=0", engine("inspect", "--state", done.folder / "d").stdout)


QUESTIONS = [
    {"anchor": "d", "left": "a", "right": "c"},
    {"anchor": "d", "left": "zz", "right": "c"},
    {"anchor": "a", "left": "b", "right": "c"},
    {"type": "label", "object": "a", "label": "x"},
]


def test_what_is_predicted_and_what_is_not_is_counted(done):
    engine("refit", "--state", done.folder / "c", "embedding", "--set", "dimensions=2", "--set", "kernel=ste",
           "--set", "ridge=1", "--set", "participants=alike")  # fmt: skip
    told = engine("predict", "--state", done.folder / "c", jsonl(done.folder / "q.jsonl", QUESTIONS))
    p = [json.loads(line)["p"] for line in told.stdout.splitlines()]
    assert [each is None for each in p] == [False, True, False, True]
    about, note = told.stderr.splitlines()
    loss = Store(done.folder / "c").published().artifacts["embedding"].report["log_loss"]
    assert ints(about.partition(";")[0]) == [3] and f"log loss {loss:.3f}" in about
    assert ints(about.partition(";")[2]) == [1]
    assert ints(note.partition(";")[0]) == [1, 4] and "q.jsonl line 4" in note
