"""Every path that a run serves, declared once: what it takes, what it gives. From it follow the document that
`/openapi.json` answers, the manual's page about HTTP, and what requests to `live_answers` are checked against."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from stream_engine.data import installed_version, logs
from stream_engine.data.comparisons import MAX_NAME_BYTES
from stream_engine.evaluation import PROBABILITY_MODELS
from stream_engine.refits import REFITS

MAX_QUESTIONS = 1000  # of one request to predict
MAX_ASKED = 100  # questions that one request gets
MAX_NEAREST = 1000

_Name = Annotated[str, Meta(max_length=MAX_NAME_BYTES)]
_Pair = Annotated[list[str | int], Meta(min_length=2, max_length=2)]
_Participant = Annotated[_Name, Meta(description="A participant; empty: any participant.")]


class Question(Struct):
    """Is `left` nearer to `anchor` than `right`? Or: are the two objects of `near` more alike than those of `far`?"""

    anchor: str | int | None = None
    left: str | int | None = None
    right: str | int | None = None
    near: _Pair | None = None
    far: _Pair | None = None


class Questions(Struct, forbid_unknown_fields=True):
    """What to predict, and by which model."""

    questions: Annotated[list[Question], Meta(min_length=1, max_length=MAX_QUESTIONS)]
    model: Annotated[
        str,
        Meta(
            description="Empty: the model with the lowest held-out log loss.",
            extra_json_schema={"enum": ["", *PROBABILITY_MODELS]},
        ),
    ] = ""


class Prediction(Struct):
    """`p`: probability that the first object (pair) is nearer; null if the model does not know an object."""

    p: float | None
    model: str


class Predictions(Struct):
    """One prediction for each question, in the order of the questions."""

    snapshot: int
    model: str
    predictions: list[Prediction]


class NearestQuery(Struct, forbid_unknown_fields=True):
    """Whose neighbours, and how many."""

    object: Annotated[_Name, Meta(description="Name of an object.")]
    k: Annotated[int, Meta(ge=1, le=MAX_NEAREST, description="Number of neighbours.")] = 5


class Neighbour(Struct):
    """An object with its distance in the embedding."""

    object: str
    distance: float


class Nearest(Struct):
    """The nearest objects in the embedding, the nearest first."""

    snapshot: int
    object: str
    nearest: list[Neighbour]


class AskQuery(Struct, forbid_unknown_fields=True):
    """How many questions, and for whom."""

    n: Annotated[int, Meta(ge=1, le=MAX_ASKED, description="Number of questions.")] = 10
    participant: _Participant = ""


class Asked(Struct):
    """A question as the event that answers it, without the answer: add `chosen`. `worker` is the participant."""

    id: str
    type: Literal["pick"]
    anchor: str
    shown: tuple[str, str]
    sampler: str
    worker: str = ""
    propensity: float | None = None


class AskedQuestions(Struct):
    """Questions sorted by priority; fewer than n, or none, where fewer are left."""

    snapshot: int
    questions: list[Asked]


class ObjectQuery(Struct):
    """Which object."""

    name: str


class RefitQuery(Struct):
    """Which refit."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": list(REFITS)})]


class LogLevelQuery(Struct):
    """Which level."""

    level: Annotated[str, Meta(extra_json_schema={"enum": list(logs.LEVELS)})]


class Operation(NamedTuple):
    """What a path does, what it gives (a media type, or the type of its JSON), and what it takes."""

    says: str
    gives: Any
    query: type[Struct] | None = None
    body: type[Struct] | None = None


