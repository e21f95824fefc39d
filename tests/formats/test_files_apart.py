"""Several files of which some ask for the farther object, or hold no answers, are not read as one."""

from pathlib import Path
from random import Random

import pytest

from stream_engine.formats.reading import in_doubt
from stream_engine.input.layout_inference import prepare
from stream_engine.input.settings.loading import load
from tests.support.readings import comparisons

COLUMNS = ("participant", "target", "option1", "option2", "choice")


def saved(folder, name, above="", answered="choice", seed=0):
    """A file of answers that name the second option; its path as text."""
    random, lines = Random(seed), [above] if above else []
    lines.append(",".join((*COLUMNS[:-1], answered)))
    for number in range(40):
        target, one, other = random.sample([*"abcdefgh"], 3)
        lines.append(f"p{number % 4},{target},{one},{other},{other}")
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return str(folder / name)


def prepared(*paths, **options):
    return prepare(load(None, {"source": paths, **options}, {}))


@pytest.mark.parametrize("names", [("most_similar", "least_similar"), ("a", "farthest"), ("ähnlich", "unähnlich")])
def test_names_that_ask_for_different_ends_are_asked_with_a_command_for_each(tmp_path, names):
    paths = [saved(tmp_path, f"{name}.csv", seed=number) for number, name in enumerate(names)]
    problem = prepared(*paths).problem
    nearer, farther, merge = problem.partition("next: ")[2].split(", then ")
    assert names[0] in nearer and "farther" not in nearer.partition("--type")[2]
    assert names[1] in farther and "--answer-is farther" in farther
    assert merge.startswith("stream-engine merge A B")


def test_lines_above_and_headers_that_ask_for_different_ends_are_asked(tmp_path):
    near = saved(tmp_path, "a.csv", "# Which one is more similar to the target?")
    far = saved(tmp_path, "b.csv", "# Which one is less similar to the target?", seed=1)
    assert prepared(near, far).problem.count("stream-engine run") == 2
    near, far = saved(tmp_path, "c.csv", "", "more_similar"), saved(tmp_path, "d.csv", "", "less_similar", 1)
    assert prepared(near, far).problem.count("stream-engine run") == 2


def test_files_that_ask_for_one_end_are_read_together(tmp_path):
    near = [saved(tmp_path, f"{name}.csv", seed=number) for number, name in enumerate(("part_1", "part_2"))]
    assert not prepared(*near).problem
    far = [saved(tmp_path, f"{name}.csv", "", "less_similar", number) for number, name in enumerate("ab")]
    found = prepared(*far)
    assert not found.problem and found.settings.input.answer_is == "farther"


def test_a_code_book_among_the_files_is_named(tmp_path):
    answers = saved(tmp_path, "a.csv")
    (tmp_path / "b.csv").write_text("variable,meaning\noption1,the left one\noption2,the right one\n")
    problem = prepared(answers, str(tmp_path / "b.csv")).problem
    assert "b.csv (meaning, variable)" in problem and problem.endswith(f"stream-engine preview {answers}")


@pytest.mark.parametrize("name", ["a", "least_similar"])
def test_the_direction_that_an_option_gives_needs_no_type(tmp_path, name):
    path = saved(tmp_path, f"{name}.csv")
    found = prepared(path, **{"input.answer_is": "farther"})
    rows = [line.split(",") for line in Path(path).read_text().splitlines()[1:]]
    assert {*comparisons(found.settings)} == {(who, target, one, two) for who, target, one, two, _ in rows}


def test_an_odd_one_out_has_no_direction(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("image1,image2,image3,odd_one_out\n" + "a,b,c,a\nb,c,d,d\nc,d,e,d\n" * 9)
    assert "one meaning" in prepared(str(path), **{"input.answer_is": "farther"}).problem


@pytest.mark.parametrize(("names", "is_named"), [(("lab_a", "lab_b"), True), (("session_1", "session_2"), False)])
def test_numbers_of_participants_in_several_files_are_named(tmp_path, names, is_named):
    paths = [saved(tmp_path, f"{name}.csv", seed=number) for number, name in enumerate(names)]
    for path in paths:
        Path(path).write_text(Path(path).read_text().replace("\np", "\n"))
    assert any("in several files" in text for text in in_doubt(prepared(*paths).evidence)) == is_named
