"""The page of HTTP: every path that `--listen` serves."""

from deploy.manual.markdown import MADE, item
from stream_engine.service.http.paths import ADMIN, READ

COLLECT = {
    "/ask": "the participant's page. HTML",
    "/ask.js": "its script",
    "/ask.css": "its style",
    "/questions": "`?n=&worker=`: questions for a participant. JSON",
    "/answers": "POST: an answer or a list of answers; 200 once they are durable. JSON",
    "/consent": "POST: record that a participant consents. JSON",
    "/media/{name:path}": "a picture or sound of an object",
    "/favicon.ico": "nothing",
    "/owner": "`?token=`: logs the owner in and redirects to the live page",
    "/study": "status of the study. JSON",
    "/": "the owner's page: participants, links, downloads, a pause, and the report. HTML",
    "/participants.json": "participants, their progress and flags. JSON",
    "/pause": 'POST `{"paused": true}` or false: stop asking, or continue',
    "/links": "links for participants. CSV",
    "/participants.csv": "number of answers per participant. CSV",
    "/collected/{name}": "a file of the study, as stored",
    "/download": "all data of the study, as a ZIP",
    "/predict": "POST, for the owner: as a run answers it. JSON",
    "/objects/{name}": "PUT: add an object; the body is its text, picture or sound",
    "/metrics": "metrics for Prometheus",
    "/healthz": "liveness",
    "/readyz": "readiness: whether answers are accepted",
}
INTRODUCTION = f"""# HTTP

{MADE}

`run --listen HOST:PORT` serves these paths to GET and HEAD, and `/predict` to POST. `/openapi.json` describes them for
programs. They are read-only. Files have an `ETag` derived from their content. If `[http] token` is set, all paths
except the probes require `Authorization: Bearer TOKEN`. Other paths
are 404, other methods 405; too many downloads, builds or viewers 503 with `Retry-After`.
"""


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION, *(item(f"`{path}`: {operation.says}.") for path, operation in READ.items())]
    lines += ["", "## Administration", ""]
    lines += ["If `[http] admin_token` is set, a run accepts these by POST with that token.", ""]
    lines += [item(f"`{path}`: {operation.says}.") for path, operation in ADMIN.items()]
    lines += ["", "## Studies", ""]
    lines += ["`collect --listen HOST:PORT` serves these, and to the owner also all paths of a run.", ""]
    lines += [item(f"`{path}`: {says}.") for path, says in COLLECT.items()]
    return "\n".join(lines) + "\n"
