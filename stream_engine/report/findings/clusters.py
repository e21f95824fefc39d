"""Whether there are clusters: the verdict of the clustering, provided that a model predicts better than chance."""

from collections.abc import Iterator, Mapping
from typing import Any

from stream_engine.report.findings import GAP, Finding
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.words import p_value
from stream_engine.state.artifact import figure

LEVEL = 0.05  # as `refits.cluster_verdict`, which loads the compiler


def clusters(facts: Facts) -> Iterator[Finding]:
    """The verdict in the clustering's own words."""
    if "sdp_clustering" not in facts.published.artifacts:
        return
    report = facts.report("sdp_clustering")
    if facts.beats_chance is False:
        text = "Clusters cannot be assessed, because no model predicts the answers better than chance."
        yield Finding("clusters_gated", text, level=GAP)
        return
    if not facts.connected:
        text = "Clusters cannot be assessed, because some objects were never compared with the others."
        yield Finding("clusters_gated", text, level=GAP)
        return
    said = str(report.get("note") or report.get("verdict") or "").strip()[:500]
    if said:
        text = f"{said[:1].upper()}{said[1:]}" + ("" if said.endswith(".") else ".")
        yield Finding("clusters", text, {"k": figure(report, "k"), **_tested(report)})


def _tested(report: Mapping[str, Any]) -> dict[str, Any]:
    tested = report.get("verdict_test")
    return (
        {key: value for key, value in tested.items() if type(value) in (int, float)}
        if isinstance(tested, Mapping)
        else {}
    )


def explained(report: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """What the p-values of the test for clusters mean, and from how many simulations they are; "" without a test.

    >>> tested = {"p_continuum": 0.5, "p_coins": 0.01, "drawn": 21}
    >>> explained({"verdict_test": tested}, {"test": 99})  # doctest: +ELLIPSIS
    'p is the share of ...: .5 (21 continua), .01 (99 with random answers). Clusters are reported if ...'
    """
    tested = report.get("verdict_test")
    continuum, coins = (figure(report, "verdict_test", name) for name in ("p_continuum", "p_coins"))
    if not isinstance(tested, Mapping) or (continuum is None and coins is None):
        return ""
    told = []
    if continuum is not None:
        told.append(f"{p_value(continuum)} ({_number(tested.get('drawn'))}continua)")
    if coins is not None:  # drawing went on to the end only where they are few
        told.append(f"{p_value(coins)} ({_number(params.get('test') if coins <= LEVEL else None)}with random answers)")
    both = "both are" if len(told) == 2 else "this and the p of the other kind of simulation (not needed here) are"
    return (
        "p is the share of simulated studies without clusters that look at least as clustered (counting this study "
        f"as one of them): {', '.join(told)}. Clusters are reported if {both} at most .05; the simulation stops "
        "early once this is impossible, or if none of the first 39 looks as clustered."
    )


def _number(n: object) -> str:
    return f"{n:,} " if type(n) is int else ""
