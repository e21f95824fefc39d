"""What a page says otherwise where a figure of a fit is another one: each line that no other figure gives."""

from collections import Counter
from functools import cache

from stream_engine.commands.align import as_text
from stream_engine.report import SECTIONS, maker
from stream_engine.report.findings.facts import DEFAULT_COMMANDS, Commands
from stream_engine.report.material import material
from stream_engine.report.tiles import tiles
from stream_engine.state.published import Published
from tests.support import told
from tests.support.approved import sentences, unchanging
from tests.support.approved_pages import table_lines

FITS = {"learning", "next"}  # sections that fit and choose: of no figure of a report
ROWS = {"clusters", "agreement"}  # sections whose tables differ with these figures
DIFFER = "individual_differences"


def where(kind: str, *path: str, **figures) -> Published:
    """The state with other figures in the report of a refit, there or where a path leads."""
    state = told.studied()
    artifact = state.artifacts[kind]
    for name in reversed(path):
        figures = {name: {**(artifact.report.get(name) or {}), **figures}}
    return state._replace(artifacts={**state.artifacts, kind: artifact._replace(report={**artifact.report, **figures})})


def nothing_predicts(**figures) -> Published:
    """The state in which an embedding alone was fitted, and predicts at chance."""
    report = where("embedding", "ceiling", **figures).artifacts["embedding"].report
    state = without(*(kind for kind in told.studied().artifacts if kind != "embedding"))
    at_chance = {**report, "accuracy": 0.47, "standard_error": 0.02}
    made = {"embedding": state.artifacts["embedding"]._replace(report=at_chance)}
    return state._replace(artifacts=made)


def without(*kinds: str) -> Published:
    state = told.studied()
    return state._replace(artifacts={kind: each for kind, each in state.artifacts.items() if kind not in kinds})


def chosen(**figures) -> Published:
    """The state in which the number of dimensions of the embedding was chosen."""
    state = where("embedding", **figures)
    made = state.artifacts["embedding"]
    made = made._replace(params={**made.params, "dimensions": None})
    return state._replace(artifacts={**state.artifacts, "embedding": made})


def counted(**counters) -> Published:
    """The state with other counters."""
    state = told.studied()
    return state._replace(snapshot=state.snapshot._replace(counters={**state.snapshot.counters, **counters}))


def with_options(unused=(), **options) -> Published:
    """The state that was read with these options of its input."""
    return counted(input={"options": options}, unknown_fields=list(unused), filtered=13)


def worse_than_the_majority() -> Published:
    """The state in which every model predicts worse than the majority of earlier answers."""
    state = told.studied()
    at_chance = {"accuracy": 0.44, "standard_error": 0.02}
    made = {kind: each._replace(report={**each.report, **at_chance}) if "accuracy" in each.report else each
            for kind, each in state.artifacts.items()}  # fmt: skip
    return state._replace(artifacts=made)


def of_an_earlier_version() -> Published:
    """The state whose groups an earlier version has found."""
    made = where("sdp_clustering", verdict="separated", note="groups (p = .02).", k=3)
    return made._replace(artifacts={kind: each for kind, each in made.artifacts.items() if kind != "clusters"})


def without_counts(*names: str) -> Published:
    """The state that does not have these accumulators."""
    state = told.studied()
    arrays = {name: array for name, array in state.snapshot.arrays.items() if name.partition("/")[0] not in names}
    settings = state.snapshot.settings
    settings = {**settings, "accumulators": [each for each in settings["accumulators"] if each not in names]}
    return state._replace(snapshot=state.snapshot._replace(arrays=arrays, settings=settings))


def without_ceiling() -> Published:
    state = told.studied()
    made = {kind: each._replace(report={name: value for name, value in each.report.items() if name != "ceiling"})
            for kind, each in state.artifacts.items()}  # fmt: skip
    return state._replace(artifacts=made)


def given(kind: str, **params) -> Published:
    """The state without an answer about clusters, in which a refit was given other parameters."""
    state = without("clusters")
    made = state.artifacts[kind]
    return state._replace(artifacts={**state.artifacts, kind: made._replace(params={**made.params, **params})})


