"""A column that says in which order objects were shown: asked, with the commands of both readings."""

import shlex
from collections import Counter
from random import Random

import pytest

from stream_engine.formats.record_columns import records_of
from stream_engine.formats.shown_orders import shown_order
from tests.support.readings import comparisons, inferred, saved

LETTERS = "ABC"


def shown_in_order(write, size=3, answer=lambda place: place + 1):
    """Rows in which the answer is a place in an order that `write` tells from it, and what was said."""
    random, rows, said = Random(0), [], Counter()
    for number in range(60):
        anchor, *objects = random.sample([*"pqrstuvw"], 1 + size)
        order = random.sample(range(size), size)
        place = random.randrange(size)
        odd = objects[order[place]]
        row = {"participant": f"p{number % 4}"} | ({"target": anchor} if size == 2 else {})
        row |= {f"item{LETTERS[at]}": name for at, name in enumerate(objects)}
        rows.append(row | write(order, objects) | {"choice" if size == 2 else "odd_position": answer(place)})
        others = [name for name in objects if name != odd]
        if size == 2:
            said[row["participant"], anchor, odd, *others] += 1
        else:
            said[row["participant"], *others, odd] += 1
            said[row["participant"], *reversed(others), odd] += 1
    return rows, said


def of_commands(problem, settings):
    """What the commands for the order say, all together."""
    from click import Context

    from stream_engine.commands.input_options import settings_of
    from stream_engine.commands.preview import command

    found = Counter()
    _, _, commands = problem.partition("if it says which object stood at each place")
    for part in commands.split("stream-engine run ")[1:]:
        words = shlex.split(part.partition(" (")[0])[1:]
        if "--state" in words:
            at = words.index("--state")
            options = [settings.source[0], *words[:at], *words[at + 2 :]]
            context: Context = command.make_context("preview", options)
            given = {name: value for name, value in context.params.items() if name not in ("events", "as_json")}
            found += comparisons(settings_of(given))
    return found


ORDERS = {
    "numbers and -": lambda order, _: {"display_order": "-".join(str(at + 1) for at in order)},
    "numbers and spaces": lambda order, _: {"display_order": " ".join(str(at + 1) for at in order)},
    "numbers and _": lambda order, _: {"order": "_".join(str(at + 1) for at in order)},
    "numbers and commas": lambda order, _: {"permutation": ",".join(str(at) for at in order)},
    "letters": lambda order, _: {"layout": "".join(LETTERS[at] for at in order)},
    "letters and -": lambda order, _: {"layout": "-".join(LETTERS[at] for at in order)},
    "names and -": lambda order, objects: {"display_order": "-".join(objects[at] for at in order)},
    "names and |": lambda order, objects: {"display_order": "|".join(objects[at] for at in order)},
    "places": lambda order, _: {f"pos{LETTERS[at]}": order.index(at) + 1 for at in range(len(order))},
}


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("kind", ORDERS)
def test_an_order_of_display_is_asked_with_commands_that_read_it(tmp_path, kind, size):
    rows, said = shown_in_order(ORDERS[kind], size)
    found = inferred(saved(tmp_path, rows))
    assert "says nothing about the answer, stream-engine run" in found.problem
    assert of_commands(found.problem, found.settings) == said


@pytest.mark.parametrize("flag", [("False", "True"), ("0", "1"), ("no", "yes")])
def test_an_exchange_of_sides_is_asked_with_commands_that_read_it(tmp_path, flag):
    rows, said = shown_in_order(lambda order, _: {"swapped": flag[order[0]]}, 2, lambda place: ("left", "right")[place])
    found = inferred(saved(tmp_path, rows))
    assert of_commands(found.problem, found.settings) == said


def test_an_order_of_sides_is_asked_with_commands_that_read_it(tmp_path):
    rows, said = shown_in_order(
        lambda order, _: {"presentation": ("LR", "RL")[order[0]]}, 2, lambda place: ("left", "right")[place]
    )
    found = inferred(saved(tmp_path, rows))
    assert of_commands(found.problem, found.settings) == said


def test_orders_of_numbers_could_be_places_of_objects():
    rows = {"order": ["2-3-1", "1-2-3"], "itemA": ["x", "y"], "itemB": ["y", "z"], "itemC": ["z", "x"]}
    found = records_of(rows)
    order = shown_order(found, found.columns["order"], ("itemA", "itemB", "itemC"))
    assert order is not None and order.parts[1][1] == (1, 2, 0) and "exchange the --codes of 2-3-1" in order.note


@pytest.mark.parametrize("note", [["1-2 weeks", "2-1 weeks"], ["x-y", "z-w"], ["trial_1_2", "trial_2_1"]])
def test_other_texts_are_no_orders(note):
    found = records_of({"note": note, "itemA": ["x", "y"], "itemB": ["y", "z"]})
    assert shown_order(found, found.columns["note"], ("itemA", "itemB")) is None
