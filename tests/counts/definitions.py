"""What each accumulator's state should be, straight from the formula, slowly and in plain Python.

A function per registered name, `definition(kind, batch, **forgetting)`; a new accumulator adds its own to
`DEFINITIONS`, and the laws hold it against that.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from stream_engine.counts import ACCUMULATORS, Forgetting, accumulator
from stream_engine.counts.float_sums import KeySums, PairSums, _columns
from stream_engine.counts.judgement_kernels import ALL, OF_SAMPLER, OF_SIDES, OF_WORKER
from stream_engine.counts.judgement_states import NO_TIME
from stream_engine.counts.response_patterns import BOUNDS, SEQUENCE
from stream_engine.counts.worker_votes import TALLIES
from stream_engine.data.comparisons import Batch
from stream_engine.data.hashing import GOLDEN_GAMMA, mix64, name_hashes
from stream_engine.data.packed_names import pack_names
from stream_engine.data.triplet_columns import canonical_counts


def _entries(w: dict) -> dict[str, np.ndarray]:
    pairs = sorted(pair for pair in w if w[pair])
    return {
        "i": np.array([i for i, _ in pairs], np.int32),
        "j": np.array([j for _, j in pairs], np.int32),
        "w": np.array([w[pair] for pair in pairs], np.int64),
    }


def adds3(kind, batch, **forgetting):
    """W_ij by the formula, every i < j and every k."""
    seen, n = Counter(tuple(row) for row in batch.triplets.tolist()), batch.n_objects
    w = {
        (i, j): sum(seen[i, j, k] - seen[i, k, j] + seen[j, i, k] - seen[j, k, i] for k in range(n) if k not in (i, j))
        for i in range(n)
        for j in range(i + 1, n)
    }
    return _entries(w)


def adds4(kind, batch, **forgetting):
    """W_ij by the formula, every i < j and every k < l."""
    quadruplets = batch.quadruplets.tolist() + [(i, j, i, k) for i, j, k in batch.triplets.tolist()]
    seen = Counter((min(i, j), max(i, j), min(k, l), max(k, l)) for i, j, k, l in quadruplets)
    pairs = [(i, j) for i in range(batch.n_objects) for j in range(i + 1, batch.n_objects)]
    return _entries({p: sum(seen[*p, *q] - seen[*q, *p] for q in pairs) for p in pairs})


def triplet_counts(kind, batch, **forgetting):
    """#(anchor, lo, hi) and #(anchor, hi, lo) for every key with either, in plain Python."""
    seen = Counter(tuple(row) for row in batch.triplets.tolist())
    keys = sorted({(min(b, c), max(b, c), a) for a, b, c in seen})
    pairs = sorted({key[:2] for key in keys})
    sizes = Counter(key[:2] for key in keys)
    start = [0]
    for pair in pairs:
        start.append(start[-1] + sizes[pair])
    n_lo, n_hi = [seen[a, lo, hi] for lo, hi, a in keys], [seen[a, hi, lo] for lo, hi, a in keys]
    counts = canonical_counts(np.array(n_lo, np.int64), np.array(n_hi, np.int64))
    return {
        "lo": np.array([p[0] for p in pairs], np.int32),
        "hi": np.array([p[1] for p in pairs], np.int32),
        "start": np.array(start, np.int64),
        "anchor": np.array([key[2] for key in keys], np.int32),
        "n_lo": counts[0],
        "n_hi": counts[1],
    }


def quadruplet_counts(kind, batch, **forgetting):
    """#(i,j,k,l) and #(k,l,i,j) for every two pairs with either, in plain Python."""
    seen = Counter((tuple(sorted(row[:2])), tuple(sorted(row[2:]))) for row in batch.quadruplets.tolist())
    keys = sorted({tuple(sorted(key)) for key in seen})
    ids = np.array([p + q for p, q in keys], np.int32).reshape(-1, 4)
    counts = canonical_counts(
        np.array([seen[p, q] for p, q in keys], np.int64), np.array([seen[q, p] for p, q in keys], np.int64)
    )
    return dict(zip("ijkl", ids.T)) | dict(zip(("n_lo", "n_hi"), counts))


