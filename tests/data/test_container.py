"""The byte format: round trips, equal contents give equal bytes, every flipped bit and every cut is noticed."""

from functools import reduce
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from connectors import Position
from stream_engine.data import container
from stream_engine.data.container import Corrupt
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact import decode as decode_artifact
from stream_engine.state.artifact import encode as encode_artifact
from stream_engine.state.merging import empty_counters
from stream_engine.state.snapshot import Snapshot, decode, encode

ARRAYS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    hnp.arrays(
        st.sampled_from(["i1", "u1", "i4", "i8", "u8", "f8", "?"]), hnp.array_shapes(min_dims=0, min_side=0, max_dims=3)
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(ARRAYS)
def test_round_trip_is_exact_and_bytes_depend_on_content_alone(arrays):
    chunks, digest = container.encode("x", {"b": 1, "a": [None, "é"]}, arrays)
    data = b"".join(chunks)
    again, _ = container.encode("x", {"a": [None, "é"], "b": 1}, dict(reversed(arrays.items())))
    assert data == b"".join(again)
    kind, meta, found, read = container.decode(data)
    assert (kind, meta, read) == ("x", {"b": 1, "a": [None, "é"]}, digest)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == np.ascontiguousarray(array).tobytes()
        assert not found[name].flags.writeable
    assert len(chunks[0]) % 64 == 0


def sample() -> bytes:
    counters = empty_counters() | {"events": 1}
    settings, arrays = (
        {"accumulators": [], "guard": "first"},
        {"partial_order/kept": np.array([[0, 1, 0, 2]], np.int32)},
    )
    chunks, _ = encode(Snapshot(3, {"f": Position(10, 99)}, ("a", "b", "c"), {"a": "car"}, counters, settings, arrays))
    return b"".join(chunks)


def test_every_flipped_bit_is_noticed():
    data = bytearray(sample())
    for at in range(len(data)):
        data[at] ^= 1 << at % 8
        with pytest.raises(Corrupt):
            decode(data)
        data[at] ^= 1 << at % 8
    assert decode(data).objects == ("a", "b", "c")


def test_every_cut_is_noticed():
    data = sample()
    for size in range(len(data)):
        with pytest.raises(Corrupt):
            decode(data[:size])
    with pytest.raises(Corrupt, match="starts with b'not ours'"):
        decode(b"not ours" + data[8:])


def test_an_artifact_is_not_a_snapshot():
    chunks, _ = encode_artifact(Artifact("spectral", "d" * 64, 1, {}, 0, {"labels": np.zeros(2, np.int32)}, {"k": 2}))
    assert decode_artifact(b"".join(chunks)).report == {"k": 2}
    with pytest.raises(Corrupt, match="holds 'artifact', expected 'snapshot'"):
        decode(b"".join(chunks))


def test_a_header_that_is_nested_too_deeply_is_refused():
    for depth, wrap in product((1, container.MAX_DEPTH), (lambda inner: [inner], lambda inner: {"a": inner})):
        meta = reduce(lambda inner, _: wrap(inner), range(depth), 0)
        data = b"".join(container.encode("x", {"a": meta}, {})[0])
        if depth == 1:
            assert container.decode(data)[1] == {"a": meta}
            continue
        with pytest.raises(Corrupt, match=f"more than {container.MAX_DEPTH} nested"):
            container.decode(data)


def test_objects_dtypes_that_need_pickle_are_refused():
    with pytest.raises(TypeError, match="dtype object"):
        container.encode("x", {}, {"a": np.array([None])})
