"""Clusters, how many, a continuum, or cannot tell? One decision from one statistic.

Two null models, both with the questions as they were asked. Coins: every judgement is chance; the statistic is the
leading eigenvalue of AddS. A continuum: positions that look as the embedding of the answers does, without its gaps
(`clustering.borders`), and answers from them by each of several models with the study's own noise
(`clustering.drawn_answers`), embedded in the same way. The statistic is how clear the groups of embedded points are,
for every number of groups up to a fifth of the objects (`clustering.borders`): the mean over the draws less what was
observed. The number with the largest is the number of clusters. Its p counts the draws in which any number of groups is
as clear (Westfall & Young 1993, single step), so it is corrected for the choice; and of the p under each model it is
the largest. Drawing ends early once `ENOUGH` draws are at least as clear, which is never significant (Besag & Clifford
1991), and after `FIRST` draws of which none is; `p_value` takes account of that.

Which objects lie between clusters, how many clusters another study might find, and how well its groups would agree, is
seen in random halves of the responses, each embedded and grouped by itself. See docs/design/clustering.md.

Everything is embedded by STE with one ridge, observed, drawn and halved answers alike. O((5 B + 30) q d iterations).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stream_engine.clustering import borders, drawn_answers
from stream_engine.clustering.drawn_answers import AnswerSet
from stream_engine.clustering.evidence import LEAST, leading
from stream_engine.clustering.stability import Replicates
from stream_engine.embedding.evidence import evidence
from stream_engine.embedding.fit import LOOSE, Embedding, fit
from stream_engine.embedding.held_out import Answers
from stream_engine.embedding.questions import Questions
from stream_engine.evaluation.answer_probabilities import margins, probability
from stream_engine.state.snapshot import Snapshot

LEVEL = 0.05
ENOUGH = 5  # draws at least as large, after which drawing ends
PILOT = 15  # draws before any are counted
FIRST = 39  # draws after which drawing ends if none is as large
MADE = 10  # draws of clear clusters that say whether a continuum would have been told from them
TIGHTER = 1 / 3  # within-group deviations of those, in terms of the observed ones
RIDGE = 0.1
AGAIN = 1e-4  # tolerance of fits that are begun where the answer is known to be near
DIMENSIONS = (1, 2, 3, 5)
HELD_OUT, GAIN = 0.2, 1e-3  # of the judgements to choose the dimensions by; nats an answer that more must gain
A_GROUP = 5  # objects an average group has at least
MOST = 20_000  # answers that are tested; of more, a sample of judgements
MOST_HALVED = 1_000_000  # ... that are halved for groups that were not tested but made of all answers
FEW = 20  # answers of a worker below which the lapse of all others counts

CANNOT_TELL, CONTINUUM = "cannot tell", "no clusters: a continuum"


class CandidateTests(NamedTuple):
    """Every number of groups that was looked at."""

    k: np.ndarray  # (t,) int64
    crowding: np.ndarray  # (t,) of the borders between the groups: 1 as in a continuum, 0 nobody near
    p: np.ndarray  # (t,) against a continuum, corrected for the choice


class Verdict(NamedTuple):
    """What is said, and what it rests on; NaN and None where something was not looked at."""

    said: str  # "k clusters", CONTINUUM, CANNOT_TELL or "not tested: ..."
    note: str  # a sentence for people
    p_coins: float = float("nan")
    p_continuum: float = float("nan")
    k: int | None = None  # the number of groups that is clearest
    crowding: float | None = None  # of the borders between them
    model: str | None = None  # of answers, under which p is largest
    dimensions: int | None = None
    answers: int = 0
    drawn: int = 0  # from it
    tested: CandidateTests | None = None
    labels: np.ndarray | None = None  # (m,) the groups, over the objects that were tested, where they are clusters
    replicates: Replicates | None = None  # of these groups
    k_replicates: tuple[int, ...] = ()  # the clearest number of groups in each

    @property
    def clusters(self) -> bool:
        """Whether it says that there are clusters."""
        return self.labels is not None

    def arrays(self) -> dict[str, np.ndarray]:
        """For an artifact."""
        crowding = float("nan") if self.crowding is None else self.crowding
        figures = {"p_coins": self.p_coins, "p_continuum": self.p_continuum, "crowding": crowding}
        tested = {} if self.tested is None else {f"tested_{name}": a for name, a in self.tested._asdict().items()}
        return {name: np.array(value) for name, value in figures.items()} | tested

    def report(self) -> dict[str, Any]:
        """For an artifact's report."""
        names = ("p_coins", "p_continuum", "crowding", "model", "dimensions", "answers", "drawn")
        figures = {name: getattr(self, name) for name in names} | {"clearest": self.k}
        figures = {name: None if value != value else value for name, value in figures.items()}
        return {"verdict": self.said, "verdict_test": figures | {"k_replicates": list(self.k_replicates)}}


