"""Generated batches of comparisons, small enough that repeats, contradictions and cycles all occur.

Made-up answers for examples: judges look at points, and say which of two lies nearer to a third.
"""

from itertools import pairwise

import numpy as np

from stream_engine.data.comparisons import Batch, Kinds, Provenance, canonical_quadruplet

WORKERS, SAMPLERS = ("u", "v", "w", "x"), ("random", "uncertain")
WEIGHTS = (0.0, 0.25, 1.0, 3.7)
PATTERN = ("seconds", "shown", "position")
OF_EVENTS = ("kind", "worker", "weight", "time", "sampler", *PATTERN)


def dense_batch(rng: np.random.Generator, n_objects: int = 5, size: int = 60, quadruplets: float = 0.3) -> Batch:
    """Random comparisons over so few objects that repeats, contradictions and cycles all occur."""
    triplets: list[np.ndarray] = []
    quads, at = [], []
    for _ in range(size):
        if n_objects >= 4 and rng.random() < quadruplets:
            i, j, k, l = (int(x) for x in rng.choice(n_objects, 4, replace=False))
            quads.append(canonical_quadruplet(i, j, k, l))
            at.append(len(triplets))
        else:
            triplets.append(rng.choice(n_objects, 3, replace=False))
    return Batch(
        np.array(triplets, np.int32).reshape(-1, 3),
        np.array(quads, np.int32).reshape(-1, 4),
        np.array(at, np.int64),
        n_objects,
    )


def with_provenance(
    rng: np.random.Generator, batch: Batch, workers: tuple[str, ...] = WORKERS, untimed: float = 0.1
) -> Batch:
    """The batch with an event for each comparison: who answered (or nobody), when (out of order, or never), its weight
    and how the question was chosen."""
    m, q = len(batch.triplets), len(batch.quadruplets)
    return batch._replace(provenance=_provenance(rng, np.arange(m), np.arange(m, m + q), m + q, workers, untimed))


def _provenance(
    rng: np.random.Generator,
    of_triplet: np.ndarray,
    of_quadruplet: np.ndarray,
    events: int,
    workers: tuple[str, ...] = WORKERS,
    untimed: float = 0.1,
) -> Provenance:
    time = rng.uniform(0, 40, events).round(1)
    time[rng.random(events) < untimed] = np.nan
    used = [str(name) for name in rng.permutation(workers)]
    kind = np.zeros(events, np.int8)
    kind[of_quadruplet] = 1
    shown = rng.choice([0, 2, 3], events).astype(np.int32)
    return Provenance(
        of_triplet.astype(np.int32),
        of_quadruplet.astype(np.int32),
        kind,
        rng.integers(-1, len(used), events).astype(np.int32),
        used,
        rng.choice(WEIGHTS, events),
        time,
        rng.integers(-1, len(used), 3).astype(np.int32),
        rng.random(3) < 0.5,
        sampler=rng.integers(-1, len(SAMPLERS), events).astype(np.int32),
        samplers=SAMPLERS,
        seconds=np.where(rng.random(events) < 0.3, np.nan, rng.exponential(1.0, events)),
        shown=shown,
        position=(rng.integers(0, 6, events) % np.maximum(shown, 1)).astype(np.int32),
    )


def random_stream(rng: np.random.Generator) -> list[Batch]:
    """One to five batches with provenance, over ever more objects."""
    n, stream = 3, []
    for _ in range(rng.integers(1, 6)):
        n += int(rng.integers(0, 4))
        stream.append(with_provenance(rng, dense_batch(rng, n, int(rng.integers(0, 31)))))
    return stream


def stream_in_pieces(rng: np.random.Generator, smallest: int) -> tuple[Batch, list[Batch]]:
    """One batch of events, some of which have `smallest` triplets and more; and the same batch cut into pieces, also in
    the midst of such events: their first event then `continues` the one that the piece before ends with."""
    whole = dense_batch(rng, 6, int(rng.integers(1, 12)))
    order = np.argsort(np.concatenate([np.arange(len(whole.triplets)), whole.quadruplet_at - 0.5]), kind="stable")
    single = np.repeat([False, True], [len(whole.triplets), len(whole.quadruplets)])[order]
    sizes = np.where(single | (rng.random(len(order)) < 0.5), 1, rng.integers(smallest, smallest + 4, len(order)))
    event_of = np.repeat(np.arange(len(order)), sizes)  # of each comparison
    is_triplet = ~single[event_of]
    triplets = dense_batch(rng, 6, int(is_triplet.sum()), 0.0).triplets
    told = _provenance(rng, event_of[is_triplet], event_of[~is_triplet], len(order))
    before = np.cumsum(is_triplet) - is_triplet  # triplets before each comparison
    kinds = Kinds(told.of_triplet, told.of_quadruplet, told.kind)
    whole = Batch(triplets, whole.quadruplets, before[~is_triplet].astype(np.int64), 6, told, kinds)
    ends = np.unique(np.append(rng.integers(0, len(event_of) + 1, 4), [0, len(event_of)]))
    return whole, [_piece(whole, event_of, is_triplet, begin, end) for begin, end in pairwise(ends)]


