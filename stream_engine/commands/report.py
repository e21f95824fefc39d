"""`stream-engine report`: a page that shows what a state, or a file of answers, says."""

import contextlib
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import click
import structlog
from msgspec import structs

from stream_engine.commands import snapshot_option
from stream_engine.commands.dead_letters import as_text, letter_fields, lines_of
from stream_engine.commands.input_options import (
    apply_exclusion,
    exclusion_options,
    given_for_sources,
    input_options,
    no_answers,
    settings_of,
)
from stream_engine.commands.refit import fit_again, note_counts
from stream_engine.data import logs, progress_bars
from stream_engine.formats.reading import DOUBTFUL_ROWS
from stream_engine.input.settings import SigningSettings
from stream_engine.input.stored_options import as_arguments
from stream_engine.report.figure_style import ONE_COLUMN, BadStyle, FigureStyle, style_of
from stream_engine.report.findings.facts import Commands
from stream_engine.report.object_files import BadObjects
from stream_engine.service.dead_letters import letters_of
from stream_engine.state.store import Store

DEFAULT_PAGE = "report.html"


@click.command("report")
@input_options
@click.option("--state", metavar="DIR", help="State directory to report on, instead of SOURCE...")
@click.option("--out", default=DEFAULT_PAGE, show_default=True, metavar="FILE", help="Output file.")
@click.option("--figures", metavar="DIR", help="Folder for the figures as SVG, PDF and PNG (300 dpi).")
@click.option(
    "--figure-width",
    default="85mm",
    show_default=True,
    metavar="LENGTH",
    help="Width of the figures: 85mm fits one column, 174mm two.",
)
@click.option("--font", metavar="NAME", help="Font of the figures, such as Arial or serif.")
@click.option("--font-size", default="8pt", show_default=True, metavar="SIZE", help="Size of all text in the figures.")
@click.option("--regions", is_flag=True, help="Draw 95 % regions on the map of the figures.")
@click.option("--participants", "--workers", "workers", is_flag=True, help="List individual participants by name.")
@click.option(
    "--objects",
    metavar="FOLDER|FILE",
    help="Pictures of objects: files named after them, or a table object,image,text.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show log lines of level info on a terminal, too.")
@exclusion_options
@snapshot_option
def command(
    state: str | None,
    out: str,
    figures: str | None,
    figure_width: str,
    font: str | None,
    font_size: str,
    regions: bool,
    workers: bool,
    objects: str | None,
    snapshot: str,
    source: tuple[str, ...],
    exclude: tuple[str, ...],
    include: tuple[str, ...],
    verbose: bool,
    **options: Any,
) -> None:
    """Write a self-contained HTML report of SOURCE... (files of answers), or of a state that a run has made.

    SOURCE... is read without the partial order (as by `run --guard off`), and no state is kept. The page is written
    when the map is there, and again after longer refits. Ctrl-C ends it with what is there.
    """
    if bool(state) == bool(source):
        raise click.UsageError("report: expected either --state DIR or SOURCE..., got " + ("both" if state else "none"))
    if state and (useless := given_for_sources()):
        raise click.UsageError(
            f"report: got {', '.join(useless)} with --state {state}, expected SOURCE...: they say how sources are "
            "read, and a state was read before. Leave them out, or name the sources instead of --state"
        )
    if not Path(out).resolve().parent.is_dir():
        raise click.UsageError(f"--out {out}: there is no folder {Path(out).parent}")
    if Path(out).is_dir():
        raise click.UsageError(f"--out {out}: got a folder, expected the name of a file")
    try:
        style = style_of(figure_width, font, font_size, regions)
    except BadStyle as error:
        raise click.UsageError(str(error)) from None
    with ExitStack() as stack:
        typed = "" if state else shlex.join(["stream-engine", *sys.argv[1:]])
        commands = Commands(state or "DIR", typed, out="" if out == DEFAULT_PAGE else out)
        try:
            if not state:
                state = stack.enter_context(tempfile.TemporaryDirectory(prefix="report-"))
                so_far = partial(_so_far, state, out, workers, objects, style, commands)
                meanwhile = None if exclude or include else so_far
                leave_out = partial(_exclude, state, exclude, include, "latest")
                _run(Path(state), {**options, "source": source}, meanwhile, leave_out, commands.typed, verbose)
                counters = Store(state).published().snapshot.counters
                if not counters["events"]:
                    raise no_answers(source, counters["filtered"])
            else:
                _exclude(state, exclude, include, snapshot)
            written = report(state, out, snapshot, figures, workers, objects, commands, style)
        except BadObjects as error:
            raise click.UsageError(f"--objects {error}") from None
    click.echo(written)


