"""Participants whose responses are those of another one (`evaluation.copied_participants`)."""

import shlex
from collections.abc import Iterator

from stream_engine.data.numbers_in_words import amount
from stream_engine.evaluation.copied_participants import CopiedParticipant
from stream_engine.report.findings import WARNING, Finding
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.report.findings.words import apa_p_value, count, listing

REASONS = {
    "questions": "hardly any other participants were asked the same questions",
    "times": "the times are the same, too",
}


def copied(facts: Facts) -> Iterator[Finding]:
    """A warning, with the command that leaves the copies out; names are shown as those of flagged participants are."""
    typed = shlex.split(facts.commands.typed)  # a run warns before it excludes
    copies = [each for each in facts.copied if f"participant={each.name}" not in typed]
    if not copies:
        return
    text = f"The same answers to the same questions: {_who(copies, facts.commands)}; {_why(copies)}. Probably one file "
    text += "was read under two names. If so, leave the copy out: accuracy, agreement and noise ceiling count it as "
    text += "answers of others, and tests can come out otherwise."
    left_out = [f"--exclude {shlex.quote(f'participant={each.name}')}" for each in copies]
    command = " ".join([facts.commands.report, *(left_out if _names(facts.commands) else ["--participants"])])
    figures = {"copied": len(copies), "responses": sum(each.responses for each in copies)}
    yield Finding("copied_participants", text, figures, command, WARNING)


def _names(commands: Commands) -> bool:
    """Whether participants are named: to who read the files, or asked for a list."""
    return bool(commands.typed) or commands.lists_participants


def _who(copies: list[CopiedParticipant], commands: Commands) -> str:
    if _names(commands):
        return listing([f"{each.name} as {each.original} ({count(each.responses)})" for each in copies])
    as_many = amount(sum(each.responses for each in copies), "response")
    return f"{amount(len(copies), 'participant')} as another one ({as_many})"


def _why(copies: list[CopiedParticipant]) -> str:
    reasons = [text for key, text in REASONS.items() if any(each.because == key for each in copies)]
    if p_values := [each.p_value for each in copies if each.p_value is not None]:
        reasons.append(f"agreement between participants does not explain this ({apa_p_value(max(p_values))})")
    return " and ".join(reasons)
