"""The whole service: what a study keeps on disk, its two child processes, its HTTP side; until SIGTERM or SIGINT.

DIR/collect holds `answers.jsonl`, which the engine follows, `sessions.jsonl`, `refused.jsonl`, `secret` and `lock`; the
rest of DIR is an ordinary state. The logs are the study: the state can always be counted again from them.
"""

import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from connectors import Position
from connectors.disk import Disk, FolderInUse, FolderLock, write_whole
from connectors.files.readers import partition_of
from stream_engine.collect.access import Access
from stream_engine.collect.children import Child, Forward, QuestionRequests
from stream_engine.collect.gatekeeper import Gatekeeper
from stream_engine.collect.line_log import LineLog, of_study
from stream_engine.collect.origins import Origins
from stream_engine.collect.owner import PAUSED, Owner
from stream_engine.collect.page.words import words_of
from stream_engine.collect.participant_service import Logs, ParticipantService
from stream_engine.collect.question_maker import MakerSettings, Reply, Request
from stream_engine.collect.question_pool import Question, QuestionPool
from stream_engine.collect.routes import Routes
from stream_engine.collect.sessions import restored
from stream_engine.collect.stimuli import Stimuli, keep, stored_objects
from stream_engine.collect.study import Study, check_objects
from stream_engine.data.container import Corrupt
from stream_engine.data.descriptors import raised_limit
from stream_engine.data.logs import OUTPUT
from stream_engine.input.settings import loading as configuration
from stream_engine.input.settings.secret_values import encode_secret, hide_secrets
from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.http.listener import listen_on
from stream_engine.service.http.refusals import Refusals
from stream_engine.service.metrics import Metrics
from stream_engine.service.requests import Requests
from stream_engine.service.systemd import ServiceManager
from stream_engine.state.store import NoSuchSnapshot, StateInUse, Store

TICK_SECONDS = 0.05  # seconds between two looks at the children
LOOK_SECONDS = 2.0  # seconds between two looks for new objects
QUESTIONS_AT_ONCE = 500  # questions that the maker is asked for at once
MIN_READY_QUESTIONS = 250  # questions that lie ready, below which it is asked for more
SHUTDOWN = 60.0  # seconds that the engine has for its last snapshot
TOKEN = "STREAM_ENGINE_COLLECT_TOKEN"  # in the environment of the engine's process
STUDY, WORDS = "study.toml", "words.toml"  # in DIR/collect: copies of what was given, for a start without
_encode = msgspec.json.Encoder().encode


class Place(NamedTuple):
    """Where a study is and is served."""

    objects: str | None  # None: those that are kept in DIR/collect/objects
    state: Path
    listen: str
    config: str | None = None  # of the engine
    prefix: str = ""  # of all paths, where a proxy does not take it away
    behind_proxy: bool = False
    seed: int = 0
    allow_origins: tuple[str, ...] = ()  # pages that may ask and answer here
    study: str | None = None  # the study's file, of which a copy is kept
    words: str | None = None  # the file of the page's own words, likewise


