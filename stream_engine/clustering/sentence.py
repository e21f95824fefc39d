"""The answer about clusters in one sentence, made from the figures of its report; shown wherever the answer is.

The words of a grade, of a replication and of what positions add depend on the figures alone. Adjusted Rand indices are
called as Steinley (2004, Properties of the Hubert-Arabie adjusted Rand index) suggests: from .9 on the same partition,
from .65 on a similar one.
"""

from collections.abc import Iterator, Mapping
from math import ceil, isfinite, log10
from typing import Any, NamedTuple

from stream_engine.state.artifact import figure

CLEARLY_SEPARATED, SEPARATED = "clearly separated", "separated"
NOT_SEPARABLE, CANNOT_TELL = "not separable", "cannot tell"
GRADES = (CANNOT_TELL, NOT_SEPARABLE, SEPARATED, CLEARLY_SEPARATED)
LEAST = 8  # objects
CHANCE, UNCONNECTED, ALIKE = "chance", "unconnected", "no positions"  # reasons
SAME, SIMILAR = 0.9, 0.65  # adjusted Rand index
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


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
    95 % CI .90 to .99); positions within the groups still carry information (.012 ± .003 nats an answer).'
    >>> sentence({"grade": "cannot tell", "reason": "few objects", "objects": 6})
    'Cannot tell whether there are clusters: there are 6 objects, and at least 8 are needed.'
    """
    grade = report.get("grade")
    if grade == CANNOT_TELL:
        return f"Cannot tell whether there are clusters: {_why(report)}."
    if grade not in GRADES:
        return ""
    parts = "; ".join([_found(report), *_more(report)])
    on_a_line = " All objects lie along one dimension." if report.get("reason") == "one dimension" else ""
    return f"{parts}.{on_a_line}"


def headline(report: Mapping[str, Any]) -> Headline:
    """For a tile.

    >>> headline({"grade": "separated", "k": 3, "clearer_than": 0.97})
    Headline(answer='3 groups', note='separated: clearer than 97 % of continua')
    """
    grade, clearer = report.get("grade"), _clearer(report)
    if grade == CANNOT_TELL:
        return Headline("Cannot tell", _why(report))
    if grade == NOT_SEPARABLE:
        return Headline("No clusters detected", clearer)
    return Headline(f"{_whole(report, 'k')} groups", ": ".join(filter(None, (str(grade), clearer))))


def _found(report: Mapping[str, Any]) -> str:
    """The groups and their grade."""
    k, clearer = _whole(report, "k"), _clearer(report)
    if report["grade"] != NOT_SEPARABLE:
        number = NUMBERS[k].capitalize() if k < len(NUMBERS) else f"{k:,}"
        return f"{number} groups, {report['grade']}" + (f" ({clearer})" if clearer else "")
    limit = _limit(report)
    told = [clearer, f"groups {limit} apart would have been detected" if limit else ""]
    what = f"the {k} clearest groups are" if k > 1 else "the objects are"
    inside = "; ".join(filter(None, told))
    return f"No clusters detected: {what} not separable from a continuum" + (f" ({inside})" if inside else "")


def _clearer(report: Mapping[str, Any]) -> str:
    share = figure(report, "clearer_than")
    if share is None:
        return ""
    if share >= 0.9995:
        return "clearer than more than 99.9 % of continua"
    return f"clearer than {100 * share:.1f}".removesuffix(".0") + " % of continua"


def _limit(report: Mapping[str, Any]) -> str:
    """The smallest separation that would have been detected."""
    limit = figure(report, "detection_limit")
    if limit is None or not isfinite(limit):
        return ""
    return f"{limit:.1f} within-group standard deviations"


def _more(report: Mapping[str, Any]) -> Iterator[str]:
    """What a replication would find, what positions add, and which groups split again."""
    ari = figure(report, "replication", "ari")
    if ari is not None:
        low, high = figure(report, "replication", "low"), figure(report, "replication", "high")
        inside = f"ARI {apa(ari)}" + (f", 95 % CI {apa(low)} to {apa(high)}" if None not in (low, high) else "")
        which = "the same" if ari >= SAME else "a similar" if ari >= SIMILAR else "another"
        yield f"{which} partition is expected in a replication ({inside})"
    gain, error = figure(report, "gain"), figure(report, "gain_se")
    if gain is not None and error is not None:
        digits = max(3, min(6, ceil(-log10(error)))) if error > 0 else 3
        inside = f"{apa(gain, digits)} ± {apa(error, digits)} nats an answer"
        groups = "groups" if are_separated(report) else "parts"
        if gain > 1.96 * error:
            yield f"positions within the {groups} still carry information ({inside})"
        else:
            yield f"no information is detected in positions within the {groups} ({inside})"
    for each in report.get("subgroups") or ():
        if isinstance(each, Mapping) and are_separated(each):
            yield f"group {_whole(each, 'group')} splits again into {_whole(each, 'k')} ({each['grade']})"


def _why(report: Mapping[str, Any]) -> str:
    """Why nobody can tell."""
    reason, limit = report.get("reason"), _limit(report)
    answers, objects = _whole(report, "answers"), _whole(report, "objects")
    if reason == "few objects":
        return f"there {'is 1 object' if objects == 1 else f'are {objects:,} objects'}, and at least {LEAST} are needed"
    if reason == CHANCE:
        return "the answers cannot be distinguished from random answers"
    if reason == UNCONNECTED:
        return "some objects were never compared with the others, directly or through others"
    if reason == ALIKE:
        return "the answers do not distinguish the objects, which are all alike"
    if limit:
        return f"with {answers:,} answers about {objects:,} objects, only groups {limit} apart would be detected"
    return f"with {answers:,} answers about {objects:,} objects, even clear groups would not be detected"


def _whole(report: Mapping[str, Any], name: str) -> int:
    return int(figure(report, name) or 0)


def apa(value: float | None, digits: int = 2) -> str:
    """A figure that cannot be above 1, or is a small one, in APA style.

    >>> apa(0.956), apa(1.0), apa(-0.0121, 3)
    ('.96', '1.00', '-.012')
    """
    text = f"{value or 0.0:.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
