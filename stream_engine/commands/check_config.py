"""`stream-engine check-config`: what is wrong with a configuration file, or the settings in force."""

import json

import click

from stream_engine.service import settings as configuration


@click.command("check-config")
@click.argument("file")
def command(file: str) -> None:
    """Say what is wrong with a configuration file, or print the settings in force."""
    from stream_engine.service.runnable import check_runnable

    settings = configuration.load(file, {})
    check_runnable(settings)
    click.echo(json.dumps(configuration.shown(settings), indent=1, ensure_ascii=False))
    told = "keys and values are right (columns: `stream-engine preview` reads the first rows)"
    click.echo(f"{file}: {told}; the settings in force are above, with the defaults", err=True)