def collect(place: Place, study: Study, log: FilteringBoundLogger, say: Callable[[str], None]) -> None:
    """Ask, take answers and learn, until told to stop. Raises `BadStimuli`, `BadSettings`, `StateInUse`, OSError."""
    folder = place.state / "collect"
    raised_limit()
    with ExitStack() as stack:
        requests, manager, heartbeat = Requests(), ServiceManager(), Heartbeat()
        requests.reloads.append(OUTPUT.reopen)
        manager.tell(STATUS="starting")
        stimuli = Stimuli(stored_objects(folder / "objects") if place.objects is None else place.objects)
        check_objects(study, stimuli.shown, place.study)
        settings = configuration.load(place.config, {})
        try:
            stack.callback(FolderLock(folder).release)
        except FolderInUse as error:
            raise StateInUse(f"{folder}: process {error.owner} is already collecting in this state") from None
        keep(stimuli, folder / "objects")
        words = words_of(study.texts.language, place.words)
        for file, name in ((place.study, STUDY), (place.words, WORDS)):
            if file is not None:
                write_whole(Disk(), folder / name, [Path(file).read_bytes()])
        access = Access(folder)
        logs = _logs(place.state, log)
        stack.callback(logs.close)
        answers = of_study(logs.answers.lines(), access.study, str(logs.answers.path))
        sessions = restored(answers, logs.sessions.lines())
        pool = QuestionPool(study, stimuli.names, access.study)
        people = ParticipantService(study, access, sessions, pool, logs)
        stack.enter_context(OUTPUT.losses_to(lambda: people.counts.update(["log lines lost"])))
        people.paused = (folder / PAUSED).exists()
        pictures = any(stimulus.media.startswith("image/") for stimulus in list(stimuli.shown.values()))
        shown_by_engine = stored_objects(folder / "objects") if pictures and settings.http.objects is None else None
        engine, token = _Engine(place, log, shown_by_engine), secrets.token_hex(32)
        os.environ[TOKEN] = token
        keeper, forward = (
            Gatekeeper(study, access, place.behind_proxy),
            Forward(lambda: engine.port, token, settings.http.tls_certificate is not None),
        )
        shown = hide_secrets(msgspec.to_builtins(settings, enc_hook=encode_secret))
        owner = Owner(people, stimuli, logs, access, keeper, forward, place.prefix, place.state, shown)
        owner.engine_runs = lambda: engine.child.alive
        routes = Routes(people, stimuli, keeper, owner, forward, words)
        application = _Prefix(Origins(routes.application(), place.allow_origins), place.prefix)
        refusals = Refusals(Metrics(CollectorRegistry()), log)
        listener = listen_on(application, place.listen, settings.http, refusals, log, stack, application.may_change)
        requests.reloads.append(listener.renew_certificate)
        base = f"{'https' if settings.http.tls_certificate else 'http'}://{listener.address}{place.prefix}"
        log.info("collecting", objects=len(stimuli.names), answers=sessions.total)
        say(f"participants: {base}/ask")
        say(f"owner: {base}/owner?token={access.owner}")
        maker = _Maker(place, study, people, stimuli, log)
        stack.enter_context(requests.from_signals())  # before, there is nothing to end
        status = lambda: f"{sessions.total:,} answers"  # noqa: E731
        with manager.watching(heartbeat.wedged, status):
            _tend(requests, heartbeat, manager, engine, maker, stimuli, folder / "objects", log)


def as_before(file: str | None, state: str, name: str) -> str | None:
    """A file that was given; else the copy of the one that the study was last given, where there is one."""
    kept_one = Path(state) / "collect" / name
    return file or (str(kept_one) if kept_one.exists() else None)


class _Engine:
    """The process that follows the log, on a port that is free when it starts."""

    def __init__(self, place: Place, log: FilteringBoundLogger, pictures: Path | None = None):
        self._place, self._answers = place, place.state / "collect" / "answers.jsonl"
        self._pictures = pictures  # of objects, for the map
        self.port = 0
        self.child = Child("stream_engine.collect.engine_process", self._first, log)

    def _first(self) -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        overrides: dict[str, Any] = {
            "source": [str(self._answers)],
            "state": str(self._place.state),
            "follow": True,
            "listen": f"127.0.0.1:{self.port}",
            "http.token": {"env": TOKEN},
            "http.show_workers": True,  # to the owner, whose page it is
        }
        if self._pictures is not None:
            overrides["http.objects"] = str(self._pictures)
        if self._place.config is None:
            overrides["snapshot.interval"] = 15.0
        again = made_elsewhere(self._place.state, self._answers)
        return _encode({"config": self._place.config, "overrides": overrides, "start_over": again})