def _exclude(state: str, exclude: tuple[str, ...], include: tuple[str, ...], snapshot: str) -> None:
    """Exclude participants, or include them again, and fit again what was fitted with others."""
    if exclude or include:
        apply_exclusion(Store(state), exclude, include)
        fit_again(Store(state), snapshot)


def report(
    state: str,
    out: str,
    snapshot: str,
    figures: str | None,
    workers: bool,
    objects: str | None,
    commands: Commands,
    style: FigureStyle = ONE_COLUMN,
    running: tuple[str, ...] = (),
) -> str:
    """Write the page of a state; says in lines where it is. `running`: refits that will change it."""
    from stream_engine.refits.quick_map import with_quick_map
    from stream_engine.report import writing  # it loads scipy and the templates, which --help does without

    store = Store(state)
    published = store.published(snapshot)
    options = published.snapshot.counters.get("input", {}).get("options")
    read_by = as_arguments(options) if isinstance(options, dict) and options else ""
    doubts = tuple(store.noted(DOUBTFUL_ROWS).get("texts", ())) if commands.typed else ()
    in_use = bool(running) or store.in_use
    commands = commands._replace(in_use=in_use, lists=workers, read_by=read_by, doubts=doubts)
    written = writing.write(
        with_quick_map(published) if running else published,
        Path(out),
        store.noted("progressive"),
        Path(figures) if figures else None,
        workers,
        Path(objects) if objects else None,
        commands,
        style,
        running,
    )
    lines = [f"{written.page}  {written.size / 1000:,.0f} kB; open it in a browser"]
    if written.figures:
        lines.append(f"{figures}  {len(written.figures)} files")
    return "\n".join([*lines, *written.notes])


def _so_far(
    state: str,
    out: str,
    workers: bool,
    objects: str | None,
    style: FigureStyle,
    commands: Commands,
    running: list[str],
) -> None:
    """Write the page with the refits that have ended, and before the embedding has with a quick map, so that nobody
    waits for the clusters to see one. None of nothing: it ends in an error."""
    if not Store(state).published().snapshot.counters["events"]:
        return
    written = report(state, out, "latest", None, workers, objects, commands, style, tuple(running))
    store = Store(state)
    with contextlib.suppress(OSError):  # the refit makes them otherwise
        note_counts(store, store.published().snapshot, 0)
    from matplotlib.backends import backend_pdf  # noqa: F401  # now there is time to load it, at the end there is not

    structlog.get_logger().info("report written; it is written again when these end", page=out, refits=running)
    if written:
        with logs.OUTPUT.around():
            click.echo(
                f"{out}  preliminary; open it in a browser, it renews itself when these end: {', '.join(running)}",
                err=True,
            )


MAX_SHOWN_REJECTED = 10  # rows that are shown


def _run(
    folder: Path,
    options: dict[str, Any],
    meanwhile: Callable[[list[str]], None] | None,
    exclude: Callable[[], None],
    typed: str,
    verbose: bool,
) -> None:
    """Read SOURCE... into a state of its own, with the refits of a default run. It keeps no partial order: nothing that
    the page shows is made of it, and half of what the first report compiles is for it."""
    from stream_engine.commands import warm_up
    from stream_engine.service import run

    logs.configure(level="info" if verbose else "warning")
    settings = settings_of(options, state=str(folder), guard=False)
    settings = structs.replace(settings, signing=SigningSettings())  # of a state that is gone when the command ends
    lines: list[str] = []
    with warm_up.beside("map"), progress_bars.Bars() as bars:
        run.run(settings, bars, say=lines.append, meanwhile=meanwhile, command=typed, exclude=exclude)
    kept_in = f"; all in {folder / 'dead_letters'}"  # which is gone when this command ends
    for line in lines:  # how the first answers were read, warnings, and what was counted
        click.echo(line.partition("; next: ")[0].replace(kept_in, "") if line is lines[-1] else line, err=True)
    _show_rejected(folder)


def _show_rejected(folder: Path) -> None:
    """The first rejected rows with their positions."""
    snapshot = Store(folder).published().snapshot
    rejected = [entry.letter for entry in letters_of(snapshot.counters.get("sinks", {}), folder / "dead_letters")]
    with closing(lines_of(snapshot)) as positions:
        for letter in filter(None, rejected[:MAX_SHOWN_REJECTED]):
            click.echo(f"rejected: {as_text(letter_fields(letter, positions))}", err=True)
    if len(rejected) > MAX_SHOWN_REJECTED:
        more = f"{len(rejected) - MAX_SHOWN_REJECTED:,} more rejected; to see all: stream-engine run with a --state DIR"
        click.echo(f"{more}, then stream-engine dead-letters show --state DIR --limit 0", err=True)
