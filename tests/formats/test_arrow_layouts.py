"""The same rows in every type of column that Arrow has for them decode to the same."""

import numpy as np
import pyarrow as pa
import pytest

from stream_engine.formats.arrow_events import Decoder
from stream_engine.formats.options import EventOptions
from tests.support.event_worlds import essence, ipc_of

NAMES = ["a", "bb", "é", "", None, "a"]
LISTS = [["a", "bb"], None, ["é", "a"], [], ["bb", "é"], ["a", None]]


class Called(pa.ExtensionType):
    """Texts by another name."""

    def __init__(self):
        super().__init__(pa.string(), "tests.called")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def runs_of(plain: pa.Array) -> pa.Array:
    """Each value twice, as runs."""
    ends = pa.array(np.arange(2, 2 * len(plain) + 2, 2), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, plain)


TEXTS = {
    "large": lambda plain: plain.cast(pa.large_string()),
    "view": lambda plain: plain.cast(pa.string_view()),
    "binary": lambda plain: plain.cast(pa.binary()),
    "large binary": lambda plain: plain.cast(pa.large_binary()),
    "binary view": lambda plain: plain.cast(pa.binary()).cast(pa.binary_view()),
    "dictionary": lambda plain: plain.dictionary_encode(),
    "dictionary of binary": lambda plain: plain.cast(pa.binary()).dictionary_encode(),
    "extension": lambda plain: pa.ExtensionArray.from_storage(Called(), plain),
}


def views(plain: pa.Array, large: bool = False) -> pa.Array:
    """The same lists as views, the last one first."""
    values = plain.to_pylist()
    begins, flat = [0] * len(values), []
    for place, value in reversed(list(enumerate(values))):
        begins[place] = 0 if value is None else len(flat)
        flat += value or []
    kind, of = (pa.int64(), pa.LargeListViewArray) if large else (pa.int32(), pa.ListViewArray)
    lengths = [len(value or []) for value in values]
    missing = pa.array([value is None for value in values])
    return of.from_arrays(pa.array(begins, kind), pa.array(lengths, kind), pa.array(flat, pa.string()), mask=missing)


LISTED = {
    "large": lambda plain: plain.cast(pa.large_list(pa.string())),
    "coded": lambda plain: plain.cast(pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    "view": views,
    "large view": lambda plain: views(plain, large=True),
}


def decoded(**columns) -> tuple:
    """What a batch, and the same as a stream, say."""
    batch = pa.record_batch(columns)
    decode = Decoder(EventOptions(provenance=True))
    found = decode(batch)
    assert essence(found) == essence(decode(ipc_of(batch)))
    return essence(found)


@pytest.mark.parametrize("kind", TEXTS)
def test_texts(kind):
    plain = pa.array(NAMES, pa.string())
    near, far = pa.array(["n"] * 6), pa.array(["f"] * 5 + ["n"])
    wanted = decoded(anchor=plain, near=near, far=far)
    assert len(wanted[1]) == 3 and len(wanted[6]) == 3
    assert decoded(anchor=TEXTS[kind](plain), near=near, far=TEXTS[kind](far)) == wanted


def test_runs():
    plain = pa.array(NAMES, pa.string())
    twice = pa.array([name for name in NAMES for _ in range(2)], pa.string())
    near, far = pa.array(["n"] * 12), pa.array(["f"] * 12)
    assert decoded(anchor=runs_of(plain), near=near, far=far) == decoded(anchor=twice, near=near, far=far)


@pytest.mark.parametrize("kind", LISTED)
def test_lists(kind):
    plain = pa.array(LISTS, pa.list_(pa.string()))
    more = {
        "anchor": pa.array(["x"] * 6),
        "type": pa.array(["pick"] * 6),
        "chosen": pa.array(["a", "a", "a", "a", "bb", "a"]),
    }
    wanted = decoded(shown=plain, **more)
    assert len(wanted[1]) == 3 and len(wanted[6]) == 3
    assert decoded(shown=LISTED[kind](plain), **more) == wanted


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_only_rows_that_are_no_text_are_refused(kind):
    names = pa.array([b"a", b"na\xefve", b"c"], pa.binary()).cast(kind)
    other = {"near": pa.array(["n"] * 3), "far": pa.array(["f"] * 3)}
    wanted = decoded(anchor=pa.array(["a", "c"]), **{name: column[:2] for name, column in other.items()})
    found = decoded(anchor=names, **other)
    assert found[:3] == wanted[:3] and [row for row, *_ in found[6]] == [1]
