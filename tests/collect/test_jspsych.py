"""The jsPsych plugin of `deploy/jspsych`: packed by npm, installed beside jsPsych, and run in Chromium by a participant
of a real study."""

import functools
import http.server
import json
import subprocess
import threading

import pytest
from PIL import Image

from tests.conftest import ROOT
from tests.support.collecting import ALONE
from tests.support.fetched_programs import cache
from tests.support.process import until

PLUGIN = ROOT / "deploy" / "jspsych"
PAGE = """<!doctype html><title>an experiment</title>
<link href="node_modules/jspsych/css/jspsych.css" rel="stylesheet">
<script src="node_modules/jspsych/dist/index.browser.min.js"></script>
<script src="node_modules/jspsych-plugin-stream-engine/index.js"></script>
<body></body>
<script>
const given = new URLSearchParams(location.search), jsPsych = initJsPsych();
const trial = { type: jsPsychStreamEngine, server: given.get("base"), worker: "ann", prompt: "<p>Which?</p>",
  consented: given.get("consented") === "1" };
jsPsych.run([{ timeline: [trial], loop_function: (data) => !data.values().at(-1).ended }])
  .then(() => { window.collected = jsPsych.data.get().json(); });
</script>"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.needs("npm", "npm"),  # it packs the plugin and gets jsPsych
]


def npm(*arguments, cwd) -> str:
    done = subprocess.run(["npm", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """http://localhost:PORT of a page with the packed plugin and jsPsych."""
    folder = tmp_path_factory.mktemp("lab")
    (packed,) = json.loads(npm("pack", "--json", "--pack-destination", folder, cwd=PLUGIN))
    assert {each["path"] for each in packed["files"]} == {"index.js", "package.json", "README.md"}
    assert f'version: "{packed["version"]}"' in (PLUGIN / "index.js").read_text()
    with cache("npm") as kept:
        options = ["--cache", kept, "--no-audit", "--no-fund", "--prefer-offline"]
        npm("install", *options, folder / packed["filename"], "jspsych@8", cwd=folder)
    (folder / "index.html").write_text(PAGE)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def answered(page, press) -> list[dict]:
    """Press a button whenever a question is shown, to the end; the data of the experiment."""
    shown = "#jspsych-stream-engine-choices:not([data-seen]) button"  # each question has an element of its own
    while True:
        page.wait_for_function("shown => window.collected || document.querySelector(shown)", arg=shown)
        if page.evaluate("window.collected !== undefined"):
            return json.loads(page.evaluate("window.collected"))
        page.evaluate("document.querySelector('#jspsych-stream-engine-choices').dataset.seen = 1")
        press(page)


def test_a_participant_answers_a_study_to_its_end(collecting, browser, lab, tmp_path):
    (tmp_path / "pictures").mkdir()
    for n in range(5):
        Image.new("RGB", (8, 6), (50 * n, 250 - 50 * n, 128)).save(tmp_path / "pictures" / f"p{n}.png")
    study = collecting(
        "--allow-origin", lab, objects=tmp_path / "pictures", study="[quota]\nperson = 4\n", program=ALONE
    )
    page = browser.new_page()
    try:
        page.goto(f"{lab}/?base={study.base}")
        page.wait_for_selector("#jspsych-stream-engine-anchor img")
        loaded = "() => [...document.images].every((each) => each.complete && each.naturalWidth)"
        page.wait_for_function(loaded)
        data = answered(page, lambda page: page.click("#jspsych-stream-engine-choices button >> nth=0"))
    finally:
        page.close()
    events = until(lambda: study.log() if len(study.log()) == 4 else None, what="the answers")
    kept = [each for each in data if each.get("chosen")]
    assert [each["id"] for each in kept] == [each["id"] for each in events]
    assert [each["chosen"] for each in kept] == [each["chosen"] for each in events]
    assert all(each["chosen"] == each["shown"][:1] and each["counted"] == 1 and each["rt"] >= 0 for each in kept)
    assert {each["worker"] for each in events} == {"ann"}
    assert data[-1]["ended"]
    assert data[-1]["code"]


@pytest.mark.parametrize("consented", [False, True])
def test_a_study_that_needs_consent_and_several_choices(collecting, browser, lab, consented):
    study = collecting(
        "--allow-origin",
        lab,
        study="[asking]\nshown = 3\nchoose = 2\n[quota]\nperson = 2\n[texts]\nconsent = 'Do you agree?'\n",
        program=ALONE,
    )

    def press(page) -> None:
        for place in (0, 2):
            page.click(f"#jspsych-stream-engine-choices button >> nth={place}")
        page.click("text=Continue")

    page = browser.new_page()
    try:
        page.goto(f"{lab}/?base={study.base}&consented={int(consented)}")
        data = answered(page, press)
    finally:
        page.close()
    if not consented:
        assert [(each["refused"], each["ended"]) for each in data] == [("consent", "refused")] and study.log() == []
        return
    assert [sorted(each["chosen"]) for each in study.log()] == [sorted(each["chosen"]) for each in data]
    assert [each["chosen"] for each in data] == [[each["shown"][0], each["shown"][2]] for each in data] and len(
        data
    ) == 2
