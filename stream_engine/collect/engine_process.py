"""The process that learns: an ordinary run that follows the log of answers. It ends well when its input does, so it
never outlives who started it: `python -m stream_engine.collect.engine_process`, with one line of JSON on its input."""

import os
import signal
import sys
import threading
from typing import Any

from stream_engine.data.early_signals import leave_when_asked
from stream_engine.data.standard_streams import standard_streams


def main() -> int:
    """Run until told to stop, by a signal or by the end of the input."""
    leave_when_asked()  # before what takes seconds to load
    with standard_streams():
        return _run()


def _run() -> int:
    import msgspec

    from stream_engine.data import logs
    from stream_engine.input.settings import loading as configuration
    from stream_engine.service import run

    class EngineSettings(msgspec.Struct):
        """`overrides` are settings by their dotted keys."""

        config: str | None
        overrides: dict[str, Any]
        start_over: bool = False

    settings_of_study = msgspec.json.decode(sys.stdin.buffer.readline(), type=EngineSettings)
    threading.Thread(target=_watch, name="input", daemon=True).start()
    settings = configuration.load(settings_of_study.config, settings_of_study.overrides)
    logs.configure(settings.log.format, settings.log.level, settings.log.file)
    try:
        run.run(settings, start_over=settings_of_study.start_over)
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
