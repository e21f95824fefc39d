"""Figures and names in sections of the report, of states that are made by hand so that a mistake shows."""

import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from connectors import Position
from stream_engine import asking
from stream_engine.asking.knowledge import knowledge_of
from stream_engine.data.packed_names import pack_names
from stream_engine.evaluation.held_out import Figures
from stream_engine.evaluation.response_checks import ResponseChecks
from stream_engine.refits import reliability
from stream_engine.report import figure_style, object_files, page
from stream_engine.report import material as materials
from stream_engine.report.drawings import Axis, Drawing, Points
from stream_engine.report.findings import agreement
from stream_engine.report.findings import data as findings_of_data
from stream_engine.report.findings import models as findings_of_models
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.report.inline_svg import svg
from stream_engine.report.material import material
from stream_engine.report.sections import agreement as sections_of_agreement
from stream_engine.report.sections import alignment, conflicts, dendrogram, learning, methods, next_questions, objects
from stream_engine.report.sections import models as section_of_models
from stream_engine.report.sections.object_map import legend
from stream_engine.report.tiles import tiles
from stream_engine.state.artifact import Artifact
from stream_engine.state.exclusion import without
from stream_engine.state.published import Published
from tests.support.facts import states
from tests.support.learned import snapshot_of
from tests.support.told import World, events

NAMES = [f"o{i}" for i in range(6)]


def compared(n: int = 6) -> list[dict]:
    return [dict(zip(("anchor", "near", "far"), (f"o{(i + step) % n}" for step in (0, 1, 3)))) for i in range(n)]


def test_empty_messages_are_no_answers_and_take_none_away():
    snapshot = snapshot_of(compared())
    snapshot = snapshot._replace(counters={**snapshot.counters, "empty": 2})  # as of a Kafka topic with tombstones
    assert Facts(Published(snapshot, {})).answers == 6


@pytest.mark.parametrize("n, level", [(6, "warning"), (0.2, "result")])
def test_many_rows_without_an_answer_are_a_problem(n, level):
    snapshot = snapshot_of(compared() * 10)
    filtered = int(10 * n)
    options = {"columns": {"chosen": "choice"}, "where": {"choice!=": ""}}
    counters = {**snapshot.counters, "filtered": filtered, "input": {"options": options}}
    facts = Facts(Published(snapshot._replace(counters=counters), {}))
    (found,) = [each for each in findings_of_data.read(facts) if each.what == "filtered"]
    assert found.level == level and states(found.text, f"{filtered} of {60 + filtered} rows … choice is empty")


def test_commands_that_need_a_state_begin_with_the_one_that_makes_it():
    """With the options that read the files, and without those of a report, such as --out."""
    snapshot = snapshot_of(compared())
    snapshot = snapshot._replace(positions={f"{Path.cwd()}/f.csv": Position(1)})
    facts = Facts(
        Published(snapshot, {}),
        Commands("DIR", "stream-engine report f.csv --out r.html", read_by="--columns 'anchor=a b'"),
    )
    (note,) = next_questions.section(material(facts.published, commands=facts.commands)).notes
    run, ask = page.note_parts(note)[1].split(" && ")
    assert run == "stream-engine run f.csv --state DIR --columns 'anchor=a b'"
    assert ask == "stream-engine ask --state DIR --n 100"


def test_sets_of_plain_triplets_have_a_command_that_reads_one_of_them():
    snapshot = snapshot_of([*compared(), *({key: f"x{name}" for key, name in each.items()} for each in compared(4))])
    snapshot = snapshot._replace(positions={f"{Path.cwd()}/f.csv": Position(1)})
    found = next(findings_of_data.connected(Facts(Published(snapshot, {}))))
    assert "--where" in found.command and found.command.count("xo") == 4


def test_answers_disagree_with_the_majority_only_where_a_question_has_several():
    """Three answers to one question, one of them opposite, beside questions with one answer."""
    one = {"anchor": "p", "near": "q", "far": "r"}
    facts = Facts(Published(snapshot_of([*compared(60), one, one, {**one, "near": "r", "far": "q"}]), {}))
    (found,) = [each for each in agreement.agreement(facts) if each.what == "conflicting_answers"]
    assert found.figures["share"] == pytest.approx(1 / 3) and found.figures["repeated"] == 1
    about = conflicts.section(material(facts.published)).tables[0].about
    assert "20" not in about


