"""Object to class, last write wins: a ledger, keyed by name; of merged states the first one's label stays.

A label neither needs nor makes an object: labels may come before, after or without comparisons, and a label of an
object that no comparison has named yet simply waits for it.
"""

from collections.abc import Container, Iterable, Mapping

from stream_engine.data.comparisons import Label


def learn_labels(labelled: dict[str, str], events: Iterable[Label]) -> None:
    """Apply label events in order; `None` takes a label back.

    >>> labelled = {}
    >>> learn_labels(labelled, [Label("a", "car"), Label("b", "van"), Label("a", None), Label("b", "bus")])
    >>> labelled
    {'b': 'bus'}
    """
    for name, label in events:
        if label is None:
            labelled.pop(name, None)
        else:
            labelled[name] = label


def waiting(labelled: Mapping[str, str], objects: Container[str]) -> list[str]:
    """Labelled names that are not in `objects`, sorted. O(labels).

    >>> waiting({"b": "x", "a": "x", "c": "y"}, ["a"])
    ['b', 'c']
    """
    return sorted(name for name in labelled if name not in objects)
