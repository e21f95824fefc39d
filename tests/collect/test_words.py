"""The page's own words: every key in every language that is shipped, and a file of somebody's own."""

import re
from pathlib import Path

import msgspec
import pytest

import stream_engine.collect.page as folder
from stream_engine.collect.page import WORDS_OF_SCRIPT, page
from stream_engine.collect.page.words import Words, english, shipped, words_of
from stream_engine.collect.study import Asking, Study, Texts
from tests.support.collecting import ALONE, get
from tests.support.facts import states
from tests.support.process import engine, one_line

HERE = Path(folder.__file__).parent
DUTCH = (
    (HERE / "words" / "en.toml").read_text().replace('"en"', '"nl"').replace(f'"{english().begin}"', '"Beginnen maar"')
)


@pytest.mark.parametrize("language", shipped())
def test_every_key_is_there_in_its_own_words(language):
    words, ours = words_of(language), english()
    assert words.language == language
    same = [key for key in Words.__struct_fields__ if getattr(words, key) == getattr(ours, key)]
    assert language == "en" or same == []


def test_the_page_says_nothing_but_these_words():
    """Every key is used, and no text of its own is left in the page or the script."""
    html, script = (HERE / "ask.html").read_text(), (HERE / "ask.js").read_text()
    bare = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|<[^>]*>", " ", html, flags=re.DOTALL)
    assert re.findall(r"[A-Za-z]+", bare) == []
    assert re.findall(r'"[A-Z][a-z]+ [a-z][^"]*"|`[A-Z][a-z]+ [^`]*`', script) == []
    used = set(re.findall(r"\bwords\.(\w+)", html + script + (HERE / "__init__.py").read_text()))
    assert used - {"words_of"} == set(Words.__struct_fields__) - {"stranger"}  # which is found by its reason
    assert set(re.findall(r"\bwords\.(\w+)", script)) | {"stranger"} == set(WORDS_OF_SCRIPT)


@pytest.mark.parametrize(
    "asking, said",
    [
        (Asking(), "more_like"),
        (Asking(type="triplet"), "more_like"),
        (Asking(shown=4), "most_like"),
        (Asking(type="odd_one_out"), "odd_one_out"),
        (Asking(shown=5, choose=2), "several"),
    ],
)
@pytest.mark.parametrize("language", shipped())
def test_the_question_is_in_its_language(asking, said, language):
    made = page(Study(asking=asking, texts=Texts(language=language)), "key")
    wanted = getattr(words_of(language), said).replace("{n}", "2")
    assert f'<html lang="{language}">' in made
    assert wanted in msgspec.json.decode(re.search(r'data-told="([^"]*)"', made)[1].replace("&#34;", '"'))["question"]


def test_a_language_that_is_not_shipped_is_what_the_page_says_it_is_in():
    assert '<html lang="pt">' in page(Study(texts=Texts(language="pt")), "key")


def test_words_of_ones_own_are_remembered(collecting, tmp_path):
    (tmp_path / "nl.toml").write_text(DUTCH)
    study = collecting("--words", str(tmp_path / "nl.toml"), program=ALONE)
    for _ in range(2):
        said = get(f"{study.base}/ask").text
        assert '<html lang="nl">' in said and '<button id="begin">Beginnen maar</button>' in said
        study.kill()
        study._more = study._more[2:]
        study.start()


@pytest.mark.parametrize(
    "made, said",
    [
        (lambda text: text.replace("begin = ", "begins = "), "unknown field `begins`"),
        (lambda text: text.replace("{n} of {of}", "{n}"), "far … '{n}' … {n} … {of}"),
        (lambda text: text.replace('"Continue"', '" "'), "go_on … ' '"),
        (lambda text: None, "No such file"),
    ],
)
def test_a_file_of_words_that_is_wrong_is_said_in_one_line(tmp_path, names, made, said):
    path = tmp_path / "words.toml"
    if (text := made(DUTCH)) is not None:
        path.write_text(text)
    asked = ["collect", "--objects", names, "--state", tmp_path / "s", "--words", path]
    line = one_line(engine(*asked, status=2).stderr)
    assert states(line, said) and str(path) in line
