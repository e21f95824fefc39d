"""A proposal becomes a reading: which records are questions, who answered them, and when; or an obstacle."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from shlex import quote

from stream_engine.formats.answers import MIN_FIT, Answer
from stream_engine.formats.asked_direction import (
    EITHER_END,
    Contradiction,
    asked_sign,
    contradicted,
    doubtful_questions,
    sign_in_name,
)
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.counted_rows import counts_of_rows
from stream_engine.formats.doubtful_rows import dates_of_names, rounded_ids, who_tried
from stream_engine.formats.event_fields import NO_COLUMN, SCREEN, filter_of, place_of
from stream_engine.formats.expected_answers import expected_answers
from stream_engine.formats.explanation import Rival, is_constant, row_roles, unexplained
from stream_engine.formats.field_values import number_of, quoted
from stream_engine.formats.key_mappings import KeyMapping, codes_of, key_mapping
from stream_engine.formats.participant_columns import like_participants, one_row_each, participant, rounded_participants
from stream_engine.formats.question_texts import UNKNOWN
from stream_engine.formats.rank_columns import either_of_ranks
from stream_engine.formats.reading import FLIPPED, IN_DOUBT, Decision, Obstacle, Proposal, Ranked, Reading, flipped
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.record_filters import filters_as_text, keeps, matching
from stream_engine.formats.response_times import response_times, seconds_of_no_date, text_of_no_date
from stream_engine.formats.screens import Comparison, screens, seems_of_screens, together_by
from stream_engine.formats.shown_orders import listed, shown_order
from stream_engine.formats.trial_filters import (
    Filters,
    catch_trials,
    distinguishing_filters,
    practice,
)
from stream_engine.formats.unusable_rows import unusable
from stream_engine.formats.vocabulary import PARTICIPANTS, in_one_word

MAX_OTHERS = 0.6  # share of the answers that may be no answers, and are named
MAX_LISTED_VALUES = 5  # of a column that are named
MAX_LEFT_OUT = 0.1  # share of the rows with objects and an answer, by a filter that says of none what it is
MAX_TIMEOUTS = 0.2  # share of the answers that are -1 where that is taken for none
_NO_ANSWER = frozenset(
    ("timeout", "timed out", "no response", "no_response", "noresponse", "none", "null", "", "space", "escape", "-1")
)


class _Draft:
    """A proposal on its way to a reading: which records are questions, and who answered them when."""

    def __init__(self, records: Records, proposal: Proposal, wide: bool):
        self.records, self.proposal, self.wide = records, proposal, wide
        self.fields, self.answer = proposal.fields, proposal.answer
        self.inputs = [name for names in self.fields.values() for name in names]
        self.objects = [name for name in self.inputs if name not in self.answer.columns]
        self.states = [_state(records, row, self.fields, self.answer) for row in range(records.size)]
        self.counts = Counter(self.states)
        self.is_own = proposal.kind == "triplet" and all(names == (field,) for field, names in self.fields.items())
        self.columns, self.filters = dict(self.fields), dict[str, str]()
        self.doubt = self.answer.doubt or proposal.doubt
        self.participant: Column | None = None
        self.decisions = [Decision("objects", ", ".join(self.objects), proposal.why)]
        named = ", ".join(self.answer.columns)
        if named:
            why = self.answer.why or f"it names one of those shown ({self.answer.by})"
            self.decisions.append(Decision("answer", named, why))
        if proposal.farther:
            self.decisions.append(Decision("direction", "farther", f"{named or 'the names'} name the farther object"))

    def exclude_other_records(self) -> bool:
        """Filter out what is no question; False where it is too much, and nothing marks it."""
        if not self.counts["other"]:
            return True
        is_question = [state in ("fits", "catch") for state in self.states]
        filters = distinguishing_filters(self.records, is_question, [state == "other" for state in self.states])
        if filters is None and self.answer.columns:
            filters, self.doubt = _with_answers(self.records, self.states, self.answer, self.doubt)
        else:
            self._doubt_other_records(filters)
        if filters is None:
            return self.counts["other"] <= (1 - MIN_FIT) * self.records.size
        self.filters |= filters.where
        self.decisions.append(Decision(filters.topic, filters_as_text(filters.where), filters.why))
        return True

    def _doubt_other_records(self, filters: Filters | None) -> None:
        """Say of a filter that it leaves out many rows with all objects and an answer, or all of some participants."""
        if filters is None or filters.topic != "questions":
            return
        other, fits = self.counts["other"], self.counts["fits"]
        who = participant(self.records, self.wide)
        states = [*zip(who.texts, self.states)] if who is not None else []
        asked = {text for text, state in states if state in ("fits", "catch")}
        others = Counter(text for text, state in states if state == "other" and text and text not in asked)
        lost = [text for text, n_rows in others.items() if n_rows > 1]
        if not lost and other <= MAX_LEFT_OUT * (fits + other):
            return
        column = self.records.columns[self.answer.columns[0]] if len(self.answer.columns) == 1 else None
        texts = Counter(text for text, state in zip(column.texts, self.states) if state == "other") if column else {}
        answers = f" have other answers ({', '.join(map(str, [*texts][:MAX_LISTED_VALUES]))})" if texts else " differ"
        people = f", all of {', '.join(lost[:MAX_LISTED_VALUES])}{', …' if len(lost) > MAX_LISTED_VALUES else ''},"
        fact = f"{other:,} of {fits + other:,} rows with objects and an answer{people if lost else ''}{answers}, and "
        fact += f"{filters_as_text(filters.where)} would leave them out"
        if lost:
            self.doubt = self.doubt or fact
        else:
            self.decisions.append(Decision(IN_DOUBT, "left out", f"{fact}: are they no questions?"))

    def other_spellings(self) -> str:
        """What to say of answers that a filter would leave out, and that differ from accepted ones in spelling."""
        if len(self.answer.columns) != 1 or not any(decision.topic == "no answers" for decision in self.decisions):
            return ""
        column = self.records.columns[self.answer.columns[0]]
        names = {text for name in self.objects for text in self.records.columns[name].items}
        accepted = {in_one_word(text): text for text in self.answer.accepted or names}
        others = {text for text, state in zip(column.texts, self.states) if state == "other" and text} - names
        others = {text for text in others if number_of(text, text=True) is None}
        alike = sorted(text for text in others if in_one_word(text) in accepted and text not in accepted.values())
        if not alike or not in_one_word(alike[0]):
            return ""
        one = accepted[in_one_word(alike[0])]
        return f"column {column.name} has {alike[0]!r} beside {one!r}: next: write what is the same in the same way"

    def exclude_empty_records(self, questions: Records) -> Records:
        """The questions without those that lack an object or an answer, and tell how many these are."""
        needed = [name for name in self.inputs if self.answer.by != "flag" or name not in self.answer.columns]
        where = where_filled(questions, needed, self.answer.columns[0] if self.wide and self.answer.columns else None)
        if not where:
            return questions
        complete = _objects(questions, self.objects)
        asked = questions.select(row for row, is_complete in enumerate(complete) if is_complete)
        filled = matching(questions, where)
        silent = asked.size - matching(asked, where).size
        for key, wanted in where.items():
            before = [self.filters[key]] if key.endswith("!=") and key in self.filters else []
            self.filters[key] = LIST_SEPARATOR.join([wanted, *before])
        excluded = questions.size - filled.size
        why = f"{excluded:,} of {questions.size:,} rows, of which {silent:,} show objects and have no answer; to "
        why += "have them rejected, give the options of this reading without this filter"
        self.decisions.append(Decision("empty cells", filters_as_text(where), why))
        return filled

    def exclude_practice_and_catch_trials(self, questions: Records) -> None:
        """Filter out practice and invalid trials; let trials whose answer is known judge the participant."""
        trials = self.varying(questions)
        of_trials = [practice(trials, self.objects), catch_trials(trials, self.fields, self.is_own)]
        others = matching(questions, {key: text for some in of_trials if some for key, text in some.where.items()})
        expected = expected_answers(others, self.fields, self.answer, participant(others, self.wide))
        if expected is not None and not self.wide:
            of_trials.append(expected[0])
            self.decisions += expected[1]
        certain, _ = unusable(questions, self.inputs)  # of which a participant may have nothing else
        for filters in (*of_trials, *certain):
            if filters is not None:
                self.filters |= filters.where
                self.columns |= filters.columns
                self.doubt = self.doubt or filters.doubt
                excluded = questions.size - matching(questions, filters.where).size
                why = f"{excluded:,} of {self.rows(questions)}; {filters.why}" if excluded else filters.why
                choice = filters_as_text(filters.where) or "judge the participant"
                self.decisions.append(Decision(filters.topic, choice, why))

    def say_what_is_in_doubt(self, questions: Records) -> None:
        """Name the rows that count although a column may say that they should not: unfinished, checks not passed."""
        seen = {tuple[int, ...]()}
        for filters in unusable(questions, self.inputs)[1]:
            (key, wanted), *_ = *filters.where.items(), ("", "")
            where = {key: wanted} if key else {}
            kept = [row for row, keep in enumerate(keeps(questions, where)) if not keep]
            if tuple(kept) in seen and key:
                continue
            seen.add(tuple(kept))
            counted = f"{len(kept):,} of {self.rows(questions)} count although " if kept else "rows count although "
            advice = f"; to leave them out: --where {quote(filters_as_text(where))}" if where else ""
            self.decisions.append(Decision(IN_DOUBT, "counted", f"{counted}{filters.why}{advice}"))

    def rows(self, questions: Records) -> str:
        """How many rows were looked at, in words."""
        return f"{questions.size:,} rows{' that were looked at' if self.records.n_later else ''}"

    def varying(self, questions: Records) -> Records:
        """The questions without columns that are about the participant alone: no trial differs from others by them."""
        if (who := participant(questions, self.wide)) is None:
            return questions
        columns = questions.columns.items()
        return questions._replace(
            columns={name: column for name, column in columns if name in self.inputs or not is_constant(column, who)}
        )

    def add_participant_and_times(self, questions: Records) -> None:
        """Give roles to the columns that say who answered, and when or how fast."""
        self.participant = participant(questions, self.wide)
        if self.participant is not None:
            name, people = self.participant.name, len(self.participant.distinct)
            self.columns["worker"] = (name,)
            self.decisions.append(Decision("participant", name, f"{people:,} in {questions.size:,} questions"))
        elif not self.is_own and (rounded := rounded_participants(questions, self.roles())) is not None:
            why = f"no participants are read: {rounded_ids(rounded)[0]}; if no two became one, add participant="
            why += f"{rounded.name} to --columns"
            self.decisions.append(Decision(IN_DOUBT, "none", why))
        elif not self.wide and not self.is_own and (alike := like_participants(questions, self.roles())) is not None:
            why = f"no participants are read, and {alike.name} ({len(alike.distinct):,} values) looks like them: "
            why += f"if it says who answered, add participant={alike.name} to --columns"
            self.decisions += [
                Decision(IN_DOUBT, "none", text) for text in (why, *who_tried(alike), *rounded_ids(alike))
            ]
        elif not self.wide and not self.is_own and (one_each := one_row_each(questions)) is not None:
            why = f"{one_each.name} differs in {len(one_each.distinct):,} of {questions.size:,} rows (filled in "
            why += "automatically, or one answer of each?), and is not read as participants: "
            self.decisions.append(
                Decision(
                    IN_DOUBT, "none", f"{why}if it says who answered, add participant={one_each.name} to --columns"
                )
            )
        if not self.wide and (times := response_times(questions, self.varying(questions).columns)) is not None:
            field, column, why = times
            self.columns[field] = (column.name,)
            self.decisions.append(Decision("response times", f"{column.name}, in {field}", why))
        why = ""
        if "time" not in self.inputs and (largest := seconds_of_no_date(questions)) is not None:
            why = f"up to {largest:g}, it is no date; as response times: time=-,seconds=time (or milliseconds)"
        elif "time" not in self.inputs and (text := text_of_no_date(questions)) is not None:
            why = f"{quoted(text)} is neither RFC 3339 (2024-05-01T12:00:00Z) nor epoch seconds"
        if why:
            self.columns["time"] = (NO_COLUMN,)
            self.decisions.append(Decision("time", "not used", why))

    def add_counts(self, questions: Records) -> Obstacle | None:
        """Read how often each row was answered so, where its event can have counts; else what to do about them."""
        counts = counts_of_rows(questions, self.inputs, self.roles())
        if self.wide or counts is None or {"n_near", "votes", "rank"} & self.columns.keys():
            return None
        often = Rival(counts, f"seems to say how often each of {questions.size:,} different answers was given")
        rows = f"write one row for each answer, in pandas: table.loc[table.index.repeat(table[{counts.name!r}])]"
        if self.participant is not None:
            fact = f"{often.fact}, and each counts once: if so, {rows}"
            self.decisions.append(Decision(IN_DOUBT, "counted", fact))
        elif self.proposal.kind in ("triplet", "quadruplet") and "chosen" not in self.columns:
            self.columns["n_near"] = (counts.name,)
            self.decisions.append(Decision("counts", counts.name, often.fact))
        else:
            rows += ".to_csv('answers.csv', index=False), then stream-engine run answers.csv --state DIR"
            return Obstacle(f"{often.fact}: {rows}", often, self.reading())
        return None

    def add_screens(self, questions: Records) -> None:
        """Name the column of screens, where rows are comparisons of one screen, and say so."""
        if self.wide or "anchor" not in self.fields:
            return
        who = [None] * questions.size if self.participant is None else questions.columns[self.participant.name].texts
        rows: list[Comparison | None] = []
        for row in range(questions.size):
            anchor, _, near, far = row_roles(questions, row, self.fields, self.answer)
            if self.proposal.farther:
                near, far = far, near
            is_one = len(anchor) == len(near) == len(far) == 1
            rows.append(Comparison(who[row], anchor[0], near[0], far[0]) if is_one else None)
        anchors, far_column = self.fields["anchor"], "".join(self.fields.get("far", ()))
        found = screens(questions, rows, self.roles(), anchors[0], far_column)
        if found is None:
            return
        self.columns[SCREEN] = (found.column,)
        together = f"all answers of a participant about {together_by(found.column, far_column)} are held out together"
        why = f"{questions.size:,} rows are comparisons of {found.n_screens:,} screens: {together}"
        if found.is_called_so:
            self.decisions.append(Decision("screens", found.column, why))
        else:
            numbered = found.column not in (*anchors, far_column)
            text = f"{seems_of_screens(questions.size, found)}, so {together} (that is what {SCREEN}={found.column} "
            text += "says). "
            text += f"Column {found.column} numbers the screens; " if numbered else ""
            text += "" if numbered else f"If a column numbers the screens, name it: {SCREEN}=COLUMN in --columns; "
            text += "if each row was answered by itself: "
            self.decisions.append(Decision(IN_DOUBT, SCREEN, f"{text}{SCREEN}={NO_COLUMN}"))

    def say_what_ranks_are(self, questions: Records) -> None:
        """Say of columns of ranks that they could be numbers of objects, or ask where nothing decides it."""
        who = "" if self.participant is None else self.participant.name
        if (either := either_of_ranks(questions, self.fields, who)) is None:
            return
        if either.are_ranks:
            self.decisions.append(Decision("ranks", ", ".join(self.fields["rank"]), either.text))
        else:
            self.doubt = self.doubt or either.text

    def identical_objects(self) -> Obstacle | None:
        """What to say where an object is compared with itself in many rows, and nothing calls them catch trials; and
        the readings of which one judges participants by them, and the other rejects them."""
        same, size, cut = self.counts["catch"], self.records.size, self.records.cut
        if same <= (1 - MIN_FIT) * size or "catch" in self.columns or self.is_own:
            return None
        fact = f"in {same:,} of {size + cut:,} rows an object is compared with itself: catch trials, or a mistake?"
        fact += f" {cut:,} further rows are rejected, because they lack cells or have too many." if cut else ""
        reading, anchor = self.reading(), self.fields.get("anchor", ())
        if not anchor:
            return Obstacle(fact, offers=(reading,))
        fact += f" With catch={anchor[0]} in --columns, they judge the participant and are excluded; without it, they "
        fact += "are rejected"
        return Obstacle(fact, offers=(reading._replace(columns={**reading.columns, "catch": anchor}), reading))

    def roles(self) -> set[str]:
        """The columns that the reading uses."""
        sources = {filter_of(*item).source for item in self.filters.items()}
        return {name for names in self.columns.values() for name in names} | sources

    def reading(self) -> Reading:
        """What was decided so far."""
        answered = next((field for field in self.fields if field in ANSWERS), "")
        separators = {self.records.separators[name] for name in self.inputs if name in self.records.separators}
        own = {(field,) for field in self.columns if self.is_own and field != SCREEN}  # are read without options
        columns = {field: names for field, names in self.columns.items() if names not in own or names != (field,)}
        return Reading(
            self.proposal.kind if not self.is_own or self.doubt else "",
            columns,
            self.answer.by if self.answer.columns else "name",
            {answered: self.answer.codes} if self.answer.codes else {},
            self.filters,
            tuple(self.decisions),
            self.doubt,
            "farther" if self.proposal.farther else "nearer",
            separators.pop() if separators else None,
        )

    def rank(self) -> tuple[int, ...]:
        """The rank of the proposal; before it, whether every record is a question."""
        excluding_others = any(decision.topic in ("questions", "no answers") for decision in self.decisions)
        return int(self.counts["other"] == 0 or not excluding_others), *self.proposal.rank


def completed(
    records: Records, proposal: Proposal, wide: bool, questions: Sequence[str]
) -> tuple[list[Ranked], Obstacle | None]:
    """The readings that come of a proposal, with its filters, its participant and its response times; else why it is
    not taken, where that is worth saying. `questions`: texts that ask, apart from the cells."""
    draft = _Draft(records, proposal, wide)
    if not draft.counts["fits"] or not draft.exclude_other_records():
        return [], None
    if fact := draft.other_spellings():
        return [], Obstacle(fact)
    trials = matching(records, draft.filters)
    if not draft.is_own:  # what the engine's own format lacks is rejected, and reported
        if fact := _half_empty(trials, draft.fields, draft.answer):
            return [], Obstacle(fact)
        trials = draft.exclude_empty_records(trials)
    trials = matching(trials, {key: value for key, value in draft.filters.items() if key.endswith("!=")})
    trials = trials.select(row for row, complete in enumerate(_objects(trials, draft.inputs)) if complete)
    draft.exclude_practice_and_catch_trials(trials)
    asked = matching(trials, draft.filters)
    draft.say_what_is_in_doubt(asked)
    draft.add_participant_and_times(trials)
    fits = asked.select(row for row in range(asked.size) if _state(asked, row, draft.fields, draft.answer) == "fits")
    draft.add_screens(fits)
    counted = draft.add_counts(fits)
    if asked.size and (obstacle := draft.identical_objects()) is not None:
        return [], obstacle
    if proposal.kind == "ranking" and "rank" in proposal.fields:
        draft.say_what_ranks_are(fits)
    reading = draft.reading()
    if (gaps := _with_gaps(trials)) is not None and draft.participant is None and not wide:
        return [], Obstacle(gaps.fact, gaps, reading)
    parts = _by_key_mapping(fits, draft, reading, questions)
    if len(parts) > 1:
        by_rows = parts[0].where != parts[1].where
        return [], Obstacle(parts[0].doubt, offers=tuple(parts), by_rows=by_rows)
    reading = parts[0]
    rival = unexplained(fits, draft.fields, draft.answer, draft.roles(), draft.participant)
    if rival is not None:
        if other_order := _in_other_order(fits, draft, rival.column):
            return [], Obstacle(rival.fact, offers=(reading, _with_objects(reading, other_order)))
        offers, note = _arranged(fits, draft, rival.column, reading)
        return [], Obstacle(rival.fact, rival, reading, offers, len(offers) > 1, note)
    if counted is not None:
        return [], counted
    if other := contradicted(fits, proposal.kind, draft.roles(), proposal.farther, questions):
        return [], Obstacle(other.fact, offers=_both_directions(reading, other), by_rows=bool(other.texts))
    if proposal.kind in ("pick", "quadruplet") and draft.answer.columns:
        reading, other = _asked_in_words(fits, draft, reading, questions)
        if other is not None:
            return [], Obstacle(other.fact, offers=_unsure_directions(reading, other))
    ranked = [(draft.rank(), reading)]
    if draft.doubt and not (draft.answer.doubt or proposal.doubt or not practice(draft.varying(trials), draft.objects)):
        doubtful = {key for key, value in draft.filters.items() if draft.doubt.startswith(filter_of(key, value).source)}
        where = {key: value for key, value in draft.filters.items() if key not in doubtful}
        ranked.append((draft.rank(), reading._replace(where=where)))
    return ranked, None


def _by_key_mapping(records: Records, draft: _Draft, reading: Reading, questions: Sequence[str]) -> list[Reading]:
    """The reading, with what another column says that keys mean, or a text beside the cells; one for each part of the
    rows where it differs, or for each way in which it could be meant."""
    names = next((draft.fields[field] for field in ("shown", "objects") if field in draft.fields), ())
    answered = next((field for field in ANSWERS if field in draft.fields), "")
    if draft.answer.by not in ("position", "index") or len(draft.answer.columns) != 1:
        return [reading]
    answers = {*draft.answer.codes_of(records.columns[draft.answer.columns[0]])}
    answered_name = draft.answer.columns[0]
    texts = [("the header", answered_name), *(("the header", text) for text in questions)]
    texts += [(beside.place, beside.text) for beside in records.beside if beside.kind != "name"]
    mapping = key_mapping(records, names, answers, draft.roles(), texts)
    if mapping is None or not mapping.differs(draft.answer.by, draft.answer.codes, names):
        return [reading] if mapping is None or not mapping.doubt else _in_other_codes(mapping, draft, reading, answers)
    fact = f"{mapping.name} ({', '.join(mapping.means)}) says what {answered_name} means"
    if mapping.doubt:
        return _in_other_codes(mapping, draft, reading, answers)
    coded = [
        (mapping.filters(texts, draft.participant), {answered: codes_of(means, names)})
        for texts, means in mapping.parts
    ]
    if len(coded) == 1:
        decision = Decision("answer", ", ".join(draft.answer.columns), fact)
        evidence = [decision if each.topic == "answer" else each for each in reading.evidence]
        return [reading._replace(codes=coded[0][1], answers_by="position", evidence=tuple(evidence), doubt="")]
    return [
        reading._replace(
            codes=codes,
            answers_by="position",
            where={**reading.where, **where},
            doubt=f"{fact}, and this differs between rows",
        )
        for where, codes in coded
    ]


def _in_other_codes(mapping: KeyMapping, draft: _Draft, reading: Reading, answers: Set[str]) -> list[Reading]:
    """The reading, and the one in which two answers mean the other objects."""
    names = next((draft.fields[field] for field in ("shown", "objects") if field in draft.fields), ())
    answered = next(field for field in ANSWERS if field in draft.fields)
    first = 0 if draft.answer.by == "index" else 1
    places = {answer: place_of(draft.answer.codes.get(answer, answer), names, first) for answer in answers}
    text = next(iter(mapping.means))
    fact = f'{mapping.name} says "{text[:80]}", which {mapping.doubt}: what does {draft.answer.columns[0]} mean?'
    if len(names) != 2 or {*places.values()} != {0, 1}:
        doubt = Decision(IN_DOUBT, "read", f"{fact} Compare the first answers with what was answered")
        return [reading._replace(evidence=(*reading.evidence, doubt))]
    codes = codes_of({answer: 1 - place for answer, place in places.items()}, names)
    reading = reading._replace(doubt=fact)
    return [reading, reading._replace(answers_by="position", codes={answered: codes})]


def _in_other_order(records: Records, draft: _Draft, rival: Column) -> tuple[str, ...]:
    """Columns with the objects of each row in another order, with the rival among them, if answers are places."""
    shown = next((draft.fields[field] for field in ("objects", "shown") if field in draft.fields), ())
    if draft.answer.by == "name" or len(shown) < 2:
        return ()
    stem = rival.words[:-1]
    others = [column for column in records.columns.values() if column.words[:-1] == stem and column.name not in shown]
    if len(others) != len(shown):
        return ()
    rows = range(records.size)
    sets = [[{records.columns[name].texts[row] for name in names} for row in rows] for names in (shown, _names(others))]
    return _names(others) if sets[0] == sets[1] else ()


def _arranged(records: Records, draft: _Draft, column: Column, reading: Reading) -> tuple[tuple[Reading, ...], str]:
    """The readings in which answers are places in the order that a column says objects were shown in: one, or one for
    the rows of each order; and a note on them."""
    names = next((draft.fields[field] for field in ("objects", "shown") if field in draft.fields), ())
    if draft.answer.by not in ("position", "index") or len(draft.answer.columns) != 1 or len(names) < 2:
        return (), ""
    answers = sorted(draft.answer.codes_of(records.columns[draft.answer.columns[0]]))
    listings = [
        records.separators.get(column.name, "") if len(value) > 1 else listed(value[0], offered)
        for row, value in enumerate(column.values)
        if value
        for offered in [[text for name in names for text in records.columns[name].values[row] or ()]]
        if len(value) == 1 or sorted(value) == sorted(offered)
    ]
    is_list = len(listings) == records.size and len({*listings}) == 1 and not draft.answer.codes
    if is_list and (listings[0] or LIST_SEPARATOR in "".join(filter(None, column.texts))):
        return (_with_objects(reading, (column.name,))._replace(separator=listings[0] or None),), ""
    order = shown_order(records, column, names)
    if order is None:
        return (), ""
    answered = next(field for field in ANSWERS if field in draft.fields)
    first = 0 if draft.answer.by == "index" else 1
    places = {answer: place_of(draft.answer.codes.get(answer, answer), names, first) for answer in answers}
    parts = []
    for where, shown in order.parts:
        codes = codes_of({answer: shown[place] for answer, place in places.items()}, names)
        parts.append(reading._replace(answers_by="position", codes={answered: codes}, where={**reading.where, **where}))
    return tuple(parts), order.note


def _names(columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def _with_objects(reading: Reading, names: tuple[str, ...]) -> Reading:
    """The reading with the objects in these columns instead."""
    field = "objects" if "objects" in reading.columns else "shown"
    return reading._replace(columns={**reading.columns, field: names})


def _both_directions(reading: Reading, other: Contradiction) -> tuple[Reading, ...]:
    """The reading, and the one in the other direction; each of its rows, where some ask for one and some for the
    other."""
    if not other.texts:
        return reading, flipped(reading)
    texts = LIST_SEPARATOR.join(other.texts)
    rest = reading._replace(where={**reading.where, f"{other.column}!=": texts})
    return rest, flipped(reading)._replace(where={**reading.where, other.column: texts})


def _unsure_directions(reading: Reading, other: Contradiction) -> tuple[Reading, ...]:
    """The reading, and the one in the other direction; of the rows with the question that is not certain, and the
    reading of the others, where there are others."""
    if not other.texts:
        return reading, flipped(reading)
    rest, reversed_rows = _both_directions(reading, other)
    return rest, reversed_rows._replace(answer_is=reading.answer_is), reversed_rows


def _asked_in_words(
    records: Records, draft: _Draft, reading: Reading, questions: Sequence[str]
) -> tuple[Reading, Contradiction | None]:
    """The reading, with what to say of questions that deny something or compare by words that are not known; and the
    question of which it is not certain what it asks for, if the names of the answers do not say it."""
    named = any(map(sign_in_name, draft.answer.columns))
    doubtful = doubtful_questions(records, draft.roles(), draft.answer.columns, questions)
    unsure = [question for question in doubtful if question.asked.doubt and question.asked.doubt != UNKNOWN]
    if unsure and not named:
        first = unsure[0]
        fact = f'{first.place} asks "{first.text[:80]}", which {first.asked.doubt}: {EITHER_END}'
        texts = tuple(question.text for question in unsure if question.column == first.column and first.column)
        others = {*records.columns[first.column].distinct} - {*texts} if first.column else set()
        return reading, Contradiction(fact, first.column if others else "", texts if others else ())
    if not any(question.asked.denies for question in doubtful) and (named or asked_sign(records)):
        return reading, None
    says = []
    for place, text, said, _ in doubtful:
        why = f", which {said.doubt}" if said.doubt else ""
        other_end = "farther" if reading.answer_is == "nearer" else "nearer"
        says.append(
            f'{place} asks "{text[:80]}"{why}: answers are read as the {reading.answer_is} object; if they name the '
            f"{other_end} one: {FLIPPED}"
        )
    doubts = tuple(Decision(IN_DOUBT, "read", text) for text in says[:MAX_LISTED_VALUES])
    return reading._replace(evidence=(*reading.evidence, *doubts)), None


def _with_answers(records: Records, state: list[str], answer: Answer, doubt: str) -> tuple[Filters | None, str]:
    """The filter that leaves out what is no answer, and the doubt where it might be one: "can't tell"."""
    column = records.columns[answer.columns[0]]
    others = Counter(text for text, row_state in zip(column.texts, state) if row_state == "other" and text)
    asked = sum(row_state != "empty" for row_state in state)
    n, most = others.total(), [text for text, _ in others.most_common(MAX_LISTED_VALUES)]
    if (
        len(answer.columns) > 1
        or n > MAX_OTHERS * asked
        or len(others) > MAX_LISTED_VALUES
        or LIST_SEPARATOR in "".join(most)
    ):
        return None, doubt
    quoted = ", ".join(f'"{text}"' for text in most)
    coded = answer.accepted is not None and len(answer.codes_of(column)) > 0
    nothing = all(text.casefold() in _NO_ANSWER for text in most)
    nothing = nothing and not ("-1" in others and others["-1"] > MAX_TIMEOUTS * asked)  # or a side of -1, 0, 1
    key = (
        coded
        and 10 * n <= asked
        and not any(map(str.isdecimal, most))
        and all(len(text) <= 12 and " " not in text for text in most)
        and _is_key(column)
    )
    if nothing or key:
        wanted = LIST_SEPARATOR.join(answer.codes_of(column)) if coded else ""
        where = {column.name: wanted} if coded else {f"{column.name}!=": LIST_SEPARATOR.join(most)}
        return Filters("no answers", where, f"{n:,} rows are no answers: {quoted}"), doubt
    fact = f"{n:,} of {asked:,} answers ({n / asked:.0%}) in {column.name} are {quoted}, and no object is called so"
    if dates := dates_of_names({*column.distinct}):
        fact += f" ({dates}: write them in full, as the objects are called)"
    where = {f"{column.name}!=": LIST_SEPARATOR.join(most)}
    return Filters("no answers", where, f"{n:,} of {records.size:,} rows"), fact


def _is_key(column: Column) -> bool:
    return bool({"key", "keys", "keypress", "keyboard", "press", "resp"} & set(column.words)) or all(
        len(text) == 1 or text.startswith("arrow")
        for text in column.distinct - {" "}
        if text.casefold() not in _NO_ANSWER
    )


def _half_empty(records: Records, fields: Mapping[str, tuple[str, ...]], answer: Answer) -> str:
    """What to say of questions that lack one object and have the others: a name that was taken for none."""
    objects = [name for names in fields.values() for name in names if name not in answer.columns]
    holes: Counter[str] = Counter()
    for row in range(records.size):
        empty = [
            name
            for name in objects
            if records.columns[name].values[row] is None
            and not any(text.startswith("#") for text in records.columns[name].empties)  # an error of a spreadsheet
        ]
        if len(empty) == 1 and len(objects) > 2:
            holes[empty[0]] += 1
    if len(holes) < 2 or any("{" in name for name in objects):
        return ""
    return (
        f"{holes.total():,} of {records.size:,} rows lack one object and have the others ({', '.join(holes)}): an "
        "object called NA, None or null may have been taken for a missing value; next: in pandas read_csv(..., "
        f"keep_default_na=False), or leave these rows out with --where '{next(iter(holes))}!='"
    )


def _state(records: Records, row: int, fields: Mapping[str, tuple[str, ...]], answer: Answer) -> str:
    """Whether a record is a question that `fits`, a `catch` trial, `empty`, or some `other` thing."""
    cells = {field: [records.columns[name].values[row] for name in names] for field, names in fields.items()}
    answers = [text for name in answer.columns for text in records.columns[name].values[row] or ()]
    required = [
        value for field, values in cells.items() for value in values if not (answer.by == "flag" and field in ANSWERS)
    ]
    if any(value is None for value in required):
        return "empty"
    texts = {field: [text for value in values for text in value or ()] for field, values in cells.items()}
    offered = texts.get("shown") or texts.get("ranked") or texts.get("objects") or [*texts["near"], *texts["far"]]
    if answer.by == "flag":
        answers = (
            [(records.columns[name].texts[row] or "") for name in answer.columns]
            if len(answer.columns) > 1
            else answers
        )
    if answer.columns and not answer.names(answers, offered) and "ranked" not in fields:
        return "other"
    everything = [*texts.get("anchor", ()), *offered]
    pairs = "near" in fields and len(fields["near"]) == 2
    return "fits" if len(set(everything)) == len(everything) or (pairs and len({*offered}) > 2) else "catch"


ANSWERS = ("chosen", "odd", "central")


def where_filled(records: Records, inputs: Sequence[str], answered: str | None) -> dict[str, str]:
    """Filters that leave out records without an object or an answer: as few as do; the empty answer of a wide table
    is excluded anyway."""
    filters: dict[str, str] = {}
    empty_so_far = list(range(records.size))
    for name in reversed(inputs):
        column = records.columns[name]
        empty = [row for row in empty_so_far if column.values[row] is None]
        if empty:
            empty_so_far = [row for row in empty_so_far if column.values[row] is not None]
            if name != answered or column.empties:
                filters[f"{name}!="] = LIST_SEPARATOR.join(["", *sorted(column.empties)])
    return {key: value for key, value in filters.items() if "{" not in key or not key.startswith("{")}


def _objects(records: Records, names: Sequence[str]) -> list[bool]:
    """Whether each record has all objects."""
    return [all(records.columns[name].values[row] for name in names) for row in range(records.size)]


def _with_gaps(records: Records) -> Rival | None:
    """A column of participants that most rows lack, as merged cells of a spreadsheet have it."""
    for column in records.columns.values():
        filled = sum(value is not None for value in column.values)
        called = column.name != "worker" and "".join(column.words) in PARTICIPANTS  # `worker` is read without options
        if called and len(column.distinct) > 1 and 2 * filled < records.size:
            why = f"is called like participants, and is empty in {records.size - filled:,} of {records.size:,} rows"
            return Rival(column, f"{why}: merged cells, to be filled first?")
    return None
