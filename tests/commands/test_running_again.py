"""Running again as people do: the same file, a longer one, an edited one, a copy, other options; and the last line."""

import gzip
import json

import numpy as np
import pyarrow.csv
import pytest
from pyarrow import parquet

from stream_engine.state.store import Store
from tests.support.facts import states
from tests.support.generators import planted_triplets
from tests.support.process import engine, one_line, summary
from tests.support.reported import QUICK

ROWS = ["a,b,c", "b,a,c", "c,a,b", "d,a,b", "d,b,c"]


def survey(path, rows=ROWS, header="anchor,near,far"):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def run(path, state, *more, status=0):
    return engine("run", path, "--state", state, "--no-refits", *more, status=status)


def last(done):
    """The last line of a run."""
    return done.stderr.splitlines()[-1]


def test_a_run_ends_with_what_it_came_to(tmp_path):
    path = survey(tmp_path / "survey.csv", [*ROWS, "a,a,b", "a,b"])
    said = last(run(path, tmp_path / "s"))
    assert states(said, "5 events … survey.csv … 5 comparisons … 2 … (1 not_distinct, 1 not_parseable")
    assert states(said, f"{path} line 7 … anchor … near … 'a' … {tmp_path / 's' / 'dead_letters'} … 4 objects")
    assert f"stream-engine report --state {tmp_path / 's'}" in said


@pytest.mark.parametrize("coins", [True, False])
def test_answers_that_a_coin_gave_are_told(tmp_path, coins):
    rng = np.random.default_rng(0)
    rows = planted_triplets(rng, rng.normal(size=(12, 2)), 800, 0.5 if coins else 0.1)
    path = survey(tmp_path / "survey.csv", [",".join(f"o{i}" for i in row) for row in rows.tolist()])
    (tmp_path / "engine.toml").write_text(QUICK)
    done = engine("run", path, "--state", tmp_path / "s", "--refit", "embedding", "--config", tmp_path / "engine.toml")
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: ") and "chance" in line]
    assert bool(warned) == coins and "(accuracy 0." in last(done)


def test_nothing_new_is_said_and_a_longer_file_is_read_on(tmp_path):
    path = survey(tmp_path / "survey.csv", header="probe,near,far")
    run(path, tmp_path / "s", "--columns", "anchor=probe")
    said = last(run(path, tmp_path / "s", "--columns", "anchor=probe"))
    assert states(said, "survey.csv … --columns anchor=probe … 5 events … snapshot 1")
    with path.open("a") as file:
        file.write("e,a,b\n")
    assert last(run(path, tmp_path / "s", "--columns", "anchor=probe")).startswith("1 event ")
    assert summary(tmp_path / "s")["events"] == 6


def test_answers_to_questions_of_ask_are_merged_with_a_survey_of_other_columns(tmp_path):
    path, answered = survey(tmp_path / "survey.csv", header="probe,near,far"), tmp_path / "answered.jsonl"
    run(path, tmp_path / "s", "--columns", "anchor=probe")
    question = {"type": "pick", "anchor": "a", "shown": ["b", "c"], "chosen": ["b"], "sampler": "coverage"}
    answered.write_text(json.dumps(question) + "\n")
    said = one_line(run(answered, tmp_path / "s", "--type", "pick", status=2).stderr)
    assert states(said, "--columns anchor=probe … --type pick … `stream-engine merge`")
    said = run(answered, tmp_path / "s", status=1)
    assert "probe (as anchor)" in said.stderr
    assert states(said.stderr, "--state … `stream-engine merge`")
    run(answered, tmp_path / "extra")
    engine("merge", tmp_path / "s", tmp_path / "extra", "--out", tmp_path / "sum")
    said = last(run(path, tmp_path / "sum", "--columns", "anchor=probe"))
    assert states(said, "survey.csv … 6 events … snapshot 1")


@pytest.mark.parametrize("other", [["--columns", "far=near,near=far"], ["--where", "near=a"]])
def test_other_options_are_refused_with_both_said(tmp_path, other):
    path = survey(tmp_path / "survey.csv")
    run(path, tmp_path / "s")
    with path.open("a") as file:
        file.write("e,a,b\n")
    said = one_line(run(path, tmp_path / "s", *other, status=2).stderr)
    assert states(said, f"{' '.join(other)} … --start-over")
    assert summary(tmp_path / "s")["events"] == 5
    run(path, tmp_path / "s", *other, "--start-over")
    assert summary(tmp_path / "s")["records"] == 6
    assert states(last(run(path, tmp_path / "s")), f"survey.csv … {' '.join(other)}")


