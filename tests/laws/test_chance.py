"""P-values are even, or larger, where nothing is to be found; intervals hold the truth 95 times in 100; what is drawn
at random differs from draw to draw, and spreads as theory says.

`STATISTICS` names every function of the product that makes a p-value or an interval, found by what it is made of, and
what tests it; one that is not named fails.
"""

import ast
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import stream_engine
from stream_engine.asking.ensemble import ensemble
from stream_engine.asking.model import Model
from stream_engine.boosting import nested
from stream_engine.collect.question_maker import ellipse_size
from stream_engine.embedding import choice, dimensions
from stream_engine.embedding.ellipses import radius
from stream_engine.embedding.odd_one_out import Responses
from stream_engine.embedding.participant_folds import mean_gain
from stream_engine.embedding.participant_groups import participant_groups
from stream_engine.evaluation import cross_fit, held_out, participants, response_checks, responses
from stream_engine.evaluation.count_models import CountModels
from stream_engine.exports import models as table_of_models
from stream_engine.exports import object_places, object_table
from stream_engine.refits import dimensions as interpretable
from stream_engine.refits import triplet_boost
from stream_engine.report.findings import facts, models
from tests.support.judged_worlds import PEOPLE
from tests.support.learned import snapshot_of_rows

ROOT, DRAWS = Path(stream_engine.__file__).parent, 300
DEAR = dict.fromkeys(("of groups", "of counts"), 150)
MADE_OF = {"inv_cdf", "gammaincinv", "stdtr", "ndtr", "at_least", "at_most", "binomial"}
MADE_OF |= {"multivariate_normal", "gumbel"}
CALLED = (
    "p_",
    "holm",
    "radius",
    "wilson",
    "interval",
    "ellipse",
    "standard_error",
    "_standard_error",
    "corrected_test",
)
BY_ANOTHER, CUT, DRAWN = "tested in its room", "a threshold, not told", "a half width of 1.96, told in test_told.py"
STATISTICS = {  # file:function -> in which tables below it is, or what else it is
    "clustering/sentence.py:_further_statements": CUT,
    "collect/question_maker.py:ellipse_size": "quantiles",
    "commands/refit_text.py:plain_figures": DRAWN,
    "commands/inspect.py:_cell": DRAWN,
    "embedding/choice.py:interval": "INTERVALS",
    "embedding/participant_folds.py:mean_gain": "NULLS INTERVALS",
    "embedding/dimensions.py:corrected_test": "NULLS",
    "embedding/ellipses.py:radius": "quantiles",
    "embedding/participant_groups.py:_test_split": "NULLS",
    "embedding/score_test.py:p_value": BY_ANOTHER,
    "embedding/sparse_fit.py:standard_errors": BY_ANOTHER,
    "evaluation/copied_participants.py:copied_participants": BY_ANOTHER,
    "evaluation/cross_fit.py:_half_width": CUT,
    "evaluation/noise_ceiling.py:_upper_bound": CUT,
    "boosting/nested.py:of": "INTERVALS",
    "evaluation/held_out.py:standard_error": "INTERVALS",
    "evaluation/participants.py:wilson": "INTERVALS",
    "evaluation/participants.py:_check_accuracy": BY_ANOTHER,
    "evaluation/participants.py:_failed_catch_trials": BY_ANOTHER,
    "evaluation/participants.py:_against_map": BY_ANOTHER,
    "evaluation/response_checks.py:holm": "NULLS",
    "evaluation/response_checks.py:at_least": "NULLS",
    "evaluation/response_checks.py:response_checks": "NULLS",
    "evaluation/response_checks.py:_positions": "NULLS",
    "formats/opposite_answers.py:opposite_answers": "worlds without reversed answers, in test_opposite_answers.py",
    "exports/alignment.py:table": "the interval of the embedding's own standard error, which is tested as that",
    "exports/models.py:beats_chance": "NULLS",
    "exports/models.py:reported": "NULLS",
    "exports/object_table.py:_standard_errors": "roots of variances, told in test_told.py",
    "exports/object_places.py:ellipses_of": "quantiles",
    "report/findings/models.py:_no_better_than_chance": CUT,
    "report/findings/models.py:_reversed": CUT,
    "report/findings/models.py:bounds": "those of `interval`, as numbers",
    "report/findings/models.py:interval": "INTERVALS",
    "report/findings/words.py:p_value": "no test: words",
    "report/sections/differences.py:_who": DRAWN,
    "report/sections/learning.py:_curve": DRAWN,
    "report/sections/learning.py:section": CUT,
    "report/sections/object_map.py:scale": DRAWN,
}


