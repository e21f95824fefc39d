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
from stream_engine.collect.line_log import LineLog, of_study
from stream_engine.collect.owner import Owner
from stream_engine.collect.page.words import words_of
from stream_engine.collect.participant_service import Logs, ParticipantService
from stream_engine.collect.question_pool import QuestionPool
from stream_engine.collect.routes import Routes
from stream_engine.collect.sessions import restored
from stream_engine.collect.stimuli import BadStimuli, Stimuli, keep, stored_objects
from stream_engine.input.settings import BadSettings
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
            told = (await self.client.get("/questions", params={"worker": who, "again": 1})).json()
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


def talk(folder: Path, study: settings.Study, speak, objects: str = "names.txt") -> str:
    """What `speak(client, access, people)` notes of a study that is served, from where its logs end."""
    (folder / "names.txt").write_text("\n".join("abcdefgh"))
    access, stimuli = Access(folder), Stimuli(str(folder / objects))
    logs = Logs(*(LineLog(folder / f"{name}.jsonl") for name in ("answers", "sessions", "refused")))
    pool = QuestionPool(study, stimuli.names, "study", seed=1)
    sessions = restored(of_study(logs.answers.lines(), "study", "answers.jsonl"), logs.sessions.lines())
    people, keeper = ParticipantService(study, access, sessions, pool, logs), Gatekeeper(study, access, False)

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


async def first_day(client: httpx.AsyncClient, access: Access, people: ParticipantService) -> list[str]:
    asked = Asked(client)
    for who, size, wrong in (("ann", 5, False), ("bob", 9, False), ("cho", 6, True), ("dev", 2, False)):
        await client.post("/consent", json={"worker": who})
        await asked.answers(who, size, wrong)
    await client.post("/consent", json={"worker": "eva"})
    await client.get("/questions", params={"worker": "fay", "n": 2})
    return [*asked.lines, *await where_it_stands(client, access)]


async def second_day(client: httpx.AsyncClient, access: Access, people: ParticipantService) -> list[str]:
    lines, asked = await where_it_stands(client, access), Asked(client)
    owner = {"Authorization": f"Bearer {access.owner}"}
    for who in ("ann", "bob", "cho", "eva", "fay"):
        told = (await client.get("/questions", params={"worker": who, "n": 3})).json()
        shown = [f"{each.get('anchor')}: {', '.join(each['shown'])}" for each in told["questions"]]
        asked.say(f"{who}: {told['answered']} of {told['of']} {told['ended']} {'; '.join(shown)}")
    await asked.answers("ann", 1)
    for path, body in (("/pause", {"paused": True}), ("/pause", {"paused": 3}), ("/objects/i.txt", {})):
        said = await client.request("PUT" if "obj" in path else "POST", path, json=body, headers=owner)
        asked.say(f"{path} {body}: {said.status_code} {said.text.strip().replace(str(people.study), '')}")
    for path in ("/links?n=2", "/links?n=x", "/participants.csv"):
        said = await client.get(path, headers=owner)
        asked.say(f"## {path}", *(re.sub(r"(?<==)[\w-]{20,}", "KEY", line) for line in said.text.splitlines()))
    return [*lines, *asked.lines, *await where_it_stands(client, access)]


async def where_it_stands(client: httpx.AsyncClient, access: Access) -> list[str]:
    asked, owner = Asked(client), {"Authorization": f"Bearer {access.owner}"}
    asked.say("## /study", *_outlined(await client.get("/study", headers=owner)))
    asked.say("## /participants.csv", *(await client.get("/participants.csv", headers=owner)).text.splitlines())
    figures = (await client.get("/metrics", headers=owner)).text.splitlines()
    asked.say("## /metrics", *(line for line in figures if line[0] != "#" and "_created" not in line), "")
    return asked.lines


