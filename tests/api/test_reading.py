"""`read`: the same answers give the same state, whatever holds them, and what cannot be read is said with its row."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stream_engine as se
from stream_engine.__main__ import main
from stream_engine.api import feeding, frames, study_engine
from stream_engine.api.frames import BadFrame
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import encode
from tests.support.facts import stating


def bytes_of(study) -> bytes:
    """The state that `run` would publish."""
    return b"".join(bytes(chunk) for chunk in encode(study.snapshot)[0])


def triplets(rows=300, objects=9, seed=0):
    rng = np.random.default_rng(seed)
    names = ["lemon", "lime", "Vélo", "16", "a b", "x|y", "ü", "7", "bread"][:objects]
    picks = [rng.choice(objects, 3, replace=False) for _ in range(rows)]
    made = {field: [names[row[at]] for row in picks] for at, field in enumerate(("anchor", "near", "far"))}
    worker = [None if rng.random() < 0.2 else f"w{rng.integers(4)}" for _ in range(rows)]
    return made | {
        "worker": worker,
        "time": (1.5e9 + np.arange(rows) / 4).tolist(),
        "weight": rng.integers(1, 4, rows).astype(float).tolist(),
        "rt": rng.random(rows).tolist(),
    }


@pytest.mark.parametrize(
    "data", [[], pd.DataFrame(triplets(3)).iloc[:0], triplets(3)], ids=["list", "frame", "filtered"]
)
def test_data_without_an_answer_are_told(data):
    with pytest.warns(UserWarning, match="0 answers") as told:
        study = se.read(data, where={"worker": "nobody"} if isinstance(data, dict) else None)
    assert len(told) == 1 and ("3 rows excluded" in str(told[0].message)) == isinstance(data, dict)
    with pytest.raises(ValueError) as error:
        study.map()
    assert "0 comparisons" in str(error.value) and "accumulators" not in str(error.value)


def rows_of(columns):
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


HOLDERS = {
    "pandas": pd.DataFrame,
    "pandas, another index": lambda c: pd.DataFrame(c).set_index(np.arange(len(c["anchor"])) % 3),
    "pandas of Arrow": lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, nullable": lambda c: pd.DataFrame(c).convert_dtypes(),
    "pandas, categories": lambda c: pd.DataFrame(c).astype({"anchor": "category", "worker": "category"}),
    "polars": pl.DataFrame,
    "polars, categories": lambda c: pl.DataFrame(c).with_columns(pl.col("near", "worker").cast(pl.Categorical)),
    "polars, two chunks": lambda c: pl.concat([pl.DataFrame(c)[:100], pl.DataFrame(c)[100:]], rechunk=False),
    "Arrow": pa.table,
    "Arrow, small batches": lambda c: pa.Table.from_batches(pa.table(c).to_batches(max_chunksize=7)),
    "Arrow, a stream": lambda c: pa.table(c).to_reader(max_chunksize=64),
    "Arrow, one batch": lambda c: pa.RecordBatch.from_pydict(c),
    "Arrow, dictionaries": lambda c: pa.table(c | {"far": pa.array(c["far"]).dictionary_encode()}),
    "a mapping": dict,
    "a mapping of arrays": lambda c: c | {"far": np.array(c["far"], object), "rt": np.array(c["rt"])},
    "dicts": rows_of,
    "dicts of NumPy's values": lambda c: [row | {"weight": np.float64(row["weight"])} for row in rows_of(c)],
    "pandas' records": lambda c: pd.DataFrame(c).to_dict("records"),
}


@pytest.fixture(scope="module")
def one_by_one() -> bytes:
    """The state after one event at a time."""
    engine = Engine(("adds3", "adds4", "triplet_counts", "judgements", "worker_votes", "response_patterns"))
    decode = decoder("json", EventOptions(provenance=True, columns={"seconds": ("rt",)}))
    for row in rows_of(triplets()):
        engine.learn(decode(json.dumps(row).encode()))
    return b"".join(bytes(chunk) for chunk in encode(engine.snapshot())[0])


@pytest.mark.parametrize("holder", HOLDERS)
def test_equal_answers_give_equal_bytes(holder, one_by_one):
    study = se.read(HOLDERS[holder](triplets()))
    assert bytes_of(study) == one_by_one
    assert study.snapshot.counters["records"] == len(study) == 300


@pytest.mark.parametrize("names", [[3, 1, 2**40], [3.0, 1.0, 16.0], ["3", "1", "x"], [3, "1", 16.0]])
def test_names_are_text_whatever_they_are_held_as(names):
    """Whole numbers, floats that pandas makes of them where a cell is missing, and mixtures are one and the same."""
    text = [str(int(name)) if not isinstance(name, str) else name for name in names]
    wanted = bytes_of(se.read(pa.table({"anchor": [text[0]] * 2, "near": text[1:], "far": text[:0:-1]})))
    columns = {"anchor": [names[0]] * 2, "near": names[1:], "far": names[:0:-1]}
    frames = [pd.DataFrame(columns), pd.DataFrame(columns, dtype=object), columns, rows_of(columns)]
    frames += [] if {str, int} <= set(map(type, names)) else [pl.DataFrame(columns)]
    for frame in frames:
        assert bytes_of(se.read(frame)) == wanted, type(frame)


def test_events_of_every_type():
    """Lists, columns that gather into lists, answers by position and votes, against their JSON."""
    rng = np.random.default_rng(1)
    shown = [rng.choice(list("abcdefg"), 4, replace=False).tolist() for _ in range(200)]
    worlds = [
        ("odd_one_out", {"objects": [s[:3] for s in shown], "odd": [s[0] for s in shown]}),
        ("most_central", {"objects": [s[:3] for s in shown], "central": [s[1] for s in shown]}),
        ("pick", {"anchor": [s[0] for s in shown], "shown": [s[1:] for s in shown], "chosen": [s[2:3] for s in shown]}),
        ("ranking", {"anchor": [s[0] for s in shown], "ranked": [s[1:] for s in shown]}),
        ("quadruplet", {"near": [s[:2] for s in shown], "far": [s[2:] for s in shown]}),
        ("triplet", dict(zip(("anchor", "near", "far"), zip(*shown))) | {"n_near": [2] * 200, "n_far": [1] * 200}),
    ]
    for kind, columns in worlds:
        columns = {name: list(values) for name, values in columns.items()}
        engine = Engine()
        decode = decoder("json", EventOptions(kind, provenance=True))
        for row in rows_of(columns):
            engine.learn(decode(json.dumps(row).encode()))
        wanted = b"".join(bytes(chunk) for chunk in encode(engine.snapshot())[0])
        for holder in (pd.DataFrame, pl.DataFrame, pa.table, rows_of):
            assert bytes_of(se.read(holder(columns), type=kind)) == wanted, (kind, holder)
    one, two, three = (list(each) for each in zip(*[s[:3] for s in shown]))
    apart = {"l": one, "m": two, "r": three, "odd": [1] * 200}
    gathered = {"objects": ["l", "m", "r"]}
    wanted = bytes_of(se.read(pa.table(worlds[0][1]), type="odd_one_out"))
    for frame in (pd.DataFrame(apart), pl.DataFrame(apart), pa.table(apart)):
        assert bytes_of(se.read(frame, "odd_one_out", gathered, answers_by="position")) == wanted


def test_rows_without_names_of_columns():
    rows = [("a", "b", "c"), ("b", "a", "c")]
    wanted = bytes_of(se.read(pd.DataFrame(rows, columns=["anchor", "near", "far"])))
    for given in (rows, [list(row) for row in rows], [se.Triplet(*row) for row in rows], np.array(rows)):
        assert bytes_of(se.read(given)) == wanted
    assert bytes_of(se.read(np.array([[0, 1, 2]]))) == bytes_of(se.read([("0", "1", "2")]))
    four = [se.Quadruplet(("a", "b"), ("c", "d"))]
    for given in (four, [("a", "b", "c", "d")], np.array([list("abcd")])):
        assert se.read(given).snapshot.counters["quadruplets"] == 1


def test_tables_of_known_tools_and_where():
    salmon = pd.DataFrame(
        {"head": ["a", "b"], "winner": ["b", "c"], "loser": ["c", "a"], "puid": ["p", "q"], "ok": [True, False]}
    )
    study = se.read(salmon)
    assert "head" in study.read_as and "worker_votes" in study.snapshot.settings["accumulators"]
    named = {"anchor": "head", "near": "winner", "far": "loser"}
    for columns in (None, named):
        kept = se.read(salmon, columns=columns, where={"ok": True})
        assert len(kept) == kept.snapshot.counters["filtered"] == 1


def test_labels():
    rows = [("a", "b", "c")]
    wanted = {"a": "fruit", "b": "7"}
    frame = pd.DataFrame({"object": ["a", "b"], "label": ["fruit", "7"]})
    for labels in (wanted, {"a": "fruit", "b": 7}, frame, pl.from_pandas(frame), rows_of(dict(frame))):
        assert dict(se.read(rows, labels=labels).snapshot.labels) == wanted
    with pytest.raises(BadFrame, match="label"):
        se.read(rows, labels=pl.DataFrame({"object": ["a"]}))


def test_labels_after_answers_of_which_some_were_rejected(tmp_path):
    frame = pd.DataFrame({"object": ["a"], "label": ["fruit"]})
    frame.to_csv(tmp_path / "labels.csv", index=False)
    answers = [dict(zip(("anchor", "near", "far"), names)) for names in ("abc", "acb", "aab")]
    for labels in (frame, str(tmp_path / "labels.csv")):
        with pytest.warns(UserWarning, match="1 of 3 events were rejected"):
            assert dict(se.read(answers, labels=labels).snapshot.labels) == {"a": "fruit"}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_a_file_is_read_as_a_run_reads_it(suffix, tmp_path):
    path, columns = tmp_path / f"answers{suffix}", triplets()
    if suffix == ".csv":
        pd.DataFrame(columns).to_csv(path, index=False)
    elif suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        path.write_text("\n".join(map(json.dumps, rows_of(columns))))
    assert main(["run", str(path), "--state", str(tmp_path / "state"), "--no-refits"]) == 0
    ran, read = se.read(tmp_path / "state"), se.read(path)
    of_a_run = {"input": {}, "sinks": {}}
    assert {**ran.snapshot.counters, **of_a_run} == {**read.snapshot.counters, **of_a_run} and len(ran) == 300
    assert ran.snapshot.positions == read.snapshot.positions and ran.snapshot.settings == read.snapshot.settings
    assert all(np.array_equal(array, read.snapshot.arrays[name]) for name, array in ran.snapshot.arrays.items())
    assert list(ran.snapshot.objects) == list(read.snapshot.objects)
    assert bytes_of(se.read([path])) == bytes_of(read) and bytes_of(se.read(str(tmp_path / f"*{suffix}"))) == bytes_of(
        read
    )


GOOD = {"anchor": ["a"] * 4, "near": ["b"] * 4, "far": ["c"] * 4}
BAD = {  # what is wrong, and what is said: the row, what was there, what is expected
    "missing": (GOOD | {"far": ["c", None, "c", "c"]}, "1.*4.*row 1: far"),
    "not distinct": (GOOD | {"far": ["c", "c", "c", "b"]}, "row 3: near .*far"),
    "a wrong type": (GOOD | {"far": [1.0, 2.0, 2.5, 3.0]}, "row 2: far .*number"),
    "half": (GOOD | {"far": [None, None, None, "c"]}, "3.*4.*row 0"),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("holder", [pd.DataFrame, pl.DataFrame, pa.table, rows_of])
def test_rows_that_are_refused_are_said(what, holder):
    columns, words = BAD[what]
    with pytest.raises(BadFrame, match=words):
        se.read(holder(columns), on_refused="raise")
    if what == "half":
        with pytest.raises(BadFrame, match=words):
            se.read(holder(columns))
        return
    with pytest.warns(UserWarning, match="1.*4") as said:
        study = se.read(holder(columns), frames="arrow")
    assert said[0].filename == __file__
    assert study.refused()["where"].to_pylist() == [words[words.index("row") :].split(":")[0]] and len(study) == 3


WRONG = {
    "a mixed column": (
        pd.DataFrame(GOOD | {"near": ["b", 1, 2.5, "b"]}),
        r"row 2: near: got 2.5 \(float\), expected a n",
    ),
    "lists among names": (
        GOOD | {"near": ["b", ["b"], "b", "b"]},
        r"row 1: near.*\['b'\] \(list\)",
    ),
    "text among numbers": (GOOD | {"weight": [1, "x", 2, 3]}, r"row 1: weight.*'x' \(str\)"),
    "an object": (
        rows_of(GOOD | {"near": ["b", "b", object(), "b"]}),
        "row 2.*JSON",
    ),
    "no such column": (pd.DataFrame(GOOD).drop(columns="far"), "far.*anchor, near"),
    "a column of nearly that name": (
        pd.DataFrame(GOOD).rename(columns={"far": " Farr"}),
        r"far.*' Farr'\?.*columns=\{'far'",
    ),
    "a column twice": (pd.DataFrame([[1, 2, 3]], columns=["anchor", "near", "near"]), "column 'near' .* twice"),
    "uneven columns": (GOOD | {"far": ["c"]}, "anchor: 4, near: 4, far: 1"),
    "a short row": ([("a", "b", "c"), ("a", "b")], r"row 1.*\('a', 'b'\) \(tuple\).*3.*4"),
    "a lazy frame": (pl.DataFrame(GOOD).lazy(), r"polars.*.collect\(\)"),
    "a number": (5, "pandas, polars.*Arrow"),
    "one triplet": (("a", "b", "c"), r"\[\('a', 'b', 'c'\)\]"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_table_of_answers_is_said(what):
    given, words = WRONG[what]
    with pytest.raises(ValueError, match=words):
        se.read(given)


def test_neither_pandas_nor_polars_is_needed_or_loaded():
    code = """