def test_every_statistic_is_named():
    found = set()
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
                names = {getattr(each, "attr", getattr(each, "id", None)) for each in calls}
                numbers = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                if names & MADE_OF or numbers & {1.96, 5.991} or node.name.startswith(CALLED):
                    found.add(f"{path.relative_to(ROOT)}:{node.name}")
    assert found == STATISTICS.keys()


# --- p-values: (rng) -> one under the null model ---------------------------------------------------------------------


def of_trials(rng):
    """Made continuous: between the chance of as many, and that of one more."""
    n, share = int(rng.integers(5, 60)), rng.uniform(0.05, 0.95)
    k = rng.binomial(n, share)
    below, p = response_checks.at_least(np.array([k + 1, k]), np.array([n, n]), np.array([share, share]))
    return below + rng.random() * (p - below)


def of_folds(rng):
    """As Nadeau & Bengio suppose: any two folds' differences correlate by 1 / J."""
    return dimensions.corrected_test(rng.normal(size=10) * np.sqrt(0.9) + rng.normal() * np.sqrt(0.1))


def gains(rng, truth):
    """Of units with one answer or two."""
    answers = rng.integers(1, 3, 400).astype(float)
    return mean_gain(answers * (truth + rng.normal(size=400)), answers)


def of_gains(rng):
    return gains(rng, 0.0)[2]


def of_groups(rng):
    return participant_groups(
        np.exp(rng.multivariate_normal([0.0, 0.2], [[0.3, 0.1], [0.1, 0.2]], 24)), rng.integers(9999)
    ).p_value


def coins(rng, n, size):
    return np.array([rng.permutation(n)[:3] for _ in range(size)])


def of_studies(rng):
    """The least p of honest participants: who answers at random positions, one time in ten within 300 ms."""
    n = np.full((len(PEOPLE), 2), 20)
    n[:, 0] = rng.binomial(40, 0.5, len(PEOPLE))
    n[:, 1] = 40 - n[:, 0]
    worker, value = np.divmod(np.arange(n.size), 2)
    size = np.full(n.size, 2)
    own, expected = response_checks._expected(worker, size, value, n.ravel())
    *_, p = response_checks._positions(worker, size, value, n.ravel(), own, expected, len(PEOPLE))
    return np.nanmin(response_checks.holm(p))


def of_pace(rng):
    fast = rng.binomial(40, response_checks.FAST_SHARE, len(PEOPLE))
    trials = np.full(len(PEOPLE), 40), np.full(len(PEOPLE), response_checks.FAST_SHARE)
    return response_checks.holm(response_checks.at_least(fast, *trials)).min()


def of_runs(rng):
    """Of answers at two positions by coins, the longest run."""
    at = rng.random((len(PEOPLE), 60)) < 0.5
    same = at[:, 1:] == at[:, :-1]
    longest = [max(map(len, "".join("x" if each else " " for each in row).split()), default=0) + 1 for row in same]
    n = np.stack([at.sum(axis=1), 60 - at.sum(axis=1)], axis=1).ravel()
    followed = np.full(len(PEOPLE), 59)
    worker = np.repeat(np.arange(len(PEOPLE)), 2)
    p = response_checks._runs(worker, n, np.full(n.size, 0.5), np.array(longest), followed, same.sum(axis=1))
    return np.nanmin(response_checks.holm(p))


def of_chance(rng):
    """The level of the bound below which no model beats chance, of models that know nothing."""
    z = rng.normal(size=5)
    rows = [{"model": f"m{i}", "accuracy": 0.5 + 0.02 * each, "standard_error": 0.02} for i, each in enumerate(z)]
    rows[0]["model"] = "embedding"
    for level in LEVELS:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(table_of_models, "CHANCE_TEST_LEVEL", level)
            of = facts.Facts(SimpleNamespace(artifacts={}, snapshot=SimpleNamespace(counters={})))
            of.__dict__["models"] = [each | {"comparisons": 1000, "log_loss": 0.7} for each in rows]
            of.__dict__["n_questions"] = 1000
            if of.beats_chance:
                return level
    return 1.0


