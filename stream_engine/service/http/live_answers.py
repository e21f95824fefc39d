"""Answers of the newest published fit while learning goes on: predictions, nearest objects, questions to ask next."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stream_engine.asking.knowledge import CannotAsk, Knowledge, codes_answered_by, knowledge_of
from stream_engine.evaluation import PROBABILITY_MODELS, NoModel
from stream_engine.evaluation.questions import BadQuestion, Four, QuestionReader
from stream_engine.formats.options import EventOptions
from stream_engine.service.context import HttpContext
from stream_engine.service.http.built_files import NotNow, fingerprint, later
from stream_engine.service.http.live_questions import LiveQuestions
from stream_engine.service.http.paths import AskQuery, NearestQuery, Questions
from stream_engine.service.http.refusals import Refusals
from stream_engine.service.http.request_values import BadBody, body_of
from stream_engine.state.published import Published

MAX_BODY_BYTES = 1 << 20  # bytes
MAX_BODIES = 64  # bodies that are being read; beyond it 503
IDLE = 60.0  # seconds without a request, after which nothing is kept ready
Struct = TypeVar("Struct", bound=msgspec.Struct)
_encode = msgspec.json.Encoder().encode


class LiveAnswers:
    """The routes /predict, /nearest and /ask.

    What an answer needs is computed once from what is published, in a thread, and used until there is something newer,
    or no request comes for `IDLE` seconds. No model is fitted here, and no answer waits for the stream.
    """

    def __init__(self, context: HttpContext, refusals: Refusals):
        self._published, self._refusals = context.published, refusals
        self._ready: dict[tuple[Any, ...], asyncio.Future[Any]] = {}
        self._fingerprint, self._last_used = (
            "",
            0.0,
        )  # the fingerprint of what they were made of; when they were asked for
        self._dropping: asyncio.TimerHandle | None = None
        self._reading = 0
        self._questions = LiveQuestions()

    def routes(self) -> list[Route]:
        return [
            Route("/predict", self._predict, methods=["POST"]),
            Route("/nearest", self._nearest),
            Route("/ask", self._ask),
        ]

    async def _predict(self, request: Request) -> Response:
        if self._reading >= MAX_BODIES:
            return later(NotNow(f"{MAX_BODIES} predictions are being read", "busy"), self._refusals)
        self._reading += 1
        try:
            body = await _body_of(request, Questions)
        finally:
            self._reading -= 1
        names = _names(body)
        sequence, answering = await self._result_of(_answering, body.model)
        answers = answering.answers(names)
        pairs = zip(answers.p.tolist(), answers.by.tolist())
        predictions = [{"p": None if p != p else p, "model": by} for p, by in pairs]
        return _json({"snapshot": sequence, "model": answering.name, "predictions": predictions})

    async def _nearest(self, request: Request) -> Response:
        query = _query_of(request, NearestQuery)
        sequence, nearest = await self._result_of(_nearest)
        return _json({"snapshot": sequence, "object": query.object, "nearest": nearest(query.object, query.k)})

    async def _ask(self, request: Request) -> Response:
        if request.headers.get("sec-fetch-site") == "cross-site":  # a page elsewhere could use all questions up
            raise HTTPException(403, "questions are not for pages of other sites\n")
        query = _query_of(request, AskQuery)
        sequence, (knowledge, answered_by) = await self._result_of(_knowledge)
        questions = await self._questions.hand_out(knowledge, sequence, answered_by, query.n, query.participant)
        return _json({"snapshot": self._questions.sequence, "questions": questions})

    async def _result_of(self, make: Callable[..., Any], *arguments: str) -> tuple[int, Any]:
        """The number of a snapshot and what is made of it, of the newest that is published; 404 where it cannot be
        made."""
        newest = self._published()
        if newest is None:
            raise HTTPException(404, "nothing is published yet\n")
        self._last_used = time.monotonic()
        if self._dropping is None:
            self._dropping = asyncio.get_running_loop().call_later(IDLE, self._drop)
        if (mark := fingerprint(newest)) != self._fingerprint:
            self._fingerprint, self._ready = mark, {}
        key = (make, *arguments)
        making = self._ready.get(key)
        if making is None:
            making = self._ready[key] = asyncio.ensure_future(run_in_threadpool(make, newest, *arguments))
            making.add_done_callback(lambda future: future.cancelled() or future.exception())  # told to those who wait
        try:
            return await asyncio.shield(making)
        except Exception as error:
            self._ready.pop(key, None)
            if isinstance(error, NoModel | CannotAsk):
                raise HTTPException(404, f"{error}\n") from None
            raise

    def _drop(self) -> None:
        """Let go of what nobody asks for, which may hold the counts of an old snapshot."""
        seconds = self._last_used + IDLE - time.monotonic()
        if seconds > 0 or not self._questions.clear():
            self._dropping = asyncio.get_running_loop().call_later(max(seconds, 1.0), self._drop)
        else:
            self._dropping, self._fingerprint, self._ready = None, "", {}


def _query_of(request: Request, kind: type[Struct]) -> Struct:
    """The query of a request; 400 for one that says something else."""
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise HTTPException(400, f"query: {error}\n") from None


async def _body_of(request: Request, kind: type[Struct]) -> Struct:
    """The JSON of a body; 415, 413, 408 or 400 where there is none."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Content-Type: expected application/json\n")
    try:
        return msgspec.json.decode(await body_of(request, MAX_BODY_BYTES), type=kind)
    except BadBody as error:
        raise HTTPException(error.status, f"{error}\n") from None
    except (ValueError, RecursionError) as error:  # msgspec.DecodeError among them
        raise HTTPException(400, f"{error}\n") from None


