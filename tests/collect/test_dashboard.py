"""A study as its people see it, in a real Chromium: three participants, on a desktop and on phones, and the owner; the
server is killed in the middle and started again, and no answer is lost or counted twice."""

import json
import re

import pytest

from tests.collect.conftest import SIZES
from tests.report.conftest import barriers
from tests.support.collecting import ALONE, COMPILING, FAST, post, read_by_the_engine
from tests.support.process import until

pytestmark = pytest.mark.browser
STUDY = """
[quota]
person = 6
[texts]
title = "Shapes"
consent = "We keep your answers."
[[catch]]
anchor = "secret0"
shown = ["secret1", "secret5"]
right = "secret1"
[catching]
every = 3
"""
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "color_scheme": "dark"}
DESKTOP = {"viewport": {"width": 1280, "height": 800}}


class OnPage:
    """A participant in a browser; `told` is what they clicked, by what was asked."""

    def __init__(self, watched, study, name: str, **screen):
        self.watched = watched(allowed=f"{study.base}/", **screen)
        self.name, self.page, self.told = name, self.watched.page, []
        self.page.set_default_timeout(240_000)
        self.page.goto(f"{study.base}/ask?worker={name}")

    def begin(self) -> None:
        self.page.click("#agree")
        self.page.click("#begin")
        self.page.wait_for_selector("#trial:visible")

    def answer(self, n: int) -> list[str]:
        """Answer n screens, the left one each time; what the counter said."""
        said = []
        for _ in range(n):
            said.append(self.page.inner_text("#far"))
            self.page.wait_for_timeout(300)  # TOO_SOON of ask.js
            self.page.locator("#choices button").first.click()
            until(
                lambda: self.page.is_visible("#end") or self.page.inner_text("#far") != said[-1],
                what="the next one",
                seconds=240,
            )
        return said


def areas(page) -> list[float]:
    """Of the pictures on the screen, in square pixels."""
    shown = "[...document.querySelectorAll('#trial img')].every((e) => e.complete && e.style.width)"
    until(lambda: page.evaluate(shown), what="the pictures")  # the page forbids what wait_for_function needs
    boxes = "[...document.querySelectorAll('#trial img')].map((e) => e.getBoundingClientRect())"
    return page.evaluate(f"{boxes}.map((b) => b.width * b.height)")


def participants(page) -> dict[str, list[str]]:
    """Rows of the dashboard, by participant."""
    rows = page.locator("#table-participants tbody tr").all()
    texts = [row.locator("th, td").all_inner_texts() for row in rows]
    return {each[0]: each[1:] for each in texts}


def test_three_participants_and_an_owner_with_a_kill_in_the_middle(collecting, pictures, watched):
    study = collecting(objects=pictures, study=STUDY, config=FAST)
    people = [OnPage(watched, study, name, **screen) for name, screen in zip("abc", (DESKTOP, PHONE, PHONE))]
    first = people[0].page
    first.click("#decline")
    assert first.is_visible("#declined")
    assert barriers(first) == []
    assert study.log("sessions") == []
    first.click("#reconsider")
    for each in people:
        each.begin()
    counted = {each.name: each.answer(3) for each in people}
    for each in people:
        sizes = areas(each.page)
        assert len(sizes) == 3 and max(sizes) == pytest.approx(min(sizes), rel=0.01), "the same area for every picture"
        targets = each.page.evaluate("[...document.querySelectorAll('button, a')].filter((e) => e.offsetHeight)")
        assert (
            targets and each.page.evaluate("document.documentElement.scrollWidth") <= each.page.viewport_size["width"]
        )
    owner = watched(allowed=f"{study.base}/", **DESKTOP)
    owner.page.goto(f"{study.base}/owner?token={study.token}")
    until(lambda: participants(owner.page).keys() == set("abc"), what="participants on the dashboard")
    study.kill()
    people[0].page.wait_for_timeout(300)
    people[0].page.locator("#choices button").first.click()
    until(lambda: "No connection" in people[0].page.inner_text("#said"), what="the page to say so", seconds=240)
    until(lambda: "cannot be reached" in owner.page.inner_text("#study-said"), what="the dashboard to say so")
    study.start()
    until(lambda: people[0].page.inner_text("#far").startswith("5 "), what="the next question", seconds=240)
    counted["a"].append("4 of 7")
    for each in people:
        counted[each.name] += each.answer(7 - len(counted[each.name]))
        each.page.wait_for_selector("#end:visible")
        assert counted[each.name] == [f"{n} of 7" for n in range(1, 8)], "catch trials move the counter, too"
        each.page.click("#copy")
        until(lambda each=each: each.page.inner_text("#said") == "Copied.", what="the code to be copied")
        assert barriers(each.page) == []
    log = study.log()
    assert len(log) == len({each["id"] for each in log}) == 18
    assert {name: sum(each["worker"] == name for each in log) for name in "abc"} == dict.fromkeys("abc", 6)
    told = study.study()
    assert (told["answers"], told["done"], told["people"]) == (18, 3, 3) and "answers" not in told["since_start"]
    until(lambda: read_by_the_engine(study) == 18, what="the engine to read", seconds=COMPILING)
    until(lambda: {row[5] for row in participants(owner.page).values()} == {"completed"}, what="the dashboard to move")
    rows = participants(owner.page)
    assert {row[1] for row in rows.values()} == {"6 of 6"} and {int(row[2]) + int(row[3]) for row in rows.values()} == {
        1
    }
    assert owner.page.title() == "Shapes"
    until(lambda: owner.page.locator("#map-svg, #quality").count() > 0, what="the report", seconds=COMPILING)
    assert (
        owner.page.locator("#study .tile:visible").count() == 4
        and owner.page.locator("main .tile:visible").count() == 2
    )
    phone = watched(allowed=f"{study.base}/", **PHONE)
    phone.page.goto(f"{study.base}/owner?token={study.token}")
    until(lambda: participants(phone.page).keys() == set("abc"), what="participants on a phone")
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert barriers(phone.page) == [] and barriers(owner.page) == []
    said = [text for each in (*(person.watched for person in people), owner, phone) for text in each.wrong]
    # of the time without a server, and of an engine that is busy with its first page
    complaints = [text for text in said if not any(each in text for each in ("ERR_", "502", "503"))]
    assert complaints == []


