"""What a study of its own tells participants and its owner: three people answer, one of whom fails catch trials and one
of whom sends what was not asked."""

import asyncio
import io
import re
import zipfile
from html import unescape
from pathlib import Path

import httpx
import pytest
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
    while (await client.get("/collected/refused.jsonl", headers=owner)).text.count("\n") < 3:
        await asyncio.sleep(0.01)  # what is refused is written by a thread that nobody waits for
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


def talk(folder: Path, study: settings.Study, speak) -> str:
    """What `speak(client, access, people)` notes of a study that is served."""
    (folder / "names.txt").write_text("\n".join("abcdefgh"))
    access, stimuli = Access(folder), Stimuli(str(folder / "names.txt"))
    logs = Logs(*(LineLog(folder / f"{name}.jsonl") for name in ("answers", "sessions", "refused")))
    pool = QuestionPool(study, stimuli.names, "study", seed=1)
    people, keeper = ParticipantService(study, access, Sessions(), pool, logs), Gatekeeper(study, access, False)

    async def no_engine(request):
        return PlainTextResponse("starting", 503)

    owner = Owner(people, stimuli, logs, access, keeper, no_engine, "", folder, {})
    words = words_of(study.texts.language, None)
    application = Routes(people, stimuli, keeper, owner, None, words).application()

    async def over() -> list[str]:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://study") as client:
            return await speak(client, access, people)

    try:
        return unchanging("\n".join(asyncio.run(over())))
    finally:
        logs.close()


def test_study(tmp_path, approved):
    trials = (settings.CatchTrial(anchor="b", shown=("a", "c"), right="a"),)
    study = settings.Study(
        quota=settings.Quota(person=5, total=40),
        catch=trials,
        catching=settings.Catching(every=2, most_failed=1),
        texts=settings.Texts(title="Letters", question="Which is more like it?", end="Thank you."),
    )
    assert talk(tmp_path, study, lambda client, access, _: conversation(client, access)) == approved


STUDIES = {
    "two of four, with consent": settings.Study(
        asking=settings.Asking(shown=4, choose=2, repeat_share=0.5, repeat_after=1),
        quota=settings.Quota(person=4),
        texts=settings.Texts(
            title="More letters", consent="I agree.\n\nTo all.", instructions="Look.", excluded="Sorry.", code="DONE77",
            link="https://example.org/end?id={worker}",
        ),
        access=settings.Access(worker_from="PROLIFIC_PID", most_open=3),
    ),
    "odd one out, until there are three": settings.Study(
        asking=settings.Asking(type="odd_one_out"), quota=settings.Quota(person=0, total=3),
        texts=settings.Texts(title="Letters"),
    ),
    "triplets, in German": settings.Study(
        asking=settings.Asking(type="triplet", start="coverage"),
        quota=settings.Quota(person=2, ellipse=0.1),
        texts=settings.Texts(title="Farben", language="de", end="Fertig."),
    ),
}  # fmt: skip


async def kinds(client: httpx.AsyncClient, access: Access, people: ParticipantService) -> list[str]:
    """The page, and what somebody is told who answers the first of those shown."""
    asked, page = Asked(client), unescape((await client.get("/ask")).text)
    text = re.sub(r"<(script|style)\b(?![^>]*json).*?</\1>", "", page, flags=re.S)
    asked.say(*(line.strip() for line in text.splitlines() if line.strip() and "DIGEST" not in line))
    name = people.study.access.worker_from
    for who in ("ann", "bob"):
        told = await client.get("/questions", params={name: who, "worker": who, "n": 2})
        asked.say("", f"## {who}: {told.status_code}", *_outlined(told))
        if told.status_code == 200 and told.json().get("consent"):
            agreed = await client.post("/consent", json={"worker": who})
            asked.say(f"agrees: {agreed.status_code} {agreed.text.strip()}")
        for _ in range(6):
            told = await client.get("/questions", params={"worker": who})
            if told.status_code != 200 or not told.json()["questions"]:
                break
            question = told.json()["questions"][0]
            chosen = list(question.get("shown", question.get("objects")))[: people.study.asking.choose]
            answer = {"id": question["id"], "worker": who, "milliseconds": 900}
            key = "odd" if "objects" in question else "chosen"
            said = await client.post("/answers", json=answer | {key: chosen if len(chosen) > 1 else chosen[0]})
            shown = ", ".join(f"{field}: {value}" for field, value in question.items() if field != "id")
            asked.say(f"{shown} -> {said.status_code} {said.text.strip()}")
        asked.say(*_outlined(told))
    people.ellipse = 0.08
    asked.say(f"enough: {people.enough()}")
    people.ellipse, people.paused = None, True
    asked.say("", "## paused", *_outlined(await client.get("/questions", params={"worker": "cho"})))
    owner = {"Authorization": f"Bearer {access.owner}"}
    asked.say("", "## /study", *_outlined(await client.get("/study", headers=owner)))
    asked.say("", "## answers", *(await client.get("/collected/answers.jsonl", headers=owner)).text.splitlines())
    return asked.lines


def _outlined(answer) -> list[str]:
    try:
        return [*outline(answer.json())]
    except ValueError:
        return [answer.text.strip()]


@pytest.mark.parametrize("name", STUDIES)
def test_kinds(name, tmp_path, approved):
    assert talk(tmp_path, STUDIES[name], kinds) == approved
