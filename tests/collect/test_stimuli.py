"""Objects of a folder, a table and a list of names: which are taken up, what is shown, what is passed over and why."""

import os
import re

import pytest

from stream_engine.collect import stimuli as of_study
from stream_engine.collect.stimuli import MAX_FILE_BYTES, MAX_TEXT_BYTES, BadStimuli, Stimuli, Stimulus, check_media
from tests.support.facts import states

PNG, WAV = b"\x89PNG\r\n\x1a\n" + bytes(20), b"RIFF\x24\0\0\0WAVEfmt " + bytes(20)

FIRST = {  # suffix -> media type, and how such files begin
    ".png": ("image/png", [PNG[:8]]),
    ".jpg": ("image/jpeg", [b"\xff\xd8\xff"]),
    ".jpeg": ("image/jpeg", [b"\xff\xd8\xff"]),
    ".gif": ("image/gif", [b"GIF87a", b"GIF89a"]),
    ".webp": ("image/webp", [b"RIFF\x1a\0\0\0WEBP"]),
    ".wav": ("audio/wav", [WAV[:12]]),
    ".mp3": ("audio/mpeg", [b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xfa"]),
    ".ogg": ("audio/ogg", [b"OggS"]),
    ".flac": ("audio/flac", [b"fLaC"]),
    ".m4a": ("audio/mp4", [b"\0\0\0\x18ftyp"]),
}


def folder_of(path, files: dict[str, bytes]):
    path.mkdir(exist_ok=True)
    for name, body in files.items():
        (path / name).write_bytes(body)
    return path


def grown(stimuli: Stimuli, files: dict[str, bytes]) -> list[str]:
    """The objects that a look takes up after files have come."""
    folder_of(stimuli.path, files)
    now = stimuli.path.stat()
    os.utime(stimuli.path, ns=(now.st_atime_ns, now.st_mtime_ns + 1))  # some clocks are coarse
    return stimuli.look()


@pytest.fixture
def three(tmp_path):
    return folder_of(tmp_path / "three", {"a.png": PNG, "b.WAV": WAV, "c.txt": b"\xef\xbb\xbf a cat\n"})


def test_a_folder_has_an_object_a_file(three):
    stimuli = Stimuli(three)
    assert stimuli.names == ["a", "b", "c"]
    assert stimuli.folder == three
    assert stimuli.passed_over == {}
    assert stimuli.shown == {
        "a": Stimulus("", three / "a.png", "image/png"),
        "b": Stimulus("", three / "b.WAV", "audio/wav"),
        "c": Stimulus("a cat", three / "c.txt", "text/plain"),
    }


def test_each_kind_is_known_by_its_first_bytes(three):
    for suffix, (media, bodies) in FIRST.items():
        for body in bodies:
            assert check_media(f"x{suffix.upper()}", body + bytes(9)) == ""
            assert all(media in check_media(f"x{suffix}", wrong) for wrong in (b"\0" + body, body[:-1]))
    came = {f"x{number}{suffix}": bodies[0] for number, (suffix, (_, bodies)) in enumerate(FIRST.items())}
    stimuli = Stimuli(three)
    assert grown(stimuli, came) == [f"x{number}" for number in range(10)]
    assert [stimuli.shown[name].media for name in stimuli.names[3:]] == [media for media, _ in FIRST.values()]
    assert ", ".join([*FIRST, ".txt"]) in check_media("x.svg", b"<svg>")


def test_a_file_of_another_kind_and_a_folder_are_named(three):
    folder_of(three, {"notes.docx": b"PK", ".hidden.docx": b"PK", "a.docx": b"PK"})
    (three / "more").mkdir()
    stimuli = Stimuli(three)
    assert stimuli.names == ["a", "b", "c"] and stimuli.passed_over.keys() == {"notes.docx", "a.docx", "more"}
    assert "ends in .png" in stimuli.passed_over["notes.docx"]


def test_a_list_has_an_object_a_line(tmp_path):
    path = tmp_path / "names"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\n  two, or so\t\nthree")
    stimuli = Stimuli(path)
    assert stimuli.names == ["one", "two, or so", "three"]
    assert stimuli.folder is None
    assert not stimuli.passed_over
    assert stimuli.shown["two, or so"] == Stimulus("two, or so")


def test_a_table_has_an_object_a_row(tmp_path):
    folder_of(tmp_path / "in", {"p.png": PNG, "s.wav": WAV, "t.txt": b"of a file"})
    path = tmp_path / "table.CSV"
    rows = ["a,in/p.png,,", " b ,,in/s.wav,a purr", 'c,,,"two\nlines, and ""more"""', "d,,,", "e,in/t.txt,,", "f"]
    path.write_text("\n".join(["object,image,sound,text", *rows, ""]))
    stimuli = Stimuli(path)
    assert stimuli.folder is None and not stimuli.passed_over
    assert stimuli.shown == {
        "a": Stimulus("", tmp_path / "in" / "p.png", "image/png"),
        "b": Stimulus("a purr", tmp_path / "in" / "s.wav", "audio/wav"),
        "c": Stimulus('two\nlines, and "more"'),
        "d": Stimulus("d"),
        "e": Stimulus("of a file", tmp_path / "in" / "t.txt", "text/plain"),
        "f": Stimulus("f"),
    }


@pytest.mark.parametrize(
    ("file", "body", "why"),
    [
        ("x.png", b"<svg onload=alert(1)>", "image/png"),
        ("x.txt", b"x" * (MAX_TEXT_BYTES + 1), "4,001 bytes … 4000"),
        ("x.txt", b"na\xefve", "byte 2 … UTF-8"),
        ("a.wav", WAV, "'a' … a.png"),
        ("x\ny.png", PNG, r"'x\ny' … 1 to 1024"),
    ],
)
def test_a_file_that_is_no_object_is_passed_over_and_the_others_are_there(three, file, body, why):
    folder_of(three, {file: body, ".hidden.png": PNG})
    stimuli = Stimuli(three)
    assert stimuli.names == ["a", "b", "c"] and list(stimuli.passed_over) == [file]
    assert states(stimuli.passed_over[file], why)
    assert grown(stimuli, {"d.png": PNG}) == ["d"] and list(stimuli.passed_over) == [file]


def test_as_long_a_text_and_as_large_a_file_as_is_shown(three):
    (three / "picture.png").write_bytes(PNG)
    os.truncate(three / "picture.png", MAX_FILE_BYTES)
    stimuli = Stimuli(folder_of(three, {"text.txt": b"x" * MAX_TEXT_BYTES}))
    assert stimuli.names == ["a", "b", "c", "picture", "text"] and stimuli.shown["text"].text == "x" * MAX_TEXT_BYTES
    os.truncate(three / "picture.png", MAX_FILE_BYTES + 1)
    ((name, why),) = Stimuli(three).passed_over.items()
    assert name == "picture.png" and states(why, "20,971,521 bytes … 20,971,520")


def test_a_file_whose_name_is_no_text_is_passed_over(three):
    with open(os.fsencode(three) + b"/x\xff.png", "wb") as file:
        file.write(PNG)
    (said,) = Stimuli(three).passed_over.items()
    assert said[0] == r"x\xff.png" and states(said[1], r"'x\udcff' … 1 to 1024")


@pytest.mark.parametrize(
    ("file", "body", "said"),
    [
        ("names.txt", b"a\nb\na\n", "--objects PATH: line 3: got 'a' again, as in line 1; expected each object once"),
        ("names.txt", b"a\nb\n", "--objects PATH: .*2 objects.*3"),
        ("table.csv", b"object\na\nb\nc\nb\n", "--objects PATH: line 5: got 'b' again, as in line 3; .*"),
        (
            "table.csv",
            b"name,image\na,b\n",
            r"--objects PATH: .*\['name', 'image'\].*object, image, sound, text",
        ),
    ],
)
def test_where_there_is_nothing_to_ask_about_it_is_said_in_one_line(tmp_path, file, body, said):
    folder_of(tmp_path, {file: body})
    with pytest.raises(BadStimuli) as error:
        Stimuli(tmp_path / file)
    told = str(error.value).replace(str(tmp_path / file), "PATH")
    assert re.fullmatch(said, told) and told.count("--objects") == 1


def test_no_folder_and_an_empty_one(tmp_path):
    with pytest.raises(BadStimuli, match="folder"):
        Stimuli(tmp_path / "none")
    with pytest.raises(BadStimuli, match="0 objects.*3$"):
        Stimuli(tmp_path)


def test_objects_come_and_none_goes(three):
    stimuli = Stimuli(three)
    before = dict(stimuli.shown)
    assert stimuli.look() == []
    (three / "a.png").unlink()
    (three / "c.txt").write_text("another text")
    assert grown(stimuli, {"0.png": PNG}) == ["0"]
    assert stimuli.names == ["a", "b", "c", "0"] and {name: stimuli.shown[name] for name in before} == before


def test_a_file_that_was_copied_only_partly_is_looked_at_again(three, monkeypatch):
    stimuli = Stimuli(three)
    assert grown(stimuli, {"d.png": PNG[:3]}) == [] and list(stimuli.passed_over) == ["d.png"]
    (three / "d.png").write_bytes(PNG)  # which the folder's own time does not show
    assert stimuli.look() == []
    monkeypatch.setattr(of_study, "RETRY_SECONDS", 0.0)
    assert stimuli.look() == ["d"] and stimuli.passed_over == {}


def test_a_list_that_cannot_be_read_for_a_while_changes_nothing(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("a\nb\nc\n")
    stimuli = Stimuli(path)
    path.write_bytes(b"a\nb\nc\nd\xff\n")
    assert stimuli.look() == [] and states(stimuli.passed_over["names.txt"], "7 … UTF-8")
    path.unlink()
    assert stimuli.look() == [] and "No such file" in stimuli.passed_over["names.txt"]
    path.write_text("a\nb\nc\nd\n")
    assert stimuli.look() == ["d"]
    assert stimuli.names == ["a", "b", "c", "d"]
    assert stimuli.passed_over == {}


def test_all_pictures_are_shown_as_large_as_the_largest_asks(tmp_path, monkeypatch):
    sizes = {"a": (400, 300), "b": (100, 60), "c": (90, 120)}
    monkeypatch.setattr(of_study, "picture_size", lambda shown: sizes[shown.file.stem])
    stimuli = Stimuli(folder_of(tmp_path / "pictures", {f"{name}.png": PNG for name in sizes}))
    assert stimuli.largest == 400
    assert stimuli.fill == 0.6
