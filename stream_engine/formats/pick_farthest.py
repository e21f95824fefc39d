"""`pick_farthest`: of the objects shown, those that are less like the anchor than all others; a pick of the others."""

from stream_engine.formats.event_types import DerivedType, Shape


def others_of(shown: list[str], chosen: list[str]) -> list[str]:
    """The objects that were not chosen: to say that these are nearer is to say that the chosen ones are farther. A
    faulty pick stays as it is, and is rejected for it.

    >>> others_of(["a", "b", "c"], ["b"]), others_of(["a", "b"], ["c"])
    (['a', 'c'], ['c'])
    """
    if not chosen or not set(chosen) < set(shown):
        return chosen
    return [name for name in shown if name not in chosen]


PICK_FARTHEST = DerivedType(
    (Shape("anchor"), Shape("shown", True, None), Shape("farthest", True, None, answer=True)),
    "pick",
    lambda names: (names[0], names[1], others_of(names[1], names[2])),
)
