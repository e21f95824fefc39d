"""How many participants were checked and flagged: see `evaluation.participants`."""

from collections.abc import Iterator

import numpy as np

from stream_engine.evaluation.participants import LEAST
from stream_engine.findings import GAP, WARNING, Finding
from stream_engine.findings.facts import Facts
from stream_engine.findings.words import count, percent, some

FEWEST = 5  # participants, below which flags are not counted: a count could identify a person


def participants(facts: Facts) -> Iterator[Finding]:
    """How many participants were checked and flagged; names are shown only on request."""
    found = facts.participants
    if found is None:
        if facts.summary["comparisons"]:
            text = "There is no participant column, so guessing cannot be assessed."
            yield Finding("participants_unknown", text, level=GAP, command="stream-engine preview SOURCE")
        return
    people = len(found.names)
    figures = {"participants": people, "flagged": found.flagged}
    if people < FEWEST:
        yield Finding(
            "participants", f"{some(people, 'participant')} answered, too few to compare with each other.", figures
        )
        return
    judged = int((np.minimum(found.responses, np.isfinite(found.accuracy) * found.responses) >= LEAST).sum())
    if facts.beats_chance is False:
        text = "Individual participants cannot be assessed, because no model predicts the answers better than chance."
        yield Finding("participants_gated", text, {"participants": people})
    elif found.flagged:
        share = percent(found.flagged / people, 0)
        were = "was" if found.flagged == 1 else "were"
        text = f"{count(found.flagged)} of {some(people, 'participant')} ({share}) {were} flagged: answers at chance "
        text += "level, or failed catch trials."
        command = f"stream-engine report --state {facts.directory} --workers --out report.html"
        yield Finding("participants_flagged", text, figures, command, WARNING)
    else:
        text = (
            f"No participant was flagged as guessing ({count(judged)} of {count(people)} gave enough answers to be "
            "checked)."
        )
        yield Finding("participants", text, figures | {"checked": judged})
