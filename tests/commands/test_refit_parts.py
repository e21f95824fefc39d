"""What `refit` reads, repeats and tells, without fitting anything."""

import json
import threading
from itertools import permutations
from types import SimpleNamespace

import pytest

from stream_engine.commands import ask, refit
from stream_engine.commands.refit_text import FIGURES, plain_figures
from stream_engine.input.settings import BadSettings
from stream_engine.kernel_learning.auxiliary_files import read_names
from stream_engine.state.artifact import Artifact
from stream_engine.state.exclusion import participants_in
from stream_engine.state.store import Store
from tests.support.process import engine, jsonl, one_line


def test_a_file_of_objects_has_a_name_a_line(tmp_path):
    path = tmp_path / "objects.txt"
    path.write_text("first\n\nsecond\n")
    assert refit.names_in(str(path)) == ["first", "second"]
    path.write_text("\n")
    with pytest.raises(BadSettings, match="got no names"):
        refit.names_in(str(path))


@pytest.mark.parametrize(
    "read",
    [
        lambda path: refit.names_in(str(path)),
        ask._names,
        lambda path: participants_in([f"participant=@{path}"]),
        read_names,
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path, read):
    path = tmp_path / "names.txt"
    path.write_bytes("first\r\nsecond\r\n".encode("utf-8-sig"))  # as Notepad saves it
    assert read(path) == ["first", "second"]


def test_progress_says_what_is_done_of_what_is_to_do(capsys):
    progress = refit._progress("json", "spectral", None, threading.Event())
    assert progress(5, 5, gap=0.5) is False
    assert json.loads(capsys.readouterr().out) == {"done": 5, "total": 5, "gap": 0.5}
    waiting = threading.Event()
    waiting.set()
    assert refit._progress("json", "spectral", None, waiting)(2, 7) is True
    assert json.loads(capsys.readouterr().out) == {"done": 2, "total": 7}


def test_fits_of_other_participants_are_repeated_as_they_were_made(monkeypatch):
    """With their parameters and seeds; those of the same participants are not."""
    asked = []
    monkeypatch.setattr(refit, "refit", lambda *given: asked.append(given))
    same = {"excluded": {"participants": ["w1"]}}
    made = {
        "spectral": Artifact("spectral", "", 3, {"k": 2}, 7, {}, {}),
        "hierarchy": Artifact("hierarchy", "", 3, {}, 5, {}, same),
    }
    held = SimpleNamespace(artifacts=made, excluded=("w1",))
    store = SimpleNamespace(published=lambda which: held)
    refit.fit_again(store, "latest")
    assert asked == [(store, "spectral", "latest", {"k": 2}, 7, "bar")]


@pytest.mark.parametrize(
    "digest, who, again", [("this", "w1", 0), ("this", "w2", 1), ("this", "", 1), ("other", "w1", 1)]
)
def test_groups_are_of_a_map_of_the_same_participants_and_answers(digest, who, again, monkeypatch):
    """Where the newest map is of others, it is made anew; a snapshot has one digest, whoever is excluded."""
    asked = []
    monkeypatch.setattr(refit, "refit", lambda *given: asked.append(given))
    made = Artifact("embedding", "this", 3, {}, 0, {}, {"excluded": {"participants": ["w1"]}})
    store = SimpleNamespace(latest_artifact=lambda *_: made)
    snapshot = SimpleNamespace(digest=digest, sequence=3, objects=["a", "b"])
    refit._needed(store, "clusters", "latest", snapshot, (who,) if who else (), 7, "bar")
    assert asked == [(store, "embedding", "latest", {}, 7, "bar")] * again


def test_the_text_names_figures_in_plain_words_only():
    report = {figure.path.partition(".")[0]: 0.5 for figure in FIGURES} | {"slope": 0.5, "log_bound": 1.0, "d": 2}
    lines = dict(plain_figures(report))
    assert len(lines) > 20 and not [text for text in lines if "_" in text]
    assert lines["dimensions of the map"] == "2" and not {"slope", "log_bound"} & lines.keys()


def test_where_everybody_is_excluded_refits_say_who_is(tmp_path):
    events = [{"anchor": "a", "near": "b", "far": "c", "worker": f"p{i % 2}"} for i in range(6)]
    state = tmp_path / "s"
    engine("run", jsonl(tmp_path / "e.jsonl", events), "--state", state, "--no-refits")
    everybody = ("--exclude", "participant=p0", "--exclude", "participant=p1")
    line = one_line(engine("refit", "--state", state, "spectral", *everybody, status=2).stderr)
    assert "p0, p1" in line and "--include" in line and Store(state).excluded() == ()
    Store(state).exclude(["p0", "p1"])
    line = one_line(engine("refit", "--state", state, "embedding", status=1).stderr)
    assert "p0, p1" in line and "--include" in line


def test_every_figure_of_a_refit_is_there_as_json(tmp_path):
    events = [{"anchor": a, "near": b, "far": c} for a, b, c in permutations("abcd", 3)]
    state = tmp_path / "s"
    engine("run", jsonl(tmp_path / "e.jsonl", events), "--state", state, "--no-refits")
    found = json.loads(engine("refit", "--state", state, "hierarchy", "--json").stdout)
    assert found["kind"] == "hierarchy" and found["report"]["objects"] == 4
