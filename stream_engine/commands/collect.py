"""`stream-engine collect`: a page that asks people, and the engine that learns from their answers, in one command."""

from pathlib import Path

import click

from stream_engine.commands import state_option


@click.command("collect")
@click.option(
    "--objects", required=True, metavar="FOLDER|FILE", help="Pictures, sounds and texts; a table of them; or names."
)
@state_option
@click.option("--listen", default="127.0.0.1:8000", show_default=True, metavar="HOST:PORT", help="Where people ask.")
@click.option("--study", metavar="FILE", help="TOML file: texts, kind of question, quotas, catch trials.")
@click.option("--config", metavar="FILE", help="TOML file of the engine, as for `run`; also its [http] and [log].")
@click.option("--prefix", default="", metavar="/PATH", help="Before all paths, where a proxy does not take it away.")
@click.option("--behind-proxy", is_flag=True, help="Take addresses of people from the proxy's X-Forwarded-For.")
@click.option("--seed", default=0, show_default=True, help="Seed of the questions.")
def command(
    objects: str,
    state: str,
    listen: str,
    study: str | None,
    config: str | None,
    prefix: str,
    behind_proxy: bool,
    seed: int,
) -> None:
    """Ask people in a page at /ask and learn from their answers, until SIGTERM or SIGINT."""
    import structlog

    from stream_engine.collect import serve
    from stream_engine.collect.study import load
    from stream_engine.service import logs
    from stream_engine.service import settings as configuration

    if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
        raise click.UsageError(f"--prefix: got {prefix!r}, expected /PATH without a / at its end")
    settings = configuration.load(config, {})
    logs.configure(settings.log.format, settings.log.level)
    place = serve.Place(objects, Path(state), listen, config, prefix, behind_proxy, seed)
    serve.collect(place, load(study), structlog.get_logger(), lambda line: click.echo(line))
