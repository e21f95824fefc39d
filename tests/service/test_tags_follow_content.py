"""Every path whose answer a client may keep says in its ETag what the content is: a refit of the same snapshot gives
another one where the content differs, and the same where it does not."""

import asyncio
import hashlib
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from starlette.applications import Starlette

from stream_engine.service.http.export_cache import ExportCache
from stream_engine.service.http.export_routes import Exports
from stream_engine.service.http.live_page import LivePage
from stream_engine.service.http.make_export import FIGURES, PAGE
from stream_engine.service.http.refusals import Refusals
from stream_engine.service.metrics import Metrics
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from tests.service.test_http import stored
from tests.support.served import Lines

NAMES = {PAGE: "page.html", FIGURES: "map.svg", "clusters": "clusters.csv", "summary": "summary.json"}
PATHS = ("/page", "/figures/map.svg", "/export/clusters.csv", "/snapshot")


class Content:
    """A builder whose files hold the numbers of clusters, and nothing else of what is published."""

    def __init__(self, state: Path):
        self.state, self.stop, self.built = state, SimpleNamespace(set=lambda: None), []

    def build(self, published: Published, what: str, format: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        text = f"{NAMES[what]} {published.artifacts['sdp_clustering'].arrays['k']}"
        (folder / NAMES[what]).write_text(text)
        self.built.append(what)


@pytest.mark.parametrize("path", PATHS)
def test_the_tag_of_what_a_client_keeps_follows_the_content(path, tmp_path):
    snapshot = stored(tmp_path, 6).published().snapshot

    def refitted(k: int, objective: float) -> Published:
        arrays = {"labels": np.arange(6, dtype=np.int32) % k, "k": np.array(k), "objective": np.array(objective)}
        made = Artifact("sdp_clustering", snapshot.digest, 1, {}, 0, arrays, {}, f"{k} {objective}")
        return Published(snapshot, {"sdp_clustering": made})

    now = [refitted(2, 0.5)]
    builder, refusals = Content(tmp_path), Refusals(Metrics(), Lines())
    cache = ExportCache(builder, 1 << 20, 2)
    live = LivePage(cache, lambda: now[0], None, dict, 1, refusals)
    routes = [*Exports(cache, lambda: now[0], 4, refusals).routes(), *live.routes()]

    async def ask() -> list[tuple[int, str, bytes, str]]:
        answers, known = [], ""
        transport = httpx.ASGITransport(Starlette(routes=routes))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            for each in (refitted(2, 0.5), refitted(2, 0.5), refitted(3, 0.5), refitted(3, 0.75), refitted(2, 0.5)):
                now[0] = each
                answer = await client.get(path, headers={"If-None-Match": known} if known else {})
                known = answer.headers["etag"]
                answers.append((answer.status_code, known, answer.content, answer.headers["cache-control"]))
        return answers

    answers = asyncio.run(ask())
    cache.close()
    assert [status for status, *_ in answers] == [200, 304, 200, 304, 200]
    assert len(builder.built) == 4  # not for the second: nothing was refitted
    for status, tag, content, kept in answers:
        assert kept == "no-cache" and (content == b"") == (status == 304)
        assert status == 304 or tag == f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    assert answers[0][1] == answers[1][1] == answers[4][1] != answers[2][1] == answers[3][1]
