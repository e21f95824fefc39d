"""The group of verbs (`stream_engine.commands`), and the rule that turns errors into exit statuses.

Exit status: 0 done; 1 failed at run time; 2 unusable arguments or configuration; 130 interrupted; 141 the reader of
standard output is gone. Errors are one line on standard error (`--debug` shows the traceback).
"""

import errno
import signal
import sys

import click

from stream_engine.commands import Verbs
from stream_engine.data.standard_streams import STANDARD_OUTPUT, ReaderGone, give_up_output, standard_streams

OUT_OF_MEMORY = "no event was rejected; the next run resumes from the last snapshot; give it more memory"
NEXT_STEPS = {
    errno.EROFS: "mount that disk for writing, or name a folder elsewhere",
    errno.EACCES: "change the permissions, or name a folder elsewhere",
    errno.ENOSPC: "free space there, or name a folder on another disk",
}


def _print_version(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from stream_engine.data import installed_version

        click.echo(f"stream-engine, version {installed_version()}")
        ctx.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Analyse answers such as "A is more like B than like C", from a survey or a stream: map, groups, predictions."""


def exit_status(error: Exception) -> int | None:
    """The exit status that an error ends with: 2 for what the caller gave, 1 for what happened; None: a bug of ours.

    The classes are imported here, after something went wrong, so that a command that goes well does not pay for them.
    """
    if isinstance(error, click.UsageError):
        return 2
    if isinstance(error, MemoryError):  # there may be none for the imports
        return 1
    from connectors import SinkUnavailable, SourceFailed, UnusableSource
    from stream_engine.asking import CannotAsk
    from stream_engine.collect.stimuli import BadStimuli
    from stream_engine.counts.removal import CannotForget
    from stream_engine.data.available_memory import TooLarge
    from stream_engine.data.container import Corrupt
    from stream_engine.data.signatures import BadKey
    from stream_engine.evaluation import NoModel
    from stream_engine.exports import NothingToExport
    from stream_engine.formats.options import UnusableOptions
    from stream_engine.input.settings import BadSettings
    from stream_engine.refits import CannotRefit, SolverFailed
    from stream_engine.state.engine import OverlappingStates
    from stream_engine.state.forgetting import UnknownName
    from stream_engine.state.store import NoSnapshotName, NoSuchSnapshot, StateInUse

    if isinstance(error, (BadSettings, BadKey, NoSnapshotName, UnusableSource, UnusableOptions, CannotAsk, BadStimuli)):
        return 2
    at_run_time = (
        SourceFailed,
        SinkUnavailable,
        Corrupt,
        NoSuchSnapshot,
        StateInUse,
        CannotRefit,
        SolverFailed,
        OverlappingStates,
        NothingToExport,
        NoModel,
        CannotForget,
        UnknownName,
        TooLarge,
        OSError,
        MemoryError,
        RuntimeError,
    )
    return 1 if isinstance(error, at_run_time) else None


def run_command(arguments: list[str]) -> int:
    """Run the command line; returns the exit status."""
    with standard_streams():
        try:
            return _run(arguments)
        except ReaderGone:  # `head` has read enough
            give_up_output()
            return 128 + signal.SIGPIPE
        except OSError as error:
            if error.filename != STANDARD_OUTPUT:
                raise
            give_up_output()
            return _tell(error)


def _run(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        status = cli.main([a for a in arguments if a != "--debug"], prog_name="stream-engine", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0  # of `click.exceptions.Exit`
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.Abort:
        return 130
    except Exception as error:
        if isinstance(error, ReaderGone) or (isinstance(error, OSError) and error.filename == STANDARD_OUTPUT):
            raise
        if debug or exit_status(error) is None:
            raise
        return _tell(error)


def _tell(error: Exception) -> int:
    """Say what went wrong in one line; returns the exit status."""
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    if isinstance(error, MemoryError):
        text = f"out of memory{f' ({text})' if text else ''}: {OUT_OF_MEMORY}"
    if isinstance(error, OSError) and error.filename is not None and error.errno in NEXT_STEPS:
        text = f"{error.filename}: {error.strerror}; {NEXT_STEPS[error.errno]}"
    click.echo(f"stream-engine: {' '.join(text.split())}", err=True)
    return exit_status(error) or 1
