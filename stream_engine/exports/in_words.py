"""What the names of models and the p of a verdict mean, in words that pages for people share."""

from collections.abc import Iterable, Mapping
from typing import Any

from stream_engine.state.artifact_figures import figure

LEVEL = 0.05  # as `refits.cluster_verdict`, which loads the compiler
MODELS = {
    "embedding": "the map",
    "kernel_learning": "a kernel learned from the answers",
    "partial_order_embedding": "a kernel learned from the partial order",
    "adds3": "similarities summed up from the answers about three objects",
    "adds4": "the same of those about two pairs",
    "k1": "objects are alike that have the same others near to them",
    "k2": "objects are alike that are near to the same others",
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
    'p: the share of ... counted among them: 0.5 of 21 continua, 0.01 of 99 answered at random. Clusters are said ...'
    """
    tested = report.get("verdict_test")
    continuum, coins = (figure(report, "verdict_test", name) for name in ("p_continuum", "p_coins"))
    if not isinstance(tested, Mapping) or (continuum is None and coins is None):
        return ""
    told = []
    if continuum is not None:
        told.append(f"{continuum:.2g} of {_number(tested.get('drawn'))}continua")
    if coins is not None:  # drawing went on to the end only where they are few
        told.append(f"{coins:.2g} of {_number(params.get('test') if coins <= LEVEL else None)}answered at random")
    return (
        "p: the share of simulated studies without clusters that look as clustered, this study counted among them: "
        f"{', '.join(told)}. Clusters are said where both are at most .05; else drawing ends early."
    )


def _number(n: object) -> str:
    return f"{n:,} " if type(n) is int else ""
