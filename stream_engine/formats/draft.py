"""A proposal on its way to a reading: which rows are questions, who answered them, and when."""

from collections import Counter
from shlex import quote

from stream_engine.formats.answered_rows import (
    ANSWERS,
    MAX_LISTED_VALUES,
    answers_filter,
    have_all,
    state_of,
    where_filled,
)
from stream_engine.formats.answers import MIN_FIT
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.changed_names import rounded_ids
from stream_engine.formats.counted_rows import counts_of_rows
from stream_engine.formats.doubtful_rows import who_tried
from stream_engine.formats.event_fields import NO_COLUMN, SCREEN, filter_of
from stream_engine.formats.expected_answers import expected_answers
from stream_engine.formats.explanation import Rival, is_constant, row_roles
from stream_engine.formats.field_values import number_of, quoted
from stream_engine.formats.participant_columns import (
    like_participants,
    one_row_each,
    participant,
    rounded_participants,
    without_name,
)
from stream_engine.formats.rank_columns import either_of_ranks
from stream_engine.formats.reading import IN_DOUBT, Decision, Obstacle, Proposal, Reading
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.record_filters import filters_as_text, keeps, matching
from stream_engine.formats.response_times import response_times, seconds_of_no_date, text_of_no_date
from stream_engine.formats.screens import Comparison, screens, seems_of_screens, together_by
from stream_engine.formats.trial_filters import Filters, catch_trials, distinguishing_filters, practice
from stream_engine.formats.unusable_rows import unusable
from stream_engine.formats.vocabulary import in_one_word

MAX_LEFT_OUT = 0.1  # share of the rows with objects and an answer, by a filter that says of none what it is


class Draft:
    """A proposal on its way to a reading: which records are questions, and who answered them when."""

    def __init__(self, records: Records, proposal: Proposal, wide: bool):
        self.records, self.proposal, self.wide = records, proposal, wide
        self.fields, self.answer = proposal.fields, proposal.answer
        self.inputs = [name for names in self.fields.values() for name in names]
        self.objects = [name for name in self.inputs if name not in self.answer.columns]
        self.states = [state_of(records, row, self.fields, self.answer) for row in range(records.size)]
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
            filters, self.doubt = answers_filter(self.records, self.states, self.answer, self.doubt)
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
        complete = have_all(questions, self.objects)
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
        elif not self.wide and not self.is_own and (fact := without_name(questions)):
            self.decisions.append(Decision(IN_DOUBT, "none", fact))
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
        likely = screens(questions, rows, self.roles(), anchors[0], far_column)
        if likely is None:
            return
        self.columns[SCREEN] = (likely.column,)
        together = f"all answers of a participant about {together_by(likely.column, far_column)} are held out together"
        why = f"{likely.n_screens:,} screens in the {questions.size:,} rows that were looked at: {together}"
        if likely.is_called_so:
            self.decisions.append(Decision("screens", likely.column, why))
        else:
            numbered = likely.column not in (*anchors, far_column)
            text = f"{seems_of_screens(questions.size, likely)}, so {together} (that is what {SCREEN}={likely.column} "
            text += "says). "
            text += f"Column {likely.column} numbers the screens; " if numbered else ""
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
