"""Tables as exported by the field's tools, recognised by their column names.

A layout is used only for a table without type and columns options that lacks the contract's own columns; the layout in
use is always reported. Sources: salmon (stsievert/salmon, docs/source/offline.rst), NEXT (nextml/NEXT,
apps/PoolBasedTripletMDS/myApp.py, format_responses), THINGS (Hebart et al. 2023, the table of choices of the triplet
odd-one-out task), jsPsych (plugin-html-button-response: `response` is the number of the button, from 0), tripletTools
(cfd36_triplets_individual.csv: trials that offer the target itself are catch trials), cblearn (triplets in list order:
a question i, j, k says that j is nearer to i than k is).
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from stream_engine.formats.event_fields import SHAPES


class KnownLayout(NamedTuple):
    """The table of a tool: the options for reading it. All `columns` must be present and none of `without`; `maybe`
    are used if present."""

    tool: str
    type: str
    columns: Mapping[str, str]
    answers_by: str = "name"
    maybe: Mapping[str, tuple[str, ...]] = {}
    also: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


_PEOPLE = ("worker", "subject_id", "subject", "participant_id", "participant", "PROLIFIC_PID", "prolific_pid", "run_id")
LAYOUTS = (
    KnownLayout(
        "tripletTools' individual triplets",
        "pick",
        {"anchor": "Center", "shown": "Left|Right", "chosen": "Answer", "catch": "Center"},
        maybe={"worker": ("worker_id",)},
        also=("head", "winner", "loser"),
    ),
    KnownLayout(
        "salmon's responses",
        "triplet",
        {"anchor": "head", "near": "winner", "far": "loser"},
        maybe={"worker": ("puid", "worker_id")},
    ),
    KnownLayout(
        "NEXT's responses",
        "pick",
        {"anchor": "target_center", "shown": "target_left|target_right", "chosen": "target_winner"},
        maybe={"worker": ("participant_uid",)},
    ),
    KnownLayout(
        "THINGS' choices of the odd one",
        "odd_one_out",
        {"objects": "image1|image2|image3", "odd": "choice"},
        "position",
        {"worker": ("subject_id", "subject")},
    ),
    KnownLayout(
        "jsPsych's button responses",
        "pick",
        {"anchor": "anchor", "shown": "left|right", "chosen": "response"},
        "index",
        {"worker": _PEOPLE},
        also=("trial_type",),
    ),
    KnownLayout(
        "cblearn's triplets in list order",
        "triplet",
        {"anchor": "i", "near": "j", "far": "k"},
        without=("response", "responses", "l"),
    ),
)


class Recognised(NamedTuple):
    """The options for reading a recognised table, and one line that says so."""

    type: str
    columns: dict[str, str]
    answers_by: str
    said: str


def recognised(names: Collection[str]) -> Recognised | None:
    """The layout of a table with these columns; None if it needs none, or if none is known.

    >>> recognised(["alg_ident", "head", "left", "right", "winner", "loser", "puid"]).said
    "read as salmon's responses: anchor=head, near=winner, far=loser, worker=puid"
    >>> recognised(["anchor", "near", "far", "head", "winner", "loser"]), recognised(["head", "winner"])
    (None, None)
    """
    if _needs_none(names):
        return None
    for layout in LAYOUTS:
        needed = [name for joined in layout.columns.values() for name in joined.split("|")]
        if set(needed).union(layout.also) <= set(names) and not set(layout.without) & set(names):
            columns = dict(layout.columns)
            for field, candidates in layout.maybe.items():
                if there := [name for name in candidates if name in names]:
                    columns[field] = there[0]
            told = ", ".join(f"{field}={source}" for field, source in columns.items())
            by = "" if layout.answers_by == "name" else f", answers by {layout.answers_by}"
            return Recognised(layout.type, columns, layout.answers_by, f"read as {layout.tool}: {told}{by}")
    return None


def _needs_none(names: Collection[str]) -> bool:
    """Whether these are the contract's own names of columns."""
    return "type" in names or {shape.name for shape in SHAPES["triplet"]} <= set(names)
