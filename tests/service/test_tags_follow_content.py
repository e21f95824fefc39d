"""Every path whose answer a client may keep says in its ETag what the content is: a refit of the same snapshot gives
another one where the content differs, and the same where it does not."""

import asyncio
import hashlib
from pathlib import Path

import httpx
import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from stream_engine.service.context import HttpContext
from stream_engine.service.http.access import Refusals
from stream_engine.service.http.built_files import BuiltFiles, Key
from stream_engine.service.http.live_page import LivePage
from stream_engine.service.http.make_export import FIGURES, PAGE
from stream_engine.service.http.routes import Downloads
from stream_engine.service.metrics import Metrics
from stream_engine.service.settings import HttpSettings
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from tests.service.test_http import stored
from tests.support.served import Lines

NAMES = {PAGE: "page.html", FIGURES: "map.svg", "clusters": "clusters.csv", "summary": "summary.json"}
PATHS = ("/page", "/figures/map.svg", "/export/clusters.csv", "/snapshot")


class NumbersOfClusters(BuiltFiles):
    """Files that hold the numbers of clusters, and nothing else of what is published."""

    def _write(self, published: Published, key: Key, folder: Path) -> None:
        (folder / NAMES[key.what]).write_text(f"{NAMES[key.what]} {published.artifacts['sdp_clustering'].arrays['k']}")


@pytest.mark.parametrize("path", PATHS)
def test_the_tag_of_what_a_client_keeps_follows_the_content(path, tmp_path):
    snapshot = stored(tmp_path, 6).published().snapshot

    def refitted(k: int, objective: float) -> Published:
        arrays = {"labels": np.arange(6, dtype=np.int32) % k, "k": np.array(k), "objective": np.array(objective)}
        made = Artifact("sdp_clustering", snapshot.digest, 1, {}, 0, arrays, {}, f"{k} {objective}")
        return Published(snapshot, {"sdp_clustering": made})

    now = [refitted(2, 0.5)]
    context = HttpContext(tmp_path, Metrics(), lambda: now[0])
    files, refusals = NumbersOfClusters(context), Refusals(context.metrics, Lines())
    live = LivePage(context, files, None, None, refusals, HttpSettings())
    downloads = [Route("/snapshot", Downloads(context, files, refusals, "summary.json"))]
    downloads += [Route("/export/{name}", Downloads(context, files, refusals))]
    routes = [*downloads, *live.routes()]

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
    files.close()
    assert [status for status, *_ in answers] == [200, 304, 200, 304, 200]
    assert files.begun == 4  # not for the second: nothing was refitted
    for status, tag, content, kept in answers:
        assert kept == "no-cache" and (content == b"") == (status == 304)
        assert status == 304 or tag == f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    assert answers[0][1] == answers[1][1] == answers[4][1] != answers[2][1] == answers[3][1]
