"""Clusters, a continuum, or cannot tell? Two null models of the answers, both with the questions as they were asked.

Coins: every judgement is chance; the statistic is the leading eigenvalue of AddS. A continuum: positions from one cloud
that looks, embedded, like the embedding of the answers (`clustering.continuum`), and answers from its noise and lapses;
the statistic is how clear groups of embedded points are, by crowded borders times the variance within
(`clustering.borders`), each number of groups standardised, the clearest taken. What is clearer by a twentieth
(`MARGIN`) proves nothing: people's continua have many shapes.
p = (1 + #) / (B + 1), # of B draws at least as extreme; drawing ends early once # is `ENOUGH`, which is never
significant (Besag & Clifford 1991). See docs/design/clustering.md.

Everything is embedded anew, by STE with one ridge, observed and drawn answers alike. O((B + 40) q d iterations).
"""

from typing import Any, NamedTuple

import numpy as np

from stream_engine.clustering import borders, continuum, drawn_answers
from stream_engine.clustering.drawn_answers import Asked
from stream_engine.clustering.evidence import LEAST, leading
from stream_engine.embedding.evidence import evidence
from stream_engine.embedding.fit import LOOSE, Embedding, fit
from stream_engine.embedding.gradient import margins, probability
from stream_engine.embedding.held_out import Answers
from stream_engine.embedding.questions import Questions
from stream_engine.state.snapshot import Snapshot

LEVEL = 0.05
ENOUGH = 10  # draws at least as large, after which drawing ends
PILOT = 20  # draws before any are counted
MADE = 10  # draws of clear clusters that say whether a continuum would have been told from them
MARGIN, DOUBT = 0.05, 0.3  # how much clearer the groups of a continuum may be; above which nobody can tell
TIGHTER = 1 / 3  # within-group deviations of those, in terms of the observed ones
RIDGE = 0.3
DIMENSIONS = (1, 2, 3, 5)
HELD_OUT, GAIN = 0.2, 1e-3  # of the judgements to choose the dimensions by; nats an answer that more must gain
GROUPS = (2, 3, 4, 5, 6)  # numbers of groups that are looked at
MOST = 20_000  # answers; of more, a sample of judgements
FEW = 20  # answers of a worker below which the lapse of all others counts

CANNOT_TELL, CONTINUUM = "cannot tell", "no clusters: a continuum"


class Verdict(NamedTuple):
    """What is said, and what it rests on; NaN and None where something was not looked at."""

    said: str  # "k clusters", CONTINUUM, CANNOT_TELL or "not tested: ..."
    note: str  # a sentence for people
    p_coins: float = float("nan")
    p_continuum: float = float("nan")
    clearest: int | None = None  # the number of groups whose borders stood out most; no estimate of how many there are
    crowding: float | None = None  # of these borders, 1: as in a continuum, 0: nobody near
    dimensions: int | None = None
    answers: int = 0
    drawn: int = 0

    def arrays(self) -> dict[str, np.ndarray]:
        """For an artifact."""
        crowding = float("nan") if self.crowding is None else self.crowding
        figures = {"p_coins": self.p_coins, "p_continuum": self.p_continuum, "crowding": crowding}
        return {name: np.array(value) for name, value in figures.items()}

    def report(self) -> dict[str, Any]:
        """For an artifact's report."""
        figures = {name: None if value != value else value for name, value in self._asdict().items()}
        said = figures.pop("said")
        del figures["note"]
        return {"verdict": said, "verdict_test": figures}


def not_tested(why: str) -> Verdict:
    """No verdict, and why."""
    return Verdict(f"not tested: {why}", f"whether there are clusters at all was not tested: {why}")


def verdict(snapshot: Snapshot, ids: np.ndarray, k: int, replicates: int, seed: int) -> Verdict:
    """About `ids`, the objects that were put into k clusters. Deterministic by seed."""
    if len(ids) < LEAST:
        return Verdict(CANNOT_TELL, f"cannot tell whether there are clusters: {len(ids)} objects, {LEAST} are needed")
    rng = np.random.default_rng([seed, 104_729])
    known = _asked(snapshot, ids, seed, rng)
    if not len(known.rows):
        return not_tested("the counts of triplets or judgements are not kept")
    heard = Verdict("", "", answers=int(known.times.sum()), drawn=replicates)
    heard = heard._replace(p_coins=p_coins(rng, known, replicates))
    if heard.p_coins > LEVEL:
        why = f"{heard.answers:,} answers at random would give groups as clear (p = {heard.p_coins:.2g})"
        return heard._replace(said=CANNOT_TELL, note=f"cannot tell whether there are clusters: {why}")
    return _against_a_continuum(rng, known, k, heard)


