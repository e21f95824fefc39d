"""`stream-engine`: the verbs. Each one parses, calls one room, and says what came out.

Exit status: 0 done; 1 failed at run time; 2 unusable arguments or configuration. Errors are one line on standard error
(`--debug` shows the traceback).
"""

import json
import sys
from pathlib import Path

import click

from connectors import SinkUnavailable, SourceFailed, UnusableSource
from stream_engine import exports
from stream_engine.asking import DEFAULT, STRATEGIES, CannotAsk
from stream_engine.data.comparisons import EVENT_TYPES
from stream_engine.data.container import Corrupt
from stream_engine.exports.files import FORMATS as EXPORT_FORMATS
from stream_engine.formats import FORMATS
from stream_engine.formats.options import UnusableOptions
from stream_engine.refits import REFITS, CannotRefit, SolverFailed
from stream_engine.service import logs
from stream_engine.service import settings as configuration
from stream_engine.service.metrics import engine_version
from stream_engine.service.settings import BadSettings
from stream_engine.state.engine import OverlappingStates
from stream_engine.state.store import NoSuchSnapshot, StateInUse

UNUSABLE = (BadSettings, UnusableSource, UnusableOptions, CannotAsk, click.UsageError)
FAILED = (
    SourceFailed,
    SinkUnavailable,
    Corrupt,
    NoSuchSnapshot,
    StateInUse,
    CannotRefit,
    SolverFailed,
    OverlappingStates,
    exports.NothingToExport,
    OSError,
    MemoryError,
)

