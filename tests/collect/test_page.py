"""The participant's page in a real Chromium beside a real study: by mouse and by keys, with pictures, sounds and texts;
what is shown where is what is recorded; without JavaScript it says what it needs."""

import json

import pytest
from PIL import Image

from tests.report.conftest import barriers
from tests.support.collecting import ALONE, ENGINE
from tests.support.process import until

pytestmark = pytest.mark.browser
DOUBLE_CLICK = """() => {  // the second click comes the moment that the next question is there
  const click = () => document.querySelectorAll("#choices button")[1].click();
  const seen = new MutationObserver(() => { seen.disconnect(); click(); });
  seen.observe(document.getElementById("far"), { childList: true, characterData: true, subtree: true });
  click();
  click();
}"""


def opened(watched, study, worker="w", width=1280, begin=True, **more):
    """The page of a participant, its first question on it."""
    found = watched(allowed=f"{study.base}/", viewport={"width": width, "height": 800}, **more)
    found.page.set_default_timeout(240_000)
    found.page.goto(f"{study.base}/ask?worker={worker}")
    if begin:
        found.page.click("#begin:visible")
        found.page.wait_for_selector("#trial:visible")
    return found


def far(page, text: str) -> None:
    """Wait for a question, and as long as nothing is taken for an answer to it (TOO_SOON of ask.js)."""
    until(lambda: page.inner_text("#far") == text, what=f"question {text}", seconds=240)
    page.wait_for_timeout(300)


def looked(page) -> None:
    """Wait for the only question."""
    page.wait_for_selector("#trial:visible")
    page.wait_for_timeout(300)


@pytest.mark.parametrize("width, scheme", [(390, "dark"), (1280, "light")])
def test_a_study_with_pictures_from_the_first_word_to_the_code(collecting, pictures, watched, width, scheme):
    study = collecting(
        objects=pictures,
        study="[quota]\nperson = 4\n[texts]\nconsent = 'We keep your answers.'\ntitle = 'Colours'\n"
        "link = 'https://example.org/done'\n",
        program=ENGINE if width > 1000 else ALONE,
    )
    found = opened(watched, study, begin=False, width=width, color_scheme=scheme)
    page = found.page
    page.wait_for_selector("#consent:visible")
    assert barriers(page) == [] and study.log("sessions") == []
    page.click("#agree")
    page.wait_for_selector("#instructions:visible")
    assert barriers(page) == []
    page.click("#begin")
    page.wait_for_selector("#choices img")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert "secret" not in page.inner_text("main") and "secret" not in page.inner_html("main").replace(
        "media/secret", ""
    )
    wanted = []
    for n, answer in enumerate(["2", "ArrowLeft", "click", "1"], 1):
        far(page, f"{n} of 4")
        sources = [each.get_attribute("src").rpartition("/")[2] for each in page.query_selector_all("#choices img")]
        anchor = page.get_attribute("#anchor img", "src").rpartition("/")[2]
        wanted.append((anchor, sources, sources[{"2": 1, "click": 1}.get(answer, 0)]))
        if answer == "click":
            page.evaluate(DOUBLE_CLICK)
        else:
            page.keyboard.press(answer)
    page.wait_for_selector("#end:visible")
    assert barriers(page) == [] and page.get_attribute("#end a", "href") == "https://example.org/done"
    code = page.inner_text("#code-text")
    assert code in study.owner("/participants.csv").text
    told = [(each["anchor"], each["shown"], each["chosen"][0]) for each in study.log()]
    assert told == wanted and all(each["seconds"] > 0 for each in study.log())
    assert found.wrong == [] and all(each.startswith(study.base) for each in found.asked)
    page.reload()
    page.wait_for_selector("#end:visible")  # who is done is told so, with his code
    assert page.inner_text("#code-text") == code


@pytest.mark.parametrize("kind", ["odd_one_out", "triplet"])
def test_other_kinds_of_questions_with_texts(collecting, watched, kind):
    study = collecting(study=f"[quota]\nperson = 2\n[asking]\ntype = '{kind}'\n", program=ALONE)
    page = (found := opened(watched, study)).page
    choices = 3 if kind == "odd_one_out" else 2
    for n in (1, 2):
        far(page, f"{n} of 2")
        assert page.locator("#choices button").count() == choices
        page.keyboard.press("9")  # no such choice
        page.keyboard.press(str(choices))
    page.wait_for_selector("#end:visible")
    log = study.log()
    if kind == "odd_one_out":
        assert [each["odd"] for each in log] == [each["objects"][2] for each in log]
    else:
        assert [(each["near"], each["far"]) for each in log] == [(e["shown"][1], e["shown"][0]) for e in log]
    assert found.wrong == []


