"""The page of events: types, fields, what each is counted as, and why an event is refused."""

from stream_engine.data.comparisons import EVENT_TYPES, MAX_LIST, MAX_NAME_BYTES, REASONS
from stream_engine.manual.markdown import MADE, item

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
        "sorted by chosen object (as given), then by other object (as shown)",
    ),
    "ranking": (
        "`anchor`, `ranked`: [nearest, ..., farthest]",
        "m (m - 1) / 2",
        "sorted by the nearer object, then by the farther",
    ),
    "label": ("`object`, `label`", "0", "the class of an object; null removes it"),
}
assert tuple(TYPES) == EVENT_TYPES
INTRODUCTION = f"""# Events

{MADE}

An event is a JSON object, a row of a table (CSV, a workbook, Parquet, Arrow) or a message of Kafka: one event, a JSON
array of events, JSON lines, or an Arrow IPC stream. Names of objects are text or whole numbers, at most
{MAX_NAME_BYTES:,} bytes; a list has at most {MAX_LIST:,} entries. In tables a list is separated by `|`, and quadruplets
use `near_i`, `near_j`, `far_i`, `far_j`. Fields that have other names are told by `--columns`; fields that no event has
are ignored, and counted once a name. [The page on files](../files.md) has a line for what each tool exports.

## Types
`type` says which; without it an event is a triplet, or what `--type` says.

| `type` | fields | comparisons | which, in order |
|---|---|---|---|
"""
OPTIONAL = """
## Fields that every event may have

- `id`: text, kept with the event where it is refused.
- `worker`: text or whole number; who answered. What is told of workers one by one needs it.
- `time`: RFC 3339, what pandas and SQL write, or seconds since 1970; without an offset UTC.
- `weight`: a finite number ≥ 0, for the weighted accumulators; the exact counts count every comparison once.
- `sampler`, `propensity`: how the question was chosen and how probable it was; as `ask` writes them.
- `passed`: true or false makes the event a catch trial, when `--columns catch=passed` says so: not counted, but in the
  worker's record.
- `n_near`, `n_far` (triplets and quadruplets): whole numbers; a question answered so often each way is n_near + n_far
  comparisons.

## Why an event is refused
A refused event is counted under one of these reasons, and kept in the dead letters with its position; the stream goes
on as if it had never been there.
"""


def page() -> str:
    """The whole page."""
    rows = [f"| `{kind}` | {' | '.join(TYPES[kind])} |" for kind in EVENT_TYPES]
    reasons = [item(f"`{code}`: {says}.") for code, says in REASONS.items()]
    return INTRODUCTION + "\n".join(rows) + "\n" + OPTIONAL + "\n" + "\n".join(reasons) + "\n"
