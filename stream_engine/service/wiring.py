"""From settings to what a run works with: the engine as it was, sinks and sources at the positions of its snapshot."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from connectors import SINKS, Position, Sink, Source, open_source, resolve, split_uri
from connectors.files.dead_letters import SEGMENT_BYTES, DeadLetterFile
from connectors.files.text_layout import TextLayout, text_layout
from stream_engine.accumulators import DEFAULT_ACCUMULATORS, Forgetting, accumulator
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.data.signatures import Signing, signing_of_environment, signing_with
from stream_engine.formats.bounds import Bounds
from stream_engine.formats.options import EventOptions
from stream_engine.guard.stored_states import FORMER, POLICY
from stream_engine.service.settings import BadSettings, Settings, shard
from stream_engine.service.share import agreed_share
from stream_engine.service.triggers import block_bytes
from stream_engine.state import spark_deltas
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store

if TYPE_CHECKING:
    from stream_engine.prediction.online_predictor import Online

VOTES = "worker_votes"
LATER = {VOTES, "judgements"}  # of the defaults those that older states were made without, and that deltas do not hold


def event_options(settings: Settings) -> EventOptions:
    """How the events of the main sources are to be read."""
    columns = {field: tuple(names.split("|")) for field, names in settings.input.columns.items()}
    judged = any(accumulator(name).needs_provenance for name in settings.accumulators)
    bounds = Bounds(settings.input.max_message_bytes, settings.input.max_message_rows)
    events, delimiter = settings.input, text_layout_of(settings).delimiter
    return EventOptions(events.type_, columns, dict(events.where), judged, bounds, delimiter, events.answers_by)


def text_layout_of(settings: Settings) -> TextLayout:
    """How the text of files is laid out, as far as the settings say. Raises `UnusableSource`."""
    events = settings.input
    return text_layout(events.delimiter, events.encoding, events.header, events.skip_rows)


def accumulators_in_use(settings: Settings, snapshot: Snapshot | None) -> tuple[str, ...]:
    """Those of the settings; where they are the defaults, without the votes of workers if that is set, and with counts
    alone for deltas, which hold no others. A state that was made before there were all of the defaults stays as it was
    made."""
    if settings.accumulators != DEFAULT_ACCUMULATORS:
        return settings.accumulators
    of_deltas = any(split_uri(uri)[0] == "deltas" for uri in settings.source)
    wanted = tuple(
        name
        for name in DEFAULT_ACCUMULATORS
        if not (of_deltas and name in LATER) and (settings.input.worker_votes or name != VOTES)
    )
    made = wanted if snapshot is None else tuple(snapshot.settings["accumulators"])
    return made if {*wanted} - LATER <= {*made} <= {*wanted} else wanted


def restored(settings: Settings, snapshot: Snapshot | None, allocation: Allocation = IN_MEMORY) -> Engine:
    """The engine of a snapshot, or an empty one. Raises `BadSettings` when the state was made otherwise."""
    forgetting = Forgetting(*structs.astuple(settings.forgetting))
    fresh = Engine(accumulators_in_use(settings, snapshot), settings.guard, forgetting, allocation)
    if snapshot is None:
        fresh.share = agreed_share(settings, None, {})
        return fresh
    former = snapshot.settings["guard"] in FORMER
    made = {**snapshot.settings, **({"guard": POLICY} if former else {})}
    if made != fresh.settings():
        raise BadSettings(
            f"{settings.state}: made with {snapshot.settings}, asked for {fresh.settings()}; use the same "
            "settings, or another --state"
        )
    engine = Engine.restore(snapshot, allocation)
    engine.share = agreed_share(settings, engine.share, engine.positions)
    return engine


def signing(settings: Settings) -> Signing:
    """With what key files of the state are signed: the settings', else the environment's. Raises `BadKey`."""
    accept = settings.signing.accept_unsigned
    if settings.signing.key is not None:
        return signing_with(settings.signing.key, accept, "signing.key")
    found = signing_of_environment()
    return found._replace(accept_unsigned=accept or found.accept_unsigned)


def letters_folder(settings: Settings, directory: Path) -> Path:
    """The folder of the dead letters; there is one beside a topic too."""
    scheme, rest = split_uri(settings.dead_letters or "")
    return Path(rest) if rest and scheme == "file" else directory / "dead_letters"


def sinks(settings: Settings, directory: Path, stored: Mapping[str, Any]) -> dict[str, Sink]:
    """Where dead letters go, by scheme: the folder (DIR/dead_letters unless another is named), and a topic beside it.

    `stored` holds the positions of the sinks in the snapshot.
    """
    folder = directory / "dead_letters"
    scheme, rest = split_uri(settings.dead_letters) if settings.dead_letters else ("file", str(folder))
    keep = settings.dead_letters_keep_bytes
    opened: dict[str, Sink] = {
        "file": DeadLetterFile(
            rest if scheme == "file" else folder,
            stored.get("file", 0),
            segment_bytes=min(SEGMENT_BYTES, keep // 4) if keep else SEGMENT_BYTES,  # whole segments are removed
        )
    }
    if scheme != "file":
        opened[scheme] = resolve(scheme, SINKS)(rest, stored.get(scheme), options=settings.kafka)
    return opened


def online(settings: Settings, store: Store, snapshot: Snapshot | None) -> "Online | None":
    """The online embedding, going on from the artifact of this snapshot or of one before it."""
    if not settings.online.enabled:
        return None
    from stream_engine.prediction.online_predictor import KIND, Online

    embedding = Online(settings.online.dimensions, settings.refits.seed)
    if snapshot and (artifact := store.latest_artifact(KIND, snapshot.sequence, len(snapshot.objects))):
        embedding.resume(artifact)
    return embedding


def source(settings: Settings, uri: str, positions: Mapping[str, Position]) -> Source:
    """A source at the positions of the state."""
    scheme, _ = split_uri(uri)
    events = settings.input
    block = block_bytes(settings.snapshot.every, events.block_bytes)
    if scheme == "kafka":
        return open_source(
            uri,
            positions,
            options={**settings.kafka, "max_batch_bytes": events.max_message_bytes},
            start=events.start,
            on_offset_loss=events.on_offset_loss,
            shard=shard(events.shard),
            format=events.format,
        )
    if scheme == "file":
        return open_source(
            uri,
            positions,
            format=events.format,
            follow=settings.follow,
            block_bytes=block,
            max_item_bytes=events.max_message_bytes,
            layout=text_layout_of(settings),
            count_copies=events.count_copies,
        )
    if scheme == "deltas":
        _check_deltas(settings, uri)
        return open_source(uri, positions, follow=settings.follow)
    if scheme == "stdin":
        return open_source(
            uri,
            positions,
            format=events.format,
            block_bytes=block,
            max_item_bytes=events.max_message_bytes,
            layout=text_layout_of(settings),
        )
    return open_source(uri, positions, format=events.format)


def ends(settings: Settings) -> bool:
    """Whether the input is known to end: files that are not followed. A pipe may go on for ever, a topic does."""
    return not settings.follow and all(split_uri(uri)[0] in ("file", "deltas") for uri in settings.source)


def _check_deltas(settings: Settings, uri: str) -> None:
    """Raise `BadSettings` for what deltas cannot give: their events were decoded and counted by the job."""
    if missing := [name for name in accumulators_in_use(settings, None) if name not in spark_deltas.HOLD]:
        raise BadSettings(
            f"{uri}: deltas hold no counts for {', '.join(missing)}, expected accumulators among "
            f"{', '.join(spark_deltas.HOLD)}; read the events themselves, or leave it out"
        )
    events = settings.input
    options = {"type": events.type_, "columns": events.columns, "where": events.where, "format": events.format}
    without_effect = [f"input.{key}" for key, value in options.items() if value]
    if without_effect:
        raise BadSettings(
            f"{uri}: {', '.join(without_effect)} without effect on deltas, whose events the job has decoded; say it "
            "to spark-counts"
        )
