"""Events as messages: whatever the encoding and the batch, they decode to what the files decode to."""

import pyarrow as pa
import pytest
from pyarrow import parquet

from connectors import UnusableSource, records_of
from connectors.kafka.client import sniff
from stream_engine.formats.event_messages import EventMessages
from tests.support.event_worlds import CSV, meaning


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_messages_mean_what_the_rows_mean(tmp_path, batch):
    (tmp_path / "a.csv").write_text(CSV)
    parquet.write_table(pa.table({"anchor": [1, 2], "near": ["a", "b"], "far": ["c", None]}), tmp_path / "b.parquet")
    files = [str(tmp_path / "a.csv"), str(tmp_path / "b.parquet")]
    messages = EventMessages(records_of(files), "arrow", batch)
    values = [message.value for message in messages]
    assert {sniff(value) for value in values} == {"arrow"} and messages.skipped == 1
    header, _, rows = CSV.encode().partition(b"\n")
    expected = [*meaning("csv", rows, header + b"\n"), ("1", "a", "c")]
    assert len(expected) == 9
    assert sorted((each for value in values for each in meaning("arrow", value)), key=repr) == sorted(
        expected, key=repr
    )


def test_what_does_not_fit_is_said_in_a_line(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text('{"anchor": 1}\n{"anchor": "one"}\n')
    with pytest.raises(UnusableSource, match="e.jsonl@0.*--encoding json"):
        list(EventMessages(records_of([str(path)]), "arrow"))
    (tmp_path / "a.csv").write_text(CSV)
    with pytest.raises(UnusableSource, match="a.csv: .*--encoding arrow"):
        list(EventMessages(records_of([str(tmp_path / "a.csv")])))
    for encoding, batch in (("xml", 1), ("json", 0)):
        with pytest.raises(UnusableSource, match=f"produce: .*'{encoding}', batch {batch}"):
            EventMessages([], encoding, batch)
