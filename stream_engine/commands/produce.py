"""`stream-engine produce`: files of events to a Kafka topic."""

import click

from connectors import records_of
from connectors.kafka.produce import send
from stream_engine.data.progress_bars import Bars
from stream_engine.formats import INPUT_FORMATS
from stream_engine.formats.event_messages import ENCODINGS, EventMessages
from stream_engine.input.settings import loading as configuration


@click.command("produce")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.argument("target", metavar="kafka://HOST:PORT/TOPIC")
@click.option("--batch", default=1, show_default=True, metavar="N", help="Number of events per message.")
@click.option(
    "--encoding", default="json", show_default=True, type=click.Choice(ENCODINGS), help="Encoding of messages."
)
@click.option("--rate", type=float, metavar="R", help="Maximum number of events per second.")
@click.option("--format", type=click.Choice(INPUT_FORMATS), help="Format of the files. Default: by file name.")
@click.option("--config", metavar="FILE", help="TOML configuration file with the [kafka] options of the client.")
def command(
    files: tuple[str, ...],
    target: str,
    batch: int,
    encoding: str,
    rate: float | None,
    format: str | None,
    config: str | None,
) -> None:
    """Send files of events to a topic."""
    options = configuration.load(config, {}).kafka
    messages = EventMessages(records_of(files, format), encoding, batch)
    with Bars() as bars:
        sent = send(messages, target, options=options, rate=rate, progress=bars.add_sent)
    click.echo(
        f"{sent.items:,} events in {sent.messages:,} messages, {sent.bytes:,} bytes, in {sent.seconds:.1f} s"
        + (f"; {messages.skipped:,} lines were not sent" if messages.skipped else "")
    )
