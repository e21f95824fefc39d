"""The process that learns: an ordinary run that follows the log of answers. It ends well when its input does, so it
never outlives who started it: `python -m stream_engine.collect.engine_process`, with one line of JSON on its input."""

import os
import signal
import sys
import threading
from typing import Any

import msgspec

from stream_engine.service import logs, run
from stream_engine.service.settings import loading as configuration


class EngineSettings(msgspec.Struct):
    """`overrides` are settings by their dotted keys."""

    config: str | None
    overrides: dict[str, Any]
    start_over: bool = False


def main() -> int:
    """Run until told to stop, by a signal or by the end of the input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both; the other one says when to stop
    told = msgspec.json.decode(sys.stdin.buffer.readline(), type=EngineSettings)
    threading.Thread(target=_watch, name="input", daemon=True).start()
    settings = configuration.load(told.config, told.overrides)
    logs.configure(settings.log.format, settings.log.level)
    try:
        run.run(settings, start_over=told.start_over)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"stream-engine: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
