"""Deltas: what the job's tasks hand over, and that the engine takes it in as if it had read the events itself.

Spark is not needed here: `written` sums the job's own shares. The oracle is one process over the same events.
"""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from connectors import Position, Record, SourceFailed, UnusableSource, open_source, spark_deltas
from stream_engine import exports
from stream_engine.commands.by_name import by_name
from stream_engine.exports.summary import summary_of
from stream_engine.formats.options import EventOptions, UnusableOptions
from stream_engine.input.decoding import RecordDecoder
from stream_engine.order.partial_order import PartialOrder
from stream_engine.spark.driver import OutInUse, owned
from stream_engine.spark.job_arguments import job_of
from stream_engine.state.engine import Engine
from stream_engine.state.spark_deltas import COUNTS
from tests.support import spark_written
from tests.support.exported_bytes import encode
from tests.support.facts import states, stating
from tests.support.process import engine, jsonl, one_line, summary
from tests.support.spark_written import messages

QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
EXACT = ("adds3", "adds4", "triplet_counts", "k1", "k2")


def one_process(records: list[Record], accumulators=COUNTS, guard: str | None = None) -> tuple[Engine, list]:
    made, letters = Engine(accumulators, guard), []
    for block in RecordDecoder(EventOptions()).blocks(records):
        made.learn(block.decoded, block.positions(), block.counts().total())
        letters += block.dead_letters
    return made, letters


def through_deltas(folder: Path, batches, accumulators=COUNTS, guard: str | None = None) -> tuple[Engine, list]:
    made, letters = Engine(accumulators, guard), []
    source = open_source(spark_written.source_of(spark_written.deltas(folder, batches)), {})
    ingest = RecordDecoder(EventOptions())
    while not source.finished():
        for block in ingest.blocks(source.poll(0)):
            made.learn(block.decoded, block.positions(), block.counts().total())
            letters += block.dead_letters
    return made, letters


def files(made: Engine, what=EXACT) -> dict[str, bytes]:
    published = by_name(exports.Published(made.snapshot(), {}))
    out = {"names": "\n".join(published.snapshot.objects).encode()}
    for name in what:
        for stem, content in exports.contents(name, published).items():
            out |= encode(stem, content, "npz", published.snapshot.objects)
    return out


@QUICK
@given(seed=st.integers(0, 2**32 - 1), sizes=st.lists(st.integers(0, 12), min_size=1, max_size=4))
def test_deltas_add_up_to_what_one_process_counts(tmp_path_factory, seed, sizes):
    """Whatever the batches and the tasks: equal exports by name, equal counters, equal dead letters."""
    rng = np.random.default_rng(seed)
    records = messages(rng, sum(sizes))
    cuts = np.cumsum([0, *sizes])
    batches = [[[r for r in records[a:b] if r.partition == f"t/{p}"] for p in (0, 1)] for a, b in pairwise(cuts)]
    theirs, buried = through_deltas(tmp_path_factory.mktemp("deltas"), batches)
    mine, letters = one_process(records)
    assert files(theirs) == files(mine)
    left, right = (summary_of(each.snapshot()) for each in (theirs, mine))
    assert {k: v for k, v in left.items() if k not in ("positions", "labelled_objects")} == {
        k: v for k, v in right.items() if k not in ("positions", "labelled_objects")
    }
    assert sorted(buried, key=repr) == sorted(letters, key=repr)
    quadruplets = [each.accumulators["quadruplet_counts"].state()["n_lo"].sum() for each in (theirs, mine)]
    assert (
        quadruplets[0] + theirs.accumulators["quadruplet_counts"].state()["n_hi"].sum()
        == quadruplets[1] + mine.accumulators["quadruplet_counts"].state()["n_hi"].sum()
        == mine.counters["quadruplets"]
    )


def test_the_last_label_of_a_partition_holds(tmp_path):
    """Inside a partition in its order, whatever the tasks; a label taken back stays away over batches."""

    def say(offset, name, label):
        event = {"type": "label", "object": name, "label": label}
        return Record(json.dumps(event).encode(), "t/0", offset, offset + 1, unit="message")

    batches = [[[say(0, "a", "x"), say(1, "b", "x"), say(2, "a", "y")]], [[say(3, "b", None), say(4, "c", "z")]]]
    made, _ = through_deltas(tmp_path, batches)
    assert made.labels == {"a": "y", "c": "z"} and made.counters["labels"] == 5


