"""`inspect`: a page for a scientist; all figures behind `--all` and `--json`."""

import json
import re

import pytest

from stream_engine.commands.inspect_page import as_page
from stream_engine.commands.inspect_text import as_text, predictions, short
from tests.support.process import engine, jsonl
from tests.support.reported import answers, state

INNER = ("probability_slope", "lapse_fitted", "warm_bytes", "residuals", "objective", "unique_triplets", "digest")


def model(name: str, accuracy: float, **more) -> dict:
    """A row of the table of models."""
    row = {"standard_error": 0.01, "accuracy_by_worker": None, "standard_error_by_worker": None, "workers": None}
    row |= {"log_loss": 0.5, "calibration_error": 0.02, "ceiling": None, "ceiling_at_most": None, "seconds": 1.3}
    return {"model": name, "accuracy": accuracy} | row | more


SUMMARY = {
    "snapshot": 7,
    "events": 12_345,
    "kinds": {"triplet": 12_000, "odd_one_out": 345},
    "rejected": {"not_distinct": 1_234, "not_json": 2},
    "filtered": 5_555,
    "objects": 1_200,
    "labelled_objects": 1_100,
    "comparisons": 23_456,
    "triplets": 23_000,
    "unique_triplets": 9_000,
    "contradicting_pairs": 1_500,
    "positions": {f"f{n}": 1_000 * n for n in range(1, 9)},
    "guard": {"accepted": 4_004, "duplicate": 3_003, "contradiction": 1_001, "cycle": 2_002},
    "lost": {"records": 3},
    "history": [{"did": "merge"}, {"did": "seek"}],
}
EMBEDDING = {
    "d": 2,
    "dimensions_at_least": 1,
    "held_out_comparisons": 2_000,
    "ceiling": {"others": 0.75, "themselves": 0.9, "at_most": 0.85, "answers": 1_500.0},
}
CLUSTERED = {
    "note": "three groups",
    "verdict": "as the note says",
    "verdict_test": {"p_continuum": 0.01234, "p_coins": None},
    "sizes": {"0": 1_000, "1": 100},
}
CONTENTS = {
    "state": "s",
    "snapshots": [6, 7],
    "summary": SUMMARY,
    "workers": 1_042,
    "guessing": {"guess": 1_020, "people": 1_040},
    "judgements": {"kept": 11_000, "comparisons": 20_000, "of": 23_456, "complete": False},
    "models": [
        model("embedding", 0.812, ceiling_at_most=0.85, accuracy_by_worker=0.75),
        model("k1", 0.5, standard_error=None, seconds=None),
    ],
    "models_left_out": "k2: too many objects",
    "artifacts": {
        "embedding": {"snapshot": 7, "report": EMBEDDING},
        "sdp_clustering": {"snapshot": 5, "report": CLUSTERED},
        "reliability": {"snapshot": 7, "report": {"note": "of three people"}},
        "kernel_pca": {"snapshot": 6, "report": {"accuracy": 0.6}},
        "hierarchy": {"snapshot": 7, "report": {}},
    },
    "progressive": {},
}
PAGE = """\
State s, snapshot 7
  events       12,345 (12,000 triplet, 345 odd-one-out)
  refused      1,234 not_distinct, 2 not_json
  left out     5,555 by --where
  objects      1,200, 1,100 of them with a label
  people       1,042
  comparisons  23,456 ("this pair is nearer than that one"; an event holds one or more)
  questions    7,500 different ones (an anchor and two others, whatever was answered)
  judgements   11,000 (what one person said in one go) are kept whole, a sample, 20,000 of 23,456 comparisons
  read         f1 up to message 1,000, f2 up to message 2,000, f3 up to message 3,000, f4 up to message 4,000, \
f5 up to message 5,000 and 3 more
  lost         records=3
  history      did=merge
  history      did=seek

How consistent the answers are
  1,500 questions were answered both ways
  an answer is that of most others to the same question 75.0 % of the time (1,500 answers)
  a model that answers alike for everybody can be right 85.0 % of the time at most
  the same person, asked again, says the same 90.0 % of the time
  the partial order keeps 4,004 comparisons, 3,003 repeat one of them; it leaves out 1,001 against one of them and \
2,002 that close a cycle with several
  map, clusters and similarities are made of all answers

How well models foretell answers that they never had
                     right       ±   log loss   CPU s   new people
  embedding         81.2 %   2.0 %      0.500     1.3       75.0 %
  k1                50.0 %       -      0.500       -            -
  people, at most   85.0 %
  right: share of 2,000 held-out answers that come as foretold; ±: with 95 % sureness; log loss: in nats an answer, \
.693 a coin
  embedding: the map; k1: objects are alike from which the others lie in like order

Clusters
  three groups
  p: the share of simulated studies without clusters that look as clustered, this study counted among them: 0.012
  (continua). Clusters are said where both are at most .05; where that is out of reach, simulating ends early.
  sizes of the groups: 1,000, 100

Also fitted
  embedding                a map of 2 dimensions (the answers show 1 at least); 1,020 of 1,040 people seem to guess
  reliability              how often each is right: stream-engine export --state s --out DIR workers; of three people
  kernel_pca (snapshot 6)  60.0 % right on what it never had
  hierarchy                made
  who guesses              stream-engine report --state s --workers --out report.html

What is missing
  1,236 refused events; why: stream-engine dead-letters --state s show
  the newest answers in sdp_clustering, kernel_pca: of an earlier snapshot
  in the table of models: k2: too many objects

All figures: stream-engine inspect --state s --all"""
SMALL = """\
State s, snapshot 7
  events       2 (triplet)
  refused      none
  objects      3
  comparisons  2 ("this pair is nearer than that one"; an event holds one or more)
  questions    1 different ones (an anchor and two others, whatever was answered)
  judgements   2 (what one person said in one go) are kept whole, all of them
  read         /a.csv up to byte 9 of its text in UTF-8

How consistent the answers are
  1 questions were answered both ways

How well models foretell answers that they never had
                      right       ±   log loss   CPU s
  embedding         100.0 %   2.0 %      0.500     1.3
  right: share of 1 held-out answers that come as foretold; ±: with 95 % sureness; log loss: in nats an answer, \
.693 a coin
  embedding: the map
  too few answers to say: only 1 could be held out

Clusters
  as the verdict says
  p: the share of simulated studies without clusters that look as clustered, this study counted among them: 0.5
  (answered at random). Clusters are said where both are at most .05; where that is out of reach, simulating ends
  early.

Also fitted
  embedding   a map of 1 dimension

What is missing
  how far people agree: hardly any question was answered more than once; ask some again
  who answered: events name no worker, and nobody knows who guesses (--columns worker=...)

All figures: stream-engine inspect --state s --all"""
FEW = {"kinds": {"triplet": 2}, "rejected": {}, "filtered": 0, "objects": 3, "labelled_objects": 0, "comparisons": 2}
FEW |= {"triplets": 2, "unique_triplets": 2, "contradicting_pairs": 1, "positions": {"/a.csv": 9}, "guard": {}}
FEW |= {"snapshot": 7, "events": 2}