def p_coins(rng: np.random.Generator, known: Asked, replicates: int) -> float:
    """How often coins give a leading eigenvalue at least as large. O(q) and an eigenvalue a draw."""
    observed = _leading(known, known.near)
    drawn, above = 0, 0
    while drawn < replicates and above < ENOUGH:
        above += bool(_leading(known, drawn_answers.by_coins(rng, known)) >= observed)
        drawn += 1
    return (1 + above) / (drawn + 1)


def _clearer(drawn: np.ndarray, looseness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far groups are clearer than in the mean continuum, at the number of groups where that is most, in standard
    deviations: (B,) of each draw of `drawn` (B, ks), and (m,) of each row of `looseness` (m, ks)."""
    mean, deviation = drawn.mean(axis=0), np.maximum(drawn.std(axis=0), 1e-9)
    return ((mean - drawn) / deviation).max(axis=1), ((mean - looseness) / deviation).max(axis=1)


def _as_clear(drawn: np.ndarray, looseness: np.ndarray) -> int:
    """How many draws are at least as clear. What was observed has a part in mean and deviation like every draw: under
    the null model all are then alike, and p is exact."""
    top, _ = _clearer(np.concatenate([drawn, looseness[None]]), looseness[None])
    return int((top[:-1] >= top[-1]).sum())


def _against_a_continuum(rng: np.random.Generator, known: Asked, k: int, heard: Verdict) -> Verdict:
    d = _dimensions(rng, known)
    found = _fitted(known, known.near, d)
    n, ks = known.n_objects, tuple(each for each in GROUPS if each <= known.n_objects // 3)
    if not found.points.any():
        note = "cannot tell whether there are clusters: the answers place the objects nowhere"
        return heard._replace(said=CANNOT_TELL, note=note, dimensions=d)

    def again(positions: np.ndarray) -> np.ndarray:
        delta, lapse = margins(positions, known.rows), found.lapse[_who(known)]
        return _fitted(known, drawn_answers.by_positions(rng, known, delta, lapse), d).points

    cloud = continuum.matched(rng, found.points, again)
    seen, margin = borders.looseness(found.points, ks), -np.log1p(-MARGIN)
    drawn, crowding, above = np.empty((0, len(ks))), np.zeros(len(ks)), 0
    while len(drawn) < heard.drawn and above < ENOUGH:
        points = again(continuum.draw(rng, n, cloud))
        drawn = np.concatenate([drawn, borders.looseness(points, ks)[None]])
        crowding += borders.crowding(points, ks)
        above = _as_clear(drawn, seen + margin) if len(drawn) >= min(PILOT, heard.drawn) else 0
    p = (1 + above) / (len(drawn) + 1)
    standing = (drawn.mean(axis=0) - seen) / np.maximum(drawn.std(axis=0), 1e-9)
    at = int(standing.argmax())
    ratio = float(borders.crowding(found.points, ks)[at] * len(drawn) / crowding[at])
    heard = heard._replace(dimensions=d, p_continuum=p, clearest=ks[at], crowding=ratio, drawn=len(drawn))
    if p <= LEVEL:
        return _clusters(heard, k)
    limit = float(np.quantile(_clearer(drawn, drawn)[0], 1 - LEVEL))
    if drawn.mean(axis=0)[at] - seen[at] > -np.log1p(-DOUBT) and standing.max() > limit:
        return _no_clusters(heard, "groups are clearer than in a continuum, but not by enough")
    clear = _tighter(found.points * cloud.spread[0] / continuum.shape_of(found.points).spread[0], ks[at])
    made = np.array([borders.looseness(again(clear), ks) for _ in range(MADE)])
    told = int((_clearer(drawn, made + margin)[1] > limit).sum())
    return _no_clusters(
        heard, "" if 2 * told >= MADE else f"{heard.answers:,} answers would not show even clear clusters"
    )


def _clusters(heard: Verdict, k: int) -> Verdict:
    p = f"p = {heard.p_continuum:.2g}"
    if k < 2:
        note = f"cannot tell: borders between groups are emptier than in a continuum ({p}), but one cluster was found"
        return heard._replace(said=CANNOT_TELL, note=note)
    note = f"{k} clusters: no continuum leaves such gaps between groups ({p})"
    return heard._replace(said=f"{k} clusters", note=note)


def _no_clusters(heard: Verdict, doubt: str) -> Verdict:
    """A continuum, or cannot tell, for a reason."""
    p = f"p = {heard.p_continuum:.2g}"
    if doubt:
        return heard._replace(said=CANNOT_TELL, note=f"cannot tell clusters from a continuum: {doubt} ({p})")
    note = f"no clusters: the answers cannot be told from those of a continuum ({p}); the groups are pieces of it"
    return heard._replace(said=CONTINUUM, note=note)


def _asked(snapshot: Snapshot, ids: np.ndarray, seed: int, rng: np.random.Generator) -> Asked:
    """The answers about these objects alone, renumbered; at most about `MOST`, in whole judgements."""
    kept = evidence(snapshot, seed, True, 0.0, 0.0)
    number = np.full(len(snapshot.objects), -1)
    number[ids] = np.arange(len(ids))
    answers = kept.apart(kept.answers)
    answers = answers.of((number[answers.rows] >= 0).all(axis=1))
    if kept.units.by == "comparisons":  # repeats of a question are by themselves
        answers = answers._replace(unit=np.arange(len(answers.rows)))
    answers = _sample(rng, answers)
    each = np.bincount(answers.worker + 1, answers.times, 1 + answers.n_workers)
    worker = np.where(each[answers.worker + 1] < FEW, -1, answers.worker)
    return drawn_answers.asked(number[answers.rows], answers.times, worker, answers.unit, len(ids))


def _sample(rng: np.random.Generator, answers: Answers) -> Answers:
    """Whole judgements with `MOST` answers, or all."""
    if answers.times.sum() <= MOST:
        return answers
    _, unit = np.unique(answers.unit, return_inverse=True)
    size = np.bincount(unit.reshape(-1), answers.times)
    order = rng.permutation(len(size))
    taken = np.zeros(len(size), bool)
    taken[order[np.cumsum(size[order]) <= MOST]] = True
    return answers.of(taken[unit.reshape(-1)])


def _leading(known: Asked, near: np.ndarray) -> float:
    """The leading eigenvalue of AddS, centred."""
    yes, no = known.counted(near)
    n, (i, j, k, l) = known.n_objects, known.rows.astype(np.int64).T
    above = np.bincount(np.concatenate([i * n + j, k * n + l]), np.concatenate([yes - no, no - yes]), n * n)
    return leading(above.reshape(n, n) + above.reshape(n, n).T)


def _who(known: Asked) -> np.ndarray:
    return known.worker + 1


def _questions(known: Asked, near: np.ndarray) -> Questions:
    workers = 1 + int(known.worker.max(initial=-1)) + 1
    return Questions(known.rows, *known.counted(near), _who(known), known.n_objects, workers)


def _fitted(known: Asked, near: np.ndarray, d: int) -> Embedding:
    return fit(_questions(known, near), d, RIDGE, tolerance=LOOSE)


def _dimensions(rng: np.random.Generator, known: Asked) -> int:
    """The number of dimensions that foretells held-out judgements best; more must gain a standard error, and `GAIN`."""
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
        found = _fitted(rest, rest.near, d)
        p = np.clip(probability(margins(found.points, rows), found.lapse[worker]), 1e-9, 1 - 1e-9)
        loss = -(yes * np.log(p) + (times - yes) * np.log(1 - p))
        gain = losses - loss if len(losses) else loss
        if d == 1:
            losses = loss
            continue
        if gain.mean() > max(GAIN * times.mean(), gain.std() / np.sqrt(len(gain))):
            best, losses = d, loss
    return best


def _tighter(points: np.ndarray, k: int) -> np.ndarray:
    """The points drawn towards the centres of their k groups."""
    (labels,) = borders.partitions(points, (k,))
    centres = np.stack([points[labels == each].mean(axis=0) for each in range(int(labels.max()) + 1)])
    return centres[labels] + TIGHTER * (points - centres[labels])
