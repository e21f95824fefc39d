"""The page of HTTP: every path that `--listen` and `http.admin_listen` serve."""

from stream_engine.manual.markdown import MADE, item

PATHS = {
    "/": "the live page: the report of the newest snapshot, and what moves. HTML",
    "/page": "the report alone, as the live page fetches it. HTML",
    "/figures/{name}": "a figure of the report, as SVG or PDF",
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
    lines += ["`[http] admin_listen` with `admin_token` takes these by POST, and the probes and metrics by GET.", ""]
    lines += [item(f"`{path}`: {says}.") for path, says in ADMIN.items()]
    return "\n".join(lines) + "\n"