def test_the_whole_page():
    assert as_page(CONTENTS) == PAGE


def test_the_page_of_a_small_state_leaves_out_what_is_not_there():
    artifacts = {
        "embedding": {"snapshot": 7, "report": {"d": 1, "held_out_comparisons": 1, "ceiling": None}},
        "sdp_clustering": {
            "snapshot": 7,
            "report": {"verdict": "as the verdict says", "verdict_test": {"p_coins": 0.5}, "sizes": {}},
        },
    }
    kept = {"kept": 2, "comparisons": 2, "of": 2, "complete": True}
    small = {"state": "s", "snapshots": [7], "summary": FEW, "workers": None, "artifacts": artifacts}
    assert as_page(small | {"models": [model("embedding", 1.0)], "judgements": kept}) == SMALL


def test_the_page_before_anything_was_compared():
    nothing = FEW | {"events": 0, "comparisons": 0, "triplets": 0, "kinds": {}, "contradicting_pairs": 0}
    page = as_page({"state": "s", "summary": nothing | {"positions": {}}, "artifacts": {}})
    assert [part.splitlines()[0] for part in page.split("\n\n")][1:] == ["What is missing", page.splitlines()[-1]]
    assert "  events       0\n" in page and "What is missing\n  nothing was compared yet\n" in page


@pytest.mark.parametrize(("held_out", "few"), [(None, False), (0, False), (1, True), (19, True), (20, False)])
def test_hardly_any_answers_that_were_held_out_are_said(held_out, few):
    report = {"snapshot": 7, "report": EMBEDDING | {"held_out_comparisons": held_out}}
    assert (
        f"too few answers to say: only {held_out} could" in as_page(CONTENTS | {"artifacts": {"k1": report}})
    ) is few


