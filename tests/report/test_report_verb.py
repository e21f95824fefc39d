"""`report`: from a state and from files, with figures, pictures and texts; what is wrong is said in one line."""

import base64
import hashlib
import os
import re

import numpy as np
import pytest
from PIL import Image

from stream_engine.refits import quick_map
from stream_engine.service import run
from stream_engine.service.http import make_export
from stream_engine.state.artifact import PRELIMINARY
from stream_engine.state.store import Store
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line
from tests.support.reported import QUICK, answers, held, names, state


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return state(tmp_path_factory.mktemp("report"), answers(10, 900), config=QUICK)


def test_one_file_that_needs_nothing_else(study, tmp_path):
    said = engine("report", "--state", study, "--out", tmp_path / "r.html").stdout
    html = (tmp_path / "r.html").read_text()
    assert str(tmp_path / "r.html") in said and len(html) < 300_000
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]', html)
    assert " style=" not in html and " onclick=" not in html
    assert '<script>alert("x")</script>' not in html and "&lt;script&gt;alert(" in html
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    for block in re.findall(r"<script>(.*?)</script>", html, re.S) + re.findall(r"<style>(.*?)</style>", html, re.S):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}'" in policy
    assert sorted(held(html)["names"]) == sorted(names(10))
    assert html == page_of(study, tmp_path / "r.html")


def page_of(study, out, *more) -> str:
    engine("report", "--state", study, "--out", out, *more)
    return out.read_text()


def test_a_state_takes_no_options_of_sources(study, tmp_path):
    labels = jsonl(tmp_path / "labels.jsonl", [])
    out, config = tmp_path / "r.html", ("--config", tmp_path / "none.toml")
    given = ("--state", study, "--labels", labels, "--type", "pick", "--where", "a=b", *config, "--out", out)
    said = one_line(engine("report", *given, status=2).stderr)
    assert all(option in said for option in ("--labels", "--type", "--where", "--config", "SOURCE"))
    assert "--out" not in said and not out.exists()


def test_the_page_is_there_while_refits_are_still_running_and_ends_as_that_of_a_run(tmp_path, monkeypatch):
    run_over_it = state(tmp_path, answers(6, 200), config=QUICK)
    out, real, pages, begun = tmp_path / "r.html", run.run, [], []

    def slow(settings, bars, say, meanwhile, command, exclude):
        def told(running):
            meanwhile(running)
            begun.append((running, out.read_text()))

        if not meanwhile:
            pages.append(None)
        real(settings, bars, say=say, meanwhile=meanwhile and told, command=command, exclude=exclude)
        if meanwhile:
            meanwhile(["sdp_clustering"])
            pages.append(out.read_text())

    monkeypatch.setattr(run, "run", slow)
    given = "report", tmp_path / "events.jsonl", "--config", tmp_path / "engine.toml"
    said = engine(*given, "--out", out).stderr
    assert "200 comparisons" in said and "is more like" in said and "--state /tmp" not in said
    assert f"{out}  preliminary" in said, "not on a terminal, too"
    assert "--state DIR " in re.sub("<[^>]*>", "", out.read_text()), "the folder that it was made in is gone"
    assert held(out.read_text()) == held(page_of(run_over_it, tmp_path / "s.html"))
    running, first = begun[0]
    assert "embedding" in running and held(first)["maps"], "the first page has a quick map"
    for page in (first, pages[0]):
        assert 'http-equiv="refresh"' in page and "Preliminary" in page
    assert held(pages[0]) == held(out.read_text())
    assert 'http-equiv="refresh"' not in out.read_text() and "Preliminary" not in out.read_text()
    engine(*given, "--out", out, "--exclude", "nobody", status=None)
    assert pages[1:] == [None], "a page without the exclusion was shown"


def test_what_is_printed_beside_a_page_with_exclusions_is_what_the_page_says(tmp_path):
    people = [{**event, "worker": f"w{number % 4}"} for number, event in enumerate(answers(6, 200))]
    state(tmp_path, people, config=QUICK)
    given = "report", tmp_path / "events.jsonl", "--config", tmp_path / "engine.toml", "--out", tmp_path / "r.html"
    said = engine(*given, "--exclude", "participant=w1").stderr.splitlines()[-1]
    assert "preliminary" not in said and "200 comparisons (150 in total without" in said and "excluded: w1" in said
    assert "150 comparisons" in (tmp_path / "r.html").read_text()


