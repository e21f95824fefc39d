"""Small input that stands for something large: refused for a reason of its own in little memory, the same everywhere.

What cannot be unpacked in bounded memory is run in a process with little address space.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from connectors import Record
from connectors.arrow_headers import size_of_stream
from connectors.kafka.client import sniff
from stream_engine.formats import expand_in_pieces
from stream_engine.formats.options import Bounds, EventOptions
from stream_engine.input.decoding import RecordDecoder
from stream_engine.state.engine import Engine
from tests.conftest import ROOT
from tests.support import oversized
from tests.support.facts import states
from tests.support.oversized import EVENT
from tests.support.process import ENVIRONMENT, engine

TOO_LARGE = (
    "dictionary_rows",
    "dictionary_texts",
    "dictionary_lists",
    "runs",
    "views",
    "nulls",
    "long_array",
    "many_lines",
)
VERDICTS = dict.fromkeys(TOO_LARGE, "too_large") | {"deep": "not_parseable", "digits": "wrong_type"}
SMALL = Bounds(max_bytes=4096, max_rows=20)
CHILD = """
import json, resource, sys
from pathlib import Path
from connectors import Record
from connectors.kafka.client import sniff
from stream_engine.formats.options import EventOptions
from stream_engine.input.decoding import RecordDecoder

def blocks(value, ingest=RecordDecoder(EventOptions())):
    return list(ingest.blocks([Record(value, "t/0", 7, 8, unit="message", format=sniff(value))]))

def held():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) << 10

folder, headroom = Path(sys.argv[1]), int(sys.argv[2])
for path in sorted(folder.glob("warm-*")):
    blocks(path.read_bytes())
if headroom:
    resource.setrlimit(resource.RLIMIT_AS, (held() + headroom, -1))
for path in sorted(folder.glob("try-*")):
    try:
        (block,) = blocks(path.read_bytes())
        said = [[each.reason, len(each.value)] for each in block.dead_letters]
    except MemoryError as error:
        said = "MemoryError"
    print(json.dumps([path.name.removeprefix("try-"), said]), flush=True)
"""


def message(value: bytes, offset: int = 0) -> Record:
    return Record(value, "t/0", offset, offset + 1, unit="message", format=sniff(value))


def refusals(records: list[Record], bounds: Bounds = SMALL) -> tuple[list[tuple[int, str]], int]:
    """(offset, reason) of the dead letters of these records, and how many events were accepted."""
    blocks = list(RecordDecoder(EventOptions(bounds=bounds)).blocks(records))
    letters = [(letter.offset, letter.reason) for block in blocks for letter in block.dead_letters]
    assert [record.offset for block in blocks for record in block.records] == [each.offset for each in records]
    return letters, sum(sum(block.decoded.events.values()) for block in blocks)


def tried(folder: Path, headroom: int) -> dict[str, object]:
    """What becomes of the messages in a folder, in a process of its own with little memory left."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, folder, str(headroom)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        cwd=ROOT,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def attacks(tmp_path_factory) -> Path:
    """Every attack as a file, and messages that make the process import what it needs before."""
    folder = tmp_path_factory.mktemp("attacks")
    for name in VERDICTS:
        (folder / f"try-{name}").write_bytes(oversized.MESSAGES[name]())
    (folder / "warm-json").write_bytes(EVENT)
    (folder / "warm-array").write_bytes(b"[" + EVENT + b", 0]")
    (folder / "warm-arrow").write_bytes(oversized.dictionary_rows(10, "zstd"))
    return folder


def test_what_stands_for_gigabytes_is_one_dead_letter_in_little_memory(attacks):
    said = tried(attacks, 400 << 20)
    assert {name: [reason for reason, _ in each] for name, each in said.items()} == {
        name: [reason] for name, reason in VERDICTS.items()
    }
    for name, ((_, kept),) in said.items():
        assert kept <= (attacks / f"try-{name}").stat().st_size


