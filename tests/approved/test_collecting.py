"""What a study of its own tells participants and its owner: three people answer, one of whom fails catch trials and one
of whom sends what was not asked."""

import asyncio
import io
import re
import zipfile

import httpx
from starlette.responses import PlainTextResponse

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
from tests.support.approved import outline, unchanging

CHANGING = (
    (r'("?(?:time|first|latest)"?: ?)[\d.e+]+', r"\1TIME"),
    (r"\b1[789]\d{8}(?:\.\d+)?\b", "TIME"),
    (r'("?(?:id|code|study|key|question)"?(?:: ?|=)"?)[\w-]{6,}', r"\1ID"),
    (r"(?<=,)[0-9A-Z]{6,}$", "CODE"),
)


class Asked:
    """What was sent and told, as lines."""

    def __init__(self, client: httpx.AsyncClient):
        self.client, self.lines = client, list[str]()

    def say(self, *lines: str) -> None:
        for line in lines:
            for pattern, name in CHANGING:
                line = re.sub(pattern, name, line)
            self.lines.append(line)

    async def answers(self, who: str, size: int, wrong: bool = False) -> dict:
        """Somebody answers as many questions, catch trials wrongly if `wrong`; the last answer."""
        for _ in range(size):
            told = (await self.client.get("/questions", params={"worker": who})).json()
            if not told["questions"]:
                break
            question = told["questions"][0]
            right = "a" if question["shown"][:2] == ["a", "b"] or "a" in question["shown"] else question["shown"][0]
            other = next(name for name in question["shown"] if name != right)
            last = {"id": question["id"], "worker": who, "chosen": other if wrong else right, "milliseconds": 700}
            said = await self.client.post("/answers", json=last)
        self.say(f"## {who}, {size} answers", *outline(said.json()), "")
        return last


async def conversation(client: httpx.AsyncClient, access: Access) -> list[str]:
    asked = Asked(client)
    last = await asked.answers("ann", 9)
    await asked.answers("bob", 3)
    await asked.answers("cho", 6, wrong=True)
    await asked.answers("dev", 1)
    for body in (last, last | {"chosen": "nothing"}, {"worker": "bob"}, [last, last], last | {"worker": "eva"}, "x"):
        said = await client.post("/answers", json=body)
        asked.say(f"{said.status_code} {said.text.strip()}")
    said = (await client.get("/questions", params={"worker": "dev", "n": 2})).json()
    asked.say("", "## questions of dev", *outline(said), "")
    owner = {"Authorization": f"Bearer {access.owner}"}
    for path in ("/study", "/participants.json"):
        asked.say(f"## {path}", *outline((await client.get(path, headers=owner)).json()), "")
    for path in ("/participants.csv", "/collected/answers.jsonl", "/collected/refused.jsonl", "/collected/nothing"):
        asked.say(f"## {path}", *(await client.get(path, headers=owner)).text.splitlines(), "")
    figures = (await client.get("/metrics", headers=owner)).text.splitlines()
    asked.say("## /metrics", *(line for line in figures if line[0] != "#" and "_created" not in line), "")
    links = (await client.get("/links?workers=ann,bob", headers=owner)).text.splitlines()
    asked.say("## /links", *(re.sub(r"(?<==)[\w-]{20,}", "KEY", line) for line in links), "")
    with zipfile.ZipFile(io.BytesIO((await client.get("/download", headers=owner)).content)) as archive:
        asked.say("## /download", *archive.namelist())
    said = await client.get("/study")
    asked.say(f"{said.status_code} {said.text.strip()}")
    return asked.lines


def test_study(tmp_path, approved):
    (tmp_path / "names.txt").write_text("\n".join("abcdefgh"))
    trials = (settings.CatchTrial(anchor="b", shown=("a", "c"), right="a"),)
    study = settings.Study(
        quota=settings.Quota(person=5, total=40),
        catch=trials,
        catching=settings.Catching(every=2, most_failed=1),
        texts=settings.Texts(title="Letters", question="Which is more like it?", end="Thank you."),
    )
    access, stimuli = Access(tmp_path), Stimuli(str(tmp_path / "names.txt"))
    logs = Logs(*(LineLog(tmp_path / f"{name}.jsonl") for name in ("answers", "sessions", "refused")))
    pool = QuestionPool(study, stimuli.names, "study", seed=1)
    people, keeper = ParticipantService(study, access, Sessions(), pool, logs), Gatekeeper(study, access, False)

    async def no_engine(request):
        return PlainTextResponse("starting", 503)

    owner = Owner(people, stimuli, logs, access, keeper, no_engine, "", tmp_path, {})
    application = Routes(people, stimuli, keeper, owner, None, words_of("en", None)).application()

    async def over() -> list[str]:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://study") as client:
            return await conversation(client, access)

    try:
        lines = asyncio.run(over())
    finally:
        logs.close()
    assert unchanging("\n".join(lines)) == approved