def test_the_owner_pauses_makes_links_and_takes_everything_along(collecting, pictures, watched):
    study = collecting(objects=pictures, study=STUDY, program=ALONE)
    owner = watched(allowed=f"{study.base}/", **DESKTOP).page
    owner.goto(f"{study.base}/owner?token={study.token}")
    owner.click("#pause")
    until(lambda: owner.inner_text("#pause") == "Resume", what="the pause")
    study.kill()
    study.start()  # a pause outlasts it
    person = OnPage(watched, study, "a", **PHONE)
    person.page.click("#agree")
    person.page.wait_for_selector("#paused:visible")
    assert barriers(person.page) == [] and not study.log()
    until(lambda: owner.inner_text("#study-said").startswith("Paused"), what="the dashboard to know it")
    owner.click("#pause")
    person.page.click("#begin:visible")
    person.page.wait_for_selector("#trial:visible")
    person.answer(1)
    with owner.expect_download() as taken:
        owner.fill("#links-n", "3")
        owner.click("#study-links button")
    lines = taken.value.path().read_text().splitlines()
    assert lines[0] == "worker,link"
    assert len(lines) == 4
    assert all("key=" in line for line in lines[1:])
    with owner.expect_download() as taken:
        owner.click("a[href='participants.csv']")
    assert taken.value.path().read_text().startswith("worker,answers,")
    assert study.owner("/participants.json").json()["participants"] == 1


def test_a_pause_that_is_none_is_refused_and_changes_nothing(collecting):
    study = collecting(program=ALONE)
    assert post(f"{study.base}/pause", content=json.dumps({"paused": True})).status_code == 401
    for body in (b"", b'{"paused": "yes"}'):
        answer = post(f"{study.base}/pause", content=body, headers={"Authorization": f"Bearer {study.token}"})
        assert answer.status_code == 400
        assert "paused" in answer.json()["why"]
        assert study.study()["paused"] is False


def test_natural_sizes_keep_their_proportions(collecting, pictures, watched):
    study = collecting(objects=pictures, study="[asking]\npicture_size = 'natural'\n", program=ALONE)
    page = watched(allowed=f"{study.base}/", **PHONE).page
    page.goto(f"{study.base}/ask?worker=w")
    page.click("#begin:visible")
    page.wait_for_selector("#trial img")
    areas(page)
    shown = page.evaluate(
        "[...document.querySelectorAll('#trial img')].map((e) => [e.src, e.clientWidth, e.clientHeight])"
    )
    scales = []
    for source, wide, high in shown:
        natural = SIZES[int(re.search(r"secret(\d)$", source)[1])]
        scales += [wide / natural[0], high / natural[1]]
    assert max(scales) == pytest.approx(min(scales), rel=0.03) and max(scales) <= 1.01
