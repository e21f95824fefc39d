"""What a request is told of whom, over the application itself."""

import asyncio

import httpx
import pytest

from stream_engine.collect import study as settings
from stream_engine.collect.access import Access
from stream_engine.collect.gatekeeper import Gatekeeper
from stream_engine.collect.line_log import LineLog
from stream_engine.collect.owner import Owner
from stream_engine.collect.page.words import words_of
from stream_engine.collect.participant_service import Logs, ParticipantService
from stream_engine.collect.question_pool import QuestionPool
from stream_engine.collect.routes import Routes
from stream_engine.collect.sessions import Sessions
from stream_engine.collect.stimuli import Stimuli


@pytest.fixture
def asking(tmp_path):
    """`asking(invited, work)`: runs `work(client, access)` on the application of a study of two screens a person."""

    def run(invited: bool, work):
        (tmp_path / "names.txt").write_text("\n".join("abcdefgh"))
        study = settings.Study(quota=settings.Quota(person=2), access=settings.Access(invited_only=invited))
        access, stimuli = Access(tmp_path), Stimuli(str(tmp_path / "names.txt"))
        logs = Logs(*(LineLog(tmp_path / f"{name}.jsonl") for name in ("answers", "sessions", "refused")))
        pool = QuestionPool(study, stimuli.names, access.study, seed=1)
        people, keeper = ParticipantService(study, access, Sessions(), pool, logs), Gatekeeper(study, access, False)
        owner = Owner(people, stimuli, logs, access, keeper, None, "", tmp_path, {})
        application = Routes(people, stimuli, keeper, owner, None, words_of("en", None)).application()

        async def over():
            transport = httpx.ASGITransport(application)
            async with httpx.AsyncClient(transport=transport, base_url="http://study") as client:
                return await work(client, access)

        try:
            return asyncio.run(over())
        finally:
            logs.close()

    return run


async def question(client: httpx.AsyncClient, worker: str, key: str = "") -> dict:
    said = (await client.get("/questions", params={"worker": worker, "key": key})).json()
    return {"id": said["questions"][0]["id"], "worker": worker, "chosen": said["questions"][0]["shown"][0]}


TOLD = ("answered", "of", "ended", "code")


def test_how_far_somebody_is_is_told_where_all_answers_are_theirs(asking):
    async def work(client, access):
        one, other = await question(client, "w"), await question(client, "v")
        both = (await client.post("/answers", json=[one, other])).json()
        assert both == {"counted": 2, "again": 0}
        last = (await client.post("/answers", json=[await question(client, "w"), one])).json()
        assert last == {"counted": 2, "again": 1, "answered": 2, "of": 2, "ended": "done",
                        "code": access.completion_code("w")}  # fmt: skip

    asking(False, work)


def test_without_the_key_of_a_participant_nothing_is_told_of_them(asking):
    async def work(client, access):
        for _ in range(2):
            done = await question(client, "w", access.key("w"))
            await client.post("/answers", params={"key": access.key("w")}, json=done)
        for key, told in ((access.key("w"), True), (access.key("v"), False), ("", False)):
            said = await client.post("/answers", params={"key": key}, json=done)
            assert said.status_code == (200 if told else 403)
            assert [name in said.json() for name in TOLD] == [told] * 4

    asking(True, work)
