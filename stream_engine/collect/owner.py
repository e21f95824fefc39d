"""What the owner of a study may ask for beside the engine's paths: the dashboard (the engine's live page with a part
about the study), figures, what was collected, links, new objects, and a pause."""

import time
from collections.abc import Awaitable, Callable
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from connectors.disk import Disk, write_whole
from stream_engine.collect import archive
from stream_engine.collect.accepted_answers import Rejection
from stream_engine.collect.access import Access
from stream_engine.collect.children import Forward
from stream_engine.collect.gatekeeper import Gatekeeper
from stream_engine.collect.line_log import LineLog
from stream_engine.collect.participant_service import Logs, ParticipantService
from stream_engine.collect.stimuli import MAX_FILE_BYTES, TEXT, Stimuli, check_media, check_text
from stream_engine.data.spreadsheet_cells import csv_text
from stream_engine.report import page
from stream_engine.service.http.request_values import is_raw, whole_number

Endpoint = Callable[[Request], Awaitable[Response]]
MAX_LINKS = 10_000
MAX_SHOWN_PARTICIPANTS = 500  # participants on the dashboard, those who answered last; the table has all
MAX_FILE_NAME_BYTES = 240  # bytes: file systems take 255, and it is written under a longer name first
PAUSED = "paused"  # a file in DIR/collect, there while the study pauses


class Pause(msgspec.Struct):
    """What POST /pause takes."""

    paused: bool


