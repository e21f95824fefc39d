"""A proposal becomes a reading: which records are questions, who answered them, and when; or an obstacle."""

from collections.abc import Sequence

from stream_engine.formats.answered_rows import half_empty, have_all, state_of
from stream_engine.formats.asked_direction import contradicted
from stream_engine.formats.draft import Draft
from stream_engine.formats.event_fields import filter_of
from stream_engine.formats.explanation import Rival, unexplained
from stream_engine.formats.other_readings import (
    arranged,
    asked_in_words,
    both_directions,
    by_key_mapping,
    exchanged_for_some,
    in_other_order,
    unsure_directions,
    with_objects,
)
from stream_engine.formats.reading import Obstacle, Proposal, Ranked
from stream_engine.formats.record_columns import Records
from stream_engine.formats.record_filters import matching
from stream_engine.formats.trial_filters import practice
from stream_engine.formats.vocabulary import PARTICIPANTS


def completed(
    records: Records, proposal: Proposal, wide: bool, questions: Sequence[str]
) -> tuple[list[Ranked], Obstacle | None]:
    """The readings that come of a proposal, with its filters, its participant and its response times; else why it is
    not taken, where that is worth saying. `questions`: texts that ask, apart from the cells."""
    draft = Draft(records, proposal, wide)
    if not draft.counts["fits"] or not draft.exclude_other_records():
        return [], None
    if fact := draft.other_spellings():
        return [], Obstacle(fact)
    trials = matching(records, draft.filters)
    if not draft.is_own:  # what the engine's own format lacks is rejected, and reported
        if fact := half_empty(trials, draft.fields, draft.answer):
            return [], Obstacle(fact)
        trials = draft.exclude_empty_records(trials)
    trials = matching(trials, {key: value for key, value in draft.filters.items() if key.endswith("!=")})
    trials = trials.select(row for row, complete in enumerate(have_all(trials, draft.inputs)) if complete)
    draft.exclude_practice_and_catch_trials(trials)
    asked = matching(trials, draft.filters)
    draft.say_what_is_in_doubt(asked)
    draft.add_participant_and_times(trials)
    fits = asked.select(row for row in range(asked.size) if state_of(asked, row, draft.fields, draft.answer) == "fits")
    draft.add_screens(fits)
    counted = draft.add_counts(fits)
    if asked.size and (obstacle := draft.identical_objects()) is not None:
        return [], obstacle
    if proposal.kind == "ranking" and "rank" in proposal.fields:
        draft.say_what_ranks_are(fits)
    reading = draft.reading()
    if (gaps := _with_gaps(trials)) is not None and draft.participant is None and not wide:
        return [], Obstacle(gaps.fact, gaps, reading)
    if fact := exchanged_for_some(fits, draft, questions):
        return [], Obstacle(fact)
    parts = by_key_mapping(fits, draft, reading, questions)
    if len(parts) > 1:
        by_rows = parts[0].where != parts[1].where
        return [], Obstacle(parts[0].doubt, offers=tuple(parts), by_rows=by_rows)
    reading = parts[0]
    rival = unexplained(fits, draft.fields, draft.answer, draft.roles(), draft.participant)
    if rival is not None:
        if other_order := in_other_order(fits, draft, rival.column):
            return [], Obstacle(rival.fact, offers=(reading, with_objects(reading, other_order)))
        offers, note = arranged(fits, draft, rival.column, reading)
        return [], Obstacle(rival.fact, rival, reading, offers, len(offers) > 1, note)
    if counted is not None:
        return [], counted
    if other := contradicted(
        fits, proposal.kind, draft.roles(), proposal.farther, questions, draft.answer.by == "flag"
    ):
        return [], Obstacle(other.fact, offers=both_directions(reading, other), by_rows=bool(other.texts))
    if proposal.kind in ("pick", "quadruplet") and draft.answer.columns:
        reading, other = asked_in_words(fits, draft, reading, questions)
        if other is not None:
            return [], Obstacle(other.fact, offers=unsure_directions(reading, other))
    ranked = [(draft.rank(), reading)]
    if draft.doubt and not (draft.answer.doubt or proposal.doubt or not practice(draft.varying(trials), draft.objects)):
        doubtful = {key for key, value in draft.filters.items() if draft.doubt.startswith(filter_of(key, value).source)}
        where = {key: value for key, value in draft.filters.items() if key not in doubtful}
        ranked.append((draft.rank(), reading._replace(where=where)))
    return ranked, None


def _with_gaps(records: Records) -> Rival | None:
    """A column of participants that most rows lack, as merged cells of a spreadsheet have it."""
    for column in records.columns.values():
        filled = sum(value is not None for value in column.values)
        called = column.name != "worker" and "".join(column.words) in PARTICIPANTS  # `worker` is read without options
        if called and len(column.distinct) > 1 and 2 * filled < records.size:
            why = f"is called like participants, and is empty in {records.size - filled:,} of {records.size:,} rows"
            return Rival(column, f"{why}: merged cells, to be filled first?")
    return None
