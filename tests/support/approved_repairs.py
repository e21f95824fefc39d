"""What is typed to take care of a state: dead letters, backups that are gone on with, damage, sources that changed,
positions of topics, shares.
"""

from tests.support import told
from tests.support.approved_answers import Events, World

NO_FITS = "--no-refits --max-reject-ratio 1"


def letters() -> dict[str, Events | str]:
    """A table and a file of JSON with rows that are no answers, each for a reason of its own."""
    rows = ["a,b,c,1", "a,b,b,1", 'a,"x, 1",c,-1', ",b,c,1", "b,c,a,2", f'a,"{"y" * 230}",c,-3', "c,a,,1"]
    wrong = [{"anchor": "a", "near": "a", "far": "b"}, {"anchor": "a"}, "{bad", {"type": "vote", "anchor": "a"}]
    others = [{"anchor": "a", "near": "b", "far": "c", "time": -5}, "[1, 2]", {"anchor": "a", "near": "b", "far": "d"}]
    return {
        "table.csv": "\n".join(["anchor,near,far,weight", *rows]) + "\n",
        "other.csv": "weight,far,near,anchor\n1,c,b,a\n1,c,c,a\n",
        "events.jsonl": [*wrong, *others, *wrong[:2]],
    }


def halves() -> dict[str, Events | str]:
    """Answers in two files, a few of which are wrong; the second one as it is later."""
    made = told.events()
    made[20:20] = [{"anchor": "a", "near": "a", "far": "b"}, {"anchor": "a"}]
    other = [event | {"far": "new"} if number == 5 else event for number, event in enumerate(made[120:])]
    return {"one.jsonl": made[:120], "two.jsonl": made[120:], "other.jsonl": other}


def ends() -> dict[str, Events | str]:
    """What the last line of a run can be about: limits, columns and rows that were not read."""
    wrong = [{"anchor": "a", "near": f"b{number}", "far": f"b{number}"} for number in range(40)]
    right = [event for event in told.events(size=60) if event.get("type") != "label"]
    return {
        "wrong.jsonl": [*right[:5], *wrong],
        "unused.csv": "anchor,near,far,choice\na,b,c,b\nb,c,a,a\nc,a,b,a\na,c,b,b\n",
        "latin.csv": "anchor,near,far\n" + "a,b,c\nb,a,c\nd,a,b\n" * 4,
        "limit.toml": "dead_letters_keep_bytes = 4000\n[snapshot]\nevery = 7\nkeep = 2\n[forgetting]\nwindow = 20.0\n",
    }


def shares() -> dict[str, Events | str]:
    """Answers of four partitions, by three people."""
    made = told.events()
    made[10:10] = [{"anchor": "a", "near": "a", "far": "b"}]
    parts = {"a": made[:70], "b": made[70:120], "c": made[120:165], "d": made[165:]}
    return {f"{name}.jsonl": events for name, events in parts.items()}