def not_tested(why: str) -> Verdict:
    """No verdict, and why."""
    return Verdict(f"not tested: {why}", f"clusters were not tested against a continuum: {why}")


def verdict(snapshot: Snapshot, ids: np.ndarray, draws: int, splits: int, seed: int) -> Verdict:
    """About the objects `ids`: by so many draws of each null model, and so many splits into halves. Deterministic by
    seed."""
    if len(ids) < LEAST:
        return Verdict(
            CANNOT_TELL,
            f"cannot tell whether there are clusters: there are {len(ids)} objects, at least {LEAST} are needed",
        )
    rng = np.random.default_rng([seed, 104_729])
    known = observed_answers(snapshot, ids, seed, rng)
    if not len(known.rows):
        return not_tested("the counts of triplets or judgements are not kept")
    return decide(rng, known, draws, splits)


def decide(rng: np.random.Generator, known: AnswerSet, draws: int, splits: int) -> Verdict:
    """The verdict about answers."""
    heard = Verdict("", "", answers=int(known.times.sum()), drawn=draws)
    heard = heard._replace(p_coins=p_coins(rng, known, draws))
    if heard.p_coins > LEVEL:
        why = f"{heard.answers:,} random answers would give equally clear groups ({_p(heard.p_coins)})"
        return heard._replace(said=CANNOT_TELL, note=f"cannot tell whether there are clusters: {why}")
    d = _dimensions(rng, known)
    found = _fitted(known, d, None)
    heard = heard._replace(dimensions=d)
    if not found.points.any():
        note = "cannot tell whether there are clusters: the answers determine no coordinates"
        return heard._replace(said=CANNOT_TELL, note=note)
    return _against_a_continuum(rng, known, found, heard, splits)


def p_coins(rng: np.random.Generator, known: AnswerSet, draws: int) -> float:
    """How often coins give a leading eigenvalue at least as large. O(q) and an eigenvalue a draw."""
    observed = _leading(known, known.near)
    drawn, above = 0, 0
    while drawn < draws and above < ENOUGH:
        above += bool(_leading(known, drawn_answers.by_coins(rng, known)) >= observed)
        drawn += 1
    return (1 + above) / (drawn + 1)


def p_value(above: np.ndarray, drawn: int) -> np.ndarray:
    """(t,) p where `above` (t,) of so many draws are at least as clear, and drawing ended after `FIRST` if none was.

    The rank of what was observed is even under the null model. p is the chance of that early end, or else of a rank
    as good:   1 / (FIRST + 1) + sum_{a <= above} (1 - C(drawn - FIRST, a) / C(drawn, a)) / (drawn + 1).

    >>> [float(p_value(np.array([above]), drawn)[0].round(4)) for above, drawn in ((0, 39), (1, 39), (3, 99))]
    [0.025, 0.05, 0.0431]
    """
    if drawn <= FIRST:
        return (1 + above) / (drawn + 1)
    ranks = np.arange(drawn)
    late = np.concatenate([[1.0], np.cumprod(np.maximum(drawn - FIRST - ranks, 0) / (drawn - ranks))])
    return (1 / (FIRST + 1) + np.cumsum(1 - late) / (drawn + 1))[above]


