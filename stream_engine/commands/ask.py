"""`stream-engine ask`: from a state directory to a file of questions, standard output or a Kafka topic.

A question is the event that answers it, without the answer. `id` is a hash of the snapshot and the question, so asking
again repeats it; `sampler` and `propensity` say how it was chosen. Takes no lock.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from connectors.disk import Disk, write_whole
from connectors.files.readers import KINDS
from connectors.files.streams import CODECS
from connectors.kafka.produce import Message, send
from stream_engine import asking
from stream_engine.asking.as_events import TYPES, check_type, choose_for_type, events, note_on_random
from stream_engine.asking.knowledge import CannotAsk, knowledge_of, no_knowledge, with_objects
from stream_engine.commands import snapshot_option, state_option
from stream_engine.data.comparisons import MAX_NAME_BYTES
from stream_engine.data.numbers_in_words import amount
from stream_engine.input.settings import loading as configuration
from stream_engine.state.store import Store


@click.command("ask")
@state_option
@click.option("--n", "n", default=100, show_default=True, metavar="N", help="Number of questions.")
@click.option(
    "--strategy",
    default=asking.DEFAULT,
    show_default=True,
    metavar="|".join(asking.STRATEGIES),
    help="How to choose questions.",
)
@click.option(
    "--random-share",
    default=asking.RANDOM_SHARE,
    show_default=True,
    metavar="SHARE",
    help="Share of random questions among those that a model chooses.",
)
@click.option(
    "--type",
    "kind",
    default="pick",
    show_default=True,
    metavar="|".join(TYPES),
    help="Type of the questions. An answer adds chosen (pick), near and far (triplet), or odd (odd_one_out).",
)
@click.option(
    "--objects", metavar="FILE", help="File of additional object names, one per line, that have no comparisons yet."
)
@snapshot_option
@click.option("--seed", default=0, show_default=True, help="Random seed.")
@click.option("--out", metavar="FILE|kafka://HOST:PORT/TOPIC", help="Output file or topic. Default: standard output.")
@click.option("--config", metavar="FILE", help="TOML configuration file; uses [kafka] and [signing].")
def command(
    state: str,
    n: int,
    strategy: str,
    random_share: float,
    kind: str,
    objects: str | None,
    snapshot: str,
    seed: int,
    out: str | None,
    config: str | None,
) -> None:
    """Choose the questions to ask next and write them as JSON lines, sorted by priority."""
    settings = configuration.load(config, {})
    _check_suffix(out or "")
    store = Store(state, signing=configuration.signing_of(settings))
    questions = ask(store, n, strategy, kind, seed, objects, snapshot, random_share)
    if out is None:
        click.echo(b"\n".join(questions.lines))
    else:
        click.echo(f"{questions.about}; written to {write(questions, out, settings.kafka)}")
    if questions.instead:
        click.echo(questions.instead, err=True)


def _check_suffix(out: str) -> None:
    """Raises `CannotAsk` for a file whose name promises something other than text of JSON lines."""
    suffix = Path(out).suffix.lower()
    is_other = suffix in CODECS or KINDS.get(suffix, "json") != "json"
    if is_other and suffix != ".txt" and not out.startswith("kafka://"):
        raise CannotAsk(f"--out {out}: questions are written as JSON lines; name a file with the suffix .jsonl")


class QuestionLines(NamedTuple):
    """`lines`: one question each; `about` says in words what they were chosen from."""

    lines: list[bytes]
    about: str
    instead: str = ""  # what stands in for a model that may not choose, in one line


def ask(
    store: Store,
    n: int,
    strategy: str,
    kind: str,
    seed: int,
    objects: str | None,
    which: str,
    random_share: float = asking.RANDOM_SHARE,
) -> QuestionLines:
    """n questions from a state. Raises `CannotAsk`, and what reading a state raises."""
    check_type(kind)
    names = _names(Path(objects)) if objects else []
    if names and not store.sequences() and which == "latest":
        knowledge, source = no_knowledge(), "no snapshot yet"
    else:
        published = store.published(which)
        snapshot = published.snapshot
        knowledge = knowledge_of(snapshot, published.artifacts.get("embedding"))
        source = f"snapshot {snapshot.sequence}: {snapshot.counters['comparisons']:,} comparisons"
    knowledge = with_objects(knowledge, names)
    chosen = choose_for_type(kind, knowledge, n, strategy, seed, random_share)
    encode = msgspec.json.Encoder().encode
    lines = [encode(event) for event in events(chosen, knowledge, kind)]
    why = note_on_random(chosen, knowledge, strategy, random_share)
    how = " and ".join(sorted(set(chosen.sampler.tolist()))) if why else strategy
    about = f"{amount(len(lines), 'question')} by {how} over {len(knowledge.names):,} objects, {source}"
    return QuestionLines(lines, about, why)


def _names(path: Path) -> list[str]:
    """The names in a text file, one per line."""
    try:
        names = [line for line in path.read_text("utf-8-sig").splitlines() if line]
    except UnicodeDecodeError as error:
        raise CannotAsk(
            f"--objects {path}: byte {error.start} is not UTF-8; expected a text file with one name per line"
        ) from None
    except OSError as error:
        raise CannotAsk(
            f"--objects {path}: cannot be read ({error.strerror}); expected a text file with one name per line"
        ) from None
    if not names:
        raise CannotAsk(f"--objects {path}: got no name, expected one per line")
    for number, name in enumerate(names, 1):
        if len(name.encode()) > MAX_NAME_BYTES:
            raise CannotAsk(
                f"--objects {path}: line {number} has {len(name.encode())} bytes, expected at most {MAX_NAME_BYTES}"
            )
    return names


def write(asked: QuestionLines, out: str, options: Mapping[str, Any]) -> str:
    """Write the questions to a file (replaced whole) or to "kafka://host:port/topic"; returns where to, in words."""
    if out.startswith("kafka://"):
        sent = send(map(Message, asked.lines), out, options=options)
        return f"{sent.messages:,} messages in {out}"
    write_whole(Disk(), out, [b"\n".join(asked.lines), b"\n"], durable=False)
    return out
