"""The counting job twice, for spark-submit: `spark_twice.py TURN JOB...`; the second run begins when TURN is there.

Both share one virtual machine: starting one takes most of the time.
"""

import sys
import time
from pathlib import Path

from stream_engine.spark import driver

DONE = "the first run is done"

if __name__ == "__main__":
    status = driver.main(sys.argv[2:])
    print(DONE, flush=True)
    while not status and not Path(sys.argv[1]).exists():
        time.sleep(0.05)
    sys.exit(status or driver.main(sys.argv[2:]))
