"""Small studies that are unlike each other in as much as a study can be, each a folder of files and the commands that a
person types there. No two participants have answered as often, and no two sets of objects are of a size.
"""

import numpy as np

from tests.support.approved_answers import QUICK, Events, World, by_distance, coin, first, picks, places


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


def catching() -> dict[str, Events | str]:
    """Catch trials, of which somebody fails most; answers that were sent twice; one person gave nearly all."""
    people = {"ann": (290, by_distance(0.8)), "bob": (31, by_distance(0.8)), "cho": (47, coin)}
    lines = ["anchor,left,right,chosen,who,time,seconds,milliseconds"]  # the times of an answer in both, at odds
    for number, event in enumerate(picks(places((4, 3), 3), people, 48)):
        cells = [event["anchor"], *event["shown"], event["chosen"][0], event["worker"], event["time"]]
        cells += ["" if number % 3 == 1 else event["milliseconds"] / 500, event["milliseconds"]]
        lines += [",".join(map(str, cells))] * (1 + (number % 41 == 7))
        if number % 9 == 4:  # the anchor is one of those shown
            chosen = event["anchor"] if event["worker"] != "cho" or number % 2 else event["shown"][0]
            cells = [
                event["anchor"],
                event["anchor"],
                event["shown"][0],
                chosen,
                event["worker"],
                event["time"] + 1,
                "",
                900,
            ]
            lines.append(",".join(map(str, cells)))
    return {"table.csv": "\n".join(lines) + "\n"}


def one_joins() -> dict[str, Events | str]:
    """Two sets of objects that share one object; one of them was asked about once."""
    one, two = ({f"{name}{mark}": at for name, at in places(sizes, 7).items()}
                for mark, sizes in (("x", (4, 3)), ("y", (3, 2))))  # fmt: skip
    two = {next(iter(one)): np.zeros(2), **two}
    people = {"kim": (170, by_distance(0.8)), "lee": (110, by_distance(0.8))}
    return {"answers.jsonl": picks(one, people, 33) + picks(two, people, 34)}


def aligned() -> dict[str, Events | str]:
    points = places((5, 4, 3), 5)
    rng = np.random.default_rng(3)
    people = {"ann": (260, by_distance(1.0)), "bob": (190, by_distance(1.0)), "cho": (90, coin)}
    near = ["object,x,y,noise", *(f"{name},{x:.3f},{y:.3f},{rng.normal():.3f}" for name, (x, y) in points.items())]
    far = [
        "object,u,v,same",
        *(f"{name},{rng.normal():.3f},{x + rng.normal():.3f},1" for name, (x, _) in [*points.items()][1:]),
    ]
    answers = [f"{a},{b},{c}" for a, b, c in zip(points, [*points][1:], [*points][2:])]
    return {
        "answers.jsonl": picks(points, people, 51),
        "near.csv": "\n".join(near),
        "far.csv": "\n".join(far),
        "answers.csv": "\n".join(["anchor,near,far", *answers[:4]]),
    }


def hasty() -> dict[str, Events | str]:
    """Answers without response times, half of them by one person; somebody answers every 0.2 s; a few were recorded
    twice, with another answer or the same one."""
    people = {"ann": (240, by_distance(0.8)), "bob": (57, by_distance(0.8)), "cho": (46, coin)}
    people |= {"dev": (51, by_distance(0.8)), "eva": (39, by_distance(0.8)), "fay": (33, by_distance(1.2))}
    events = picks(places((4, 3, 2), 12), people, 49)
    for number, event in enumerate(events):
        del event["milliseconds"]
        event["time"] = 5000.0 + (0.2 if event["worker"] == "cho" else 2.5 + number % 3) * number
    again = [event | {"chosen": [next(name for name in event["shown"] if name not in event["chosen"])]}
             for event in events if event["time"] % 17 < 1]  # fmt: skip
    return {"answers.jsonl": [*events, *again, *events[100:107]]}


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
    "line": World(
        continuum,
        (
            "run answers.jsonl --state state --no-refits --exclude participant=cho",
            "refit --state state embedding --set dimensions=1 --set kernel=ste --set ridge=1 --set participants=alike",
            "refit --state state hierarchy --set similarity=k1 --set method=average",
            "export --state state --out out --format csv objects hierarchy",
            "cat out/objects.csv",
        ),
        participants=True,
        whole=True,
        without=("learning",),
    ),
    "catching": World(
        catching,
        (
            f"run table.csv --state state --no-refits {COLUMNS},catch=anchor",
            FIT,
            "refit --state state reliability",
            "report --state state --out page.html --participants",
            "refit --state state reliability --json",
        ),
        participants=True,
        without=("learning", "next"),
    ),
    "one_joins": World(one_joins, ("run answers.jsonl --state state --no-refits", *MODELS), without=("learning",)),
    "aligned": World(
        aligned,
        (
            "run answers.jsonl --state state --no-refits",
            "align --state state near=near.csv far=far.csv --quick",
            f"{FIT} --set lapse=all",
            "align --state state near=near.csv far=far.csv --out aligned",
            "cat aligned/alignment.csv",
            "align --answers answers.jsonl near=near.csv --quick",
            "predict --state state answers.csv --model alignment",
        ),
        without=("learning",),
    ),
    "guessing": World(
        guessing,
        ("run answers.jsonl --state state --no-refits", *MODELS),
        participants=True,
        without=("learning",),
    ),
    "positions": World(
        positions,
        (
            "run answers.jsonl --state state --no-refits",
            *MODELS,
            "refit --state state reliability",
            "export --state state --out out --format csv workers",
            "cat out/workers.csv",
        ),
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
    "hasty": World(
        hasty,
        ("run answers.jsonl --state state --no-refits", "refit --state state reliability"),
        participants=True,
        without=("learning", "next"),
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
