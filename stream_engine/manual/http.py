"""The page of HTTP: every path that `--listen` serves."""

from stream_engine.manual.markdown import MADE, item

PATHS = {
    "/": "the live page: the report of the newest snapshot, and what moves. HTML",
    "/page": "the report alone, as the live page fetches it. HTML",
    "/figures/{name}": "a figure of the report, as SVG or PDF",
    "/history": "accuracy, rate and unread since the start, for the curves of the live page. JSON",
    "/object": "`?name=NAME`: the text of an object, where `[http] objects` lists some. JSON",
    "/object/picture": "`?name=NAME`: its picture, as JPEG",
    "/live": "what moves, once a second. Server-sent events",
    "/metrics": "figures for Prometheus, see [the page of metrics](metrics.md). Text",
    "/healthz": "200 while the loop turns, 503 with the reason when it hangs. Text",
    "/readyz": "200 once the state is restored and the source is reached, 503 with the reason else. Text",
    "/snapshot": "`summary.json` of the newest snapshot. JSON",
    "/export/{name}": "a file of [the exports](../exports.md), such as `/export/k1.npz` or `/export/objects.csv`",
    "/models": "the table of models with their held-out figures. JSON",
    "/docs": "this manual; leads to `/docs/`. HTML",
    "/docs/": "its index. HTML",
    "/docs/{page:path}": "a page of it, such as `/docs/reference/settings`; with `.md` behind it as Markdown",
    "/progressive": "how well comparisons were foretold before they were learned. JSON",
}
ADMIN = {
    "/admin/snapshot": "take a snapshot now",
    "/admin/pause": "read no more, and keep serving",
    "/admin/resume": "go on",
    "/admin/refit": "`?kind=KIND`: that refit of the newest snapshot",
    "/admin/log-level": "`?level=debug|info|warning|error`",
}
COLLECT = {
    "/ask": "the participant's page. HTML",
    "/ask.js": "its script",
    "/ask.css": "its style",
    "/questions": "`?n=&worker=`: questions for a participant. JSON",
    "/answers": "POST: an answer or a list of answers; 200 once they are on the disk. JSON",
    "/consent": "POST: that a participant consents. JSON",
    "/media/{name:path}": "a picture or sound that is asked about",
    "/favicon.ico": "nothing",
    "/owner": "`?token=`: lets the owner in, and leads to the live page",
    "/study": "how the study stands. JSON",
    "/links": "links for participants. CSV",
    "/participants.csv": "who answered how much",
    "/questions.json": "questions for jsPsych",
    "/questions.csv": "questions for PsychoPy",
    "/collected/{name}": "a file of the study, as it is on the disk",
    "/download": "everything of a study, as a ZIP",
    "/objects/{name}": "PUT: one more object, of which the body is the text, picture or sound",
    "/metrics": "figures for Prometheus",
    "/healthz": "whether the process is alive",
    "/readyz": "whether answers can be taken",
}
INTRODUCTION = f"""# HTTP

{MADE}

`run --listen HOST:PORT` serves these to GET and HEAD; nothing can be changed through them. An answer carries an `ETag`
that follows its content. Where `[http] token` is set, everything but the probes asks for `Authorization: Bearer TOKEN`.
Other paths are 404, other methods 405; too many downloads, builds or viewers 503 with `Retry-After`.
"""


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION, *(item(f"`{path}`: {says}.") for path, says in PATHS.items())]
    lines += ["", "## What can be asked of a run", ""]
    lines += ["Where `[http] admin_token` is set, these are taken by POST with that token.", ""]
    lines += [item(f"`{path}`: {says}.") for path, says in ADMIN.items()]
    lines += ["", "## A study that asks", ""]
    lines += ["`collect --listen HOST:PORT` serves these, and to the owner all that a run serves.", ""]
    lines += [item(f"`{path}`: {says}.") for path, says in COLLECT.items()]
    return "\n".join(lines) + "\n"