def test_the_guard_is_offered_net_votes_in_the_order_of_names(tmp_path):
    """One comparison a key and batch, as its net vote says: triplets by (lo, hi, anchor), then quadruplets. The oracle
    counts by name."""
    rng = np.random.default_rng(5)
    records = messages(rng, 60, faults=False)
    made, _ = through_deltas(tmp_path, [[records[:30]], [records[30:]]], guard=True)
    expected = PartialOrder()
    verdicts = np.zeros(4, int)
    for part in (records[:30], records[30:]):
        votes: dict[tuple, int] = {}
        seen, _ = one_process(part)
        for record in part:
            block = next(RecordDecoder(EventOptions()).blocks([record]))
            names = block.decoded.names
            for a, near, far in block.decoded.triplets.tolist():
                lo, hi = sorted((names[near], names[far]))
                key = (0, lo, hi, names[a])
                votes[key] = votes.get(key, 0) + (1 if names[near] == lo else -1)
            for i, j, k, l in block.decoded.quadruplets.tolist():
                near, far = tuple(sorted((names[i], names[j]))), tuple(sorted((names[k], names[l])))
                key = (1, *min(near, far), *max(near, far))
                votes[key] = votes.get(key, 0) + (1 if near < far else -1)
        rows = []
        for key in sorted(votes):
            pairs = ((key[3], key[1]), (key[3], key[2])) if key[0] == 0 else (key[1:3], key[3:5])
            near, far = pairs if votes[key] > 0 else pairs[::-1]
            if votes[key]:
                rows.append(made.objects.find((*near, *far)).tolist())
        verdicts += expected.offer_rows(np.array(rows, np.int32).reshape(-1, 4))
    assert list(made.counters["guard"].values()) == verdicts.tolist()
    left, right = made.guard.state(), expected.state()
    assert list(left) == list(right) and all(np.array_equal(left[key], right[key]) for key in left)


def test_a_run_resumes_after_any_batch_and_its_position_is_in_the_snapshot(tmp_path):
    rng = np.random.default_rng(1)
    records = messages(rng, 40)
    batches = [[records[a : a + 10]] for a in range(0, 40, 10)]
    whole = spark_written.deltas(tmp_path / "whole", batches)
    engine("run", spark_written.source_of(whole), "--state", tmp_path / "a", "--no-refits", "--max-reject-ratio", "1")
    out = tmp_path / "grows"
    for n in range(1, 5):
        for left in (out / "delta").glob("batch=*") if out.exists() else []:
            assert int(left.name[6:]) < n
        whole_batch = whole / "delta" / f"batch={n - 1}"
        spark_written.claimed(out)
        whole_batch.rename(out / "delta" / whole_batch.name)
        engine("run", spark_written.source_of(out), "--state", tmp_path / "b", "--no-refits", "--max-reject-ratio", "1")
        assert summary(tmp_path / "b")["positions"] == {spark_written.source_of(out): n}
    left, right = summary(tmp_path / "a"), summary(tmp_path / "b")
    drop = ("positions", "snapshot")
    assert {k: v for k, v in left.items() if k not in drop} == {k: v for k, v in right.items() if k not in drop}
    for state in "ab":
        engine("export", "--state", tmp_path / state, "--out", tmp_path / f"x{state}", *EXACT)
    assert all(one.read_bytes() == (tmp_path / "xb" / one.name).read_bytes() for one in (tmp_path / "xa").iterdir())
    dead = [sorted((tmp_path / state / "dead_letters").glob("*"))[0].read_text() for state in "ab"]
    assert dead[0] == dead[1] and dead[0].count("\n") == sum(left["rejected"].values())


