"""Answers of the newest published fit while learning goes on: predictions, nearest objects, what to ask next.

What an answer needs is made of what is published once, in a thread, and used until there is something newer, or nobody
has asked for `IDLE` seconds. No model is fitted here, and no answer waits for the stream.

What to ask next, over HTTP: questions lie ready, and more are chosen in a thread before they run out.
"""

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

from stream_engine import asking
from stream_engine.asking.as_events import events
from stream_engine.asking.knowledge import CannotAsk, Knowledge, codes_answered_by, knowledge_of
from stream_engine.asking.queue import QuestionQueue
from stream_engine.evaluation import PROBABILITY_MODELS, NoModel
from stream_engine.evaluation.questions import BadQuestion, Four, QuestionReader
from stream_engine.formats.options import EventOptions
from stream_engine.service.context import HttpContext
from stream_engine.service.http.access import BadBody, Refusals, body_of
from stream_engine.service.http.built_files import NotNow, fingerprint, later
from stream_engine.service.http.paths import AskQuery, NearestQuery, Questions
from stream_engine.state.published import Published

AT_ONCE, LOW = 2000, 500  # questions that are chosen at once, and how few are left when more are
AGAIN, SHARE = 10.0, 20.0  # seconds between choices where one would do, or times that the last one took


class LiveQuestions:
    """A queue of questions, and what they were chosen from. Used from one event loop."""

    def __init__(self) -> None:
        self._queue = QuestionQueue(asking.DEFAULT, asking.DEFAULT, asking.RANDOM_SHARE)
        self._of: Knowledge | None = None
        self.sequence = 0  # of the snapshot
        self._choosing: asyncio.Task[None] | None = None
        self._chosen = self._took = 0.0  # when they were chosen last, and how long that took
        self._is_short = False  # whether there were no more
        self._repeating = asyncio.Lock()

    async def hand_out(
        self, known: Knowledge, sequence: int, answered: Callable[[str], np.ndarray], n: int, participant: str
    ) -> list[dict[str, Any]]:
        """Up to n questions, each once until it is given up; when none are left, a participant gets those that they
        were not asked themselves and have not `answered`."""
        while (choosing := self._choose_if_due(known, sequence, n)) and n > self._queue.n_ready:
            await asyncio.shield(choosing)
        questions = self._noted(self._queue.take(min(n, self._queue.n_ready)), participant)
        if len(questions) < n and participant:
            async with self._repeating:
                answered_codes = await run_in_threadpool(answered, participant)
                repeated = await run_in_threadpool(
                    self._queue.random_for, participant, answered_codes, n - len(questions)
                )
                questions += self._noted(repeated, participant)
        return questions

    def clear(self) -> bool:
        """Let go of what is known, unless questions are being chosen; whether that was done."""
        if self._choosing is not None and not self._choosing.done():
            return False
        self._of = None
        self._queue.clear()
        return True

    def _noted(self, chosen: asking.ChosenQuestions, participant: str) -> list[dict[str, Any]]:
        known, now = self._queue.knowledge, time.time()
        for row in chosen.rows.tolist():
            self._queue.note_asked(now, tuple(known.names[i] for i in row), participant)
        participant_field = {"worker": participant} if participant else {}
        return [question | participant_field for question in events(chosen, known, "pick")]

    def _choose_if_due(self, known: Knowledge, sequence: int, n: int) -> asyncio.Task[None] | None:
        """The choice that is under way, if one is. Questions are chosen because few are left, because some may have
        been given up since none were, or because there is a newer snapshot; the last two not all the time."""
        if self._choosing is not None and not self._choosing.done():
            return self._choosing
        due = time.monotonic() - self._chosen > max(AGAIN, SHARE * self._took)
        is_short = due and n > self._queue.n_ready if self._is_short else self._queue.n_ready < LOW
        if self._of is None or is_short or (due and known is not self._of):
            self._choosing = asyncio.create_task(self._choose(known, sequence))
            return self._choosing
        return None

    async def _choose(self, known: Knowledge, sequence: int) -> None:
        began = time.monotonic()
        self._queue.adopt(await run_in_threadpool(self._queue.choose, known, sequence, time.time(), AT_ONCE))
        self._of, self.sequence, self._is_short = known, sequence, self._queue.n_ready < LOW
        self._chosen = time.monotonic()
        self._took = self._chosen - began


MOST_BODY = 1 << 20  # bytes
MOST_AT_ONCE = 64  # bodies that are being read; beyond it 503
IDLE = 60.0  # seconds without a request, after which nothing is kept ready
Struct = TypeVar("Struct", bound=msgspec.Struct)
_encode = msgspec.json.Encoder().encode


