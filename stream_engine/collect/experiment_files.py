"""Questions for an experiment elsewhere: a timeline for jsPsych (JSON), a conditions file for PsychoPy (CSV).

Answers made with them come back as files: `run` reads both, for the fields are those of events. A jsPsych trial carries
its event's fields in `data`, to which its plugin adds `response`; a PsychoPy row has them as columns.
"""

import csv
import io
from collections.abc import Sequence
from typing import Any

import msgspec

from stream_engine.collect.screens import Asked
from stream_engine.collect.stimuli import Stimuli


def as_jspsych(asked: Sequence[Asked], stimuli: Stimuli) -> bytes:
    """A JSON array of trials: `stimulus` and `choices` hold what is shown, `data` what comes back with the response."""
    trials: list[dict[str, Any]] = []
    for each in asked:
        data = {key: value for key, value in each.public().items() if key != "choose"}
        files = {name: _file(name, stimuli) for name in each.objects()}
        trials.append(
            {
                "stimulus": files[each.anchor] if each.anchor else "",
                "choices": [files[name] for name in each.shown],
                "data": data,
            }
        )
    return msgspec.json.encode(trials)


def as_csv(asked: Sequence[Asked], stimuli: Stimuli) -> bytes:
    """One row a question: id, type, anchor, the objects from left to right, their files, sampler, propensity."""
    most = max((len(each.shown) for each in asked), default=2)
    names = [f"shown_{n}" for n in range(1, most + 1)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "type", "anchor", *names, "anchor_file", *(f"{name}_file" for name in names), "sampler"])
    for each in asked:
        more = [""] * (most - len(each.shown))
        files = [_file(name, stimuli) for name in each.shown]
        anchor = _file(each.anchor, stimuli) if each.anchor else ""
        writer.writerow([each.id, each.type, each.anchor, *each.shown, *more, anchor, *files, *more, each.sampler])
    return text.getvalue().encode()


def _file(name: str, stimuli: Stimuli) -> str:
    """The file of an object, or its text."""
    shown = stimuli.shown.get(name)
    if shown is None:
        return name
    return shown.file.name if shown.file is not None and shown.media != "text/plain" else shown.text
