"""Names and their ids: against a dictionary, over every kind of name; packed names against a tuple."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.data import packed_names as packed
from stream_engine.data.packed_names import Names, pack_names
from stream_engine.state import object_index
from stream_engine.state.object_index import ObjectIndex, waiting

ANY = st.text(st.characters(exclude_categories=("Cs",)), max_size=4) | st.sampled_from(
    ["a", "aa", "é", "e\u0301", "", "\0", "\0\0"]
)


@settings(max_examples=60, deadline=None)
@given(blocks=st.lists(st.lists(ANY, max_size=40), max_size=6))
def test_ids_are_those_of_a_dictionary(blocks):
    index, known, views = ObjectIndex(), {}, []
    for block in blocks:
        assert index.ids(block).tolist() == [known.setdefault(name, len(known)) for name in block]
        views.append((index.names, tuple(known)))
        assert len(index) == len(known)
    assert all(
        view == names and list(view) == list(names) for view, names in views
    )  # none changed with what came later
    asked = [name for block in blocks for name in block] + ["nobody", "\U0001f600"]
    assert index.find(asked).tolist() == [known.get(name, -1) for name in asked]
    again = ObjectIndex(index.names)
    assert again.names == tuple(known) and again.ids(asked[::-1]).tolist() == index.ids(asked[::-1]).tolist()
    assert waiting(dict.fromkeys([*asked, "who"], "x"), again) == ["who"] and "who" not in index


def test_a_name_that_is_no_text_changes_nothing():
    index = ObjectIndex(["a"])
    with pytest.raises(UnicodeEncodeError):
        index.ids(["b", "\ud800"])
    assert index.names == ("a",) and index.ids(["b"]).tolist() == [1]


@pytest.mark.parametrize("names", [(), ("",), ("a", "", "b" * 300, "Vélo", "日本", "z"), tuple(map(str, range(100)))])
def test_packed_names_are_a_tuple_of_names(names, monkeypatch):
    monkeypatch.setattr(packed, "BLOCK", 3)
    made = Names(**pack_names(names))
    n = len(names)
    assert made == names
    assert list(made) == list(names)
    assert len(made) == n
    assert made != (*names, "x")
    assert made != "x"
    assert [made[i] for i in range(-n, n)] == [names[i] for i in range(-n, n)]
    for part in (slice(2), slice(1, None), slice(-3, None), slice(None, None, 2), slice(3, 1), slice(None)):
        assert made[part] == names[part] and repr(made[part]) == repr(names[part])
        assert Names(**pack_names(made[part])) == names[part]
    with pytest.raises(IndexError):
        made[n]
    offsets = pack_names(made[1:])["offsets"]
    assert offsets[0] == 0 and pack_names(list(names[1:]))["offsets"].tolist() == offsets.tolist()


def test_where_there_is_no_room_nothing_is_taken_in(monkeypatch):
    """Room is for those that are new, each counted once."""
    monkeypatch.setattr(object_index, "MAX_OBJECTS", 5)
    index = ObjectIndex(["a", "b", "c"])
    with pytest.raises(OverflowError, match="objects: 6 names.*5"):
        index.ids(["d", "a", "e", "d", "f"])
    assert index.names == ("a", "b", "c")
    assert index.ids(["a", "d", "b", "e", "d", "a"]).tolist() == [0, 3, 1, 4, 3, 0]
    assert index.ids(["e", "a", "b"]).tolist() == [4, 0, 1]