import sys
class Missing:
    def find_spec(name, *_):
        if name.partition(".")[0] in ("pandas", "polars"): raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing)
import stream_engine as se
study = se.read([("a", "b", "c")] * 3)
print(study.objects().to_pydict()["object"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['a', 'b', 'c']", done.stderr


def test_columns_that_mean_nothing_are_not_looked_at():
    """An object that no Arrow column can hold stands in one; its name is told all the same."""
    frame = pd.DataFrame(GOOD | {"notes": [object(), 1, "x", {}]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert se.read(frame).snapshot.counters["unknown_fields"] == ["notes"]


@pytest.mark.parametrize("holder", [pd.DataFrame, pl.DataFrame, pa.table, rows_of])
def test_batches_leave_no_trace(holder, monkeypatch):
    columns = triplets()
    columns["far"][217] = None
    with pytest.warns(UserWarning):
        whole = se.read(holder(columns))
    monkeypatch.setattr(feeding, "BATCH_ROWS", 64)
    with pytest.warns(UserWarning, match="row 217: far"):
        assert bytes_of(se.read(holder(columns))) == bytes_of(whole)


@pytest.mark.parametrize("seed", range(3))
def test_long_columns_of_objects_are_read_as_short_ones(seed, monkeypatch):
    """Text of few distinct names is looked at once a name; a number, a list, a missing cell among it is not lost."""
    rng = np.random.default_rng(seed)
    three = np.stack([rng.permutation(7)[:3] for _ in range(400)])
    names = np.array([f"o{i}" for i in range(7)], object)[three]
    told = np.array(["ann", "bo", None, float("nan")], object)[rng.integers(4, size=400)]
    if seed == 1:
        names[398:, 2] = 16  # neither first nor among those that are looked at
    if seed == 2:
        names[200, 0] = True
    frame = pd.DataFrame({**dict(zip(("anchor", "near", "far"), names.T)), "worker": told}, dtype=object)
    found = []
    for few in (10, 10**9):
        monkeypatch.setattr(frames, "FIRST_ROWS", few)
        if seed == 2:
            with pytest.raises(frames.BadFrame, match=stating("200 … anchor … True")):
                se.read(frame)
        else:
            found.append(bytes_of(se.read(frame)))
    assert seed == 2 or found[0] == found[1]


def test_the_guard_judges_in_order_however_much_waits(monkeypatch):
    rows = [(f"o{a}", f"o{b}", f"o{c}") for a, b, c in np.random.default_rng(2).permuted(
        np.tile(np.arange(6), (700, 1)), axis=1)[:, :3].tolist()]  # fmt: skip
    whole = bytes_of(se.read(rows))
    monkeypatch.setattr(feeding, "BATCH_ROWS", 50)
    monkeypatch.setattr(study_engine, "MAX_WAITING", 120)
    assert bytes_of(se.read(rows)) == whole
    study = se.read(rows)
    assert len(study) == 700
    assert "6 objects" in repr(study)
    assert study.fitted == ()


def test_an_unknown_argument_is_told_which_one_is_meant():
    for given, says in (
        ({"colums": {}}, "^colums: unknown argument; did you mean columns"),
        ({"delim": ";"}, "^delim: unknown argument; did you mean delimiter"),
        ({"qqq": 1}, "^qqq: unknown argument; known are type, columns, where, .* seed, delimiter, "),
    ):
        with pytest.raises(ValueError, match=says):
            se.read([("a", "b", "c")], **given)


def test_what_people_hand_over():
    rows = pd.DataFrame([("a", "b", "c"), ("a", "c", "b"), ("c", "b", "a")], columns=["anchor", "near", "far"])
    wanted = bytes_of(se.read(rows))
    assert bytes_of(se.read(rows.set_index("anchor"))) == bytes_of(se.read(rows.set_index(["anchor", "far"]))) == wanted
    for answers in (np.array([True, False, False]), np.array([1, -1, -1])):
        pair = se.read((np.array([[0, 1, 2], [0, 1, 2], [2, 0, 1]]), answers))
        assert sorted(pair.snapshot.objects) == ["0", "1", "2"] and len(pair) == 3
        assert pair.questions()["n_near"].sum() == 2 and pair.questions()["n_far"].sum() == 1
    with pytest.raises(frames.BadFrame, match="cblearn") as said:
        se.read((np.array([[0, 1, 2]]), np.array([1, 1])))
    assert "\n" not in str(said.value)
    with pytest.raises(frames.BadFrame, match="delimiter, encoding"):
        se.read("survey.csv", sep=";")


def test_names_that_differ_by_blanks_alone_are_told():
    rows = [("rum", "cola", "gin"), (" rum", "cola", "gin"), ("Rum", "cola", " tea")]
    with pytest.warns(UserWarning, match=r"1.*6 objects .*'rum'.*' rum'.*'Rum'"):
        assert se.read(rows).snapshot.objects[3] == " rum"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        se.read([rows[0], ("tea", "cola", "gin")])
