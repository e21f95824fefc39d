"""The manual at /docs: every page is there, every link leads somewhere, nothing else is served."""

import asyncio
import posixpath
import re

import httpx
import pytest
from starlette.applications import Starlette

from stream_engine.service.http import manual_pages

HREF = re.compile(r'href="([^"]*)"')


APPLICATION = Starlette(routes=manual_pages.routes())
PAGES = {name.removesuffix(".md") for name in manual_pages.served_files() if name.endswith(".md")}


def get(path: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(APPLICATION)
        async with httpx.AsyncClient(transport=transport, base_url="http://here", follow_redirects=True) as client:
            return await client.get(path)

    return asyncio.run(asked())


def test_the_index_is_found_and_names_every_page():
    index = get("/docs")
    assert index.url.path == "/docs/" and "<h1" in index.text
    named = {posixpath.normpath(href) for href in HREF.findall(index.text)}
    reached, left = set(), {"index"}
    while left:
        name = left.pop()
        reached.add(name)
        links = HREF.findall(manual_pages.rendered_page(name))
        at = {posixpath.normpath(posixpath.join(posixpath.dirname(name), link.partition("#")[0])) for link in links}
        left |= (at & PAGES) - reached
    assert reached == PAGES and {"files", "reference/settings", "DESIGN"} <= named


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_is_served_and_its_links_lead_somewhere(name):
    page = get(f"/docs/{name}")
    assert page.status_code == 200 and page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.text.count("<a ") == page.text.count("</a>") and "<script" not in page.text
    for href in HREF.findall(page.text):
        if "://" not in href and not href.startswith("#"):
            path, _, anchor = href.partition("#")
            aim = posixpath.normpath(posixpath.join("/docs", posixpath.dirname(name), path))
            if aim == "/":
                continue  # the live page
            found = get(aim if aim != "/docs" else "/docs/")
            assert found.status_code == 200, href
            assert not anchor or f'id="{anchor}"' in found.text, href
    source = get(f"/docs/{name}.md")
    assert source.headers["content-type"].startswith("text/markdown")
    assert source.text == manual_pages.served_files()[f"{name}.md"].read_text(encoding="utf-8")


def test_a_picture_is_served_where_its_page_shows_it():
    page = get("/docs/methods/adds")
    (source,) = re.findall(r'<img src="([^"]*)"', page.text)
    picture = get(posixpath.join("/docs/methods", source))
    assert picture.status_code == 200 and picture.headers["content-type"] == "image/svg+xml"
    assert "img-src 'self'" in page.headers["content-security-policy"] and "<script" not in picture.text
    assert "script-src" not in picture.headers["content-security-policy"]
    shown = {
        posixpath.join(posixpath.dirname(name), each)
        for name in PAGES
        for each in re.findall(r'<img src="([^"]*)"', manual_pages.rendered_page(name))
    }
    assert shown == {name for name in manual_pages.served_files() if name.endswith(".svg")}


def test_the_list_for_programs_leads_to_every_page():
    listed = get("/docs/llms.txt")
    assert listed.status_code == 200 and listed.headers["content-type"].startswith("text/plain")
    named = re.findall(r"\]\(([^)]*)\.md\)", listed.text)
    assert sorted(named) == sorted(PAGES - {"DESIGN"})
    assert get(f"/docs/{named[0]}.md").status_code == 200


@pytest.mark.parametrize("asked", ["nothing", "../LICENSE", "%2e%2e/%2e%2e/pyproject.toml", "files.py", "/etc/passwd"])
def test_nothing_else_is_served(asked):
    assert get(f"/docs/{asked}").status_code == 404


def test_html_in_a_page_is_shown_and_not_obeyed(monkeypatch, tmp_path):
    (tmp_path / "bad.md").write_text("# <b>x</b>\n<script>alert(1)</script>\n[a](javascript:alert(1)) [b](gone.md)\n")
    monkeypatch.setattr(manual_pages, "served_files", lambda: {"bad.md": tmp_path / "bad.md"})
    made = manual_pages.rendered_page.__wrapped__("bad")
    assert "<script" not in made
    assert "<b>" not in made
    assert 'href="javascript' not in made
    assert "gone" not in made
