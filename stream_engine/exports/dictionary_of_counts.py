"""The dictionary of exports that are counted: objects, similarities, questions, the partial order, workers."""

from collections.abc import Mapping

from stream_engine.exports.dictionary_entries import Entries, Held, figure, held, ids_of
from stream_engine.statistics.weighted_counts import HOWS

_KEY = {
    "anchor": ids_of("t", "what the two others are compared with", ""),
    "lo": ids_of("t", "of the two others the one with the lower id", ""),
    "hi": ids_of("t", "the other", ""),
}
_TIMES = {
    "n_lo": held("t", "iuf", "how often lo was nearer", ""),
    "n_hi": held("t", "iuf", "how often hi was nearer", ""),
}


def _similarity(of: str) -> dict[str, Held]:
    return {
        "W": held("n, n", "iuf", f"{of}: symmetric, larger for more alike", ""),
        "i": ids_of("p", "above 4,096 objects, the entries that are not zero: the one object", ""),
        "j": ids_of("p", "the other object, i < j", ""),
        "w": held("p", "iuf", "the entry", ""),
    }


def _kernel(of: str) -> dict[str, Held]:
    return {
        "K": held("n, n", "f", of, ""),
        "data": held("z", "f", "above 16,384 objects, a factor with K = FF', as a CSC matrix: its values", ""),
        "indices": ids_of("z", "the object (row) of each value", ""),
        "indptr": held("c", "iu", "where each column begins"),
        "shape": figure("rows and columns of the factor", shape="2"),
    }


_FOUR = ("near_i", "near_j", "far_i", "far_j")


def _worker_names(within: str) -> dict[str, Held]:
    return {
        "utf8": held("b", "u", "the workers' names, all bytes in a row", within=within),
        "offsets": held("w + 1", "iu", "where each worker's name begins in `utf8`", within=within),
        "worker_names": held("w", "U", "the workers' names", within=within),
    }


COUNTS: Mapping[str, Entries] = {
    "adds3": _similarity("AddS-3 (Perrot et al. 2020, section 4)"),
    "adds4": _similarity("AddS-4, in which a triplet is the quadruplet that it is"),
    "triplet_counts": {**_KEY, **_TIMES},
    "k1": _kernel("k1 (Kleindessner & von Luxburg 2017, section 2)"),
    "k2": _kernel("k2 (Kleindessner & von Luxburg 2017, section 2)"),
    **{f"adds3_{how}": _similarity(f"AddS-3, {says}") for how, says in HOWS.items()},
    **{f"triplet_counts_{how}": {**_KEY, **_TIMES} for how in HOWS},
    "partial_order": {
        "kept": ids_of("m, 4", "the comparisons that the guard keeps: near pair, far pair", columns=_FOUR),
        "reduced": ids_of("r, 4", "their transitive reduction", columns=_FOUR),
        "canonical": ids_of("q, 4", "the order of the net votes alone, whatever the order of arrival", columns=_FOUR),
        "weight_kept": figure("fraction of the net vote weight that `kept` keeps"),
        "canonical_weight_kept": figure("fraction of the net vote weight that `canonical` keeps"),
        "implied": figure(
            "triplets that follow from `kept` without having been said; and between which two numbers the truth lies "
            "(95 %)",
            shape="3",
        ),
        "implied_exact": figure("whether all were looked at, else a sample was"),
    },
    "questions": {
        "anchor": ids_of("t", "what the two others are compared with", within="questions"),
        "near": ids_of("t", "which was nearer by the majority; at a tie the first by name", within="questions"),
        "far": ids_of("t", "the other", within="questions"),
        "n_near": held("t", "iu", "how many answers said so", within="questions"),
        "n_far": held("t", "iu", "how many said the opposite", within="questions"),
        "confidence": held("t", "f", "probability that the majority is right, by these answers", within="questions"),
        "predicted": held(
            "t", "f", "probability that `near` is nearer, by AddS-3 of all other answers", within="questions"
        ),
    },
    "confidence": {
        **_KEY,
        "confidence": held("t", "f", "probability that the majority of its answers is right, from these alone", ""),
        "predicted": held("t", "f", "probability that lo is nearer, from all other answers", ""),
    },
    "evidence": {
        "answers": held("n", "i", "comparisons that name the object", within="evidence"),
        "as_anchor": held("n", "i", "of these, triplets whose anchor it is", within="evidence"),
        "questions": held("n", "i", "distinct ones", within="evidence"),
        "contradicted": held("n", "i", "answers in the minority of their own question", within="evidence"),
        "agreement": held("n", "f", "share of its answers that all others foretell; 1/2 of none", within="evidence"),
        "cluster_stability": held("n", "f", "`stability` of `clusters`", within="evidence"),
        "right_*": held("n", "f", "share of the answers about it that this model gets right", within="evidence"),
    },
    "workers": {
        "events": held("w", "i", "events that name the worker", within="workers"),
        "comparisons": held("w", "i", "comparisons in them", within="workers"),
        "agreed": held("w", "i", "with the net vote of the others", within="workers"),
        "disagreed": held("w", "i", "with the net vote of the others", within="workers"),
        "repeats": held("w", "i", "answers to a question that the worker had answered", within="workers"),
        "contradictions": held("w", "i", "of these, answered the other way", within="workers"),
        "passed": held("w", "i", "catch trials passed", within="workers"),
        "failed": held("w", "i", "catch trials failed", within="workers"),
        "accuracy": held("w", "f", "estimated share of answers that are right", within="workers"),
        "weight": held("w", "f", "what an answer of the worker counts", within="workers"),
        **_worker_names("workers"),
    },
    "workers_online": {
        "accuracy": held("w", "f", "running estimate of the share of answers that are right", within="workers_online"),
        "informed": held("w", "if", "answers that it rests on", within="workers_online"),
        **_worker_names("workers_online"),
    },
    "judgements": {
        **{name: ids_of("c", f"{name} of a comparison", within="judgements") for name in _FOUR},
        "judgement": held("c", "i", "the judgement that a comparison belongs to", within="judgements"),
        "times": held("g", "iu", "how often each judgement was given", within="judgements"),
        "worker": held("g", "i", "by whom, a place in `worker_names`; -1 unknown", within="judgements"),
        "time": held("g", "f", "when, in seconds since 1970; not a number: unknown", within="judgements"),
        "sampler": held("g", "i", "what asked it, a place in `sampler_names`; -1 unknown", within="judgements"),
        "worker_utf8": held("b", "u", "their names, all bytes in a row", within="judgements"),
        "worker_offsets": held("w + 1", "iu", "where each begins", within="judgements"),
        "sampler_utf8": held("e", "u", "likewise of the samplers", within="judgements"),
        "sampler_offsets": held("a + 1", "iu", "where each begins", within="judgements"),
        "worker_names": held("w", "U", "the workers' names", within="judgements"),
        "sampler_names": held("a", "U", "the samplers' names", within="judgements"),
        "complete": figure("whether all judgements of the stream are here"),
    },
}