class LiveAnswers:
    """The routes."""

    def __init__(self, context: HttpContext, refusals: Refusals):
        self._published, self._refusals = context.published, refusals
        self._ready: dict[tuple[Any, ...], asyncio.Future[Any]] = {}
        self._of, self._used = "", 0.0  # the fingerprint of what they were made of; when they were asked for
        self._dropping: asyncio.TimerHandle | None = None
        self._reading = 0
        self._questions = LiveQuestions()

    def routes(self) -> list[Route]:
        """What an application serves."""
        return [
            Route("/predict", self._predict, methods=["POST"]),
            Route("/nearest", self._nearest),
            Route("/ask", self._ask),
        ]

    async def _predict(self, request: Request) -> Response:
        if self._reading >= MOST_AT_ONCE:
            return later(NotNow(f"{MOST_AT_ONCE} predictions are being read", "busy"), self._refusals)
        self._reading += 1
        try:
            posted = await _posted(request, Questions)
        finally:
            self._reading -= 1
        names = _names(posted)
        sequence, answering = await self._made(_answering, posted.model)
        answers = answering.answers(names)
        each = zip(answers.p.tolist(), answers.by.tolist())
        predictions = [{"p": None if p != p else p, "model": by} for p, by in each]
        return _json({"snapshot": sequence, "model": answering.name, "predictions": predictions})

    async def _nearest(self, request: Request) -> Response:
        query = _queried(request, NearestQuery)
        sequence, nearest = await self._made(_nearest)
        return _json({"snapshot": sequence, "object": query.object, "nearest": nearest(query.object, query.k)})

    async def _ask(self, request: Request) -> Response:
        if request.headers.get("sec-fetch-site") == "cross-site":  # a page elsewhere could use all questions up
            raise HTTPException(403, "questions are not for pages of other sites\n")
        query = _queried(request, AskQuery)
        sequence, (known, answered) = await self._made(_known)
        questions = await self._questions.hand_out(known, sequence, answered, query.n, query.participant)
        return _json({"snapshot": self._questions.sequence, "questions": questions})

    async def _made(self, make: Callable[..., Any], *of: str) -> tuple[int, Any]:
        """The number of a snapshot and what is made of it, of the newest that is published; 404 where it cannot be
        made."""
        published = self._published()
        if published is None:
            raise HTTPException(404, "nothing is published yet\n")
        self._used = time.monotonic()
        if self._dropping is None:
            self._dropping = asyncio.get_running_loop().call_later(IDLE, self._drop)
        if (mark := fingerprint(published)) != self._of:
            self._of, self._ready = mark, {}
        key = (make, *of)
        making = self._ready.get(key)
        if making is None:
            making = self._ready[key] = asyncio.ensure_future(run_in_threadpool(make, published, *of))
            making.add_done_callback(lambda done: done.cancelled() or done.exception())  # told to those who wait
        try:
            return await asyncio.shield(making)
        except Exception as error:
            self._ready.pop(key, None)
            if isinstance(error, NoModel | CannotAsk):
                raise HTTPException(404, f"{error}\n") from None
            raise

    def _drop(self) -> None:
        """Let go of what nobody asks for, which may hold the counts of an old snapshot."""
        seconds = self._used + IDLE - time.monotonic()
        if seconds > 0 or not self._questions.clear():
            self._dropping = asyncio.get_running_loop().call_later(max(seconds, 1.0), self._drop)
        else:
            self._dropping, self._of, self._ready = None, "", {}


def _queried(request: Request, kind: type[Struct]) -> Struct:
    """The query of a request; 400 for one that says something else."""
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise HTTPException(400, f"query: {error}\n") from None


async def _posted(request: Request, kind: type[Struct]) -> Struct:
    """The JSON of a body; 415, 413, 408 or 400 where there is none."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Content-Type: expected application/json\n")
    try:
        return msgspec.json.decode(await body_of(request, MOST_BODY), type=kind)
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


# ---- what is made of what is published, with the number of the snapshot that it rests on


def _answering(published: Published, name: str) -> tuple[int, Any]:
    """A model that was fitted. Raises `NoModel`: counts alone would have to be calibrated first, which takes long."""
    from stream_engine.evaluation.answering import Answering  # it loads scipy

    if not any(kind in published.artifacts for kind in PROBABILITY_MODELS) or (name and name not in PROBABILITY_MODELS):
        raise NoModel(
            f"got model {name[:100]!r}, expected one of {', '.join(PROBABILITY_MODELS)}, fitted by a refit; "
            "`stream-engine predict` also predicts by counts"
        )
    answering = Answering(published, name or None)
    fitted = published.artifacts.get(answering.name, published.snapshot)
    return fitted.sequence, answering


def _nearest(published: Published) -> tuple[int, Callable[[str, int], list[dict[str, Any]]]]:
    """The nearest objects of an object in the embedding, by a tree. O(n log n); a question is O(k log n)."""
    from scipy.spatial import KDTree

    from stream_engine.exports.object_places import of_embedding

    names = published.snapshot.objects
    places = of_embedding(published, len(names))
    if places is None:
        raise NoModel("no embedding is fitted yet")
    placed = np.flatnonzero(np.isfinite(places.points).all(axis=1))
    points, names = places.points[placed], tuple(names[i] for i in placed.tolist())
    tree, number = KDTree(points), {name: i for i, name in enumerate(names)}

    def nearest(name: str, k: int) -> list[dict[str, Any]]:
        if (mine := number.get(name)) is None:
            raise HTTPException(404, f"object: got {name[:100]!r}, which the embedding does not know\n")
        distances, at = map(np.atleast_1d, tree.query(points[mine], min(k + 1, len(names))))
        each = zip(at.tolist(), distances.tolist())
        return [{"object": names[i], "distance": distance} for i, distance in each if i != mine][:k]

    return published.artifacts["embedding"].sequence, nearest


def _known(published: Published) -> tuple[int, tuple[Knowledge, Callable[[str], np.ndarray]]]:
    """What is known when a question is chosen, and which questions a participant has answered."""
    evidence = knowledge_of(published.snapshot, published.artifacts.get("embedding"))
    return published.snapshot.sequence, (evidence, partial(codes_answered_by, published.snapshot))
