"""`make run`: the main jobs on built-in data, to the page that a person reads."""

import re
import time
from collections import Counter

import numpy as np

from stream_engine.commands import demo
from stream_engine.state.store import Store
from tests.support.process import engine
from tests.support.reported import held


def test_the_demo_is_short_and_what_it_says_is_true(tmp_path):
    began = time.time()
    done = engine("demo", "--state", tmp_path / "demo")
    lines = done.stdout.splitlines()
    assert len(lines) <= 8 and not done.stderr, done.stderr
    said = {line.split()[0]: line for line in lines}
    assert list(said) == ["survey", "copies", "answers", "people", "groups", "page", "stream"]

    survey = Store(tmp_path / "demo" / "survey").published()
    assert "2,040" in said["survey"]
    assert "40 objects" in said["survey"]
    assert "P19 (85)" in said["copies"]
    assert survey.snapshot.counters["events"] == 2040
    accuracy = survey.artifacts["embedding"].report["accuracy"]
    assert f"{100 * accuracy:.1f} %" in said["answers"] and "chance 50 %" in said["answers"]
    assert set(re.findall(r"P\d\d", said["people"])) == {f"P{number:02}" for number in demo.GUESSERS}

    labels = survey.artifacts["clusters"].arrays["labels"]
    written = [name.split("_")[0] for name in survey.snapshot.objects]
    pairs = Counter(zip(written, labels.tolist()))
    assert len(pairs) == 4 and "Four groups, clearly separated" in said["groups"]
    for word in demo.DIGITS.values():
        assert f"{word} (10)" in said["groups"]

    stream = Store(tmp_path / "demo" / "stream").published()
    assert stream.snapshot.counters["events"] == demo.STREAM and "200,000" in said["stream"]
    page = tmp_path / "demo" / "report.html"
    assert str(page) in said["page"] and page.stat().st_mtime > began
    shown = held(page.read_text())
    assert len(shown["names"]) == len(shown["pictures"]) == 40


def test_the_survey_has_what_the_demo_finds_in_it(tmp_path):
    """Guessers at chance, a file that was sent twice, practice trials; others mostly choose by digit."""
    demo.write_survey(tmp_path / "survey.csv", 0)
    rows = [line.split(",") for line in (tmp_path / "survey.csv").read_text().splitlines()[1:]]
    assert Counter(row[0] for row in rows)["P19"] == 2 * Counter(row[0] for row in rows)["P01"] == 176
    alone = [row for row in rows if row[1] == "main" and sorted(Counter(n[:3] for n in row[3:6]).values()) == [1, 2]]
    is_right = np.array([Counter(n[:3] for n in row[3:6])[row[6][:3]] == 1 for row in alone])
    guesses = np.isin([int(row[0][1:]) for row in alone], demo.GUESSERS)
    assert is_right[~guesses].mean() > 0.85 and 0.15 < is_right[guesses].mean() < 0.5
