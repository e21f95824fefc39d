"""Every file of the corpus is read right without options, or refused with the commands of both readings."""

from collections import Counter
from random import Random

import pytest

from stream_engine.formats.inference import understood
from stream_engine.formats.options import UnreadableHeader
from stream_engine.formats.record_columns import records_of
from stream_engine.input.answers_in_words import answers
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.layout_inference import prepare
from stream_engine.input.settings import BadSettings
from stream_engine.input.settings.loading import load
from stream_engine.input.sources import event_options, source
from tests.support.survey_files import FILES


def read(settings):
    """What the comparisons of a file say, how many trials were catch trials, and how many events were refused."""
    ingest, found, catch, refused = RecordDecoder(event_options(settings)._replace(provenance=True)), [], 0, []
    for uri in settings.source:
        opened = source(settings, uri, {})
        while not opened.finished():
            for block in ingest.blocks(opened.poll(1.0)):
                for who, answer in answers(block.decoded):
                    found += [(who, *names) for names in answer]
                catch += len(block.decoded.provenance.catch_passed)
                refused += [letter.message for letter in block.dead_letters]
        opened.close()
    return Counter(found), catch, refused


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_right_or_refused_with_both_commands(tmp_path, name):
    file = FILES[name]
    path = tmp_path / file.name
    path.write_bytes(file.text.encode(file.encoding))
    inferred = prepare(load(None, {"source": (str(path),)}, {}))
    if file.refused:
        with pytest.raises(BadSettings, match="nothing was read"):
            inferred.raise_if_undecided()
        assert any(read(each)[0] == Counter(file.answers) for each in inferred.rivals)
        return
    if not file.answers:
        with pytest.raises(UnreadableHeader, match="--columns"):
            read(inferred.raise_if_undecided().settings)
        return
    got, catch, refused = read(inferred.raise_if_undecided().settings)
    assert got == Counter(file.answers), (inferred.line, refused[:2])
    assert catch == file.catch, (inferred.line, refused[:2])
    assert not refused, (inferred.line, refused[:2])


@pytest.mark.parametrize("columns", [("Reference", "Near", "Far"), ("Target", "Option1", "Option2", "Choice")])
def test_an_object_that_is_called_by_a_number_changes_nothing(columns):
    random, names = Random(0), [f"x{i}" for i in range(9)]
    shown = [random.sample(names, 3) for _ in range(40)]
    rows = [[*row, random.choice(row[1:])][: len(columns)] for row in shown if row[0] != "x0"]
    other = [["7" if name == "x0" else name for name in row] for row in rows]
    one, two = (understood(records_of(dict(zip(columns, map(list, zip(*each)))))).readings for each in (rows, other))
    assert len(one) == len(two) == 1
    assert (one[0].type, one[0].columns, one[0].answers_by) == (two[0].type, two[0].columns, two[0].answers_by)


@pytest.mark.parametrize(
    ("column", "kinds"),
    [("odd", ["odd_one_out"]), ("central", ["most_central"]), ("pick", ["odd_one_out", "most_central"])],
)
def test_an_answer_about_three_objects_is_doubtful_where_no_word_says_what_it_means(column, kinds):
    random = Random(0)
    shown = [random.sample([f"x{i}" for i in range(9)], 3) for _ in range(30)]
    columns = dict(zip(("o1", "o2", "o3"), map(list, zip(*shown))))
    found = understood(records_of(columns | {column: [random.choice(row) for row in shown]})).readings
    assert [each.type for each in found] == kinds and all(bool(each.doubt) == (len(kinds) > 1) for each in found)


def with_keys(keys, objects=3):
    """The readings of trials in which these keys were pressed, in turn."""
    random, names = Random(0), [f"x{i}" for i in range(9)]
    shown = [random.sample(names, objects) for _ in range(60)]
    columns = {f"stim{place + 1}": [row[place] for row in shown] for place in range(objects)}
    if objects == 2:
        columns["target"] = [random.choice([name for name in names if name not in row]) for row in shown]
    return understood(records_of(columns | {"key_resp.keys": [keys[n % len(keys)] for n in range(60)]})).readings


@pytest.mark.parametrize(
    "keys",
    [
        *(("left", middle, "right") for middle in ("down", "up", "middle")),
        *(("ArrowLeft", "ArrowUp", "ArrowRight"), ("up", "middle", "down"), ("first", "second", "third")),
        *(("37", "40", "39"), ("num_1", "num_2", "num_3"), ("1", "2", "3"), ("left", "right"), ("up", "down")),
    ],
    ids=" ".join,
)
def test_keys_mean_the_objects_in_their_order(keys):
    found = with_keys(keys, len(keys))
    assert found and all(each.answers_by == "position" for each in found)
    for each in found:
        codes = next(iter(each.codes.values()), {key: f"stim{key}" for key in keys})
        assert [codes[key] for key in keys] == [f"stim{n + 1}" for n in range(len(keys))]


@pytest.mark.parametrize(
    "keys",
    ["asd", "jkl", ("left", "right"), ("up", "down"), ("left", "up", "right", "down"), ("first", "second"), "ab"],
    ids=" ".join,
)
def test_keys_of_which_two_could_mean_one_object_are_not_read(keys):
    assert not with_keys(keys)


@pytest.mark.parametrize("objects", [2, 3])
def test_a_key_that_is_hit_by_mistake_is_no_answer(objects):
    keys = ["left", "down", "right"] * 6 if objects == 3 else ["left", "right"] * 9
    found = with_keys([*keys, "up"], objects)
    codes = next(iter(found[0].codes.values()))
    assert len(set(codes.values())) == len(codes) == objects and "up" not in codes
