"""`stream-engine collect` whose engine and maker of questions have not come up yet, and do not: for tests of what it
does without them. To start both takes most of the processor time of a short study.

    python -m tests.support.collecting_alone collect ...
"""

import sys

from stream_engine.__main__ import main
from stream_engine.collect.children import Child

if __name__ == "__main__":
    Child.keep = lambda self: False  # type: ignore[method-assign]
    sys.exit(main())