def _piece(whole: Batch, event_of: np.ndarray, is_triplet: np.ndarray, begin: int, end: int) -> Batch:
    """The comparisons begin .. end - 1 of a batch, and the events that they are of."""
    first, last = int(event_of[begin]), int(event_of[end - 1])
    t = slice(int(is_triplet[:begin].sum()), int(is_triplet[:end].sum()))
    q = slice(int((~is_triplet[:begin]).sum()), int((~is_triplet[:end]).sum()))
    told, events = whole.provenance, slice(first, last + 1)
    assert told is not None
    continues = begin > 0 and int(event_of[begin - 1]) == first
    goes_on = end < len(event_of) and int(event_of[end]) == last
    of_triplet, of_quadruplet = told.of_triplet[t] - first, told.of_quadruplet[q] - first
    catches = slice(None if begin == 0 else 0)
    part = told._replace(
        of_triplet=of_triplet.astype(np.int32),
        of_quadruplet=of_quadruplet.astype(np.int32),
        **{name: getattr(told, name)[events] for name in OF_EVENTS},
        catch_worker=told.catch_worker[catches],
        catch_passed=told.catch_passed[catches],
        continues=continues,
    )
    kinds = Kinds(part.of_triplet, part.of_quadruplet, part.kind, continues, goes_on)
    at = whole.quadruplet_at[q] - t.start
    return Batch(whole.triplets[t], whole.quadruplets[q], at, whole.n_objects, part, kinds)


def concatenated(stream: list[Batch]) -> Batch:
    """Batches with provenance that follow each other, as one."""
    before = np.cumsum([0] + [len(batch.triplets) for batch in stream])
    workers: dict[str, int] = {}
    samplers: dict[str, int] = {}
    parts: list[list[np.ndarray]] = []
    events = 0
    for told in (batch.provenance for batch in stream):
        assert told is not None
        who = np.array([*(workers.setdefault(name, len(workers)) for name in told.workers), -1])
        how = np.array([*(samplers.setdefault(name, len(samplers)) for name in told.samplers), -1])
        parts.append(
            [
                told.of_triplet + events,
                told.of_quadruplet + events,
                told.kind,
                who[told.worker],
                told.weight,
                told.time,
                who[told.catch_worker],
                told.catch_passed,
                how[told.sampler],
                *(getattr(told, name) for name in PATTERN),
            ]
        )
        events += len(told.kind)
    columns = [np.concatenate(column) for column in zip(*parts)]
    of_triplet, of_quadruplet, kind, worker, weight, time, catch_worker, catch_passed, sampler, *pattern = columns
    return Batch(
        np.concatenate([batch.triplets for batch in stream]),
        np.concatenate([batch.quadruplets for batch in stream]),
        np.concatenate([batch.quadruplet_at + at for batch, at in zip(stream, before)]),
        max(batch.n_objects for batch in stream),
        Provenance(
            of_triplet.astype(np.int32),
            of_quadruplet.astype(np.int32),
            kind,
            worker.astype(np.int32),
            list(workers),
            weight,
            time,
            catch_worker.astype(np.int32),
            catch_passed,
            sampler=sampler.astype(np.int32),
            samplers=tuple(samplers),
            seconds=pattern[0],
            shown=pattern[1],
            position=pattern[2],
        ),
    )


def batch_of(batch: Batch, triplets: np.ndarray, quadruplets: np.ndarray) -> Batch:
    """Some comparisons of a batch with an event for each, in this order, triplets first; no catch trials."""
    told = batch.provenance
    assert told is not None
    events = np.concatenate([told.of_triplet[triplets], told.of_quadruplet[quadruplets]]).astype(np.int64)
    m, q = len(triplets), len(quadruplets)
    return Batch(
        batch.triplets[triplets],
        batch.quadruplets[quadruplets],
        np.full(q, m, np.int64),
        batch.n_objects,
        told._replace(
            of_triplet=np.arange(m, dtype=np.int32),
            of_quadruplet=np.arange(m, m + q, dtype=np.int32),
            **{name: getattr(told, name)[events] for name in OF_EVENTS if len(getattr(told, name))},
            catch_worker=told.catch_worker[:0],
            catch_passed=told.catch_passed[:0],
        ),
    )


def answers(points: np.ndarray, n: int, *, wrong: float = 0.1, seed: int = 0) -> np.ndarray:
    """(n, 3) triplets anchor, near, far of random questions about the rows of `points`, a share `wrong` turned round.

    >>> answers(np.array([[0.0], [1.0], [5.0]]), 2, wrong=0).tolist()
    [[2, 1, 0], [0, 1, 2]]
    """
    rng = np.random.default_rng(seed)
    triplets = rng.random((n, len(points))).argpartition(2, axis=1)[:, :3]
    return answered(points, rng.permuted(triplets, axis=1), wrong=wrong, rng=rng)


def answered(points: np.ndarray, questions: np.ndarray, *, wrong: float, rng: np.random.Generator) -> np.ndarray:
    """Questions (n, 3), anchor and two others, with the nearer one second but for a share `wrong`."""
    anchor, left, right = questions.T
    far = np.linalg.norm(points[anchor] - points[left], axis=1) > np.linalg.norm(points[anchor] - points[right], axis=1)
    turned = far ^ (rng.random(len(questions)) < wrong)
    return np.where(turned[:, None], questions[:, [0, 2, 1]], questions)


def right(p: object) -> float:
    """How many in 100 questions, each with the right answer first, are answered rightly by the probabilities `p`; one
    half for those of which nothing is known (missing).

    >>> right([0.9, 0.2, None])
    50.0
    """
    known = np.nan_to_num(np.array(p, float), nan=0.5)
    return float(100 * ((known > 0.5) + 0.5 * (known == 0.5)).mean())
