"""A real `stream-engine collect`, and people who answer it over real HTTP by a rule of their own."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx

from tests.support.forked_commands import Forked
from tests.support.process import ENVIRONMENT, free_ports, until
from tests.support.reported import QUICK

ENGINE, ALONE = "stream_engine", "tests.support.collecting_alone"  # what runs it
COMPILING = 420.0  # seconds an engine may need to its first snapshot, kernels not compiled, others at work beside it
Answer = Callable[[dict], str | list[str]]
# Nothing here is encrypted: to read the certificates of the system would be most of what a request costs.
get, post, put = (partial(each, timeout=120, verify=False) for each in (httpx.get, httpx.post, httpx.put))


class Collecting:
    """The command in a folder; it may be killed and started again. The caller ends it. `program`: `ALONE` where a test
    needs neither the engine nor the maker of questions."""

    def __init__(
        self, folder: Path, objects: Path | None, *more: str, study: str = "", config: str = "", program: str = ENGINE
    ):
        self.folder, self.state, self.said, self._program = folder, folder / "state", folder / "said.txt", program
        self._objects, self._more = objects, list(more)
        if study:
            (folder / "study.toml").write_text(study)
            self._more += ["--study", str(folder / "study.toml")]
        if config:
            (folder / "engine.toml").write_text(config)
            self._more += ["--config", str(folder / "engine.toml")]
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self.base = f"http://{self.address}"
        self.start()

    def start(self) -> None:
        """Start it, and wait until it takes requests."""
        with self.said.open("a") as said:
            command = [sys.executable, "-m", self._program, "collect", *self._said_objects(), "--state", self.state]
            command += ["--listen", self.address, *self._more]
            self.process = Forked(command, stdout=said, stderr=said, env=ENVIRONMENT)
        until(lambda: self.process.poll() is not None or self.answers_at_all(), what="the HTTP side", seconds=240)
        assert self.process.poll() is None, self.said.read_text()

    def _said_objects(self) -> list[str]:
        return ["--objects", str(self._objects)] if self._objects else []

    def answers_at_all(self) -> bool:
        try:
            return get(f"{self.base}/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    @property
    def token(self) -> str:
        return until(
            lambda: re.findall(r"/owner\?token=(\w+)", self.said.read_text()),
            what="its address to be said",
            seconds=240,
        )[-1]

    def owner(self, path: str) -> httpx.Response:
        return get(f"{self.base}{path}", headers={"Authorization": f"Bearer {self.token}"})

    def engines(self, path: str, holds: str = "") -> httpx.Response:
        """What the engine answers, once it is there and its answer holds a text."""

        def answered() -> httpx.Response | None:
            answer = self.owner(path)
            return answer if answer.status_code == 200 and holds in answer.text else None

        return until(answered, what=f"the engine's {path}", seconds=COMPILING)

    def study(self) -> dict:
        return self.owner("/study").json()

    def log(self, name: str = "answers") -> list[dict]:
        """The whole lines of a log."""
        lines = (self.state / "collect" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def children(self) -> dict[str, int]:
        """Processes of the engine and of the maker, by the last word of their modules."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            if parent == self.process.pid and b"-m" in words:
                found[words[words.index(b"-m") + 1].decode().rpartition(".")[2]] = int(pid)
        return found

    def kill(self) -> None:
        """SIGKILL of the HTTP side; its children end by themselves."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and its end."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(240) == 0, self.said.read_text()[-4000:]


class Participant:
    """Somebody who answers; what he was told is counted stands in `acknowledged`, id -> what he chose."""

    def __init__(self, base: str, worker: str, answer: Answer, key: str = ""):
        self.base, self.worker, self._answer = base, worker, answer
        self._key = {"key": key} if key else {}
        self.acknowledged: dict[str, object] = {}
        self.ended, self.code = "", ""

    def ask(self, http: httpx.Client, n: int = 1, again: bool = False) -> list[dict]:
        """The next questions."""
        more = {"again": "1"} if again else {}
        asked = {"worker": self.worker, "n": n, **more, **self._key}
        answer = again_where_idle(lambda: http.get(f"{self.base}/questions", params=asked))
        answer.raise_for_status()
        said = answer.json()
        self.ended, self.code = said["ended"], said.get("code", "")
        return said["questions"]

    def answer(self, http: httpx.Client, question: dict) -> dict:
        """Answer one."""
        chosen = self._answer(question)
        body = {"id": question["id"], "worker": self.worker, "chosen": chosen, "seconds": 1.5}
        said = again_where_idle(lambda: http.post(f"{self.base}/answers", params=self._key, json=body))
        said.raise_for_status()
        self.acknowledged[question["id"]] = chosen
        return said.json()


def again_where_idle(request: Callable[[], httpx.Response]) -> httpx.Response:
    """A request, once more where the connection was idle for so long that the server has closed it: as browsers do."""
    try:
        return request()
    except httpx.TransportError:
        return request()


def first_shown(question: dict) -> str:
    """Always what stands on the left."""
    return question.get("shown", question.get("objects"))[0]


FAST = f"[snapshot]\ninterval = 2.0\n[refits]\nkinds = ['embedding']\n{QUICK}"


def read_by_the_engine(study) -> int:
    answer = study.owner("/snapshot")
    return answer.json()["events"] if answer.status_code == 200 else -1
