"""`stream-engine run`: consume, snapshot, refit, serve. Every option sets the configuration key of its name."""

from collections.abc import Callable
from typing import Any

import click

from connectors.kafka.start_offsets import ON_OFFSET_LOSS
from stream_engine.commands.input_options import (
    apply_exclusion,
    exclusion_options,
    labels_options,
    overrides_of,
    reading_options,
)
from stream_engine.data import logs
from stream_engine.input.settings import loading as configuration
from stream_engine.refits import REFITS
from stream_engine.state.store import Store


def _option(*names: str, key: str, **more: Any) -> Callable[[Any], Any]:
    """An option that sets the configuration key of that name."""
    return click.option(*names, key.replace(".", "__"), default=None, **more)


@click.command("run")
@click.argument("source", nargs=-1)
@_option("--state", key="state", metavar="DIR", help="State directory for snapshots, artifacts and dead letters.")
@click.option("--config", metavar="FILE", help="TOML configuration file. It has a key for every option.")
@_option(
    "--follow",
    key="follow",
    is_flag=True,
    flag_value=True,
    help="Keep reading files as they grow, until SIGTERM or SIGINT.",
)
@click.option(
    "--start-over", is_flag=True, help="Delete the contents of the state and read all sources from the beginning."
)
@_option(
    "--listen",
    key="listen",
    metavar="HOST:PORT",
    help="Address of the HTTP server: live page at /, and /metrics, /healthz, /readyz, /snapshot, /export.",
)
@_option(
    "--objects",
    key="http.objects",
    metavar="FOLDER|FILE",
    help="Pictures for the live page: files named after objects, or a table object,image,text.",
)
@reading_options
@labels_options
@_option(
    "--snapshot-every",
    key="snapshot.every",
    type=int,
    metavar="N",
    help="Comparisons between snapshots (0: none). Default: whenever the counts grew by a quarter.",
)
@_option(
    "--snapshot-interval", key="snapshot.interval", type=float, metavar="SECONDS", help="Seconds between snapshots."
)
@_option("--keep", key="snapshot.keep", type=int, metavar="K", help="Number of snapshots to retain.")
@click.option(
    "--refit",
    "refit",
    multiple=True,
    type=click.Choice([*REFITS, *(f"+{kind}" for kind in REFITS)]),
    metavar="[+]KIND",
    help="Model to fit. KIND replaces the default refits, +KIND adds to them (repeatable).",
)
@click.option("--no-refits", is_flag=True, help="Do not fit any model.")
@_option(
    "--dead-letters",
    key="dead_letters",
    metavar="FOLDER",
    help="Folder of rejected events. Default: DIR/dead_letters.",
)
@_option(
    "--max-reject-ratio",
    key="input.max_reject_ratio",
    type=float,
    metavar="R",
    help="Stop if the share of rejected events exceeds R, until a snapshot has counted events of the input.",
)
@_option(
    "--memory-gb",
    key="memory_gb",
    type=float,
    metavar="GB",
    help="Memory limit for the process and its refits; close to it, reading pauses. Default: free memory.",
)
@_option("--seed", key="refits.seed", type=int, metavar="S", help="Random seed of the refits.")
@_option(
    "--guard", key="guard", type=bool, metavar="on|off", help="Whether to maintain a partial order of the comparisons."
)
@exclusion_options
@_option(
    "--start",
    key="input.start",
    metavar="earliest|latest|TIME",
    help="Kafka: where a first start begins, also a time such as 2026-11-01T00:00Z.",
)
@_option(
    "--on-offset-loss",
    key="input.on_offset_loss",
    type=click.Choice(ON_OFFSET_LOSS),
    help="Kafka: what to do if the next offset has expired.",
)
@_option("--shard", key="input.shard", metavar="I/N", help="Kafka: share of the partitions that this process reads.")
@click.option("-v", "--verbose", is_flag=True, help="Show log lines of level info on a terminal, too.")
@_option("--log-format", key="log.format", type=click.Choice(logs.FORMATS), help="Format of log lines.")
def command(
    source: tuple[str, ...],
    config: str | None,
    refit: tuple[str, ...],
    no_refits: bool,
    start_over: bool,
    exclude: tuple[str, ...],
    include: tuple[str, ...],
    verbose: bool,
    **given: Any,
) -> None:
    """Read events from SOURCE..., take snapshots, fit models, and serve results.

    SOURCE is a file, a glob pattern, - (standard input), kafka://HOST:PORT/TOPIC, or in a store: s3://, gs://, https://.
    """
    # these bring the HTTP server and the predictors, which --help does without
    import structlog

    from stream_engine.data import logs
    from stream_engine.service import run as service

    overrides = overrides_of(given) | {
        "source": list(source) or None,
        "refits.kinds": [kind for kind in refit if not kind.startswith("+")] or None,
        "refits.also": [kind[1:] for kind in refit if kind.startswith("+")] or None,
    }
    if no_refits:
        overrides |= {"refits.kinds": [], "refits.also": []}
    settings = configuration.load(config, overrides)
    if settings.state:
        apply_exclusion(Store(settings.state), exclude, include, start_over)
    logs.configure(settings.log.format, "info" if verbose else settings.log.level, settings.log.file)
    lines: list[str] = []
    with logs.Bars() as bars:
        service.run(settings, bars, start_over=start_over, say=lines.append)
    for line in lines:  # after the bars; not on standard output, which is for what programs read
        if settings.log.format == "json":
            structlog.get_logger().info(line)
        else:
            click.echo(line, err=True)
