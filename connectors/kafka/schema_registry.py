"""Kafka messages with a schema: the wire format of Confluent's schema registry, or Avro of one known schema.

`DecodedTopic` returns such messages as JSON, at their positions; others stay as they are. A registry that is down, or
does not know an id yet, is like a broker that is down: nothing is returned, skipped or rejected until it answers.
"""

import base64
import json
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request

from connectors import LostRecords, Position, Record, Source, SourceFailed, UnusableSource
from connectors.avro import BadAvro, Schema
from connectors.kafka.source import KafkaSource
from connectors.web import Deadline, open_address

PREFIX_BYTES = 5  # bytes before the value
REQUEST_SECONDS = 10.0  # that one answer may take
SCHEMA_SECONDS = 30.0  # that all answers for one schema may take, those to its references included
AWAY_SECONDS = 5.0  # from which on the registry counts as away, while it is asked
MAX_REFERENCES, MAX_REFERENCE_DEPTH = 100, 10  # of a schema, references of references included
PAUSE = (0.5, 10.0)  # seconds between attempts, doubling
MAX_SCHEMA_BYTES = 1 << 24  # of all answers for one schema


class RegistryAway(RuntimeError):
    """The registry cannot tell a schema now; the same question may be answered later."""


class Registry:
    """A schema registry that speaks Confluent's REST API.

    Parameters
    ----------
    url : str
        Its address, `http://` or `https://`.
    user, password : str, optional
        For basic authentication.
    ca : str, optional
        PEM file of the authority that signed its certificate. By default the system's authorities.

    Raises
    ------
    UnusableSource
        If the address or the file cannot be used.
    """

    def __init__(self, url: str, user: str | None = None, password: str | None = None, ca: str | None = None):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            shown = url.rpartition("@")[2] if "@" in url else url
            raise UnusableSource(
                f"schema registry: got {shown!r}, expected http://HOST:PORT or https://HOST:PORT; user and password "
                "belong into [schema_registry]"
            )
        self.url = url.rstrip("/")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if user is not None or password is not None:
            pair = base64.b64encode(f"{user or ''}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {pair}"
        try:
            self._context = ssl.create_default_context(cafile=ca)
        except OSError as error:
            raise UnusableSource(f"schema registry: {ca}: {error.strerror or error}") from None

    def ask(
        self, path: str, seconds: float = REQUEST_SECONDS, most: int = MAX_SCHEMA_BYTES
    ) -> tuple[dict[str, Any], int]:
        """The answer to `GET path`, and its size. Raises `RegistryAway`, `SourceFailed`; `BadAvro` if it is larger than
        `most` bytes."""
        request = Request(self.url + path, headers=self._headers)
        try:
            with (
                Deadline(seconds) as deadline,
                open_address(request, deadline, seconds, self._context, redirects=False) as answer,
            ):
                text = answer.read(most + 1)
            if len(text) > most:
                raise BadAvro(f"the registry answers more than {MAX_SCHEMA_BYTES:,} bytes")
            content = json.loads(text)
        except HTTPError as error:
            error.close()
            if error.code in (401, 403):
                raise SourceFailed(
                    f"schema registry {self.url}: refused ({error.code}); check user and password in [schema_registry]"
                ) from None
            raise RegistryAway(f"it answers {error.code} to {path}") from None
        except BadAvro:
            raise
        except (OSError, ValueError, RecursionError, HTTPException) as error:
            raise RegistryAway(f"{getattr(error, 'reason', None) or error or type(error).__name__}") from None
        if not isinstance(content, dict) or not isinstance(content.get("schema"), str):
            raise RegistryAway(f"what it answers to {path} is no schema; is this its address?")
        return content, len(text)

    def schema(self, number: int) -> "RegisteredSchema":
        """The schema of an id. Raises `RegistryAway`, `SourceFailed`."""
        asking = _References(self)
        try:
            response = asking.answer(f"/schemas/ids/{number}")
            kind = response.get("schemaType", "AVRO")
            if kind != "AVRO":
                return RegisteredSchema(kind)
            asking.add(response)
            return RegisteredSchema(kind, Schema(response["schema"], asking.named))
        except (KeyError, TypeError, ValueError) as error:  # BadAvro, or references that are none
            return RegisteredSchema("AVRO", problem=str(error))


class _References:
    """The answers for one schema: `named` are the types of other schemas that it refers to. Each is asked for once, and
    all together have a deadline and bounds."""

    def __init__(self, registry: Registry):
        self.named: dict[str, Any] = {}
        self._registry, self._bytes, self._until = registry, 0, time.monotonic() + SCHEMA_SECONDS
        self._added: dict[str, bool] = {}  # path -> whether its types are in `named`; not yet: it refers to itself

    def answer(self, path: str) -> dict[str, Any]:
        """The answer to one question. Raises `RegistryAway`, `SourceFailed`, `BadAvro`."""
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise RegistryAway(f"it took more than {SCHEMA_SECONDS:g} s for the references of one schema")
        content, size = self._registry.ask(path, min(REQUEST_SECONDS, seconds), MAX_SCHEMA_BYTES - self._bytes)
        self._bytes += size
        return content

    def add(self, response: Mapping[str, Any], depth: int = 0) -> None:
        """Add the types that a schema refers to. Raises as `answer`."""
        for reference in response.get("references") or ():
            path = f"/subjects/{quote(str(reference['subject']), safe='')}/versions/{int(reference['version'])}"
            if self._added.get(path):
                continue
            if path in self._added:
                raise BadAvro(f"it refers to itself, by {path}")
            if depth >= MAX_REFERENCE_DEPTH or len(self._added) >= MAX_REFERENCES:
                raise BadAvro(
                    f"it has more than {MAX_REFERENCES} references, or nested more than {MAX_REFERENCE_DEPTH} deep"
                )
            self._added[path] = False
            other = self.answer(path)
            self.add(other, depth + 1)
            self.named |= Schema(other["schema"], self.named).named
            self._added[path] = True


class RegisteredSchema(NamedTuple):
    """What an id stands for: "AVRO", "JSON" or another kind, and how values are read."""

    kind: str
    schema: Schema | None = None
    problem: str = ""


class Schemas:
    """Makes JSON of messages.

    Parameters
    ----------
    registry : Registry, optional
        Where ids are looked up. Without it, every message is Avro of the schema `reader`, without an id.
    reader : Schema, optional
        The schema that Avro is read as; by default the one that it was written with.
    always : bool
        Whether a message without an id is rejected. By default it is what it looks like.
    """

    def __init__(self, registry: Registry | None, reader: Schema | None = None, always: bool = False):
        self.registry, self._reader, self._always = registry, reader, always
        self.schemas: dict[int, RegisteredSchema] = {}

    def missing(self, record: Record) -> int | None:
        """The id that has to be looked up before a message can be read."""
        number = self._id(record)
        return None if number is None or number in self.schemas else number

    def _id(self, record: Record) -> int | None:
        value = record.value
        framed = self.registry is not None and len(value) >= PREFIX_BYTES and value[0] == 0 and not record.problem
        return int.from_bytes(value[1:PREFIX_BYTES], "big") if framed else None

    def decoded(self, record: Record) -> Record:
        """A message as JSON; one that cannot be read gets its problem."""
        if record.problem or not record.value:
            return record
        try:
            number = self._id(record)
            if number is not None:
                value = self._value(self.schemas[number], number, record.value[PREFIX_BYTES:])
            elif self.registry is None and self._reader is not None:
                value = self._reader.as_json(record.value)
            elif self._always:
                raise BadAvro("it has no id of a schema, which begins with a zero byte")
            else:
                return record
        except BadAvro as error:
            return record._replace(problem=f"the message cannot be read: {error}")
        return record._replace(value=value, format="json")

    def _value(self, registered: RegisteredSchema, number: int, value: bytes) -> bytes:
        if registered.kind == "JSON":
            return value
        if registered.schema is None:
            raise BadAvro(
                f"schema {number}: {registered.problem or f'{registered.kind} is not read, only AVRO and JSON'}"
            )
        return registered.schema.as_json(value, self._reader)


class DecodedTopic(Source):
    """A topic whose messages are handed out as JSON, in their order, when the schemas of all before are known."""

    def __init__(self, topic: Source, schemas: Schemas):
        self._topic, self._schemas = topic, schemas
        self._waiting: deque[Record] = deque()
        self._asking: tuple[int, threading.Thread, list[RegisteredSchema | Exception], float] | None = None
        self._next, self._pause = 0.0, PAUSE[0]
        self._away_since: float | None = None
        self._why = ""  # it is away
        self._notices: list[str] = []
        self._opened: dict[str, Position] = {}  # starting points behind messages that are held
        self._losses: list[LostRecords] = []

    def poll(self, timeout: float) -> list[Record]:
        """Messages as JSON; none while a schema is not known. Raises what the topic raises, and `SourceFailed` where
        the registry refuses the credentials."""
        deadline = time.monotonic() + timeout
        if not self._waiting:
            self._waiting.extend(self._topic.poll(timeout))
        done: list[Record] = []
        while self._waiting:
            number = self._schemas.missing(self._waiting[0])
            if number is not None and not self._look_up(number, deadline if not done else 0.0):
                break
            done.append(self._schemas.decoded(self._waiting.popleft()))
        return done

    def _look_up(self, number: int, deadline: float) -> bool:
        """Whether a schema is known by now; waits until `deadline`. Asked in a thread, so that `poll` ends in time."""
        now = time.monotonic()
        if self._asking is None and now < self._next:
            time.sleep(max(0.0, min(self._next, deadline) - now))
        if self._asking is None and time.monotonic() >= self._next:
            answers: list[RegisteredSchema | Exception] = []
            thread = threading.Thread(target=self._ask, args=(number, answers), name="schema-registry", daemon=True)
            thread.start()
            self._asking = number, thread, answers, time.monotonic()
        if self._asking is None:
            return False
        number, thread, answers, began = self._asking
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            if (seconds := time.monotonic() - began) > AWAY_SECONDS:
                self._tell_away(number, f"no answer for {seconds:.0f} s")
            return False
        self._asking = None
        (answer,) = answers
        if isinstance(answer, RegistryAway):
            self._wait(number, answer)
        elif isinstance(answer, Exception):
            raise answer
        else:
            self._schemas.schemas[number] = answer
            self._tell_back()
        return isinstance(answer, RegisteredSchema)

    def _ask(self, number: int, answers: list[RegisteredSchema | Exception]) -> None:
        try:
            assert self._schemas.registry is not None
            answers.append(self._schemas.registry.schema(number))
        except Exception as error:  # raised or told by the thread that polls
            answers.append(error)

    def _wait(self, number: int, why: RegistryAway) -> None:
        now = time.monotonic()
        self._next, self._pause = now + self._pause, min(2 * self._pause, PAUSE[1])
        self._tell_away(number, str(why))

    def _tell_away(self, number: int, why: str) -> None:
        self._why = why
        if self._away_since is None:
            self._away_since, first = time.monotonic(), self._waiting[0]
            self._notices.append(
                f"schema registry {self._url}: no schema {number} for {first.partition}@{first.offset} ({why}); "
                "trying again, nothing is read until it is there"
            )

    def _tell_back(self) -> None:
        self._next, self._pause = 0.0, PAUSE[0]
        if self._away_since is not None:
            seconds = time.monotonic() - self._away_since
            self._notices.append(f"schema registry {self._url}: answers again after {seconds:.0f} s")
            self._away_since = None

    @property
    def _url(self) -> str:
        return self._schemas.registry.url if self._schemas.registry else ""

    def finished(self) -> bool:
        return not self._waiting and self._topic.finished()

    def ready(self) -> bool:
        """Whether broker and registry answer."""
        return self._away_since is None and self._topic.ready()

    def away(self) -> str:
        """That of the broker; or the registry, and why."""
        if not self._topic.ready() or self._away_since is None:
            return self._topic.away()
        return f"schema registry {self._url}: {self._why}"

    def lag(self) -> Mapping[str, int]:
        """Messages that are not handed out yet."""
        waiting = Counter(record.partition for record in self._waiting)
        return {name: lag + waiting[name] for name, lag in self._topic.lag().items()}

    def lag_seconds(self) -> Mapping[str, float]:
        """Age of the last message, or of the first one that waits for its schema."""
        seconds = dict(self._topic.lag_seconds())
        for record in reversed(self._waiting):
            if record.time is not None:
                seconds[record.partition] = max(0.0, time.time() - record.time)
        return seconds

    def opened(self) -> Mapping[str, Position]:
        """Starting points; of a partition that went on elsewhere, once the messages before it are handed out."""
        self._opened |= self._topic.opened()
        before = {
            record.partition
            for record in self._waiting
            if (start := self._opened.get(record.partition))
            and (start.offset > record.offset or start.mark != record.mark)
        }
        opened = {name: start for name, start in self._opened.items() if name not in before}
        self._opened = {name: self._opened[name] for name in before}
        return opened

    def losses(self) -> list[LostRecords]:
        """Losses, with the starting points behind them."""
        self._losses += self._topic.losses()
        losses = [lost for lost in self._losses if lost.partition not in self._opened]
        self._losses = [lost for lost in self._losses if lost.partition in self._opened]
        return losses

    def published(self, positions: Mapping[str, Position]) -> None:
        self._topic.published(positions)

    def notices(self) -> list[str]:
        notices, self._notices = [*self._topic.notices(), *self._notices], []
        return notices

    def close(self) -> None:
        self._waiting.clear()
        self._topic.close()


def read_schema(path: str) -> Schema:
    """The Avro schema in a file (.avsc). Raises `UnusableSource`."""
    try:
        with open(path, "rb") as file:
            return Schema(file.read(MAX_SCHEMA_BYTES))
    except OSError as error:
        raise UnusableSource(f"{path}: {error.strerror}") from None
    except BadAvro as error:
        raise UnusableSource(f"{path}: {error}") from None


def open_topic(
    location: str,
    positions: Mapping[str, Position],
    *,
    registry: Mapping[str, Any] | None = None,
    schema: str | None = None,
    **options: Any,
) -> Source:
    """A topic, its messages as JSON where a registry (`Registry`'s arguments) or an Avro schema (a file) is named.

    `options` are `KafkaSource`'s. Raises `UnusableSource` if the format is "avro" and neither is named, or if one
    cannot be used.
    """
    avro = options.get("format") == "avro"
    if registry is None and schema is None:
        if avro:
            raise UnusableSource("format avro: a topic needs a schema registry (--schema-registry) or --schema")
        return KafkaSource(location, positions, **options)
    schemas = Schemas(*check_schemas(registry, schema), avro)
    return DecodedTopic(KafkaSource(location, positions, **options), schemas)


def check_schemas(registry: Mapping[str, Any] | None, schema: str | None) -> tuple[Registry | None, Schema | None]:
    """The registry, which is not asked yet, and the schema in a file. Raises `UnusableSource`."""
    return None if registry is None else Registry(**registry), None if schema is None else read_schema(schema)
