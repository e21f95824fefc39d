"""The answer about clusters in one sentence, made from the figures of its report."""

from collections.abc import Callable, Iterator, Mapping
from math import ceil, isfinite, log10
from typing import Any, NamedTuple

from stream_engine.state.artifact import figure

CLEARLY_SEPARATED, SEPARATED = "clearly separated", "separated"
NOT_SEPARABLE, CANNOT_TELL = "not separable", "cannot tell"
GRADES = (CANNOT_TELL, NOT_SEPARABLE, SEPARATED, CLEARLY_SEPARATED)
MIN_OBJECTS = 8  # of a grade
CHANCE, UNCONNECTED, ALL_ALIKE, UNCERTAIN = "chance", "unconnected", "no positions", "uncertain positions"  # reasons


class Headline(NamedTuple):
    """The answer in a few words, and what they rest on."""

    answer: str
    note: str


def are_separated(report: Mapping[str, Any]) -> bool:
    """Whether the groups are called groups, and not parts."""
    return report.get("grade") in (SEPARATED, CLEARLY_SEPARATED)


def sentence(report: Mapping[str, Any]) -> str:
    """The whole answer; "" where the report has no grade.

    >>> made = {"grade": "separated", "k": 3, "clearer_than": 0.97, "gain": 0.012, "gain_se": 0.003}
    >>> sentence(made | {"replication": {"ari": 0.96, "low": 0.9, "high": 0.99}})  # doctest: +NORMALIZE_WHITESPACE
    'Three groups, separated (clearer than 97 % of continua); the same partition is expected in a replication (ARI .96,
    95 % CI .90 to .99); positions within the groups still carry information (.012 nats an answer, SE .003).'
    >>> sentence({"grade": "cannot tell", "reason": "few objects", "objects": 6})
    'Cannot tell whether there are clusters: there are 6 objects, and at least 8 are needed.'
    """
    grade = report.get("grade")
    if grade == CANNOT_TELL:
        return f"Cannot tell whether there are clusters: {_reason(report)}."
    if grade not in GRADES:
        return ""
    parts = "; ".join([_groups_and_grade(report), *_further_statements(report)])
    in_one = " A second dimension was not detected, which does not show that there is none."
    return f"{parts}.{in_one if report.get('reason') == 'one dimension' else ''}"


MAX_NAMES = 5  # of objects by themselves


def alone(report: Mapping[str, Any]) -> int:
    """How many of the groups are one object by itself, which is no group."""
    sizes = report.get("sizes")
    return sum(size == 1 for size in sizes) if isinstance(sizes, list | tuple) else 0


def by_themselves(report: Mapping[str, Any], number: Callable[[int], str] = str) -> str:
    """The groups, and the objects that are by themselves; their names where the report has them.

    >>> by_themselves({"k": 3, "sizes": [15, 14, 1], "alone": ["sound_29"]})
    '2 groups and 1 object by itself (sound_29)'
    """
    n, k = alone(report), _integer(report, "k")
    text = f"{number(k - n)} {'group' if k - n == 1 else 'groups'}"
    if not n:
        return text
    names = list(map(str, report.get("alone") or ()))
    text += f" and {number(n)} {'object by itself' if n == 1 else 'objects by themselves'}"
    return f"{text} ({', '.join(names[:MAX_NAMES])}{', ...' if len(names) > MAX_NAMES else ''})" if names else text


def headline(report: Mapping[str, Any]) -> Headline:
    """For a tile.

    >>> headline({"grade": "separated", "k": 3, "clearer_than": 0.97})
    Headline(answer='3 groups', note='separated: clearer than 97 % of continua')
    """
    grade, clearer = report.get("grade"), _clearer(report)
    if grade == CANNOT_TELL:
        return Headline("Cannot tell", _reason(report))
    if grade == NOT_SEPARABLE:
        return Headline("No clusters detected", clearer)
    groups, _, others = by_themselves(report).partition(" and ")
    note = ": ".join(filter(None, (str(grade), clearer)))
    return Headline(groups, f"and {others}; {note}" if others else note)


NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def _groups_and_grade(report: Mapping[str, Any]) -> str:
    """The groups and their grade."""
    k, clearer = _integer(report, "k"), _clearer(report)
    if report["grade"] != NOT_SEPARABLE:
        groups = by_themselves(report, _in_words)
        return f"{groups[0].upper()}{groups[1:]}, {report['grade']}" + (f" ({clearer})" if clearer else "")
    limit = _limit(report)
    detected = (
        f"four of five studies of this size detect unequal groups {limit} apart, easier layouts at smaller distances"
    )
    notes = [clearer, detected if limit else ""]
    subject = f"the {k} clearest groups are" if k > 1 else "the objects are"
    parenthesis = "; ".join(filter(None, notes))
    return f"No clusters detected: {subject} not separable from a continuum" + (
        f" ({parenthesis})" if parenthesis else ""
    )


