"""Paths of a study: those of participants, those of its owner, and those that only this side knows of the engine's."""

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from connectors.disk import is_plain_file
from stream_engine.collect.accepted_answers import Rejection, answers_in
from stream_engine.collect.children import Forward
from stream_engine.collect.gatekeeper import Gatekeeper, refusal
from stream_engine.collect.owner import Owner
from stream_engine.collect.page import PAGE_POLICY, page
from stream_engine.collect.page.words import Words
from stream_engine.collect.participant_service import MAX_QUESTIONS, ParticipantService
from stream_engine.collect.stimuli import Stimuli
from stream_engine.service.http.request_values import whole_number

Endpoint = Callable[[Request], Awaitable[Response]]
_encode = msgspec.json.Encoder().encode


class Routes:
    """The application; `words` are those that the page says by itself."""

    def __init__(
        self,
        people: ParticipantService,
        stimuli: Stimuli,
        keeper: Gatekeeper,
        owner: Owner,
        forward: Forward,
        words: Words,
    ):
        self._people, self._stimuli, self._keeper = people, stimuli, keeper
        self._owner, self._forward, self._words = owner, forward, words

    def application(self) -> Starlette:
        open_to_all: list[tuple[str, Endpoint, list[str]]] = [
            ("/ask", self._page, ["GET"]),
            ("/ask.js", _asset("ask.js", "text/javascript; charset=utf-8"), ["GET"]),
            ("/ask.css", _asset("ask.css", "text/css; charset=utf-8"), ["GET"]),
            ("/questions", self._refusing(self._questions), ["GET"]),
            ("/answers", self._refusing(self._answers), ["POST"]),
            ("/consent", self._refusing(self._consent), ["POST"]),
            ("/media/{name:path}", self._refusing(self._media), ["GET"]),
            ("/owner", self._keeper.enter, ["GET"]),
            ("/favicon.ico", _nothing, ["GET"]),
            ("/healthz", _alive, ["GET"]),
            ("/readyz", self._ready, ["GET"]),
        ]
        owners = [(path, self._owners(endpoint), methods) for path, endpoint, methods in self._owner.paths()]
        owners.append(("/predict", self._owners(self._predict), ["POST"]))
        all_others = Route("/{path:path}", self._owners(self._forward), methods=["GET"])
        return Starlette(routes=[*(Route(p, e, methods=m) for p, e, m in [*open_to_all, *owners]), all_others])

    async def _predict(self, request: Request) -> Response:
        return await self._forward(request, await self._keeper.body(request))

    def _refusing(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint for who asks with measure; what it refuses is said as JSON."""

        async def answer(request: Request) -> Response:
            """Of the endpoint; or {"refused": reason, "why": line} with the reason's status, which is counted."""
            try:
                self._keeper.address(request)
                return await endpoint(request)
            except (Rejection, OSError) as error:
                return self._refused(error)

        return answer

    def _refused(self, error: Rejection | OSError) -> Response:
        """What is refused, counted; OSError: what was to be stored could not be."""
        if isinstance(error, OSError):
            error = Rejection("not_durable", f"cannot be read or stored: {error.strerror or error}")
        self._people.refuse(error.reason)
        return refusal(error)

    def _owners(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint for who shows the owner's token."""

        async def answer(request: Request) -> Response:
            """Of the endpoint; 401, which is counted, for who does not show the token."""
            if not self._keeper.is_owner(request):
                self._people.counts["refused owner"] += 1
                return self._keeper.not_the_owner()
            try:
                return await endpoint(request)
            except (Rejection, OSError) as error:
                return self._refused(error)

        return answer

    def _worker(self, request: Request, worker: Any) -> str:
        key = request.query_params.get("key", "")
        return self._keeper.worker(worker, key, self._people.sessions.people.__contains__)

    async def _page(self, request: Request) -> Response:
        headers = {"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "no-store"}
        return HTMLResponse(
            page(
                self._people.study,
                self._people.access.study,
                self._words,
                self._stimuli.fill,
                self._stimuli.largest,
            ),
            headers=headers,
        )

    async def _questions(self, request: Request) -> Response:
        asked = request.query_params
        worker, n = self._worker(request, asked.get("worker")), whole_number(asked.get("n", "1"))
        if n is None or not 1 <= n <= MAX_QUESTIONS:
            raise Rejection("not_an_answer", f"n: got {asked['n'][:20]!r}, expected 1 to {MAX_QUESTIONS}")
        content = await self._people.questions(worker, n, asked.get("again") == "1")
        return _json(content | {"show": self._stimuli_of(content["questions"])})

    def _stimuli_of(self, questions: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
        """What is shown of each object in these questions."""
        names = {
            name
            for question in questions
            for name in (question.get("anchor"), *question.get("shown", question.get("objects", ())))
        }
        shown: dict[str, dict[str, str]] = {}
        for name in sorted(names - {None}):
            what = self._stimuli.shown.get(name)
            if what is None or (what.file is None or what.media == "text/plain"):
                shown[name] = {"text": what.text if what else name}
            else:
                shown[name] = {"media": what.media, "from": f"media/{quote(name, safe='')}", "text": what.text}
        return shown

    async def _answers(self, request: Request) -> Response:
        body = await self._keeper.body(request)
        try:
            many = answers_in(body)
        except Rejection as error:
            self._people.refuse(error.reason, body)
            return refusal(error)
        workers: set[str] = set()

        def may_answer(answer: Any) -> None:
            if isinstance(answer, dict):
                workers.add(self._worker(request, answer.get("worker")))

        status, content = await self._people.answers(many, may_answer)
        if len(workers) == 1 and (worker := workers.pop()) in self._people.sessions.people:
            content |= self._people.progress(worker, self._people.sessions.people[worker])
        return _json(content, status)

    async def _consent(self, request: Request) -> Response:
        answer = answers_in(await self._keeper.body(request))[0]
        worker = self._worker(request, answer.get("worker") if isinstance(answer, dict) else None)
        await self._people.consent(worker)
        return _json({"consented": True})

    async def _media(self, request: Request) -> Response:
        shown = self._stimuli.shown.get(request.path_params["name"])
        if shown is None or shown.file is None or not is_plain_file(shown.file):
            raise Rejection("no_media", f"no file of an object {request.path_params['name'][:80]!r}")
        return FileResponse(shown.file, media_type=shown.media, headers={"Cache-Control": "private, max-age=3600"})

    async def _ready(self, request: Request) -> Response:
        broken = self._people.broken()
        return PlainTextResponse(f"{broken}\n", 503) if broken else PlainTextResponse("ready\n")


async def _nothing(request: Request) -> Response:
    return Response(status_code=204)


async def _alive(request: Request) -> Response:
    return PlainTextResponse("alive\n")


def _asset(name: str, media: str) -> Endpoint:
    @cache
    def content() -> bytes:
        return Path(str(files("stream_engine.collect.page") / name)).read_bytes()

    async def answer(request: Request) -> Response:
        """The file, which a browser may keep and asks about each time."""
        return Response(content(), media_type=media, headers={"Cache-Control": "no-cache"})

    return answer


def _json(content: Any, status: int = 200) -> Response:
    return Response(_encode(content), status, media_type="application/json")
