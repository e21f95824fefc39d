"""The page of events: types, fields, what each is counted as, and why an event is refused."""

from importlib import import_module

from deploy.manual.markdown import MADE, item
from stream_engine.data.comparisons import DERIVED_TYPES, EVENT_TYPES, MAX_LIST, MAX_NAME_BYTES, REASONS
from stream_engine.formats.event_fields import derived_type

# type -> its fields, how many comparisons it is, in which order
TYPES = {
    "triplet": ("`anchor`, `near`, `far`", "1", "anchor is nearer to near than to far"),
    "quadruplet": ("`near`: [i, j], `far`: [k, l]", "1", "i is nearer to j than k to l; a triplet if they share one"),
    "odd_one_out": (
        "`objects`: [a, b, c], `odd`",
        "2",
        "(a, b, odd), (b, a, odd), with a and b ordered as in `objects`",
    ),
    "most_central": ("`objects`: [a, b, c], `central`", "2", "(b, central, c), (c, central, b)"),
    "pick": (
        "`anchor`, `shown`, `chosen`: lists",
        "chosen · others",
        "by chosen object, then by other object",
    ),
    "ranking": (
        "`anchor`, `ranked`: [nearest, ..., farthest]",
        "m (m - 1) / 2",
        "by nearer object, then by farther object",
    ),
    "label": ("`object`, `label`", "0", "the class of an object; null removes it"),
}
assert tuple(TYPES) == EVENT_TYPES


def derived(name: str) -> tuple[str, str, str]:
    """The same of a type that is counted as another one, from its declaration and the first line of its module."""
    declared = derived_type(name)
    fields = ", ".join(f"`{shape.name}`" for shape in declared.shapes)
    module = import_module(DERIVED_TYPES[name].partition(":")[0])
    meaning = " ".join((module.__doc__ or "").partition("\n\n")[0].split()).removeprefix(f"`{name}`: ")
    return fields, f"as `{declared.counted_as}`", meaning.rstrip(".")


INTRODUCTION = f"""# Events

{MADE}

An event is a JSON object, a row of a table (CSV, a workbook, Parquet, Arrow) or a message of Kafka: one event, a JSON
array of events, JSON lines, or an Arrow IPC stream. Blank lines and empty arrays hold no event. Object names are text
or integers, at most {MAX_NAME_BYTES:,} bytes long; a list has at most {MAX_LIST:,} entries. In tables, separate list
entries with `|`, and use `near_i`, `near_j`, `far_i`, `far_j` for quadruplets. If fields have other names, map them
with `--columns`. Unknown fields are ignored, and listed in the results. [Input formats](../files.md) covers the exports
of survey tools.

## Types
The field `type` gives the type of an event. Without it, the type is that of `--type`, or triplet.

| `type` | fields | number of comparisons | comparisons and their order |
|---|---|---|---|
"""
OPTIONAL = """
## Fields that every event may have

- `id`: text, stored with the event if it is rejected.
- `worker`: text or integer; the participant who answered. All results about individual participants need it.
- `time`: RFC 3339, the formats of pandas and SQL, or seconds since 1970; UTC if there is no offset.
- `seconds` or `milliseconds`: response time, a number ≥ 0; anything else counts as unknown.
- `weight`: a finite number ≥ 0, for the weighted accumulators; the exact counts count every comparison once.
- `sampler`, `propensity`: how the question was chosen, and with which probability; as written by `ask`.
- `passed`: with `--columns catch=passed`, true or false makes the event a catch trial: it is recorded for the
  participant, but not counted as a comparison.
- `n_near`, `n_far` (triplets and quadruplets): integers; the number of answers each way. The event counts as n_near +
  n_far comparisons.

## Why an event is rejected
A rejected event is counted under one of these reasons and stored in the dead letters with its position. It has no other
effect.
"""


def page() -> str:
    """The whole page."""
    types = TYPES | {name: derived(name) for name in DERIVED_TYPES}
    rows = [f"| `{kind}` | {' | '.join(cells)} |" for kind, cells in types.items()]
    reasons = [item(f"`{code}`: {says}.") for code, says in REASONS.items()]
    return INTRODUCTION + "\n".join(rows) + "\n" + OPTIONAL + "\n" + "\n".join(reasons) + "\n"
