"""`/docs`: the manual that is shipped with the package, as pages of HTML without script, and each as Markdown
(`/docs/files.md`); `/docs/llms.txt` lists them."""

import html
import os.path
import posixpath
import re
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

from markdown_it import MarkdownIt
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

PACKAGE = Path(__file__).parents[2]
DOCS = PACKAGE / "docs"
TYPES = {".md": "text/markdown", ".svg": "image/svg+xml", ".txt": "text/plain"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}
_OWN_STYLE = """
main { padding-bottom: 4rem; } pre { overflow-x: auto; background: var(--panel); padding: .75rem; }
code { background: var(--panel); padding: 0 .2em; } pre code { padding: 0; } li { max-width: 46rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
img { max-width: 100%; background: #fff; }
th, td { border: 1px solid var(--line); padding: .2rem .5rem; text-align: left; vertical-align: top; }
"""


def routes() -> list[Route]:
    return [Route("/docs", _to_index), Route("/docs/", _page), Route("/docs/{page:path}", _page)]


async def _to_index(request: Request) -> Response:
    return RedirectResponse("docs/")  # relative: a proxy may have put a prefix before it


async def _page(request: Request) -> Response:
    name = request.path_params.get("page") or "index"
    if file := served_files().get(name):
        return FileResponse(file, media_type=TYPES[file.suffix], headers=HEADERS)
    if f"{name}.md" in served_files():
        return HTMLResponse(rendered_page(name), headers=HEADERS)
    return PlainTextResponse(f"no such page: {name[:100]}; /docs/ lists them\n", 404)


@cache
def served_files() -> dict[str, Path]:
    """Every file by its path below `/docs/`, such as `reference/settings.md`: nothing else is served."""
    files_below = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*")) if path.suffix in TYPES}
    return files_below | {"DESIGN.md": PACKAGE / "DESIGN.md"}


@cache
def rendered_page(name: str) -> str:
    """A page as HTML. Its links to other pages are relative; those to files outside the manual are left as text."""
    text = served_files()[f"{name}.md"].read_text(encoding="utf-8")
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = re.sub(r"<(h\d)>(.*)</\1>", _heading, body)
    body = re.sub(r'<a href="([^"]*)">(.*?)</a>', partial(_link, name), body, flags=re.DOTALL)
    title, to_index = text.partition("\n")[0].strip("# "), "../" * name.count("/") + "./"
    style = (files("stream_engine.report") / "page.css").read_text(encoding="utf-8") + _OWN_STYLE
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{style}</style>"
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


def _heading(match: re.Match[str]) -> str:
    tag, text = match.groups()
    return f'<{tag} id="{slug(html.unescape(re.sub("<[^>]*>", "", text)))}">{text}</{tag}>'


def _link(name: str, match: re.Match[str]) -> str:
    """A link of a page as it is served; one to a file that is not becomes its text."""
    path, sharp, anchor = match[1].partition("#")
    if "://" in path or not path:
        return match[0]
    file = Path(os.path.normpath(served_files()[f"{name}.md"].parent / path))
    target = next((page for page, page_file in served_files().items() if page_file == file), None)
    if target is None:
        return match[2]
    target = posixpath.relpath(target.removesuffix(".md"), posixpath.dirname(name) or ".")
    return f'<a href="{target}{sharp}{anchor}">{match[2]}</a>'