class _Maker:
    """The process that chooses questions, told what was asked, its questions put into the pool."""

    def __init__(
        self, place: Place, study: Study, people: ParticipantService, stimuli: Stimuli, log: FilteringBoundLogger
    ):
        self._people, self._stimuli, self._log = people, stimuli, log
        asking = study.asking
        settings = MakerSettings(
            str(place.state), asking.type, asking.strategy, asking.start, asking.random_share, place.seed
        )
        self.child = Child("stream_engine.collect.question_maker", lambda: _encode(settings), log, answers=True)
        self._making, self._names_told, self._about = QuestionRequests(self.child), 0, ""

    def tend(self) -> None:
        """Start it, tell it, hear it: what is due."""
        if self.child.keep():
            self._making.restarted()
            self._names_told = 0
        pool = self._people.pool
        if self._making.due(low=len(pool.ready) < MIN_READY_QUESTIONS):
            since = self._people.asked_since
            asked = [since.popleft() for _ in range(len(since))]
            names = self._stimuli.names[self._names_told :]
            self._names_told += len(names)
            n = QUESTIONS_AT_ONCE if len(pool.ready) < MIN_READY_QUESTIONS else 0
            self._making.request(_encode(Request(time.time(), n, names, asked)))
        if line := self._making.reply():
            self._take(msgspec.json.decode(line, type=Reply))

    def _take(self, reply: Reply) -> None:
        questions = [Question(three, sampler, propensity) for three, sampler, propensity in reply.questions]
        pool = self._people.pool
        if reply.fresh:
            pool.refill(questions)
        else:
            pool.ready.extend(questions)
        self._people.ellipse = reply.ellipse
        if reply.about != self._about:
            self._about = reply.about
            self._log.info("questions", of=reply.about, ready=len(pool.ready), ellipse=reply.ellipse)


def _tend(
    requests: Requests,
    heartbeat: Heartbeat,
    manager: ServiceManager,
    engine: _Engine,
    maker: _Maker,
    stimuli: Stimuli,
    objects: Path,
    log: FilteringBoundLogger,
) -> None:
    """Keep the children at work and look for objects until told to stop; then let them end."""
    looked, advice = 0.0, ""
    try:
        while not requests.stop:
            heartbeat.tick()
            if requests.reload:
                requests.reload = False
                engine.child.signal(signal.SIGHUP)
                log.info("reloaded", what="log file, TLS certificate")
                manager.tell_reloaded()
            engine.child.keep()
            maker.tend()
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                if new := stimuli.look():
                    log.info("objects were added", n=len(new), objects=len(stimuli.names))
                    try:
                        keep(stimuli, objects)
                    except OSError as error:  # they are shown all the same
                        log.warning("objects could not be stored in the state", why=str(error))
                first = next((f"{where}: {why}" for where, why in stimuli.passed_over.items()), "")
                if first != advice:
                    advice = first
                    log.warning("skipped: not objects", n=len(stimuli.passed_over), first=first)
            time.sleep(TICK_SECONDS)
    finally:
        manager.stopping()
        maker.child.stop(5.0)
        engine.child.stop(SHUTDOWN)


def _logs(state: Path, log: FilteringBoundLogger) -> Logs:
    """The logs of a study, what a crash has left of them repaired. Raises OSError."""
    folder = state / "collect"
    answers = folder / "answers.jsonl"
    read = _positions(state).get(partition_of(str(answers)), Position(0)).offset
    logs = Logs(
        LineLog(answers, at_least=read), *(LineLog(folder / f"{name}.jsonl") for name in ("sessions", "refused"))
    )
    for file_log in logs:
        if file_log.torn or file_log.gap:
            log.warning(
                "the log ends with an incomplete line, after a crash",
                file=str(file_log.path),
                cut=file_log.torn,
                filled=file_log.gap,
            )
    return logs


def _positions(state: Path) -> Mapping[str, Position]:
    """What the newest snapshot has read; empty where there is none."""
    try:
        return Store(state, tell=lambda line: None).newest().positions
    except (NoSuchSnapshot, Corrupt, OSError):
        return {}


def made_elsewhere(state: Path, answers: Path) -> bool:
    """Whether a state was made from a log of answers at another place: that of a study which was copied here."""
    logs = [name for name in _positions(state) if name.endswith("/collect/answers.jsonl")]
    return bool(logs) and partition_of(str(answers)) not in logs


class _Prefix:
    """Paths below a prefix, where a proxy in front leaves it; without it they are found as well."""

    def __init__(self, inner: Origins, prefix: str):
        self._inner, self._prefix = inner, prefix

    def may_change(self, path: str, origin: str) -> bool:
        """Whether pages of an origin elsewhere may use a path."""
        return self._inner.allow(self._bare(path), origin)

    def _bare(self, path: str) -> str:
        return path.removeprefix(self._prefix) if path.startswith(self._prefix + "/") else path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._prefix:
            bare = self._bare(scope["path"])
            scope = {**scope, "path": bare, "raw_path": bare.encode()}
        await self._inner(scope, receive, send)