def _pair_sums(triplets: list, weight: list[float], n_objects: int):
    """W straight from the formula: every i < j, every comparison."""
    entries = []
    for i in range(n_objects):
        for j in range(i + 1, n_objects):
            w = sum(x * (({a, near} == {i, j}) - ({a, far} == {i, j})) for (a, near, far), x in zip(triplets, weight))
            if w:
                entries.append((i, j, w))
    return {
        "i": np.array([e[0] for e in entries], np.int32),
        "j": np.array([e[1] for e in entries], np.int32),
        "w": np.array([e[2] for e in entries], float),
        "squares": np.array(sum(x * x for x in weight), float),
    }


def _key_sums(triplets: list, weight: list[float], n_objects: int):
    """The weights of #(anchor, lo, hi) and #(anchor, hi, lo) for every key with either."""
    keys = sorted({(min(b, c), max(b, c), a) for a, b, c in triplets})
    values = [
        [sum(x for t, x in zip(triplets, weight) if tuple(t) == answer) for answer in ((a, lo, hi), (a, hi, lo))]
        for lo, hi, a in keys
    ]
    return _columns(np.array(keys, np.int32).reshape(-1, 3), np.array(values, float).reshape(-1, 2))


def weighted(kind, batch, **forgetting):
    """By the formula, comparison by comparison."""
    given = batch.provenance
    weight = [1.0 if given is None else float(given.weight[given.of_triplet[e]]) for e in range(len(batch.triplets))]
    return _SUMS[kind.SUMS](batch.triplets.tolist(), weight, batch.n_objects)


def decayed(kind, batch, half_life: float = 1e6, **forgetting):
    """By the formula, comparison by comparison."""
    dated, untimed, given = [], 0, batch.provenance
    for e, triplet in enumerate(batch.triplets.tolist()):
        t = e + 1.0
        if kind.BY_TIME:
            t = float("nan") if given is None else float(given.time[given.of_triplet[e]])
        if t == t:
            dated.append((triplet, t))
        else:
            untimed += 1
    newest = max((t for _, t in dated), default=-np.inf)
    weight = [2.0 ** (-(newest - t) / half_life) for _, t in dated]
    return {
        **_SUMS[kind.SUMS]([triplet for triplet, _ in dated], weight, batch.n_objects),
        "newest": np.array(newest),
        "untimed": np.array(untimed),
        "half_life": np.array(float(half_life)),
        "by_time": np.array(kind.BY_TIME),
    }


def worker_votes(kind, batch, **forgetting):
    """Every comparison by itself, in plain Python."""
    given = batch.provenance
    if given is None:
        answered_by = [""] * len(batch.triplets)
        tallies = [Counter({"": len(answered_by) + len(batch.quadruplets)}), Counter(), Counter()]
    else:
        names = [*given.workers, ""]
        answered_by = [names[given.worker[e]] for e in given.of_triplet]
        catches = list(zip([names[w] for w in given.catch_worker], given.catch_passed.tolist()))
        tallies = [
            Counter(names[w] for w in given.worker),
            *(Counter(w for w, p in catches if p is k) for k in (True, False)),
        ]
        for name in given.workers:
            tallies[0][name] += 0
    workers = sorted({name for tally in tallies for name in tally if tally[name] or name})
    votes = Counter(
        (min(b, c), max(b, c), a, workers.index(name), b < c)
        for (a, b, c), name in zip(batch.triplets.tolist(), answered_by)
    )
    keys = sorted({vote[:4] for vote in votes})
    n_lo, n_hi = canonical_counts(
        np.array([votes[*key, True] for key in keys], np.int64),
        np.array([votes[*key, False] for key in keys], np.int64),
    )
    rows = np.array(keys, np.int32).reshape(-1, 4)
    return {
        **{name: column.copy() for name, column in zip(("lo", "hi", "anchor", "worker"), rows.T)},
        "n_lo": n_lo,
        "n_hi": n_hi,
        **pack_names(workers),
        **{tally: np.array([tallies[t][name] for name in workers], np.int64) for t, tally in enumerate(TALLIES)},
    }


