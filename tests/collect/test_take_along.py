"""Everything to take along: one archive, and a copy by backup that shows its pictures on another machine."""

import csv
import io
import json
import shutil
import zipfile
from types import SimpleNamespace

import httpx
import pytest
from PIL import Image

from stream_engine.collect import archive
from stream_engine.collect.archive import zipped
from stream_engine.collect.stimuli import BadStimuli, Stimuli, Stimulus, keep, stored_objects
from tests.collect.conftest import NO_REFITS
from tests.support.collecting import COMPILING, Participant, first_shown, get, read_by_the_engine
from tests.support.process import engine, until


def pictures(folder):
    folder.mkdir(parents=True)
    for number in range(4):
        Image.new("RGB", (8, 6), (60 * number, 255 - 60 * number, 128)).save(folder / f"p{number}.png")
    return folder


def answered(study, n=6) -> None:
    person = Participant(study.base, "w", first_shown)
    with httpx.Client(timeout=120) as http:
        for each in person.ask(http, n):
            person.answer(http, each)
    until(lambda: read_by_the_engine(study) == n, what="the engine to read", seconds=COMPILING)


def test_one_archive_holds_everything_but_secrets(collecting, tmp_path):
    folder = pictures(tmp_path / "pictures")
    config = NO_REFITS + "[kafka]\nsasl_plain_password = 'pssst'\n"
    study = collecting(objects=folder, study="[quota]\nperson = 6\n", config=config)
    answered(study)
    assert get(f"{study.base}/download").status_code == 401
    told = study.owner("/download")
    assert told.status_code == 200 and told.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(told.content)) as made:
        assert made.testzip() is None
        text = {name: made.read(name) for name in made.namelist()}
    for log in ("answers", "sessions"):
        assert [json.loads(line) for line in text[f"{log}.jsonl"].splitlines()] == study.log(log)
    assert text["refused.jsonl"] == b"" and text["participants.csv"].startswith(b"worker,answers")
    assert json.loads(text["study.json"])["quota"]["person"] == 6
    assert json.loads(text["settings.json"])["snapshot"]["interval"] == 1.0
    rows = list(csv.DictReader(io.StringIO(text["objects.csv"].decode())))
    assert [row["object"] for row in rows] == ["p0", "p1", "p2", "p3"]
    for row in rows:
        assert text[f"objects/{row['file']}"] == (folder / row["file"]).read_bytes()
    assert "exports/summary.json" in text and json.loads(text["exports/summary.json"])["events"] == 6
    secret = (study.state / "collect" / "secret").read_bytes().strip()
    whole = b"".join(text.values())
    assert secret not in whole
    assert study.token.encode() not in whole
    assert b"pssst" not in whole


def test_an_archive_is_made_piece_by_piece():
    pieces = (bytes([n % 251]) * 100_000 for n in range(300))
    made = list(zipped([("a.bin", pieces), ("empty", []), ("b.txt", [b"b"])]))
    assert max(map(len, made)) < 300_000
    with zipfile.ZipFile(io.BytesIO(b"".join(made))) as read:
        assert read.testzip() is None and read.namelist() == ["a.bin", "empty", "b.txt"]
        assert read.read("a.bin") == b"".join(bytes([n % 251]) * 100_000 for n in range(300))