EXCLUDED = {"participants": ["w1"], "before": {"participants": ["w0"], "accuracy": 0.59, "alike": 0.83}}
OTHER_GROUPS = {"participants": ["w1"], "before": {"participants": [], "grade": "separated", "k": 3, "ari": 0.47}}
PICTURE = {"by": "two-dimensional fit (t-STE)", "trustworthiness": 0.934, "accuracy": 0.602}


def agreement(**figures) -> Published:
    """The state in which every refit reports another agreement."""
    state = told.studied()
    made = {kind: where(kind, "ceiling", **figures).artifacts[kind] if "ceiling" in each.report else each
            for kind, each in state.artifacts.items()}  # fmt: skip
    return state._replace(artifacts=made)


def clusters(**figures) -> Published:
    return where("clusters", **figures)


CANNOT = {"grade": "cannot tell", "answers": 311, "objects": 8}
FEW_WHO = [{"participant": "w2", "gain": 0.02, "standard_error": 0.01, "p_value": 0.0004, "objects": ["f"]}]
CASES = {
    "accuracy at chance": lambda: where("embedding", accuracy=0.52, standard_error=0.03),
    "accuracy below chance": lambda: where("embedding", accuracy=0.41, standard_error=0.02),
    "few held out": lambda: where("embedding", held_out_comparisons=9),
    "at the ceiling": lambda: agreement(at_most=0.633),
    "no ceiling": lambda: agreement(at_most=None),
    "agreement unknown": lambda: agreement(others=None, answers=37, at_most=None),
    "people contradict each other": lambda: agreement(others=0.31),
    "people contradict themselves": lambda: agreement(themselves=0.22),
    "the same every time": lambda: agreement(themselves=1.0),
    "reversed": lambda: where(
        "embedding", "reversed", gain=0.2, standard_error=0.05, accuracy=0.7, as_is={"accuracy": 0.6}
    ),
    "nearly reversed": lambda: where(
        "embedding", "reversed", gain=0.2, standard_error=0.07, accuracy=0.7, as_is={"accuracy": 0.6}
    ),
    "two dimensions supported": lambda: where(
        "embedding", dimensions_at_least=2, dimensions_tested={"p_values": [0.012, 0.41]}
    ),
    "one dimension supported": lambda: where(
        "embedding", dimensions_at_least=1, dimensions_tested={"p_values": [0.18]}
    ),
    "dimensions not tested": lambda: where(
        "embedding", dimensions_at_least=None, dimensions_tested="no: there are few answers"
    ),
    "preliminary": lambda: where("embedding", preliminary=True),
    "t-STE": lambda: where("embedding", kernel="t-ste"),
    "regions": lambda: where("embedding", no_regions="for a reason"),
    "nobody differs": lambda: where("embedding", DIFFER, who=[], p_value=0.31, own=None, shrinkage=None),
    "differ, but no model is better": lambda: where("embedding", DIFFER, who=[], own=None, shrinkage=None),
    "weights predict better": lambda: where("embedding", DIFFER, who=[], p_value=0.31, p_of_weights=0.004),
    "differences are small": lambda: where("embedding", DIFFER, who=[], p_value=0.31, own={"accuracy": 0.7093}),
    "one differs": lambda: where("embedding", DIFFER, who=FEW_WHO, p_value=0.93),
    "few participants": lambda: where("embedding", DIFFER, participants=4),
    "one group of participants": lambda: where("embedding", DIFFER, groups={"count": 1, "p_value": 0.43}),
    "differences not tested": lambda: where("embedding", DIFFER, p_value=None, verdict="too few answers"),
    "clearly separated": lambda: clusters(grade="clearly separated", clearer_than=0.9997),
    "separated, another partition": lambda: clusters(replication={"ari": 0.61, "low": 0.5, "high": 0.72}),
    "separated, a similar partition": lambda: clusters(replication={"ari": 0.89, "low": 0.7, "high": 0.93}),
    "separated, the same for certain": lambda: clusters(replication={"ari": 1.0, "low": 0.996, "high": 1.0}),
    "separated, positions tell nothing": lambda: clusters(gain=0.008, gain_se=0.0042),
    "separated, one splits again": lambda: clusters(subgroups=[{"group": 2, "k": 3, "grade": "separated"}]),
    "separated in one dimension": lambda: clusters(reason="one dimension", dimensions=1, sizes=[4, 3], k=2),
    "one group, and an object by itself": lambda: clusters(k=2, sizes=[7, 1], alone=["e"]),
    "objects by themselves": lambda: clusters(k=4, sizes=[5, 1, 1, 1], alone=["e", "f", "a"]),
    "not separable": lambda: clusters(grade="not separable", clearer_than=0.731, sizes=[4, 2, 2]),
    "not separable, without a limit": lambda: clusters(grade="not separable", detection_limit=None, k=1),
    "few objects": lambda: clusters(**CANNOT, reason="few objects"),
    "chance": lambda: clusters(**CANNOT, reason="chance"),
    "uncertain": lambda: clusters(**CANNOT, reason="uncertain positions"),
    "alike": lambda: clusters(**CANNOT, reason="no positions"),
    "few answers": lambda: clusters(**CANNOT, reason="few answers"),
    "few answers, without a limit": lambda: clusters(**CANNOT, reason="few answers", detection_limit=None),
    "certified": lambda: where("sdp_clustering", certified=True, k_by="spur"),
    "lambda": lambda: where("sdp_clustering", k_by="lam", k=2),
    "one reproducible dimension": lambda: where("dimensions", dimensions=1, reproducible=0, triplet_accuracy=None),
    "nothing held out of dimensions": lambda: where("dimensions", held_out_responses=0),
    "features for all": lambda: where("alignment", without_features=0, chosen_by_model=1),
    "no ceiling of features": lambda: where("alignment", "ceiling", at_most=None),
    "features beyond the ceiling": lambda: where("alignment", "ceiling", at_most=0.55, others=0.54),
    "no ceiling, at chance": lambda: nothing_predicts(others=0.497, at_most=None),
    "answers contradict each other": lambda: nothing_predicts(others=0.21),
    "chosen, one dimension supported": lambda: chosen(
        dimensions_at_least=1, dimensions_tested={"p_values": [0.21]}, dimensions_interval=[2, 4]
    ),
    "chosen, none predicts better": lambda: chosen(
        dimensions_at_least=1, dimensions_tested={"p_values": [0.34]}, dimensions_interval=[1, 2]
    ),
    "chosen, two dimensions supported": lambda: chosen(
        dimensions_at_least=2, dimensions_tested={"p_values": [0.008, 0.29]}, dimensions_interval=[2, 3]
    ),
    "a picture": lambda: where("embedding", picture=PICTURE),
    "few answers for a validation set": lambda: where("embedding", chosen_by="too few answers for a validation set"),
    "draws": lambda: where("embedding", draws=400),
    "worse than the majority": worse_than_the_majority,
    "below chance alone": lambda: nothing_predicts(accuracy=0.4, standard_error=0.02),
    "agreement not computed": without_ceiling,
    "others are excluded": lambda: told.studied()._replace(excluded=("w1", "w3")),
    "one is excluded": lambda: where("embedding", excluded=EXCLUDED)._replace(excluded=("w1",)),
    "groups with others excluded": lambda: where("clusters", excluded=OTHER_GROUPS)._replace(excluded=("w1",)),
    "many are excluded": lambda: told.studied()._replace(excluded=tuple(f"person {number}" for number in range(40))),
    "filtered": lambda: with_options(["mood", "page"], where={"phase!": "practice", "rt>": "300"}),
    "only unanswered": lambda: with_options(where={"pick!=": ""}, columns={"chosen": "pick"}),
    "catch trials": lambda: with_options(columns={"catch": "target", "chosen": "pick"}),
    "no time": lambda: with_options(["time"], columns={"time": "-"}),
    "screens": lambda: with_options(columns={"screen": "page", "near": "near", "far": "far"}),
    "copies dropped": lambda: counted(input={"options": {"drop_duplicates": True}}, repeated=9, filtered=13),
    "copies alone": lambda: counted(input={"options": {"drop_duplicates": True}}, repeated=13, filtered=13),
    "copies counted": lambda: counted(repeated=7),
    "unsolved criterion": lambda: where(
        "sdp_clustering",
        criterion={"2": 0.91, "3": 0.934, "4": 0.927},
        criterion_not_converged=[3],
        certified=False,
        gap=0.021,
    ),
    "clusters by k1": lambda: given("sdp_clustering", similarity="k1"),
    "groups of an earlier version": of_an_earlier_version,
    "nothing fitted": lambda: told.studied()._replace(artifacts={}),
    "no objects in groups": lambda: without("embedding", "clusters", "dimensions"),
    "conflicts are not counted": lambda: without_counts("triplet_counts"),
    "participants are not counted": lambda: without_counts("worker_votes", "judgements", "response_patterns"),
    "all excluded, and not counted": lambda: without_counts("worker_votes", "judgements", "response_patterns")._replace(
        excluded=("w0", "w1", "w2", "w3")
    ),
    "many are rejected": lambda: counted(rejected={f"reason {n}": 40 + n for n in range(5)}),
    "time jumps": lambda: counted(time_jumps={"from": 1000.0, "to": 181_300.0, "number": 1}),
    "filtered half": lambda: counted(
        input={"options": {"where": {"pick!=": ""}, "columns": {"chosen": "pick"}}}, filtered=160, events=200
    ),
    "no embedding": lambda: without("embedding"),
    "no clusters": lambda: without("clusters"),
    "no groups at all": lambda: without("clusters", "sdp_clustering", "spectral"),
    "no hierarchy": lambda: without("hierarchy"),
    "no reliability": lambda: without("reliability"),
}


