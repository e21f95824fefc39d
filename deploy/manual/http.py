"""The page of HTTP: every path that `--listen` serves."""

from deploy.manual.markdown import MADE, item

PATHS = {
    "/": "the live page: the report of the newest snapshot and live figures. HTML",
    "/page": "the report without the live figures. HTML",
    "/figures/{name}": "a figure of the report, as SVG or PDF",
    "/history": "accuracy, event rate and lag since the start, for the curves of the live page. JSON",
    "/object": "`?name=NAME`: the text of an object, if `[http] objects` is set. JSON",
    "/object/picture": "`?name=NAME`: the picture of an object, as JPEG",
    "/live": "live figures, once per second. Server-sent events",
    "/metrics": "metrics for Prometheus, see [Metrics](metrics.md). Text",
    "/healthz": "liveness: 200 while the loop runs, 503 with the reason when it hangs. Text",
    "/readyz": "readiness: 200 once state and source are ready, otherwise 503 with the reason. Text",
    "/snapshot": "`summary.json` of the newest snapshot. JSON",
    "/export/{name}": "an [export](../exports.md), such as `/export/k1.npz` or `/export/objects.csv`",
    "/models": "the models with their accuracy on held-out answers. JSON",
    "/docs": "redirects to `/docs/`, this manual. HTML",
    "/docs/": "index of the manual. HTML",
    "/docs/{page:path}": "a page of the manual, such as `/docs/reference/settings`; append `.md` for Markdown",
    "/progressive": "progressive validation: accuracy of predictions before each update. JSON",
}
ADMIN = {
    "/admin/snapshot": "take a snapshot now",
    "/admin/pause": "stop reading, and continue to serve",
    "/admin/resume": "resume reading",
    "/admin/refit": "`?kind=KIND`: run this refit on the newest snapshot",
    "/admin/log-level": "`?level=debug|info|warning|error`: set the log level",
}
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
    "/questions.json": "questions for jsPsych",
    "/questions.csv": "questions for PsychoPy",
    "/collected/{name}": "a file of the study, as stored",
    "/download": "all data of the study, as a ZIP",
    "/objects/{name}": "PUT: add an object; the body is its text, picture or sound",
    "/metrics": "metrics for Prometheus",
    "/healthz": "liveness",
    "/readyz": "readiness: whether answers are accepted",
}
INTRODUCTION = f"""# HTTP

{MADE}

`run --listen HOST:PORT` serves these paths to GET and HEAD. They are read-only. Responses have an `ETag` derived from
their content. If `[http] token` is set, all paths except the probes require `Authorization: Bearer TOKEN`. Other paths
are 404, other methods 405; too many downloads, builds or viewers 503 with `Retry-After`.
"""


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION, *(item(f"`{path}`: {says}.") for path, says in PATHS.items())]
    lines += ["", "## Administration", ""]
    lines += ["If `[http] admin_token` is set, a run accepts these by POST with that token.", ""]
    lines += [item(f"`{path}`: {says}.") for path, says in ADMIN.items()]
    lines += ["", "## Studies", ""]
    lines += ["`collect --listen HOST:PORT` serves these, and to the owner also all paths of a run.", ""]
    lines += [item(f"`{path}`: {says}.") for path, says in COLLECT.items()]
    return "\n".join(lines) + "\n"