def test_answers_of_those_who_are_excluded_are_not_analyzed():
    """Their events stay in the counters of the snapshot."""
    by_two = [{**event, "worker": f"w{i % 2}"} for i, event in enumerate(compared(6) + compared(4))]
    snapshot = without(snapshot_of(by_two), ["w1"])
    facts = Facts(Published(snapshot, {}, excluded=("w1",)))
    assert facts.answers == 5 and states(methods.paper(facts), "analyzed 5 triplet answers (5 comparisons) by 1 part")
    assert states(next(findings_of_data.read(facts)).text, "10 answers … were read … 5 comparisons … remain")
    bare = Facts(Published(snapshot_of(by_two, ("triplet_counts",)), {}, excluded=("w1",)))  # that keeps no responses
    assert bare.answers is None
    votes = without(snapshot_of(by_two, ("triplet_counts", "worker_votes")), ["w1"])
    shown = [next(tiles(material(Published(of, {}, excluded=("w1",))))) for of in (snapshot, votes)]
    assert [tile.value for tile in shown] == ["5", "5"]  # of answers, or else of comparisons that are left


@pytest.mark.parametrize(
    "positions, title",
    [
        (["votes/0", "votes/1", "votes/2"], "votes"),
        (["/data/votes.csv", "labels:/data/labels.csv"], "votes.csv"),
        (["/data/a.csv", "/data/b.csv", "/data/c.csv"], "a.csv and 2 more"),
        ([], "Comparisons"),
    ],
)
def test_the_title_names_topics_and_files_of_answers(positions, title):
    assert page.title(SimpleNamespace(summary={"positions": dict.fromkeys(positions, 1)})) == title


@pytest.mark.parametrize(
    "people, size, note", [(4, 400, "not assessed"), (5, 20, "not assessed"), (5, 400, "none flagged")]
)
def test_participants_who_were_not_assessed_are_not_called_unflagged(people, size, note):
    by_all = [{**event, "worker": f"w{i % people}"} for i, event in enumerate(compared(size))]
    (tile,) = [each for each in tiles(material(Published(snapshot_of(by_all), {}))) if each.head == "Participants"]
    assert (tile.value, tile.note) == (str(people), note)


def differing(own: float, one: float, groups: int = 2) -> list:
    report = {
        "participants": 9, "p_value": 0.002, "shrinkage": 3.0, "who": [{"participant": "w3"}],
        "own": {"accuracy": own}, "one_map": {"accuracy": one}, "groups": {"count": groups, "p_value": 0.04},
    }  # fmt: skip
    facts = SimpleNamespace(
        report=lambda kind: {"individual_differences": report}, beats_chance=True, commands=Commands("DIR")
    )
    return list(agreement.differences(facts))


def test_individual_differences_have_both_accuracies_by_their_names():
    found, _ = differing(0.75, 0.7)
    assert found.figures["accuracy"] == 0.75
    assert found.figures["accuracy_of_one_map"] == 0.7


@pytest.mark.parametrize("own, small", [(0.75, False), (0.701, True), (0.6, True)])
def test_a_difference_is_small_where_own_models_hardly_predict_better(own, small):
    assert ("small" in differing(own, 0.7)[0].text) == small


def test_the_page_and_the_text_for_a_paper_name_the_test_that_shows_a_difference():
    """One of fifteen judges by other dimensions: the score test of all together does not show it."""
    row = {"participant": "p09", "p_value": 0.0004}
    report = {"participants": 15, "p_value": 0.93, "p_of_weights": None, "shrinkage": None, "who": [row]}
    facts = SimpleNamespace(
        report=lambda kind: {"individual_differences": report}, beats_chance=True, commands=Commands("DIR")
    )
    (found,), (text,) = agreement.differences(facts), methods._differences({"individual_differences": report})
    for told in (found.text, text):
        assert "p < .001" in told and ".93" not in told and "not significant" not in told
    report["who"] = []
    (found,), (text,) = agreement.differences(facts), methods._differences({"individual_differences": report})
    assert ".93" in found.text and found.what == "no_differences" and states(text, "not significant … .93")


