"""Peak memory and verdict of every message that stands for far more than it is, each in a process of its own.

python -m tests.hardening.attacks [NAME ...]
"""

import argparse
import json
import subprocess
import sys

from tests.conftest import ROOT
from tests.support import oversized
from tests.support.process import ENVIRONMENT

CHILD = """
import json, resource, sys
from collections import Counter
from connectors import Record
from connectors.kafka.client import sniff
from stream_engine.formats.options import EventOptions
from stream_engine.service.ingest import Ingest
from stream_engine.state.engine import Engine

value, engine, reasons = sys.stdin.buffer.read(), Engine(), Counter()
for block in Ingest(EventOptions()).blocks([Record(value, "t/0", 0, 1, unit="message", format=sniff(value))]):
    engine.learn(block.decoded)
    reasons.update(letter.reason for letter in block.dead_letters)
print(json.dumps([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, engine.counters["events"], reasons]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(oversized.MESSAGES), metavar="NAME")
    names = parser.parse_args().names
    print(f"{'message':18}{'bytes':>14}{'peak MB':>9}  verdict")
    for name in names:
        value = oversized.MESSAGES[name]()
        done = subprocess.run(
            [sys.executable, "-c", CHILD], input=value, capture_output=True, env=ENVIRONMENT, cwd=ROOT
        )
        if done.returncode:
            print(f"{name:18}{len(value):14,}  ended with {done.returncode}: {done.stderr.decode()[-200:].strip()}")
            continue
        peak, events, reasons = json.loads(done.stdout)
        verdict = ", ".join(f"{n:,} {reason}" for reason, n in reasons.items()) or f"{events:,} accepted"
        print(f"{name:18}{len(value):14,}{peak / 1000:9.0f}  {verdict}", flush=True)


if __name__ == "__main__":
    main()