def _names(names: Questions) -> list[Four]:
    """What is asked; 400 where a question is none."""
    reading = QuestionReader(EventOptions())
    for number, question in enumerate(names.questions):
        reading.add(msgspec.structs.asdict(question), f"questions[{number}]")
    try:
        questions = reading.questions()
    except BadQuestion as error:
        raise HTTPException(400, f"{error}\n") from None
    if questions.note:
        raise HTTPException(400, f"{questions.note}\n")
    return questions.names


def _json(contents: Any) -> Response:
    return Response(_encode(contents), media_type="application/json")


def _answering(published: Published, name: str) -> tuple[int, Any]:
    """A model that was fitted. Raises `NoModel`: counts alone would have to be calibrated first, which takes long."""
    from stream_engine.evaluation.answering import Answering  # it loads scipy

    if not any(kind in published.artifacts for kind in PROBABILITY_MODELS) or (name and name not in PROBABILITY_MODELS):
        raise NoModel(
            f"got model {name[:100]!r}, expected one of {', '.join(PROBABILITY_MODELS)}, fitted by a refit; "
            "`stream-engine predict` also predicts by counts"
        )
    answering = Answering(published, name or None)
    rests_on = published.artifacts.get(answering.name, published.snapshot)
    return rests_on.sequence, answering


def _nearest(published: Published) -> tuple[int, Callable[[str, int], list[dict[str, Any]]]]:
    """The nearest objects of an object in the embedding, of those that it was compared with, directly or through
    others, by a tree. O(n log n); a question is O(k log n)."""
    from scipy.spatial import KDTree

    from stream_engine.evaluation.connection import components, members
    from stream_engine.exports.object_places import of_embedding

    names = published.snapshot.objects
    places = of_embedding(published, len(names))
    if places is None:
        raise NoModel("no embedding is fitted yet")
    placed_ids = np.flatnonzero(np.isfinite(places.points).all(axis=1))
    parts = [ids for ids in members(components(published.snapshot), placed_ids) if len(ids)]
    trees = [KDTree(places.points[ids]) for ids in parts]
    at = {names[i]: (part, number) for part, ids in enumerate(parts) for number, i in enumerate(ids.tolist())}

    def nearest(name: str, k: int) -> list[dict[str, Any]]:
        if (own := at.get(name)) is None:
            raise HTTPException(404, f"object: got {name[:100]!r}, which the embedding does not know\n")
        ids, tree = parts[own[0]], trees[own[0]]
        distances, numbers = map(np.atleast_1d, tree.query(places.points[ids[own[1]]], min(k + 1, len(ids))))
        pairs = zip(numbers.tolist(), distances.tolist())
        return [{"object": names[ids[i]], "distance": distance} for i, distance in pairs if i != own[1]][:k]

    return published.artifacts["embedding"].sequence, nearest


def _knowledge(published: Published) -> tuple[int, tuple[Knowledge, Callable[[str], np.ndarray]]]:
    """What is known when a question is chosen, and which questions a participant has answered."""
    evidence = knowledge_of(published.snapshot, published.artifacts.get("embedding"))
    return published.snapshot.sequence, (evidence, partial(codes_answered_by, published.snapshot))