def test_a_run_without_options_reads_as_the_state_was_read(tmp_path):
    options = ["--type", "pick", "--columns", "anchor=target,shown=one|two,chosen=answer", "--answers-by", "position"]
    path = survey(tmp_path / "survey.csv", ["a,b,c,1", "b,a,c,2"], "target,one,two,answer")
    run(path, tmp_path / "s", *options)
    for number, more in enumerate(([], options[:2], options[2:], options), 3):
        with path.open("a") as file:
            file.write(f"c,a,o{number},2\n")
        assert states(last(run(path, tmp_path / "s", *more)), "1 event … survey.csv … 1 comparison, 0")
    assert summary(tmp_path / "s")["events"] == 6
    for other in (["--answers-by", "index"], ["--type", "pick", "--skip-rows", "1"]):
        said = one_line(run(path, tmp_path / "s", *other, status=2).stderr)
        named = ("--type pick", "anchor=target", "shown=one|two", "chosen=answer", "--answers-by position")
        assert all(states(said, f"{option} … {' '.join(other)}") for option in named)


def write(path, rows):
    survey(path.with_suffix(".plain"), rows)
    data = path.with_suffix(".plain").read_bytes()
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.csv.read_csv(path.with_suffix(".plain")), path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(data, mtime=0))
    else:
        path.write_bytes(data)


@pytest.mark.parametrize("name", ["survey.csv", "survey.csv.gz", "survey.parquet"])
def test_an_edited_row_is_noticed_wherever_it_is(tmp_path, name):
    path, rows = tmp_path / name, [f"o{i % 50},p{i % 40},q{i % 30}" for i in range(600)]
    write(path, rows)
    run(path, tmp_path / "s")
    assert "600 events" in last(run(path, tmp_path / "s"))
    for edited in (3, 300, 599):
        changed = list(rows)
        changed[edited] = changed[edited].replace("p", "q")
        write(path, changed)
        said = one_line(run(path, tmp_path / "s", status=1).stderr)
        assert "--start-over" in said
    assert summary(tmp_path / "s")["events"] == 600
    run(path, tmp_path / "s", "--start-over")
    assert summary(tmp_path / "s")["events"] == 600 and summary(tmp_path / "s")["snapshot"] == 1


@pytest.mark.parametrize("name", ["survey.csv", "survey.parquet"])
def test_a_copy_under_another_name_is_noticed(tmp_path, name):
    write(tmp_path / name, ROWS)
    run(tmp_path / name, tmp_path / "s")
    copy = tmp_path / f"copy_{name}"
    copy.write_bytes((tmp_path / name).read_bytes())
    said = one_line(run(copy, tmp_path / "s", status=2).stderr)
    assert states(said, f"{copy} … {tmp_path / name}")
    assert summary(tmp_path / "s")["events"] == 5
    config = tmp_path / "c.toml"
    config.write_text("[input]\ncount_copies = true\n")
    run(copy, tmp_path / "s", "--config", config)
    assert summary(tmp_path / "s")["events"] == 10


@pytest.mark.parametrize("first, second", [("a.csv", "b.csv.gz"), ("a.csv.gz", "b.csv.gz")])
def test_a_packed_copy_is_noticed(tmp_path, first, second):
    text = ("anchor,near,far\n" + "\n".join(ROWS) + "\n").encode()
    for level, name in enumerate((first, second), 1):
        (tmp_path / name).write_bytes(gzip.compress(text, level) if name.endswith(".gz") else text)
    run(tmp_path / first, tmp_path / "s")
    said = one_line(run(tmp_path / second, tmp_path / "s", status=2).stderr)
    assert states(said, f"{second} … {tmp_path / first}")
    other = tmp_path / "other.csv.gz"
    other.write_bytes(gzip.compress(text.replace(b"d", b"e")))
    run(other, tmp_path / "s")
    assert summary(tmp_path / "s")["events"] == 10


def test_all_refused_is_a_failure_however_small_and_keeps_nothing(tmp_path):
    path = survey(tmp_path / "survey.csv", ["a,b,b", "a,a,b"])
    said = one_line(run(path, tmp_path / "s", status=1).stderr)
    assert "2" in said and states(said, f"{path} line 2 … near … far … 'b'")
    assert not (tmp_path / "s" / "snapshots").exists()
    survey(path, ["a,b,c"])
    run(path, tmp_path / "s")
    assert summary(tmp_path / "s")["events"] == 1 and summary(tmp_path / "s")["rejected"] == {}


def test_starting_over_leaves_nothing_of_before(tmp_path):
    path = survey(tmp_path / "survey.csv", [*ROWS, "a,a,b"])
    for more in ([], ["--start-over"], ["--start-over"]):
        run(path, tmp_path / "s", *more)
        letters = json.loads(engine("dead-letters", "list", "--state", tmp_path / "s", "--json").stdout)
        assert (letters["letters"], letters["lost"]) == (1, 0)
        assert summary(tmp_path / "s")["events"] == 5 and summary(tmp_path / "s")["snapshot"] == 1
        assert not list((tmp_path / "s").rglob("*.order")), "of the snapshot before"
        engine("export", "--state", tmp_path / "s", "--out", tmp_path / "out", "partial_order")


