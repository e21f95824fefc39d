"""`stream-engine collect`: a page that asks people, and the engine that learns from their answers, in one command."""

from pathlib import Path

import click

from stream_engine.commands import state_option


@click.command("collect")
@click.option(
    "--objects", metavar="FOLDER|FILE", help="Pictures, sounds, texts; a table of them; or names. Not set: as before."
)
@state_option
@click.option("--listen", default="127.0.0.1:8000", show_default=True, metavar="HOST:PORT", help="Where people ask.")
@click.option("--study", metavar="FILE", help="TOML file: texts, questions, quotas, catch trials. Not set: as before.")
@click.option(
    "--words", metavar="FILE", help="TOML file: the page's own words in another language. Not set: as before."
)
@click.option("--config", metavar="FILE", help="TOML file of the engine, as for `run`; also its [http] and [log].")
@click.option("--log", metavar="URI", help="kafka://HOST:PORT/TOPIC that keeps the answers, instead of a file in DIR.")
@click.option("--prefix", default="", metavar="/PATH", help="Before all paths, where a proxy does not take it away.")
@click.option("--behind-proxy", is_flag=True, help="Take addresses of people from the proxy's X-Forwarded-For.")
@click.option("--allow-origin", multiple=True, metavar="ORIGIN", help="https://HOST whose pages may ask and answer.")
@click.option("--seed", default=0, show_default=True, help="Seed of the questions.")
def command(
    objects: str | None,
    state: str,
    listen: str,
    study: str | None,
    words: str | None,
    config: str | None,
    log: str | None,
    prefix: str,
    behind_proxy: bool,
    allow_origin: tuple[str, ...],
    seed: int,
) -> None:
    """Ask people in a page at /ask and learn from their answers, until SIGTERM or SIGINT."""
    import structlog

    from stream_engine.collect import serve
    from stream_engine.collect.origins import checked_origin
    from stream_engine.collect.study import load
    from stream_engine.service import logs
    from stream_engine.service import settings as configuration

    if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
        raise click.UsageError(f"--prefix: got {prefix!r}, expected /PATH without a / at its end")
    settings = configuration.load(config, {})
    logs.configure(settings.log.format, settings.log.level)
    origins = tuple(checked_origin(each) for each in allow_origin)
    study, words = serve.as_before(study, state, serve.STUDY), serve.as_before(words, state, serve.WORDS)
    place = serve.Place(objects, Path(state), listen, config, prefix, behind_proxy, seed, origins, study, words, log)
    serve.collect(place, load(study), structlog.get_logger(), lambda line: click.echo(line))