def test_several_are_chosen_and_may_be_changed(collecting, watched):
    study = collecting(study="[quota]\nperson = 1\n[asking]\nshown = 5\nchoose = 2\n", program=ALONE)
    page = (found := opened(watched, study)).page
    looked(page)
    assert "2" in page.inner_text("#question") and barriers(page) == []
    shown = [each.inner_text() for each in page.query_selector_all("#choices .shown")]
    page.keyboard.press("1")
    page.click("#go")
    assert "choose 2" in page.inner_text("#said")
    for each in "1234":  # the first is taken back, the second falls out
        page.keyboard.press(each)
    assert page.locator("#choices button[aria-pressed=true]").count() == 2
    page.click("#go")
    page.wait_for_selector("#end:visible")
    (told,) = study.log()
    assert told["shown"] == shown
    assert told["chosen"] == shown[2:4]
    assert found.wrong == []


@pytest.mark.parametrize("shown, width", [(3, 1280), (5, 390)])
def test_no_choice_is_larger_because_of_its_place(collecting, watched, tmp_path, shown, width):
    folder = tmp_path / "same"
    folder.mkdir()
    for n in range(6):
        Image.new("RGB", (300, 200), (40 * n, 255 - 40 * n, 128)).save(folder / f"s{n}.png")
    study = collecting(objects=folder, study=f"[asking]\nshown = {shown}\n", program=ALONE)
    page = (found := opened(watched, study, width=width)).page
    until(lambda: page.evaluate("[...document.querySelectorAll('#choices img')].every((each) => each.complete)"))
    sizes = "[...document.querySelectorAll('#choices %s')].map((e) => `${e.offsetWidth} ${e.offsetHeight}`)"
    for what in ("img", "button"):
        assert len(made := page.evaluate(sizes % what)) == shown and len(set(made)) == 1, made
    assert page.evaluate("document.documentElement.scrollWidth") <= width and found.wrong == []


def test_catch_trials_end_it_for_who_does_not_look(collecting, watched):
    study = collecting(
        study="[[catch]]\nanchor = 'apple'\nshown = ['car', 'pear']\nright = 'pear'\n"
        "[catching]\nevery = 1\nmost_failed = 1\n",
        program=ALONE,
    )
    page = (found := opened(watched, study)).page
    until(lambda: _wrong_way(page) or page.is_visible("#excluded"), what="the end", seconds=240)
    assert sum(not each.get("passed", True) for each in study.log("sessions")) == 2
    assert "right" not in json.dumps(study.log()) and found.wrong == []
    page.reload()
    page.wait_for_selector("#excluded:visible")
    owner = watched(allowed=f"{study.base}/").page
    owner.goto(f"{study.base}/owner?token={study.token}")
    owner.wait_for_selector("#study-screened:visible")
    said = owner.inner_text("#study-screened")
    assert "stay in the models" in said and "report --state DIR --exclude participant=NAME" in said
    assert "screened out" in owner.inner_text("#table-participants tbody")


def _wrong_way(page) -> bool:
    """Answer whatever is shown: the car where there is one."""
    buttons = page.locator("#choices button")
    texts = buttons.all_inner_texts()
    at = next((n for n, text in enumerate(texts) if "car" in text), 0)
    if texts and page.is_visible("#trial"):
        page.keyboard.press(str(at + 1))
        page.wait_for_timeout(300)
    return page.is_visible("#excluded")


def test_sounds_are_played_and_chosen_by_buttons(collecting, watched, tmp_path):
    folder = tmp_path / "sounds"
    folder.mkdir()
    for n in range(4):
        head = b"RIFF\x2c\x03\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x08\x03\0\0"
        (folder / f"s{n}.wav").write_bytes(head + bytes([128 + n]) * 776)
    study = collecting(objects=folder, study="[quota]\nperson = 1\n", program=ALONE)
    page = (found := opened(watched, study)).page
    assert page.locator("audio").count() == 3 and barriers(page) == []
    looked(page)
    until(lambda: page.evaluate("[...document.querySelectorAll('audio')].every((each) => each.readyState >= 1)"))
    page.click("#choices button >> nth=0")
    page.wait_for_selector("#end:visible")
    assert len(study.log()) == 1 and found.wrong == []


def test_without_javascript_it_says_what_it_needs(collecting, watched):
    study = collecting(program=ALONE)
    found = watched(allowed=f"{study.base}/", java_script_enabled=False)
    found.page.goto(f"{study.base}/ask")
    assert "JavaScript" in found.page.inner_text("noscript")
