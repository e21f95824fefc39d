"""Keys whose meaning another column spells out: applied where it is one, asked for part by part where it differs."""

import random
import re
import shlex
from collections import Counter

import pytest

from stream_engine.formats.inference import understood
from stream_engine.input.first_records import first_records
from stream_engine.input.settings.loading import load
from tests.support.process import engine
from tests.support.readings import comparisons, inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir"]
SPELT = {  # a name of a column, its text where f is left, and where j is
    "pairs": ("key_mapping", "f=left,j=right", "f=right,j=left"),
    "sentences": ("instruction", "Press F for left and J for right", "Press J for left and F for right"),
    "in one word": ("keys", "fLeft_jRight", "fRight_jLeft"),
    "a list": ("mapping", "f=left|j=right", "f=right|j=left"),
    "the key of a side": ("left_key", "f", "j"),
    "the side of a key": ("meaning_of_f", "left", "right"),
    "an order": ("key_order", "fj", "jf"),
}


def trials(swapped, name="", texts=("", ""), keys="fj"):
    """Picks by six participants, of whom some have swapped keys, and a column of the mapping; and what was meant."""
    rows, meant, draw = [], Counter(), random.Random(3)
    for number in range(60):
        person, is_swapped = f"P{number // 10}", swapped(number // 10)
        anchor, *sides = draw.sample(OBJECTS, 3)
        chosen = draw.randrange(2)
        row = {"who": person, "trial": number, "target": anchor, "left": sides[0], "right": sides[1]}
        row["key"] = keys[chosen ^ is_swapped]
        rows.append(row | ({name: texts[is_swapped]} if name else {}))
        meant[person, anchor, sides[chosen], sides[1 - chosen]] += 1
    return rows, meant


@pytest.mark.parametrize("how", SPELT)
def test_keys_that_are_swapped_in_some_rows_are_read_part_by_part(tmp_path, how):
    name, *texts = SPELT[how]
    rows, meant = trials(lambda person: person % 2 == 1, name, texts)
    path = saved(tmp_path, rows)
    prepared = inferred(path)
    assert f"column {name} " in prepared.problem and "says what key means, and this differs" in prepared.problem
    assert prepared.problem.count("stream-engine run") == 2 and "stream-engine merge A B" in prepared.problem
    settings = load(None, {"source": (str(path),)}, {})
    offers = understood(first_records(settings)).obstacle.offers
    assert [sum(comparisons(settings, offer).values()) for offer in offers] == [30, 30]
    assert sum((comparisons(settings, offer) for offer in offers), Counter()) == meant


@pytest.mark.parametrize("how", ["pairs", "sentences", "in one word", "the key of a side", "the side of a key"])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_one_mapping_for_all_rows_is_applied(tmp_path, how, is_swapped):
    name, *texts = SPELT[how]
    rows, meant = trials(lambda person: is_swapped, name, texts)
    prepared = inferred(saved(tmp_path, rows)).raise_if_undecided()
    assert comparisons(prepared.settings) == meant


@pytest.mark.parametrize("keys", ["12", ("ArrowLeft", "ArrowRight"), "xm"])
def test_other_keys_are_spelt_out_too(tmp_path, keys):
    texts = [f"{one}=left, {other}=right" for one, other in (keys, keys[::-1])]
    rows, meant = trials(lambda person: person > 2, "mapping", texts, keys)
    path = saved(tmp_path, rows)
    settings = load(None, {"source": (str(path),)}, {})
    offers = understood(first_records(settings)).obstacle.offers
    assert sum((comparisons(settings, offer) for offer in offers), Counter()) == meant


def test_the_keys_that_are_allowed_are_no_mapping(tmp_path):
    rows, meant = trials(lambda person: False, "keys_allowed", ("j,f", ""))
    assert comparisons(inferred(saved(tmp_path, rows)).raise_if_undecided().settings) == meant


def test_options_against_the_mapping_are_warned_of_and_those_of_a_part_are_not(tmp_path):
    rows, _ = trials(lambda person: person % 2 == 1, *("key_mapping", ("f=left,j=right", "f=right,j=left")))
    path = saved(tmp_path, rows)
    options = "--type pick --columns anchor=target,shown=left|right,chosen=key,participant=who --answers-by position"
    options = [*shlex.split(options.replace("|", r"\|")), "--codes", "chosen:f=left,j=right"]
    said = engine("preview", path, *options).stdout
    assert "key_mapping (f=left,j=right, f=right,j=left) says that answers mean other objects" in said
    where, codes = re.findall(r"--where (\S+) --codes (\S+?)[,;]? ", said)[-1]
    assert (where, codes) == ("key_mapping=f=right,j=left", "chosen:j=left,f=right")
    alone = engine("preview", path, *options[:-1], codes, "--where", where).stdout
    assert "warning" not in alone and re.search(r"events +30 ", alone)