def test_own_maps_that_predict_better_are_said_although_no_test_is_significant():
    """Three of ten judge one axis otherwise; their lapse rates of .45 leave the score test little."""
    report = {"participants": 10, "p_value": 1.0, "shrinkage": None, "who": [], "own_maps": 4}
    report |= {"own": {"accuracy": 0.862}, "one_map": {"accuracy": 0.841}}
    facts = SimpleNamespace(
        report=lambda kind: {"individual_differences": report}, beats_chance=True, commands=Commands("DIR")
    )
    (found,) = agreement.differences(facts)
    assert states(found.text, "not significant … p > .99 … 86.2 % … 84.1 %") and "small" not in found.text
    report["own"] = {"accuracy": 0.839}
    (found,) = agreement.differences(facts)
    assert found.what == "no_differences"


@pytest.mark.parametrize("groups, named", [(1, []), (2, ["2"]), (3, ["3"])])
def test_groups_of_participants_are_counted_where_there_are_several(groups, named):
    found = differing(0.75, 0.7, groups)[1]
    assert re.findall(r"\b\d+ groups", found.text) == [f"{each} groups" for each in named]
    assert found.figures == {"groups": groups, "p_value": 0.04}


def test_refits_of_an_earlier_snapshot_are_named():
    made = {kind: Artifact(kind, "", number, {}, 0, {}, {}) for kind, number in (("embedding", 3), ("clusters", 5))}
    facts = SimpleNamespace(
        summary={"comparisons": 9, "snapshot": 5},
        published=SimpleNamespace(artifacts=made),
        models_left_out=None,
        commands=Commands("DIR"),
    )
    (found,) = findings_of_data.gaps(facts)
    assert found.figures == {"refits": 1}
    assert "embedding" in found.text
    assert "clusters" not in found.text


def test_a_long_dendrogram_shows_the_last_merges():
    m = dendrogram.MAX_DRAWN + 4
    merges = np.array([[m + i - 1 if i else 0, i + 1, 0.5 + i, i + 2] for i in range(m - 1)], float)
    found = dendrogram.table(merges, [f"n{i}" for i in range(m)]).columns
    assert found["at"] == merges[4:, 2].tolist()
    assert found["joins"] == [f"n{i + 1}" for i in range(4, m - 1)]


def test_a_legend_counts_the_objects_that_are_shown():
    of = SimpleNamespace(
        cluster=np.array([0, 0, 0, 1, 1, -1]), facts=SimpleNamespace(cluster_answer={"grade": "separated"})
    )
    sizes = [re.findall(r"\((\d+)\)", text) for _, text in legend(of, np.array([0, 1, 3]))]
    assert sizes == [["2"], ["1"]]
    of.facts.cluster_answer["sizes"], of.cluster, of.names = [3, 1], np.array([0, 0, 0, 1]), ("a", "b", "c", "far")
    assert [text for _, text in legend(of, np.arange(4))] == ["group 1 (3)", "far, by itself (1)"]


def test_a_row_of_objects_may_have_both_a_picture_and_a_text(tmp_path):
    (tmp_path / "objects.csv").write_text("object,image,text\na,a.png,first\nb,,second\nc,c.png,\n")
    for name in "ac":
        (tmp_path / f"{name}.png").write_bytes(b"x")
    found = object_files.read_listing(tmp_path / "objects.csv")
    assert sorted(found.pictures) == ["a", "c"]
    assert found.texts == {"a": "first", "b": "second"}


def test_pictures_are_of_unknown_objects_where_no_object_has_their_name(tmp_path):
    for name in ("a.png", "b.png", "c.png", "d.png"):
        Image.new("RGB", (2, 2)).save(tmp_path / name)
    found = object_files.read(tmp_path, ["a", "b.png", "c.jpg"])
    assert sorted(found.pictures) == ["a", "b.png", "c.jpg"] and found.unknown == 1


def test_names_on_a_map_belong_to_their_objects():
    ids = np.array([7, 3, 5])
    points = Points(
        np.array([0.0, 5.0, 9.0]), np.array([0.0, 5.0, 1.0]), ids, ("seven", "three", "five"), np.zeros(3, int)
    )
    made = ElementTree.fromstring(svg(Drawing("map", "Map", "About.", Axis("x"), Axis("y"), (points,))))
    texts = {e.text: e.get("data-i") for e in made.iter() if e.tag.endswith("text") and e.get("data-i")}
    assert texts == {"seven": "7", "three": "3", "five": "5"}


