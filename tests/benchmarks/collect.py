"""A simulated study over pictures of sklearn's digits: 100 people answer a real `stream-engine collect` over HTTP,
three of them in a real Chromium; the model's accuracy is followed, once with questions by the model, once at random.

    python -m tests.benchmarks.collect study     answers to reach an accuracy, answers lost, latencies
    python -m tests.benchmarks.collect worlds    the same arms without HTTP, a refit every 500 answers, several worlds
    python -m tests.benchmarks.collect latency   100 people at once, one question and one answer a second each
    python -m tests.benchmarks.collect kills     30 kills of the HTTP side or the engine under 100 people

Truth: distances of the digits' first 10 principal components. A person chooses the nearer with probability
sigma(s (d_far^2 - d_near^2)), s such that 85 % of answers to random questions are right. Accuracy: share of 5,000
fixed random questions that the newest embedding answers as the truth does. Latency is the client's, with the client's
own work in it: all run on one machine.
"""

import argparse
import asyncio
import json
import os
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np

from stream_engine import asking
from stream_engine.asking.known import known_from, nothing_known, with_objects
from stream_engine.asking.model import delivered
from stream_engine.data.container import Corrupt
from stream_engine.embedding import dimensions
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.refits.embedding import Params, refit
from stream_engine.state.engine import Engine
from stream_engine.state.store import NoSuchSnapshot, Store
from tests.benchmarks.__main__ import machine
from tests.collect.test_collect import kills_under_load
from tests.support.collecting import Collecting, Participant
from tests.support.process import until

LEVELS = (0.75, 0.80, 0.85, 0.88)
CONFIG = "[snapshot]\ninterval = 2.0\n[refits]\nkinds = ['embedding']\n"


class Digits:
    """n pictures, what is true of them, and people who answer."""

    def __init__(self, folder: Path, n: int, seed: int):
        from PIL import Image
        from sklearn.datasets import load_digits
        from sklearn.decomposition import PCA

        rng, digits = np.random.default_rng(seed), load_digits()
        chosen = rng.choice(len(digits.images), n, replace=False)
        folder.mkdir()
        self.names = [f"d{number:03d}" for number in range(n)]
        for name, at in zip(self.names, chosen):
            grey = (255 - digits.images[at] * 15.9).astype("uint8")
            Image.fromarray(grey).resize((120, 120), Image.Resampling.NEAREST).save(folder / f"{name}.png")
        points = PCA(10, random_state=0).fit_transform(digits.data)[chosen]
        squared = ((points[:, None] - points[None]) ** 2).sum(-1)
        self._squared = squared / np.median(squared)
        self._id = {name: i for i, name in enumerate(self.names)}
        rows = np.array([rng.choice(n, 3, replace=False) for _ in range(5000)])
        self._asked = rows[np.arange(5000)]
        margins = np.abs(self._squared[rows[:, 0], rows[:, 1]] - self._squared[rows[:, 0], rows[:, 2]])
        self._scale = next(s for s in np.arange(0.5, 50, 0.25) if (1 / (1 + np.exp(-s * margins))).mean() > 0.85)

    def answer(self, rng: np.random.Generator, anchor: str, shown: list[str]) -> str:
        """What a person chooses."""
        a, (b, c) = self._id[anchor], (self._id[name] for name in shown)
        p = 1 / (1 + np.exp(-self._scale * (self._squared[a, c] - self._squared[a, b])))
        return shown[0] if rng.random() < p else shown[1]

    def accuracy(self, names: list[str], points: np.ndarray) -> float:
        """Of an embedding; what it does not know is a coin."""
        at = np.full(len(self.names), -1)
        for row, name in enumerate(names[: len(points)]):
            at[self._id[name]] = row
        a, b, c = at[self._asked].T
        known = (a >= 0) & (b >= 0) & (c >= 0)
        d = lambda one, other: ((points[one] - points[other]) ** 2).sum(-1)  # noqa: E731
        says = d(a, b) < d(a, c)
        x, y, z = self._asked.T
        right = says == (self._squared[x, y] < self._squared[x, z])
        return float(np.where(known, right, 0.5).mean())