def test_nothing_is_fitted_for_a_page_of_no_answers(tmp_path):
    (tmp_path / "e.csv").write_text("anchor,near,far\n")
    said = engine("report", tmp_path / "e.csv", "--out", tmp_path / "r.html", status=1).stderr
    assert "got 0 answers" in said and "refit" not in said and "nothing fitted" in said


def test_filters_without_effect_are_warned_about(tmp_path):
    rows = [{**event, "phase": ("try", "test")[number % 2]} for number, event in enumerate(answers(6, 200))]
    file = jsonl(tmp_path / "e.jsonl", rows)
    said = "none of the 200 rows has phase=tri, so --where 'phase!=tri' excludes no row; phase has try, test"
    for value in ("tri", "try|tri"):
        assert said in engine("preview", file, "--where", f"phase!={value}").stdout
    run = ("run", "--state", tmp_path / "s", "--no-refits", "--where")
    assert f"warning: {said}" in engine(*run, "phase!=tri", file).stderr
    assert "excludes no row" not in engine(*run, "phase!=try", "--start-over", file).stderr


def test_figures_beside_it(study, tmp_path):
    said = engine("report", "--state", study, "--out", tmp_path / "r.html", "--figures", tmp_path / "f").stdout
    made = sorted(path.name for path in (tmp_path / "f").iterdir())
    expected = sorted({name.partition(".")[0] for name in made})
    assert {"calibration", "dendrogram", "learning_curve", "map"} <= set(expected)
    assert made == sorted(f"{name}.{format}" for name in expected for format in ("pdf", "png", "svg"))
    assert f"{len(made)} files" in said
    for path in (tmp_path / "f").glob("*.png"):
        with Image.open(path) as image:
            assert image.width == pytest.approx(85 / 25.4 * 300, abs=2)
            assert image.info["dpi"] == pytest.approx((300, 300), abs=0.01)
    html = (tmp_path / "r.html").read_text()
    carried = re.findall(r'href="data:application/pdf;base64,([^"]*)" download="(\w+).pdf"', html)
    assert {name: base64.b64decode(content) for content, name in carried} == {
        name: (tmp_path / "f" / f"{name}.pdf").read_bytes() for name in expected
    }


def test_figures_are_as_wide_and_in_the_font_that_was_asked_for(study, tmp_path):
    asked = ("report", "--state", study, "--out", tmp_path / "r.html", "--figures", tmp_path / "f")
    engine(*asked, "--figure-width", "17.4cm", "--font", "dejavu serif", "--font-size", "9")
    with Image.open(tmp_path / "f" / "map.png") as image:
        assert image.width == pytest.approx(174 / 25.4 * 300, abs=2)
    assert b"DejaVuSerif" in (tmp_path / "f" / "map.pdf").read_bytes()


