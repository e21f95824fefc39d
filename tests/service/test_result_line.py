"""The last line of a run, of runs that came to one thing and another."""

from pathlib import Path
from types import SimpleNamespace

from stream_engine.report.findings import WARNING, Finding
from stream_engine.service.result_line import counters_of, findings_of, result_line, warned
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.support.facts import states

SOURCES = ("a/x.csv", "kafka://broker:9092/topic", "y.jsonl", "z.csv", "w.csv")


def run_of(counters: dict | None = None, sources=SOURCES[:1], artifacts=None, first="", not_utf8=0, refits=True):
    """As much of a run as the line is made of; `counters` over those of an engine that has read nothing."""
    counted = Engine(("adds3",), False).counters | {"input": {"options": {}}} | (counters or {})
    newest = SimpleNamespace(artifacts=artifacts, snapshot=SimpleNamespace(digest="now", counters=counted), excluded=())
    read = SimpleNamespace(where={"phase!=": "practice"}, columns={}, labels=None, drop_duplicates=False)
    refit_settings = SimpleNamespace(all_kinds=refits)
    settings = SimpleNamespace(source=sources, state="s", refits=refit_settings, dead_letters=None, input=read)
    return SimpleNamespace(
        learning=SimpleNamespace(
            engine=SimpleNamespace(counters=counted, objects=["a", "b", "c"], positions={"p": 1}, sequence=4),
            dead_letters=SimpleNamespace(first=first, not_utf8=not_utf8),
        ),
        publishing=SimpleNamespace(published=SimpleNamespace(newest=None if artifacts is None else newest)),
        settings=settings,
        directory=Path("s"),
        context=SimpleNamespace(requests=SimpleNamespace(stop=False)),
    )


READ = {"records": 1_000, "events": 900, "comparisons": 1_800, "rejected": {"few": 1, "not_json": 59, "bad_weight": 40}}
NEXT = "next: stream-engine report --state s --out report.html"


def line(run, began=None, failed=None, found=None) -> str:
    return result_line(run, began or counters_of(run_of()), failed or {}, found or {})


def artifact(report=None, digest="now") -> Artifact:
    return Artifact("kind", digest, 1, {}, 0, {}, report or {})


def test_what_was_read_and_refused_since_the_run_began():
    began = counters_of(
        run_of({"records": 1, "events": 899, "comparisons": 1_790, "rejected": {"few": 1, "not_json": 59}})
    )
    said = line(run_of(READ), began)
    assert states(said, "1 event … x.csv … 10 comparisons … 40 … (40 bad_weight … s/dead_letters) … 3 objects")
    assert said.endswith(NEXT)
    said = line(run_of(READ | {"filtered": 2}, first="row 7"))
    rejected = "100 … (59 not_json, 40 bad_weight, 1 few … row 7 … s/dead_letters)"
    assert states(said, f"900 events … x.csv … 1,800 comparisons … {rejected} … 2 … (phase!=practice) … 3 objects")
    assert said.endswith(NEXT)


def test_copies_that_were_dropped_are_counted_beside_other_rows():
    run = run_of(READ | {"filtered": 12, "repeated": 4})
    run.settings.input.drop_duplicates = True
    assert states(line(run), "12 excluded (4 copies of answers, 8 phase!=practice)")


def test_what_this_run_has_fitted_is_told_and_what_failed():
    made = {
        "embedding": artifact({"accuracy": 0.8, "standard_error": 0.01}),
        "hierarchy": artifact(),
        "k1": artifact({"accuracy": 0.9}, "of an earlier snapshot"),
        "sdp_clustering": artifact({}, "of an earlier snapshot"),
    }
    told = "embedding … 0.800), hierarchy, sdp_clustering … (too few), x … (why)"
    failed = {"hierarchy": "made later", "sdp_clustering": "too few", "x": "why"}
    said = line(run_of(READ, artifacts=made), failed=failed)
    assert states(said, told) and "k1" not in said
    assert "embedding" not in line(run_of(READ, artifacts=made, refits=False))
    nothing = (run_of(READ, artifacts={}), run_of(READ, artifacts=made, refits=False), run_of(READ))
    assert [findings_of(run) for run in nothing] == [{}, {}, {}]
    some = run_of(READ)
    some.publishing.published.newest = Published(Engine(("adds3",), None).snapshot(), {"hierarchy": artifact()})
    assert findings_of(some)["data"]
    assert "k1" not in line(run_of(READ, artifacts={"k1": made["k1"]}))


def test_warnings_have_lines_of_their_own_but_rejected_events_are_told_once():
    found = {
        "data": (Finding("rejected", "One was rejected.", level=WARNING), Finding("read", "All was read.")),
        "accuracy": (Finding("chance_level", "At chance.", {}, "stream-engine preview SOURCE", WARNING),),
    }
    said = warned(found)
    assert said == ["At chance. Next: stream-engine preview SOURCE"]
    assert "At chance" not in line(run_of(READ, artifacts={}), found=found)
