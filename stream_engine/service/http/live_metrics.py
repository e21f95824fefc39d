"""The figures that move on the live page, read off the metrics of a run."""

import math
import shlex
import time
from collections.abc import Mapping
from typing import Any

from stream_engine.service.context import HttpContext
from stream_engine.state.artifact import figure
from stream_engine.state.published import Published

_FAMILIES = (  # families, by the names of their samples
    "events_total",
    "comparisons_total",
    "rejected_total",
    "objects",
    "lag_records",
    "snapshot_sequence",
    "snapshot_published_timestamp_seconds",
    "refit_progress_ratio",
    "refit_figure",
    "rejected_share",
    "drifts_total",
    "stalled",
)
_PREFIX = "stream_engine_"
BEHIND_SECONDS = 60.0  # seconds of reading at the present rate, above which a run is called behind
MIN_TESTED = 50  # predictions that were tested, below which no accuracy is shown
REJECTING_SHARE = 0.05  # of the newest events, above which the page warns


class LiveMetrics:
    """Of one run, asked from one thread; `objects`: whether the page can show pictures or texts of objects."""

    def __init__(self, context: HttpContext, objects: bool = False):
        self._context, self._objects = context, objects

    def now(self) -> dict[str, Any]:
        """The figures as JSON takes them: None where nothing is known."""
        samples, newest, at_start = self._samples(), self._context.published(), self._context.metrics.at_start
        events, rejected = _sum(samples, "events_total"), _sum(samples, "rejected_total")
        event_rate, rejected_share = self._context.metrics.event_rate, _sum(samples, "rejected_share")
        rate = event_rate.per_second()
        lags = [value for _, value in samples.get("lag_records", ())]
        lag = sum(lags) if lags and not any(map(math.isnan, lags)) else None
        ready = not self._context.ready()
        if not ready and not lag:
            lag = None  # what came meanwhile is not known
        starting = self._context.heartbeat.compiling
        published = _sum(samples, "snapshot_published_timestamp_seconds")
        is_behind = bool(_sum(samples, "stalled")) or (lag or 0) > BEHIND_SECONDS * max(rate, 1.0)
        failed_refits = self._context.failed_refits()
        return {
            "time": round(time.time(), 1),
            "events": int(events) + at_start.get("events", 0),
            "rate": round(rate, 1),
            "comparisons": int(_sum(samples, "comparisons_total")) + at_start.get("comparisons", 0),
            "refused": int(rejected) + at_start.get("rejected", 0),
            "refusing": rejected_share > REJECTING_SHARE,
            "objects_shown": self._objects,
            "lag": None if lag is None or starting else int(lag),
            "ready": ready,
            "starting": starting,
            "behind": is_behind,
            "objects": int(_sum(samples, "objects")) or (len(newest.snapshot.objects) if newest else 0),
            "snapshot": newest.snapshot.sequence if newest else 0,
            "snapshot_due": self._context.snapshot_due(),
            "age": max(time.time() - published, 0.0) if published else None,
            **_accuracy(self._context.progressive(), newest),
            "quiet": round(event_rate.seconds_since_last(), 1),
            "refits": [_refit(samples, kind) for kind in sorted(self._context.running_refits())],
            "failed": sorted(failed_refits),
            "drifts": int(_sum(samples, "drifts_total")),
            "wrong": [
                *self._problems(is_behind, lag, rate, rejected_share),
                *(_failure_in_words(kind, failed_refits[kind]) for kind in sorted(failed_refits)),
            ],
        }

    def _problems(self, is_behind: bool, lag: float | None, rate: float, rejected_share: float) -> list[str]:
        """What a person should see to now, a sentence each."""
        problems = []
        if why := self._context.ready():
            problems.append(f"{why[:1].upper()}{why[1:]}.")
        if is_behind and lag:
            problems.append(f"Behind: {_unread(lag, rate)}.")
        elif is_behind:
            problems.append("Nothing was read for a while, though there is something to keep.")
        if rejected_share > REJECTING_SHARE:
            problems.append(
                f"{100 * rejected_share:.0f} % of the newest events of an input were rejected. To see why: "
                f"stream-engine dead-letters list --state {shlex.quote(str(self._context.directory))}"
            )
        return problems

    def _samples(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """What is read, by name without prefix: labels and value of each series."""
        samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        names = [_PREFIX + name for name in _FAMILIES]
        for family in self._context.metrics.registry.restricted_registry(names).collect():
            for sample in family.samples:
                samples.setdefault(sample.name.removeprefix(_PREFIX), []).append((sample.labels, sample.value))
        return samples


def _sum(samples: dict[str, list[tuple[dict[str, str], float]]], name: str) -> float:
    return sum(value for _, value in samples.get(name, ()))


def _unread(lag: float, rate: float) -> str:
    """How much is unread, and how long it takes at this rate.

    >>> _unread(12000, 100.0), _unread(5000, 0.2)
    ('12,000 unread, 2 minutes at the present rate', '5,000 unread, and nothing is read at present')
    """
    if rate < 1:
        return f"{lag:,.0f} unread, and nothing is read at present"
    return f"{lag:,.0f} unread, {max(1, round(lag / rate / 60)):,} minutes at the present rate"


def _failure_in_words(kind: str, why: str) -> str:
    """
    >>> _failure_in_words("classify", "classify: no object has a label")
    'The refit classify failed, and what it made before stays: no object has a label.'
    """
    first = next(iter(why.removeprefix(f"{kind}: ").strip().splitlines()), "see the log")
    return f"The refit {kind} failed, and what it made before stays: {first.rstrip('.')}."


def _accuracy(progressive: Mapping[str, Any], newest: Published | None) -> dict[str, Any]:
    """`accuracy` of the best present model, its name (`accuracy_by`), of how many comparisons (`accuracy_n`), and of
    which: a sample of those that came since it was fitted ("since"), all kinds of events together; before there are
    enough of these, held-out comparisons ("held_out"), as the embedding's report says. None where neither is known."""
    predictors = progressive.get("predictors", {}).items()
    present = [(name, kinds.get("all", {}).get("current", {})) for name, kinds in predictors]
    recent = [(of["accuracy"], of["tested"], name) for name, of in present if of.get("tested", 0) >= MIN_TESTED]
    if recent:
        accuracy, n, name = max(recent)
        return {"accuracy": accuracy, "accuracy_n": int(n), "accuracy_of": "since", "accuracy_by": name}
    report = newest.artifacts["embedding"].report if newest and "embedding" in newest.artifacts else {}
    held_out, n_held_out = figure(report, "accuracy"), figure(report, "held_out_comparisons")
    return {
        "accuracy": held_out,
        "accuracy_n": None if held_out is None or n_held_out is None else int(n_held_out),
        "accuracy_of": None if held_out is None else "held_out",
        "accuracy_by": None if held_out is None else "embedding",
    }


def _refit(samples: dict[str, list[tuple[dict[str, str], float]]], kind: str) -> dict[str, Any]:
    """How far a running refit is, and the gap that it told last."""
    progress = sum(value for labels, value in samples.get("refit_progress_ratio", ()) if labels["refit"] == kind)
    gaps = [
        value
        for labels, value in samples.get("refit_figure", ())
        if labels["refit"] == kind and labels["figure"] == "gap" and math.isfinite(value)
    ]
    return {"kind": kind, "done": progress, "gap": gaps[0] if gaps else None}
