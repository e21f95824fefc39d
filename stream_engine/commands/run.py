"""`stream-engine run`: consume, snapshot, refit, serve. Every option sets the configuration key of its name."""

from collections.abc import Callable
from typing import Any

import click

from connectors.kafka.start_offsets import ON_OFFSET_LOSS, START_MODES
from stream_engine.commands.input_options import labels_options, overrides_of, reading_options
from stream_engine.refits import REFITS
from stream_engine.service import logs
from stream_engine.service import settings as configuration


def _option(*names: str, key: str, **more: Any) -> Callable[[Any], Any]:
    """An option that sets the configuration key of that name."""
    return click.option(*names, key.replace(".", "__"), default=None, **more)


@click.command("run")
@click.argument("source", nargs=-1)
@_option("--state", key="state", metavar="DIR", help="State directory: snapshots, artifacts, dead letters.")
@click.option("--config", metavar="FILE", help="TOML file; every option here has a key there.")
@_option(
    "--follow", key="follow", is_flag=True, flag_value=True, help="Keep reading as files grow, until SIGTERM or SIGINT."
)
@click.option("--start-over", is_flag=True, help="Remove what the state holds, and read all anew.")
@_option(
    "--listen",
    key="listen",
    metavar="HOST:PORT",
    help="Serve a page for people at /, and /metrics, /healthz, /readyz, /snapshot, /export.",
)
@_option(
    "--objects",
    key="http.objects",
    metavar="FOLDER|FILE",
    help="Pictures named after objects, or a table object,image,text, which the page at / shows.",
)
@reading_options
@labels_options
@_option(
    "--snapshot-every",
    key="snapshot.every",
    type=int,
    metavar="N",
    help="Comparisons between snapshots (0: never); by default a quarter more.",
)
@_option(
    "--snapshot-interval", key="snapshot.interval", type=float, metavar="SECONDS", help="Seconds between snapshots."
)
@_option("--keep", key="snapshot.keep", type=int, metavar="K", help="Snapshots that stay.")
@click.option(
    "--refit",
    "refit",
    multiple=True,
    type=click.Choice([*REFITS, *(f"+{kind}" for kind in REFITS)]),
    metavar="[+]KIND",
    help="+KIND: this refit beside the others; KIND: it instead of them (repeatable).",
)
@click.option("--no-refits", is_flag=True, help="Count only.")
@_option(
    "--dead-letters",
    key="dead_letters",
    metavar="TARGET",
    help="Folder instead of DIR/dead_letters, or kafka://... beside it.",
)
@_option(
    "--max-reject-ratio",
    key="input.max_reject_ratio",
    type=float,
    metavar="R",
    help="Stop when more than this is refused.",
)
@_option(
    "--memory-gb",
    key="memory_gb",
    type=float,
    metavar="GB",
    help="Memory for the process and its refits; near it the stream waits. Default: what is free.",
)
@_option("--seed", key="refits.seed", type=int, metavar="S", help="Seed of the refits.")
@_option("--guard", key="guard", type=bool, metavar="on|off", help="Keep a partial order of the comparisons, or none.")
@_option("--start", key="input.start", type=click.Choice(START_MODES), help="Kafka: where a first start begins.")
@_option(
    "--on-offset-loss",
    key="input.on_offset_loss",
    type=click.Choice(ON_OFFSET_LOSS),
    help="Kafka: when retention was faster.",
)
@_option("--shard", key="input.shard", metavar="I/N", help="Kafka: this process's share of the partitions.")
@_option("--log-format", key="log.format", type=click.Choice(logs.FORMATS), help="How log lines look.")
def command(
    source: tuple[str, ...],
    config: str | None,
    refit: tuple[str, ...],
    no_refits: bool,
    start_over: bool,
    **given: Any,
) -> None:
    """Consume SOURCE..., snapshot, refit, serve. SOURCE: a file, a glob, - or kafka://HOST:PORT/TOPIC."""
    # these bring the HTTP server and the predictors, which --help does without
    import structlog

    from stream_engine.service import progress_bars
    from stream_engine.service import run as service

    overrides = overrides_of(given) | {
        "source": list(source) or None,
        "refits.kinds": [kind for kind in refit if not kind.startswith("+")] or None,
        "refits.also": [kind[1:] for kind in refit if kind.startswith("+")] or None,
        "refits.enabled": False if no_refits else None,
    }
    settings = configuration.load(config, overrides)
    logs.configure(settings.log.format, settings.log.level)
    said: list[str] = []
    with progress_bars.Bars() as bars:
        service.run(settings, bars, start_over=start_over, say=said.append)
    for line in said:  # after the bars; not on standard output, which is for what programs read
        if settings.log.format == "json":
            structlog.get_logger().info(line)
        else:
            click.echo(line, err=True)