REPAIRS = {
    "letters": World(
        letters,
        (
            f"run table.csv events.jsonl other.csv --state state {NO_FITS}",
            "dead-letters list --state state",
            "dead-letters list --state state --json",
            "dead-letters show --state state --limit 4",
            "dead-letters show --state state --reason bad_weight --json",
            "dead-letters show --state state --raw --reason bad_weight",
            "dead-letters show --state state --raw",
            "dead-letters show --state state --limit -1",
            "sed -i 3s/offset/offsat/ state/dead_letters/000001.jsonl",
            "dead-letters list --state state",
            "dead-letters show --state state --limit 3",
            "verify --state state",
            "cp -r state/dead_letters letters",
            "rm -r state/dead_letters",
            "dead-letters list --state state",
            "dead-letters show --state state --dead-letters letters --reason not_parseable",
            "verify --state state",
            "verify --state state --dead-letters letters",
            "forget --state state --object b --dead-letters letters --drop adds4",
            "dead-letters list --state state --dead-letters letters",
            f"run table.csv --state kept {NO_FITS} --dead-letters elsewhere",
            "dead-letters list --state kept",
            f"run events.jsonl --state few {NO_FITS}",
            "rm -r few/dead_letters",
            f"run events.jsonl other.csv --state few {NO_FITS}",
            "dead-letters list --state few",
            "inspect --state few",
        ),
    ),
    "restored": World(
        halves,
        (
            "run one.jsonl --state state --no-refits --snapshot-every 50 --keep 2",
            "refit --state state hierarchy",
            "inspect --state state",
            "backup --state state --to copies",
            "backup --state state --to copies",
            "run one.jsonl two.jsonl --state state --no-refits --keep 2",
            "refit --state state hierarchy",
            "cp -r copies/* again",
            "verify --state again",
            "run one.jsonl two.jsonl --state again --no-refits",
            "verify --state again one.jsonl two.jsonl",
            "inspect --state again",
            "merge state again --out sum",
            "echo x >> state/artifacts/hierarchy/000000000003.artifact",
            "verify --state state",
            "truncate -s 900 state/snapshots/000000000003.snapshot",
            "verify --state state",
            "inspect --state state",
            "run one.jsonl two.jsonl --state state --no-refits",
            "cp -r copies/* changed",
            "echo {} >> changed/counts_told.json",
            "verify --state changed",
        ),
    ),
    "recounted": World(
        halves,
        (
            "run two.jsonl --state state --no-refits",
            "verify --state state two.jsonl",
            "cp other.jsonl two.jsonl",
            "verify --state state two.jsonl",
            "run one.jsonl --state one --no-refits --drop-duplicates",
            "forget --state one --participant w1",
            "verify --state one one.jsonl",
            "verify --state one one.jsonl --from one.jsonl",
            "rm one.jsonl",
            "verify --state one one.jsonl",
        ),
    ),
    "ends": World(
        ends,
        (
            f"run wrong.jsonl --state state --config limit.toml {NO_FITS}",
            "dead-letters list --state state",
            "verify --state state",
            "inspect --state state",
            f"run unused.csv --state unused {NO_FITS}",
            "printf 'a,b,caf\\351\\n' >> latin.csv",
            "preview latin.csv",
            f"run latin.csv --state latin {NO_FITS}",
        ),
    ),
    "shares": World(
        shares,
        (
            "run a.jsonl --state a --no-refits",
            "run b.jsonl c.jsonl --state bc --no-refits --exclude participant=w1",
            "run d.jsonl --state d --no-refits",
            "merge a bc --into 2 --out files",
            "topic a 0",
            "topic bc 1",
            "merge a bc d --into 2 --out mixed",
            "topic d 4",
            "merge a bc d --into 2 --out gap",
            "topic d 2",
            "merge a bc d --into 2 --out twice",
            "topic d 3",
            "merge a bc d --into 3 --out new",
            "inspect --state new/shard-0",
            "inspect --state new/shard-1",
            "dead-letters list --state new/shard-0",
            "merge new/shard-0 new/shard-1 --into 1 --out less",
            "merge new/shard-2 new/shard-0 new/shard-1 --out sum",
            "merge new/shard-2 new/shard-0 new/shard-1 --out sum",
            "merge a bc d --out sum",
            "merge a --out sum",
            "inspect --state sum",
            "merge a bc --into 2 --out new",
            "merge a bc --out other --dead-letters a/dead_letters",
            "seek --state bc votes/2 +5",
            "seek --state bc votes/2 +0",
            "seek --state bc votes/9 3",
            "seek --state bc votes/1 three",
            "seek --state bc votes/1 100",
            "seek --state bc votes/1 100 --count-again",
            "seek --state bc votes/1 100",
            "seek --state bc votes/2 +7 --from 9",
            "inspect --state bc",
            "verify --state bc",
        ),
    ),
}