def test_kernels_that_papers_draw_are_called_by_their_names():
    made = events()
    snapshot = snapshot_of(made)
    fitted = reliability.refit(snapshot, reliability.Params(), 0)
    found = dict(materials._kernels(Published(snapshot, {}), len(snapshot.objects)))
    said = World(Published(snapshot, {"reliability": fitted}), made)
    for name, value in (("k1", lambda a, b: said.k(1, a, b)), ("AddS-3", lambda a, b: said.similarity[""][a, b])):
        wanted = [[value(a, b) for b in snapshot.objects] for a in snapshot.objects]
        off = ~np.eye(len(wanted), dtype=bool)
        assert np.asarray(found[name])[off] == pytest.approx(np.array(wanted, float)[off], abs=1e-6)


def test_questions_to_ask_next_have_their_sides():
    of = material(Published(snapshot_of(compared()), {}))
    (table,) = next_questions.section(of).tables
    asked = asking.questions(knowledge_of(of.snapshot, None), 10).rows
    assert list(zip(*(table.columns[head] for head in ("anchor", "left", "right")))) == [
        tuple(of.names[i] for i in row) for row in asked.tolist()
    ]


def test_a_font_that_is_missing_is_said_with_how_many_there_are(monkeypatch):
    from matplotlib import font_manager

    fonts = [SimpleNamespace(name=f"Font {i:02}") for i in range(20)]
    monkeypatch.setattr(font_manager, "fontManager", SimpleNamespace(ttflist=fonts))
    with pytest.raises(figure_style.BadStyle) as raised:
        figure_style._installed("nowhere")
    listed, more = str(raised.value).split("expected one of ")[1].split(" and ")
    assert len(listed.split(", ")) + int(more.split()[0]) == 20 + 3  # and the generic families


def test_a_learning_curve_has_each_figure_in_its_column(monkeypatch):
    shares, errors, losses = (0.6, 0.7, 0.8), (0.03, 0.02, 0.01), (0.66, 0.6, 0.5)
    steps = [
        learning.Step(100 * (at + 1), Figures(*each, 0.1, 50, 50))
        for at, each in enumerate(zip(shares, errors, losses))
    ]
    sure = np.repeat([0.57, 0.73, 0.93], [10, 20, 30])
    right = np.concatenate([np.arange(10) < 5, np.arange(20) < 15, np.arange(30) < 27]).astype(float)
    monkeypatch.setattr(learning, "curve", lambda *_: (steps, sure, right))
    made = Artifact("embedding", "", 1, {}, 0, {}, {})
    drift = {"accuracy": {"alarms": 2}, "log_loss": {"alarms": 0}}
    of = SimpleNamespace(
        artifact=lambda kind: made,
        summary={"comparisons": 400},
        published=Published(snapshot_of(compared()), {"embedding": made}),
        progressive={"drift": drift},
        facts=SimpleNamespace(beats_chance=True),
    )
    section = learning.section(of)
    curve, calibration = (table.columns for table in section.tables)
    assert curve == {
        "comparisons fitted": [100, 200, 300],
        "accuracy": [*shares],
        "standard error": [*errors],
        "log loss": [*losses],
    }
    assert calibration["predicted"] == pytest.approx([0.57, 0.73, 0.93])
    assert calibration["observed"] == pytest.approx([0.5, 0.75, 0.9])
    assert calibration["comparisons"] == [10, 20, 30]
    assert "occurred" not in section.says, "thirty comparisons are too few"
    _, note = section.notes
    assert "accuracy 2 times" in note
    assert "log_loss" not in note


def test_calibration_is_said_of_fifty_comparisons_with_its_interval():
    stated, came = np.array([0.73, 0.93]), np.array([0.75, 0.9])
    assert learning._calibration_in_words(stated, came, np.array([49, 49])) == ""
    says = learning._calibration_in_words(stated, came, np.array([60, 49]))
    low, high = np.sort(np.roots([1 + 1.96**2 / 60, -1.5 - 1.96**2 / 60, 0.75**2]))
    assert states(says, f"73 % … 75 % … 95 % CI {100 * low:.0f} to {100 * high:.0f}; 60 ")


@pytest.mark.parametrize("right, n", [(3531, 3531), (3530, 3531), (99_990, 100_000)])
def test_the_interval_of_a_share_near_all_has_a_width(right, n):
    says = learning._calibration_in_words(np.array([0.998]), np.array([right / n]), np.array([n]))
    ((low, high),) = re.findall(r"95 % CI ([\d.]+) to ([\d.]+)", says)
    assert float(low) < float(high) <= 100