class Owner:
    """Of one study."""

    def __init__(
        self,
        people: ParticipantService,
        stimuli: Stimuli,
        logs: Logs,
        access: Access,
        keeper: Gatekeeper,
        forward: Forward,
        prefix: str,
        state: Path,
        settings: dict[str, Any],
    ):
        self._prefix, self._state, self._settings = prefix, state, settings
        self._people, self._stimuli, self._logs = people, stimuli, logs
        self._access, self._keeper, self._forward = access, keeper, forward
        self.engine_runs: Callable[[], bool] = bool
        self._registry = CollectorRegistry()
        self._registry.register(_Figures(people))

    def paths(self) -> list[tuple[str, Endpoint, list[str]]]:
        return [
            ("/", self._dashboard, ["GET"]),
            ("/study", self._study, ["GET"]),
            ("/pause", self._pause, ["POST"]),
            ("/participants.json", self._latest, ["GET"]),
            ("/metrics", self._metrics, ["GET"]),
            ("/links", self._links, ["GET"]),
            ("/participants.csv", self._participants, ["GET"]),
            ("/collected/{name}", self._collected, ["GET"]),
            ("/download", self._download, ["GET"]),
            ("/objects/{name}", self._object, ["PUT"]),
        ]

    async def _dashboard(self, request: Request) -> Response:
        """The live page; the engine's paths fill it, and `/study` and `/participants.json` the part about the study."""
        headers = {"Content-Security-Policy": f"{page.shell_policy(study=True)}; frame-ancestors 'none'"}
        return HTMLResponse(page.shell(study=True), headers=headers | {"Cache-Control": "no-store"})

    async def _pause(self, request: Request) -> Response:
        """{"paused": true or false}: stop asking, or go on; it outlasts a restart."""
        try:
            asked = msgspec.json.decode(await self._keeper.body(request), type=Pause)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Rejection("not_json", f'expected {{"paused": true}} or false: {error}') from None
        note = self._state / "collect" / PAUSED
        if asked.paused:
            await run_in_threadpool(write_whole, Disk(), note, [b""])
        else:
            await run_in_threadpool(note.unlink, missing_ok=True)
        self._people.paused = asked.paused
        return JSONResponse({"paused": asked.paused})

    async def _latest(self, request: Request) -> Response:
        """Participants as JSON, those who answered last first."""
        head, rows = self._people_table()
        rows.sort(key=lambda row: row[head.index("latest")], reverse=True)
        content = {"participants": len(rows), "shown": [dict(zip(head, row)) for row in rows[:MAX_SHOWN_PARTICIPANTS]]}
        return Response(msgspec.json.encode(content), media_type="application/json")

    async def _study(self, request: Request) -> Response:
        """Where the study stands, all of it; only `since_start` is of this process: requests that it refused, answers
        that it was sent again."""
        people, quota = self._people, self._people.study.quota
        everybody = people.sessions.participants().values()
        ended = [people.end_of(person) for person in everybody]
        content = {
            "study": self._access.study,
            "title": people.study.texts.title or self._state.resolve().name,
            "objects": len(self._stimuli.names),
            "skipped": self._stimuli.passed_over,
            "people": len(everybody),
            "done": ended.count("done"),
            "excluded": ended.count("excluded"),
            "answers": people.sessions.total,
            "wanted": quota.total or None,
            "wanted_of_each": quota.person or None,
            "paused": people.paused,
            "waiting": len(people.sessions.open),
            "ready": len(people.pool.ready),
            "ellipse": people.ellipse,
            "enough": people.enough() or None,
            "since_start": {k: n for k, n in sorted(people.counts.items()) if k == "again" or k.startswith("refused ")},
            "engine": "running" if self.engine_runs() else "starting",
        }
        return Response(msgspec.json.encode(content), media_type="application/json")

    async def _metrics(self, request: Request) -> Response:
        """The engine's metrics, and those of this side behind them."""
        answer = await self._forward(request)
        engine = b""
        if isinstance(answer, StreamingResponse) and answer.status_code == 200:
            engine = b"".join([bytes(piece) async for piece in answer.body_iterator if not isinstance(piece, str)])
        return Response(engine + generate_latest(self._registry), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _links(self, request: Request) -> Response:
        """?n=20 or ?workers=a,b: a link for each participant, as CSV."""
        named = [worker for worker in request.query_params.get("workers", "").split(",") if worker]
        n_text = request.query_params.get("n", "0")
        if (n := whole_number(n_text)) is None:
            raise Rejection("not_an_answer", f"n: got {n_text[:20]!r}, expected a whole number")
        n_links = min(n, MAX_LINKS)
        workers = named or [f"p{number:04d}" for number in range(1, n_links + 1)]
        base = self._keeper.base(request, self._prefix)
        rows = [(worker, self._access.link(base, worker, self._people.study.access.worker_from)) for worker in workers]
        return _csv(("worker", "link"), rows, request)

    async def _participants(self, request: Request) -> Response:
        """One row for everybody who was sent a question."""
        return _csv(*self._people_table(), request)

    def _people_table(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        people = self._people
        head = ("worker", "answers", "catch_passed", "catch_failed", "repeats", "first", "latest", "ended", "code")
        rows = [
            (
                worker,
                person.answered,
                person.passed,
                person.failed,
                person.repeats,
                round(person.first, 3),
                round(person.latest, 3),
                people.end_of(person),
                people.progress(worker, person).get("code", ""),
            )
            for worker, person in people.sessions.participants().items()
        ]
        return head, rows

    async def _collected(self, request: Request) -> Response:
        """The logs as they are now, up to the last durable line."""
        logs, name = self._files(), request.path_params["name"]
        if name not in logs:
            raise Rejection("no_media", f"no such file; expected one of {', '.join(logs)}")
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(archive.lines(logs[name].lines()), media_type="application/x-ndjson", headers=headers)

    def _files(self) -> dict[str, LineLog]:
        return {f"{name}.jsonl": log for name, log in self._logs._asdict().items()}

    async def _download(self, request: Request) -> Response:
        """Everything, as one ZIP."""
        raw = is_raw(request)
        head, rows = self._people_table()
        people = csv_text([head, *rows], raw).encode()
        study, settings = (msgspec.json.format(msgspec.json.encode(e)) for e in (self._people.study, self._settings))
        files = chain(
            ((name, archive.lines(log.lines())) for name, log in self._files().items()),
            [("participants.csv", [people]), ("study.json", [study]), ("settings.json", [settings])],
            archive.objects(self._stimuli, raw),
            archive.exports(self._state, raw),
        )
        headers = {"Content-Disposition": f'attachment; filename="study-{self._access.study}.zip"'}
        return StreamingResponse(archive.zipped(files), media_type="application/zip", headers=headers)

    async def _object(self, request: Request) -> Response:
        """PUT: a new picture, sound or text becomes an object."""
        name, folder = request.path_params["name"], self._stimuli.folder
        if folder is None:
            raise Rejection("bad_object", f"{self._stimuli.path} is not a folder; add a line to it instead")
        size = len(name.encode())
        if name.startswith(".") or not name.isprintable() or "/" in name or "\\" in name or size > MAX_FILE_NAME_BYTES:
            problem = f"got the name {name[:50]!r}, {size} bytes, expected a file name of at most {MAX_FILE_NAME_BYTES}"
            raise Rejection("bad_object", problem)
        body = await self._keeper.body(request, MAX_FILE_BYTES)
        why = check_text(body, len(body)) if name.lower().endswith(TEXT) else check_media(name, body[:16])
        stems = {file.stem for file in folder.iterdir()} | self._stimuli.shown.keys()
        if why or name.rpartition(".")[0] in stems:
            raise Rejection("bad_object", f"{name}: {why or 'the object exists already'}")
        await run_in_threadpool(write_whole, Disk(), folder / name, [body])
        return Response(msgspec.json.encode({"added": name.rpartition(".")[0]}), 201, media_type="application/json")


class _Figures(Collector):
    """What this side counts, for Prometheus."""

    def __init__(self, people: ParticipantService):
        self._people = people

    def collect(self) -> list[CounterMetricFamily | GaugeMetricFamily]:
        """A counter of what was asked, answered and refused, by `what`; four gauges of where the study stands now."""
        people = self._people
        counted = CounterMetricFamily(
            "stream_engine_collect", "Questions sent, answers accepted and rejected.", labels=["what"]
        )
        for what, n in people.counts.items():
            counted.add_metric([what], n)
        figures = {
            "collect_people": ("Participants who received questions.", len(people.sessions.participants())),
            "collect_waiting": ("Unanswered questions.", len(people.sessions.open)),
            "collect_ready": ("Model-chosen questions in the queue.", len(people.pool.ready)),
            "collect_answers_counted": ("Answers in the log.", people.sessions.total),
        }
        gauges = [GaugeMetricFamily(f"stream_engine_{name}", text, n) for name, (text, n) in figures.items()]
        return [counted, *gauges]


def _csv(head: tuple[str, ...], rows: list[tuple[Any, ...]], request: Request) -> Response:
    name = f"{int(time.time())}.csv"
    headers = {"Content-Disposition": f"inline; filename={name}"}
    content = csv_text([head, *rows], is_raw(request))
    return Response(content, media_type="text/csv; charset=utf-8", headers=headers)
