"""What `read` makes of answers of all kinds, and what a study does with participants, fits, features and pages."""

import warnings
from collections.abc import Iterator

import numpy as np

from stream_engine import read
from stream_engine.api.study import Study
from tests.support.approved import number, outline, rows, unchanging
from tests.support.approved_answers import by_distance, coin, picks, places

POINTS = places((4, 3, 2), 6)
PEOPLE = {"ann": (170, by_distance(1.0)), "bob": (120, by_distance(1.0)), "cho": (60, coin), "dev": (9, coin)}
EVENTS = picks(POINTS, PEOPLE, 61, again=0.2)
COLUMNS = {
    "probe": [event["anchor"] for event in EVENTS],
    "one": [event["shown"][0] for event in EVENTS],
    "two": [event["shown"][1] for event in EVENTS],
    "pick": [event["chosen"][0] for event in EVENTS],
    "who": [event["worker"] for event in EVENTS],
    "part": ["practice" if number % 29 == 0 else "test" for number in range(len(EVENTS))],
}
AS = {"anchor": "probe", "shown": ["one", "two"], "chosen": "pick", "worker": "who"}
LABELS = {name: name[:4] for name in sorted(POINTS) if name != "tree1"} | {"bird2": "fish", "stone": "stone"}
TRIPLETS = [("a", "b", "c"), ("b", "a", "c"), ("c", "a", "b"), ("a", "b", "a"), ("a", "c", "b"), ("c", "b")]
APART = [(*(f"{name}{mark}" for name in row),) for mark in "xyz" for row in TRIPLETS[: 4 - "xyz".index(mark)]]
QUESTIONS = [{"anchor": "bird0", "left": "bird1", "right": "fish2"}, {"anchor": "fish1", "left": "tree0", "right": "?"}]
FIT = {"dimensions": 2, "kernel": "ste", "ridge": 1.0, "participants": "alike"}


