"""`stream-engine preview`: how the first events would be read; nothing is written."""

import json
from typing import Any

import click

from stream_engine.commands.input_options import input_options, no_answers, settings_of


@click.command("preview")
@click.option(
    "--events",
    default=100_000,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Number of events to read.",
)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
@input_options
def command(events: int, as_json: bool, **options: Any) -> None:
    """Show how the first events of files would be read, and point out likely problems. Writes nothing."""
    from stream_engine.service.preview import preview
    from stream_engine.service.preview_text import as_text

    if not options["source"]:
        raise click.UsageError("Missing argument 'SOURCE...': name a file.")
    contents = preview(settings_of(options), events)
    if not (contents.events or contents.refused or contents.filtered or contents.readings):
        raise no_answers(options["source"])
    where = ", ".join(options["source"])
    click.echo(json.dumps(vars(contents), indent=1, ensure_ascii=False) if as_json else as_text(contents, where))
    if contents.readings or contents.is_refused:
        raise click.exceptions.Exit(2 if contents.readings else 1)  # as a run over it would fail
