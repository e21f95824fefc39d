"""The counting job with accidents, for spark-submit: `spark_killed.py N JOB...`. All runs share one virtual machine:
starting one takes most of the time.

The driver dies by SIGKILL before the rename of batch N, then after it; nothing is cleaned up, as in a power cut. A last
one goes on with executors of their own processes. What is there after each accident is printed.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from connectors import disk
from stream_engine.spark import driver

WHEN = "before", "after"
EXECUTORS = "local-cluster[2,1,512]"
SEEN = "seen after accidents: "


class Accident(disk.Disk):
    def __init__(self, when: str, number: str):
        self.when, self.batch = when, f"batch={number}"

    def rename(self, source, target) -> None:
        here = os.path.basename(target) == self.batch
        if here and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        super().rename(source, target)
        if here and self.when == "after":
            os.kill(os.getpid(), signal.SIGKILL)


def job(when: str, number: str, arguments: list[str]) -> int:
    """The job in a process of its own, that uses this virtual machine; its exit status."""
    return subprocess.run([sys.executable, __file__, when, number, *arguments]).returncode


def main(number: str, *arguments: str) -> int:
    from pyspark.java_gateway import launch_gateway

    machine = launch_gateway().jvm  # that of spark-submit
    delta, seen = Path(arguments[arguments.index("--out") + 1]) / "delta", []
    for when in WHEN:
        assert job(when, number, list(arguments)) == -signal.SIGKILL
        machine.org.apache.spark.SparkContext.getOrCreate().stop()
        seen.append(sorted(each.name for each in delta.iterdir()))
    print(SEEN + json.dumps(seen), flush=True)
    machine.java.lang.System.setProperty("spark.master", EXECUTORS)
    return job("never", number, list(arguments))


if __name__ == "__main__":
    of_one_run = sys.argv[1] in (*WHEN, "never")
    sys.exit(driver.main(sys.argv[3:], Accident(*sys.argv[1:3])) if of_one_run else main(*sys.argv[1:]))
