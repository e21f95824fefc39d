"""What a source lost with consent, as the state keeps it: counted by partition, and in the history with its place."""

from connectors import Lost
from stream_engine.state.engine import Engine


def take_loss(engine: Engine, loss: Lost) -> None:
    """Count what was lost, and note where; the place alone where nobody knows how much it was."""
    if loss.records:
        engine.lost[loss.partition] = engine.lost.get(loss.partition, 0) + loss.records
    engine.note(
        "offsets lost",
        partition=loss.partition,
        at=loss.offset,
        to=loss.going_on_at,
        records=loss.records,
        why=loss.why,
    )
