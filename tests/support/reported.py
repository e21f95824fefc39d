"""States to make reports of: answers about objects on a plane, with a few names that a page must not trip over."""

import io
import json
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from stream_engine.state.published import Published
from stream_engine.state.store import Store
from tests.support.process import engine, jsonl
from tests.support.session_store import once

AWKWARD = ('<script>alert("x")</script>', "a & b", "名前", "x" * 60, 'it\'s, "quoted"')


def names(n: int) -> list[str]:
    """n names, some of which are markup, long or not Latin."""
    return [AWKWARD[i] if i < len(AWKWARD) else f"object {i}" for i in range(n)]


def answers(n: int, size: int, seed: int = 0, d: int = 2, workers: int = 10, noise: float = 0.3) -> list[dict]:
    """Answers about n objects in three groups of a d-dimensional space, by workers the last of whom guesses."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) + 3.0 * np.eye(3, d)[np.arange(n) % 3] if d > 1 else rng.normal(size=(n, 1))
    called, events = names(n), []
    for _ in range(size):
        a, b, c = rng.choice(n, 3, replace=False).tolist()
        seen = points + noise * rng.normal(size=points.shape)
        worker = int(rng.integers(workers))
        wrong = rng.random() < 0.5 if worker == workers - 1 else False
        near = ((seen[a] - seen[b]) ** 2).sum() < ((seen[a] - seen[c]) ** 2).sum()
        b, c = (b, c) if near ^ wrong else (c, b)
        events.append({"anchor": called[a], "near": called[b], "far": called[c], "worker": f"w{worker}"})
    return events


QUICK = """
[refits.params.embedding]
dimensions = 2
kernel = "ste"
ridge = 1.0
participants = "alike"
"""


def state(folder: Path, events: list[dict], *more: str, config: str = "") -> Path:
    """A copy of the state of a run over these events; `config`: its configuration, such as `QUICK`."""
    with tarfile.open(fileobj=io.BytesIO(once(_packed, events, more, config))) as packed:
        packed.extractall(folder, filter="tar")
    return folder / "s"


def _packed(events: list[dict], more: tuple[str, ...], config: str) -> bytes:
    """A folder with the events and the state, as an archive."""
    packed = io.BytesIO()
    with TemporaryDirectory() as name, tarfile.open(fileobj=packed, mode="w") as archive:
        folder = Path(name)
        (folder / "engine.toml").write_text(config)
        given = "run", jsonl(folder / "events.jsonl", events), "--state", folder / "s"
        engine(*given, "--config", folder / "engine.toml", *more)
        archive.add(folder, ".")
    return packed.getvalue()


def published(folder: Path, events: list[dict], *more: str, config: str = "") -> Published:
    """What such a run published."""
    return Store(state(folder, events, *more, config=config)).published()


def held(page: str) -> dict:
    """What the page holds for its script."""
    text = page.split('id="data">', 1)[1].split("</script>", 1)[0]
    return json.loads(text)
