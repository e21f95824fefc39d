"""Object to class, last write wins: a ledger, keyed by name; of merged states the first one's label stays.

A label neither needs nor makes an object: labels may come before, after or without comparisons, and a label of an
object that no comparison has named yet simply waits for it.
"""

from collections.abc import Container, Iterable, Mapping

from stream_engine.data.comparisons import Label


def learn_labels(known: dict[str, str], labels: Iterable[Label]) -> None:
    """Apply label events in order; `None` takes a label back.

    >>> known = {}
    >>> learn_labels(known, [Label("a", "car"), Label("b", "van"), Label("a", None), Label("b", "bus")])
    >>> known
    {'b': 'bus'}
    """
    for name, label in labels:
        if label is None:
            known.pop(name, None)
        else:
            known[name] = label


def waiting(known: Mapping[str, str], objects: Container[str]) -> list[str]:
    """Labelled names that are not in `objects`, sorted. O(labels).

    >>> waiting({"b": "x", "a": "x", "c": "y"}, ["a"])
    ['b', 'c']
    """
    return sorted(name for name in known if name not in objects)