def take_part(person: Participant, think: float, rng: np.random.Generator) -> None:
    """One question after the other, some seconds each."""
    with httpx.Client(timeout=60) as http:
        while questions := person.ask(http, 1):
            time.sleep(rng.exponential(think))
            person.answer(http, questions[0])


def in_browser(base: str, digits: Digits, people: int, think: float, seed: int) -> int:
    """People who use the page; how many reached its end."""
    from playwright.sync_api import sync_playwright

    rng, ended = np.random.default_rng(seed), 0
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        pages = [browser.new_context().new_page() for _ in range(people)]
        for number, page in enumerate(pages):
            page.goto(f"{base}/ask?worker=browser{number}")
            page.click("#begin:visible")
        while pages:
            for page in list(pages):
                page.wait_for_selector("#trial:visible, #end:visible")
                if page.is_visible("#end"):
                    pages.remove(page)
                    ended += 1
                    continue
                before = page.inner_text("#far")
                name = lambda each: each.get_attribute("src").rpartition("/")[2]  # noqa: E731
                shown = [name(each) for each in page.query_selector_all("#choices img")]
                anchor = name(page.query_selector("#anchor img"))
                page.wait_for_timeout(300)  # what is pressed before somebody can have looked counts for nothing
                page.keyboard.press(str(1 + shown.index(digits.answer(rng, anchor, shown))))
                while page.is_visible("#trial") and page.inner_text("#far") == before:
                    time.sleep(0.02)
            time.sleep(think / 3)
        browser.close()
    return ended


def study(args: argparse.Namespace, strategy: str, folder: Path) -> dict[str, object]:
    """One study to its end, followed."""
    digits = Digits(folder / "digits", args.objects, args.seed)
    text = f"[asking]\nstrategy = '{strategy}'\n[quota]\nperson = {args.answers}\n"
    running = Collecting(folder, folder / "digits", study=text, config=CONFIG)
    curve: list[tuple[int, float, int]] = []  # answers, accuracy, dimensions that the refit chose
    over = threading.Event()

    def follow() -> None:
        store, seen = Store(running.state, tell=lambda line: None), -1
        answers: dict[int, int] = {}  # by number of snapshot
        while not over.wait(1.0):
            try:
                published = store.published()
            except (NoSuchSnapshot, Corrupt, OSError):  # none yet, or pruned while it was read: the next look tells
                continue
            answers[published.snapshot.sequence] = published.snapshot.counters["comparisons"]
            found = published.artifacts.get("embedding")
            if found is not None and found.sequence != seen:
                seen = found.sequence
                made_of = answers.get(seen, published.snapshot.counters["comparisons"])
                right = digits.accuracy(list(published.snapshot.objects), found.arrays["X"])
                curve.append((made_of, right, int(found.report["d"])))

    def answers_by(rng):
        return lambda question: digits.answer(rng, question["anchor"], question["shown"])

    rngs = [np.random.default_rng([args.seed, n]) for n in range(args.people)]
    people = [Participant(running.base, f"p{n}", answers_by(rng)) for n, rng in enumerate(rngs[args.browsers :])]
    threads = [threading.Thread(target=take_part, args=(person, args.think, rng)) for person, rng in zip(people, rngs)]
    follower = threading.Thread(target=follow)
    try:
        for thread in [follower, *threads]:
            thread.start()
        ended = in_browser(running.base, digits, args.browsers, args.think, args.seed) if args.browsers else 0
        for thread in threads:
            thread.join()
        time.sleep(args.settle)
        over.set()
        follower.join()
        log = {each["id"] for each in running.log()}
        acknowledged = {key for person in people for key in person.acknowledged}
        running.stop()
    finally:
        over.set()
        running.kill()
    counted = Store(running.state).newest().counters["events"]
    seconds = {what: np.array([s for p in people for s in p.seconds[what]]) * 1000 for what in ("questions", "answers")}
    return {
        "strategy": strategy,
        "answers": len(log),
        "lost": len(acknowledged - log),
        "counted": counted,
        "ended in browser": ended,
        **{f"{what} p50 ms": float(np.percentile(ms, 50)) for what, ms in seconds.items()},
        **{f"{what} p95 ms": float(np.percentile(ms, 95)) for what, ms in seconds.items()},
        **{f"answers to {level:.0%}": next((n for n, right, _ in curve if right >= level), None) for level in LEVELS},
        "last accuracy": curve[-1][1] if curve else None,
        "curve": " ".join(f"{n}:{right:.3f}/{d}" for n, right, d in curve),
    }


