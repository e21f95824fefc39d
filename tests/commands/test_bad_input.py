"""Bad input as a user meets it: one clear line, the right exit status, nothing lost."""

import errno
import json
import os
import resource
import socket

import pytest

from connectors import UnusableSource, open_source
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line, process, summary

GOOD = {"anchor": "a", "near": "b", "far": "c"}
MORE = [dict(zip(("anchor", "near", "far"), names)) for names in ("abc", "bca", "cab", "acb", "dab", "dcb")]


def dead(state):
    files = sorted((state / "dead_letters").glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "name, data",
    [
        ("header.csv", b"anchor,near,far\n"),
        ("blank.jsonl", b"\n\n  \n"),
    ],
)
def test_nothing_in_it(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    engine("run", tmp_path / name, "--state", tmp_path / "s", "--no-refits")
    found = summary(tmp_path / "s")
    assert found["comparisons"] == 0
    assert found["objects"] == 0
    assert found["rejected"] == {}
    paths = engine("export", "--state", tmp_path / "s", "--out", tmp_path / "out").stdout
    assert "summary.json" in paths
    assert "adds3.npz" in paths
    assert "k1.npz" in paths
    for verb in (("preview",), ("report", "--out", tmp_path / "r.html")):
        assert name in one_line(engine(*verb, tmp_path / name, status=1).stderr)
    assert not (tmp_path / "r.html").exists()


def test_every_event_is_counted_excluded_or_rejected(tmp_path):
    """Blank lines and arrays without elements hold none; records are the others."""
    lines = [*[GOOD] * 3, "", "[]", "  ", "[{}]", GOOD | {"part": "practice"}, "[ ]", "{", GOOD]
    file = jsonl(tmp_path / "a.jsonl", lines)
    engine("run", file, "--state", tmp_path / "s", "--no-refits", "--where", "part!=practice", "--max-reject-ratio", 1)
    found = summary(tmp_path / "s")
    assert (found["events"], found["filtered"], sum(found["rejected"].values())) == (4, 1, 2)
    assert found["records"] == 7
    assert found["empty"] == 0
    assert found["positions"][str(file)] == file.stat().st_size


def test_another_format_stops_the_engine_and_loses_nothing(tmp_path):
    lines = jsonl(tmp_path / "events.jsonl", [{"x": "a", "y": "b", "z": "c"}] * 500)
    said = one_line(engine("run", lines, "--state", tmp_path / "s", "--no-refits", status=1).stderr)
    assert "500 of 500 events" in said and "--columns" in said
    engine("run", lines, "--state", tmp_path / "s", "--no-refits", "--columns", "anchor=x,near=y,far=z")
    assert summary(tmp_path / "s")["comparisons"] == 500 and summary(tmp_path / "s")["rejected"] == {}
    assert dead(tmp_path / "s") == []


def test_a_file_that_two_sources_name(tmp_path):
    """By another path, too: its events would count twice, and after a restart once."""
    events = jsonl(tmp_path / "e.jsonl", [GOOD])
    (tmp_path / "link.jsonl").symlink_to(events)
    for other in (events, f"{tmp_path}/e*.jsonl", tmp_path / "link.jsonl"):
        line = one_line(engine("run", events, other, "--state", tmp_path / "s", "--no-refits", status=2).stderr)
        assert "e.jsonl" in line
    engine("run", events, "--state", tmp_path / "s", "--no-refits")
    assert summary(tmp_path / "s")["comparisons"] == 1


def test_a_workbook_by_the_name_of_a_table(tmp_path):
    (tmp_path / "e.csv").write_bytes(b"PK\x03\x04\x14\x00\r\x00,\n")
    assert states(one_line(engine("preview", tmp_path / "e.csv", status=1).stderr), "e.csv … workbook … .xlsx")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_disk_that_takes_nothing_is_told_with_a_next_step(monkeypatch, tmp_path, number):
    def fails(*arguments, **more):
        raise OSError(number, os.strerror(number), str(tmp_path / "lock"))

    monkeypatch.setattr("stream_engine.service.run.open_run", fails)
    said = one_line(engine("run", jsonl(tmp_path / "e.jsonl", [GOOD]), "--state", tmp_path / "s", status=1).stderr)
    assert states(said, f"{tmp_path / 'lock'}: {os.strerror(number)}; … folder") and "Errno" not in said


def test_a_failed_first_run_leaves_no_folder(tmp_path):
    (tmp_path / "e.csv").write_text("a,b,c\nx,y,z\n")
    engine("run", tmp_path / "e.csv", "--state", tmp_path / "s", status=2)
    assert not (tmp_path / "s").exists()
    (tmp_path / "kept").mkdir()
    engine("run", tmp_path / "e.csv", "--state", tmp_path / "kept", status=2)
    assert (tmp_path / "kept").is_dir(), "a folder that was there before is not the run's to remove"


def test_a_port_that_another_process_uses(tmp_path):
    lines = jsonl(tmp_path / "e.jsonl", [GOOD])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        said = one_line(engine("run", lines, "--state", tmp_path / "s", "--listen", where, status=1).stderr)
    assert states(said, f"listen … {where} … {os.strerror(errno.EADDRINUSE)}") and "Errno" not in said


def test_unreadable(tmp_path):
    lines = jsonl(tmp_path / "events.jsonl", [GOOD])
    lines.chmod(0)
    me = os.geteuid()
    if me == 0:  # root may read everything: be somebody else for a moment
        for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            folder.chmod(0o755)
        os.seteuid(65534)
    try:
        with pytest.raises(UnusableSource) as refused:
            open_source(str(lines), {})
    finally:
        os.seteuid(me)
    assert "events.jsonl" in str(refused.value) and "\n" not in str(refused.value)


def test_full_disk_while_snapshotting(tmp_path):
    lines = jsonl(
        tmp_path / "events.jsonl",
        [dict(zip(("anchor", "near", "far"), (f"a{i}", f"b{i}", f"c{i}"))) for i in range(5000)],
    )
    limit = 64 * 1024  # what the process may write into one file: the snapshot does not fit

    def small():
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = process("run", lines, "--state", tmp_path / "s", "--no-refits", status=1, preexec_fn=small)
    assert one_line(done.stderr) and "File too large" in done.stderr
    assert not list((tmp_path / "s").glob("snapshots/*.snapshot")) and not list((tmp_path / "s").glob("snapshots/.*"))
    engine("run", lines, "--state", tmp_path / "s", "--no-refits")
    assert summary(tmp_path / "s")["comparisons"] == 5000


def grown(tmp_path):
    """A state with two snapshots over a file that is half consumed at the first."""
    lines = jsonl(tmp_path / "events.jsonl", MORE)
    engine("run", lines, "--state", tmp_path / "s", "--no-refits")
    with lines.open("a") as file:
        file.writelines(json.dumps(e) + "\n" for e in MORE)
    engine("run", lines, "--state", tmp_path / "s", "--no-refits")
    return lines, sorted((tmp_path / "s" / "snapshots").iterdir())


def test_a_snapshot_with_one_flipped_bit(tmp_path):
    lines, (first, second) = grown(tmp_path)
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 4
    second.write_bytes(data)
    done = engine("run", lines, "--state", tmp_path / "s", "--no-refits")
    assert "snapshot 000000000002: " in done.stderr
    assert summary(tmp_path / "s")["comparisons"] == 2 * len(MORE)
    first.write_bytes(b"")
    second.write_bytes(data)
    said = one_line(engine("run", lines, "--state", tmp_path / "s", status=1).stderr)
    assert "damaged" in said


def test_a_state_of_a_newer_version(tmp_path):
    lines, (first, second) = grown(tmp_path)
    data = bytearray(second.read_bytes())
    data[8] = 9
    second.write_bytes(data)
    said = one_line(engine("run", lines, "--state", tmp_path / "s", status=1).stderr)
    assert states(said, "snapshot 000000000002 … version 9 … 2") and "000000000001" in said
    assert second.read_bytes() == data


def test_a_state_made_with_other_settings(tmp_path):
    lines, _ = grown(tmp_path)
    said = one_line(engine("run", lines, "--state", tmp_path / "s", "--guard", "off", status=2).stderr)
    assert states(said, "guard = true … false … another --state") and "{" not in said


def test_labels_for_unknown_objects_wait(tmp_path):
    (tmp_path / "labels.csv").write_text("object,class\na,x\nzebra,y\n")
    lines = jsonl(tmp_path / "e.jsonl", MORE)
    done = engine("run", lines, "--state", tmp_path / "s", "--labels", tmp_path / "labels.csv", "--no-refits")
    assert "labels" in done.stderr and "zebra" in done.stderr
    found = summary(tmp_path / "s")
    assert found["labelled_objects"] == 1 and found["objects"] == 4
    again = engine("run", lines, "--state", tmp_path / "s", "--labels", tmp_path / "labels.csv", "--no-refits")
    assert summary(tmp_path / "s") == found, again.stderr


def test_what_was_read_of_labels_and_rejected_is_told(tmp_path):
    events, labels = jsonl(tmp_path / "e.jsonl", MORE), tmp_path / "labels.csv"
    engine("run", events, "--state", tmp_path / "s", "--no-refits")
    labels.write_text("object,label\na,x\n,y\nb,z\n")
    with_labels = ("run", events, "--state", tmp_path / "s", "--labels", labels, "--no-refits")
    said = engine(*with_labels).stderr
    assert "nothing new" not in said
    assert states(said, "2 events … labels.csv … 1 rejected … empty_name … labels.csv line 3")
    assert "nothing new in e.jsonl, labels.csv" in engine(*with_labels).stderr
    alone = engine("run", "--labels", labels, "--state", tmp_path / "alone", "--no-refits").stderr
    assert states(alone, "2 events of labels.csv … 1 rejected")


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"type": "label", "object": "only", "label": "x"}],
        [GOOD, {"anchor": "a", "near": "c", "far": "b"}] * 5,
    ],
    ids=["none", "one object", "all contradictory"],
)
def test_degenerate_streams_go_all_the_way(tmp_path, events):
    lines = jsonl(tmp_path / "e.jsonl", events)
    done = engine("run", lines, "--state", tmp_path / "s")
    labelled = any(event.get("type") == "label" for event in events)  # without labels no classifier is planned
    assert ("label" in done.stderr) == labelled and "refit failed" not in done.stderr
    names = engine("export", "--state", tmp_path / "s", "--out", tmp_path / "o").stdout
    assert "clusters.npz" in names and "partial_order.npz" in names


