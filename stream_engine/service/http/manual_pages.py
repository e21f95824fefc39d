"""`/docs`: the manual that is shipped with the package, as pages of HTML, and each as Markdown (`/docs/files.md`);
`/docs/llms.txt` lists them.

Pages are made when they are asked for and kept. What stands in them as HTML is shown, not obeyed; they have no script.
"""

import base64
import hashlib
import html
import posixpath
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

PACKAGE = Path(__file__).parents[2]
DOCS = PACKAGE / "docs"
LOOSE = {"DESIGN": PACKAGE / "DESIGN.md"}  # pages that lie above the folder of the others
INDEX = "index"
LIST = "llms.txt"  # every page with a line of what it is about, for programs that read Markdown
_OWN_STYLE = """
main { padding-bottom: 4rem; } pre { overflow-x: auto; background: var(--panel); padding: .75rem; }
code { background: var(--panel); padding: 0 .2em; } pre code { padding: 0; } li { max-width: 46rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
img { max-width: 100%; background: #fff; }
th, td { border: 1px solid var(--line); padding: .2rem .5rem; text-align: left; vertical-align: top; }
"""
_PICTURE = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'", "Cache-Control": "no-cache"}


def routes() -> list[Route]:
    """What an application serves."""
    return [Route("/docs", _to_index), Route("/docs/", _page), Route("/docs/{page:path}", _page)]


async def _to_index(request: Request) -> Response:
    return RedirectResponse("docs/")  # relative: a proxy may have put a prefix before it


async def _page(request: Request) -> Response:
    asked = request.path_params.get("page", "") or INDEX
    name = asked.removesuffix(".md")
    if asked in pictures():
        return FileResponse(pictures()[asked], media_type="image/svg+xml", headers=_PICTURE)
    if asked == LIST:
        return PlainTextResponse((DOCS / LIST).read_text(encoding="utf-8"))
    if name not in pages():
        return PlainTextResponse(f"no such page: {asked[:100]}; /docs/ lists them\n", 404)
    if asked.endswith(".md"):
        return PlainTextResponse(pages()[name].read_text(encoding="utf-8"), media_type="text/markdown")
    return HTMLResponse(rendered(name), headers={"Content-Security-Policy": _policy(), "Cache-Control": "no-cache"})


@cache
def pages() -> dict[str, Path]:
    """Every page by its name, such as `reference/settings`: nothing else is served."""
    below = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    return below | LOOSE


@cache
def pictures() -> dict[str, Path]:
    """Every picture that pages show, by its path below the manual."""
    return {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.svg"))}


@cache
def rendered(name: str) -> str:
    """A page as HTML. Its links to other pages are relative; those to files outside the manual are left as text."""
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(pages()[name].read_text(encoding="utf-8"))
    title = name
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            told = tokens[place + 1].content
            token.attrSet("id", slug(told))
            title = told if token.tag == "h1" else title
        _follow(token.children or [], name)
    body = MarkdownIt("commonmark", {"html": False}).enable("table").renderer.render(tokens, MarkdownIt().options, {})
    to_index = "../" * name.count("/") + "./"
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_style()}</style>"
    )
    links = (
        f'<a href="{to_index}">The manual</a> · <a href="{to_index}../">The live page</a> · '
        f'<a href="{to_index}{name}.md">This page as Markdown</a>'
    )
    top = f'<header><nav aria-label="Manual">{links}</nav></header>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{top}<main>{body}</main></body></html>'


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it.

    >>> slug("What can be `asked` of a run?")
    'what-can-be-asked-of-a-run'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def _follow(tokens: list[Token], name: str) -> None:
    """Make links lead to pages rather than to their files; those to what is no page become text."""
    inside = False
    for token in tokens:
        if token.type == "link_open":
            aim = _aim(str(token.attrGet("href") or ""), name)
            inside = aim is not None
            if aim is not None:
                token.attrSet("href", aim)
        if token.type in ("link_open", "link_close") and not inside:
            token.type, token.content = "text", ""


def _aim(target: str, name: str) -> str | None:
    """Where a link of a page leads, seen from it; None: to no page."""
    if "://" in target or target.startswith("#"):
        return target
    path, sharp, anchor = target.partition("#")
    folder = ".." if name in LOOSE else posixpath.dirname(name)  # a loose page is served beside the others
    aim = posixpath.normpath(posixpath.join(folder, path)).removesuffix(".md")
    aim = aim.removeprefix("../docs/") if aim.startswith("../docs/") else aim.removeprefix("../")
    return posixpath.relpath(aim, posixpath.dirname(name) or ".") + sharp + anchor if aim in pages() else None


@cache
def _style() -> str:
    return (files("stream_engine.report") / "page.css").read_text(encoding="utf-8") + _OWN_STYLE


@cache
def _policy() -> str:
    style = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src 'self'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