def test_what_is_wrong_with_deltas_is_said_in_one_line(tmp_path, monkeypatch):
    some = spark_written.deltas(
        tmp_path / "d", [[messages(np.random.default_rng(n), 5, faults=False)] for n in range(3)]
    )
    with pytest.raises(UnusableSource, match="deltas"):
        open_source(f"deltas://{tmp_path}", {})
    partition = spark_written.source_of(some)
    source = open_source(partition, {partition: Position(1, 12345)})
    with pytest.raises(SourceFailed, match="job.*batch=0"):
        source.poll(0)
    (some / "delta" / "batch=1").rename(tmp_path / "away")
    source = open_source(partition, {})
    assert len(source.poll(0)) == 1 and source.lag() == {partition: 1}
    with pytest.raises(SourceFailed, match=r"batch=1 is missing.*batch=2"):
        source.poll(0)
    (tmp_path / "away").rename(some / "delta" / "batch=1")
    monkeypatch.setattr(spark_deltas, "_LOOK_SECONDS", 0.0)
    assert source.lag() == {partition: 2}
    next((some / "delta" / "batch=1").glob("*/*.parquet")).write_bytes(b"torn")
    with pytest.raises(SourceFailed, match="batch=1"):
        source.poll(0)
    line = one_line(engine("run", partition, "--state", tmp_path / "s", "--no-refits", status=1).stderr)
    assert "batch=1" in line and summary(tmp_path / "s")["positions"] == {partition: 1}
    job = json.loads((some / "delta" / "job.json").read_text())
    (some / "delta" / "job.json").write_text(json.dumps(job | {"format": 2}))
    assert "2" in one_line(engine("run", partition, "--state", tmp_path / "s2", status=1).stderr)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two batches that hold something in every part, faults included."""
    return spark_written.deltas(
        tmp_path_factory.mktemp("two") / "d", [[messages(np.random.default_rng(n), 40)] for n in range(2)]
    )


def first(folder: Path, part: str) -> Path:
    """A file of a part that has rows."""
    return next(file for file in sorted(folder.glob(f"part={part}/*")) if parquet.read_metadata(file).num_rows)


def lost(part):
    return lambda folder: first(folder, part).unlink()


def cut(part):
    return lambda folder: parquet.write_table(
        parquet.read_table(first(folder, part), partitioning=None).slice(1), first(folder, part)
    )


def twice(part):
    return lambda folder: shutil.copy(first(folder, part), folder / f"part={part}" / "copy.parquet")


def changed(part, column, change):
    def how(folder):
        for file in folder.glob(f"part={part}/*"):
            table = parquet.read_table(file, partitioning=None)
            parquet.write_table(table.set_column(table.schema.get_field_index(column), column, change(table)), file)

    return how


PARTS = {
    "triplet_counts": "triplets: got",
    "quadruplet_counts": "quadruplets: got",
    "adds3": "adds3",
    "adds4": "adds4",
    "rejected": "rejected: got",
}


@pytest.mark.parametrize(
    "how, expected",
    [
        *(
            pytest.param(lost(part), said, id=f"{part} lost")
            for part, said in (PARTS | {"counters": "by the counters"}).items()
        ),
        *(pytest.param(cut(part), said, id=f"{part} cut") for part, said in PARTS.items()),
        *(
            pytest.param(twice(part), said, id=f"{part} twice")
            for part, said in (PARTS | {"triplet_counts": "a key twice"}).items()
        ),
        pytest.param(changed("adds3", "m", lambda t: pc.add(t["m"], 1)), "adds3", id="another sum"),
        pytest.param(
            changed("quadruplet_counts", "n", lambda t: pc.subtract(t["n"], 1)),
            "column n: got -1",
            id="a count below 0",
        ),
        pytest.param(lambda folder: [shutil.rmtree(folder), folder.mkdir()], "batch=1", id="an empty folder"),
    ],
)
def test_a_delta_that_is_not_whole_is_not_counted(how, expected, two, tmp_path):
    """Rows that got lost, came twice or changed on the way: the batch is refused, what was before it stays."""
    some = shutil.copytree(two, tmp_path / "d")
    how(some / "delta" / "batch=1")
    source, ingest = open_source(spark_written.source_of(some), {}), RecordDecoder(EventOptions())
    (block,) = ingest.blocks(source.poll(0))
    with pytest.raises(SourceFailed, match=stating(expected)) as error:
        list(ingest.blocks(source.poll(0)))
    said = str(error.value)
    assert "batch=1" in said
    assert "restore it" in said
    assert "\n" not in said


def test_accumulators_that_need_each_event_are_refused(tmp_path, monkeypatch):
    """Deltas hold counts; who said something, when and with what weight is not in them."""
    some = spark_written.deltas(tmp_path / "d", [[messages(np.random.default_rng(0), 5, faults=False)]])
    monkeypatch.setattr("stream_engine.state.spark_deltas.HOLD", ("adds3",))
    line = one_line(engine("run", spark_written.source_of(some), "--state", tmp_path / "s", status=2).stderr)
    assert states(line, "adds4, triplet_counts … adds3")


def test_a_folder_of_deltas_belongs_to_one_query(tmp_path):
    """A removed checkpoint makes a query that counts from batch 0 again: its batches must not pass for the old ones."""
    deltas = spark_written.claimed(tmp_path, "first")
    deltas.claim("first")
    with pytest.raises(RuntimeError, match="first.*second.*--out"):
        deltas.claim("second")
    (tmp_path / "delta" / "batch=0").mkdir()
    (tmp_path / "delta" / "job.json").unlink()
    with pytest.raises(RuntimeError, match="job.json: is gone"):
        deltas.claim("second")


def test_one_driver_at_a_time_writes_deltas(tmp_path):
    """The second one ends before it asks for a cluster; the lock goes with its process or number, nothing is left."""
    first = owned(tmp_path / "o")
    with pytest.raises(OutInUse, match="another job"):
        owned(tmp_path / "o")
    first.release()
    owned(tmp_path / "o").release()
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        owned(tmp_path / "file" / "o")


def test_the_submit_line_is_checked_and_printed(tmp_path):
    events = jsonl(tmp_path / "e.jsonl", [])
    said = engine("spark-counts", events, "--out", tmp_path / "o", "--per-batch", "3", "--print-only").stdout
    assert said.startswith("spark-submit --master 'local[2]' --driver-memory 1g ") and said.rstrip().endswith(
        "--per-batch 3"
    )
    said = engine("spark-counts", "kafka://h:9092/a", "--out", "o", "--print-only", "--master", "spark://h:7077").stdout
    assert "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:" in said and "--master spark://h:7077" in said
    assert (
        "--packages"
        not in engine("spark-counts", "kafka://h:9/a", "--out", "o", "--print-only", "--jars", "a.jar").stdout
    )
    for folder in (f"{tmp_path}/", "."):
        engine("spark-counts", folder, "--out", tmp_path / "o", "--print-only", cwd=tmp_path)
    hidden = jsonl(tmp_path / "_e.jsonl", [])
    for wrong, expected in (
        (["nope.jsonl", "--out", "o"], "nope.jsonl"),
        ([events], "--out"),
        ([events, f"{tmp_path}/e*", "--out", "o"], "e.jsonl"),
        ([hidden, "--out", "o"], "_"),
        ([events, "--out", events], "folder"),
        ([events, "--out", "o", "--per-batch", "0"], "--per-batch … 0 … 0"),
        ([events, "--out", "o", "--every", "5"], "--follow"),
        ([events, "--out", "o", "--columns", "nonsense=x"], "--columns maps 'nonsense'"),
        ([events, "kafka://h:9092/t", "--out", "o"], "topics"),
    ):
        assert states(one_line(engine("spark-counts", *wrong, "--print-only", status=2).stderr), expected)


def test_a_job_is_what_its_command_line_says(tmp_path):
    events = str(jsonl(tmp_path / "e.jsonl", []))
    words = [events, "--out", str(tmp_path / "o"), "--where", "kind=x,y", "--option", "pathGlobFilter=*.jsonl"]
    job = job_of([*words, "--follow", "--every", "2.5", "--columns", "shown=left|right"])
    assert job.events.where == {"kind": "x,y"} and job.events.columns == {"shown": ("left", "right")}
    assert job.options == {"pathGlobFilter": "*.jsonl"}
    assert job.follow
    assert job.every == 2.5
    with pytest.raises(UnusableOptions, match="^--where: got 'kind'"):
        job_of([events, "--out", str(tmp_path / "o"), "--where", "kind"])


def test_versions_of_spark_agree():
    """The extra, the lock, the submit line and the jars of the tests speak of one Spark."""
    from stream_engine.commands.spark_counts import VERSION
    from tests.conftest import ROOT

    assert f'"pyspark=={VERSION}"' in (ROOT / "pyproject.toml").read_text()
    assert f"pyspark=={VERSION} " in (ROOT / "requirements.lock").read_text()
    assert f"<version>{VERSION}</version>" in (ROOT / "tests" / "spark" / "pom.xml").read_text()


def test_options_that_were_the_job_s_are_refused(tmp_path):
    some = spark_written.deltas(tmp_path / "d", [[messages(np.random.default_rng(0), 5, faults=False)]])
    given = "--type", "triplet", "--columns", "anchor=probe"
    line = one_line(engine("run", spark_written.source_of(some), "--state", tmp_path / "s", *given, status=2).stderr)
    assert "input.type, input.columns" in line and "spark-counts" in line


def test_events_that_are_left_out_and_unused_columns_are_counted(tmp_path):
    said = [{"anchor": "a", "near": "b", "far": "c", "kept": "yes", "colour": 1}, {"anchor": "a", "kept": "no"}]
    records = [Record(json.dumps(event).encode(), "t/0", at, at + 1, unit="message") for at, event in enumerate(said)]
    folder, made = (
        spark_written.deltas(tmp_path, [[records]], EventOptions(where={"kept": "yes"})),
        Engine(COUNTS, None),
    )
    source = open_source(spark_written.source_of(folder), {})
    for block in RecordDecoder(EventOptions()).blocks(source.poll(0)):
        made.learn(block.decoded, block.positions(), block.counts().total())
    found = summary_of(made.snapshot())
    assert (found["events"], found["filtered"], found["empty"], found["unknown_fields"]) == (1, 1, 0, ["colour"])