_state = click.option("--state", required=True, metavar="DIR", help="State directory.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(engine_version(), prog_name="stream-engine")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Streaming online-learning engine for comparison data: triplets, quadruplets, rankings and their kin."""


def _option(*names, key, **more):
    """An option of `run` that sets the configuration key of that name."""
    return click.option(*names, key.replace(".", "__"), default=None, **more)


@cli.command()
@click.argument("source", nargs=-1)
@_option("--state", key="state", metavar="DIR", help="State directory: snapshots, artifacts, dead letters.")
@click.option("--config", metavar="FILE", help="TOML file; every option here has a key there.")
@_option(
    "--follow", key="follow", is_flag=True, flag_value=True, help="Keep reading as files grow, until SIGTERM or SIGINT."
)
@_option("--listen", key="listen", metavar="HOST:PORT", help="Serve /metrics, /healthz, /readyz, /snapshot, /export.")
@_option("--type", key="input.type", type=click.Choice(EVENT_TYPES), help="The type of every event.")
@_option(
    "--columns",
    key="input.columns",
    metavar="A=B,...",
    help="Names of fields in the input: anchor=probe,objects=a|b|c.",
)
@click.option(
    "--where", multiple=True, metavar="FIELD=VALUE", help="Only matching events; others are counted as filtered."
)
@_option("--format", key="input.format", type=click.Choice(list(FORMATS)), help="Instead of going by the file name.")
@_option("--labels", key="input.labels", metavar="FILE", help="File of object,label.")
@_option("--labels-columns", key="input.labels_columns", metavar="A=B,...", help="Names of its columns: label=sweet.")
@_option(
    "--snapshot-every", key="snapshot.every", type=int, metavar="N", help="Comparisons between snapshots (0: never)."
)
@_option(
    "--snapshot-interval", key="snapshot.interval", type=float, metavar="SECONDS", help="Seconds between snapshots."
)
@_option("--keep", key="snapshot.keep", type=int, metavar="K", help="Snapshots that stay.")
@click.option("--refit", "refit", multiple=True, type=click.Choice(list(REFITS)), help="Refits to run (repeatable).")
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
@_option("--seed", key="refits.seed", type=int, metavar="S", help="Seed of the refits.")
@_option(
    "--guard",
    key="guard.policy",
    type=click.Choice(["first", "drop-both", "majority", "sift", "off"]),
    help="Partial order policy.",
)
@_option(
    "--start",
    key="input.start",
    type=click.Choice(["none", "earliest", "latest"]),
    help="Kafka: where a first start begins.",
)
@_option(
    "--on-offset-loss",
    key="input.on_offset_loss",
    type=click.Choice(["fail", "earliest"]),
    help="Kafka: when retention was faster.",
)
@_option("--shard", key="input.shard", metavar="I/N", help="Kafka: this process's share of the partitions.")
@_option("--log-format", key="log.format", type=click.Choice(["text", "json"]), help="How log lines look.")
def run(source, config, where, refit, no_refits, **given) -> None:
    """Consume SOURCE..., snapshot, refit, serve. SOURCE: a file, a glob, - or kafka://HOST:PORT/TOPIC."""
    from stream_engine.service import progress_bars
    from stream_engine.service import run as loop

    overrides = {name.replace("__", "."): value for name, value in given.items()}
    for option in ("input.columns", "input.labels_columns"):
        if overrides[option] is not None:
            overrides[option] = configuration.mapping(overrides[option], "--" + option.split(".")[1].replace("_", "-"))
    overrides |= {
        "source": list(source) or None,
        "refits.kinds": list(refit) or None,
        "refits.enabled": False if no_refits else None,
        "input.where": dict(kv for text in where for kv in configuration.mapping(text, "--where", "\0").items())
        or None,
    }
    settings = configuration.load(config, overrides)
    logs.configure(settings.log.format, settings.log.level)
    with progress_bars.Bars() as bars:
        loop.run(settings, bars)


@cli.command()
@_state
@click.option("--out", required=True, metavar="DIR", help="Folder for the files.")
@click.option("--snapshot", default="latest", metavar="N|latest", help="Which snapshot.")
@click.option("--format", default="npz", type=click.Choice(EXPORT_FORMATS), help="Of arrays; documents are JSON.")
@click.option(
    "--object-order",
    default="seen",
    show_default=True,
    type=click.Choice(["seen", "name"]),
    help="Objects numbered as they came, or by name: then equal counts give equal files.",
)
@click.argument("what", nargs=-1)
def export(state, out, snapshot, format, object_order, what) -> None:
    """Write files that scientists load: all, or those named in WHAT."""
    from stream_engine.commands import export_inspect

    for path in export_inspect.export(state, out, snapshot, format, what, object_order):
        click.echo(path)


@cli.command()
@_state
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def inspect(state, as_json) -> None:
    """What is in the state: counts, positions, snapshots, artifacts."""
    from stream_engine.commands import export_inspect

    found = export_inspect.inspect(state)
    click.echo(json.dumps(found, indent=1, ensure_ascii=False) if as_json else export_inspect.as_text(found))


@cli.command()
@_state
@click.argument("kind", type=click.Choice(list(REFITS)))
@click.option("--snapshot", default="latest", metavar="N|latest", help="Which snapshot.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A parameter of the refit.")
@click.option(
    "--objects",
    metavar="FILE",
    help="Only the objects named in it, one a line (so many with the most evidence: --set objects=N).",
)
@click.option("--config", metavar="FILE", help="TOML file: [kernels] and [refits] count. --set is over it.")
@click.option("--params", default="{}", hidden=True)
@click.option("--seed", type=int, help="Seed. Default: the configuration's, else 0.")
@click.option("--progress", "shown", default="bar", type=click.Choice(["bar", "json", "none"]), hidden=True)
def refit(state, kind, snapshot, assignments, objects, config, params, seed, shown) -> None:
    """One refit of a published snapshot, in the foreground."""
    from stream_engine.commands import refit

    settings = configuration.load(config, {"refits.seed": seed})
    given = refit.assigned(assignments, configuration.params_of(settings, kind) | json.loads(params))
    if objects is not None:
        given["objects"] = refit.names_in(objects)
    made = refit.refit(state, kind, snapshot, given, settings.refits.seed, shown)
    if shown != "json":
        click.echo(refit.as_text(made))


@cli.command()
@click.argument("states", nargs=-1, required=True, metavar="STATE...")
@click.option("--out", required=True, metavar="STATE", help="State directory of the sum.")
def merge(states, out) -> None:
    """Sum states that read disjoint partitions into the one that a single process would have counted."""
    from stream_engine.commands import merge

    made, new = merge.merge(states, out)
    click.echo(
        f"snapshot {made.sequence} of {out}: {made.counters['comparisons']:,} comparisons over {len(made.objects):,} "
        f"objects from {len(set(states))} states" + ("" if new else "; it was there already")
    )


@cli.command("spark-counts", context_settings={"ignore_unknown_options": True})
@click.argument(
    "job", nargs=-1, required=True, type=click.UNPROCESSED, metavar="SOURCE... --out DIR [OPTIONS OF THE JOB]"
)
@click.option("--master", default="local[2]", show_default=True, metavar="URL", help="Where to run.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Spark property (repeatable).")
@click.option("--jars", metavar="FILES", help="Jars of spark-sql-kafka, instead of fetching the package.")
@click.option("--driver-memory", default="1g", show_default=True, metavar="SIZE", help="Of the driver.")
@click.option("--print-only", is_flag=True, help="Print the line and run nothing.")
def spark_counts(job, master, conf, jars, driver_memory, print_only) -> None:
    """Count on Spark: deltas in DIR for `run deltas://DIR`. Prints the spark-submit line, then runs it here.

    Options of the job: --type --columns --where --format --start --follow --every --per-batch --option.
    """
    from stream_engine.commands import spark_counts

    spark = [
        "--master",
        master,
        "--driver-memory",
        driver_memory,
        *(f"--conf={each}" for each in conf),
        *(["--jars", jars] if jars else []),
    ]
    line = spark_counts.command(job, spark)
    click.echo(spark_counts.as_text(line))
    if not print_only:
        spark_counts.run(line)


@cli.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.argument("target", metavar="kafka://HOST:PORT/TOPIC")
@click.option("--batch", default=1, show_default=True, metavar="N", help="Events in a message.")
@click.option(
    "--encoding", default="json", show_default=True, type=click.Choice(["json", "arrow"]), help="Of a message."
)
@click.option("--rate", type=float, metavar="R", help="At most so many events a second.")
@click.option("--format", type=click.Choice(list(FORMATS)), help="Of the files, instead of going by their names.")
@click.option("--config", metavar="FILE", help="TOML file whose [kafka] section the client gets.")
def produce(files, target, batch, encoding, rate, format, config) -> None:
    """Send files of events to a topic."""
    from connectors import records_of
    from connectors.kafka.produce import send
    from stream_engine.formats.event_messages import EventMessages
    from stream_engine.service import progress_bars

    options = configuration.load(config, {}).kafka
    messages = EventMessages(records_of(files, format), encoding, batch)
    with progress_bars.Bars() as bars:
        sent = send(messages, target, options=options, rate=rate, progress=bars.sent)
    click.echo(
        f"{sent.items:,} events in {sent.messages:,} messages, {sent.bytes:,} bytes, in {sent.seconds:.1f} s"
        + (f"; {messages.skipped:,} lines could not be sent" if messages.skipped else "")
    )


@cli.command()
@_state
@click.option("--n", "n", default=100, show_default=True, metavar="N", help="How many questions.")
@click.option(
    "--strategy", default=DEFAULT, show_default=True, metavar="|".join(STRATEGIES), help="How they are chosen."
)
@click.option(
    "--type",
    "kind",
    default="pick",
    show_default=True,
    metavar="pick|triplet|odd_one_out",
    help="Of the events that answer.",
)
@click.option(
    "--objects", metavar="FILE", help="Names, one a line, that may be asked about although nobody has compared them."
)
@click.option("--snapshot", default="latest", metavar="N|latest", help="Which snapshot.")
@click.option("--seed", default=0, show_default=True, help="Seed.")
@click.option("--out", metavar="FILE|kafka://HOST:PORT/TOPIC", help="Instead of standard output.")
@click.option("--config", metavar="FILE", help="TOML file whose [kafka] section the client gets.")
def ask(state, n, strategy, kind, objects, snapshot, seed, out, config) -> None:
    """What to ask people next: questions as JSON lines, the most useful first."""
    from stream_engine.commands import ask

    options = configuration.load(config, {}).kafka
    asked = ask.ask(state, n, strategy, kind, seed, objects, snapshot)
    if out is None:
        click.echo(b"\n".join(asked.lines))
    else:
        click.echo(f"{asked.about}; written to {ask.write(asked, out, options)}")


@cli.command("warm-up")
def warm_up() -> None:
    """Compile what is compiled on first use, so that a run starts at full speed."""
    from stream_engine.commands import warm_up

    for what, seconds in warm_up.warm_up():
        click.echo(f"{what:24}{seconds:6.2f} s")


@cli.command("check-config")
@click.argument("file")
def check_config(file) -> None:
    """Say what is wrong with a configuration file, or print the settings in force."""
    click.echo(json.dumps(configuration.shown(configuration.load(file, {})), indent=1, ensure_ascii=False))


@cli.command()
@click.option("--state", default="demo", show_default=True, metavar="DIR", help="State directory.")
@click.option("--seed", default=0, show_default=True, help="Seed of the made events and the refits.")
def demo(state, seed) -> None:
    """The main job on built-in real data, end to end: handwritten digits, compared by noisy judges."""
    from stream_engine.commands import demo as demonstration

    click.echo(demonstration.demo(Path(state), seed))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    try:
        cli.main([a for a in arguments if a != "--debug"], prog_name="stream-engine", standalone_mode=False)
        return 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.Abort:
        return 130
    except (*UNUSABLE, *FAILED, RuntimeError) as error:
        if debug:
            raise
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"stream-engine: {' '.join(text.split())}", err=True)
        return 2 if isinstance(error, UNUSABLE) else 1


if __name__ == "__main__":
    sys.exit(main())
