"""`/`: the report of the newest snapshot as a page that moves, and what moves on it as server-sent events.

The page is made like an export: in a process of its own, once for all who look, and only while somebody looks. What
moves is read off the metrics once a second, once for all; a viewer costs one connection and a short message. Nothing
waits for a viewer: one that does not read is cut like any slow reader (`connection`).

What moves on the page, read off the metrics of a run: rate, lag, refused, the snapshot's age, refits, accuracy.
"""

import asyncio
import json
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from stream_engine.exports import NothingToExport
from stream_engine.input.settings import HttpSettings
from stream_engine.report import page
from stream_engine.service.context import HttpContext
from stream_engine.service.http.access import Refusals
from stream_engine.service.http.built_files import BuiltFiles, NotNow, fingerprint, later, send_file
from stream_engine.service.http.make_export import FIGURES, FORMATS_OF_PAGES, PAGE
from stream_engine.state.artifact import figure
from stream_engine.state.published import Published

_READ = (  # families, by the names of their samples
    "events_total",
    "comparisons_total",
    "rejected_total",
    "objects",
    "lag_records",
    "snapshot_sequence",
    "snapshot_published_timestamp_seconds",
    "refit_progress_ratio",
    "refit_figure",
    "progressive_accuracy",
    "drifts_total",
    "stalled",
)
_PREFIX = "stream_engine_"
_SMOOTH = 0.3  # of a second's rate in the rate that is shown
BEHIND = 60.0  # seconds of reading at the present rate, above which a run is called behind
MIN_TESTED = 50  # predictions that were tested, below which no accuracy is shown
REFUSING = 0.05  # of the recent events, above which the page warns

MAX_MOMENTS = 240  # moments that are kept at most, at least half as many once the run is long
FIRST = 2.0  # seconds between two moments at the start
SERIES = ("time", "events", "refused", "lag", "accuracy", "drifts")  # of each moment; events and refused are totals


