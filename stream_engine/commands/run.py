"""`stream-engine run`: consume, snapshot, refit, serve. Every option sets the configuration key of its name."""

from typing import Any

import click

from stream_engine.commands.input_options import (
    apply_exclusion,
    exclusion_options,
    labels_options,
    overrides_of,
    reading_options,
    setting,
)
from stream_engine.data import logs
from stream_engine.data.progress_bars import Bars
from stream_engine.input.settings import loading as configuration
from stream_engine.refits import REFITS
from stream_engine.state.store import Store


@click.command("run")
@click.argument("source", nargs=-1)
@setting("state", "State directory for snapshots, artifacts and dead letters.", "DIR")
@click.option("--config", metavar="FILE", help="TOML configuration file. It has a key for every option.")
@setting("follow", "Keep reading files as they grow, until SIGTERM or SIGINT.")
@click.option(
    "--start-over", is_flag=True, help="Delete the contents of the state and read all sources from the beginning."
)
@setting(
    "listen",
    "Address of the HTTP server: live page at /, and /metrics, /healthz, /readyz, /snapshot, /export.",
    "HOST:PORT",
)
@setting(
    "http.objects",
    "Pictures for the live page: files named after objects, or a table object,image,text.",
    "FOLDER|FILE",
)
@reading_options
@labels_options
@setting(
    "snapshot.every",
    "Comparisons after which a snapshot is taken before the interval ends (0: none). Default: a quarter of those in "
    "the last snapshot, and at least 10 million.",
    "N",
    "--snapshot-every",
)
@setting(
    "snapshot.interval",
    "Seconds between snapshots, if anything was read meanwhile (0: none by time).  [default: 60]",
    "SECONDS",
    "--snapshot-interval",
)
@setting("snapshot.keep", "Number of snapshots to retain.", "K")
@click.option(
    "--refit",
    "refit",
    multiple=True,
    type=click.Choice([*REFITS, *(f"+{kind}" for kind in REFITS)]),
    metavar="[+]KIND",
    help="Model to fit. KIND replaces the default refits, +KIND adds to them (repeatable).",
)
@click.option("--no-refits", is_flag=True, help="Do not fit any model.")
@setting("dead_letters", "Folder of rejected events. Default: DIR/dead_letters.", "FOLDER")
@setting(
    "input.max_reject_ratio",
    "Stop if the share of rejected events exceeds R, until a snapshot has counted events of the input.",
    "R",
)
@setting(
    "memory_gb",
    "Memory limit for the process and its refits; close to it, reading pauses. Default: free memory.",
    "GB",
)
@setting("refits.seed", "Random seed of the refits.", "S")
@setting("guard", "Whether to maintain a partial order of the comparisons.", "on|off", type=bool)
@exclusion_options
@setting(
    "input.start",
    "Kafka: where a first start begins, also a time such as 2026-11-01T00:00Z.",
    "earliest|latest|TIME",
)
@setting("input.on_offset_loss", "Kafka: what to do if the next offset has expired.")
@setting("input.shard", "Kafka: share of the partitions that this process reads.", "I/N")
@click.option("-v", "--verbose", is_flag=True, help="Show log lines of level info on a terminal, too.")
@setting("log.format", "Format of log lines.", name="--log-format")
def command(
    source: tuple[str, ...],
    config: str | None,
    refit: tuple[str, ...],
    no_refits: bool,
    start_over: bool,
    exclude: tuple[str, ...],
    include: tuple[str, ...],
    verbose: bool,
    **options: Any,
) -> None:
    """Read events from SOURCE..., take snapshots, fit models, and serve results.

    SOURCE is a file, a glob pattern, - (standard input), kafka://HOST:PORT/TOPIC, or in a store: s3://, gs://, https://.
    """
    # these bring the HTTP server and the predictors, which --help does without
    import structlog

    from stream_engine.service import run as service

    overrides = overrides_of(options) | {
        "source": list(source) or None,
        "refits.kinds": [kind for kind in refit if not kind.startswith("+")] or None,
        "refits.also": [kind[1:] for kind in refit if kind.startswith("+")] or None,
    }
    if no_refits:
        overrides |= {"refits.kinds": [], "refits.also": []}
    settings = configuration.load(config, overrides)
    lines: list[str] = []
    if settings.state:
        store = Store(settings.state, signing=configuration.signing_of(settings))
        said = apply_exclusion(store, exclude, include, start_over)
        lines += [said] if said else []
    logs.configure(settings.log.format, "info" if verbose else settings.log.level, settings.log.file)
    with Bars() as bars:
        service.run(settings, bars, start_over=start_over, say=lines.append)
    for line in lines:  # after the bars; not on standard output, which is for what programs read
        if settings.log.format == "json":
            structlog.get_logger().info(line)
        else:
            click.echo(line, err=True)