def test_out_of_memory_says_nothing_about_an_event(tmp_path):
    """A message within the bounds that does not fit into what is left: no verdict but a failure of the run."""
    numbers = pa.array(np.zeros(900_000, np.int64))
    names = [pa.DictionaryArray.from_arrays(pa.array(np.zeros(900_000, np.int8)), pa.array([name])) for name in "abc"]
    table = pa.table(dict(zip(("anchor", "near", "far", "rt"), [*names, numbers], strict=True)))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    (tmp_path / "warm-arrow").write_bytes(oversized.dictionary_rows(10, "zstd"))
    (tmp_path / "try-fits").write_bytes(sink.getvalue().to_pybytes())
    assert tried(tmp_path, 2 << 20) == {"fits": "MemoryError"}
    assert tried(tmp_path, 0) == {"fits": []}


RUN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20 if int(sys.argv[1]) else -1, -1))
from stream_engine.__main__ import main
status = main(sys.argv[2:])
print(next(line for line in open("/proc/self/status") if line.startswith("VmPeak")).split()[1])
sys.exit(status)
"""


def run_within(megabytes: int, *arguments: object) -> subprocess.CompletedProcess:
    """The command with so much address space (0: all there is); prints its peak in kB."""
    command = [sys.executable, "-c", RUN, str(megabytes), *map(str, arguments)]
    environment = ENVIRONMENT | {"MALLOC_ARENA_MAX": "1"}  # else every thread reserves 64 MB or more, by chance
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=200)


def summary(state: Path) -> dict:
    told = json.loads(engine("inspect", "--state", state, "--json").stdout)["summary"]
    return {key: told[key] for key in ("records", "events", "comparisons", "rejected", "positions")}


def test_a_run_out_of_memory_ends_with_one_line_and_the_next_one_goes_on(tmp_path):
    few, many = tmp_path / "few.jsonl", tmp_path / "many.jsonl"
    few.write_bytes(EVENT + b"\n0\n" + oversized.ranking(400) + b"\n")  # loads every kernel that the other loads
    many.write_bytes(EVENT + b"\n0\n" + oversized.ranking(1500) + b"\n")
    options = ("--no-refits", "--guard", "off", "--max-reject-ratio", "1", "--state")
    engine("run", few, *options, tmp_path / "compiled")  # that may take memory of its own
    base = run_within(0, "run", few, *options, tmp_path / "base")
    assert base.returncode == 0, base.stderr
    least = int(base.stdout) >> 10
    for room in (24, 16, 8, 0):
        state = tmp_path / f"within {room}"
        cut = run_within(least + room, "run", many, *options, state)
        if cut.returncode:
            break
    assert cut.returncode == 1, cut.stderr
    (line,) = [each for each in cut.stderr.splitlines() if each.startswith("stream-engine: ")]
    assert "memory" in line and "Traceback" not in cut.stderr
    engine("run", many, *options, state)
    engine("run", many, *options, tmp_path / "whole")
    assert summary(state) == summary(tmp_path / "whole")
    assert summary(state)["rejected"] == {"not_parseable": 1}


def test_the_stream_goes_on_around_a_message_that_is_too_large():
    bad = {
        "bytes": b'{"anchor": "' + b"x" * 5000 + b'"}',
        "lines": b"0\n" * 21,
        "array": b"[" + b"0," * 40 + b"0]",
        "arrays": (b"[" + b"0," * 15 + b"0]\n") * 2,
        "rows": oversized.dictionary_rows(21),
    }
    for what, value in bad.items():
        records = [message(EVENT, 0), message(value, 1), message(EVENT, 2), message(b"[" + EVENT + b"]", 3)]
        assert refusals(records) == ([(1, "too_large")], 3), what
    assert refusals([message(b"0\n" * 20)]) == ([(0, "not_parseable")] * 20, 0)
    assert refusals([message(b"[" + b"0," * 19 + b"0]")]) == ([(0, "not_parseable")] * 20, 0)
    assert refusals([message(oversized.dictionary_rows(20))]) == ([], 20)


def test_what_a_dictionary_stands_for_is_counted_in_every_row():
    """Twenty rows of 200 bytes are within 4096 bytes, and of 300 bytes are not, although the text is there once."""
    assert refusals([message(oversized.dictionary_texts(10, 300))]) == ([], 10)
    assert refusals([message(oversized.dictionary_texts(20, 300))]) == ([(0, "too_large")], 0)
    assert refusals([message(oversized.dictionary_lists(10, 30))]) == ([(0, "wrong_type")] * 10, 0)
    assert refusals([message(oversized.dictionary_lists(19, 100))]) == ([(0, "too_large")], 0)
    assert refusals([message(oversized.views(5, 50))]) == ([(0, "not_distinct")] * 5, 0)
    assert refusals([message(oversized.views(19, 50))]) == ([(0, "too_large")], 0)


def test_messages_that_are_each_within_the_bounds_are_not_unpacked_all_at_once():
    records = [message(oversized.dictionary_rows(20), offset) for offset in range(50)]
    blocks = list(RecordDecoder(EventOptions(bounds=SMALL)).blocks(records))
    assert sum(len(block.records) for block in blocks) == 50 and len(blocks) > 5
    assert sum(block.decoded.events["triplet"] for block in blocks) == 1000


def test_a_table_of_a_file_is_read_in_parts_and_a_row_that_is_too_large_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 30 + [1] + [0] * 30), pa.array(["s" * 200, "l" * 9000]))
    table = pa.table({"anchor": ["a"] * 61, "near": ["b"] * 61, "far": ["c"] * 61, "remark": long})
    pa.parquet.write_table(table, path)
    config = tmp_path / "c.toml"
    config.write_text("[input]\nmax_message_bytes = 4096\n")
    engine("run", path, "--state", tmp_path / "s", "--config", config, "--no-refits")
    assert summary(tmp_path / "s") == {
        "records": 61,
        "events": 60,
        "comparisons": 60,
        "rejected": {"too_large": 1},
        "positions": {str(path): 61},
    }
    (letter,) = (tmp_path / "s" / "dead_letters" / "000001.jsonl").read_text().splitlines()
    assert json.loads(letter)["offset"] == 30 and len(letter) < 1000


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_compressed_stream_says_how_much_it_unpacks_to(compression):
    """One row of a long text: its bytes count, and not its entries."""
    sink = pa.BufferOutputStream()
    table = pa.table({"anchor": ["a" * 100_000]})
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    value = sink.getvalue().to_pybytes()
    assert len(value) < 2_000 and 100_000 <= size_of_stream(value).size < 100_100


def test_an_arrow_file_that_unpacks_to_gigabytes_stops_the_run(tmp_path):
    path = tmp_path / "x.arrow"
    oversized.write_arrow(path, 200_000_000)
    done = engine("run", path, "--state", tmp_path / "s", "--no-refits", status=1)
    assert states(done.stderr, "batch 1 … 4,800,000,000 bytes … 1,073,741,824")


def test_a_line_that_is_too_large_is_passed_over_in_every_compression(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("[input]\nmax_message_bytes = 4194304\n")
    array = b"[" + b"0," * 1_000_000 + b"0]"
    with gzip.open(tmp_path / "x.jsonl.gz", "wb", 1) as file:
        file.write(EVENT + b"\n" + b"x" * (20 << 20) + b"\n" + array + b"\n" + EVENT + b"\n")
    engine("run", tmp_path / "x.jsonl.gz", "--state", tmp_path / "s", "--config", config, "--no-refits")
    told = summary(tmp_path / "s")
    assert (told["events"], told["rejected"]) == (2, {"too_large": 2})
    oversized.write_zstd_window(tmp_path / "w.jsonl.zst")
    done = engine("run", tmp_path / "w.jsonl.zst", "--state", tmp_path / "w", "--no-refits", status=1)
    assert "Frame requires too much memory" in done.stderr
    (tmp_path / "h.csv").write_bytes(b"anchor,near,far," + b"x," * (1 << 20) + b"\na,b,c\n")
    done = engine("run", tmp_path / "h.csv", "--state", tmp_path / "h", "--no-refits", status=1)
    assert "header" in done.stderr


def test_a_block_of_tiny_lines_is_cut_by_their_number(tmp_path):
    from connectors import open_source
    from connectors.files.line_blocks import MAX_BLOCK_LINES

    path = tmp_path / "x.jsonl"
    path.write_bytes(b"0\n" * (2 * MAX_BLOCK_LINES + 5))
    source, records = open_source(str(path), {}), []
    while not source.finished():
        records += source.poll(1.0)
    assert [record.value.count(b"\n") for record in records] == [MAX_BLOCK_LINES, MAX_BLOCK_LINES, 5]
    assert b"".join(record.value for record in records) == path.read_bytes()


def events_of(rng: np.random.Generator) -> list[dict]:
    """Rankings, picks, triplets, quadruplets and bad events, with workers and weights."""
    events: list[dict] = []
    for number in range(60):
        names = [f"o{i}" for i in rng.permutation(40)[: rng.integers(4, 30)].tolist()]
        shape = number % 5
        if shape == 0:
            event = {"type": "ranking", "anchor": names[0], "ranked": names[1:]}
        elif shape == 1:
            chosen = rng.permutation(names[1:])[: rng.integers(1, len(names) - 1)].tolist()
            event = {"type": "pick", "anchor": names[0], "shown": names[1:], "chosen": chosen}
        elif shape == 2:
            event = {"type": "quadruplet", "near": names[:2], "far": names[2:4]}
        elif shape == 3:
            event = {"type": "ranking", "anchor": names[1], "ranked": names}
        else:
            event = {"anchor": names[0], "near": names[1], "far": names[2]}
        events.append({**event, "worker": f"w{number % 3}", "weight": 1 + number % 2, "time": number})
    return events


@pytest.mark.parametrize("messages", [False, True])
@pytest.mark.parametrize("at_once", [1, 50, 300])
def test_comparisons_in_pieces_are_the_same_as_at_once(monkeypatch, at_once, messages):
    """Of a block of lines, and of messages that are decoded together."""
    values = [json.dumps(event).encode() for event in events_of(np.random.default_rng(at_once))]
    values.insert(7, b"{bad")
    given = [message(each, n) for n, each in enumerate(values)] if messages else [message(b"\n".join(values))]
    counts = ("adds3", "adds4", "triplet_counts", "worker_votes", "adds3_weighted", "window")

    def learned() -> tuple[Engine, int]:
        state, batches = Engine(counts), 0
        for block in RecordDecoder(EventOptions(provenance=True)).blocks(given):
            for _ in state.learn_in_pieces(block.decoded, block.positions(), len(block.records)):
                batches += 1
        return state, batches

    whole, one = learned()
    monkeypatch.setattr(expand_in_pieces, "COMPARISONS_AT_ONCE", at_once)
    pieces, several = learned()
    assert one == 1
    assert several > 3
    assert whole.counters["rejected"]
    a, b = whole.snapshot(), pieces.snapshot()
    assert (a.counters, a.objects, a.positions) == (b.counters, b.objects, b.positions)
    assert a.arrays.keys() == b.arrays.keys()
    for name in a.arrays:
        np.testing.assert_allclose(a.arrays[name], b.arrays[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("error", [pa.ArrowInvalid("malloc of size 8 failed"), OSError(12, "x"), pa.ArrowMemoryError()])
def test_whatever_says_that_memory_is_over_is_a_failure_of_the_run(monkeypatch, error):
    def no_room(*given):
        raise error

    monkeypatch.setattr(pa.ipc, "open_stream", no_room)
    for take in (lambda ingest, record: ingest.read(record), lambda ingest, record: list(ingest.blocks([record]))):
        with pytest.raises(MemoryError):
            take(RecordDecoder(EventOptions()), message(oversized.dictionary_rows(3)))