class LiveMetrics:
    """Of one run, asked from one thread; `objects`: whether the page can show pictures or texts of objects."""

    def __init__(self, context: HttpContext, objects: bool = False):
        self._context, self._objects = context, objects
        self._before: tuple[float, float, float] | None = None  # time, events, refused
        self._rate = self._refusing = 0.0
        self._came = time.monotonic()  # when the newest event was seen

    def now(self) -> dict[str, Any]:
        """The figures as JSON takes them: None where nothing is known."""
        samples, newest, before = self._samples(), self._context.published(), self._context.metrics.restored
        events, refused = _sum(samples, "events_total"), _sum(samples, "rejected_total")
        self._follow(time.monotonic(), events, refused)
        lags = [value for _, value in samples.get("lag_records", ())]
        lag = sum(lags) if lags and not any(map(math.isnan, lags)) else None
        ready = not self._context.ready()
        if not ready and not lag:
            lag = None  # what came meanwhile is not known
        starting = self._context.heartbeat.compiling
        published = _sum(samples, "snapshot_published_timestamp_seconds")
        behind = bool(_sum(samples, "stalled")) or (lag or 0) > BEHIND * max(self._rate, 1.0)
        failed = self._context.failed_refits()
        return {
            "time": round(time.time(), 1),
            "events": int(events) + before.get("events", 0),
            "rate": round(self._rate, 1),
            "comparisons": int(_sum(samples, "comparisons_total")) + before.get("comparisons", 0),
            "refused": int(refused) + before.get("rejected", 0),
            "refusing": self._refusing > REFUSING,
            "objects_shown": self._objects,
            "lag": None if lag is None or starting else int(lag),
            "ready": ready,
            "starting": starting,
            "behind": behind,
            "objects": int(_sum(samples, "objects")) or (len(newest.snapshot.objects) if newest else 0),
            "snapshot": newest.snapshot.sequence if newest else 0,
            "age": max(time.time() - published, 0.0) if published else None,
            **_accuracy(samples, self._context.progressive(), newest),
            "quiet": round(time.monotonic() - self._came, 1),
            "refits": [_refit(samples, kind) for kind in sorted(self._context.running_refits())],
            "failed": sorted(failed),
            "drifts": int(_sum(samples, "drifts_total")),
            "wrong": [*self._wrong(behind, lag), *(_failed(kind, failed[kind]) for kind in sorted(failed))],
        }

    def _wrong(self, behind: bool, lag: float | None) -> list[str]:
        """What a person should see to now, a sentence each."""
        problems = []
        if why := self._context.ready():
            problems.append(f"{why[:1].upper()}{why[1:]}.")
        if behind and lag:
            problems.append(f"Behind: {_unread(lag, self._rate)}.")
        elif behind:
            problems.append("Nothing was read for a while, though there is something to keep.")
        if self._refusing > REFUSING:
            problems.append(
                f"{100 * self._refusing:.0f} % of the recent events were rejected; the reasons: stream-engine "
                "dead-letters list."
            )
        return problems

    def _follow(self, now: float, events: float, refused: float) -> None:
        """Update the recent rate and the recent share of rejected events."""
        if self._before is not None and now > self._before[0]:
            accepted, out = events - self._before[1], refused - self._before[2]
            rate = accepted / (now - self._before[0])
            self._rate += _SMOOTH * (rate - self._rate) if self._rate else rate
            if accepted + out > 0:
                self._came = now
                self._refusing += _SMOOTH * (out / (accepted + out) - self._refusing)
        self._before = now, events, refused

    def _samples(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """What is read, by name without prefix: labels and value of each series."""
        samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        names = [_PREFIX + name for name in _READ]
        for family in self._context.metrics.registry.restricted_registry(names).collect():
            for sample in family.samples:
                samples.setdefault(sample.name.removeprefix(_PREFIX), []).append((sample.labels, sample.value))
        return samples


class History:
    """The figures since the run began: a few hundred moments, whatever the run's length. When there are `MAX_MOMENTS`,
    every second one goes and the next come half as often. `figures()` gives those of now; `close` ends the thread."""

    def __init__(self, figures: Callable[[], dict[str, Any]], every: float = FIRST):
        self._figures, self._every = figures, every
        self._moments: list[tuple[Any, ...]] = []
        self._lock, self._end = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="history", daemon=True)
        self._thread.start()

    def take(self) -> None:
        """Keep this moment."""
        figures = self._figures()
        moment = tuple(figures[name] for name in SERIES)
        with self._lock:
            self._moments.append(moment)
            if len(self._moments) >= MAX_MOMENTS:
                self._moments = self._moments[:-1:2] + self._moments[-1:]  # the oldest and the newest stay
                self._every *= 2

    def so_far(self) -> dict[str, list[Any]]:
        """Each series, all of one length, the oldest moment first; None where nothing was known."""
        with self._lock:
            moments = list(self._moments)
        return {name: [moment[number] for moment in moments] for number, name in enumerate(SERIES)}

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        self._thread.join(5)

    def _follow(self) -> None:
        while not self._end.is_set():
            self.take()
            self._end.wait(self._every)


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


def _failed(kind: str, why: str) -> str:
    """
    >>> _failed("classify", "classify: no object has a label")
    'The refit classify failed, and what it made before stays: no object has a label.'
    """
    first = next(iter(why.removeprefix(f"{kind}: ").strip().splitlines()), "see the log")
    return f"The refit {kind} failed, and what it made before stays: {first.rstrip('.')}."


def _accuracy(
    samples: dict[str, list[tuple[dict[str, str], float]]], progressive: Mapping[str, Any], newest: Published | None
) -> dict[str, Any]:
    """`accuracy` of the best present model, and of what: comparisons that came since it was fitted ("since"), all kinds
    of events together; before there are enough of these, held-out comparisons ("held_out"), as the embedding's report
    says. None where neither tells."""
    recent = [
        value
        for labels, value in samples.get("progressive_accuracy", ())
        if labels["kind"] == "all" and labels["window"] == "current" and _tested(progressive, labels) >= MIN_TESTED
    ]
    if recent:
        return {"accuracy": max(recent), "accuracy_of": "since"}
    embedding = newest.artifacts.get("embedding") if newest else None
    held_out = figure(embedding.report, "accuracy") if embedding else None
    return {"accuracy": held_out, "accuracy_of": None if held_out is None else "held_out"}


