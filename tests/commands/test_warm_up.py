"""After `stream-engine warm-up` a run compiles nothing: every specialisation that it needs is there."""

import json
import subprocess
import sys

from tests.conftest import ROOT

PROGRAM = """
import json, sys
from numba.core.registry import CPUDispatcher
from stream_engine.commands import warm_up
from stream_engine.service.run import run
from stream_engine.input.settings.loading import load

def compiled():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("stream_engine"):
            for each in vars(module).values():
                if isinstance(each, CPUDispatcher):
                    found[f"{each.__module__}.{each.__name__}"] = [str(signature) for signature in each.signatures]
    return found

warmed = dict(warm_up.warm_up())
before = compiled()
for number, source in enumerate(sys.argv[2:]):
    settings = {"source": [source], "state": f"{sys.argv[1]}/{number}", "snapshot.every": 150}
    run(load(None, settings | {"refits.kinds": []}))  # which are processes of their own
after = compiled()
print(json.dumps({"warmed": len(warmed), "kernels": sum(map(bool, before.values())),
                  "new": {name: found for name, found in after.items() if found != before.get(name, [])}}))
"""


def test_a_run_after_it_compiles_nothing(tmp_path):
    names = [f"n{i}" for i in range(9)]
    events = [
        {"anchor": names[i % 9], "near": names[(i + 1 + i // 9 % 3) % 9], "far": names[(i + 5 + i // 50 % 3) % 9]}
        for i in range(400)
    ]
    events += [
        {"type": "quadruplet", "near": names[:2], "far": names[2:4]},
        {"type": "ranking", "anchor": "n0", "ranked": names[1:5]},
    ]
    by = [{**event, "worker": f"w{i % 3}"} if i % 4 else event for i, event in enumerate(events)]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in by))
    (tmp_path / "events.csv").write_text(
        "anchor,near,far\n" + "".join(",".join(e.values()) + "\n" for e in events[:400])
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path, tmp_path / "events.jsonl", tmp_path / "events.csv"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["warmed"] >= 6 and said["kernels"] > 20
    assert said["new"] == {}, "compiled by the run although warm-up ran before"
