"""What names of columns suggest: the words of the field for anchors, options, answers and participants."""

from collections.abc import Iterator, Sequence
from statistics import median

from stream_engine.formats.event_fields import PACE
from stream_engine.formats.field_values import number_of
from stream_engine.formats.record_columns import Column, Records


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ANCHOR = _words("anchor target center centre head probe reference ref referent standard query base cue focal sample")
NEAR = _words("near nearer winner closer similar positive")
FAR = _words("far farther further loser dissimilar negative")
ODD = _words("odd outlier different ooo oddone")
CENTRAL = _words("central")
ANSWER = _words(
    "answer answered response choice chosen selected selection pick picked said winner clicked button keys key press "
    "keypress keyboard resp decision judgment judgement label value"
)
NOT_ANSWER = _words(
    "correct expected truth solution rt time latency duration seconds ms onset started stopped index id timestamp "
    "accuracy"
)
OBJECTS = _words(
    "option opt choice alternative alt comparison candidate item stimulus stim image img picture pic object word name "
    "text photo face sound left right l r"
)
LISTS = _words("shown options choices images items alternatives candidates objects stimuli")
ORDERS = (
    *(("left", middle, "right") for middle in ("middle", "center", "centre")),
    *(("left", "right"), ("l", "r"), ("first", "second", "third"), ("first", "second"), ("top", "bottom")),
    *(("a", "b", "c"), ("a", "b"), ("one", "two", "three"), ("one", "two"), ("upper", "lower")),
    *(tuple(str(number) for number in range(first, first + size)) for size in range(8, 1, -1) for first in (0, 1)),
)
PARTICIPANTS = (
    *("worker", "workerid", "participantprivateid", "participantid", "participant", "participantcode", "subjectid"),
    *("subject", "subj", "subjectnr", "subjectnumber", "prolificpid", "prolificid", "participantpublicid", "pid"),
    *("puid", "participantuid", "respondentid", "respondent", "responseid", "userid", "user", "annotator", "rater"),
    *("completedby", "annotationscompletedby", "judge", "observer", "participation", "srid", "runid", "sessionid"),
    *("token", "id", "studyresultid", "emailaddress", "username"),
)
RESPONSE_TIMES = ("responsetime", "reactiontime")
UNITS = {"milliseconds": _words("ms msec millis milliseconds"), "seconds": _words("s sec secs seconds")}
LONGEST = 60.0  # median of seconds; a larger one is of milliseconds
LEAST_NUMBERS = 0.9  # share of the values


def family_of(columns: Sequence[Column]) -> Iterator[list[Column]]:
    """Groups of columns that may hold the objects of a question: their names differ in one word, which says where or
    the how manieth; and single columns of lists.

    >>> [[each.name for each in group] for group in family_of([Column(n, [("x",)]) for n in ("imgL", "imgR", "rt")])]
    [['imgL', 'imgR']]
    """
    slots: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, Column]] = {}
    for column in columns:
        for place, word in enumerate(column.words):
            slots.setdefault((column.words[:place], column.words[place + 1 :]), {}).setdefault(word, column)
    for (before, after), words in slots.items():
        taken: set[str] = set()
        for order in ORDERS:
            if set(order) <= words.keys() and not (set(order) <= taken and order[0].isdecimal()):
                group = [words[word] for word in order]
                if _objects(group, {*before, *after, *order}):
                    taken |= set(order)
                    yield group
    for column in columns:
        lengths = {len(value) for value in column.values if value is not None}
        if LISTS & set(column.words) and lengths and min(lengths) > 1:
            yield [column]


def _objects(group: Sequence[Column], words: set[str]) -> bool:
    """Whether columns hold objects: called so or with values in common, and no fractions."""
    values = [each.distinct for each in group]
    if not all(values) or any(_is_fraction(text) for each in values for text in each):
        return False
    common = set.intersection(*values)
    return bool(OBJECTS & words) or len(common) > 1


def _is_fraction(text: str) -> bool:
    whole, point, rest = text.partition(".")
    return bool(point) and whole.lstrip("-").isdecimal() and rest.isdecimal()


def participant(records: Records, wide: bool) -> Column | None:
    """The column that says who answered: called so, filled, and the same in several records."""
    found = []
    for name, column in records.columns.items():
        called = "".join(column.words)
        filled = sum(value is not None for value in column.values)
        if called in PARTICIPANTS and filled >= 0.9 * records.size and records.size:
            repeated = wide or len(column.distinct) < max(2, 0.9 * filled) or records.size < 10
            if repeated:
                found.append((PARTICIPANTS.index(called), name))
    return records.columns[min(found)[1]] if found else None


def response_times(records: Records) -> tuple[str, Column, str] | None:
    """`(field of an event, column, why)` of the column of response times, in seconds or milliseconds: as its name says,
    or as its median does, if it is called so and holds numbers. None where the fields themselves are there.

    >>> from stream_engine.formats.record_columns import records_of
    >>> field, column, why = response_times(records_of({"key_resp.rt": ["0.81", "1.2"], "time": ["5", "6"]}))
    >>> field, column.name, why
    ('seconds', 'key_resp.rt', 'its median is 1')
    """
    if PACE.keys() & records.columns.keys():
        return None
    for name, column in records.columns.items():
        called = "".join(column.words)
        said = "rt" in column.words or called == "latency" or any(each in called for each in RESPONSE_TIMES)
        if not said or set(name) & set(",|="):
            continue
        values = [number_of(text, text=True) for text in column.texts if text is not None]
        numbers = [value for value in values if value is not None and value >= 0.0]
        if not numbers or len(numbers) < LEAST_NUMBERS * len(values) or 2 * len(values) < records.size:
            continue
        if unit := next((unit for unit, words in UNITS.items() if words & set(column.words)), None):
            return unit, column, "its name says so"
        middle = median(numbers)
        return "milliseconds" if middle > LONGEST else "seconds", column, f"its median is {middle:.3g}"
    return None