def _tested(progressive: Mapping[str, Any], labels: Mapping[str, str]) -> float:
    """How many answers a share is of."""
    kinds = progressive.get("predictors", {}).get(labels["predictor"], {})
    return kinds.get("all", {}).get("current", {}).get("tested", math.inf)


def _refit(samples: dict[str, list[tuple[dict[str, str], float]]], kind: str) -> dict[str, Any]:
    """How far a running refit is, and the gap that it told last."""
    progress = sum(value for labels, value in samples.get("refit_progress_ratio", ()) if labels["refit"] == kind)
    gaps = [
        value
        for labels, value in samples.get("refit_figure", ())
        if labels["refit"] == kind and labels["figure"] == "gap" and math.isfinite(value)
    ]
    return {"kind": kind, "done": progress, "gap": gaps[0] if gaps else None}


EVERY = 1.0  # seconds between two messages to a viewer
MOST_VIEWERS = 200  # beyond it 503


class LivePage:
    """The routes; `figures` says what moves, `history` how it did."""

    def __init__(
        self,
        context: HttpContext,
        files: BuiltFiles,
        figures: LiveMetrics,
        history: History,
        refusals: Refusals,
        settings: HttpSettings,
    ):
        self._format = FORMATS_OF_PAGES[settings.show_workers]
        self._files, self._published, self._figures, self._history_kept = files, context.published, figures, history
        self._refusals = refusals
        self._viewers = 0
        self._message = b""
        self._told = asyncio.Condition()
        self._pulse: asyncio.Task[None] | None = None
        self._ready = ""  # the fingerprint of the newest page that is made

    def routes(self) -> list[Route]:
        """What an application serves."""
        return [
            Route("/", self._whole),
            Route("/page", self._body),
            Route("/figures/{name}", self._figure),
            Route("/live", self._live),
            Route("/history", self._history),
        ]

    async def _whole(self, request: Request) -> Response:
        """The shell of the page: it says what it waits for, and fetches the rest."""
        headers = {
            "Content-Security-Policy": f"{page.shell_policy()}; frame-ancestors 'none'",
            "Cache-Control": "no-store",
        }
        return HTMLResponse(page.shell(), headers=headers)

    async def _body(self, request: Request) -> Response:
        return await self._file(request, PAGE, "page.html")

    async def _figure(self, request: Request) -> Response:
        return await self._file(request, FIGURES, request.path_params["name"])

    async def _file(self, request: Request, what: str, name: str) -> Response:
        return await send_file(self._files, self._published(), (what, self._format), name, request, self._refusals)

    async def _history(self, request: Request) -> Response:
        return JSONResponse(self._history_kept.so_far(), headers={"Cache-Control": "no-store"})

    async def _live(self, request: Request) -> Response:
        if self._viewers >= MOST_VIEWERS:
            return later(NotNow(f"{MOST_VIEWERS} viewers are looking", "busy"), self._refusals)
        return StreamingResponse(self._messages(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _messages(self) -> AsyncIterator[bytes]:
        self._viewers += 1
        try:
            if self._pulse is None or self._pulse.done():
                self._pulse = asyncio.create_task(self._beat())
            yield b"retry: 2000\n\n" + self._message
            while True:
                async with self._told:
                    await self._told.wait()
                yield self._message
        finally:
            self._viewers -= 1

    async def _beat(self) -> None:
        """Read off what moves once a second while somebody looks; have the page made when there is a newer snapshot."""
        making: asyncio.Task[None] | None = None
        while self._viewers:
            newest = self._published()
            fingerprint_of_newest = fingerprint(newest) if newest else ""
            if newest and fingerprint_of_newest != self._ready and (making is None or making.done()):
                making = asyncio.create_task(self._make(newest, fingerprint_of_newest))
            message: dict[str, Any] = self._figures.now() | {"page": self._ready or None}
            self._message = b"data: " + json.dumps(message, separators=(",", ":")).encode() + b"\n\n"
            async with self._told:
                self._told.notify_all()
            await asyncio.sleep(EVERY)
        self._message = b""

    async def _make(self, newest: Published, wanted: str) -> None:
        try:
            await self._files.of(newest, PAGE, self._format)
            self._ready = wanted
        except (NothingToExport, NotNow) as error:
            self._refusals.tell("busy", why=f"the page: {error}")
            await asyncio.sleep(5 * EVERY)