def test_restart(tmp_path, approved):
    """The same study on a second day, from its logs: who answered what, repeats, catch trials, consents."""
    study = settings.Study(
        asking=settings.Asking(repeat_share=0.5, repeat_after=1),
        quota=settings.Quota(person=6, total=40),
        catch=(settings.CatchTrial(anchor="b", shown=("a", "c"), right="a"),),
        catching=settings.Catching(every=3, most_failed=1),
        texts=settings.Texts(title="Letters", consent="I agree."),
    )
    days = [talk(tmp_path, study, day) for day in (first_day, second_day)]
    assert "\n\n# the second day\n".join(days).replace(str(tmp_path), "FOLDER") == approved


PNG = b"\x89PNG\r\n\x1a\n"
OBJECTS = {  # of a folder, a table or a list
    "folder": {"a.txt": b"one", "b.png": PNG, "c.mp3": b"ID3", "d.txt": b" ", "e.png": b"x", "f.doc": b"x", ".g": b""},
    "table.csv": b"object,image,sound,text\na,b.png,,\nb,,c.mp3,\nc,,,a word\n,,,x\nd,none.png,,\ne,e.png,,\n",
    "twice.txt": b"a\nb\n\nc\nb\n",
    "few.txt": b"a\nb\n",
    "heads.csv": b"name,image\na,b\n",
    "latin.txt": b"a\nb\nna\xefve\n",
    "none.txt": None,
}
STUDY_FILES = (
    '[asking]\nshown = 1\n', '[quota]\nperson = "x"\n', '[texts]\ntitel = "x"\n', "[[catch]]\nshown = ['a', 'b']\n",
    "[catching]\nmost_failed = 2\n", "x", "[[catch]]\nanchor = 'b'\nshown = ['aa', 'c']\nright = 'c'\n",
    "[asking]\nshown = 5\n",
)  # fmt: skip


def test_objects(tmp_path, approved):
    """What becomes an object and what does not, what is kept of it, and studies that cannot be."""
    lines, folder = [], tmp_path / "folder"
    for name, content in OBJECTS.items():
        if isinstance(content, dict):
            folder.mkdir()
            for file, each in content.items():
                (folder / file).write_bytes(each)
        elif content is not None:
            (tmp_path / name).write_bytes(content)
    (tmp_path / "b.png").write_bytes(PNG)
    (tmp_path / "c.mp3").write_bytes(b"ID3")
    (tmp_path / "e.png").symlink_to(tmp_path / "b.png")
    for name in OBJECTS:
        lines.append(f"## {name}")
        try:
            stimuli = Stimuli(str(tmp_path / name))
        except BadStimuli as error:
            lines.append(f"!! {error}")
            continue
        lines += [f"{each}: {shown.text!r} {shown.file and shown.file.name} {shown.media}"
                  for each, shown in stimuli.shown.items()]  # fmt: skip
        lines += [f"not {where}: {why}" for where, why in stimuli.passed_over.items()]
        keep(stimuli, tmp_path / "kept" / name)
        lines.append(f"kept: {sorted(path.name for path in (tmp_path / 'kept' / name).iterdir())}")
        again = Stimuli(str(stored_objects(tmp_path / "kept" / name)))
        lines.append(f"again: {again.names}")
        if stimuli.folder:
            for new, text in {"h.txt": b"new", "a.png": PNG}.items():
                (folder / new).write_bytes(text)
            lines += [f"new: {stimuli.look()}", *(f"not {where}: {why}" for where, why in stimuli.passed_over.items())]
    for text in STUDY_FILES:
        (tmp_path / "study.toml").write_text(text)
        try:
            study = settings.load(str(tmp_path / "study.toml"))
            settings.check_objects(study, ["a", "b", "c", "d"], "study.toml")
            lines.append(f"{text!r}: taken")
        except BadSettings as error:
            lines.append(f"{text!r}: {error}")
    assert unchanging("\n".join(lines).replace(str(tmp_path), "FOLDER")) == approved