def test_a_copy_at_another_place_shows_its_pictures(collecting, tmp_path):
    folder = pictures(tmp_path / "pictures")
    objects = folder / "table.csv"
    objects.write_text("object,image,text\n" + "".join(f"o{n},p{n}.png,picture {n}\n" for n in range(4)))
    study = collecting(objects=objects, study="[quota]\nperson = 6\n[texts]\ntitle = 'Ours'\n")
    before = get(f"{study.base}/questions", params={"worker": "v"}).json()["show"]
    answered(study)
    engine("backup", "--state", study.state, "--to", tmp_path / "copy")
    study.stop()
    wanted = {name: (folder / f"p{name[1]}.png").read_bytes() for name in before}
    shutil.rmtree(folder)
    shutil.copytree(next((tmp_path / "copy").iterdir()), tmp_path / "elsewhere")
    engine("verify", "--state", tmp_path / "elsewhere")
    study.state, study._objects, study._more = tmp_path / "elsewhere", None, study._more[2:]  # nothing is said of it
    study.start()
    assert study.study()["objects"] == 4 and "<h1>Ours</h1>" in get(f"{study.base}/ask").text
    shown = get(f"{study.base}/questions", params={"worker": "v", "again": 1, "n": 1}).json()["show"]
    assert shown == before
    for name, what in shown.items():
        assert get(f"{study.base}/{what['from']}").content == wanted[name]


def test_what_is_kept_grows_and_what_was_there_stays(tmp_path):
    folder, place = pictures(tmp_path / "pictures"), tmp_path / "kept"
    (folder / ".hidden.png").write_bytes((folder / "p0.png").read_bytes())
    stimuli = Stimuli(folder)
    keep(stimuli, place)
    (folder / "t.txt").write_text("a text")
    stimuli._stamps = ()
    assert stimuli.look() == ["t"]
    keep(stimuli, place)
    again = Stimuli(stored_objects(place))
    assert sorted(again.names) == sorted(stimuli.names) == ["p0", "p1", "p2", "p3", "t"]
    keep(again, place)  # of itself: nothing to do
    names = tmp_path / "names.txt"
    names.write_text("one\ntwo, or so\nthree\n")
    keep(Stimuli(names), tmp_path / "of names")
    assert Stimuli(stored_objects(tmp_path / "of names")).shown == Stimuli(names).shown
    with pytest.raises(BadStimuli, match="--objects"):
        stored_objects(tmp_path / "nowhere")


def kept_pictures(place) -> dict[str, bytes]:
    """What a start that names no objects would show."""
    shown = Stimuli(stored_objects(place)).shown
    return {name: stimulus.file.read_bytes() for name, stimulus in shown.items()}


def test_another_table_or_folder_is_kept_as_it_is(tmp_path):
    """After a start with other objects, or the same in another order, a start without any shows these."""
    folder, place = pictures(tmp_path / "pictures"), tmp_path / "kept"
    table, wanted = folder / "table.csv", {f"o{n}": (folder / f"p{n}.png").read_bytes() for n in range(4)}
    for names in ("o1 o2 o3", "o0 o1 o2 o3", "o3 o1 o0"):
        table.write_text("object,image\n" + "".join(f"{name},p{name[1]}.png\n" for name in names.split()))
        keep(Stimuli(table), place)
        assert kept_pictures(place) == {name: wanted[name] for name in names.split()}
    table.unlink()
    keep(Stimuli(folder), place)
    assert kept_pictures(place) == {f"p{name[1]}": picture for name, picture in wanted.items()}
    (folder / "p0.png").unlink()  # another file of this name, not the one that is kept written anew
    Image.new("RGB", (9, 9), "red").save(folder / "p0.png")
    keep(Stimuli(folder), place)
    assert kept_pictures(place)["p0"] == (folder / "p0.png").read_bytes()


def test_the_table_of_objects_has_names_files_and_texts(tmp_path):
    (tmp_path / "table.csv").write_text("object,image,text\n")
    (tmp_path / "x.png").write_bytes(b"x")
    shown = {"a": Stimulus("", tmp_path / "x.png", "image/png"), "b": Stimulus("a text", None, "")}
    (name, pieces), *files = archive.objects(SimpleNamespace(shown=shown, folder=None), raw=False)
    assert list(csv.reader(io.StringIO(b"".join(pieces).decode()))) == [
        ["object", "file", "text"],
        ["a", "000001.png", ""],
        ["b", "", "a text"],
    ]
    assert (name, [each for each, _ in files]) == ("objects.csv", ["objects/000001.png"])