def test_how_far_people_agree_is_told_by_whoever_knows_it():
    before = {"artifacts": {"k1": {"snapshot": 7, "report": {"ceiling": {"others": None}}}} | CONTENTS["artifacts"]}
    assert as_page(CONTENTS | before).count("an answer is that of most others to the same question 75.0 %") == 1


def test_models_that_are_counts_alone_have_no_held_out_answers_of_their_own():
    page = as_page(CONTENTS | {"artifacts": {}})
    assert "right: share that come as foretold" in page and "too few answers" not in page


def test_all_has_the_table_of_models_in_columns_of_one_width():
    lines = as_text(CONTENTS).splitlines()
    at = lines.index("models on answers that they never had (-: unknown)")
    assert lines[at + 1 :] == MODELS.splitlines()


@pytest.mark.parametrize("n", [4, 5])
def test_as_many_partitions_as_fit_are_named(n):
    page = as_page(CONTENTS | {"summary": SUMMARY | {"positions": {f"p{i}": i for i in range(n)}}})
    assert f"p{n - 1} up to message {n - 1}\n" in page and " more\n" not in page


@pytest.mark.parametrize(
    ("guard", "told"),
    [({"cycle": 2}, "0 against one of them and 2 that"), ({"contradiction": 1}, "1 against one of them and 0 that")],
)
def test_what_was_against_those_before_it_is_told_by_kind(guard, told):
    assert f" {told} close a cycle with several\n" in as_page(CONTENTS | {"summary": SUMMARY | {"guard": guard}})


@pytest.mark.parametrize(
    ("guess", "people", "told"),
    [
        (0, 5, "; nobody of 5 people seems to guess"),
        (1, 5, "; 1 of 5 people seems to guess"),
        (2, 5, "; 2 of 5 people seem to guess"),
        (4, 4, ""),
    ],
)
def test_who_guesses_is_counted_and_not_told_of_few_people(guess, people, told):
    """As the report counts them."""
    page = as_page(CONTENTS | {"guessing": {"guess": guess, "people": people}})
    assert f"a map of 2 dimensions (the answers show 1 at least){told}\n" in page
    assert ("--workers --out report.html" in page) == (guess > 0 and told != "")


MODELS = """\
  model                        accuracy   ± error   by worker   ± error   workers   log loss   calibration error\
   ceiling   at most   CPU seconds
  embedding                       0.812     0.010       0.750         -         -      0.500               0.020\
         -     0.850         1.300
  k1                              0.500         -           -         -         -      0.500               0.020\
         -         -             -
  k2: too many objects"""
PREDICTIONS = """\
predictions before learning (until snapshot 4; 1,000 of 2,000 drawn)
  predictor               kind              tested  accuracy  recently  log loss  calibration error
  k1                      all                  900     0.750     0.500     0.250              0.125"""


def test_how_predictions_went():
    recent = {"tested": 90, "accuracy": 0.5, "log_loss": 0.25, "calibration_error": 0.125}
    windows = {"total": {"tested": 900, "accuracy": 0.75}, "rolling": recent}
    kinds = {"all": windows, "triplet": windows}
    figures = {"snapshot": 4, "seen": 2_000, "sampled": 1_000, "predictors": {"k1": kinds}, "drift": {}}
    assert predictions({}) == [] and "\n".join(predictions(figures)) == PREDICTIONS
    several = predictions(figures | {"predictors": {"k1": kinds | {"odd_one_out": windows}}})
    assert [line.split()[:2] for line in several[2:]] == [["k1", kind] for kind in ("all", "triplet", "odd_one_out")]
    moved = predictions(figures | {"drift": {"k1": {"alarms": 2}, "k2": {"alarms": 0}}})
    assert moved[-1] == "  alarms of change: k1 2, k2 0"
    for wrong in ([1], {"snapshot": 4}, figures | {"seen": "x"}, figures | {"drift": [1]}):
        assert predictions(wrong) == ["predictions: progressive.json holds no figures of a run; remove it"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "unknown"),
        (1234, "1,234"),
        (True, "True"),
        (0.123456789, "0.123457"),
        ("x", "x"),
        ({}, "-"),
        ([], "-"),
        ({"a": 1, "b": None}, "a=1  b=unknown"),
        (list(range(8)), "0, 1, 2, 3, 4, 5, 6, 7"),
        (list(range(9)), "0, 1, 2, 3, 4, 5, 6, 7 …"),
    ],
)
def test_a_value_is_told_on_one_line(value, told):
    assert short(value) == told


