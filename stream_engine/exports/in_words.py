"""What the names of models and the p of a verdict mean, in words that pages for people share."""

from collections.abc import Iterable, Mapping
from typing import Any

from stream_engine.state.artifact_figures import figure

FEWEST_PEOPLE = 5  # below whom nothing is said of how many of them guess
GUESSING = 0.5  # lapse rate above which somebody is said to guess: the share of the answers that a coin gave
LEVEL = 0.05  # as `refits.cluster_verdict`, which loads the compiler
MODELS = {
    "embedding": "the map",
    "kernel_learning": "a kernel learned from the answers",
    "partial_order_embedding": "a kernel learned from the partial order",
    "adds3": "similarities summed up from the answers about three objects",
    "adds4": "the same of those about two pairs",
    "k1": "objects are alike from which the others lie in like order",
    "k2": "objects are alike that lie alike, near or far, as others see them",
    "majority": "what most answered to the same question",
    "chance": "a coin",
}


def models_explained(names: Iterable[str]) -> str:
    """What the models of a table are.

    >>> models_explained(["majority", "chance"])
    'majority: what most answered to the same question; chance: a coin'
    """
    return "; ".join(f"{name.replace('_', ' ')}: {MODELS[name]}" for name in names if name in MODELS)


def p_explained(report: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """Of which share of what the p of a clustering's verdict is, out of how many, and what follows; "" without a test.

    >>> tested = {"p_continuum": 0.5, "p_coins": 0.01, "drawn": 21}
    >>> p_explained({"verdict_test": tested}, {"test": 99})  # doctest: +ELLIPSIS
    'p: the share of ... counted among them: 0.5 (21 continua), 0.01 (99 answered at random). Clusters are said ...'
    """
    tested = report.get("verdict_test")
    continuum, coins = (figure(report, "verdict_test", name) for name in ("p_continuum", "p_coins"))
    if not isinstance(tested, Mapping) or (continuum is None and coins is None):
        return ""
    told = []
    if continuum is not None:
        told.append(f"{continuum:.2g} ({_number(tested.get('drawn'))}continua)")
    if coins is not None:  # drawing went on to the end only where they are few
        told.append(f"{coins:.2g} ({_number(params.get('test') if coins <= LEVEL else None)}answered at random)")
    return (
        "p: the share of simulated studies without clusters that look as clustered, this study counted among them: "
        f"{', '.join(told)}. Clusters are said where both are at most .05; where that is out of reach, simulating ends "
        "early."
    )


def guessers(arrays: Mapping[str, Any]) -> tuple[int, int]:
    """How many of how many people seem to guess, by an embedding's arrays; none of none where it knows nobody by name.

    >>> guessers({"worker_lapse": [0.1, 0.5, 0.9]}), guessers({})
    ((1, 3), (0, 0))
    """
    lapse = arrays.get("worker_lapse", ())
    return sum(float(value) > GUESSING for value in lapse), len(lapse)


def _number(n: object) -> str:
    return f"{n:,} " if type(n) is int else ""
