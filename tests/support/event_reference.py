"""What one event says, written plainly from the contract: the oracle for every format. No speed, no sharing."""

import itertools
import math

from stream_engine.data.comparisons import InvalidEvent, Label, Quadruplet, Triplet, canonical_quadruplet

FIELDS = {
    "triplet": ["anchor", "near", "far"],
    "quadruplet": ["near", "far"],
    "odd_one_out": ["objects", "odd"],
    "most_central": ["objects", "central"],
    "pick": ["anchor", "shown", "chosen"],
    "ranking": ["anchor", "ranked"],
    "label": ["object", "label"],
}
LISTS = {"objects": 3, "shown": None, "chosen": None, "ranked": None}


def reference_expand(event: dict) -> list:
    """The comparisons (or the label) of an event, or InvalidEvent with the first reason against it."""
    kind = event.get("type")
    kind = "triplet" if kind is None else kind
    if kind not in FIELDS:
        raise InvalidEvent("unknown_type", "")
    said = {field: reference_field(kind, field, event) for field in FIELDS[kind]}
    if any(event.get(field) is not None and not is_name(event[field]) for field in ("id", "worker", "sampler")):
        raise InvalidEvent("wrong_type", "")
    weight = event.get("weight")
    if weight is not None and (isinstance(weight, (bool, str)) or not 0 <= weight <= 1e100):
        raise InvalidEvent("bad_weight", "")
    time = event.get("time")
    number = isinstance(time, (int, float)) and -62_135_596_800 <= time <= 4e9  # nobody's clock is in the year 2096
    if time is not None and not (number or (isinstance(time, str) and time.endswith("Z"))):  # the only texts in tests
        raise InvalidEvent("bad_time", "")
    names = [name for value in said.values() for name in (value if isinstance(value, list) else [value])]
    for name in names:
        if name == "":
            raise InvalidEvent("empty_name", "")
        if name is not None and len(name.encode()) > 1024:
            raise InvalidEvent("name_too_long", "")
    return list(EXPANSIONS[kind](**said))


def reference_field(kind, field, event):
    if field not in event:
        raise InvalidEvent("missing_field", "")
    value = event[field]
    size = 2 if kind == "quadruplet" else LISTS.get(field)
    if field == "chosen" and is_name(value):
        value = [value]
    if kind == "quadruplet" or field in LISTS:
        if not isinstance(value, list):
            raise InvalidEvent("wrong_type", "")
        if len(value) > 10_000:
            raise InvalidEvent("list_too_long", "")
        if size not in (None, len(value)) or not all(map(is_name, value)):
            raise InvalidEvent("wrong_type", "")
        return [name_of(x) for x in value]
    if field == "label" and value is None:
        return None
    if not is_name(value):
        raise InvalidEvent("wrong_type", "")
    return name_of(value)


def is_name(value):
    """A string, or a whole number, also one that a column of floats holds."""
    if isinstance(value, float):
        return value == math.floor(value) and abs(value) < 1e16 if math.isfinite(value) else False
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def name_of(value):
    return str(int(value)) if isinstance(value, float) else str(value)


def distinct(*names):
    if len(set(names)) < len(names):
        raise InvalidEvent("not_distinct", "")


def triplet(anchor, near, far):
    distinct(anchor, near, far)
    yield Triplet(anchor, near, far)


def quadruplet(near, far):
    found = canonical_quadruplet(*near, *far)
    yield Triplet(*found) if len(found) == 3 else Quadruplet(found[:2], found[2:])


def odd_one_out(objects, odd):
    distinct(*objects)
    if odd not in objects:
        raise InvalidEvent("not_shown", "")
    a, b = (x for x in objects if x != odd)
    yield from (Triplet(a, b, odd), Triplet(b, a, odd))


def most_central(objects, central):
    distinct(*objects)
    if central not in objects:
        raise InvalidEvent("not_shown", "")
    b, c = (x for x in objects if x != central)
    yield from (Triplet(b, central, c), Triplet(c, central, b))


def pick(anchor, shown, chosen):
    if not chosen:
        raise InvalidEvent("nothing_chosen", "")
    distinct(anchor, *shown)
    for place, name in enumerate(chosen):
        if name not in shown:
            raise InvalidEvent("not_shown", "")
        distinct(*chosen[: place + 1])
    if len(chosen) == len(shown):
        raise InvalidEvent("everything_chosen", "")
    for near in chosen:
        for far in shown:
            if far not in chosen:
                yield Triplet(anchor, near, far)


def ranking(anchor, ranked):
    if len(ranked) < 2:
        raise InvalidEvent("nothing_chosen", "")
    distinct(anchor, *ranked)
    for near, far in itertools.combinations(ranked, 2):
        yield Triplet(anchor, near, far)


def label(object, label):
    yield Label(object, label)


EXPANSIONS = {
    "triplet": triplet,
    "quadruplet": quadruplet,
    "odd_one_out": odd_one_out,
    "most_central": most_central,
    "pick": pick,
    "ranking": ranking,
    "label": label,
}


def comparisons(done):
    """All comparisons of a Decoded by name, in their order."""
    out = [Triplet(*(done.names[i] for i in row)) for row in done.triplets.tolist()]
    for place, (i, j, k, l) in reversed(list(zip(done.quadruplet_at.tolist(), done.quadruplets.tolist(), strict=True))):
        out.insert(place, Quadruplet((done.names[i], done.names[j]), (done.names[k], done.names[l])))
    return out