def clearer(drawn: np.ndarray, looseness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(t,) how much clearer than in the mean of the draws (B, t) and of itself each number of groups (t,) is, and how
    many draws have some number of groups that is at least as clear. What was observed has a part in the mean like every
    draw: under the null model all are then alike, and p is exact.

    >>> gain, above = clearer(np.array([[0.0, 0.0], [0.1, -0.1], [-0.1, 0.1]]), np.array([-1.0, 0.0]))
    >>> gain.tolist(), above.tolist()
    ([0.75, 0.0], [0, 2])
    """
    every = np.concatenate([drawn, looseness[None]])
    gain = every.mean(axis=0) - every
    return gain[-1], (gain[:-1].max(axis=1)[:, None] >= gain[-1]).sum(axis=0)


def _against_a_continuum(
    rng: np.random.Generator, known: AnswerSet, found: Embedding, heard: Verdict, splits: int
) -> Verdict:
    ks = tuple(range(2, known.n_objects // A_GROUP + 1))
    seen = borders.cuts(found.points, _and_next(ks))
    looseness, near = borders.looseness(seen), borders.neighbours(rng, found.points, ks)
    lapse = found.lapse[_who(known)]
    yes, no = known.counted(known.near)
    d, made, gains, p = found.points.shape[1], {}, np.full(len(ks), np.inf), np.zeros(len(ks))

    def again(positions: np.ndarray, model: str) -> np.ndarray:
        """(t,) how loose groups of points are that are fitted to answers from positions."""
        delta = scales[model] * drawn_answers.differences(model, positions, known.rows)
        answers = drawn_answers.by_positions(rng, known, delta, lapse, model)
        points = _fitted(known._replace(near=answers), d, positions).points
        return borders.looseness(borders.cuts(points, _and_next(ks)))

    scales = {}
    for model in drawn_answers.MODELS:
        delta = drawn_answers.differences(model, found.points, known.rows)
        scales[model] = drawn_answers.scale(model, delta, yes, no, lapse)
    for model in drawn_answers.MODELS:
        drawn = np.empty((0, len(ks)))
        while len(drawn) < heard.drawn:
            drawn = np.concatenate([drawn, again(borders.draw(rng, known.n_objects, found.points, near), model)[None]])
            gain, above = clearer(drawn, looseness)
            if (len(drawn) >= PILOT and above.min() >= ENOUGH) or (len(drawn) == FIRST and not above.min()):
                break
        made[model], gains = drawn, np.minimum(gains, gain)
        one = p_value(above, len(drawn))
        if one.min() > p.min():
            heard = heard._replace(model=model, drawn=len(drawn))
        p = np.maximum(p, one)
        if one.min() > LEVEL:  # no other model can make it significant
            break
    at = int(gains.argmax())
    crowding = np.array([cut.crowding for cut in seen[:-1]])
    heard = heard._replace(
        p_continuum=float(p[at]),
        k=ks[at],
        crowding=float(crowding[at]),
        tested=CandidateTests(np.array(ks), crowding, p),
    )
    if heard.p_continuum <= LEVEL:
        means = np.min([drawn.mean(axis=0) for drawn in made.values()], axis=0)
        return _clusters(rng, known, found, heard, seen[at].labels, means, splits)
    drawn = made[heard.model or drawn_answers.MODELS[0]]
    limit = np.quantile((drawn.mean(axis=0) - drawn).max(axis=1), 1 - LEVEL)
    tight = _tighter(found.points, seen[at].labels)
    told = sum((drawn.mean(axis=0) - again(tight, drawn_answers.MODELS[0])).max() > limit for _ in range(MADE))
    return _no_clusters(heard, seen_anyway=2 * told >= MADE)


def _and_next(ks: tuple[int, ...]) -> tuple[int, ...]:
    """One more number, by which the last is judged."""
    return *ks, ks[-1] + 1


def _clusters(
    rng: np.random.Generator,
    known: AnswerSet,
    found: Embedding,
    heard: Verdict,
    labels: np.ndarray,
    means: np.ndarray,
    splits: int,
) -> Verdict:
    """Clusters, with what random halves of the responses say of them; `means` (t,) of looseness in a continuum."""
    ks, k = tuple(heard.tested.k.tolist()), heard.k  # type: ignore[union-attr]  # tested
    pairs, numbers = [], []
    for _ in range(splits):
        pair = []
        for half in drawn_answers.halved(rng, known):
            cuts = borders.cuts(_fitted(half, found.points.shape[1], None).points, _and_next(ks))
            numbers.append(ks[int((means - borders.looseness(cuts)).argmax())])
            pair.append(cuts[ks.index(k)].labels)
        pairs.append((pair[0], pair[1]))
    heard = heard._replace(
        said=f"{k} clusters",
        labels=labels,
        replicates=Replicates.of(labels, pairs) if pairs else None,
        k_replicates=tuple(numbers),
    )
    return heard._replace(note=_told(heard))


def _told(heard: Verdict) -> str:
    """The sentence about clusters."""
    p = f"{_p(heard.p_continuum)} against a continuum, corrected for the choice among 2 to {heard.tested.k[-1]}"  # type: ignore[union-attr]
    return f"{heard.said} ({p}){_borderline(heard)}"


def _borderline(heard: Verdict) -> str:
    """What is added where the 95 % interval of p, which is counted in simulations, includes `LEVEL`; not where
    none of them was as clear."""
    p, drawn = heard.p_continuum, heard.drawn
    unsure = p > 1.5 / (drawn + 1) and abs(p - LEVEL) < 1.96 * np.sqrt(p * (1 - p) / drawn)
    return (
        f"; this is borderline: p is known from {drawn} simulations, and another seed may decide otherwise"
        if unsure
        else ""
    )


def _p(p: float) -> str:
    """A p-value in APA style."""
    return "p = " + f"{p:.2g}".removeprefix("0")


def _no_clusters(heard: Verdict, seen_anyway: bool) -> Verdict:
    """A continuum, or cannot tell where so few answers would not have shown clear clusters either."""
    p = _p(heard.p_continuum)
    if not seen_anyway:
        why = f"{heard.answers:,} answers are too few to show even clear clusters ({p})"
        return heard._replace(said=CANNOT_TELL, note=f"cannot tell clusters from a continuum: {why}")
    note = f"no clusters detected: the answers are compatible with a continuum ({p}); the groups are parts of it"
    note += _borderline(heard)
    return heard._replace(said=CONTINUUM, note=note)


def observed_answers(
    snapshot: Snapshot, ids: np.ndarray, seed: int, rng: np.random.Generator, most: int | None = None
) -> AnswerSet:
    """The answers about these objects alone, renumbered; at most about `most` (`MOST`), in whole judgements."""
    kept = evidence(snapshot, seed, True)
    number = np.full(len(snapshot.objects), -1)
    number[ids] = np.arange(len(ids))
    answers = kept.apart(kept.answers)
    answers = answers.of((number[answers.rows] >= 0).all(axis=1))
    if kept.units.by == "comparisons":  # repeats of a question are by themselves
        answers = answers._replace(unit=np.arange(len(answers.rows)))
    answers = _sample(rng, answers, MOST if most is None else most)
    each = np.bincount(answers.worker + 1, answers.times, 1 + answers.n_workers)
    worker = np.where(each[answers.worker + 1] < FEW, -1, answers.worker)
    return drawn_answers.answer_set(number[answers.rows], answers.times, worker, answers.unit, len(ids))


def halves(
    snapshot: Snapshot, ids: np.ndarray, splits: int, seed: int
) -> Iterator[tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]]:
    """`splits` times the answers about these objects in two halves, each as rows (m, 4) d(i, j) < d(k, l) and how often
    each was given; of at most about `MOST_HALVED` answers. Nothing where no counts are kept."""
    rng = np.random.default_rng([seed, 7919])
    known = observed_answers(snapshot, ids, seed, rng, MOST_HALVED)
    if not len(known.rows):
        return
    rows = known.rows[known.question]
    rows = _anchored(np.where((known.near > 0)[:, None], rows, rows[:, [2, 3, 0, 1]]))
    for _ in range(splits):
        one, other = drawn_answers.halved(rng, known)
        yield (rows, one.times), (rows, other.times)


def _anchored(rows: np.ndarray) -> np.ndarray:
    """The same comparisons, an object that both pairs share first in each."""
    i, j, k, l = rows.T
    turned = np.where(((j == k) | (j == l))[:, None], rows[:, [1, 0, 2, 3]], rows)
    return np.where((turned[:, 0] == turned[:, 3])[:, None], turned[:, [0, 1, 3, 2]], turned)


def _sample(rng: np.random.Generator, answers: Answers, most: int) -> Answers:
    """Whole judgements with `most` answers, or all."""
    if answers.times.sum() <= most:
        return answers
    _, unit = np.unique(answers.unit, return_inverse=True)
    size = np.bincount(unit.reshape(-1), answers.times)
    order = rng.permutation(len(size))
    taken = np.zeros(len(size), bool)
    taken[order[np.cumsum(size[order]) <= most]] = True
    return answers.of(taken[unit.reshape(-1)])


def _leading(known: AnswerSet, near: np.ndarray) -> float:
    """The leading eigenvalue of AddS, centred."""
    yes, no = known.counted(near)
    n, (i, j, k, l) = known.n_objects, known.rows.astype(np.int64).T
    above = np.bincount(np.concatenate([i * n + j, k * n + l]), np.concatenate([yes - no, no - yes]), n * n)
    return leading(above.reshape(n, n) + above.reshape(n, n).T)


def _who(known: AnswerSet) -> np.ndarray:
    return known.worker + 1


def _fitted(known: AnswerSet, d: int, start: np.ndarray | None) -> Embedding:
    """The embedding of answers; `start`: where objects are already known to be about."""
    workers = 2 + int(known.worker.max(initial=-1))
    questions = Questions(known.rows, *known.counted(known.near), _who(known), known.n_objects, workers)
    return fit(questions, d, RIDGE, start=start, tolerance=LOOSE if start is None else AGAIN)


def _dimensions(rng: np.random.Generator, known: AnswerSet) -> int:
    """The number of dimensions that predicts held-out responses best; more must gain a standard error, and `GAIN`."""
    unit = np.where(known.judgement < 0, np.arange(len(known.judgement)), len(known.judgement) + known.judgement)
    names, unit = np.unique(unit, return_inverse=True)
    out = (rng.random(len(names)) < HELD_OUT)[unit.reshape(-1)]
    if not out.any() or out.all():
        return 1
    rest = known._replace(near=np.where(out, 0.0, known.near), times=np.where(out, 0.0, known.times))
    rows, worker = known.rows[known.question[out]], _who(known)[known.question[out]]
    yes, times = known.near[out], known.times[out]
    best, losses = 1, np.zeros(0)
    for d in DIMENSIONS:
        if d > known.n_objects - 1:
            break
        found = _fitted(rest, d, None)
        p = np.clip(probability(margins(found.points, rows), found.lapse[worker]), 1e-9, 1 - 1e-9)
        loss = -(yes * np.log(p) + (times - yes) * np.log(1 - p))
        gain = losses - loss if len(losses) else loss
        if d == 1:
            losses = loss
            continue
        if gain.mean() > max(GAIN * times.mean(), gain.std() / np.sqrt(len(gain))):
            best, losses = d, loss
    return best


def _tighter(points: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The points drawn towards the centres of their groups."""
    centres = np.stack([points[labels == each].mean(axis=0) for each in range(int(labels.max()) + 1)])
    return centres[labels] + TIGHTER * (points - centres[labels])