def heard(make) -> tuple[object, list[str]]:
    """What a call returns, and the lines that it warns of or raises."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            made = make()
        except Exception as error:
            return None, [*(f"! {each.message}" for each in warned), f"!! {type(error).__name__}: {error}"]
    return made, [f"! {each.message}" for each in warned]


def of_a_study(study: Study) -> Iterator[str]:
    yield f"{study!r}, {len(study)}; read as: {study.read_as}"
    for name, most in {"objects": 12, "questions": 5, "refused": 12}.items():
        yield from (f"{name}: {line}" for line in rows(getattr(study, name)(), most))


def test_read(tmp_path, approved):
    """Columns, dicts, triplets, arrays, files, and what cannot be read."""
    (tmp_path / "a.csv").write_text("anchor,near,far,worker,mood\na,b,c,w1,3\nb,a,c,w1,4\nb,a,b,w2,1\nc,b,a,w2,5\n")
    (tmp_path / "b.csv").write_text("anchor,near,far\na,b,c\na,b,d\nd,c,a\n")
    (tmp_path / "c.csv").write_text("object,label\na,x\nb,y\n")
    one = {"anchor": "a", "near": "b", "far": "c", "worker": "w", "time": 5.0}
    four = np.array([[0, 1, 2, 3], [0, 1, 0, 2], [3, 1, 2, 0]])
    tell = {"frames": "arrow"}
    cases = {
        "columns": lambda: read(COLUMNS, "pick", AS, {"part": "test"}, labels=LABELS, **tell),
        "columns, guessed": lambda: read(COLUMNS, **tell),
        "farther": lambda: read(COLUMNS, "pick", AS, answer_is="farther", where={"who": ["bob", "dev"]}, **tell),
        "triplets": lambda: read(TRIPLETS, **tell),
        "other names": lambda: read(
            {"head": ["a", "b", "a"], "win": ["b", "b", None], "lose": ["c", "a", "c"]},
            columns={"anchor": "head", "near": "win", "far": "lose"}, on_refused="raise", **tell),
        "other names, of dicts": lambda: read(
            [{"head": "a", "win": "b", "lose": "c"}] * 3 + [{"head": "a", "win": 1.5, "lose": "c"}, {"head": "a"}],
            columns={"anchor": "head", "near": "win", "far": "lose"}, **tell),
        "triplets of three": lambda: read(TRIPLETS[:5], **tell),
        "triplets, all right": lambda: read(TRIPLETS[:5], on_refused="raise", **tell),
        "mostly wrong": lambda: read([("a", "b", "a")] * 3 + TRIPLETS[:2], **tell),
        "apart": lambda: read(APART, **tell),
        "dicts": lambda: read([one, one, one | {"near": "c", "far": "d"}, {"object": "a"}, one | {"far": 3}], **tell),
        "dicts, copies dropped": lambda: read([one, one, one | {"time": 6.0}], drop_duplicates=True, **tell),
        "numbers": lambda: read(four, **tell),
        "nothing": lambda: read(COLUMNS, "pick", AS, {"part": "none"}, **tell),
        "a file": lambda: read(str(tmp_path / "a.csv"), labels=str(tmp_path / "c.csv"), **tell),
        "files": lambda: read([str(tmp_path / f"{each}.csv") for each in "ab"], participant_from="file", **tell),
        "codes": lambda: read(
            COLUMNS | {"pick": ["f" if number % 3 else "j" for number in range(len(EVENTS))]}, "pick", AS,
            codes={"chosen": {"f": "1", "j": "2"}}, answers_by="position", **tell),
        "a wrong option": lambda: read(TRIPLETS, answers_by="names", **tell),
        "a wrong column": lambda: read(COLUMNS, "pick", AS | {"anchor": "prob"}, **tell),
        "no file": lambda: read(str(tmp_path / "none.csv"), **tell),
    }  # fmt: skip
    lines = []
    for name, make in cases.items():
        study, said = heard(make)
        lines += [f"## {name}", *said, *(of_a_study(study) if study is not None else ()), ""]
    assert unchanging("\n".join(lines).replace(str(tmp_path), "FOLDER")) == approved


def test_study(tmp_path, approved):
    """One study through its methods."""
    whole = read(COLUMNS, "pick", AS, labels=LABELS, frames="arrow").fit("embedding", **FIT)
    study, lines = whole.exclude("cho"), []

    def say(name, make, show=rows):
        value, said = heard(make)
        lines.extend([f"## {name}", *said, *(show(value) if value is not None else ()), ""])
        return value

    plain = lambda value: [str(value)]  # noqa: E731
    of_fits = lambda report: outline({key: each for key, each in report.items() if "seconds" not in key})  # noqa: E731
    say("excluded", lambda: [study, study._repr_html_(), study.published.excluded], number_of)
    say("workers", lambda: whole.workers())
    say("fitted", lambda: study.fit("embedding", **FIT), plain)
    say("workers without cho", lambda: study.workers())
    say("models without cho", lambda: study.models().drop_columns("seconds"))
    say("predict", lambda: study.predict(QUESTIONS))
    say("predict, cho", lambda: study.predict(QUESTIONS, participant="cho"))
    say("predict, dev", lambda: whole.predict(QUESTIONS, participant="dev"))
    say("predict, anne", lambda: whole.predict(QUESTIONS, participant="anne"))
    say("predict, counts", lambda: whole.predict(QUESTIONS, model="k1"))
    say("map", lambda: whole.map(), lambda made: [repr(made), *rows(made.to_frame())])
    say("map in one dimension", lambda: whole.map(1), lambda made: [repr(made), str(made.d)])
    say("hierarchy", lambda: whole.hierarchy("k1"), lambda made: [repr(made), *rows(made.to_frame())])
    say("clusters", lambda: whole.clusters(k=2))
    say("details of spectral", lambda: whole.fit("spectral", k=3).details("spectral"), of_fits)
    say("details of boosting", lambda: whole.fit("triplet_boost", rounds=40).details("triplet_boost"), of_fits)
    say("objects", lambda: whole.objects())
    say("ask", lambda: whole.ask(3, "random", objects=["leaf", "bird0"]))
    say("ask, uncertain", lambda: whole.ask(2, "uncertainty", type="odd_one_out", random_share=0.0))
    for strategy in ("landmark-k2", "information-gain"):
        say(f"ask, {strategy}", lambda strategy=strategy: whole.ask(3, strategy))  # type: ignore[misc]
    say("ask nobody", lambda: whole.ask(3, "unknown"))
    near = {name: [*np.round(at, 2).tolist(), len(name)] for name, at in POINTS.items() if name != "fish3"}
    say("align", lambda: whole.align({"near": near, "name": {name: [ord(name[1])] for name in POINTS}}, linear=False))
    fewer = study.exclude("dev").include("cho").published
    say("included again", lambda: [study.include("cho") is whole, fewer.excluded], number_of)
    say("include", lambda: study.include("bob"), plain)
    say("exclude", lambda: whole.exclude("chow"), plain)
    say("fit", lambda: whole.fit("embedding", dimension=2), plain)
    say("saved", lambda: study.save(tmp_path / "state"), lambda _: [])
    again = say("read again", lambda: read(str(tmp_path / "state"), frames="arrow"), plain)
    say("of the state", lambda: [again.published.excluded, again.include()], number_of)
    say("saved again", lambda: whole.save(tmp_path / "state"), plain)
    assert unchanging("\n".join(lines).replace(str(tmp_path), "FOLDER")) == approved


def number_of(values) -> list[str]:
    return [repr(each) if isinstance(each, Study) else number(each) for each in values]
