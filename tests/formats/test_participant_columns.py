"""Participants that are not read are named: their column in any language, or one that a spreadsheet rounded."""

import random

import pytest

from stream_engine.input.settings.loading import load
from stream_engine.service.preview import preview
from tests.support.readings import inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir"]


def odd_one_out(name, ids, answered="odd"):
    """Rows of odd-one-out by participants with these ids, ten each."""
    draw, rows = random.Random(2), []
    for text in ids:
        for number in range(10):
            shown = draw.sample(OBJECTS, 3)
            items = {f"item{place + 1}": each for place, each in enumerate(shown)}
            rows.append({name: text, "number": number + 1, **items, answered: draw.choice(shown)})
    return rows


def doubts(path):
    prepared = inferred(path)
    return [decision.why for decision in prepared.evidence if decision.topic == "in doubt"], prepared


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("prolific_no", ["5.61E+09", "5.61E+09", "5.62E+09"]),
        ("participant", ["5,6E+23", "61a", "61b", "61c"]),
        ("worker_id", ["1.2E+10"] * 3),
        ("matricule_id", ["2.07e+11", "2.08e+11"]),
    ],
)
def test_ids_that_a_spreadsheet_rounded_are_named_where_no_participants_are_read(tmp_path, name, ids):
    says, prepared = doubts(saved(tmp_path, odd_one_out(name, ids)))
    assert any(f"{name} holds ids in scientific notation" in text and "rounded" in text for text in says)
    assert "worker" not in prepared.settings.input.columns or prepared.settings.input.columns["worker"] == name


def test_numbers_of_a_measure_are_no_rounded_ids(tmp_path):
    rows = [row | {"pressure": f"{1 + row['number'] % 3}.5E+05"} for row in odd_one_out("participant", ["p", "q", "r"])]
    says, prepared = doubts(saved(tmp_path, rows))
    assert not says and prepared.settings.input.columns["worker"] == "participant"


@pytest.mark.parametrize(
    "name", ["kat\u0131l\u0131mc\u0131", "người_tham_gia", "zúčastněný", "mshiriki", "აბგ", "l'élève"]
)
@pytest.mark.parametrize("answered", ["odd", "seçilen"])
def test_a_column_like_participants_is_named_in_any_language(tmp_path, name, answered):
    says, prepared = doubts(saved(tmp_path, odd_one_out(name, ["S01", "S02", "S03", "S04"], answered)))
    readings = prepared.rivals or [prepared.settings]
    are_read = all(reading.input.columns.get("worker") == name for reading in readings)
    assert are_read or any(f"{name} (4 values) looks like them" in text for text in says)


def test_files_that_may_be_participants_are_named_before_a_run(tmp_path):
    rows = [dict(zip(("target", "left", "right", "choice"), names)) for names in ("abcb", "cbaa")]
    paths = [str(saved(tmp_path, rows * 6, f"sub-{number}.csv")) for number in (1, 2)]
    notices = {n: preview(load(None, {"source": tuple(paths[:n])}, {}), 100).notices for n in (1, 2)}
    assert "--participant-from file" in " ".join(notices[2]) and not notices[1]
    named = preview(load(None, {"source": tuple(paths), "input.participant_from": "file"}, {}), 100)
    assert named.workers == 2 and not named.notices


def test_a_column_below_a_header_of_two_levels_is_named(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book, draw = openpyxl.Workbook(), random.Random(1)
    for row in (("Study 4",), (), ("participant", "Stimuli", None, None, "Response")):
        book.active.append(row)
    book.active.append((None, "reference", "left", "right", "choice"))
    for number in range(40):
        anchor, *shown = draw.sample(OBJECTS, 3)
        book.active.append((None if number % 10 else f"S{number}", anchor, *shown, draw.choice(shown)))
    book.save(tmp_path / "a.xlsx")
    says, _ = doubts(tmp_path / "a.xlsx")
    assert any("a column without a name holds 'S0', 'S10', …" in text for text in says)
