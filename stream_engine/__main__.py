"""`stream-engine`: handlers of signals first, then the command line (`stream_engine.commands.command_line`)."""

import os
import sys

from stream_engine.data.early_signals import leave_when_asked, open_missing_descriptors

SERVICES = frozenset({"run", "collect"})  # verbs for which a stop before they have begun is no failure


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    if arguments is None:
        open_missing_descriptors()
        arguments = sys.argv[1:]
        if next((each for each in arguments if not each.startswith("-")), "") in SERVICES:
            leave_when_asked()
        _prepare_process()
    from stream_engine.commands.command_line import run_command

    return run_command(arguments)


def _prepare_process() -> None:
    import atexit
    import gc

    from stream_engine.data.threads import ONE_THREAD

    atexit.register(gc.freeze)  # the process ends: to look for cycles in all that was loaded is .3 s for nothing
    gc.set_threshold(100_000, 50, 1000)  # imports and the compiler make many objects that stay: a tenth of its time
    os.environ.update({name: one for name, one in ONE_THREAD.items() if name not in os.environ})
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas:
    """pyarrow imports pandas, where it is installed, to ask whether a list is a Series: .2 s and 45 MB of each process.
    No command needs it."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("no command uses pandas", name=name)


if __name__ == "__main__":
    sys.exit(main())