def response_patterns(kind, batch, **forgetting):
    """Every answer by itself, in plain Python."""
    given = batch.provenance
    counted, sequences = Counter(), {}
    for e in range(0 if given is None else len(given.shown)):
        name = given.workers[given.worker[e]] if given.worker[e] >= 0 else ""
        shown, position, seconds = int(given.shown[e]), int(given.position[e]), float(given.seconds[e])
        if name and seconds == seconds:
            counted[name, 0, sum(1000 * seconds + 1e-6 >= bound for bound in BOUNDS.tolist())] += 1
            sequences.setdefault(name, [])
        if name and shown > 1:
            counted[name, shown, position] += 1
            sequences.setdefault(name, []).append((shown, position))
    names = sorted(sequences)
    rows = sorted((names.index(name), *key, n) for (name, *key), n in counted.items())
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    told = []
    for name in names:
        runs, followed, changes = [0], 0, 0
        for n, each in enumerate(sequences[name]):
            before = sequences[name][n - 1] if n else None
            followed += n > 0 and before[0] == each[0]
            changes += n > 0 and before[0] == each[0] and before[1] != each[1]
            runs.append(runs[-1] + 1 if each == before else 1)
        told.append([*(sequences[name] or [(0, 0)])[-1], runs[-1], max(runs), followed, changes])
    return {
        **{name: column.astype(np.int32) for name, column in zip(("worker", "shown", "value"), columns)},
        "n": columns[3].copy(),
        **pack_names(names),
        **dict(zip(SEQUENCE, np.array(told, np.int64).reshape(-1, len(SEQUENCE)).T.copy())),
    }


def window(kind, batch, window: float = 1e6, **forgetting):
    """One triplet after the other, all of them looked at again each time."""
    held: list[tuple[float, list[int]]] = []
    newest, late, untimed, given = -np.inf, 0, 0, batch.provenance
    for e, triplet in enumerate(batch.triplets.tolist()):
        if not kind.BY_TIME:
            held = [*held, (float(e), triplet)][-int(window) :]
            continue
        t = float("nan") if given is None else float(given.time[given.of_triplet[e]])
        if t != t:
            untimed += 1
            continue
        newest = max(newest, t)
        late += t <= newest - window
        held = [(s, row) for s, row in [*held, (t, triplet)] if s > newest - window]
    if kind.BY_TIME:
        held.sort()
    return {
        "rows": np.array([row for _, row in held], np.int32).reshape(-1, 3),
        "time": np.array([t for t, _ in held] if kind.BY_TIME else [], float),
        "newest": np.array(newest),
        "late": np.array(late),
        "untimed": np.array(untimed),
        "window": np.array(float(window)),
        "by_time": np.array(kind.BY_TIME),
    }


def judgements(kind, batch, **forgetting):
    """Every judgement by itself, in plain Python; only the hash of a name is that of `name_hashes`."""
    lent = name_hashes([str(i) for i in range(batch.n_objects)]) if batch.name_hashes is None else batch.name_hashes
    names, larger, found = lent.tolist(), 0, Counter[tuple]()
    for rows, *said in _one_by_one(batch):
        if len(rows) > kind.most:
            larger += 1
        else:
            found[_hash_of(rows, said, names), len(rows), rows, *said] += 1
    below, held = ALL, 0
    for hashed in sorted({key[0] for key in found}):
        held += sum(size for h, size, *_ in found if h == hashed)
        if held > kind.bound:
            below = hashed
            break
    kept = sorted(key for key in found if key[0] < below)
    hashes, sizes, rows, workers, times, samplers = zip(*kept) if kept else ((),) * 6
    counts = np.array([found[key] for key in kept], np.int64)
    worker_names, sampler_names = (sorted({name for name in column if name}) for column in (workers, samplers))
    return {
        "hash": np.array(hashes, np.uint64),
        "size": np.array(sizes, np.int32),
        "times": counts.astype(np.int64 if (counts >= 2**30).any() else np.int32),
        "rows": np.array([row for each in rows for row in each], np.int32).reshape(-1, 4),
        "worker": np.array([worker_names.index(w) if w else -1 for w in workers if worker_names], np.int32),
        "sampler": np.array([sampler_names.index(s) if s else -1 for s in samplers if sampler_names], np.int32),
        "time": np.array([t for t in times if set(times) != {NO_TIME}], np.int64).view(np.float64),
        **{f"worker_{key}": array for key, array in pack_names(worker_names).items()},
        **{f"sampler_{key}": array for key, array in pack_names(sampler_names).items()},
        "below": np.array(below, np.uint64),
        "larger": np.array(larger, np.int64),
    }


