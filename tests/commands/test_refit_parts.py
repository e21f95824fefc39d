"""What `refit` reads, repeats and tells, without fitting anything."""

import json
import threading
from types import SimpleNamespace

import pytest

from stream_engine.commands import ask, refit
from stream_engine.input.settings import BadSettings
from stream_engine.kernel_learning.auxiliary_files import read_names
from stream_engine.state.artifact import Artifact
from stream_engine.state.exclusion import participants_in


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
