"""`stream-engine collect`: the participants' page and the engine that counts their answers, in one command."""

from pathlib import Path

import click

from stream_engine.commands import state_option
from stream_engine.data.standard_streams import ReaderGone, give_up_output


@click.command("collect")
@click.option(
    "--objects",
    metavar="FOLDER|FILE",
    help=(
        "Stimuli: a folder of pictures, sounds or texts, a table of them, or a list of names. Default: the previous "
        "ones."
    ),
)
@state_option
@click.option(
    "--listen",
    default="127.0.0.1:8000",
    show_default=True,
    metavar="HOST:PORT",
    help="Address of the participants' page.",
)
@click.option(
    "--study",
    metavar="FILE",
    help="TOML file of the study: texts, questions, quotas, catch trials. Default: the previous one.",
)
@click.option("--words", metavar="FILE", help="TOML file with a translation of the page. Default: the previous one.")
@click.option(
    "--config", metavar="FILE", help="TOML configuration file of the engine, as for `run`, including [http] and [log]."
)
@click.option("--prefix", default="", metavar="/PATH", help="Prefix of all paths, if the proxy does not strip it.")
@click.option("--behind-proxy", is_flag=True, help="Take client addresses from the proxy's X-Forwarded-For header.")
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="ORIGIN",
    help="Origin whose pages may request questions and send answers: https://HOST.",
)
@click.option("--seed", default=0, show_default=True, help="Random seed of the questions.")
def command(
    objects: str | None,
    state: str,
    listen: str,
    study: str | None,
    words: str | None,
    config: str | None,
    prefix: str,
    behind_proxy: bool,
    allow_origin: tuple[str, ...],
    seed: int,
) -> None:
    """Serve a study: ask participants at /ask and update models with their answers, until SIGTERM or SIGINT."""
    import structlog

    from stream_engine.collect import serve
    from stream_engine.collect.origins import checked_origin
    from stream_engine.collect.study import load
    from stream_engine.data import logs
    from stream_engine.input.settings import loading as configuration

    if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
        raise click.UsageError(f"--prefix: got {prefix!r}, expected /PATH without a trailing /")
    settings = configuration.load(config, {})
    logs.configure(settings.log.format, settings.log.level, settings.log.file)
    origins = tuple(checked_origin(origin) for origin in allow_origin)
    study, words = serve.as_before(study, state, serve.STUDY), serve.as_before(words, state, serve.WORDS)
    place = serve.Place(objects, Path(state), listen, config, prefix, behind_proxy, seed, origins, study, words)
    serve.collect(place, load(study), structlog.get_logger(), _say)


def _say(line: str) -> None:
    """Write to standard output; a study does not end because nobody reads it."""
    import structlog

    try:
        click.echo(line)
    except (OSError, ReaderGone) as error:
        give_up_output()
        structlog.get_logger().warning("the addresses could not be written", problem=str(error))