def test_a_state_that_starts_over_does_not_say_who_is_known(tmp_path):
    """A participant of the data to come is excluded; without starting over, who is not in the data is refused."""
    for who, more, status in (("abcab", (), 0), ("abcab", ("x",), 2), ("xyzxy", ("x", "--start-over"), 0)):
        rows = [f"{row},{name}" for row, name in zip(ROWS, who)]
        path = survey(tmp_path / f"{who}.csv", rows, "anchor,near,far,worker")
        run(path, tmp_path / "s", *(("--exclude", f"participant={more[0]}", *more[1:]) if more else ()), status=status)
    assert Store(tmp_path / "s").excluded() == ("x",)


def test_a_column_that_seems_to_hold_the_answer_is_not_passed_over_in_silence(tmp_path):
    path = survey(tmp_path / "survey.csv", [f"{row},1" for row in ROWS], "anchor,near,far,Answer")
    assert "--type" in last(run(path, tmp_path / "s"))
    path = survey(tmp_path / "other.csv", [f"{row},1" for row in ROWS], "anchor,near,far,age")
    assert "--type" not in last(run(path, tmp_path / "other"))


def test_refused_lines_are_named_by_their_numbers(tmp_path):
    path = survey(tmp_path / "survey.csv", ['"a', 'x",b,c', "a,a,b", "", "a,b,b"])
    run(path, tmp_path / "s")
    letters = engine("dead-letters", "show", "--state", tmp_path / "s", "--json").stdout.splitlines()
    assert [json.loads(letter)["line"] for letter in letters] == [4, 6]
    assert f"{path} line 4  not_distinct" in engine("dead-letters", "show", "--state", tmp_path / "s").stdout
    assert "line 4:" in engine("dead-letters", "list", "--state", tmp_path / "s").stdout


def test_rows_in_another_encoding_are_counted_and_verified(tmp_path):
    path = tmp_path / "survey.csv"
    path.write_bytes("Über uns\nprobe;near;far\ncafé;b;c\na;b\n;b;c\n".encode("latin-1"))
    plain = ["--columns", "anchor=probe", "--skip-rows", "1", "--delimiter", ";"]
    text = path.read_bytes()
    path.write_bytes(text + b"d;b;c\n")
    assert "--encoding cp1252" in engine("preview", path, *plain).stdout.split("first events")[0]
    said = engine("run", path, "--state", tmp_path / "plain", "--no-refits", "--max-reject-ratio", 1, *plain).stderr
    assert "--encoding cp1252" in next(line for line in said.splitlines() if "UTF-8" in line)
    assert said.splitlines()[-1].startswith("1 row ") and states(said.splitlines()[-1], "UTF-8 … --encoding cp1252")
    path.write_bytes(text)
    how = ["--columns", "anchor=probe", "--encoding", "latin-1", "--skip-rows", "1", "--delimiter", ";"]
    run(path, tmp_path / "s", *how)
    engine("verify", path, "--state", tmp_path / "s")


def test_preview_shows_how_it_would_be_read_and_writes_nothing(tmp_path):
    rows = ["Lemon;b;c;u", "lemon;b;c;u", "a;b;c;v", "a;c;b;v", "a;a;b;w"]
    path = survey(tmp_path / "survey.csv", rows, "anchor;near;far;worker")
    before = sorted(tmp_path.rglob("*"))
    said = engine("preview", path).stdout
    assert sorted(tmp_path.rglob("*")) == before
    assert states(said, "u … Lemon … b … c") and '"Lemon" and "lemon"' in said
    assert states(said, f"{path} line 6 … anchor … near")
    found = json.loads(engine("preview", path, "--json").stdout)
    assert found["columns"] == ["anchor", "near", "far", "worker"] and found["objects"] == 5
    assert (found["events"], found["repeated"], found["repeated_alike"]) == (4, 1, 0)
    assert (found["workers"], found["questions_per_worker"]) == (2, [2, 2, 2]) and found["refused"] == {
        "not_distinct": 1
    }
    spaces = tmp_path / "names.jsonl"
    spaces.write_text('{"anchor":"b","near":" b","far":"\uff42"}\n', "utf-8")  # the last one is fullwidth
    assert json.loads(engine("preview", spaces, "--json").stdout)["suspicious"] == [["b", " b", "\uff42"]]
    found = json.loads(engine("preview", path, "--json", "--columns", "near=far,far=near").stdout)
    assert states(found["first"][0], "u … Lemon … c … b")
