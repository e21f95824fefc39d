"""Answers of which only is known whether they were right: which object was chosen depends on another column."""

from stream_engine.formats.answers import MIN_FIT, answers_of, is_flags, is_textual, named_share, shown_in
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.event_fields import place_of
from stream_engine.formats.field_values import flag_of
from stream_engine.formats.participant_columns import participant
from stream_engine.formats.reading import Obstacle, Reading
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.shown_layouts import anchors_of
from stream_engine.formats.trial_filters import FAILED, PASSED
from stream_engine.formats.vocabulary import TRUTH, in_one_word

_RIGHT = PASSED | {
    *("richtig", "korrekt", "juste", "vrai", "correcto", "correcta", "acierto", "giusto", "corretto", "esatto", "goed"),
    *("juist", "certo", "correto", "ratt", "rigtigt", "riktig", "oikein", "poprawna", "poprawnie", "dogru"),
}
_WRONG = FAILED | {
    *("falsch", "inkorrekt", "faux", "fausse", "incorrecto", "incorrecta", "error", "sbagliato", "errato", "fout"),
    *("onjuist", "errado", "incorreto", "fel", "forkert", "feil", "vaarin", "niepoprawna", "niepoprawnie", "yanlis"),
}


def graded(records: Records) -> Obstacle | None:
    """What to say where a column says of each answer only whether it was right, and, if another one says which of two
    objects is, the readings of its rows; None where no column does.

    >>> from stream_engine.formats.record_columns import records_of
    >>> shown = {"probe": [*"xyzw"], "option_a": [*"yzwx"], "option_b": [*"zwxy"]}
    >>> found = graded(records_of(shown | {"correct_option": [*"abba"], "said": ["correct", "wrong"] * 2}))
    >>> [(offer.where, offer.codes["chosen"]["wrong"]) for offer in found.offers]
    [({'correct_option': 'a'}, 'option_b'), ({'correct_option': 'b'}, 'option_a')]
    """
    columns = [column for column in records.columns.values() if column.distinct]
    verdicts = {column.name: verdict for column in columns if (verdict := _verdict(column))}
    for group in shown_in(columns) if verdicts else ():
        names = tuple(column.name for column in group)
        anchors = anchors_of(records, group, tuple(verdicts))
        if not is_textual(group) or len(names) < 2 or not (anchors or len(names) > 2):
            continue
        others = [column for column in columns if column not in (*group, *anchors) and not TRUTH & {*column.words}]
        if any(named_share(column, group) >= MIN_FIT for column in others):
            return None  # the answer, though it is not called so
        name, verdict = next(iter(verdicts.items()))
        fact = f"column {name} ({', '.join(verdict)}) says whether an answer was right"
        add = f"next: add a column with the object that was chosen, one of {', '.join(names)}"
        keys = [column for column in columns if column not in group and column.name not in verdicts]
        keys = [column for column in keys if TRUTH & {*column.words} and len(column.distinct) > 1]
        for key in keys:
            answer = next(answers_of(key, group), None)
            by_place = answer is not None and answer.by in ("position", "index") and not answer.doubt
            if answer is None or not by_place or len(names) > 2 or LIST_SEPARATOR in "".join(key.distinct):
                continue
            fields = {"anchor": (anchors[0].name,), "shown": names, "chosen": (name,)}
            if (who := participant(records, False)) is not None:
                fields["worker"] = (who.name,)
            first, offers = 0 if answer.by == "index" else 1, []
            for text in answer.codes_of(key):
                place = place_of(answer.codes.get(text, text), names, first)
                codes = {verdict_text: names[place if right else 1 - place] for verdict_text, right in verdict.items()}
                offers.append(Reading("pick", fields, "position", {"chosen": codes}, {key.name: text}))
            fact += f", and {key.name} ({', '.join(sorted(key.distinct))}) which object was, in each row"
            return Obstacle(fact, offers=tuple(offers), by_rows=True)
        named = [column for column in keys if named_share(column, group) >= MIN_FIT]
        which = f"{named[0].name} names the right object" if named else "no column which object is"
        return Obstacle(f"{fact}, and {which}; {add}")
    return None


def _verdict(column: Column) -> dict[str, bool]:
    """The texts of a column that says of each answer whether it was right, and what they say; {} for any other."""
    folded = {text: in_one_word(text) for text in sorted(column.distinct)}
    verdict = {text: word in _RIGHT for text, word in folded.items() if word in _RIGHT | _WRONG}
    if is_flags(column) and TRUTH & {*column.words} and len(column.distinct) == 2:
        verdict = {text: bool(flag_of(text)) for text in folded}
    return verdict if len(verdict) == len(folded) and len({*verdict.values()}) == 2 else {}
