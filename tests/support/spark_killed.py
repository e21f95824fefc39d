"""The counting job with an accident: `killed.py before|after N JOB...` dies by SIGKILL, JVM first, around the rename of
batch N. Run with spark-submit or as a script; nothing is cleaned up, as in a power cut."""

import os
import signal
import sys

from connectors import disk
from stream_engine.spark import driver


class Accident(disk.Disk):
    def rename(self, source, target) -> None:
        here = os.path.basename(target) == f"batch={sys.argv[2]}"
        if here and sys.argv[1] == "before":
            die()
        super().rename(source, target)
        if here and sys.argv[1] == "after":
            die()


def die() -> None:
    os.kill(os.getppid(), signal.SIGKILL)  # the JVM of spark-submit
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv[3:], Accident()))