LEVELS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
EVEN = {"of trials": of_trials, "of folds": of_folds, "of gains": of_gains}
NULLS = EVEN | {
    "of holm": lambda rng: response_checks.holm(rng.random(5)).min(),
    "of groups": of_groups,
    "of positions": of_studies,
    "of runs": of_runs,
    "of pace": of_pace,
    "of chance": of_chance,
}


@pytest.mark.parametrize("name", NULLS)
def test_p_is_even_or_larger_where_nothing_is_to_be_found(name):
    rng = np.random.default_rng(11)
    p = np.array([NULLS[name](rng) for _ in range(DEAR.get(name, DRAWS))])
    assert (p >= 0).all()
    assert (p <= 1).all()
    assert len(np.unique(p)) > 3
    assert stats.kstest(p, "uniform", alternative="two-sided" if name in EVEN else "greater").pvalue > 0.01


# --- intervals: (rng) -> (low, truth, high) --------------------------------------------------------------------------


def of_shares(wilson):
    def made(rng):
        p = rng.uniform(0.1, 0.9)
        low, high = wilson(rng.binomial(60, p), 60)
        return float(low), p, float(high)

    return made


def told(found, truth):
    """As it is written: percent with one digit."""
    low, high = models.interval(found.accuracy, found.standard_error).split("CI ")[1].split(" to ")
    return float(low) / 100, truth, float(high) / 100


def of_answers(rng):
    right = rng.random(120) < 0.7
    return told(held_out.figures(np.where(right, 1.0, -1.0), 1.0, np.ones(120), np.arange(120)), 0.7)


def of_responses(rng):
    """Of whole responses with one to six comparisons, all of them right or all wrong."""
    size = rng.integers(1, 7, 150)
    right = np.repeat(rng.random(150) < 0.7, size)
    cluster = np.repeat(np.arange(150), size)
    return told(held_out.figures(np.where(right, 1.0, -1.0), 1.0, np.ones(len(right)), cluster), 0.7)


def evidence(rng, size):
    snapshot = snapshot_of_rows(coins(rng, 8, size), np.arange(size) % 20, np.arange(size) / 7 + 0.1)
    return responses.responses_of(snapshot, 0)


def of_fits(rng):
    """Coins, predicted by a least-squares fit to all but a tenth: half of them come as expected."""
    found = evidence(rng, 200)
    apart = np.zeros((200, 8))
    for column, sign in ((3, 1.0), (1, -1.0)):
        apart[np.arange(200), found.answers.rows[:, column]] += sign

    def predict(setting, out):
        held = out[found.answers.response]
        x = apart[~held]
        return {"": apart[held] @ np.linalg.solve(x.T @ x + np.eye(8), x.sum(axis=0))}

    plan = cross_fit.plan(found)
    made = cross_fit.evaluate(found, plan, None, lambda part: None, predict)[""].judgement
    return made.accuracy - 1.96 * made.standard_error, 0.5, made.accuracy + 1.96 * made.standard_error


def of_counts(rng):
    snapshot = snapshot_of_rows(coins(rng, 8, 150), np.arange(150) % 10, np.zeros(150))
    made = CountModels(snapshot, 0).evaluate(("adds3",))["adds3"].judgement
    return made.accuracy - 1.96 * made.standard_error, 0.5, made.accuracy + 1.96 * made.standard_error


def of_objects(figures):
    def made(rng):
        right = rng.random(150) < 0.7
        share, error = figures(right)
        return share - 1.96 * error, 0.7, share + 1.96 * error

    return made


def by_classify(right):
    found = nested.Figures.of(right, np.zeros(len(right)), np.zeros(len(right)))
    return found.accuracy, found.standard_error


def by_boosting(right):
    found = triplet_boost._figures([triplet_boost.TestOutcomes(right, right, right)])
    return found["accuracy"], found["standard_error"]


def of_gain(rng):
    mean, error, _ = gains(rng, 0.2)
    return mean - 1.96 * error, 0.2, mean + 1.96 * error


TRIPLES = np.array(
    [(a, b, c) for a in range(20) for b in range(20) for c in range(20) if len({a, b, c}) == 3], np.int32
)
WEIGHTS = np.random.default_rng(0).exponential(size=(20, 2)).astype(np.float32)
KINDS = Responses(TRIPLES, np.zeros(len(TRIPLES), bool), np.ones(len(TRIPLES), np.float32), np.zeros(len(TRIPLES)), 20)
P = np.exp(-interpretable.sparse_fit.losses(KINDS, WEIGHTS).astype(float))  # of a, b found more similar than a, c
TRUTH = interpretable.importances(KINDS._replace(times=P), WEIGHTS)[0][0]