@pytest.mark.parametrize("held_out, is_part", [(2444, True), (3010, False), (0, False)])
def test_it_is_explained_where_not_all_comparisons_were_held_out(held_out, is_part):
    facts = SimpleNamespace(models=[{"model": "embedding", "accuracy": 0.883}], held_out=held_out)
    findings = {"accuracy": [SimpleNamespace(text="", command="", level="")]}
    material = SimpleNamespace(facts=facts, summary={"comparisons": 3010}, findings=findings)
    (table,) = section_of_models.section(material).tables
    assert ("Not all comparisons were held out" in table.about) is is_part


def test_a_set_is_as_good_for_a_group_as_for_its_answers():
    """The accuracy of each participant counts as often as they answered; who is in no group is in none."""
    people = ("u", "v", "w", "x")
    fitted = {"worker_group": np.array([0, 0, 1]), **pack_names(people[:3])}
    held = {f"participant_{key}": each for key, each in pack_names(people).items()}
    held |= {"participant_answers": np.array([10.0, 30.0, 5.0, 7.0])}
    held |= {"participant_accuracy": np.array([[0.5], [0.9], [0.6], [0.1]])}
    made = Artifact("alignment", "", 1, {}, 0, held, {"predicts": {"sets": [{"set": "pixels"}]}})
    embedding = Artifact("embedding", "", 1, {}, 0, fitted, {})
    (text,) = alignment._of_groups(SimpleNamespace(artifact=lambda kind: embedding), made)
    assert re.findall(r"group (\d) \((\d) participants?\): pixels ([\d.]+) %", text) == [
        ("1", "2", "80.0"),
        ("2", "1", "60.0"),
    ]


def test_careless_participants_are_counted_by_their_cause():
    """Three at one position, two of these in straight lines, too; four too fast. Each participant is counted once."""
    flags = {"p_position": [0, 0, 0, 1, 1, 1, 1], "p_run": [0, 0, 1, 1, 1, 1, 1], "p_fast": [1, 1, 1, 0, 0, 0, 0]}
    values = dict.fromkeys(ResponseChecks._fields, np.ones(7, int)) | {k: np.array(v) for k, v in flags.items()}
    reasons = tuple("; ".join(ResponseChecks(**values).reasons(i)) for i in range(7))
    found = dict(each.removesuffix(")").split(" (") for each in agreement._why(reasons).split("; "))
    found = {text: n.removesuffix(" participants with both") for text, n in found.items()}
    words = {"p_position": "one position", "p_run": "straight-lining", "p_fast": "300 ms"}
    for name, word in words.items():
        assert sum(int(n) for text, n in found.items() if word in text) == flags[name].count(0), name
    assert sum(map(int, found.values())) == 7


def test_two_checks_that_find_the_same_guessers_name_them_once():
    reasons = ("answers at chance level (others predict 51%); lapse rate 0.93",) * 2 + ("", "lapse rate 0.61")
    assert [int(n) for n in re.findall(r"\((\d+)\)", agreement._why(reasons))] == [2, 1]


@pytest.mark.parametrize("least", [1, 2, 4])
def test_the_text_for_a_paper_has_the_confirmed_dimensions_where_the_map_has_more(least):
    tested = {"p_values": [0.26] if least == 1 else [0.001, 0.4]}
    report = {"d": 4, "kernel": "ste", "dimensions_at_least": least, "dimensions_tested": tested}
    said = " ".join(methods._embedding(report, True))
    assert (f"confirmed at least {least} dimensions; the map has 4" in said) is (least == 2)
    assert states(said, "not confirmed … (p = .26) … not show that there is none; the map has 4") is (least == 1)


@pytest.mark.parametrize("p, at_least", [([0.001, 0.32, 0.71], 2), ([0.002, 0.003, 0.45, 0.83], 3)])
def test_one_dimension_more_than_the_answers_support_is_the_first_that_adds_nothing(p, at_least):
    report = {"dimensions_at_least": at_least, "dimensions_tested": {"p_values": p}}
    (found,) = findings_of_models._supported(report, at_least, True)
    (said,) = re.findall(r"p = (\.\d+)", found.text)
    assert float(said) == next(each for each in p if each > 0.05)


@pytest.mark.parametrize("answers, few", [([9, 10, 11, 3], ["2"]), ([10, 30, 9], ["1"]), ([10, 11, 10], [])])
def test_objects_with_so_many_comparisons_are_not_those_with_fewer(answers, few):
    of = SimpleNamespace(answers=SimpleNamespace(answers=np.array(answers)), by_object=True)
    assert re.findall(r"(\d+) objects? ha\w+ fewer than 10 ", next_questions._advice(of)) == few


