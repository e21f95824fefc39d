"""Small studies that are unlike each other in as much as a study can be, each a folder of files and the commands that a
person types there. No two participants have answered as often, and no two sets of objects are of a size.
"""

import io
import json
import re
import shlex
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from tests.support import told
from tests.support.process import engine, jsonl
from tests.support.session_store import once

Events = list[dict[str, Any]]
How = Callable[[np.random.Generator, np.ndarray, np.ndarray], int]
QUICK = "--set dimensions=2 --set kernel=ste --set ridge=1"


class World(NamedTuple):
    """What lies in a folder, and what is typed there; the state is `state`. `participants`: the page lists them;
    `whole`: all of it is approved, of others no drawings and only the ends of tables."""

    files: Callable[[], dict[str, Events | str]]
    commands: tuple[str, ...]
    participants: bool = False
    whole: bool = False
    without: tuple[str, ...] = ()  # sections and lines with figures that another processor changes


def by_distance(noise: float, *weights: float, opposite: bool = False) -> How:
    """Somebody who names the nearer one, by axes of these weights and with noise; `opposite`: the farther one."""

    def side(rng: np.random.Generator, anchor: np.ndarray, shown: np.ndarray) -> int:
        apart = (np.array(weights or (1.0, 1.0)) * (shown - anchor) ** 2).sum(axis=1) + rng.normal(0, noise, len(shown))
        return int(apart.argmax() if opposite else apart.argmin())

    return side


def coin(rng: np.random.Generator, anchor: np.ndarray, shown: np.ndarray) -> int:
    return int(rng.random() * len(shown))


def first(rng: np.random.Generator, anchor: np.ndarray, shown: np.ndarray) -> int:
    """Somebody who names the first, whatever is shown."""
    return 0 if rng.random() < 0.95 else 1


def picks(
    points: dict[str, np.ndarray],
    people: dict[str, tuple[int, How]],
    seed: int,
    shown: int = 2,
    again: float = 0.1,
    fast=(),
) -> Events:
    """Picks of one of those shown; now and then, a question that was asked before. `fast`: who hardly looks."""
    rng, events, asked = np.random.default_rng(seed), [], []
    names = list(points)
    for number, (who, (size, how)) in enumerate(people.items()):
        for at in range(size):
            if not asked or rng.random() > again:
                asked.append([names[i] for i in rng.choice(len(names), shown + 1, replace=False)])
            anchor, *among = (
                asked[-1] if asked[-1] is not None and rng.random() > again else asked[int(rng.integers(len(asked)))]
            )
            side = how(rng, points[anchor], np.array([points[name] for name in among]))
            event = {"type": "pick", "anchor": anchor, "shown": among, "chosen": [among[side]], "worker": who}
            event |= {"time": 1000.0 * (number + 1) + 3 * at}
            event |= {"milliseconds": int(rng.integers(800, 1900) / (1 + number % 3 if who not in fast else 6))}
            events.append(event)
    return events


def places(sizes: tuple[int, ...], seed: int, apart: float = 4.0, d: int = 2) -> dict[str, np.ndarray]:
    """Objects in groups of these sizes, about corners that are no regular figure."""
    rng = np.random.default_rng(seed)
    corners = apart * np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 0.8], [1.4, 1.3]])
    group = np.repeat(np.arange(len(sizes)), sizes)
    points = np.zeros((len(group), d))
    points[:, :2] = corners[group]
    points += rng.normal(0, 0.6, points.shape)
    names = [f"{word}{number}" for word, size in zip(("fish", "bird", "tree", "tool"), sizes) for number in range(size)]
    order = rng.permutation(len(names))
    return {names[i]: points[i] for i in order.tolist()}


def people() -> dict[str, Events | str]:
    """Three groups of objects, ten people: two see one axis only, one tosses coins, one answers the other way round,
    one names the first, one is too fast."""
    careful = {"ann": 140, "bob": 120, "cho": 105, "dev": 90}
    of = {who: (size, by_distance(1.0)) for who, size in careful.items()}
    of |= {"eva": (115, by_distance(1.0, 2.0, 0.0)), "fay": (100, by_distance(1.0, 0.0, 2.0))}
    of |= {"gus": (155, coin), "hal": (60, by_distance(1.0, opposite=True)), "ida": (70, first)}
    of |= {"jon": (40, by_distance(2.0))}
    return {"answers.jsonl": picks(places((6, 4, 3), 1), of, 11, fast=("jon",))}