TYPED = Commands("DIR", "stream-engine report a.csv", True, False, "--type pick", ("two rows look like a header",))
TOLD_BY = {  # to whom it is said otherwise: how a person asks further, and whether participants are listed
    "of files, of which more is being fitted": (TYPED, False),
    "of a state at which a run is at work": (Commands("DIR", in_use=True, out="my page.html"), False),
    "of a state, without participants": (Commands("S"), False),
}


def lines(state: Published, commands: Commands = DEFAULT_COMMANDS, participants: bool = True) -> list[str]:
    of = material(state, {"drift": {"accuracy": {"alarms": 0}}}, participants, commands)
    found = [f"[{tile.head}] {tile.value}: {tile.note}" for tile in tiles(of)]
    for name in SECTIONS:
        if name not in FITS and (section := maker(name)(of)) is not None:
            found += [f"{name}: {line}" for text in (section.says, *section.notes) for line in sentences(text)]
            found += [f"{name}: {each.name}: {each.about}" for each in (*section.tables, *section.drawings)]
            if name in ROWS:
                found += [f"{name}: {line.strip()}" for each in section.tables for line in [*table_lines(each)][1:]]
    return unchanging("\n".join(found)).splitlines()


@cache
def usual() -> frozenset[str]:
    return frozenset(lines(told.studied()))


def test_sentences(approved):
    found = []
    cases = {name: lines(told.studied(), *how) for name, how in TOLD_BY.items()}
    few = without("clusters", "dimensions", "classify")
    cases |= {f"{name}; with less": lines(few, *how) for name, how in TOLD_BY.items()}
    cases["of files, without some"] = lines(told.studied()._replace(excluded=("w1", "w3")), TYPED)
    cases |= {name: lines(make()) for name, make in CASES.items()}
    for name, said in cases.items():
        found += [f"## {name}", *(line for line in said if line not in usual())]
        gone = Counter(line.partition(": ")[0] for line in usual() - {*said})
        found += [f"gone: {', '.join(f'{section} {n}' for section, n in sorted(gone.items()))}", ""]
    for name in ("no ceiling of features", "features beyond the ceiling", "features for all"):
        found += [f"## align: {name}", *as_text(CASES[name]()).splitlines(), ""]
    assert "\n".join(found) == approved
