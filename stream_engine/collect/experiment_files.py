"""Questions for an experiment elsewhere: a timeline for jsPsych (JSON), a conditions file for PsychoPy (CSV).

What jsPsych's button responses write is read without an option: a trial carries `anchor`, `left`, `right` in its data,
and `response` is the number of the button from 0. PsychoPy writes the columns of its conditions beside the key that was
pressed: `--type pick --columns shown=left|right,chosen=key_resp.keys --answers-by position`.
"""

import csv
import html
import io
from collections.abc import Sequence
from typing import Any

import msgspec

from stream_engine.collect.screens import Screen
from stream_engine.collect.stimuli import Stimuli

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
