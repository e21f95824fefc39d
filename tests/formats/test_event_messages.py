"""Events as messages: whatever the encoding and the batch, they decode to what the files decode to."""

import json

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


@pytest.mark.parametrize("shown", ['"shown": ["2024-05-02", "2024-05-03"]', '"shown": "2024-05-02|2024-05-03"'])
def test_names_that_look_like_dates_stay_names(tmp_path, shown):
    """Arrow takes text for times where all of a column looks like it."""
    line = f'{{"anchor": "2024-05-01", {shown}, "chosen": "2024-05-02", "worker": "2024-01-01 10:00", "time": 5}}'
    (tmp_path / "e.jsonl").write_text(f"{line}\n")
    (message,) = EventMessages(records_of([str(tmp_path / "e.jsonl")]), "arrow")
    (row,) = pa.ipc.open_stream(message.value).read_all().to_pylist()
    assert row == json.loads(line)


def test_times_are_columns_of_times(tmp_path):
    (tmp_path / "e.jsonl").write_text('{"anchor": "a", "near": "b", "far": "c", "time": "2024-05-01T12:00:00Z"}\n')
    (message,) = EventMessages(records_of([str(tmp_path / "e.jsonl")]), "arrow")
    assert pa.types.is_timestamp(pa.ipc.open_stream(message.value).schema.field("time").type)