def test_export_and_refit_say_what_is_missing(tmp_path):
    assert "snapshot" in one_line(engine("export", "--state", tmp_path / "s", "--out", tmp_path, status=1).stderr)
    lines = jsonl(tmp_path / "e.jsonl", MORE)
    engine("run", lines, "--state", tmp_path / "s", "--no-refits")
    assert "refit --state DIR clusters" in one_line(
        engine("export", "--state", tmp_path / "s", "--out", tmp_path, "clusters", status=1).stderr
    )
    said = engine("export", "--state", tmp_path / "s", "--out", tmp_path, "cluster_answer", status=2).stderr
    assert states(one_line(said), "cluster_answer … cluster_answer comes with clusters")
    assert "got k3" in one_line(engine("export", "--state", tmp_path / "s", "--out", tmp_path, "k3", status=2).stderr)
    said = one_line(engine("export", "--state", tmp_path / "s", "--out", tmp_path, "--snapshot", "7", status=1).stderr)
    assert states(said, "7 … 1")
    assert "label" in one_line(engine("refit", "--state", tmp_path / "s", "triplet_boost", status=1).stderr)
    assert "kk: unknown key" in one_line(
        engine("refit", "--state", tmp_path / "s", "sdp_clustering", "--set", "kk=3", status=2).stderr
    )


def test_copies_are_dropped_within_one_run_and_the_next_says_that_it_knows_none_of_them(tmp_path):
    rows = [f"a,b,{c},w,2024-05-01T10:0{i}:00Z" for i, c in enumerate("cdefg")]
    votes = tmp_path / "votes.csv"
    arguments = "run", votes, "--state", tmp_path / "S", "--drop-duplicates", "--no-refits"
    votes.write_text("\n".join(["anchor,near,far,worker,time", *rows, *rows, ""]))
    first = engine(*arguments).stderr
    assert states(first, "5 comparisons, 0 rejected, 5 excluded … copies") and "--start-over" not in first
    votes.write_text("\n".join(["anchor,near,far,worker,time", *rows, *rows, *rows, ""]))
    assert states(engine(*arguments).stderr, "copies … --start-over … --drop-duplicates … 5 comparisons")