def _in_words(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"


def _clearer(report: Mapping[str, Any]) -> str:
    share = figure(report, "clearer_than")
    if share is None:
        return ""
    if share >= 0.9995:
        return "clearer than more than 99.9 % of continua"
    return f"clearer than {100 * share:.1f}".removesuffix(".0") + " % of continua"


def _limit(report: Mapping[str, Any]) -> str:
    """The separation that four of five simulated studies of many layouts detect; clear layouts need less."""
    limit = figure(report, "detection_limit")
    if limit is None or not isfinite(limit):
        return ""
    return f"{limit:.1f} within-group standard deviations"


# Steinley (2004, Properties of the Hubert-Arabie adjusted Rand index): from .9 on excellent, from .65 on moderate
SAME_PARTITION_ARI, SIMILAR_PARTITION_ARI = 0.9, 0.65


def _further_statements(report: Mapping[str, Any]) -> Iterator[str]:
    """What a replication would find, what positions add, and which groups split again."""
    ari = figure(report, "replication", "ari")
    if ari is not None:
        low, high = figure(report, "replication", "low"), figure(report, "replication", "high")
        ends = "" if None in (low, high) else f", 95 % CI {apa(low)} to {apa(high)}"
        parenthesis = "ARI > .99" if is_certain(low) else f"ARI {apa(ari)}{ends}"
        adjective = (
            "the same" if ari >= SAME_PARTITION_ARI else "a similar" if ari >= SIMILAR_PARTITION_ARI else "another"
        )
        yield f"{adjective} partition is expected in a replication ({parenthesis})"
    gain, error = figure(report, "gain"), figure(report, "gain_se")
    if gain is not None and error is not None:
        digits = max(3, min(6, ceil(-log10(error)))) if error > 0 else 3
        parenthesis = f"{apa(gain, digits)} nats an answer, SE {apa(error, digits)}"
        groups = "groups" if are_separated(report) else "parts"
        if gain > 1.96 * error:
            yield f"positions within the {groups} still carry information ({parenthesis})"
        else:
            yield f"no information is detected in positions within the {groups} ({parenthesis})"
    for subgroup in report.get("subgroups") or ():
        if isinstance(subgroup, Mapping) and are_separated(subgroup):
            group, k = _integer(subgroup, "group"), _integer(subgroup, "k")
            yield f"group {group} splits again into {k} ({subgroup['grade']})"


def is_certain(low: float | None) -> bool:
    """Whether the interval of the adjusted Rand index would say that the same partition is certain: all simulated
    replications agree, and there are few of them.

    >>> is_certain(1.0), is_certain(0.996), is_certain(0.99)
    (True, True, False)
    """
    return low is not None and low >= 0.995


def _reason(report: Mapping[str, Any]) -> str:
    """Why the grade is "cannot tell"."""
    reason, limit = report.get("reason"), _limit(report)
    comparisons, objects = _integer(report, "answers"), _integer(report, "objects")
    if reason == "few objects":
        number = "is 1 object" if objects == 1 else f"are {objects:,} objects"
        return f"there {number}, and at least {MIN_OBJECTS} are needed"
    if reason == CHANCE:
        return "the map does not predict the answers better than chance"
    if reason == UNCERTAIN:
        return f"with {comparisons:,} comparisons of {objects:,} objects, positions are too uncertain to tell groups"
    if reason == UNCONNECTED:
        return "the objects fall into sets that were never compared with each other, or only by a few questions"
    if reason == ALL_ALIKE:
        return "the answers do not distinguish the objects, which are all alike"
    if limit:
        return f"with {comparisons:,} comparisons of {objects:,} objects, groups less than {limit} apart can be missed"
    return f"with {comparisons:,} comparisons of {objects:,} objects, even clear groups can be missed"


def _integer(report: Mapping[str, Any], name: str) -> int:
    return int(figure(report, name) or 0)


def apa(value: float | None, digits: int = 2) -> str:
    """A number in APA style: without leading zero.

    >>> apa(0.956), apa(1.0), apa(-0.0121, 3)
    ('.96', '1.00', '-.012')
    """
    text = f"{value or 0.0:.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