def differing() -> dict[str, Events | str]:
    """Careful people, some of whom see one axis only."""
    of = {who: (size, by_distance(2.0)) for who, size in (("ann", 150), ("bob", 130), ("cho", 110))}
    of |= {"eva": (140, by_distance(2.0, 2.0, 0.0)), "fay": (120, by_distance(2.0, 0.0, 2.0))}
    of |= {"gil": (100, by_distance(2.0, 0.0, 2.0))}
    return {"answers.jsonl": picks(places((5, 3, 2), 4), of, 14)}


def groups() -> dict[str, Events | str]:
    """Three groups that are clear, and an object by itself."""
    people = {who: (size, by_distance(1.5)) for who, size in (("ann", 330), ("bob", 290), ("cho", 240), ("dev", 170))}
    return {"answers.jsonl": picks(places((8, 6, 4, 1), 2, apart=5.0), people, 12)}


def continuum() -> dict[str, Events | str]:
    """Objects on a line, without gaps."""
    points = {f"tone{number}": np.array([number / 2, 0.1 * (number % 2)]) for number in (7, 2, 9, 4, 0, 5, 1, 8, 3, 6)}
    people = {who: (size, by_distance(1.0)) for who, size in (("ann", 230), ("bob", 190), ("cho", 140))}
    return {"answers.jsonl": picks(points, people, 13)}