def sent_twice(dropped: bool, n: int = 4) -> Facts:
    """So many answers of one file that was sent twice, of eight rows that are no answers."""
    answers = [{**each, "worker": "w"} for each in compared(6)]
    again = {**answers[0], "near": answers[0]["far"], "far": answers[0]["near"]}
    snapshot = snapshot_of([*answers, *([] if dropped else answers[:n]), again], ("triplet_counts", "judgements"))
    options = {"columns": {"catch": "kind"}} | ({"drop_duplicates": True} if dropped else {})
    more = {"repeated": n, "filtered": 8 + n * dropped, "input": {"options": options}}
    counters, positions = {**snapshot.counters, **more}, {f"{Path.cwd()}/f.csv": Position(1)}
    agreed = {"others": 0.8, "answers": 159, "themselves": 0.986, "own_answers": 4 * n}
    fitted = Artifact("embedding", snapshot.digest, 1, {}, 0, {}, {"ceiling": agreed})
    published = Published(snapshot._replace(counters=counters, positions=positions), {"embedding": fitted})
    return Facts(published, Commands("DIR", "stream-engine report f.csv", read_by="--type triplet"))


def test_agreement_that_rests_on_copies_is_not_said():
    for dropped in (True, False):
        facts = sent_twice(dropped)
        texts = {each.what: each.text for each in agreement.agreement(facts)}
        assert ("test_retest_agreement" in texts) == dropped == ("98.6" in " ".join(texts.values()))
        assert ("several answers disagree" in texts["conflicting_answers"]) == dropped
        assert ("copies" in texts["conflicting_answers"]) != dropped
        (table,) = sections_of_agreement.section(material(facts.published)).tables
        assert ("themselves" in table.columns["with"]) == dropped


def test_rows_are_excluded_for_their_own_reason_in_the_text_for_a_paper_too():
    for dropped in (True, False):
        facts = sent_twice(dropped)
        (found,) = [each for each in findings_of_data.read(facts) if each.what == "filtered"]
        said = "12 rows … 4 copies … 8 others … catch trials … copies" if dropped else "8 rows … (catch trials)"
        assert states(found.text, said) and found.text in methods.paper(facts)
        assert ("4 copies of answers were counted" in methods.paper(facts)) != dropped


def test_no_command_counts_copies_again_beside_one_that_does_not():
    facts = sent_twice(False)
    (twice,) = [each for each in findings_of_data.read(facts) if each.what == "sent_twice"]
    assert twice.command == facts.commands.report == "stream-engine report f.csv --drop-duplicates"
    assert "--type triplet --drop-duplicates && ask" in facts.on_a_state("ask")
    assert sent_twice(True).commands.report == "stream-engine report f.csv"


def test_objects_with_few_comparisons_are_named_the_fewest_first():
    of, counts = material(Published(snapshot_of(compared()), {})), np.array([9, 3, 40, 7, 12, 5])
    of = of._replace(answers=of.answers._replace(answers=counts))
    *named, last = (of.names[i] for i in np.argsort(counts) if counts[i] < 10)
    assert states(objects.section(of).says, f"4 objects have fewer than 10 comparisons: {', '.join(named)} and {last}.")


def test_sets_are_counted_and_the_smallest_is_named():
    """Three, so that the second is neither the largest nor the smallest."""
    made = [
        {key: f"{letter}{name}" for key, name in each.items()}
        for letter, n in (("x", 6), ("y", 5), ("z", 4))
        for each in compared(n)
    ]
    facts = Facts(Published(snapshot_of(made), {}))
    text = next(findings_of_data.connected(facts)).text
    assert states(text, "3 sets, of 6, 5 and 4 objects … the smallest: zo") and "yo" not in text
    assert states(methods._data(facts), "formed 3 sets")


def test_the_map_and_counts_are_compared_by_their_own_accuracies():
    accuracy = {"adds3": 0.9, "kernel_learning": 0.8, "embedding": 0.7, "chance": 0.5}
    rows = [{"model": name, "accuracy": share} for name, share in accuracy.items()]
    (found,) = findings_of_models._worse_map(SimpleNamespace(models=rows, preview="preview FILE"), rows[0])
    assert found.figures == {"accuracy": 0.7, "of_counts": 0.9} and states(found.text, "70.0 % against 90.0 %")
