"""What JSON documents tell is told once more by the definitions of `tests.support.told_documents`."""

import json
import re
import time
from collections import Counter

import pytest

from stream_engine.commands.inspect import as_page, inspect
from stream_engine.exports.summary import summary
from stream_engine.service.http.paths import ADMIN, READ, _is_json
from stream_engine.state.store import Store
from tests.support import told_documents
from tests.support.served import predicted, served
from tests.support.told_documents import ANSWERED, LIVE, REPORTED, STATED, SUMMARY, alike, check, dangling, responses

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


@pytest.mark.parametrize("kind", REPORTED)
def test_every_report_is_as_it_is_defined(kind, published, world):
    assert check(published.artifacts[kind].report, REPORTED[kind], world)


def test_every_artifact_has_a_report_that_is_defined(published):
    assert published.artifacts.keys() == REPORTED.keys()


def test_the_summary_is_as_it_is_defined(published, world):
    found = summary(published)["summary"].value
    assert check(found, SUMMARY, world) == SUMMARY.keys()
    assert alike(found) == [("late", "untimed")]  # of a window by number
    assert found["not_in_recent"].keys() == {"window", "adds3_decayed", "triplet_counts_decayed"}


@pytest.fixture(scope="module")
def inspected(tmp_path_factory, published, world):
    """What `inspect` states, of artifacts of the snapshot before the newest."""
    store = Store(tmp_path_factory.mktemp("inspected"))
    store.publish(published.snapshot)
    for artifact in published.artifacts.values():
        store.publish_artifact(artifact._replace(seed=7, sequence=1))
    world.directory = str(store.directory)
    return inspect(world.directory)


def test_what_inspect_states_is_as_it_is_defined(inspected, world):
    assert check(inspected, STATED, world)


def rows_of(page: str, title: str) -> dict[str, list[float]]:
    """The numbers of each row of a section by its name."""
    (section,) = (each for each in page.split("\n\n") if each.startswith(title))
    rows = [line.strip().partition("  ") for line in section.split("\n")[1:]]
    return {name: [float(each.replace(",", "")) for each in NUMBER.findall(text)] for name, _, text in rows}


def test_the_page_of_inspect_has_each_number_in_its_row(inspected, world):
    page = as_page(inspected)
    kinds = [n for _, n in sorted(Counter(event.get("type", "triplet") for event in world.events).items())]
    found = rows_of(page, "State")
    assert found == {
        "events": [len(world.events), *kinds],
        "rejected": [19],
        "filtered": [4],
        "objects": [len(world.names), len(world.labels())],
        "participants": [len(world.people)],
        "comparisons": [len(world.said)],
        "questions": [len(world.questions())],
        "responses": [responses(world.said)],
        "read": [0, 1],  # t/0
        "lost": [0, 2],
        "share": [0, 2],
        "history": found["history"],
    }
    fitted = rows_of(page, "Also fitted")
    for kind, artifact in inspected["artifacts"].items():
        if kind not in ("embedding", "clusters"):
            accuracy = artifact["report"].get("accuracy")
            assert fitted[f"{kind} (snapshot 1)"] == ([] if accuracy is None else [round(100 * accuracy, 1)])


@pytest.fixture
def run(tmp_path, published):
    """A run that tells no two numbers alike; it read 100 events before it was started anew."""
    (tmp_path / "objects.csv").write_text("object,text\nd,a text\n")
    with served(tmp_path, objects=str(tmp_path / "objects.csv")) as run:
        before = {"events": 100, "comparisons": 300, "rejected": {"not_distinct": 7}}
        counted = {key: {} for key in ("kinds", "guard", "lost", "dead_letters")} | {"history": [], "empty": 0}
        metrics = run.metrics
        metrics.start_from(counted | before | {"triplets": 300, "quadruplets": 0})
        metrics.events.labels("triplet").inc(60)
        metrics.events.labels("pick").inc(10)
        metrics.comparisons.labels("triplet").inc(70)
        metrics.comparisons.labels("quadruplet").inc(20)
        metrics.rejected.labels("not_distinct").inc(30)
        metrics.objects.set(12)
        metrics.lag.set("a", 5)
        metrics.lag.set("b", 8)
        metrics.drifts.labels("accuracy").inc(2)
        metrics.drifts.labels("log_loss").inc(1)
        metrics.set_refit_progress("sdp_clustering", {"done": 3, "total": 4, "gap": 0.5})
        metrics.set_refit_progress("embedding", {"done": 1, "total": 4})
        metrics.snapshot_time.set(time.time() - 50)
        run.published, run.running = published, ("sdp_clustering", "embedding")
        run.failed = {"spectral": "spectral: why", "classify": "classify: why"}
        yield run


def test_what_the_live_page_moves_is_as_it_is_defined(run, world, monkeypatch):
    figures = predicted(online=(0.6, 70), adds3=(0.75, 60), embedding=(0.7, 80))
    figures["predictors"]["adds3"]["all"]["total"] = {"accuracy": 0.9, "tested": 99}
    monkeypatch.setattr(run, "progressive", figures)
    with run.http.stream("GET", "/live") as answer:
        lines = (line for line in answer.iter_lines() if line.startswith("data: "))
        assert check(json.loads(next(lines).removeprefix("data: ")), LIVE, world)


@pytest.mark.parametrize("path", [path for path, each in READ.items() if _is_json(each.gives)])
def test_every_answer_is_as_it_is_defined(path, run, world):
    questions = {"questions": [{"anchor": "d", "left": "a", "right": "c"}, {"near": ["d", "a"], "far": ["b", "f"]}]}
    if path == "/predict":
        answer = run.http.post(path, json=questions | {"model": "embedding"})
    else:
        answer = run.http.get(path, params={"/nearest": {"object": "d", "k": 3}, "/object": {"name": "d"}}.get(path))
    assert answer.status_code == 200, answer.text
    if path == "/nearest":
        assert len(answer.json()["nearest"]) == 3
    check(answer.json(), ANSWERED[path], world)


def test_every_path_that_answers_in_json_is_defined():
    assert {path for path, each in (READ | ADMIN).items() if _is_json(each.gives)} == ANSWERED.keys()


@pytest.mark.parametrize("registry", ["REPORTED", "SUMMARY", "STATED", "LIVE", "ANSWERED"])
def test_every_reference_is_to_a_test_that_speaks_of_it(registry):
    found = getattr(told_documents, registry)
    parts = found if registry in ("REPORTED", "ANSWERED") else {registry: found}
    wrong = [
        f"{part}: {name}: {why}"
        for part, known in parts.items()
        for name, each in known.items()
        if isinstance(each, str) and (why := dangling(name, each))
    ]
    assert not wrong, "\n".join(wrong)
