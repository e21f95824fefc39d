"""Everything of a study in one ZIP, made while it is sent: `GET /download`.

    answers.jsonl, sessions.jsonl, refused.jsonl   the logs: answers, questions, what was refused
    participants.csv                               people
    study.json, settings.json                      the study file, the engine's settings; defaults among them
    objects.csv, objects/                          the objects, and what is shown of them
    exports/                                       what `stream-engine export` writes of the newest snapshot, as CSV

No secret is in it: links, tokens and codes of completion cannot be made from it. `backup` copies a study that is to go
on elsewhere.

Questions for an experiment elsewhere: a timeline for jsPsych (JSON), a conditions file for PsychoPy (CSV).

What jsPsych's button responses write is read without an option: a trial carries `anchor`, `left`, `right` in its data,
and `response` is the number of the button from 0. PsychoPy writes the columns of its conditions beside the key that was
pressed: `--type pick --columns shown=left|right,chosen=key_resp.keys --answers-by position`.
"""

import csv
import html
import io
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from stream_engine.collect.stimuli import Stimuli
from stream_engine.collect.study import Screen

SIDES = {2: ("left", "right"), 3: ("left", "middle", "right")}


def as_jspsych(asked: Sequence[Screen], stimuli: Stimuli) -> bytes:
    """A JSON array of trials of jsPsych's html-button-response: `stimulus`, `choices`, and `data`, which comes back."""
    trials: list[dict[str, Any]] = []
    for each in asked:
        data: dict[str, Any] = {"id": each.id, "sampler": each.sampler}
        data |= {"anchor": each.anchor} if each.anchor else {}
        data |= dict(zip(_sides(len(each.shown)), each.shown))
        stimulus = _html(each.anchor, stimuli) if each.anchor else ""
        choices = [_html(name, stimuli) for name in each.shown]
        trials.append({"stimulus": stimulus, "choices": choices, "data": data})
    return msgspec.json.encode(trials)


def as_csv(asked: Sequence[Screen], stimuli: Stimuli) -> bytes:
    """One row a question: id, anchor, the objects from left to right, the file of each, sampler, propensity."""
    sides = _sides(max((len(each.shown) for each in asked), default=2))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["id", "anchor", *sides, "anchor_file", *(f"{side}_file" for side in sides), "sampler", "propensity"]
    )
    for each in asked:
        more = [""] * (len(sides) - len(each.shown))
        files = [_file(name, stimuli) for name in each.shown]
        anchor = _file(each.anchor, stimuli) if each.anchor else ""
        said = "" if each.propensity is None else each.propensity
        writer.writerow([each.id, each.anchor, *each.shown, *more, anchor, *files, *more, each.sampler, said])
    return text.getvalue().encode()


def _sides(shown: int) -> tuple[str, ...]:
    """Names of the places from left to right.

    >>> _sides(2), _sides(4)
    (('left', 'right'), ('shown_1', 'shown_2', 'shown_3', 'shown_4'))
    """
    return SIDES.get(shown) or tuple(f"shown_{number}" for number in range(1, shown + 1))


def _file(name: str, stimuli: Stimuli) -> str:
    """The file of an object, or its text."""
    shown = stimuli.shown.get(name)
    if shown is None:
        return name
    return shown.file.name if shown.file is not None and shown.media != "text/plain" else shown.text


def _html(name: str, stimuli: Stimuli) -> str:
    """What a page shows of an object."""
    media, shown = stimuli.shown[name].media if name in stimuli.shown else "", html.escape(_file(name, stimuli))
    if media.startswith("image/"):
        return f'<img src="{shown}" alt="">'
    return f'<audio controls src="{shown}"></audio>' if media.startswith("audio/") else shown


PIECE = 256 << 10
EXPORTING = 600.0  # seconds that the exports may take

File = tuple[str, Iterable[bytes]]


def zipped(files: Iterable[File]) -> Iterator[bytes]:
    """A ZIP of files, (name, pieces of its content), as pieces; memory O(the largest piece)."""
    pipe, now = _Pipe(), time.localtime()[:6]
    with zipfile.ZipFile(pipe, "w") as made:  # type: ignore[call-overload]  # needs no more than `write` and `flush`
        for name, pieces in files:
            entry = zipfile.ZipInfo(name, now)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with made.open(entry, "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
                    yield pipe.taken()
    yield pipe.taken()


class _Pipe:
    """What was written and not yet taken."""

    def __init__(self) -> None:
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        self._held += data
        return len(data)

    def flush(self) -> None:
        """Nothing to do."""

    def taken(self) -> bytes:
        held, self._held = bytes(self._held), bytearray()
        return held


def lines(of: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends, in pieces."""
    held = bytearray()
    for line in of:
        held += line + b"\n"
        if len(held) > PIECE:
            yield bytes(held)
            held.clear()
    yield bytes(held)


def objects(stimuli: Stimuli) -> Iterator[File]:
    """The table of objects, and their files."""
    text, files = io.StringIO(), {}
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("object", "file", "text"))
    for number, (name, shown) in enumerate(list(stimuli.shown.items()), 1):
        file = ""
        if shown.file is not None:
            file = shown.file.name if stimuli.folder else f"{number:06d}{shown.file.suffix.lower()}"
            files[file] = shown.file
        writer.writerow((name, file, shown.text))
    yield "objects.csv", [text.getvalue().encode()]
    for file, path in files.items():
        if path.exists():
            yield f"objects/{file}", _pieces(path)


def exports(state: Path) -> Iterator[File]:
    """What `export` writes of the newest snapshot, by a process of its own; nothing where there is no snapshot."""
    with tempfile.TemporaryDirectory(prefix="stream-engine-download-") as folder:
        command = [sys.executable, "-m", "stream_engine", "export", "--state", str(state), "--out", folder]
        done = subprocess.run([*command, "--format", "csv"], capture_output=True, timeout=EXPORTING)
        if done.returncode:
            yield "exports/none.txt", [done.stderr[-2000:] or b"no exports\n"]
            return
        for path in sorted(Path(folder).iterdir()):
            yield f"exports/{path.name}", _pieces(path)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