HTML, TEXT, ANY = "text/html", "text/plain", "application/octet-stream"
_Json = dict[str, Any]
READ = {
    "/": Operation("the live page: the report of the newest snapshot and live figures. HTML", HTML),
    "/page": Operation("the part of `/` that the browser inserts and renews: the report, without styles. HTML", HTML),
    "/figures/{name}": Operation("a figure of the report, as SVG or PDF", ANY),
    "/history": Operation("accuracy, event rate and lag since the start, for the curves of the live page. JSON", _Json),
    "/object": Operation("`?name=NAME`: the text of an object, if `[http] objects` is set. JSON", _Json, ObjectQuery),
    "/object/picture": Operation("`?name=NAME`: the picture of an object, as JPEG", "image/jpeg", ObjectQuery),
    "/live": Operation("live figures, once per second. Server-sent events", "text/event-stream"),
    "/metrics": Operation("metrics for Prometheus. Text", TEXT),
    "/healthz": Operation("liveness: 200 while the loop runs, 503 with the reason when it hangs. Text", TEXT),
    "/readyz": Operation("readiness: 200 once state and source are ready, otherwise 503 with the reason. Text", TEXT),
    "/snapshot": Operation("`summary.json` of the newest snapshot. JSON", _Json),
    "/export/{name}": Operation(
        "a file of an export, such as `/export/k1.npz` or `/export/objects.csv`; `?raw=1`: CSV with texts unchanged",
        ANY,
    ),
    "/models": Operation("the models with their accuracy on held-out answers. JSON", list[_Json]),
    "/predict": Operation(
        "POST: the probability of the answer to each question, from the newest fit. JSON", Predictions, body=Questions
    ),
    "/nearest": Operation("`?object=NAME&k=5`: the nearest objects in the embedding. JSON", Nearest, NearestQuery),
    "/ask": Operation("`?n=10&participant=NAME`: the questions to ask next. JSON", AskedQuestions, AskQuery),
    "/openapi.json": Operation("these paths, as an OpenAPI document. JSON", _Json),
    "/docs": Operation("redirects to `/docs/`, this manual. HTML", HTML),
    "/docs/": Operation("index of the manual. HTML", HTML),
    "/docs/{page:path}": Operation(
        "a page of the manual, such as `/docs/reference/settings`; append `.md` for Markdown", HTML
    ),
    "/progressive": Operation("progressive validation: accuracy of predictions before each update. JSON", _Json),
}
ADMIN = {
    "/admin/snapshot": Operation("take a snapshot now", _Json),
    "/admin/pause": Operation("stop reading, and continue to serve", _Json),
    "/admin/resume": Operation("resume reading", _Json),
    "/admin/refit": Operation("`?kind=KIND`: run this refit on the newest snapshot", _Json, RefitQuery),
    "/admin/log-level": Operation("`?level=debug|info|warning|error`: set the log level", _Json, LogLevelQuery),
}
_ERRORS = {
    "4XX": "What is wrong with the request, in one line.",
    "503": "Not now; try again later.",
}


def document(admin: bool) -> dict[str, Any]:
    """The paths as an OpenAPI 3.1 document; with `admin` those of /admin, too."""
    operations = READ | (ADMIN if admin else {})
    types = {
        kind
        for operation in operations.values()
        for kind in (operation.gives, operation.query, operation.body)
        if _is_json(kind)
    }
    kinds = sorted(types, key=str)
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(kinds, schemas))
    paths: dict[str, Any] = {}
    for path, operation in operations.items():
        method = "post" if operation.body or path in ADMIN else "get"
        bare = path.replace(":path", "")
        paths[bare] = {method: _operation(bare, operation, schema_of, components)}
    for operation in operations.values():
        if operation.query:
            components.pop(operation.query.__name__, None)  # its fields are parameters
    return {
        "openapi": "3.1.0",
        "info": {"title": "stream-engine", "version": installed_version()},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _is_json(kind: Any) -> bool:
    return kind is not None and not isinstance(kind, str)


def _operation(
    path: str, declared: Operation, schema_of: Mapping[Any, Any], components: Mapping[str, Any]
) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(.+?)}", path)
    ]
    if declared.query:
        query_schema = components[declared.query.__name__]
        for name, schema in query_schema["properties"].items():
            required = name in query_schema["required"]
            parameters.append({"name": name, "in": "query", "required": required, "schema": schema})
    media, schema = (
        ("application/json", schema_of[declared.gives])
        if _is_json(declared.gives)
        else (declared.gives, {"type": "string"})
    )
    refusals = {
        code: {"description": says, "content": {TEXT: {"schema": {"type": "string"}}}} for code, says in _ERRORS.items()
    }
    operation: dict[str, Any] = {
        "summary": declared.says,
        "parameters": parameters,
        "responses": {"2XX": {"description": "The answer.", "content": {media: {"schema": schema}}}, **refusals},
    }
    if declared.body:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema_of[declared.body]}},
        }
    return operation