def sets() -> dict[str, Events | str]:
    """Three sets of objects that are never compared with each other, and an object with hardly an answer."""
    events = []
    for at, (sizes, each) in enumerate(zip(((4, 3, 2), (3, 3), (3, 2)), (220, 130, 90))):
        points = {f"{'abc'[at]} {name}": place for name, place in places(sizes, at).items()}
        people = {
            "kim": (each, by_distance(0.8)),
            "lee": (each - 9, by_distance(0.8)),
            "max": (each // 2, by_distance(3.0)),
        }
        events += picks(points, people, 20 + at)
    lonely = {"type": "pick", "anchor": "a fish0", "shown": ["a bird1", "a new"], "chosen": ["a new"], "worker": "kim"}
    return {"answers.jsonl": [*events, lonely]}


def joined() -> dict[str, Events | str]:
    """Two sets that three questions join."""
    one, two = ({f"{name}{mark}": at for name, at in places(sizes, 7).items()}
                for mark, sizes in (("x", (5, 3)), ("y", (4, 2))))  # fmt: skip
    people = {"kim": (170, by_distance(0.8)), "lee": (110, by_distance(0.8))}
    across = [
        {"type": "pick", "anchor": a, "shown": [b, c], "chosen": [b], "worker": "kim"}
        for a, b, c in zip(list(one)[:3], list(one)[1:], two)
    ]
    return {"answers.jsonl": picks(one, people, 31) + across + picks(two, people, 32)}


def guessing() -> dict[str, Events | str]:
    people = {f"p{number}": (95 - 11 * number, coin) for number in range(7)}
    return {"answers.jsonl": picks(places((5, 4), 3), people, 41)}


def positions() -> dict[str, Events | str]:
    """People who name the first of three, whatever is shown."""
    people = {f"p{number}": (60 - 7 * number, first) for number in range(6)}
    return {"answers.jsonl": picks(places((5, 4), 3), people, 42, shown=3)}


def preferring() -> dict[str, Events | str]:
    """People who judge, and others who prefer the first."""
    people = {f"p{number}": (90 - 7 * number, by_distance(0.7) if number % 2 else first) for number in range(7)}
    return {"answers.jsonl": picks(places((5, 4, 3), 3), people, 43)}


def opposite() -> dict[str, Events | str]:
    """Two thirds name the less similar one."""
    people = {f"p{number}": (90 - 7 * number, by_distance(0.5, opposite=number % 3 > 0)) for number in range(6)}
    return {"answers.jsonl": picks(places((5, 4), 3), people, 44, again=0.4)}


def farther() -> dict[str, Events | str]:
    """Everybody names the less similar one."""
    people = {f"p{number}": (150 - 17 * number, by_distance(0.3, opposite=True)) for number in range(4)}
    return {"answers.jsonl": picks(places((5, 4, 2), 3), people, 45)}


def few() -> dict[str, Events | str]:
    return {"answers.jsonl": picks(places((3, 2), 3), {"ann": (9, by_distance(0.3)), "bob": (5, coin)}, 46)}


def one_question() -> dict[str, Events | str]:
    question = {"anchor": "a", "near": "b", "far": "c"}
    other = {"anchor": "a", "near": "c", "far": "b"}
    return {"answers.jsonl": [question] * 40 + [other] * 23}


def nothing() -> dict[str, Events | str]:
    labels = [{"type": "label", "object": name, "label": "fruit"} for name in ("fig", "plum")]
    return {"answers.jsonl": [*labels, {"anchor": "a", "near": "a", "far": "b"}]}


def odd() -> dict[str, Events | str]:
    """Odd-one-out answers of nobody in particular, labels of some objects, names of pictures."""
    points = {f"{name}.png": at for name, at in places((5, 4, 3), 5).items()}
    rng, names, events = np.random.default_rng(6), list(points), []
    for _ in range(420):
        three = [names[i] for i in rng.choice(len(names), 3, replace=False)]
        at = np.array([points[name] for name in three])
        apart = [((at - at[i]) ** 2).sum() + rng.normal(0, 1.5) for i in range(3)]
        events.append({"type": "odd_one_out", "objects": three, "odd": three[int(np.argmax(apart))]})
    labels = [
        {"type": "label", "object": name, "label": name[:4]} for i, name in enumerate(names) if i not in (2, 7)
    ] + [{"type": "label", "object": names[0], "label": "tree"}]
    return {"answers.jsonl": events + labels}


def pairs() -> dict[str, Events | str]:
    """Comparisons of two pairs, some in conflict."""
    points = places((4, 3), 8)
    rng, names, events = np.random.default_rng(9), list(points), []
    for number in range(300):
        i, j, k, l = (names[at] for at in rng.choice(len(names), 4, replace=False))
        near = ((points[i] - points[j]) ** 2).sum() + rng.normal(0, 3) < ((points[k] - points[l]) ** 2).sum()
        one, two = ([i, j], [k, l]) if near else ([k, l], [i, j])
        events.append({"type": "quadruplet", "near": one, "far": two, "worker": f"w{number % 7 % 3}"})
    return {"answers.jsonl": events}


def copies() -> dict[str, Events | str]:
    """A table in which somebody is there twice, under two names, some answers are missing, and rows were sent twice."""
    people = {"ann": (90, by_distance(0.6)), "bob": (70, by_distance(0.6)), "cho": (55, by_distance(0.6))}
    events = picks(places((5, 3), 3), people, 47, again=0.03)
    again = [event | {"worker": "bob (1)"} for event in events if event["worker"] == "bob"]
    rows = [*events, *events[100:124], *again]
    lines = ["anchor,left,right,chosen,who,time,mood,practice"]
    for number, event in enumerate(rows):
        chosen = "" if event["time"] % 27 == 11 else event["chosen"][0]
        cells = [event["anchor"], *event["shown"], chosen, event["worker"], event["time"], number % 3]
        lines.append(",".join(map(str, [*cells, int(number % 50 == 0)])))
    lines[40] = lines[40].replace(lines[40].split(",")[0], "", 1)
    lines[60:62] = [f"{line.rsplit(',', 5)[0]},nothing,{','.join(line.split(',')[4:])}" for line in lines[60:62]]
    return {"table.csv": "\n".join(lines) + "\n"}


def screens() -> dict[str, Events | str]:
    """Rankings of four, each written as a row for each of its comparisons; nobody is named."""
    points, rng, lines = places((5, 4), 9), np.random.default_rng(10), ["page,anchor,near,far,rt"]
    for page in range(70):
        anchor, *shown = (list(points)[i] for i in rng.choice(len(points), 4, replace=False))
        seen = {name: ((points[name] - points[anchor]) ** 2).sum() + rng.normal(0, 2) for name in shown}
        a, b, c = sorted(shown, key=seen.get)
        lines += [f"{page},{anchor},{near},{far},{900 + 13 * page}" for near, far in ((a, b), (a, c), (b, c))]
    return {"table.csv": "\n".join(lines) + "\n"}


COLUMNS = "--type pick --columns anchor=anchor,shown=left|right,chosen=chosen,worker=who"
FIT = f"refit --state state embedding {QUICK} --set participants=alike"
MODELS = (FIT, "refit --state state clusters")
WORLDS = {
    "people": World(
        people,
        (
            "preview answers.jsonl",
            "run answers.jsonl --state state --no-refits --guard on",
            FIT,
            "refit --state state clusters",
            "refit --state state reliability",
            "refit --state state hierarchy",
        ),
        participants=True,
        whole=True,
    ),
    "differing": World(
        differing,
        (
            "run answers.jsonl --state state --no-refits",
            "refit --state state embedding --set dimensions=2 --set kernel=ste --set ridge=10",
        ),
        participants=True,
        without=("learning",),
    ),
    "without_guessers": World(
        people,
        (
            "run answers.jsonl --state state --no-refits",
            FIT,
            "refit --state state clusters",
            "run answers.jsonl --state state --no-refits --exclude participant=gus --exclude participant=hal",
            FIT,
            "refit --state state clusters",
            "refit --state state spectral --include participant=hal",
        ),
    ),
    "groups": World(
        groups,
        (
            "run answers.jsonl --state state --no-refits",
            "refit --state state embedding --set participants=alike --set kernel=ste --set ridge=1",
            "refit --state state clusters",
            "ask --state state --n 2 --strategy uncertainty --type triplet --out asked.jsonl",
            "cat asked.jsonl",
            "ask --state state --n 3 --strategy information-gain --random-share 0.5 --seed 2 --out asked.jsonl",
            "cat asked.jsonl",
            "predict --state state asked.jsonl",
        ),
    ),
    "continuum": World(continuum, ("run answers.jsonl --state state --no-refits", *MODELS)),
    "sets": World(
        sets,
        (
            "preview answers.jsonl",
            "run answers.jsonl --state state --no-refits",
            f"{FIT} --set lapse=none",
            MODELS[1],
        ),
        participants=True,
        without=("learning", "share of the map's variance"),
    ),
    "joined": World(joined, ("run answers.jsonl --state state --no-refits", *MODELS)),
    "guessing": World(
        guessing,
        ("run answers.jsonl --state state --no-refits", *MODELS),
        participants=True,
        without=("learning",),
    ),
    "positions": World(
        positions,
        ("run answers.jsonl --state state --no-refits", *MODELS),
        participants=True,
        without=("learning",),
    ),
    "preferring": World(preferring, ("run answers.jsonl --state state --no-refits", *MODELS)),
    "opposite": World(
        opposite,
        ("run answers.jsonl --state state --no-refits", *MODELS),
        participants=True,
        without=("learning",),
    ),
    "farther": World(
        farther,
        ("run answers.jsonl --state state --no-refits", FIT),
        without=("learning", "models"),
    ),
    "few": World(few, ("run answers.jsonl --state state --no-refits", *MODELS)),
    "one_question": World(one_question, ("run answers.jsonl --state state --no-refits", FIT)),
    "nothing": World(nothing, ("run answers.jsonl --state state --no-refits --max-reject-ratio 1",)),
    "odd": World(
        odd,
        (
            "run answers.jsonl --state state --no-refits",
            f"{FIT} --set lapse=all",
            "refit --state state dimensions --set dimensions=3",
            "refit --state state clusters",
            "refit --state state sdp_clustering --set k=3",
            "refit --state state classify --set rounds=30 --set similarities=k1",
            "refit --state state triplet_boost --set rounds=30",
        ),
    ),
    "pairs": World(pairs, ("run answers.jsonl --state state --no-refits", FIT)),
    "screens": World(screens, ("run table.csv --state state --no-refits", FIT), without=("models",)),
    "copies": World(
        copies,
        (
            f"preview table.csv {COLUMNS} --where practice=0",
            f"run table.csv --state state --no-refits {COLUMNS} --where practice=0",
            f"refit --state state embedding {QUICK}",
        ),
        participants=True,
    ),
    "copies_dropped": World(
        copies,
        (f"run table.csv --state state --no-refits {COLUMNS} --where chosen!= --drop-duplicates", FIT),
        participants=True,
    ),
}


# ---- what is typed besides: a state that grows, halves that are summed, one that forgets, mistakes


def growing() -> dict[str, Events | str]:
    """Answers of all kinds in two files, some of which are no answers; questions to predict."""
    of_all_kinds = told.events()
    wrong = [{"anchor": "a", "near": "a", "far": "b"}] * 4 + [{"anchor": "a", "near": "b"}] * 3
    questions = [
        {"anchor": "d", "left": "a", "right": "c"},
        {"anchor": "d", "left": "zz", "right": "c"},
        {"anchor": "a", "left": "b", "right": "f"},
        {"near": ["d", "a"], "far": ["b", "f"]},
    ]
    return {
        "monday.jsonl": of_all_kinds[:85] + wrong,
        "tuesday.jsonl": wrong[:1] + of_all_kinds[85:],
        "questions.jsonl": questions,
        "answers.csv": "anchor,near,far,worker\nd,a,c,w1\na,b,f,w2\nd,a,d,w1\n",
    }


EVERY_COUNT = [
    *("adds3", "adds3_decayed", "adds3_weighted", "adds4", "judgements", "quadruplet_counts", "response_patterns"),
    *("triplet_counts", "triplet_counts_decayed", "triplet_counts_weighted", "window", "worker_votes"),
]


def forgetting() -> dict[str, Events | str]:
    """Answers over days with pauses between them, read by two states that forget by time; some without a time."""
    made = [event for event in told.events() if event.get("type") != "label"]
    for number, event in enumerate(made):
        event["time"] = 1_700_000_000 + 60 * number + 90_000 * (number > 40) + 70_000 * (number > 150)
        if number % 13 == 5:
            del event["time"]
    config = (
        f"accumulators = {json.dumps(EVERY_COUNT)}\n[forgetting]\nby = 'time'\nhalf_life = 3600.0\nwindow = 4500.0\n"
    )
    return {"one.jsonl": made[:125], "two.jsonl": made[125:], "engine.toml": config}


def tables() -> dict[str, Events | str]:
    """Small tables, each of which needs an option to be read right."""
    return {
        "semicolons.csv": "anchor;near;far\na;b;c\nb;c;a\nc;a;d\n",
        "apart.csv": "anchor,near,far\na,b,c\nb,c,d\nx,y,z\nz,y,x\n",
        "titled.csv": "A study\nof 2024\nanchor,near,far\na,b,c\nb,c,a\n",
        "bare.csv": "a,b,c,p1\nb,c,a,p2\nc,a,b,p1\n",
        "farther.csv": "anchor,left,right,chosen,who\na,b,c,b,p1\nb,c,a,a,p2\nc,a,b,a,p2\n",
        "keys.csv": "anchor,left,right,key,rt\na,b,c,f,812\nb,c,a,j,640\nc,a,b,f,290\nc,a,b,x,291\n",
        "places.csv": "anchor,left,right,place\na,b,c,1\nb,c,a,2\nc,a,b,3\n",
        "indices.csv": "a,b,c,odd\nx,y,z,0\ny,z,w,2\nw,x,y,1\n",
        "lists.csv": "anchor,shown,chosen,practice\na,b+c+d,c,0\nb,c+d+a,a+d,0\nc,a+b,a,1\n",
        "rankings.jsonl": [{"type": "ranking", "anchor": "a", "ranked": list("cbd"), "worker": "w"}],
        "central.jsonl": [{"objects": list("abc"), "central": "b", "worker": "w", "time": "2024-05-01T12:00:00Z"}],
        "ann.csv": "anchor,near,far\na,b,c\nb,a,c\n",
        "bob.csv": "anchor,near,far\na,c,b\n",
        "labels.csv": "name,taste\na,sweet\nb,sour\nzz,sour\n",
    }


def halves() -> dict[str, Events | str]:
    of_all_kinds = told.events()
    return {"one.jsonl": of_all_kinds[:120], "two.jsonl": of_all_kinds[120:], "three.jsonl": of_all_kinds[:9]}


def aligned() -> dict[str, Events | str]:
    points = places((5, 4, 3), 5)
    rng = np.random.default_rng(3)
    people = {"ann": (260, by_distance(1.0)), "bob": (190, by_distance(1.0)), "cho": (90, coin)}
    near = ["object,x,y,noise", *(f"{name},{x:.3f},{y:.3f},{rng.normal():.3f}" for name, (x, y) in points.items())]
    far = [
        "object,u,v,same",
        *(f"{name},{rng.normal():.3f},{x + rng.normal():.3f},1" for name, (x, _) in [*points.items()][1:]),
    ]
    return {"answers.jsonl": picks(points, people, 51), "near.csv": "\n".join(near), "far.csv": "\n".join(far)}


def mistakes() -> dict[str, Events | str]:
    return {
        "good.jsonl": [{"anchor": "a", "near": "b", "far": "c"}] * 3,
        "other.jsonl": [{"x": "a", "y": "b", "z": "c"}] * 20,
        "empty.csv": "anchor,near,far\n",
        "blank.jsonl": "\n\n",
        "broken.jsonl": '{"anchor": "a", "near"\n' * 3,
        "table.csv": "probe,one,two,pick\na,b,c,b\nb,c,a,c\nc,a,b,a\na,c,b,c\nd,a,b,a\nd,c,b,c\n",
        "wrong.toml": "[refits.params.embedding]\ndimensions = -1\n",
        "unknown.toml": "snapshots = 3\n",
    }


SESSIONS = {
    "growing": World(
        growing,
        (
            "run monday.jsonl --state state --no-refits --snapshot-every 40 --keep 3",
            "run monday.jsonl tuesday.jsonl --state state --no-refits --snapshot-every 70",
            FIT,
            "refit --state state spectral --set k=2 --json",
            "refit --state state hierarchy --snapshot 3",
            "inspect --state state",
            "export --state state --out old --format csv --snapshot 3 --object-order name summary evidence",
            "cat old/evidence.csv",
            "export --state state --out new.npz nothing",
            "dead-letters list --state state",
            "dead-letters show --state state --limit 2 --reason missing_field",
            "dead-letters show --state state --limit 1 --json",
            "ask --state state --n 2 --out asked.jsonl",
            "cat asked.jsonl",
            "ask --state state --n 2 --strategy uncertainty --type triplet --out asked.jsonl",
            "cat asked.jsonl",
            "ask --state state --n 2 --strategy landmark --seed 3 --out asked.jsonl",
            "cat asked.jsonl",
            "predict --state state questions.jsonl",
            "predict --state state --participant w1 questions.jsonl",
            "predict --state state --model adds3 answers.csv --exclude participant=w3",
            "predict --state state --model k1 --snapshot 3 answers.csv --out predicted.csv",
            "cat predicted.csv",
            "report --state state --out page.html --include participant=w3",
            "verify --state state",
            "backup --state state --to copies",
            "forget --state state --participant w2",
            "forget --state state --object b",
            "forget --state state --object b --drop adds4",
            "inspect --state state",
            "verify --state state",
        ),
    ),
    "halves": World(
        halves,
        (
            "run one.jsonl --state one --no-refits",
            "run two.jsonl --state two --no-refits --exclude participant=w1",
            "refit --state one hierarchy --exclude participant=w3",
            "verify --state one one.jsonl",
            "verify --state one two.jsonl",
            "merge one two --out state",
            "inspect --state state",
            "run three.jsonl --state three --no-refits",
            "merge one three --out one",
            "seek --state state one.jsonl +3",
        ),
    ),
    "forgetting": World(
        forgetting,
        (
            "run one.jsonl --state one --config engine.toml --no-refits",
            "run two.jsonl --state two --config engine.toml --no-refits",
            "merge one two --out state",
            "inspect --state state",
        ),
    ),
    "tables": World(
        tables,
        (
            "preview semicolons.csv --delimiter ;",
            "preview apart.csv",
            "preview titled.csv --skip-rows 2",
            "preview bare.csv --no-header --columns anchor=1,near=2,far=3,participant=4",
            "preview farther.csv --type pick --columns shown=left|right,worker=who --answer-is farther",
            "preview keys.csv --type pick --columns shown=left|right,chosen=key,milliseconds=rt --answers-by position "
            "--codes chosen:f=left,j=right",
            "preview places.csv --type pick --columns shown=left|right,chosen=place --answers-by position",
            "preview indices.csv --type odd_one_out --columns objects=a|b|c --answers-by index",
            "preview lists.csv --type pick --separator + --where practice=0",
            "preview lists.csv --type pick_farthest --columns farthest=chosen --separator + --where practice!=0|2",
            "preview rankings.jsonl",
            "preview central.jsonl --type most_central --events 1",
            "preview ann.csv bob.csv --participant-from file",
            "run ann.csv bob.csv --state state --no-refits --participant-from file --labels labels.csv "
            "--labels-columns object=name,label=taste --seed 4",
            "inspect --state state",
        ),
    ),
    "aligned": World(
        aligned,
        (
            "run answers.jsonl --state state --no-refits",
            "align --state state near=near.csv far=far.csv --quick",
        ),
    ),
    "mistakes": World(
        mistakes,
        (
            "run good.jsonl",
            "run missing.jsonl --state state",
            "run other.jsonl --state other --no-refits",
            "run blank.jsonl --state blank --no-refits",
            "run broken.jsonl --state broken --no-refits",
            "preview empty.csv",
            "preview broken.jsonl",
            "preview good.jsonl --where part",
            "preview good.jsonl --columns anchor",
            "preview good.jsonl --type pairs",
            "preview table.csv --columns anchor=probe,shown=one|three,chosen=pick --type pick",
            "preview table.csv",
            "report empty.csv",
            "report good.jsonl --out none/page.html",
            "report good.jsonl --state state",
            "report",
            "run good.jsonl --state state --no-refits",
            "run good.jsonl --state state --no-refits --where part=test",
            "run good.jsonl good.jsonl --state twice --no-refits",
            "inspect --state nowhere",
            "export --state state --out out booster",
            "export --state state --out out everything",
            "refit --state state embeding",
            "refit --state state embedding --set dimension=2",
            "refit --state state embedding --set dimensions=0",
            "refit --state state clusters",
            "refit --state state classify",
            "refit --state state embedding --snapshot 7",
            "predict --state state good.jsonl --model embeding",
            "predict --state state good.jsonl --participant zz --model adds3",
            "predict --state state good.jsonl --model chance",
            "ask --state state --strategy information-gain",
            "ask --state state --n 0",
            "forget --state state --object zz",
            "forget --state state --participant zz",
            "forget --state state",
            "merge state state --out state",
            "merge state --out sum",
            "align --state state missing.npy",
            "check-config wrong.toml",
            "check-config unknown.toml",
            "run good.jsonl --state state --exclude participant",
            "run good.jsonl --state state --exclude participant=zz --no-refits",
            "frobnicate",
        ),
    ),
}


def made(folder: Path, name: str) -> str:
    """Lay out a world in a folder as its commands left it; what they printed."""
    said, files = once(_made, name)
    with tarfile.open(fileobj=io.BytesIO(files)) as packed:
        packed.extractall(folder, filter="tar")
    return said


def _made(name: str) -> tuple[str, bytes]:
    packed, world = io.BytesIO(), (WORLDS | SESSIONS)[name]
    with TemporaryDirectory(prefix="approved-") as folder:
        at = Path(folder)
        for file, content in world.files().items():
            if isinstance(content, str):
                (at / file).write_text(content)
            else:
                jsonl(at / file, content)
        said = "\n".join(line for line in typed(at, world.commands) if not any(each in line for each in world.without))
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, ".")
    return said, packed.getvalue()


BEGINNING = re.compile(r"\[info +\] (dead letters|run started) ")  # lines that say on what machine


def typed(folder: Path, commands: tuple[str, ...]) -> Iterator[str]:
    """What commands print, each behind its line."""
    for line in commands:
        if line.startswith("cat "):
            yield from (f"$ {line}", *(folder / line.removeprefix("cat ")).read_text().splitlines(), "")
            continue
        done = engine(*shlex.split(line), status=None, cwd=folder)
        yield f"$ stream-engine {line}"
        if done.returncode:
            yield f"exit status {done.returncode}"
        yield from done.stdout.splitlines()
        yield from (f"! {text}" for text in done.stderr.splitlines() if not BEGINNING.search(text))
        yield ""
