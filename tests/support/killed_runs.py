"""Runs that are killed while they decode, again and again."""

import json
import signal
import subprocess
import sys

from tests.support.process import ENVIRONMENT

KILLER = """
import json, os, signal, sys
from stream_engine.__main__ import main
from stream_engine.formats import json_events

arguments, deaths = json.loads(sys.argv[1])
lines, many, calls = json_events.Decoder.lines, json_events.Decoder.many, 0

def dying(values):
    global calls
    calls += 1
    if calls == die_at or any(die_at == -1 and value and b"poison" in value for value in values):
        os.kill(os.getpid(), signal.SIGKILL)

json_events.Decoder.lines = lambda self, value: (dying([value]), lines(self, value))[1]
json_events.Decoder.many = lambda self, values: (dying(values), many(self, values))[1]
for die_at in deaths:
    if not (child := os.fork()):
        os._exit(main(arguments))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def killed(deaths: list[int], *arguments) -> list[int]:
    """Exit statuses of `stream-engine ARGUMENTS`, run again and again in a process of its own, that is killed when the
    n-th value is decoded, or (-1) whenever an event with the word poison is, or (0) never."""
    script = json.dumps([list(map(str, arguments)), deaths])
    done = subprocess.run([sys.executable, "-c", KILLER, script], env=ENVIRONMENT, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return list(map(int, done.stdout.split()))


KILLED = -signal.SIGKILL