@pytest.mark.parametrize(("complete", "told"), [(True, "all"), (False, "a sample by content")])
def test_all_says_whether_every_judgement_is_kept(complete, told):
    text = as_text(CONTENTS | {"judgements": CONTENTS["judgements"] | {"complete": complete}})
    assert f"judgements kept         11,000, with 20,000 of 23,456 comparisons ({told})\n" in text


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    refits = ("--refit", "embedding", "--refit", "sdp_clustering")
    return state(folder, [*answers(12, 600), {"anchor": "object 0", "near": "x", "far": "x"}], *refits)


def test_the_page_says_what_a_scientist_asks_in_words(fitted):
    page = engine("inspect", "--state", fitted).stdout
    found = json.loads(engine("inspect", "--state", fitted, "--json").stdout)
    assert not [word for word in INNER if word in page]
    summary, rows = found["summary"], {row["model"]: row for row in found["models"]}
    different = summary["unique_triplets"] - summary["contradicting_pairs"]
    assert re.search(r"objects +12\n", page) and re.search(rf"questions +{different:,} different ones", page)
    assert re.search(r"refused +1 not_distinct", page) and "1 refused events; why: stream-engine dead-letters" in page
    assert page.count("what one person said in one go") == 1
    assert f"{summary['contradicting_pairs']:,} questions were answered both ways" in page
    line = next(line for line in page.splitlines() if line.strip().startswith("embedding  "))
    assert line.split()[1:3] == [f"{100 * rows['embedding']['accuracy']:.1f}", "%"]
    assert f"people, at most   {100 * rows['embedding']['ceiling_at_most']:.1f} %" in page
    report = found["artifacts"]["sdp_clustering"]["report"]
    assert report["note"] in page and "p: the share of simulated studies without clusters that look as cl" in page
    tested, plain = report["verdict_test"], " ".join(page.split())
    assert f"{tested['p_continuum']:.2g} ({tested['drawn']} continua), {tested['p_coins']:.2g} (99 answered" in plain
    assert (
        "at random). Clusters are said where both are at most .05; where that is out of reach, simulating ends early."
        in plain
    )
    assert "majority: what most answered to the same question" in plain and "chance: a coin" in plain
    assert re.search(r"\.jsonl up to byte [\d,]+ of its text in UTF-8", page)
    assert re.search(
        r"the partial order keeps [\d,]+ comparisons, [\d,]+ repeat one of them; it leaves out [\d,]+ against", page
    )
    assert "stream-engine report --state" in page.split("who guesses")[1]


def test_all_has_every_figure(fitted):
    told = engine("inspect", "--state", fitted, "--all").stdout
    found = json.loads(engine("inspect", "--state", fitted, "--json").stdout)
    for kind, artifact in found["artifacts"].items():
        assert f"{kind} (snapshot 1)" in told
        assert all(key in told for key in artifact["report"] if key not in ("certified", "certified_by"))
    assert all(key in told for key in found["summary"])


def test_a_state_of_hardly_anything_says_what_is_missing(tmp_path):
    events = [{"anchor": "a", "near": "b", "far": "c"}]
    engine("run", jsonl(tmp_path / "e.jsonl", events), "--state", tmp_path / "s", "--no-refits")
    page = engine("inspect", "--state", tmp_path / "s").stdout
    assert "no map, and no model of it; make it: stream-engine refit --state" in page and "no clusters; make it" in page
    assert "events name no worker" in page and "Clusters\n" not in page and "right: share" not in page


def test_a_report_that_somebody_changed_is_no_harm(fitted):
    """What is no number is not told; nothing else of the page is lost."""
    found = json.loads(engine("inspect", "--state", fitted, "--json").stdout)
    for wrong in ("x", None, [1], {"a": "b"}, -1e300):
        report = {key: wrong for kind in found["artifacts"].values() for key in kind["report"]}
        artifacts = {kind: {"snapshot": 1, "report": report} for kind in (*found["artifacts"], "kernel_learning")}
        page = as_page(found | {"artifacts": artifacts, "models": []})
        assert "How consistent the answers are" in page and "kernel_learning" in page


def test_a_long_name_does_not_touch_its_value():
    report = {"predictor_agreement_error": None, "predictor_agreement_that_chose": 0.5}
    text = as_text(
        {"state": "", "snapshots": [], "summary": report, "artifacts": {"x": {"snapshot": 1, "report": report}}}
    )
    lines = [line.split() for line in text.splitlines() if "predictor" in line]
    assert [line[-1] for line in lines] == ["unknown", "0.5"] * 2 and {len(line) for line in lines} == {2}