def _one_by_one(batch: Batch) -> Iterator[tuple[tuple, str, int, str]]:
    """(comparisons, worker, bits of the time, sampler) of each judgement; "" where nobody is named."""
    told, kinds = batch.provenance, batch.kinds
    of = told if told is not None else kinds
    parts = (
        ([(a, b, a, c) for a, b, c in batch.triplets.tolist()], None if of is None else of.of_triplet.tolist()),
        ([tuple(row) for row in batch.quadruplets.tolist()], None if of is None else of.of_quadruplet.tolist()),
    )
    for rows, event_of in parts:
        events: dict[int, list[tuple]] = {}
        for number, row in enumerate(rows):
            events.setdefault(number if event_of is None else event_of[number], []).append(row)
        for event, judged in events.items():
            worker, time, sampler = "", NO_TIME, ""
            if told is not None:
                worker = [*told.workers, ""][told.worker[event]]
                time = NO_TIME if np.isnan(told.time[event]) else int(np.float64(told.time[event] + 0.0).view(np.int64))
                sampler = [*told.samplers, ""][told.sampler[event]] if len(told.sampler) else ""
            yield tuple(judged), worker, time, sampler


def _hash_of(rows: Sequence[tuple[int, ...]], said: Sequence[Any], names: Sequence[int]) -> int:
    """The hash of a judgement: the formula in `judgement_kernels`."""
    worker, time, sampler = said
    h = int(OF_WORKER) * int(name_hashes([worker])[0]) if worker else 0
    h += _mixed(time % 2**64 + GOLDEN_GAMMA) if time != NO_TIME else 0
    h += int(OF_SAMPLER) * int(name_hashes([sampler])[0]) if sampler else 0
    a, b, c, d = map(int, OF_SIDES)
    for i, j, k, l in rows:
        h += a * names[i] + b * names[j] + (c * names[l] if i == k else c * names[k] + d * names[l])
        h = _mixed(h)
    return min(h, ALL - 1)


def _mixed(x: int) -> int:
    return int(mix64(np.array([x % 2**64], np.uint64))[0])


_SUMS = {PairSums: _pair_sums, KeySums: _key_sums}
DEFINITIONS = {
    "adds3": adds3,
    "adds4": adds4,
    "triplet_counts": triplet_counts,
    "quadruplet_counts": quadruplet_counts,
    "adds3_weighted": weighted,
    "triplet_counts_weighted": weighted,
    "adds3_decayed": decayed,
    "triplet_counts_decayed": decayed,
    "worker_votes": worker_votes,
    "window": window,
    "judgements": judgements,
    "response_patterns": response_patterns,
}


def definition(kind: type, batch: Batch, **forgetting: float) -> dict[str, np.ndarray]:
    """The state that an accumulator of this class, or of one derived from it, should have after one batch."""
    for name in ACCUMULATORS:
        for by in ("count", "time"):
            if issubclass(kind, accumulator(name, Forgetting(by))):
                return DEFINITIONS[name](kind, batch, **forgetting)
    raise LookupError(f"{kind}: no definition")
