"""What is typed one after another: a state that grows, one that is kept for long, halves that are summed, a state that
forgets, tables that need options, mistakes.
"""

import json

from tests.support import told
from tests.support.approved_answers import Events, World
from tests.support.approved_repairs import REPAIRS
from tests.support.approved_studies import FIT


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
        "pairs.csv": "left_1,left_2,right_1,right_2,response\na,b,c,d,left\nb,d,a,c,right\nc,a,b,d,left\n",
        "rankings.jsonl": [{"type": "ranking", "anchor": "a", "ranked": list("cbd"), "worker": "w"}],
        "central.jsonl": [{"objects": list("abc"), "central": "b", "worker": "w", "time": "2024-05-01T12:00:00Z"}],
        "ann.csv": "anchor,near,far\na,b,c\nb,a,c\n",
        "bob.csv": "anchor,near,far\na,c,b\n",
        "labels.csv": "name,taste\na,sweet\nb,sour\nzz,sour\n",
    }


def kept() -> dict[str, Events | str]:
    """Answers in two files, some twice and some none; names of a subset; pairs to predict; a configuration."""
    made = told.events()
    made[30]["weight"], made[31] = -1.0, {"anchor": "a", "near": "zz"}
    return {
        "one.jsonl": [*made[:130], *made[100:104]],
        "two.jsonl": made[130:],
        "engine.toml": "[snapshot]\nkeep = 4\n[refits.params.embedding]\nridge = 2.0\n",
        "more.txt": "new\na\n",
        "names.txt": "a\nc\nd\nf\n",
        "pairs.csv": "near_i,near_j,far_i,far_j,part\na,b,c,d,a\na,c,d,e,b\nd,e,f,nobody,b\n",
        "few.csv": "anchor,near,far\n" + "a,b,c\nb,a,c\nc,b,a\n" * 3,
        "nothing.csv": "anchor,near,far\n",
    }


def halves() -> dict[str, Events | str]:
    of_all_kinds = told.events()
    return {"one.jsonl": of_all_kinds[:120], "two.jsonl": of_all_kinds[120:], "three.jsonl": of_all_kinds[:9]}


def mistakes() -> dict[str, Events | str]:
    return {
        "good.jsonl": [{"anchor": "a", "near": "b", "far": "c"}] * 3,
        "other.jsonl": [{"x": "a", "y": "b", "z": "c"}] * 20,
        "empty.csv": "anchor,near,far\n",
        "blank.jsonl": "\n\n",
        "broken.jsonl": '{"anchor": "a", "near"\n' * 3,
        "table.csv": "probe,one,two,pick\na,b,c,b\nb,c,a,c\nc,a,b,a\na,c,b,c\nd,a,b,a\nd,c,b,c\n",
        "names.txt": "d\ne\n\nf\n",
        "none.txt": "\n",
        "bad.csv": "anchor,near,far,who\n" + "a,b,c,p\n" * 30 + "a,b,b,p\n" * 13,
        "wrong.toml": "[refits.params.embedding]\ndimensions = -1\n",
        "unknown.toml": "snapshots = 3\n",
    }


SESSIONS = REPAIRS | {
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
            "preview pairs.csv",
            "preview rankings.jsonl",
            "preview central.jsonl --type most_central --events 1",
            "preview ann.csv bob.csv --participant-from file",
            "run ann.csv bob.csv --state state --no-refits --participant-from file --labels labels.csv "
            "--labels-columns object=name,label=taste --seed 4",
            "inspect --state state",
        ),
    ),
    "kept": World(
        kept,
        (
            "check-config engine.toml",
            "run one.jsonl --state state --config engine.toml --no-refits --snapshot-every 60",
            "run one.jsonl --state state --config engine.toml --no-refits",
            "run one.jsonl two.jsonl --state state --config engine.toml --no-refits --exclude participant=w0",
            "inspect --state state",
            f"{FIT} --seed 5",
            "refit --state state embedding --set dimensions=2 --set kernel=ste --set ridge=3 --set lapse=all",
            "refit --state state sdp_clustering --objects names.txt --set k=2",
            "refit --state state sdp_clustering --set k=3 --set similarity=adds4 --seed 2",
            "refit --state state hierarchy --include participant=w0",
            "refit --state state reliability",
            "export --state state --out tables --format csv workers judgements objects participants",
            "cat tables/objects.csv",
            "predict --state state pairs.csv --out predicted.jsonl --participant w2 --where part=b",
            "cat predicted.jsonl",
            "predict --state state one.jsonl --type triplet --model k2 --out predicted.csv",
            "ask --state state --n 2 --strategy coverage --objects more.txt --out asked.jsonl",
            "cat asked.jsonl",
            "ask --state state --n 2 --strategy landmark-k2 --type odd_one_out --out asked.jsonl",
            "cat asked.jsonl",
            "ask --state state --n 2 --strategy random --type odd_one_out --snapshot 2 --seed 9 --out asked.jsonl",
            "cat asked.jsonl",
            "export --state state --out arrays --format npz clusters hierarchy evidence",
            "export --state state --out arrays --format parquet clusters models questions",
            "forget --state state --participant w3 --keep-answers",
            "forget --state state --participant w3",
            "dead-letters show --state state",
            "seek --state state one.jsonl 2000 --count-again",
            "seek --state state one.jsonl +2 --from 9",
            "merge state --out sum",
            "inspect --state sum",
            "run one.jsonl --state state --start-over --no-refits --drop-duplicates --guard off",
            "verify --state state one.jsonl",
            "report few.csv --out few.html",
            "predict --state state nothing.csv",
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
            "ask --state state --n 1",
            "ask --state state --n 1 --out asked.csv",
            "ask --state state --n 1 --out none/asked.jsonl",
            "ask --state fresh --n 2 --objects names.txt",
            "ask --state fresh --n 2",
            "ask --state state --n 2 --objects none.txt",
            "ask --state state --n 2 --objects missing.txt",
            "predict --state state good.jsonl --out predicted.txt",
            "predict --state state good.jsonl --out none/predicted.csv",
            "predict --state state good.jsonl --out predicted.parquet",
            "report --state state --out .",
            "report --state state --out page.html --figure-width 3miles",
            "report --state state --out page.html --type pick",
            "report --state state --out page.html --objects missing",
            "align near=near.csv",
            "align --state state near=near.csv near=far.csv",
            "align --state state",
            "report bad.csv --out bad.html",
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