def test_pictures_and_texts_of_objects(study, tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.fromarray(np.zeros((400, 300, 3), np.uint8)).save(folder / "object 6.png")
    Image.fromarray(np.zeros((4, 3), np.uint8)).save(folder / "nobody.png")
    done = engine("report", "--state", study, "--out", tmp_path / "r.html", "--objects", folder)
    (name,) = held((tmp_path / "r.html").read_text())["pictures"]
    assert name == "object 6" and "1 of" in done.stdout
    table = tmp_path / "objects.csv"
    table.write_text('object,text,image\na & b,"two, letters",\nobject 6,,pictures/object 6.png\n')
    kept = held(page_of(study, tmp_path / "t.html", "--objects", table))
    assert kept["texts"] == {"a & b": "two, letters"} and list(kept["pictures"]) == ["object 6"]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ([], "--state DIR … SOURCE"),
        (["--state", "{s}", "{s}/events.jsonl"], "got both"),
        (["--state", "{t}/nowhere"], "snapshot"),
        (["--state", "{s}", "--out", "{t}/no/r.html"], "folder"),
        (
            ["--state", "{s}", "--objects", "{t}/none.csv"],
            "none.csv",
        ),
        (["--state", "{s}", "--objects", "{t}/bad.csv"], "object … image, text"),
        (["--state", "{s}", "--objects", "{t}/away.csv"], "folder"),
        (["--state", "{s}", "--objects", "{t}/broken.csv"], "bad.csv: "),
        (["--state", "{s}", "--objects", "{t}/empty"], "pictures"),
        (["--state", "{s}", "--objects", "{t}/pipe.csv"], "pipe.png … file"),
        (["--state", "{s}", "--figure-width", "1in"], "--figure-width … '1in' … 30mm"),
        (["--state", "{s}", "--font", "No Such Font"], "--font … 'No Such Font'"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(study, tmp_path, arguments, expected):
    (tmp_path / "bad.csv").write_text("name,picture\na,b\n")
    (tmp_path / "away.csv").write_text("object,image\na & b,../../etc/passwd\n")
    (tmp_path / "broken.csv").write_text("object,image\na & b,bad.csv\n")
    (tmp_path / "pipe.csv").write_text("object,image\na & b,pipe.png\n")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "empty").mkdir()
    filled = [each.format(s=study, t=tmp_path) for each in arguments]
    if "--out" not in filled:
        filled += ["--out", str(tmp_path / "r.html")]
    assert states(one_line(engine("report", *filled, status=None).stderr), expected)
    assert not (tmp_path / "r.html").exists()


def test_rejected_rows_are_shown_with_their_positions_and_rows_in_doubt_are_on_the_page_too(tmp_path):
    rows = [{"anchor": f"o{i % 5}", "near": f"o{(i + 1) % 5}", "far": f"o{(i + 2) % 5}"} for i in range(30)]
    rows = [{**row, "worker": "TEST" if i < 3 else f"w{i % 3}"} for i, row in enumerate(rows)]
    wrong = [{"anchor": "o1", "near": f"o{i}", "far": f"o{i}"} for i in range(12)]
    file = jsonl(tmp_path / "events.jsonl", [*rows, *wrong])
    config, key = tmp_path / "engine.toml", tmp_path / "key"  # of signed states: this one is gone in the end
    config.write_text(f'[signing]\nkey = {{ file = "{key}" }}\n')
    key.write_text("k" * 64)
    said = engine("report", file, "--config", config, "--out", tmp_path / "r.html").stderr
    shown = [line for line in said.splitlines() if line.startswith("rejected: ")]
    assert [re.search(r"line (\d+)", line)[1] for line in shown] == [str(line) for line in range(31, 41)]
    assert re.findall(r"([\d,]+) more rejected", said) == [str(len(wrong) - len(shown))] == ["2"]
    outcome = next(line for line in said.splitlines() if "12 rejected" in line)
    assert "dead_letters" not in outcome, "the folder is gone when the command ends"
    (doubt,) = [line for line in said.splitlines() if "worker is TEST" in line]
    assert doubt.partition("although ")[2].partition(" (")[0] in (tmp_path / "r.html").read_text()


def test_a_page_of_a_run_has_a_quick_map_while_the_embedding_is_fitted(tmp_path):
    bare = state(tmp_path, answers(8, 200), "--no-refits")
    for first_map in ("", "quick"):
        folder = tmp_path / f"page{first_map}"
        folder.mkdir()
        assert make_export.main(str(bare), "latest", "page", "plain", str(folder), "", first_map) == 0
        page = (folder / "page.html").read_text()
        assert ("Preliminary" in page) == bool(first_map)


def test_a_quick_map_of_many_answers_is_fitted_to_a_sample(tmp_path, monkeypatch):
    published = Store(state(tmp_path, answers(8, 400), "--no-refits")).published()
    monkeypatch.setattr(quick_map, "SAMPLED_ANSWERS", 200)
    report = quick_map.with_quick_map(published).artifacts["embedding"].report
    assert report[PRELIMINARY] and 100 < report["answers"] < 300
    monkeypatch.setattr(quick_map, "MAX_COMPARISONS", 300)
    assert quick_map.with_quick_map(published) is published