def world(n: int, strategy: str, seed: int, rounds: int) -> list[tuple[int, float, int]]:
    """A study without HTTP: answers, accuracy, and the dimensions that the refit chose, after every 500 answers."""
    with tempfile.TemporaryDirectory() as folder:
        digits = Digits(Path(folder) / "digits", n, seed)
    engine, decode, rng = Engine(), decoder("json", EventOptions(provenance=True)), np.random.default_rng([seed, 2])
    known, learned, curve = with_objects(nothing_known(), digits.names), None, []
    for number in range(rounds):
        if learned is not None:
            known = known._replace(model=delivered(learned, known.columns))
        by = (strategy, asking.RANDOM_SHARE) if strategy != "random" else ("information-gain", 1.0)
        asked = asking.questions(known, 500, by[0], int(rng.integers(1 << 31)), by[1])
        events = []
        for row, sampler in zip(asked.rows.tolist(), asked.sampler.tolist()):
            a, b, c = (known.names[i] for i in row)
            near = digits.answer(rng, a, [b, c])
            events.append({"anchor": a, "near": near, "far": c if near == b else b, "sampler": sampler})
        engine.learn(decode("\n".join(map(json.dumps, events)).encode()))
        snapshot = engine.snapshot()
        learned = refit(snapshot, Params(), seed, learned)
        known = with_objects(known_from(snapshot, learned), digits.names)
        right = digits.accuracy(list(snapshot.objects), learned.arrays["X"])
        curve.append((500 * (number + 1), right, int(learned.report["d"])))
    return curve


def worlds(args: argparse.Namespace) -> None:
    """Print the curves of every world, and each arm's accuracy minus that of random asking over the worlds."""
    dimensions.LARGEST = 0  # no test of dimensions: only what is delivered
    rounds, arms = args.people * args.answers // 500, ["random", *args.strategies.replace("random", "").split(",")]
    found: dict[str, list[list[tuple[int, float, int]]]] = {arm: [] for arm in arms if arm}
    for seed in range(args.seed, args.seed + args.worlds):
        for arm, curves in found.items():
            curves.append(world(args.objects, arm, seed, rounds))
            print(f"{seed} {arm:>16}  " + " ".join(f"{n}:{right:.3f}/{d}" for n, right, d in curves[-1]), flush=True)
    right = {arm: np.array([[each[1] for each in curve] for curve in curves]) for arm, curves in found.items()}
    for arm in found:
        more = 100 * (right[arm] - right["random"])
        error = more.std(axis=0, ddof=1) / np.sqrt(len(more)) if len(more) > 1 else np.full(rounds, np.nan)
        print(f"{arm:>18}  " + " ".join(f"{mean:+.1f}±{se:.1f}" for mean, se in zip(more.mean(axis=0), error)))