def of_importance(rng):
    """Of a dimension, by 300 answers that the model itself gives."""
    drawn = KINDS.of(np.sort(rng.choice(len(P), 300, p=P / P.sum())))
    gain, error = (float(each[0]) for each in interpretable.importances(drawn, WEIGHTS))
    return gain - 1.96 * error, TRUTH, gain + 1.96 * error


def of_dimensions(rng):
    """Of one to five dimensions, of which all from the second on predict equally well."""
    search = object.__new__(choice._Search)
    losses = [rng.normal(0.7 + 0.3 * (d == 1), 1.0, 200) for d in range(1, 6)]
    search.trials = [choice.Trial(choice.Setting("ste", d, 1.0), each.mean(), each, None, None, None)
                    for d, each in enumerate(losses, 1)]  # fmt: skip
    low, high = search.interval()
    return low, 2, max(high, 2)


INTERVALS = {
    "of shares": of_shares(lambda k, n: participants.wilson(np.array(k / n), np.array(n))),
    "of answers": of_answers,
    "of responses": of_responses,
    "of fits": of_fits,
    "of counts": of_counts,
    "of objects, classified": of_objects(by_classify),
    "of objects, boosted": of_objects(by_boosting),
    "of a gain": of_gain,
    "of importance": of_importance,
    "of dimensions": of_dimensions,
}


@pytest.mark.parametrize("name", INTERVALS)
def test_an_interval_holds_the_truth_95_times_in_100(name):
    rng = np.random.default_rng(12)
    made = np.array([INTERVALS[name](rng) for _ in range(DEAR.get(name, DRAWS))])
    covered = np.count_nonzero((made[:, 0] <= made[:, 1]) & (made[:, 1] <= made[:, 2]))
    assert stats.binom.ppf(0.002, len(made), 0.95) <= covered <= stats.binom.ppf(0.998, len(made), 0.95), covered


def test_regions_are_as_wide_as_the_quantiles_of_chi_squared():
    for d in (1, 2, 3):
        assert radius(d) ** 2 == pytest.approx(stats.chi2.ppf(0.95, d), rel=1e-4)
        points = np.random.default_rng(d).normal(size=(9, d))
        learned = SimpleNamespace(
            arrays={"X": points, "covariance": np.tile(np.diag(np.arange(1.0, d + 1)), (9, 1, 1))}
        )
        spread = np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean())
        assert ellipse_size(learned) == pytest.approx(np.sqrt(d * stats.chi2.ppf(0.95, d)) / spread)
    long, short, _ = object_places.ellipses_of(np.array([[[4.0, 0.0], [0.0, 1.0]]]))
    assert long[0] ** 2 / 4 == short[0] ** 2 == pytest.approx(stats.chi2.ppf(0.95, 2), rel=1e-4)
    assert pytest.approx(stats.norm.ppf(0.975), abs=1e-4) == object_table.INTERVAL


# --- resampling: (rng) -> (values of one draw, their means, their variances) ---------------------------------------


def of_places(rng):
    """Samples of where objects are, two of which mirror each other."""
    spread = np.array([[[2.0, 0.5], [0.5, 1.0]], [[0.1, 0.0], [0.0, 0.3]]])
    made = ensemble(Model(np.zeros((2, 2)), spread, 0.0, 0.0, 1.0, 1.0), np.array([1, 0]), rng, 2)
    assert made.deviations.sum(axis=1) == pytest.approx(0)
    turned = made.deviations[:, 0] @ np.array([1.0, 1.0])
    return turned, np.zeros(2), spread.sum(axis=(1, 2))[[1, 0]]


SPREADS = {
    "places": of_places,
}


@pytest.mark.parametrize("name", SPREADS)
def test_draws_differ_and_spread_as_theory_says(name):
    rng, many = np.random.default_rng(13), 1000
    made = [SPREADS[name](rng) for _ in range(many)]
    values, (_, mean, variance) = np.array([each[0] for each in made]), made[0]
    assert len(np.unique(values, axis=0)) > many / 2
    off = (values.mean(axis=0) - mean) / np.sqrt(variance / many)
    assert np.abs(off).max() < stats.norm.ppf(1 - 0.001 / off.size)
    assert values.var(axis=0) == pytest.approx(variance, rel=0.25, abs=0.02)
    assert values.var(axis=0).sum() == pytest.approx(variance.sum(), rel=0.1)