class Connection:
    """One that stays open, and what little of HTTP it takes to ask over it: the server is to be busy, not this."""

    def __init__(self, base: str):
        self._at = urlsplit(base)

    async def said(self, method: str, path: str, body: bytes = b"") -> dict:
        """The JSON of an answer; raises OSError where it is none with 200."""
        if not hasattr(self, "_in"):
            self._in, self._out = await asyncio.open_connection(self._at.hostname, self._at.port)
        lines = f"{method} {self._at.path}{path} HTTP/1.1\r\nhost: {self._at.netloc}\r\ncontent-length: {len(body)}\r\n"
        self._out.write(lines.encode() + b"content-type: application/json\r\n\r\n" + body)
        head = (await self._in.readuntil(b"\r\n\r\n")).lower()
        said = await self._in.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r")[0]))
        if b" 200 " not in head.partition(b"\r")[0]:
            raise OSError(f"{method} {path}: {said.decode()}")
        return json.loads(said)


async def in_turns(base: str, people: int, think: float, seconds: float) -> dict[str, list[float]]:
    """People who ask and answer for a while, on a connection each; seconds of every request."""
    took: dict[str, list[float]] = {"questions": [], "answers": []}
    end = time.monotonic() + seconds

    async def person(number: int) -> None:
        rng, worker, http = np.random.default_rng(number), f"p{number}", Connection(base)
        while time.monotonic() < end:
            await asyncio.sleep(rng.exponential(think))
            started = time.perf_counter()
            asked = (await http.said("GET", f"/questions?worker={worker}"))["questions"][0]
            took["questions"].append(time.perf_counter() - started)
            started = time.perf_counter()
            body = {"id": asked["id"], "worker": worker, "chosen": asked["shown"][0]}
            await http.said("POST", "/answers", json.dumps(body).encode())
            took["answers"].append(time.perf_counter() - started)

    await asyncio.gather(*map(person, range(people)))
    return took


def latency(running: Collecting, people: int, think: float, seconds: float) -> None:
    """Print percentiles of both requests, and the processor time of the process that listens."""
    until(lambda: running.study()["ready"] > 0, 120, "the maker")
    before = cpu_seconds(running.process.pid)
    took = asyncio.run(in_turns(running.base, people, think, seconds))
    used, requests = cpu_seconds(running.process.pid) - before, sum(map(len, took.values()))
    print(f"{requests} requests, {1000 * used / requests:.2f} ms of processor each, load {os.getloadavg()[0]:.1f}")
    for what, each in took.items():
        p50, p95 = (1000 * float(np.percentile(each, q)) for q in (50, 95))
        print(f"{what:>10}  p50 {p50:.1f} ms  p95 {p95:.1f} ms")


def cpu_seconds(pid: int) -> float:
    """Of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["study", "worlds", "latency", "kills"])
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--browsers", type=int, default=3)
    parser.add_argument("--objects", type=int, default=60)
    parser.add_argument("--answers", type=int, default=40, help="of each person")
    parser.add_argument("--think", type=float, default=3.0, help="seconds on average")
    parser.add_argument("--settle", type=float, default=20.0, help="seconds for the last refit")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the measurement of latency")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worlds", type=int, default=6)
    parser.add_argument("--strategies", default="information-gain,random")
    args = parser.parse_args()
    print(", ".join(f"{key} {value}" for key, value in machine().items()), flush=True)
    if args.what == "worlds":
        worlds(args)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # the engine ends a moment after a kill
        if args.what != "study":
            names = Path(folder) / "names.txt"
            names.write_text("\n".join(f"object {n}" for n in range(50)) + "\n")
            running = Collecting(
                Path(folder),
                names,
                study="[quota]\nperson = 1000000\n[access]\nrequests_a_second = 1000\n",
                config="[snapshot]\ninterval = 1.0\n[refits]\nenabled = false\n",
            )
            try:
                if args.what == "kills":
                    print(kills_under_load(running, args.people, args.kills, args.seed), flush=True)
                else:
                    latency(running, args.people, 1.0, args.seconds)
            finally:
                running.kill()
            return
        for strategy in args.strategies.split(","):
            os.mkdir(Path(folder) / strategy)
            for key, value in study(args, strategy, Path(folder) / strategy).items():
                print(f"{key:>24}  {value:.3f}" if isinstance(value, float) else f"{key:>24}  {value}", flush=True)


if __name__ == "__main__":
    main()
